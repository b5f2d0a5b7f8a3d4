package inmem

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"sqlwriter/internal/retention"
	"sqlwriter/internal/run"
)

// Retention deletes the old rows of the store's environment.
func (s *RunStore) Retention() retention.Store { return purger{s} }

type purger struct{ s *RunStore }

// Purge implements retention.Store.
func (r purger) Purge(ctx context.Context, part retention.Part, days, limit int) (int, error) {
	const op = "inmem: purge"
	if err := retention.Check(op, part, limit); err != nil {
		return 0, err
	}
	if err := retention.CheckDays(op, days); err != nil {
		return 0, err
	}
	if err := ended(ctx, op); err != nil {
		return 0, err
	}
	s := r.s
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.at().AddDate(0, 0, -days)
	switch part {
	case retention.ErrorDetails:
		return dropFirst(&s.details, limit, func(d storedDetail) bool {
			of := s.runOf[d.run]
			return s.ours(d.sysName) && d.of.At.Before(before) && (of == nil || of.Status != run.RunRunning)
		}), nil
	case retention.EndedRuns:
		return s.purgeRun(before, limit), nil
	case retention.Comparisons:
		return s.purgeComparisons(before, limit), nil
	case retention.AuditLog:
		return dropFirst(&s.audits, limit, func(e entry) bool {
			return s.ours(e.sysName) && e.of.At.Before(before)
		}), nil
	}
	return 0, nil
}

// Rows counts the rows of each table, of all environments.
func (s *RunStore) Rows() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	items := 0
	for _, r := range s.runs {
		items += len(r.items)
	}
	return map[string]int{
		"run": len(s.runs), "batch": len(s.batches), "batch_item": items, "worker": len(s.workers),
		"error_detail": len(s.details),
		"finding":      len(s.findings), "comparison": len(s.comparisons), "audit_log": len(s.audits),
	}
}

// dropFirst removes the first rows that may go, and says how many.
func dropFirst[T any](list *[]T, limit int, may func(T) bool) (n int) {
	*list = slices.DeleteFunc(*list, func(one T) bool {
		if n == limit || !may(one) {
			return false
		}
		n++
		return true
	})
	return n
}

// purgeRun deletes what it may of the run that ended first. Its own row goes last.
func (s *RunStore) purgeRun(before time.Time, limit int) (n int) {
	var r *storedRun
	for _, old := range s.runs {
		if s.ours(old.SysName) && old.Status != run.RunRunning && old.EndedAt.Before(before) && !s.named(old.ID) &&
			(r == nil || old.EndedAt.Before(r.EndedAt)) {
			r = old
		}
	}
	if r == nil {
		return 0
	}
	r.Status = run.RunPurged
	n = min(limit, len(r.batches))
	for _, j := range r.batches[:n] {
		delete(s.batchOf, j.ID)
	}
	r.batches = r.batches[n:]
	s.batches = slices.DeleteFunc(s.batches, func(j *storedBatch) bool { return s.batchOf[j.ID] == nil })
	items := min(limit-n, len(r.keys))
	for _, key := range r.keys[:items] {
		delete(r.items, key)
	}
	r.keys, n = r.keys[items:], n+items
	n += dropFirst(&s.workers, limit-n, func(w *RunWorker) bool {
		if w.Run == r.ID {
			delete(s.workerOf, w.ID)
		}
		return w.Run == r.ID
	})
	if n < limit {
		delete(s.runOf, r.ID)
		n += dropFirst(&s.runs, 1, func(one *storedRun) bool { return one == r })
	}
	return n
}

// named reports whether a running run names another one.
func (s *RunStore) named(id string) bool {
	return slices.ContainsFunc(s.runs, func(r *storedRun) bool {
		var f run.Filter
		return r.Status == run.RunRunning && json.Unmarshal(r.Filter, &f) == nil && f.Run == id
	})
}

// purgeComparisons deletes comparisons that ended, but for the last one that ended well.
func (s *RunStore) purgeComparisons(before time.Time, limit int) int {
	last := s.lastComparison()
	return dropFirst(&s.comparisons, limit, func(c *storedComparison) bool {
		return s.ours(c.sysName) && c.Ended && c.EndedAt.Before(before) && c != last
	})
}
