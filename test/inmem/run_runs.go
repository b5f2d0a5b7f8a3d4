package inmem

import (
	"context"
	"slices"
	"time"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/run"
)

// StartRun implements run.Runs.
func (s *RunStore) StartRun(ctx context.Context, r run.Run, a run.Audit) error {
	const op = "inmem: start run"
	r, err := r.Normalize()
	if err != nil {
		return err
	}
	if a, err = a.Normalize(); err != nil {
		return err
	}
	if err := ended(ctx, op); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.runOf[r.ID] != nil {
		return fault.New(fault.Internal, op, "run_exists", "there is a run %s already", r.ID)
	}
	stored := &storedRun{items: map[string]*storedItem{}, Run: run.Run{
		ID: r.ID, SysName: r.SysName, Kind: r.Kind, Filter: slices.Clone(r.Filter), Rate: r.Rate, Limit: r.Limit,
		Matched: r.Matched, AtLeast: r.AtLeast, Named: run.Named(r.Filter), RequestedBy: r.RequestedBy, Why: r.Why,
		Status: run.RunRunning, StartedAt: s.at(),
	}}
	s.runs, s.runOf[r.ID] = append(s.runs, stored), stored
	s.note(a)
	return nil
}

// Run implements run.Runs.
func (s *RunStore) Run(ctx context.Context, id string) (run.Run, bool, error) {
	if err := ended(ctx, "inmem: read run"); err != nil {
		return run.Run{}, false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.runOf[id]
	if r == nil {
		return run.Run{}, false, nil
	}
	return s.shown(r), true, nil
}

// ListRuns implements run.Runs.
func (s *RunStore) ListRuns(ctx context.Context, before string, limit int) ([]run.Run, error) {
	if err := ended(ctx, "inmem: list runs"); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []run.Run{}
	from := s.runs
	if before != "" {
		from = s.runs[:max(0, slices.Index(s.runs, s.runOf[before]))]
	}
	for _, r := range latestOf(from, limit, func(r *storedRun) bool { return s.ours(r.SysName) }) {
		list = append(list, s.listed(r))
	}
	return list, nil
}

// Stats implements run.Runs. A run that is not there has none.
func (s *RunStore) Stats(ctx context.Context, id string) (run.Stats, error) {
	if err := ended(ctx, "inmem: run stats"); err != nil {
		return run.Stats{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.runOf[id]
	if r == nil {
		r = &storedRun{}
	}
	return statsOf(r), nil
}

// BatchCounts implements run.Runs.
func (s *RunStore) BatchCounts(ctx context.Context, id string) (map[run.BatchStatus]int, error) {
	stats, err := s.Stats(ctx, id)
	return stats.Batches, err
}

// ClaimRun implements run.Runs.
func (s *RunStore) ClaimRun(
	ctx context.Context, id string, epoch, shown int, w run.Worker, stale time.Duration,
) (run.Run, bool, error) {
	const op = "inmem: claim run"
	if err := claimant(op, w); err != nil {
		return run.Run{}, false, err
	}
	if err := ended(ctx, op); err != nil {
		return run.Run{}, false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.runOf[id]
	if r == nil || r.Status != run.RunRunning || r.Cancel || !r.HandedOffAt.IsZero() || r.Epoch != epoch ||
		!s.free(r.Owner, r.HeartbeatAt, r.Epoch, shown, stale) {
		return run.Run{}, false, nil
	}
	if s.leave(r.Owner, r.Epoch, shown) {
		r.LostManagers++
	}
	r.Owner, r.HeartbeatAt = w.ID, s.at()
	r.Epoch++
	s.begin(w, kindManager, r)
	return s.shown(r), true, nil
}

// claimant refuses a worker without a name, because an empty owner means no owner.
func claimant(op string, w run.Worker) error {
	if w.ID == "" {
		return fault.New(fault.Internal, op, fault.CodeBug, "expected a worker's id, found none")
	}
	return nil
}

// BeatRun implements run.Runs.
func (s *RunStore) BeatRun(ctx context.Context, l run.RunLease) (cancel bool, err error) {
	const op = "inmem: beat run"
	if err := ended(ctx, op); err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.leasedRun(op, l)
	if err != nil {
		return false, err
	}
	r.HeartbeatAt = s.at()
	s.beat(l.Owner)
	return r.Cancel, nil
}

// Known implements run.Runs.
func (s *RunStore) Known(ctx context.Context, id string, documents []string) (map[string]bool, error) {
	if err := ended(ctx, "inmem: known documents"); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	known := map[string]bool{}
	if r := s.runOf[id]; r != nil {
		for _, d := range documents {
			if r.items[run.DocumentKey(d)] != nil {
				known[d] = true
			}
		}
	}
	return known, nil
}

// AddChunk implements run.Runs.
func (s *RunStore) AddChunk(ctx context.Context, l run.RunLease, c run.Chunk, audits ...run.Audit) error {
	const op = "inmem: add chunk"
	if err := possible(op, c); err != nil {
		return err
	}
	audits, err := normalizedAudits(audits)
	if err != nil {
		return err
	}
	if err := ended(ctx, op); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.leasedRun(op, l)
	switch {
	case err != nil:
		return err
	case r.Cancel:
		return changed(op, "the run is to end")
	case c.First != r.Batches+1:
		return changed(op, "other batches were added to the run")
	}
	if err := unknown(op, r, c.Batches); err != nil {
		return err
	}
	for i, documents := range c.Batches {
		s.addBatch(r, c.First+i, documents)
	}
	slices.Sort(r.keys)
	r.Watermark, r.nextAt, r.HeartbeatAt, r.LostManagers = c.Watermark, s.at().Add(c.Wait), s.at(), 0
	s.beat(l.Owner)
	s.note(audits...)
	return nil
}

// possible refuses a chunk that cannot be.
func possible(op string, c run.Chunk) error {
	for _, documents := range c.Batches {
		if len(documents) == 0 || len(documents) > maxRows {
			return fault.New(fault.Internal, op, fault.CodeBug, "expected 1 to %d documents in a batch, found %d",
				maxRows, len(documents))
		}
	}
	return nil
}

// unknown refuses documents that the run has already, or would have twice.
func unknown(op string, r *storedRun, batches [][]string) error {
	seen := map[string]bool{}
	for _, documents := range batches {
		for _, d := range documents {
			key := run.DocumentKey(d)
			if seen[key] || r.items[key] != nil {
				return fault.New(fault.Internal, op, fault.CodeBug,
					"the run %s has a document of the chunk already", r.ID)
			}
			seen[key] = true
		}
	}
	return nil
}

// addBatch adds a batch to a run.
func (s *RunStore) addBatch(r *storedRun, number int, documents []string) {
	j := &storedBatch{run: r, Batch: run.Batch{
		ID: run.BatchID(r.SysName, r.ID, number), Run: r.ID, Number: number, Status: run.PendingQueue,
		Total: len(documents), CreatedAt: s.at(),
	}}
	for _, d := range documents {
		it := &storedItem{run.ItemOutcome{Document: d, Number: number}}
		key := run.DocumentKey(d)
		r.items[key], r.keys, j.items = it, append(r.keys, key), append(j.items, it)
	}
	r.batches, s.batches, s.batchOf[j.ID] = append(r.batches, j), append(s.batches, j), j
	r.Batches++
	r.Documents += len(documents)
}

// EndHandOff implements run.Runs.
func (s *RunStore) EndHandOff(ctx context.Context, l run.RunLease, a run.Audit) error {
	a, err := a.Normalize()
	if err != nil {
		return err
	}
	return s.releaseRunLease(ctx, "inmem: end hand-off", l, run.WorkerCompleted, func(r *storedRun) {
		r.HandedOffAt, r.LostManagers = s.at(), 0
		s.note(a)
	})
}

// ReleaseRun implements run.Runs.
func (s *RunStore) ReleaseRun(ctx context.Context, l run.RunLease) error {
	return s.releaseRunLease(ctx, "inmem: release run", l, run.WorkerIdle, func(*storedRun) {})
}

// releaseRunLease ends a manager's lease of a run.
func (s *RunStore) releaseRunLease(
	ctx context.Context, op string, l run.RunLease, status run.WorkerStatus, also func(*storedRun),
) error {
	if err := ended(ctx, op); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.leasedRun(op, l)
	if err != nil {
		return err
	}
	s.end(r.Owner, status)
	r.Owner, r.HeartbeatAt = "", s.at()
	also(r)
	return nil
}

// CompleteRun implements run.Runs. A run that is handed off and has no open batch is not cancelled, asked to end or
// not: nothing of it was cut short.
func (s *RunStore) CompleteRun(
	ctx context.Context, id string, stale time.Duration, audit func(run.RunStatus, run.Stats) run.Audit,
) (bool, error) {
	if err := ended(ctx, "inmem: complete run"); err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.runOf[id]
	if r == nil || r.Status != run.RunRunning {
		return false, nil
	}
	open := slices.ContainsFunc(r.batches, func(j *storedBatch) bool { return j.Status.Open() })
	alive := slices.ContainsFunc(r.batches, func(j *storedBatch) bool {
		return j.Status == run.Processing && !s.silent(j.Owner, j.HeartbeatAt, stale)
	})
	status, stats := run.RunCompleted, statsOf(r)
	switch {
	case !open && !r.HandedOffAt.IsZero() && stats.Failed():
		status = run.RunCompletedWithFailures
	case !open && !r.HandedOffAt.IsZero():
	case r.Cancel && !alive:
		status, stats = run.RunCancelled, cancelledStats(stats)
	default:
		return false, nil
	}
	a, err := audit(status, stats).Normalize()
	if err != nil {
		return false, err
	}
	for _, j := range r.batches {
		if j.Status.Open() {
			s.giveUp(j, run.CancelledError)
		}
	}
	s.end(r.Owner, run.WorkerCompleted)
	r.Status, r.EndedAt = status, s.at()
	s.note(a)
	return true, nil
}

// CancelRun implements run.Runs.
func (s *RunStore) CancelRun(ctx context.Context, id string, a run.Audit) (bool, error) {
	return s.changeRun(ctx, "inmem: cancel run", id, a, func(r *storedRun) bool {
		if r.Status != run.RunRunning {
			return false
		}
		r.Cancel = true
		return true
	})
}

// FailRun implements run.Runs.
func (s *RunStore) FailRun(ctx context.Context, id, reason string, stale time.Duration, a run.Audit) (bool, error) {
	return s.changeRun(ctx, "inmem: fail run", id, a, func(r *storedRun) bool {
		if r.Status != run.RunRunning || !r.HandedOffAt.IsZero() || !s.silent(r.Owner, r.HeartbeatAt, stale) {
			return false
		}
		s.end(r.Owner, run.WorkerFailed)
		r.Status, r.Error, r.EndedAt, r.Owner = run.RunFailed, run.Truncate(reason, run.MaxWhy), s.at(), ""
		return true
	})
}

// ResumeRun implements run.Runs. Its batches get another epoch and another attempt: the queue may still have their
// messages.
func (s *RunStore) ResumeRun(ctx context.Context, id string, a run.Audit) (bool, error) {
	return s.changeRun(ctx, "inmem: resume run", id, a, func(r *storedRun) bool {
		if r.Status != run.RunFailed && r.Status != run.RunCancelled {
			return false
		}
		r.Status, r.Cancel, r.Owner, r.EndedAt, r.Error = run.RunRunning, false, "", time.Time{}, ""
		r.LostManagers, r.HandedOffAt = 0, time.Time{}
		r.Epoch++
		for _, j := range r.batches {
			if waits(j.Status) || j.Status == run.Failed && j.Error == run.CancelledError {
				j.again()
			}
		}
		return true
	})
}

// changeRun changes a run that is there.
func (s *RunStore) changeRun(
	ctx context.Context, op, id string, a run.Audit, change func(*storedRun) bool,
) (bool, error) {
	return s.changed(ctx, op, a, func() bool {
		r := s.runOf[id]
		return r != nil && change(r)
	})
}
