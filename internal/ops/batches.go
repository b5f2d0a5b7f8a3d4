package ops

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sqlwriter/internal/run"
)

// BatchQuery selects batches.
type BatchQuery struct {
	// Empty fields mean any.
	Run    string          `json:"run,omitempty"`
	Status run.BatchStatus `json:"status,omitempty"`
	// Batch is an id or RUN/NUMBER: this one alone, with the errors of its documents.
	Batch string `json:"batch,omitempty"`
	// Limit is 1 to 1,000; 0 means 20. Page is the Next of the page before.
	Limit int    `json:"limit,omitempty"`
	Page  string `json:"page,omitempty"`
}

// BatchPage is a page of batches.
type BatchPage struct {
	Batches []run.Batch `json:"batches"`
	// Errors are those of the documents of BatchQuery.Batch, the latest first, at most 100.
	Errors []run.ErrorDetail `json:"errors,omitempty"`
	// Next is the BatchQuery.Page of the next page; empty at the end.
	Next string `json:"next,omitempty"`
}

// BatchList returns batches of a run by number, failed ones first; without a run, the latest of all runs. Errors as
// RunShow.
func (o *Ops) BatchList(ctx context.Context, q BatchQuery) (page BatchPage, err error) {
	if q.Limit, err = checkLimit(q.Limit); err != nil {
		return page, err
	}
	switch {
	case q.Run != "" && !run.IsRunID(q.Run):
		return page, notARun(q.Run)
	case q.Status != "" && !slices.Contains(run.BatchStatuses(), q.Status):
		return page,
			refuse(Usage, "status: expected one of %s, found %q", joined(run.BatchStatuses()), string(q.Status))
	}
	position, err := q.position()
	if err != nil {
		return page, err
	}
	id := ""
	if q.Batch != "" {
		if q.Run != "" || q.Status != "" || q.Page != "" {
			return page, refuse(Usage, "batch: goes with no other filter")
		}
		if id, err = o.batchID(q.Batch); err != nil {
			return page, err
		}
	}
	err = o.stores(ctx, func(ctx context.Context, s Stores) (err error) {
		if id != "" {
			var batch run.Batch
			batch, page.Errors, err = o.batch(ctx, s, id, q.Batch)
			page.Batches = []run.Batch{batch}
			return err
		}
		if q.Run != "" {
			if _, err := o.requireRun(ctx, s, q.Run); err != nil {
				return err
			}
		}
		page, err = o.batchesFrom(ctx, s, q, position)
		return err
	})
	page.Batches = present(page.Batches)
	for i := range page.Batches {
		page.Batches[i] = o.localBatch(page.Batches[i])
	}
	for i := range page.Errors {
		page.Errors[i].At = o.in(page.Errors[i].At)
	}
	return page, err
}

// batchPosition is a place in a list: behind a batch of one of the list's sorts.
type batchPosition struct {
	sort  int
	after string
}

// sorts are the statuses that a list gives one after the other: of a run's batches the failed ones come first.
func (q BatchQuery) sorts() []run.BatchStatus {
	if q.Run != "" && q.Status == "" {
		return []run.BatchStatus{run.Failed, ""}
	}
	return []run.BatchStatus{q.Status}
}

// position reads Page, which is the index of the sort and a batch's id.
func (q BatchQuery) position() (p batchPosition, err error) {
	if q.Page == "" {
		return p, nil
	}
	sort, after, _ := strings.Cut(q.Page, "/")
	if p.sort, err = strconv.Atoi(sort); err != nil || p.sort < 0 || p.sort >= len(q.sorts()) || !isBatchID(after) {
		return p, notAPage(q.Page)
	}
	p.after = after
	return p, nil
}

// batchesFrom lists own batches from a position on. The page is short and has a Next when many batches of others stand
// between.
func (o *Ops) batchesFrom(ctx context.Context, s Stores, q BatchQuery, p batchPosition) (page BatchPage, err error) {
	for read := 0; p.sort < len(q.sorts()); p = (batchPosition{sort: p.sort + 1}) {
		status, most := q.sorts()[p.sort], max(q.Limit, minBatchesRead)
		for more := true; more; {
			found, err := s.Runs.ListBatches(ctx, q.Run, status, p.after, most)
			if err != nil {
				return BatchPage{}, err
			}
			for _, batch := range found {
				p.after = batch.ID
				if o.ownBatch(batch) && (p.sort == 0 || batch.Status != run.Failed) {
					page.Batches = append(page.Batches, batch)
				}
				if read++; len(page.Batches) == q.Limit || read == maxBatchesRead {
					page.Next = fmt.Sprintf("%d/%s", p.sort, p.after)
					return page, nil
				}
			}
			more = len(found) == most
		}
	}
	return page, nil
}

func (o *Ops) localBatch(batch run.Batch) run.Batch {
	batch.CreatedAt, batch.QueuedAt, batch.StartedAt = o.in(batch.CreatedAt),
		o.in(batch.QueuedAt), o.in(batch.StartedAt)
	batch.EndedAt, batch.HeartbeatAt = o.in(batch.EndedAt), o.in(batch.HeartbeatAt)
	return batch
}

// batchID accepts the id of a batch, or its run and number as RUN/12.
func (o *Ops) batchID(name string) (string, error) {
	at := strings.LastIndexByte(name, '/')
	if at < 0 && isBatchID(name) {
		return name, nil
	}
	if at > 0 && run.IsRunID(name[:at]) {
		if number, err := strconv.Atoi(name[at+1:]); err == nil && number > 0 {
			return run.BatchID(o.o.SysName, name[:at], number), nil
		}
	}
	return "",
		refuse(Usage, "batch: expected RUN/NUMBER or the id of a batch, as `batch list` shows them, found %q",
			run.Truncate(name, run.MaxRunID))
}

