package run

import (
	"context"
	"slices"
	"time"

	"sqlwriter/internal/events"
	"sqlwriter/internal/fault"
)

// pollEvery is how often a manager at its limit of outstanding batches asks again.
const pollEvery = 2 * time.Second

// resendEvery is the shortest interval between two tries to send refused messages again.
const resendEvery = 15 * pollEvery

// Manager divides runs into batches and sends their messages: the function BatchManager. It is safe for concurrent use.
type Manager struct {
	base
	rejecter rejecter
}

// NewManager makes a Manager.
func NewManager(p Ports, o Options) *Manager {
	b := base{p, o.withDefaults()}
	return &Manager{b, rejecter{b, "runs"}}
}

// Receive claims a run and hands off its batches, until all are handed off, the invocation's time is nearly over, or a
// dependency fails. In the last two cases a deferred message continues the run. Errors as Workers.Receive.
func (m *Manager) Receive(ctx context.Context, in Incoming) (Handled, error) {
	p, err := ReadPayload(in.Body, RunMessage)
	if err == nil {
		err = m.checkEnvironment(p)
	}
	if err != nil {
		return m.rejecter.reject(ctx, in, p, err)
	}
	ctx = events.With(ctx, events.Fields{Run: p.RunID})
	row, there, err := m.row(ctx, p.RunID)
	switch {
	case err != nil:
		return m.deferOr(ctx, m.p.RunQueue, p, err)
	case !there:
		return m.rejecter.reject(ctx, in, p,
			invalidMessage("no_run", "run_id: expected a run in the table run, found none"))
	case row.SysName != m.o.SysName:
		return m.rejecter.reject(ctx, in, p,
			invalidMessage(codeEnvironment, "run_id: expected a run of %q, found one of %q", m.o.SysName,
				fault.Truncate(row.SysName, fault.MaxForeign)))
	case row.Status != RunRunning || !row.HandedOffAt.IsZero() || outdated(row, p):
		return Handled{
			Did: "skipped", Run: p.RunID, Reason: "the run has ended, is handed off, or a later message continues it",
		}, nil
	case row.Cancel:
		m.completeRun(ctx, p.RunID)
		return Handled{Did: "skipped", Run: p.RunID, Reason: "the run is to end"}, nil
	case row.NextIn > time.Minute:
		return m.deferMessage(ctx, m.p.RunQueue, p, min(maxDeferral, row.NextIn), "its rate")
	}
	return m.claim(ctx, p, row)
}

// outdated reports whether a later message of the run exists. An owner claimed with a message of the epoch before its
// own.
func outdated(row Run, p Payload) bool {
	return p.Epoch < row.Epoch && (row.Owner == "" || p.Epoch < row.Epoch-1)
}

func (m *Manager) claim(ctx context.Context, p Payload, row Run) (Handled, error) {
	h, err := m.claimRun(ctx, row, p.Epoch)
	if err != nil {
		return m.deferOr(ctx, m.p.RunQueue, p, err)
	}
	if h == nil {
		return m.deferMessage(ctx, m.p.RunQueue, p, busyWait, "another manager has it")
	}
	if err := h.suspect(); err != nil {
		return h.end(ctx, p, ending{}, err)
	}
	beating, stop := h.beat(ctx)
	next, err := h.safely(beating)
	stop()
	h.tell(ctx, err)
	return h.end(ctx, p, next, err)
}

// claimRun claims a run that is not handed off; nil when another manager has it. shown is the epoch of its owner that
// released it.
func (b base) claimRun(ctx context.Context, row Run, shown int) (*handOff, error) {
	me := b.workerRow("manager", row.ID)
	var claimed Run
	mine := false
	err := b.withStore(ctx, func(ctx context.Context) (err error) {
		claimed, mine, err = b.p.Store.ClaimRun(ctx, row.ID, row.Epoch, shown, me, b.staleAfter(ctx, ManagerStale))
		return err
	})
	if err != nil || !mine {
		return nil, err
	}
	return &handOff{base: b, run: claimed, lease: RunLease{Run: row.ID, Owner: me.ID, Epoch: claimed.Epoch}}, nil
}

