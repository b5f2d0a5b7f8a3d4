package inmem

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/run"
)

// ClaimJob implements run.Jobs. What is finished is answered so before its run is looked at.
func (s *RunStore) ClaimJob(ctx context.Context, id string, t run.Ticket, w run.Worker, stale time.Duration, a run.Audit) (run.Claimed, error) {
	const op = "inmem: claim batch"
	a, err := keptAudit(a)
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
	j := s.jobOf[id]
	if j == nil {
		return run.Claimed{Answer: run.Unknown}, nil
	}
	claimed := run.Claimed{Answer: s.answer(j, t, stale)}
	if claimed.Answer == run.Taken {
		claimed.TookOver, claimed.Begun = j.Status == run.Processing, !j.StartedAt.IsZero()
		if s.take(j, t, w) || !claimed.Begun {
			s.note(a)
		}
		claimed.Hold = run.Hold{Job: j.ID, Run: j.Run, Owner: j.Owner, Epoch: j.Epoch}
		claimed.Open = j.open()
	}
	claimed.Job, claimed.Run = j.Job, s.brief(j.run)
	return claimed, nil
}

// answer says what a claim of a batch comes to.
func (s *RunStore) answer(j *storedJob, t run.Ticket, stale time.Duration) run.Answer {
	switch {
	case !j.Status.Open():
		return run.Finished
	case j.run.Status != run.RunRunning || j.run.Cancel:
		return run.Ended
	case t.Attempt < j.Attempt:
		return run.Outdated
	case j.Status == run.Processing && !s.free(j.Owner, j.HeartbeatAt, j.Epoch, t.Epoch, stale):
		return run.Busy
	default:
		return run.Taken
	}
}

// take gives a batch to a worker, and reports whether another one is lost with it.
func (s *RunStore) take(j *storedJob, t run.Ticket, w run.Worker) (lost bool) {
	if lost = s.leave(j.Owner, j.Epoch, t.Epoch) && j.Status == run.Processing; lost {
		j.LostWorkers++
	}
	now := s.at()
	j.Status, j.Owner, j.HeartbeatAt, j.claimedAt, j.releasedAt = run.Processing, w.ID, now, now, time.Time{}
	j.Epoch++
	if j.StartedAt.IsZero() {
		j.StartedAt = now
	}
	s.begin(w, kindWorker, j.run.SysName)
	return lost
}

// open lists the documents that have no outcome.
func (j *storedJob) open() []string {
	list := []string{}
	for _, it := range j.items {
		if it.Outcome == "" {
			list = append(list, it.Document)
		}
	}
	return list
}

// BeatJob implements run.Jobs.
func (s *RunStore) BeatJob(ctx context.Context, h run.Hold) (cancel bool, err error) {
	const op = "inmem: beat batch"
	if err := ended(ctx, op); err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	j, err := s.held(op, h)
	if err != nil {
		return false, err
	}
	j.HeartbeatAt = s.at()
	s.beat(h.Owner)
	return j.run.Cancel, nil
}

// SaveOutcomes implements run.Jobs.
func (s *RunStore) SaveOutcomes(ctx context.Context, h run.Hold, outcomes []run.ItemOutcome, details []run.ErrorDetail) error {
	const op = "inmem: save outcomes"
	if len(outcomes) > maxRows || len(details) > maxRows {
		return fault.New(fault.Internal, op, "too_many", "expected at most %d outcomes and details, found %d and %d", maxRows, len(outcomes), len(details))
	}
	for _, o := range outcomes {
		if !slices.Contains(run.Outcomes(), o.Outcome) {
			return fault.New(fault.Internal, op, "outcome", "expected an outcome, found %q", o.Outcome)
		}
	}
	if err := ended(ctx, op); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	j, err := s.held(op, h)
	if err != nil {
		return err
	}
	items := make([]*storedItem, 0, len(outcomes))
	for _, o := range outcomes {
		it := j.run.items[run.DocumentKey(o.Document)]
		if it == nil || it.Number != j.Number {
			return fault.New(fault.Internal, op, "not_in_batch", "expected documents of the batch, found another")
		}
		items = append(items, it)
	}
	for i, it := range items {
		it.Outcome, it.Code = outcomes[i].Outcome, ops.Clip(outcomes[i].Code, ops.MaxBy)
	}
	for _, d := range details {
		d.Code, d.Message, d.At = ops.Clip(d.Code, ops.MaxBy), ops.Clip(d.Message, ops.MaxWhy), s.at()
		j.details = append(j.details, d)
	}
	if w := s.workerOf[h.Owner]; w != nil {
		w.Processed += len(outcomes)
	}
	return nil
}