// isBatchID reports whether a text has the form of run.BatchID.
func isBatchID(text string) bool {
	const size = 32
	id, err := hex.DecodeString(text)
	return err == nil && len(id) == size
}

// batch reads a batch with the errors of its documents. name is how it was asked for.
func (o *Ops) batch(ctx context.Context, s Stores, id, name string) (run.Batch, []run.ErrorDetail, error) {
	batch, details, there, err := s.Runs.Batch(ctx, id)
	if err == nil && (!there || !o.ownBatch(batch)) {
		return run.Batch{}, nil, refuse(NotFound, "no batch %q", name)
	}
	return batch, details, err
}

// RequeuedAtOnce bounds the batches of one request of BatchRequeue.
const RequeuedAtOnce = MaxListed

// RequeueRequest asks to send failed batches again: one batch, or all of a run.
type RequeueRequest struct {
	// Batch is an id or RUN/NUMBER.
	Batch string `json:"batch,omitempty"`
	Run   string `json:"run,omitempty"`
	Why   string `json:"why"`
}

// Requeued is the result of a requeue.
type Requeued struct {
	Batches int `json:"batches"`
	// Note says why some batches are left. The same request continues with them.
	Note string `json:"note,omitempty"`
}

// BatchRequeue makes failed batches pending_retry, at most 1,000 of a run. A completed run becomes running again.
// Errors as RunShow;
// *RequestError (conflict) when no batch failed, or the run was cancelled or failed. After an error nothing was
// changed.
func (o *Ops) BatchRequeue(ctx context.Context, r RequeueRequest) (done Requeued, err error) {
	if (r.Batch == "") == (r.Run == "") {
		return done, refuse(Usage, "batch: expected a batch, or a run, not both")
	}
	by, err := o.mayAct(ctx, r.Why)
	if err != nil {
		return done, err
	}
	batches, err := o.requeueable(ctx, r)
	if err != nil {
		return done, err
	}
	begin := o.o.Now()
requeue:
	for _, batch := range batches {
		if o.o.Now().Sub(begin) > requeueWithin {
			done.Note = "the time for one request is over: ask again for the others"
			break
		}
		err := o.stores(ctx, func(ctx context.Context, s Stores) error {
			again, err := s.Runs.RequeueBatch(ctx, batch.ID,
				run.Audit{
					Action: run.CodeBatchRequeue, Level: run.LevelInfo, By: by, Why: r.Why,
					Run: batch.Run, Batch: batch.ID,
				})
			if err == nil && !again {
				return refuse(Conflict, "the batch is not failed any more")
			}
			return err
		})
		var refused *RequestError
		switch {
		case err == nil:
			done.Batches++
		case errors.As(err, &refused): // nothing was written; other batches may still be failed
		case err != nil && done.Batches == 0:
			return done, unaudited(err)
		case err != nil:
			done.Note = "ask again for the others: " + errorText(err)
			break requeue
		}
	}
	switch {
	case done.Batches == 0:
		return done, refuse(Conflict, "no batch is failed any more, or the run has ended meanwhile")
	case done.Note == "" && len(batches) == MaxListed:
		done.Note = "there may be more, ask again"
	}
	if note := o.notifyRun(ctx, batches[0].Run); note != "" {
		done.Note = strings.TrimPrefix(done.Note+"; "+note, "; ")
	}
	return done, nil
}

// notifyRun sends the run's message to a manager, which sends the batches' messages. If that fails, the timer goes on
// with it.
func (o *Ops) notifyRun(ctx context.Context, id string) (note string) {
	sent := false
	err := o.stores(ctx, func(ctx context.Context, s Stores) error {
		row, err := o.requireRun(ctx, s, id)
		if err == nil {
			note, sent = o.notify(ctx, row)
		}
		return err
	})
	if err != nil {
		note = errorText(err)
	}
	if !sent {
		note = "the timer goes on with the run: " + note
	}
	return note
}

// requeueable returns the failed batches of the request, if their run can continue.
func (o *Ops) requeueable(ctx context.Context, r RequeueRequest) (batches []run.Batch, err error) {
	id := ""
	switch {
	case r.Batch != "":
		if id, err = o.batchID(r.Batch); err != nil {
			return nil, err
		}
	case !run.IsRunID(r.Run):
		return nil, notARun(r.Run)
	}
	err = o.stores(ctx, func(ctx context.Context, s Stores) error {
		runID := r.Run
		if id != "" {
			batch, _, err := o.batch(ctx, s, id, r.Batch)
			if err != nil {
				return err
			}
			if batch.Status != run.Failed {
				return refuse(Conflict, "the batch is %s: only one that has failed is sent again", batch.Status)
			}
			batches, runID = []run.Batch{batch}, batch.Run
		}
		row, err := o.requireRun(ctx, s, runID)
		switch {
		case err != nil:
			return err
		case row.Status == run.RunPurged:
			return refuse(Conflict, "its run is deleted by retention")
		case !row.Status.Requeueable():
			return refuse(Conflict, "its run is %s: `run resume %s` continues it", row.Status, runID)
		case id == "":
			batches, err = s.Runs.ListBatches(ctx, runID, run.Failed, "", MaxListed)
		}
		if err == nil && len(batches) == 0 {
			err = refuse(Conflict, "no batch of run %q has failed", runID)
		}
		return err
	})
	return batches, err
}