// The sizes of a hand-off.
const (
	// BatchSize is the most documents of a batch.
	BatchSize = 100
	// checkpointSize is how many documents get their rows in one transaction, together with the watermark.
	checkpointSize = 1000
)

// share returns a run's part of the room for batches, so that a long run leaves some to the others.
func share(room, runs int) int {
	if room <= 0 {
		return 0
	}
	return max(1, room/max(1, runs))
}

// handOff is the hand-off of one run by one manager.
type handOff struct {
	base
	run    Run
	lease  RunLease
	source *source
	// resendAt is the earliest time to send refused messages again.
	resendAt time.Time
	// The metrics of a hand-off (docs/requirements.md R71).
	documents, batches, sent, unsent int
	inserting, sending, updating     time.Duration
}

// suspect returns an error when the run itself seems to end its managers.
func (h *handOff) suspect() error {
	if h.run.LostManagers < maxLostOwners {
		return nil
	}
	return fault.New(fault.Internal, "run: manager", "lost_managers",
		"%d managers in a row were lost before they handed off anything more: see in BatchManager's log what ended them, "+
			"fix it and `run resume` this run; if it was memory, start others with a lower --limit instead",
		h.run.LostManagers)
}

// beat starts heartbeats. The context ends when another manager has the run.
func (h *handOff) beat(ctx context.Context) (context.Context, func()) {
	return h.heartbeat(ctx, func(ctx context.Context) error {
		_, err := h.p.Store.BeatRun(ctx, h.lease)
		return err
	})
}

// safely turns a panic of work into an error: the heartbeat must end with the work, and the run must fail.
func (h *handOff) safely(ctx context.Context) (next ending, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = h.log(ctx).Panic("run: hand off", events.Fields{}, r)
		}
	}()
	return h.work(ctx)
}

// ending says why a hand-off ended early.
type ending struct {
	why string
	// resumeIn delays the message that continues the run; negative when none does.
	resumeIn time.Duration
}

// work hands off until the end, a checkpoint at a time (docs/requirements.md R68): the rows of up to ChunkSize
// documents with the watermark, then their messages, then queued.
func (h *handOff) work(ctx context.Context) (next ending, err error) {
	if h.source, err = newSource(h.base, h.run); err != nil {
		return next, err
	}
	for {
		if h.nearDeadline(ctx) {
			return ending{"the invocation's time is over", 0}, leaseError(ctx, nil)
		}
		cancel, open, all, err := h.state(ctx)
		switch {
		case err != nil:
			return next, leaseError(ctx, err)
		case cancel:
			return ending{"the run is to end", -1}, nil
		}
		room := share(h.o.MaxOutstanding-all.Busy-all.Retry, all.HandingOff)
		more := open[PendingQueue]*h.o.BatchSize < h.o.ChunkSize && !h.exhausted()
		switch {
		case !more && open[PendingQueue]+open[PendingRetry] == 0:
			return ending{"", -1}, h.finish(ctx)
		case open[PendingRetry] > 0 && all.Busy < h.o.MaxOutstanding && !h.o.Now().Before(h.resendAt):
			err = h.resend(ctx, share(h.o.MaxOutstanding-all.Busy, all.HandingOff))
		case open[PendingQueue] > 0 && room > 0:
			err = h.sendUnsent(ctx, room)
		case room <= 0:
			err = h.o.Wait(ctx, pollEvery)
		case more && h.run.NextIn > min(time.Minute, h.timeLeft(ctx)):
			return ending{"its rate", min(maxDeferral, h.run.NextIn)}, nil
		case more && h.run.NextIn > 0:
			err = h.o.Wait(ctx, h.run.NextIn)
			h.run.NextIn = 0
		case more:
			err = h.addRows(ctx)
		default: // the timer sends what the queue did not take
			return ending{"", -1}, h.finish(ctx)
		}
		if err != nil {
			return next, leaseError(ctx, err)
		}
	}
}

