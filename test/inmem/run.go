package inmem

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/reconcile"
	"sqlwriter/internal/run"
)

// maxRows is how many documents a batch has at most, and how many outcomes one call may bring.
const maxRows = 100

// RunStore is run.Store in memory, of one environment. Its clock is the database's. It is safe for concurrent use;
// every call is atomic.
type RunStore struct {
	*tables
	sysName string
}

// tables are what environments and the audit log may share.
type tables struct {
	now func() time.Time

	mu sync.Mutex
	// runs, batches and workers are in the order in which they were added.
	runs    []*storedRun
	batches []*storedBatch
	workers []*RunWorker
	details []storedDetail
	audits  []entry
	// lastAudit is the id of the newest entry.
	lastAudit int64
	// The rows by their keys.
	runOf       map[string]*storedRun
	batchOf     map[string]*storedBatch
	workerOf    map[string]*RunWorker
	findings    map[findingID]*reconcile.Finding
	comparisons []*storedComparison
}

var _ run.Store = (*RunStore)(nil)

// entry is a row of the audit log.
type entry struct {
	// sysName is the environment.
	sysName string
	of      run.Audit
}

// RunWorker is a row of the table worker.
type RunWorker struct {
	run.Worker
	// SysName and Run are those of what it claimed, Kind is "manager" or "worker".
	SysName, Run, Kind string
	Status             run.WorkerStatus
	// Processed is how many outcomes of documents it brought.
	Processed              int
	StartedAt, HeartbeatAt time.Time
}

// The kinds of workers.
const (
	kindManager = "manager"
	kindWorker  = "worker"
)

// storedRun is a run with what belongs to it.
type storedRun struct {
	run.Run
	// nextAt is when the rate lets the next chunk come.
	nextAt  time.Time
	batches []*storedBatch // by number
	// items are its documents by their keys; keys are sorted whenever a chunk was added.
	items map[string]*storedItem
	keys  []string
}

// storedBatch is a batch with what belongs to it.
type storedBatch struct {
	run.Batch
	run   *storedRun
	items []*storedItem // in their order
	// claimedAt is the last claim, releasedAt when its worker let go.
	claimedAt, releasedAt time.Time
}

// storedItem is a document of a batch.
type storedItem struct{ run.ItemOutcome }

// storedDetail is a row of the table error_detail; run and batch are empty when no run was for it.
type storedDetail struct {
	sysName, run, batch string
	of                  run.ErrorDetail
}

// NewRunStore makes an empty one of an environment whose times and ages are by now.
func NewRunStore(now func() time.Time, sysName string) *RunStore {
	return &RunStore{&tables{
		now: now, runOf: map[string]*storedRun{}, batchOf: map[string]*storedBatch{}, workerOf: map[string]*RunWorker{},
		findings: map[findingID]*reconcile.Finding{},
	}, sysName}
}

// For is the store of another environment in the same database.
func (s *RunStore) For(sysName string) *RunStore { return &RunStore{s.tables, sysName} }

// AuditLog keeps the runs and the audit log of the store's environment in the same database.
func (s *RunStore) AuditLog() *AuditLog { return &AuditLog{s} }

// Audits gives the audit log of all environments, oldest first.
func (s *RunStore) Audits() []run.Audit {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []run.Audit{}
	for _, e := range s.audits {
		e.of.Detail = slices.Clone(e.of.Detail)
		list = append(list, e.of)
	}
	return list
}

// Workers gives all workers in the order of their first claims.
func (s *RunStore) Workers() []RunWorker {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]RunWorker, 0, len(s.workers))
	for _, w := range s.workers {
		list = append(list, *w)
	}
	return list
}

// AllBatches gives all batches in the order in which they were added.
func (s *RunStore) AllBatches() []run.Batch {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]run.Batch, 0, len(s.batches))
	for _, j := range s.batches {
		list = append(list, j.Batch)
	}
	return list
}

// at is now as a database keeps it: UTC, milliseconds.
func (s *tables) at() time.Time { return s.now().UTC().Truncate(time.Millisecond) }

// shown is a run as it is read.
func (s *RunStore) shown(r *storedRun) run.Run {
	now, found := s.at(), r.Run
	found.Filter = slices.Clone(r.Filter)
	found.NextIn = max(0, r.nextAt.Sub(now))
	heard := r.HeartbeatAt
	if heard.IsZero() {
		heard = r.StartedAt // no heartbeat yet
	}
	found.Silent = now.Sub(heard)
	end := r.EndedAt
	if end.IsZero() {
		end = now
	}
	found.Age = end.Sub(r.StartedAt)
	return found
}

// listed is a run as a list has it.
func (s *RunStore) listed(r *storedRun) run.Run {
	found := s.shown(r)
	found.Watermark = ""
	if r.Named > 0 { // it may name thousands of documents
		found.Filter = nil
	}
	return found
}

// brief is a run as a claim of a batch has it, or the timer.
func (s *RunStore) brief(r *storedRun) run.Run {
	found := s.shown(r)
	found.Filter, found.Watermark = nil, ""
	return found
}

