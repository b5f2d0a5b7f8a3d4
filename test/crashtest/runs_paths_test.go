package crashtest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/run"
)

// The ways through runs. CommitResults is switched off in all of them.

func runPaths() []*path {
	return []*path{
		handOffPath(), workerPath(), takeOverPath(),
		deferralPath(), deadLetterPath(), leftBehindPath(), cancelPath(), replayPath(), reapplyPath(), reconcilePath(),
	}
}

const theRun = "run-1"

// runPath is a path of runs: one process works until nothing is left to do.
func runPath(name string, r *runsPath, lines []int64, seed func(w *world)) *path {
	return &path{name: name, lines: lines, seed: seed, runs: r, act: func(w *world, i *instance) { w.runs.pump(i) }}
}

// request completes the row of a run that an operator asks for.
func request(r run.Run, f run.Filter) run.Run {
	filter, err := json.Marshal(f)
	if err != nil {
		panic(err)
	}
	r.SysName, r.Filter, r.RequestedBy, r.Why = sysName, filter, "operator", "a test"
	return r
}

// started is the wish for a run. Asked for again it is one run: its id is the operator's.
func started(r run.Run, f run.Filter) wish {
	r = request(r, f)
	return wish{
		what: "start " + r.ID,
		due:  func(*runs) bool { return true },
		done: func(rs *runs) bool { return rs.row(r.ID).ID != "" },
		do: func(ctx context.Context, _ *runs, i *instance) {
			if i.store().StartRun(ctx, r, audit(run.CodeRunStart, r.ID, "")) == nil {
				i.notify(ctx, r)
			}
		},
	}
}

// executed is the wish for a run that the operator's process executes. It is asked for until the run has ended.
func executed(r run.Run, f run.Filter) wish {
	r = request(r, f)
	return wish{
		what: "execute " + r.ID,
		due:  func(*runs) bool { return true },
		done: func(rs *runs) bool { row := rs.row(r.ID); return row.ID != "" && row.Status != run.RunRunning },
		do: func(ctx context.Context, rs *runs, i *instance) {
			if rs.row(r.ID).ID != "" || i.store().StartRun(ctx, r, audit(run.CodeRunStart, r.ID, "")) == nil {
				_, _ = i.runs.executor.Execute(ctx, r.ID) // asked for again until it has ended
			}
		},
	}
}

// notify sends the message of a run. One that cannot be sent is the timer's to send.
func (i *instance) notify(ctx context.Context, r run.Run) {
	sender{i, i.w.runs.runQ}.Send(ctx, []run.Outgoing{run.RunPayload(r).Outgoing(0)})
}

func audit(code, id, batch string) run.Audit {
	return run.Audit{Action: code, Level: run.LevelInfo, By: "operator", Why: "a test", Run: id, Batch: batch}
}

// good puts good documents, one line each, and answers their ids.
func (w *world) good(first int64, n int) []string {
	var ids []string
	for k := range n {
		id := at(int(first%100)%60+k, "good")
		w.put(want{id: id, json: doc(id, first+int64(k), fmt.Sprint("good ", k), ""), end: invoice.Committed})
		ids = append(ids, id)
	}
	w.shown()
	return ids
}

func linesOf(first int64, n int) []int64 {
	var lines []int64
	for k := range n {
		lines = append(lines, first+int64(k))
	}
	return lines
}

// committed is what a run of good documents comes to.
func committed(first int64, n int) map[string]invoice.Outcome {
	outcomes := map[string]invoice.Outcome{}
	for k := range n {
		outcomes[at(int(first%100)%60+k, "good")] = invoice.OutcomeApplied
	}
	return outcomes
}

// handOffPath is a drain from its start to its end. It has pages that are no chunks, and chunks that are no batches.
func handOffPath() *path {
	r := &runsPath{
		batch: 2, chunk: 3, page: 2,
		wishes: []wish{started(run.Run{ID: theRun, Kind: run.Drain}, run.Filter{})},
		want:   map[string]map[string]invoice.Outcome{theRun: committed(701, 5)},
	}
	return runPath("hand-off", r, linesOf(701, 5), func(w *world) { w.good(701, 5) })
}

