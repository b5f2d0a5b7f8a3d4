package inmem

import (
	"slices"

	"sqlwriter/internal/run"
)

// PurgeRun deletes at most limit rows of a run that ended, as retention does: the run's own row goes last.
func (s *RunStore) PurgeRun(id string, limit int) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.runOf[id]
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
	s.workers = slices.DeleteFunc(s.workers, func(w *RunWorker) bool {
		if n == limit || w.Run != id {
			return false
		}
		n++
		delete(s.workerOf, w.ID)
		return true
	})
	if n < limit {
		delete(s.runOf, id)
		s.runs = slices.DeleteFunc(s.runs, func(one *storedRun) bool { return one == r })
		n++
	}
	return n
}