// ours reports whether something of an environment is this one's.
func (s *RunStore) ours(sysName string) bool { return sysName == s.sysName }

// note adds normalized entries to the audit log.
func (s *RunStore) note(kept ...run.Audit) {
	for _, a := range kept {
		s.lastAudit++
		a.ID, a.At, a.Detail = s.lastAudit, s.at(), slices.Clone(a.Detail)
		s.audits = append(s.audits, entry{s.sysName, a})
	}
}

// Marks implements ops.AuditLog and reconcile.Findings.
func (s *RunStore) Marks(ctx context.Context, documents []string) (map[run.Mark]run.Audit, error) {
	if err := ended(ctx, "inmem: read marks"); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	marks := map[run.Mark]run.Audit{}
	for _, e := range s.audits {
		if a := e.of; s.ours(e.sysName) && a.Action == run.CodeMarkCommitted && slices.Contains(documents, a.Subject) {
			marks[a.Mark()] = run.Audit{
				At: a.At, Action: a.Action, By: a.By, Why: a.Why, Subject: a.Subject, Detail: a.Detail,
			}
		}
	}
	return marks, nil
}

// silent reports whether there is no owner or its last heartbeat is older than stale.
func (s *RunStore) silent(owner string, heartbeat time.Time, stale time.Duration) bool {
	return owner == "" || s.at().Sub(heartbeat) >= stale
}

// free reports whether a claim may take a lease: it has no owner, was released, or its last heartbeat is older than
// stale.
func (s *RunStore) free(owner string, heartbeat time.Time, epoch, shown int, stale time.Duration) bool {
	return shown == epoch || s.silent(owner, heartbeat, stale)
}

// leave ends the worker of a former owner, and reports whether it is lost: it did not let go.
func (s *RunStore) leave(owner string, epoch, shown int) (lost bool) {
	if shown == epoch {
		s.end(owner, run.WorkerIdle)
		return false
	}
	s.end(owner, run.WorkerFailed)
	return owner != ""
}

// leasedRun finds the running run that a manager has. Another's is contention, condition Changed.
func (s *RunStore) leasedRun(op string, l run.RunLease) (*storedRun, error) {
	r := s.runOf[l.Run]
	if r == nil || r.Status != run.RunRunning || l.Owner == "" || r.Owner != l.Owner || r.Epoch != l.Epoch {
		return nil, changed(op, "the run is not this manager's any more")
	}
	return r, nil
}

// leasedBatch finds the batch that a worker has. Another's is contention, condition Changed.
func (s *RunStore) leasedBatch(op string, h run.BatchLease) (*storedBatch, error) {
	j := s.batchOf[h.Batch]
	if j == nil || j.Status != run.Processing || h.Owner == "" || j.Owner != h.Owner || j.Epoch != h.Epoch {
		return nil, changed(op, "the batch is not this worker's any more")
	}
	return j, nil
}

func changed(op, reason string) error {
	return &fault.Error{Kind: fault.Contention, Condition: fault.Changed, Code: "changed", Op: op, Reason: reason}
}

// begin makes the row of a worker that claimed something of a run.
func (s *RunStore) begin(w run.Worker, kind string, r *storedRun) {
	row := s.workerOf[w.ID]
	if row == nil {
		row = &RunWorker{StartedAt: s.at()}
		s.workerOf[w.ID] = row
		s.workers = append(s.workers, row)
	}
	row.Worker, row.Kind, row.SysName, row.Run, row.Status, row.HeartbeatAt = w, kind, r.SysName, r.ID,
		run.WorkerRunning, s.at()
}

// end gives a running worker its last status; an unknown id is ignored.
func (s *RunStore) end(worker string, status run.WorkerStatus) {
	if w := s.workerOf[worker]; w != nil && w.Status == run.WorkerRunning {
		w.Status, w.HeartbeatAt = status, s.at()
	}
}

// beat notes that a worker lives.
func (s *RunStore) beat(worker string) {
	if w := s.workerOf[worker]; w != nil {
		w.HeartbeatAt = s.at()
	}
}

// normalizedAudits are entries as they are stored.
func normalizedAudits(audits []run.Audit) ([]run.Audit, error) {
	kept := make([]run.Audit, 0, len(audits))
	for _, a := range audits {
		k, err := a.Normalize()
		if err != nil {
			return nil, err
		}
		kept = append(kept, k)
	}
	return kept, nil
}

// statsOf counts a run's batches and documents.
func statsOf(r *storedRun) run.Stats {
	stats := run.Stats{Batches: map[run.BatchStatus]int{}, Outcomes: map[invoice.Outcome]int{}}
	for _, j := range r.batches {
		stats.Batches[j.Status]++
	}
	for _, it := range r.items {
		stats.Outcomes[it.Outcome]++
	}
	return stats
}

// cancelledStats are the numbers once the open batches have failed.
func cancelledStats(stats run.Stats) run.Stats {
	batches := maps.Clone(stats.Batches)
	for status, n := range stats.Batches {
		if status.Open() {
			delete(batches, status)
			batches[run.Failed] += n
		}
	}
	stats.Batches = batches
	return stats
}