// mixed are the documents of a batch that has everything.
func mixed(w *world) (ids []string, outcomes map[string]invoice.Outcome) {
	changed, newer := at(7, "changed"), at(3, "newer")
	later := fmt.Sprintf(`"status":"retry_scheduled","retry_count":3,"retry_after":%d`,
		begins().Add(3*time.Hour).Unix())
	outcomes = map[string]invoice.Outcome{at(30, "gone"): invoice.OutcomeGone}
	for _, d := range []struct {
		want
		outcome invoice.Outcome
	}{
		{
			want{
				id: at(1, "new"), json: doc(at(1, "new"), 711, "new", "", 712), end: invoice.Committed,
			}, invoice.OutcomeApplied,
		},
		{
			want{id: at(2, "older"), json: doc(at(2, "older"), 713, "older", ""), end: invoice.Committed},
			invoice.OutcomeSuperseded,
		},
		{
			want{
				id:   newer,
				json: doc(newer, 714, "newer", `"status":"committed","outcome":"applied"`, 713), end: invoice.Committed,
			}, invoice.OutcomeSkipped,
		},
		{
			want{id: at(4, "refused"), json: doc(at(4, "refused"), 715, refused, ""), code: refusedCode},
			invoice.OutcomeRetryScheduled,
		},
		{want{id: changed, json: doc(changed, 716, "before", ""), end: invoice.Committed}, invoice.OutcomeApplied},
		{want{id: at(9, "later"), json: doc(at(9, "later"), 718, "later", later), spent: 3}, invoice.OutcomeSkipped},
	} {
		if w != nil {
			w.put(d.want)
			if d.id == newer {
				w.wroteBefore(d.want)
			}
		}
		outcomes[d.id] = d.outcome
	}
	for id := range outcomes {
		ids = append(ids, id)
	}
	return ids, outcomes
}

// seedMixed puts them; one changes while it is written.
func seedMixed(w *world) {
	mixed(w)
	w.shown()
	changed, happened := at(7, "changed"), false
	w.onApplied = func(items []commit.Item) {
		for _, it := range items {
			if it.DocumentID == changed && !happened {
				happened = true
				w.advance(2 * time.Second)
				w.put(want{id: changed, json: doc(changed, 716, "after", ""), end: invoice.Committed})
			}
		}
	}
}

// must requires that a change to the run store before the path succeeds.
func (r *runs) must(err error) {
	if err != nil {
		panic(err)
	}
	r.watch("seed")
}

// began has a manager that is gone by now hand off all of a run: it says so, or died before it could.
func (r *runs) began(id string, handedOff bool, w run.Worker, batches ...[]string) []run.Batch {
	stored := r.beganAt(id, w, run.Filter{IDs: slices.Concat(batches...)}, `{"done":true}`, batches...)
	if handedOff {
		l := run.RunLease{Run: id, Owner: w.ID, Epoch: r.row(id).Epoch}
		r.must(r.store.EndHandOff(context.Background(), l, audit(run.CodeRunHandedOff, id, "")))
	}
	return stored
}

// beganAt has a manager claim a run and add batches, up to a watermark.
func (r *runs) beganAt(id string, w run.Worker, f run.Filter, watermark string, batches ...[]string) []run.Batch {
	ctx := context.Background()
	r.asks(id, f)
	row, ok, err := r.store.ClaimRun(ctx, id, 0, -1, w, managerStale)
	if err != nil || !ok {
		panic(fmt.Sprint("the run was not claimed: ", err))
	}
	chunk := run.Chunk{Batches: batches, First: 1, Watermark: watermark}
	var audits []run.Audit
	for n := range batches {
		audits = append(audits, audit(run.CodeBatchCreated, id, run.BatchID(sysName, id, n+1)))
	}
	r.must(r.store.AddChunk(ctx, run.RunLease{Run: id, Owner: w.ID, Epoch: row.Epoch}, chunk, audits...))
	stored, err := r.store.ListBatches(ctx, id, "", "", 100)
	r.must(err)
	return stored
}

// asks has the operator ask for a drain, whose message is not sent.
func (r *runs) asks(id string, f run.Filter) run.Run {
	filter, err := json.Marshal(f)
	r.must(err)
	row := run.Run{ID: id, SysName: sysName, Kind: run.Drain, Filter: filter, RequestedBy: "operator", Why: "a test"}
	r.must(r.store.StartRun(context.Background(), row, audit(run.CodeRunStart, id, "")))
	return row
}