// state asks whether the run is to end, and counts the open batches of this run and of all runs.
func (h *handOff) state(ctx context.Context) (cancel bool, open map[BatchStatus]int, all OnTheWay, err error) {
	err = h.withStore(ctx, func(ctx context.Context) (err error) {
		cancel, err = h.p.Store.BeatRun(ctx, h.lease)
		return err
	})
	if err != nil {
		return false, nil, all, err
	}
	err = h.withStore(ctx, func(ctx context.Context) (err error) {
		if open, err = h.p.Store.BatchCounts(ctx, h.run.ID); err != nil {
			return err
		}
		all, err = h.p.Store.OnTheWay(ctx, h.o.SysName)
		return err
	})
	return cancel, open, all, err
}

// exhausted reports whether the run has all its documents.
func (h *handOff) exhausted() bool {
	return h.source.watermark.Done || (h.run.Limit > 0 && h.run.Documents >= h.run.Limit)
}

// addRows stores the next documents as batches, with the watermark in the same transaction.
func (h *handOff) addRows(ctx context.Context) error {
	size, most := h.o.BatchSize, h.o.ChunkSize
	if h.run.Rate > 0 {
		size = min(size, max(1, h.run.Rate/6)) // ten seconds' worth, to avoid bursts
		most = size
	}
	if h.run.Limit > 0 {
		most = min(most, h.run.Limit-h.run.Documents)
	}
	before := h.source.watermark
	ids, mark, err := h.source.take(ctx, most)
	if err != nil {
		return err
	}
	if len(ids) == 0 && mark == before {
		return nil
	}
	chunk := Chunk{First: h.run.Batches + 1, Watermark: mark.String()}
	if h.run.Rate > 0 {
		chunk.Wait = time.Duration(len(ids)) * time.Minute / time.Duration(h.run.Rate)
	}
	var batches []Batch
	var audits []Audit
	for part := range slices.Chunk(ids, size) {
		chunk.Batches = append(chunk.Batches, part)
		batch := Batch{
			ID: BatchID(h.o.SysName, h.run.ID, chunk.First+len(batches)), Run: h.run.ID,
			Number: chunk.First + len(batches), Attempt: FirstAttempt,
		}
		batches = append(batches, batch)
		audits = append(audits, Audit{
			Action: CodeBatchCreated, Level: LevelInfo, By: h.lease.Owner, Why: "created",
			Run: h.run.ID, Batch: batch.ID,
			Detail: detail(map[string]any{"number": batch.Number, "documents": len(part)}),
		})
	}
	begin := h.o.Now()
	err = h.withStore(ctx, func(ctx context.Context) error {
		return h.p.Store.AddChunk(ctx, h.lease, chunk, audits...)
	})
	h.inserting += h.o.Now().Sub(begin)
	if err != nil {
		return err
	}
	h.run.Batches, h.run.Documents, h.run.NextIn = h.run.Batches+len(batches), h.run.Documents+len(ids), chunk.Wait
	h.documents, h.batches = h.documents+len(ids), h.batches+len(batches)
	return nil
}

// sendUnsent sends first messages.
func (h *handOff) sendUnsent(ctx context.Context, room int) error {
	var batches []Batch
	err := h.withStore(ctx, func(ctx context.Context) (err error) {
		batches, err = h.p.Store.Unsent(ctx, h.run.ID, min(room, BatchSize))
		return err
	})
	if err != nil || len(batches) == 0 {
		return err
	}
	return h.deliver(ctx, batches)
}

// resend sends the messages of pending_retry batches: refused or requeued ones. After the hand-off Recovery sends them.
func (h *handOff) resend(ctx context.Context, room int) error {
	var batches []Batch
	err := h.withStore(ctx, func(ctx context.Context) (err error) {
		batches, err = h.p.Store.ListBatches(ctx, h.run.ID, PendingRetry, "", min(room, maxSend))
		return err
	})
	if err != nil || len(batches) == 0 {
		return err
	}
	return h.deliver(ctx, batches)
}

// deliver sends messages. An unknown result of a sending counts as not sent, because workers are idempotent.
func (h *handOff) deliver(ctx context.Context, batches []Batch) error {
	d, err := h.base.deliver(ctx, h.lease, batches)
	if d.unsent > 0 {
		h.resendAt = h.o.Now().Add(resendEvery)
	}
	h.sent, h.unsent = h.sent+d.sent, h.unsent+d.unsent
	h.sending, h.updating = h.sending+d.sending, h.updating+d.updating
	return err
}

