package inmem

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/run"
)

// ClaimBatch implements run.Batches. What is finished is answered so before its run is looked at.
func (s *RunStore) ClaimBatch(
	ctx context.Context, id string, t run.Ticket, w run.Worker, stale time.Duration, a run.Audit,
) (run.Claimed, error) {
	const op = "inmem: claim batch"
	a, err := a.Normalize()
	if err != nil {
		return run.Claimed{}, err
	}
	if err := claimant(op, w); err != nil {
		return run.Claimed{}, err
	}
	if err := ended(ctx, op); err != nil {
		return run.Claimed{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.batchOf[id]
	if j == nil {
		return run.Claimed{Answer: run.Unknown}, nil
	}
	claimed := run.Claimed{Answer: s.answer(j, t, stale)}
	if claimed.Answer == run.Taken {
		claimed.TookOver, claimed.Begun = j.Status == run.Processing, !j.StartedAt.IsZero()
		if s.take(j, t, w) || !claimed.Begun {
			s.note(a)
		}
		claimed.Lease = run.BatchLease{Batch: j.ID, Run: j.Run, Owner: j.Owner, Epoch: j.Epoch}
		claimed.Open = j.open()
	}
	claimed.Batch, claimed.Run = j.Batch, s.brief(j.run)
	return claimed, nil
}

// answer says what a claim of a batch comes to.
func (s *RunStore) answer(j *storedBatch, t run.Ticket, stale time.Duration) run.Answer {
	switch {
	case j.run.SysName != s.sysName:
		return run.Foreign
	case !j.Status.Open():
		return run.Finished
	case j.run.Status != run.RunRunning || j.run.Cancel:
		return run.Ended
	case t.Attempt != j.Attempt:
		return run.Outdated
	case j.Status == run.Processing && !s.free(j.Owner, j.HeartbeatAt, j.Epoch, t.Epoch, stale):
		return run.Busy
	default:
		return run.Taken
	}
}

// take gives a batch to a worker, and reports whether another one is lost with it.
func (s *RunStore) take(j *storedBatch, t run.Ticket, w run.Worker) (lost bool) {
	if lost = s.leave(j.Owner, j.Epoch, t.Epoch) && j.Status == run.Processing; lost {
		j.LostWorkers++
	}
	now := s.at()
	j.Status, j.Owner, j.HeartbeatAt, j.claimedAt, j.releasedAt = run.Processing, w.ID, now, now, time.Time{}
	j.Epoch++
	if j.StartedAt.IsZero() {
		j.StartedAt = now
	}
	s.begin(w, kindWorker, j.run)
	return lost
}

// open lists the documents that have no outcome.
func (j *storedBatch) open() []string {
	list := []string{}
	for _, it := range j.items {
		if it.Outcome == "" {
			list = append(list, it.Document)
		}
	}
	return list
}

// BeatBatch implements run.Batches.
func (s *RunStore) BeatBatch(ctx context.Context, h run.BatchLease) (cancel bool, err error) {
	const op = "inmem: beat batch"
	if err := ended(ctx, op); err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	j, err := s.leasedBatch(op, h)
	if err != nil {
		return false, err
	}
	j.HeartbeatAt = s.at()
	s.beat(h.Owner)
	return j.run.Cancel, nil
}

// SaveOutcomes implements run.Batches.
func (s *RunStore) SaveOutcomes(
	ctx context.Context, h run.BatchLease, outcomes []run.ItemOutcome, details []run.ErrorDetail,
) error {
	const op = "inmem: save outcomes"
	if len(outcomes) > maxRows || len(details) > maxRows {
		return fault.New(fault.Internal, op, fault.CodeBug, "expected at most %d outcomes and details, found %d and %d",
			maxRows, len(outcomes), len(details))
	}
	for _, o := range outcomes {
		if !slices.Contains(invoice.Outcomes(), o.Outcome) {
			return fault.New(fault.Internal, op, fault.CodeBug, "expected an outcome, found %q", o.Outcome)
		}
	}
	if err := ended(ctx, op); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	j, err := s.leasedBatch(op, h)
	if err != nil {
		return err
	}
	items := make([]*storedItem, 0, len(outcomes))
	for _, o := range outcomes {
		it := j.run.items[run.DocumentKey(o.Document)]
		if it == nil || it.Number != j.Number {
			return fault.New(fault.Internal, op, fault.CodeBug, "expected documents of the batch, found another")
		}
		items = append(items, it)
	}
	for i, it := range items {
		it.Outcome, it.Code = outcomes[i].Outcome, run.Truncate(outcomes[i].Code, run.MaxBy)
	}
	s.addDetails(h, details)
	if w := s.workerOf[h.Owner]; w != nil {
		w.Processed += len(outcomes)
	}
	return nil
}

func (s *RunStore) addDetails(h run.BatchLease, details []run.ErrorDetail) {
	for _, d := range details {
		d.Code, d.Message, d.At = run.Truncate(d.Code, run.MaxBy), run.Truncate(d.Message, run.MaxWhy), s.at()
		s.details = append(s.details, storedDetail{s.sysName, h.Run, h.Batch, d})
	}
}

// FinishBatch implements run.Batches.
func (s *RunStore) FinishBatch(
	ctx context.Context, h run.BatchLease, audit func(run.BatchStats) run.Audit,
) (run.BatchStats, error) {
	const op = "inmem: finish batch"
	if err := ended(ctx, op); err != nil {
		return run.BatchStats{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	j, err := s.leasedBatch(op, h)
	if err != nil {
		return run.BatchStats{}, err
	}
	stats := j.count()
	a, err := audit(stats).Normalize()
	if err != nil {
		return run.BatchStats{}, err
	}
	j.Success, j.Failure, j.EndedAt = stats.Success, stats.Failure, s.at()
	j.Status = run.Completed
	status := run.WorkerCompleted
	if !stats.AddsUp {
		status, j.Status = run.WorkerFailed, run.Failed
		j.Error = fmt.Sprintf("%d of %d documents have no outcome",
			stats.Total-stats.Success-stats.Failure, stats.Total)
	}
	s.end(h.Owner, status)
	s.note(a)
	return stats, nil
}

// count counts the outcomes of a batch.
func (j *storedBatch) count() run.BatchStats {
	stats := run.BatchStats{Total: j.Total, Outcomes: map[invoice.Outcome]int{}}
	for _, it := range j.items {
		switch {
		case it.Outcome == "":
			continue
		case it.Outcome.Success():
			stats.Success++
		default:
			stats.Failure++
		}
		stats.Outcomes[it.Outcome]++
	}
	stats.AddsUp = stats.Success+stats.Failure == stats.Total
	return stats
}

// ReleaseBatch implements run.Batches.
func (s *RunStore) ReleaseBatch(ctx context.Context, h run.BatchLease, audits ...run.Audit) error {
	return s.endLease(ctx, "inmem: release batch", h, run.WorkerIdle, audits, func(j *storedBatch) {
		j.Owner, j.HeartbeatAt, j.releasedAt = "", time.Time{}, s.at()
	})
}

// FailBatch implements run.Batches.
func (s *RunStore) FailBatch(ctx context.Context, h run.BatchLease, reason string, a run.Audit) error {
	return s.endLease(ctx, "inmem: fail batch", h, run.WorkerFailed, []run.Audit{a}, func(j *storedBatch) {
		s.giveUp(j, reason)
	})
}

// endLease ends a worker's lease of a batch.
func (s *RunStore) endLease(
	ctx context.Context, op string, h run.BatchLease, status run.WorkerStatus, audits []run.Audit,
	change func(*storedBatch),
) error {
	audits, err := normalizedAudits(audits)
	if err != nil {
		return err
	}
	if err := ended(ctx, op); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	j, err := s.leasedBatch(op, h)
	if err != nil {
		return err
	}
	s.end(h.Owner, status)
	change(j)
	s.note(audits...)
	return nil
}

// giveUp makes a batch failed, and its worker with it. What it has come to is counted.
func (s *RunStore) giveUp(j *storedBatch, reason string) {
	s.end(j.Owner, run.WorkerFailed)
	stats := j.count()
	j.Success, j.Failure = stats.Success, stats.Failure
	j.Status, j.Error, j.EndedAt = run.Failed, run.Truncate(reason, run.MaxWhy), s.at()
}

// again makes a batch that failed, or whose message may be gone, one whose message is to be sent.
func (j *storedBatch) again() {
	j.retry()
	j.Epoch++
	j.QueueAttempts, j.LostWorkers, j.LastQueueError, j.Error, j.EndedAt = 0, 0, "", "", time.Time{}
}

// retry makes a batch one whose message is to be sent: another message, which is no duplicate of the last.
func (j *storedBatch) retry() {
	j.Status, j.Owner, j.HeartbeatAt, j.releasedAt = run.PendingRetry, "", time.Time{}, time.Time{}
	j.Attempt++
}

// Batch implements run.Batches.
func (s *RunStore) Batch(ctx context.Context, id string) (run.Batch, []run.ErrorDetail, bool, error) {
	if err := ended(ctx, "inmem: read batch"); err != nil {
		return run.Batch{}, nil, false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.batchOf[id]
	if j == nil {
		return run.Batch{}, nil, false, nil
	}
	details := []run.ErrorDetail{}
	for _, d := range latestOf(s.details, maxRows, func(d storedDetail) bool { return d.batch == id }) {
		details = append(details, d.of)
	}
	return j.Batch, details, true, nil
}

// ListBatches implements run.Batches.
func (s *RunStore) ListBatches(
	ctx context.Context, id string, status run.BatchStatus, after string, limit int,
) ([]run.Batch, error) {
	if err := ended(ctx, "inmem: list batches"); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var from []*storedBatch
	if id == "" {
		from = latest(s.batches, len(s.batches))
	} else if r := s.runOf[id]; r != nil {
		from = r.batches
	}
	if after != "" {
		i := slices.IndexFunc(from, func(j *storedBatch) bool { return j.ID == after })
		if i < 0 {
			return []run.Batch{}, nil
		}
		from = from[i+1:]
	}
	return pick(from, limit, func(j *storedBatch) bool { return status == "" || j.Status == status }), nil
}

// pick lists the first batches that are wanted.
func pick(from []*storedBatch, limit int, wanted func(*storedBatch) bool) []run.Batch {
	list := []run.Batch{}
	for _, j := range from {
		if len(list) >= limit {
			break
		}
		if wanted(j) {
			list = append(list, j.Batch)
		}
	}
	return list
}

// Items implements run.Batches.
func (s *RunStore) Items(
	ctx context.Context, id string, outcomes []invoice.Outcome, afterKey string, limit int,
) ([]run.ItemOutcome, error) {
	if err := ended(ctx, "inmem: read items"); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.runOf[id]
	if r == nil {
		return []run.ItemOutcome{}, nil
	}
	from, there := slices.BinarySearch(r.keys, afterKey)
	if there {
		from++
	}
	list := []run.ItemOutcome{}
	for _, key := range r.keys[from:] {
		if it := r.items[key].ItemOutcome; len(list) < limit &&
			(len(outcomes) == 0 || slices.Contains(outcomes, it.Outcome)) {
			list = append(list, it)
		}
	}
	return list, nil
}

// RequeueBatch implements run.Batches.
func (s *RunStore) RequeueBatch(ctx context.Context, id string, a run.Audit) (bool, error) {
	return s.changeBatch(ctx, "inmem: requeue batch", id, a, func(j *storedBatch) bool {
		r := j.run
		switch {
		case j.Status != run.Failed:
			return false
		case r.Status == run.RunCompleted || r.Status == run.RunCompletedWithFailures:
			r.Status, r.Cancel, r.EndedAt = run.RunRunning, false, time.Time{}
		case r.Status != run.RunRunning:
			return false
		}
		r.HandedOffAt = time.Time{}
		j.again()
		return true
	})
}

// DeadLetter implements run.Batches.
func (s *RunStore) DeadLetter(
	ctx context.Context, id string, attempt int, reason string, stale time.Duration, a run.Audit,
) (bool, error) {
	return s.changeBatch(ctx, "inmem: dead letter", id, a, func(j *storedBatch) bool {
		if j.run.Status == run.RunPurged || j.run.SysName != s.sysName || !j.Status.Open() ||
			j.Attempt != attempt || j.Status == run.Processing && !s.silent(j.Owner, j.HeartbeatAt, stale) {
			return false
		}
		s.giveUp(j, reason)
		return true
	})
}

// changeBatch changes a batch that is there.
func (s *RunStore) changeBatch(
	ctx context.Context, op, id string, a run.Audit, change func(*storedBatch) bool,
) (bool, error) {
	return s.changed(ctx, op, a, func() bool {
		j := s.batchOf[id]
		return j != nil && change(j)
	})
}

// changed makes a change with its entry, or none of both.
func (s *RunStore) changed(ctx context.Context, op string, a run.Audit, change func() bool) (bool, error) {
	a, err := a.Normalize()
	if err != nil {
		return false, err
	}
	if err := ended(ctx, op); err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !change() {
		return false, nil
	}
	s.note(a)
	return true, nil
}

// Write implements run.Batches.
func (s *RunStore) Write(ctx context.Context, a run.Audit) error {
	_, err := s.changed(ctx, "inmem: write audit", a, func() bool { return true })
	return err
}