// sent sends the messages of batches, confirmed.
func (r *runs) sent(stored ...run.Batch) {
	for _, j := range stored {
		r.must(r.batchQ.q.Send(context.Background(), []run.Outgoing{batchPayload(j).Outgoing(0)})[0])
	}
	_, err := r.store.MarkQueued(context.Background(), run.RunLease{}, stored)
	r.must(err)
}

func batchPayload(j run.Batch) run.Payload {
	return run.Payload{Kind: run.BatchMessage, SysName: sysName, RunID: j.Run, BatchID: j.ID, BatchAttempt: j.Attempt}
}

// claim has a worker claim a batch before the path begins.
func (r *runs) claim(j run.Batch, worker string) run.BatchLease {
	c, err := r.store.ClaimBatch(context.Background(), j.ID, run.Ticket{}, run.Worker{ID: worker, Instance: "gone"},
		workerStale, audit(run.CodeBatchStart, j.Run, j.ID))
	r.must(err)
	if c.Answer != run.Taken {
		panic("the batch was not claimed: " + string(c.Answer))
	}
	return c.Lease
}

// workerPath is one batch with everything that may be in it.
func workerPath() *path {
	_, outcomes := mixed(nil)
	r := &runsPath{
		batch: 10, chunk: 10, page: 10,
		want: map[string]map[string]invoice.Outcome{theRun: outcomes},
		seed: func(r *runs) {
			r.sent(r.began(theRun, true, run.Worker{ID: "manager-gone"}, sortedKeys(outcomes))...)
		},
	}
	return runPath("worker", r, []int64{711, 712, 713, 714, 715, 716, 718}, seedMixed)
}

// takeOverPath is a batch whose worker sent its last heartbeat seven minutes ago, with the outcome of one of three
// documents; its message comes again.
func takeOverPath() *path {
	r := &runsPath{
		batch: 3, chunk: 3, page: 3,
		want: map[string]map[string]invoice.Outcome{theRun: committed(721, 3)},
		seed: func(r *runs) {
			ids := r.w.good(721, 3)
			stored := r.began(theRun, true, run.Worker{ID: "manager-gone"}, ids)
			r.sent(stored...)
			gone := r.claim(stored[0], "worker-gone")
			i := r.w.start()
			_, err := i.commit.Run(context.Background(),
				commit.Delivery{Documents: r.w.raw(ids[:2]), Received: r.w.now(), Purpose: commit.ForRun})
			r.must(err)
			r.must(
				r.store.SaveOutcomes(context.Background(), gone,
					[]run.ItemOutcome{{Document: ids[0], Outcome: invoice.OutcomeApplied}}, nil))
			r.w.advance(7 * time.Minute)
			r.onTakeOver = func() { r.late(gone, ids) }
		},
	}
	r.want[theRun][at(22, "good")] = invoice.OutcomeApplied // it was written, and not recorded
	return runPath("take-over", r, linesOf(721, 3), func(*world) {})
}

// late is the former owner of a batch after a take-over: none of its calls may change anything.
func (r *runs) late(h run.BatchLease, ids []string) {
	ctx := context.Background()
	_, beat := r.store.BeatBatch(ctx, h)
	_, finish := r.store.FinishBatch(ctx, h, func(run.BatchStats) run.Audit {
		return audit(run.CodeBatchDone, h.Run, h.Batch)
	})
	for _, err := range []error{
		beat, finish,
		r.store.SaveOutcomes(ctx, h, []run.ItemOutcome{{Document: ids[2], Outcome: invoice.OutcomeFailed}}, nil),
		r.store.ReleaseBatch(ctx, h, audit(run.CodeBatchReleased, h.Run, h.Batch)),
		r.store.FailBatch(ctx, h, "late", audit(run.CodeBatchFail, h.Run, h.Batch)),
	} {
		if !fault.Has(err, fault.Changed) {
			r.w.violated("runs", "a late worker was answered %v", err)
		}
	}
	r.watch("the late worker")
}

// raw are documents as they are now.
func (w *world) raw(ids []string) (raws []json.RawMessage) {
	for _, id := range ids {
		_, raw := w.document(id)
		raws = append(raws, raw)
	}
	return raws
}