// finish records that all batches are handed off.
func (h *handOff) finish(ctx context.Context) error {
	return h.withStoreAlways(ctx, func(ctx context.Context) error {
		return h.p.Store.EndHandOff(ctx, h.lease, Audit{
			Action: CodeRunHandedOff, Level: LevelInfo, By: h.lease.Owner,
			Why: "all its batches were handed off", Run: h.run.ID,
			Detail: detail(map[string]any{"documents": h.run.Documents, "batches": h.run.Batches}),
		})
	})
}

// tell logs the hand-off (docs/requirements.md R71).
func (h *handOff) tell(ctx context.Context, err error) {
	is := events.HandOffDone
	if err != nil {
		is = events.HandOffBroken
	}
	h.log(ctx).Write(is, events.Fields{
		Run: h.run.ID, Documents: h.documents, Batches: h.batches, Sent: h.sent, Unsent: h.unsent,
		InsertMS: h.inserting.Milliseconds(), SendMS: h.sending.Milliseconds(), UpdateMS: h.updating.Milliseconds(),
	}.Of(err))
}

// end releases the run and defers the message that continues it, if one is to.
func (h *handOff) end(ctx context.Context, p Payload, next ending, cause error) (Handled, error) {
	done := Handled{Did: "handed_off", Run: h.run.ID, Reason: next.why, Counts: map[string]int{
		"documents": h.documents, "batches": h.batches, "sent": h.sent, "unsent": h.unsent,
		"insert_ms": int(h.inserting.Milliseconds()), "send_ms": int(h.sending.Milliseconds()),
		"update_ms": int(h.updating.Milliseconds()),
	}}
	switch {
	case takenOver(cause):
		done.Did, done.Reason = "late", "another manager took it over"
		return done, nil
	case cause == nil && next.resumeIn < 0 && next.why == "":
		h.completeRun(ctx, h.run.ID)
		return done, nil
	}
	lost, failed := h.release(ctx, cause)
	p.Epoch = h.lease.Epoch
	switch {
	case lost:
		done.Did, done.Reason = "late", "another manager took it over"
		return done, nil
	case failed != nil:
		done.Did, done.Reason = "failed", errorText(cause)
		return done, failed
	case cause == nil && next.resumeIn < 0:
		h.completeRun(ctx, h.run.ID)
		return done, nil
	case cause != nil:
		return h.continueLater(ctx, p, h.delayFor(cause), errorText(cause), done)
	}
	return h.continueLater(ctx, p, next.resumeIn, next.why, done)
}

// release releases the run. After a failure for good it fails the run, too, and returns the cause. lost: another
// manager has it.
func (h *handOff) release(ctx context.Context, cause error) (lost bool, failed error) {
	err := h.withStoreAlways(context.WithoutCancel(ctx), func(ctx context.Context) error {
		return h.p.Store.ReleaseRun(ctx, h.lease)
	})
	switch {
	case takenOver(err):
		return true, nil
	case cause != nil && !transient(cause) && ctx.Err() == nil:
		return false, h.failRun(ctx, cause)
	}
	return false, nil
}

// failRun fails the run and returns cause. A run left running would look to the repeated message as if another manager
// continued it, and the failure would stay unseen.
func (h *handOff) failRun(ctx context.Context, cause error) error {
	err := h.withStoreAlways(context.WithoutCancel(ctx), func(ctx context.Context) error {
		_, err := h.p.Store.FailRun(ctx, h.run.ID, errorText(cause), h.staleAfter(ctx, ManagerStale), Audit{
			Action: CodeRunFail, Level: LevelError, By: h.lease.Owner, Why: errorText(cause), Run: h.run.ID,
		})
		return err
	})
	if err != nil {
		h.log(ctx).Write(events.RunFailed, events.Fields{Run: h.run.ID}.Of(err))
	}
	return cause
}

func (h *handOff) continueLater(
	ctx context.Context, p Payload, after time.Duration, why string, done Handled,
) (Handled, error) {
	later, err := h.deferMessage(ctx, h.p.RunQueue, p, after, why)
	done.Did, done.Reason = later.Did, later.Reason
	return done, err
}
