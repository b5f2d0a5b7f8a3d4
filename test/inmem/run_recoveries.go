package inmem

import (
	"cmp"
	"context"
	"time"

	"sqlwriter/internal/run"
)

// Unsent implements run.Recoveries.
func (s *RunStore) Unsent(ctx context.Context, id string, limit int) ([]run.Batch, error) {
	return s.ListBatches(ctx, id, run.PendingQueue, "", unlessEmpty(id, limit))
}

// unlessEmpty gives nothing for an empty run id, which ListBatches would take for all runs.
func unlessEmpty(id string, limit int) int {
	if id == "" {
		return 0
	}
	return limit
}

// MarkQueued implements run.Recoveries.
func (s *RunStore) MarkQueued(ctx context.Context, l run.RunLease, batches []run.Batch) (int, error) {
	if err := ended(ctx, "inmem: mark queued"); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, err := s.leasedRun("inmem: mark queued", l); err == nil && len(batches) > 0 {
		r.LostManagers = 0
	}
	n := 0
	for _, named := range batches {
		j := s.batchOf[named.ID]
		if j == nil || j.Attempt != named.Attempt || j.Status != run.PendingQueue && j.Status != run.PendingRetry {
			continue
		}
		j.Status, j.QueuedAt = run.Queued, s.at()
		n++
	}
	return n, nil
}

// MarkUnsent implements run.Recoveries.
func (s *RunStore) MarkUnsent(
	ctx context.Context, batches []run.Batch, reason string, counted bool, audit func(run.Batch) run.Audit,
) (retry, failed int, err error) {
	if err := ended(ctx, "inmem: mark unsent"); err != nil {
		return 0, 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	next, audits := map[*storedBatch]storedBatch{}, []run.Audit{}
	for _, named := range batches {
		j := s.batchOf[named.ID]
		if j == nil || j.Attempt != named.Attempt || !waits(j.Status) {
			continue
		}
		if _, twice := next[j]; twice {
			continue
		}
		refused := *j
		refused.retry()
		refused.LastQueueError = run.Truncate(reason, run.MaxWhy)
		if counted {
			refused.QueueAttempts++
		}
		if counted && refused.QueueAttempts >= run.MaxQueueAttempts {
			s.giveUp(&refused, run.MaxQueueError)
			audits = append(audits, audit(refused.Batch))
		}
		next[j] = refused
	}
	if audits, err = normalizedAudits(audits); err != nil {
		return 0, 0, err
	}
	for j, refused := range next {
		*j = refused
	}
	s.note(audits...)
	return len(next) - len(audits), len(audits), nil
}

// waits reports whether a batch waits for its message or for a worker.
func waits(status run.BatchStatus) bool {
	return status == run.PendingQueue || status == run.PendingRetry || status == run.Queued
}

// ToSend implements run.Recoveries.
func (s *RunStore) ToSend(ctx context.Context, sysName string, limit int) ([]run.Batch, error) {
	if err := ended(ctx, "inmem: batches to send"); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []run.Batch{}
	for _, r := range s.runs {
		if r.SysName != sysName || r.Status != run.RunRunning || r.Cancel {
			continue
		}
		list = append(list,
			pick(r.batches, limit-len(list), func(j *storedBatch) bool { return j.Status == run.PendingRetry })...)
	}
	return list, nil
}

// OnTheWay implements run.Recoveries.
func (s *RunStore) OnTheWay(ctx context.Context, sysName string) (all run.OnTheWay, err error) {
	if err := ended(ctx, "inmem: on the way"); err != nil {
		return all, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.runs {
		if r.SysName != sysName || r.Status != run.RunRunning {
			continue
		}
		if r.HandedOffAt.IsZero() && !r.Cancel {
			all.HandingOff++
		}
		for _, j := range r.batches {
			switch j.Status { //nolint:exhaustive // the others are on no way
			case run.Queued, run.Processing:
				all.Busy++
			case run.PendingRetry:
				all.Retry++
			}
		}
	}
	return all, nil
}

// RequeueSilent implements run.Recoveries.
func (s *RunStore) RequeueSilent(ctx context.Context, sysName string, silent time.Duration, limit int) (int, error) {
	if err := ended(ctx, "inmem: silent runs"); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var first *storedBatch      // of those that are queued
	var passed time.Time        // is the latest queued_at of those that were claimed long ago
	still := true               // nothing was queued or claimed lately, or waits to be queued
	batches := []*storedBatch{} // that have been queued for long
	lately := func(at time.Time) bool { return s.at().Sub(at) < silent }
	for _, j := range s.batches {
		if j.run.SysName != sysName || j.run.Status != run.RunRunning {
			continue
		}
		if !j.claimedAt.IsZero() && !lately(j.claimedAt) && !j.claimedAt.Before(j.QueuedAt) &&
			j.QueuedAt.After(passed) {
			passed = j.QueuedAt
		}
		still = still && j.Status != run.PendingRetry && !lately(j.claimedAt) && !lately(j.QueuedAt)
		if j.Status == run.Queued {
			first = cmp.Or(first, j)
			if !lately(j.QueuedAt) {
				batches = append(batches, j)
			}
		}
	}
	n := 0
	for _, j := range batches {
		if n < limit && (j.QueuedAt.Before(passed) || still && j == first) {
			j.retry()
			n++
		}
	}
	return n, nil
}

// Rescue implements run.Recoveries.
func (s *RunStore) Rescue(
	ctx context.Context, sysName string, stale, released time.Duration, limit int,
) (batches, workers int, err error) {
	if err := ended(ctx, "inmem: rescue"); err != nil {
		return 0, 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.failedWorkers()
	for _, j := range s.batches {
		if batches < limit && j.run.SysName == sysName && j.run.Status != run.RunPurged && j.Status == run.Processing &&
			s.abandoned(j, stale, released) {
			if j.Owner != "" {
				j.LostWorkers++
			}
			s.end(j.Owner, run.WorkerFailed)
			j.retry()
			batches++
		}
	}
	for _, w := range s.workers {
		if s.failedWorkers()-before < limit && w.SysName == sysName && s.runOf[w.Run].Status != run.RunPurged &&
			w.Status == run.WorkerRunning && s.at().Sub(w.HeartbeatAt) >= stale {
			w.Status = run.WorkerFailed
		}
	}
	return batches, s.failedWorkers() - before, nil
}

// abandoned reports whether a batch's worker is dead, or released it and no other claimed it.
func (s *RunStore) abandoned(j *storedBatch, stale, released time.Duration) bool {
	if j.Owner == "" {
		return s.at().Sub(j.releasedAt) >= released
	}
	return s.at().Sub(j.HeartbeatAt) >= stale
}

func (s *RunStore) failedWorkers() int {
	n := 0
	for _, w := range s.workers {
		if w.Status == run.WorkerFailed {
			n++
		}
	}
	return n
}

// OpenRuns implements run.Recoveries.
func (s *RunStore) OpenRuns(ctx context.Context, sysName string, limit int) ([]run.Run, error) {
	if err := ended(ctx, "inmem: open runs"); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []run.Run{}
	for _, r := range s.runs {
		if len(list) < limit && r.SysName == sysName && r.Status == run.RunRunning {
			list = append(list, s.brief(r))
		}
	}
	return list, nil
}