// deferralPath is a batch and a run whose messages come while the breaker is open.
func deferralPath() *path {
	r := &runsPath{
		batch: 2, chunk: 2, page: 2,
		want: map[string]map[string]invoice.Outcome{theRun: committed(731, 2), "run-2": committed(735, 2)},
		seed: func(r *runs) {
			r.sent(r.began(theRun, true, run.Worker{ID: "manager-gone"}, r.w.good(731, 2))...)
			second := r.asks("run-2", run.Filter{IDs: r.w.good(735, 2)})
			r.must(r.runQ.q.Send(context.Background(), []run.Outgoing{run.RunPayload(second).Outgoing(0)})[0])
			r.w.opened(fault.Infrastructure, begins().Add(50*time.Second))
		},
	}
	return runPath("deferral", r, append(linesOf(731, 2), linesOf(735, 2)...), func(*world) {})
}

// deadLetterPath has unusable messages: dead letters of a batch, of a run, of a finished batch, and one that no batch
// or run matches. The operator wants the batch again, and the run to go on.
func deadLetterPath() *path {
	failed := func(id string, n int) func(r *runs) bool {
		return func(r *runs) bool {
			return r.seenBatches[run.BatchID(sysName, id, n)].Status == run.Failed
		}
	}
	resumed := func(r *runs) bool { return r.row("run-2").Epoch > 0 }
	r := &runsPath{
		batch: 2, chunk: 2, page: 2, deadLetters: 4,
		want: map[string]map[string]invoice.Outcome{theRun: committed(741, 2), "run-2": committed(745, 1)},
		seed: func(r *runs) {
			ctx := context.Background()
			ids := r.w.good(741, 2)
			stored := r.began(theRun, true, run.Worker{ID: "manager-gone"}, ids[:1], ids[1:])
			_, err := r.store.MarkQueued(ctx, run.RunLease{}, stored)
			r.must(err)
			done := r.claim(stored[1], "worker-gone")
			i := r.w.start()
			_, err = i.commit.Run(ctx,
				commit.Delivery{Documents: r.w.raw(ids[1:]), Received: r.w.now(), Purpose: commit.ForRun})
			r.must(err)
			r.must(
				r.store.SaveOutcomes(ctx, done,
					[]run.ItemOutcome{{Document: ids[1], Outcome: invoice.OutcomeApplied}}, nil))
			_, err = r.store.FinishBatch(ctx, done, func(run.BatchStats) run.Audit {
				return audit(run.CodeBatchDone, theRun, done.Batch)
			})
			r.must(err)
			second := r.asks("run-2", run.Filter{IDs: r.w.good(745, 1)})
			for _, j := range stored {
				m := batchPayload(j).Outgoing(0)
				r.batchQ.putAside(run.Incoming{ID: m.ID, Body: m.Body, EnqueuedAt: begins()},
					"MaxDeliveryCountExceeded")
			}
			m := run.RunPayload(second).Outgoing(0)
			r.runQ.putAside(run.Incoming{ID: m.ID, Body: m.Body, EnqueuedAt: begins()}, "MaxDeliveryCountExceeded")
			r.must(r.batchQ.q.Send(ctx, []run.Outgoing{{ID: "none", Body: []byte("this is no message")}})[0])
		},
	}
	r.wishes = []wish{
		{
			what: "requeue batch 1", due: failed(theRun, 1),
			done: func(r *runs) bool { return r.seenBatches[run.BatchID(sysName, theRun, 1)].Attempt > 0 },
			do: func(ctx context.Context, _ *runs, i *instance) {
				batch := run.BatchID(sysName, theRun, 1)
				// asked for again until it is done
				_, _ = i.store().RequeueBatch(ctx, batch, audit(run.CodeBatchRequeue, theRun, batch))
			},
		},
		resumption("run-2", resumed),
	}
	return runPath("dead-letters", r, append(linesOf(741, 2), 745), func(*world) {})
}

// resumption is the wish that a run which was cancelled or failed goes on.
func resumption(id string, done func(r *runs) bool) wish {
	return wish{
		what: "resume " + id, done: done,
		due: func(r *runs) bool { s := r.row(id).Status; return s == run.RunFailed || s == run.RunCancelled },
		do: func(ctx context.Context, r *runs, i *instance) {
			if ok, err := i.store().ResumeRun(ctx, id, audit(run.CodeRunResume, id, "")); ok && err == nil {
				i.notify(ctx, r.row(id))
			}
		},
	}
}