// FinishJob implements run.Jobs.
func (s *RunStore) FinishJob(ctx context.Context, h run.Hold, audit func(run.JobStats) run.Audit) (run.JobStats, error) {
	const op = "inmem: finish batch"
	if err := ended(ctx, op); err != nil {
		return run.JobStats{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	j, err := s.held(op, h)
	if err != nil {
		return run.JobStats{}, err
	}
	stats := j.count()
	a, err := keptAudit(audit(stats))
	if err != nil {
		return run.JobStats{}, err
	}
	j.Success, j.Failure, j.EndedAt = stats.Success, stats.Failure, s.at()
	j.Status = run.Completed
	status := run.WorkerCompleted
	if !stats.AddsUp {
		status, j.Status = run.WorkerFailed, run.Failed
		j.Error = fmt.Sprintf("%d of %d documents have no outcome", stats.Total-stats.Success-stats.Failure, stats.Total)
	}
	s.end(h.Owner, status)
	s.note(a)
	return stats, nil
}

// count counts the outcomes of a batch.
func (j *storedJob) count() run.JobStats {
	stats := run.JobStats{Total: j.Total, Outcomes: map[run.Outcome]int{}}
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

// ReleaseJob implements run.Jobs.
func (s *RunStore) ReleaseJob(ctx context.Context, h run.Hold, audits ...run.Audit) error {
	return s.endHold(ctx, "inmem: release batch", h, run.WorkerIdle, audits, func(j *storedJob) {
		j.Owner, j.HeartbeatAt, j.releasedAt = "", time.Time{}, s.at()
	})
}

// FailJob implements run.Jobs.
func (s *RunStore) FailJob(ctx context.Context, h run.Hold, reason string, a run.Audit) error {
	return s.endHold(ctx, "inmem: fail batch", h, run.WorkerFailed, []run.Audit{a}, func(j *storedJob) { s.giveUp(j, reason) })
}

// endHold ends a worker's hold of a batch.
func (s *RunStore) endHold(ctx context.Context, op string, h run.Hold, status run.WorkerStatus, audits []run.Audit, change func(*storedJob)) error {
	audits, err := keptAudits(audits)
	if err != nil {
		return err
	}
	if err := ended(ctx, op); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	j, err := s.held(op, h)
	if err != nil {
		return err
	}
	s.end(h.Owner, status)
	change(j)
	s.note(audits...)
	return nil
}

// giveUp makes a batch failed, and its worker with it. What it has come to is counted.
func (s *RunStore) giveUp(j *storedJob, reason string) {
	s.end(j.Owner, run.WorkerFailed)
	stats := j.count()
	j.Success, j.Failure = stats.Success, stats.Failure
	j.Status, j.Error, j.EndedAt = run.Failed, ops.Clip(reason, ops.MaxWhy), s.at()
}

// again makes a batch that failed, or whose message may be gone, one whose message is to be sent.
func (j *storedJob) again() {
	j.retry()
	j.Epoch++
	j.QueueAttempts, j.LostWorkers, j.LastQueueError, j.Error, j.EndedAt = 0, 0, "", "", time.Time{}
}

// retry makes a batch one whose message is to be sent: another message, which is no duplicate of the last.
func (j *storedJob) retry() {
	j.Status, j.Owner, j.HeartbeatAt, j.releasedAt = run.PendingRetry, "", time.Time{}, time.Time{}
	j.Attempt++
}

// Job implements run.Jobs.
func (s *RunStore) Job(ctx context.Context, id string) (run.Job, []run.ErrorDetail, bool, error) {
	if err := ended(ctx, "inmem: read batch"); err != nil {
		return run.Job{}, nil, false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.jobOf[id]
	if j == nil {
		return run.Job{}, nil, false, nil
	}
	return j.Job, latest(j.details, maxRows), true, nil
}

// ListJobs implements run.Jobs.
func (s *RunStore) ListJobs(ctx context.Context, id string, status run.Status, limit int) ([]run.Job, error) {
	if err := ended(ctx, "inmem: list batches"); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var from []*storedJob
	if id == "" {
		from = latest(s.jobs, len(s.jobs))
	} else if r := s.runOf[id]; r != nil {
		from = r.jobs
	}
	return pick(from, limit, func(j *storedJob) bool { return status == "" || j.Status == status }), nil
}

// pick lists the first batches that are wanted.
func pick(from []*storedJob, limit int, wanted func(*storedJob) bool) []run.Job {
	list := []run.Job{}
	for _, j := range from {
		if len(list) >= limit {
			break
		}
		if wanted(j) {
			list = append(list, j.Job)
		}
	}
	return list
}

// Items implements run.Jobs.
func (s *RunStore) Items(ctx context.Context, id string, outcomes []run.Outcome, afterKey string, limit int) ([]run.ItemOutcome, error) {
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
		if it := r.items[key].ItemOutcome; len(list) < limit && (len(outcomes) == 0 || slices.Contains(outcomes, it.Outcome)) {
			list = append(list, it)
		}
	}
	return list, nil
}

// RequeueJob implements run.Jobs.
func (s *RunStore) RequeueJob(ctx context.Context, id string, a run.Audit) (bool, error) {
	return s.changeJob(ctx, "inmem: requeue batch", id, a, func(j *storedJob) bool {
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

// DeadLetter implements run.Jobs.
func (s *RunStore) DeadLetter(ctx context.Context, id string, attempt int, reason string, stale time.Duration, a run.Audit) (bool, error) {
	return s.changeJob(ctx, "inmem: dead letter", id, a, func(j *storedJob) bool {
		if !j.Status.Open() || j.Attempt > attempt || j.Status == run.Processing && !s.silent(j.Owner, j.HeartbeatAt, stale) {
			return false
		}
		s.giveUp(j, reason)
		return true
	})
}

// changeJob makes a change with its entry, or none of both.
func (s *RunStore) changeJob(ctx context.Context, op, id string, a run.Audit, change func(*storedJob) bool) (bool, error) {
	a, err := keptAudit(a)
	if err != nil {
		return false, err
	}
	if err := ended(ctx, op); err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if j := s.jobOf[id]; j == nil || !change(j) {
		return false, nil
	}
	s.note(a)
	return true, nil
}

// Write implements run.Jobs.
func (s *RunStore) Write(ctx context.Context, a run.Audit) error {
	a, err := keptAudit(a)
	if err != nil {
		return err
	}
	if err := ended(ctx, "inmem: write audit"); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note(a)
	return nil
}
