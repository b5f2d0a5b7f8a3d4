package inmem

import (
	"cmp"
	"context"
	"time"

	"sqlwriter/internal/ops"
	"sqlwriter/internal/run"
)

// Unsent implements run.Recoveries.
func (s *RunStore) Unsent(ctx context.Context, id string, limit int) ([]run.Job, error) {
	return s.ListJobs(ctx, id, run.PendingQueue, unlessEmpty(id, limit))
}

// unlessEmpty is no row for the run without an id: there is none, and ListJobs takes it for all.
func unlessEmpty(id string, limit int) int {
	if id == "" {
		return 0
	}
	return limit
}

// MarkQueued implements run.Recoveries.
func (s *RunStore) MarkQueued(ctx context.Context, l run.Lease, jobs []run.Job) (int, error) {
	if err := ended(ctx, "inmem: mark queued"); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, err := s.leased("inmem: mark queued", l); err == nil && len(jobs) > 0 {
		r.LostManagers = 0
	}
	n := 0
	for _, named := range jobs {
		j := s.jobOf[named.ID]
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
	ctx context.Context, jobs []run.Job, reason string, counted bool, audit func(run.Job) run.Audit,
) (retry, failed int, err error) {
	if err := ended(ctx, "inmem: mark unsent"); err != nil {
		return 0, 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	next, audits := map[*storedJob]storedJob{}, []run.Audit{}
	for _, named := range jobs {
		j := s.jobOf[named.ID]
		if j == nil || j.Attempt != named.Attempt || !waits(j.Status) {
			continue
		}
		if _, twice := next[j]; twice {
			continue
		}
		refused := *j
		refused.retry()
		refused.LastQueueError = ops.Clip(reason, ops.MaxWhy)
		if counted {
			refused.QueueAttempts++
		}
		if counted && refused.QueueAttempts >= run.MaxQueueAttempts {
			s.giveUp(&refused, run.MaxQueueError)
			audits = append(audits, audit(refused.Job))
		}
		next[j] = refused
	}
	if audits, err = keptAudits(audits); err != nil {
		return 0, 0, err
	}
	for j, refused := range next {
		*j = refused
	}
	s.note(audits...)
	return len(next) - len(audits), len(audits), nil
}

// waits reports whether a batch waits for its message or for a worker.
func waits(status run.Status) bool {
	return status == run.PendingQueue || status == run.PendingRetry || status == run.Queued
}

// ToSend implements run.Recoveries.
func (s *RunStore) ToSend(ctx context.Context, sysName string, limit int) ([]run.Job, error) {
	if err := ended(ctx, "inmem: batches to send"); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []run.Job{}
	for _, r := range s.runs {
		if r.SysName != sysName || r.Status != run.RunRunning || r.Cancel {
			continue
		}
		list = append(list, pick(r.jobs, limit-len(list), func(j *storedJob) bool { return j.Status == run.PendingRetry })...)
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
		if r.SysName != sysName || r.Status != run.RunRunning || r.Pattern == "" {
			continue
		}
		if r.HandedOffAt.IsZero() && !r.Cancel {
			all.HandingOff++
		}
		for _, j := range r.jobs {
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

// Silence implements run.Recoveries.
func (s *RunStore) Silence(ctx context.Context, sysName string, silent time.Duration, limit int) (int, error) {
	if err := ended(ctx, "inmem: silent runs"); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var first *storedJob   // of those that are queued
	var passed time.Time   // is the latest queued_at of those that were claimed long ago
	still := true          // nothing was queued or claimed lately, or waits to be queued
	jobs := []*storedJob{} // that have been queued for long
	lately := func(at time.Time) bool { return s.at().Sub(at) < silent }
	for _, j := range s.jobs {
		if j.run.SysName != sysName || j.run.Status != run.RunRunning {
			continue
		}
		if !j.claimedAt.IsZero() && !lately(j.claimedAt) && !j.claimedAt.Before(j.QueuedAt) && j.QueuedAt.After(passed) {
			passed = j.QueuedAt
		}
		still = still && j.Status != run.PendingRetry && !lately(j.claimedAt) && !lately(j.QueuedAt)
		if j.Status == run.Queued {
			first = cmp.Or(first, j)
			if !lately(j.QueuedAt) {
				jobs = append(jobs, j)
			}
		}
	}
	n := 0
	for _, j := range jobs {
		if n < limit && (j.QueuedAt.Before(passed) || still && j == first) {
			j.retry()
			n++
		}
	}
	return n, nil
}

// Bury implements run.Recoveries.
func (s *RunStore) Bury(ctx context.Context, sysName string, stale, released time.Duration, limit int) (jobs, workers int, err error) {
	if err := ended(ctx, "inmem: bury"); err != nil {
		return 0, 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.failedWorkers()
	for _, j := range s.jobs {
		if jobs < limit && j.run.SysName == sysName && j.Status == run.Processing && s.abandoned(j, stale, released) {
			if j.Owner != "" {
				j.LostWorkers++
			}
			s.end(j.Owner, run.WorkerFailed)
			j.retry()
			jobs++
		}
	}
	for _, w := range s.workers {
		if s.failedWorkers()-before < limit && w.SysName == sysName && w.Status == run.WorkerRunning && s.at().Sub(w.HeartbeatAt) >= stale {
			w.Status = run.WorkerFailed
		}
	}
	return jobs, s.failedWorkers() - before, nil
}

// abandoned reports whether a batch's worker is dead, or let go and nobody came.
func (s *RunStore) abandoned(j *storedJob, stale, released time.Duration) bool {
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
		if len(list) < limit && r.SysName == sysName && r.Status == run.RunRunning && r.Pattern != "" {
			list = append(list, s.brief(r))
		}
	}
	return list, nil
}