// leftBehindPath is everything that the timer finds: batches whose message was never sent, was refused, is lost; whose
// worker died, or let go and nobody came; a run whose manager died, one that never had one, and one that nobody ended.
// The documents of batches whose message is lost are committed by the timer before their batches are found.
func leftBehindPath() *path {
	first, second := committed(751, 4), committed(761, 1)
	first[at(53, "good")], second[at(1, "good")] = invoice.OutcomeSkipped, invoice.OutcomeSkipped
	r := &runsPath{
		batch: 1, chunk: 1, page: 1,
		want: map[string]map[string]invoice.Outcome{theRun: first, "run-2": second, "run-3": committed(771, 1)},
		seed: func(r *runs) {
			ctx := context.Background()
			r.w.advance(-45 * time.Minute)
			stored := r.began(theRun, false, run.Worker{ID: "manager-gone"}, []string{at(51, "good")},
				[]string{at(52, "good")}, []string{at(53, "good")}, []string{at(54, "good")})
			_, _, err := r.store.MarkUnsent(ctx, stored[1:2], "refused", false, nil)
			r.must(err)
			_, err = r.store.MarkQueued(ctx, run.RunLease{}, stored[2:])
			r.must(err)
			r.claim(stored[3], "worker-gone")
			lost := r.began("run-2", true, run.Worker{ID: "manager-2"}, []string{at(1, "good")})
			_, err = r.store.MarkQueued(ctx, run.RunLease{}, lost)
			r.must(err)
			r.asks("run-3", run.Filter{IDs: []string{at(11, "good")}})
			r.w.advance(45 * time.Minute)
			r.w.good(751, 4)
			r.w.good(761, 1)
			r.w.good(771, 1)
		},
	}
	return runPath("left-behind", r, append(linesOf(751, 4), 761, 771), func(*world) {})
}

// cancelPath is a run half of which is handed off; it waits for its rate, is cancelled after its first batch, and
// resumed.
func cancelPath() *path {
	r := &runsPath{
		batch: 1, chunk: 1, page: 2,
		want: map[string]map[string]invoice.Outcome{theRun: committed(781, 4)},
		seed: func(r *runs) {
			ids := r.w.good(781, 4)
			manager := run.Worker{ID: "manager-gone"}
			r.sent(r.beganAt(theRun, manager, run.Filter{IDs: ids}, `{"at":2}`, ids[:1], ids[1:2])...)
			row := r.row(theRun)
			r.must(
				r.store.ReleaseRun(context.Background(),
					run.RunLease{Run: theRun, Owner: manager.ID, Epoch: row.Epoch}))
			r.must(r.runQ.q.Send(context.Background(), []run.Outgoing{run.RunPayload(row).Outgoing(time.Minute)})[0])
		},
	}
	r.wishes = []wish{
		{
			what: "cancel " + theRun,
			due:  func(r *runs) bool { return len(r.count.completions) > 0 },
			done: func(r *runs) bool { return r.row(theRun).Cancel || r.row(theRun).Status != run.RunRunning },
			do: func(ctx context.Context, _ *runs, i *instance) {
				// asked for again until it is done
				_, _ = i.store().CancelRun(ctx, theRun, audit(run.CodeRunCancel, theRun, ""))
			},
		},
		resumption(theRun, func(r *runs) bool {
			row := r.row(theRun)
			return !row.Cancel && row.Status.Requeueable()
		}),
	}
	return runPath("cancel", r, linesOf(781, 4), func(*world) {})
}

// replayPath is a replay of named documents, which failed or wait for a retry, by the operator's process.
func replayPath() *path {
	failed := `"status":"failed","retry_count":5,"failed_at":"2025-12-18 08:00:00.000000-06:00","error":"x"`
	later := fmt.Sprintf(`"status":"retry_scheduled","retry_count":3,"retry_after":%d`,
		begins().Add(3*time.Hour).Unix())
	documents := []struct {
		want
		outcome invoice.Outcome
	}{
		{
			want{
				id: at(31, "mended"), json: doc(at(31, "mended"), 401, "mended", failed, 402), end: invoice.Committed,
			}, invoice.OutcomeApplied,
		},
		{
			want{id: at(32, "refused"), json: doc(at(32, "refused"), 410, refused, failed), code: refusedCode},
			invoice.OutcomeRetryScheduled,
		},
		{
			want{id: at(33, "older"), json: doc(at(33, "older"), 420, "older", failed), end: invoice.Committed},
			invoice.OutcomeSuperseded,
		},
		{
			want{
				id: at(34, "unreadable"), json: doc(at(34, "unreadable"), 430, "UNREADABLE", failed),
				code: unreadableCode, end: invoice.Failed,
			}, invoice.OutcomeRetryScheduled,
		},
		{
			want{
				id: at(35, "not due"), json: doc(at(35, "not due"), 440, "not due", later),
				spent: 3, end: invoice.Committed,
			}, invoice.OutcomeApplied,
		},
	}
	outcomes := map[string]invoice.Outcome{}
	for _, d := range documents {
		outcomes[d.id] = d.outcome
	}
	r := &runsPath{
		batch: 2, chunk: 3, page: 2, want: map[string]map[string]invoice.Outcome{theRun: outcomes},
		wishes: []wish{executed(run.Run{ID: theRun, Kind: run.Replay}, run.Filter{IDs: sortedKeys(outcomes)})},
	}
	p := runPath("replay", r, []int64{401, 402, 410, 420, 430, 440}, func(w *world) {
		w.advance(-2 * time.Hour)
		newest := want{
			id:   at(59, "newest"),
			json: doc(at(59, "newest"), 420, "newest", `"status":"committed","outcome":"applied"`),
			end:  invoice.Committed,
		}
		w.put(newest)
		w.wroteBefore(newest)
		for _, d := range documents {
			w.put(d.want)
			if strings.Contains(string(d.json), `"failed"`) {
				w.wroteBefore(d.want)
				w.evidenceBefore(d.want)
			}
		}
		w.advance(2 * time.Hour)
		w.shown()
	})
	p.operator = true
	return p
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// reapplyPath brings committed and failed documents to a database that lost what was written last, by the operator's
// process.
func reapplyPath() *path {
	const written = `"status":"committed","outcome":"applied"`
	failed := `"status":"failed","retry_count":5,"failed_at":"2025-12-18 08:00:00.000000-06:00","error":"x"`
	documents := []struct {
		want
		outcome invoice.Outcome
	}{
		{
			want{id: at(36, "kept"), json: doc(at(36, "kept"), 501, "kept", written), end: invoice.Committed},
			invoice.OutcomeUnchanged,
		},
		{
			want{
				id: at(37, "lost"), json: doc(at(37, "lost"), 502, "lost", written, 503), end: invoice.Committed,
			}, invoice.OutcomeApplied,
		},
		{
			want{id: at(35, "older"), json: doc(at(35, "older"), 501, "older", written), end: invoice.Committed},
			invoice.OutcomeSuperseded,
		},
		{
			want{
				id: at(39, "mended"), json: doc(at(39, "mended"), 510, "mended", failed), end: invoice.Committed,
			}, invoice.OutcomeApplied,
		},
		{
			want{id: at(40, "refused"), json: doc(at(40, "refused"), 520, refused, failed), code: refusedCode},
			invoice.OutcomeRetryScheduled,
		},
	}
	outcomes := map[string]invoice.Outcome{}
	for _, d := range documents {
		outcomes[d.id] = d.outcome
	}
	r := &runsPath{
		batch: 2, chunk: 3, page: 2, want: map[string]map[string]invoice.Outcome{theRun: outcomes},
		wishes: []wish{executed(run.Run{ID: theRun, Kind: run.Reapply}, run.Filter{IDs: sortedKeys(outcomes)})},
	}
	p := runPath("reapply", r, []int64{501, 502, 503, 510, 520}, func(w *world) {
		w.advance(-2 * time.Hour)
		for _, d := range documents {
			w.put(d.want)
			if d.outcome == invoice.OutcomeUnchanged {
				w.wroteBefore(d.want)
			}
			if strings.Contains(string(d.json), `"failed"`) {
				w.evidenceBefore(d.want)
			}
		}
		w.advance(2 * time.Hour)
		w.shown()
	})
	p.operator = true
	return p
}
