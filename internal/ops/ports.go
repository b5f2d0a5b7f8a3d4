package ops

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"sqlwriter/internal/run"
)

// Run is one long action of an operator: one row, from its request to its receipt.
type Run struct {
	// ID is chosen by the caller and unique.
	ID string `json:"id"`
	// Kind is what it does: "reprocess".
	Kind string `json:"kind"`
	// Filter is what was asked for, as JSON.
	Filter json.RawMessage `json:"filter,omitempty"`
	// Matched is how many documents it takes; with AtLeast there are more, which it leaves.
	Matched int  `json:"matched,omitempty"`
	AtLeast bool `json:"at_least,omitempty"`
	// RequestedBy and Why are the operator's words.
	RequestedBy string `json:"requested_by"`
	Why         string `json:"why"`
	// Status is one of the statuses below.
	Status RunStatus `json:"status"`
	// Cancel says that somebody asked to end it.
	Cancel bool `json:"cancel,omitempty"`
	// Counts is how many documents ended how.
	Counts map[string]int `json:"counts"`
	// StartedAt and EndedAt are by the database's clock, UTC; EndedAt is zero while it runs.
	StartedAt time.Time `json:"started_at"`
	EndedAt   time.Time `json:"ended_at,omitzero"`
}

// RunStatus is where a run is.
type RunStatus = run.RunStatus

// The statuses of a run that one process does alone.
const (
	Running   = run.RunRunning
	Completed = run.RunCompleted
	// CompletedWithFailures: it took all its documents, and something is left to do for one or more of them.
	CompletedWithFailures = run.RunCompletedWithFailures
	Cancelled             = run.RunCancelled
	// Stopped: it ended before its work did (a deadline, an outage); asked for again it goes on with what is left.
	Stopped = run.RunStopped
)

// Audit is one entry of the audit log: who did what, and why. At is by the database's clock; At, Level and Batch are filled when
// read.
type Audit struct {
	At time.Time `json:"at"`
	// Level is that of an entry about a run that workers do: run.LevelInfo and the others. The others have none.
	Level string `json:"level,omitempty"`
	// Action is what was done: "reprocess", "mark-committed", "cancel", one of run.Codes, or FlowPaused and its like.
	Action string `json:"action"`
	// By and Why are the operator's words; Subject is what it was done to: a document's id, a run's.
	By      string `json:"by"`
	Why     string `json:"why"`
	Subject string `json:"subject,omitempty"`
	// Run and Batch are the ids of what it is about; empty when it is about none. Entries of builds that had no batches name neither.
	Run   string `json:"run,omitempty"`
	Batch string `json:"batch,omitempty"`
	// Detail is more, as JSON; never content of documents.
	Detail json.RawMessage `json:"detail,omitempty"`
}

// AuditQuery asks for entries of the audit log: the Notable ones, unless it says otherwise.
type AuditQuery struct {
	// Run bounds them to those about one run; empty means any.
	Run string `json:"run,omitempty"`
	// Action bounds them to those of one action, spelled as it is, Notable or not; empty means any.
	Action string `json:"action,omitempty"`
	// All adds those that are not Notable.
	All   bool `json:"all,omitempty"`
	Limit int  `json:"limit,omitempty"`
}

// Notable reports whether an entry is for people: what a person did, and every warning and error. The rest are the steps of managers,
// workers and timers, three and more for each batch.
func (a Audit) Notable() bool {
	return a.Level == "" || a.Level == run.LevelWarn || a.Level == run.LevelError || slices.Contains(PeopleCodes(), a.Action)
}

// PeopleCodes are the codes of what only people do to runs and batches.
func PeopleCodes() []string {
	return []string{run.CodeRunStart, run.CodeRunCancel, run.CodeRunResume, run.CodeBatchRequeue}
}

// AuditLog keeps an environment's runs that one process does alone, and its audit log. The tables may be shared: a run of another
// environment is none. What is kept is what Run.Normalize
// and Audit.Normalize answer: words that are too long are clipped, and what those refuse is refused. All calls: errors by kind
// infrastructure, throttled, quota, contention.
type AuditLog interface {
	// Write adds an entry to the audit log.
	Write(ctx context.Context, a Audit) error
	// Start adds a run with status running and its entry to the audit log, which is about it, both or neither. A run with the ID
	// exists: kind internal, code "run_exists".
	Start(ctx context.Context, r Run, a Audit) error
	// Progress replaces the counts of a run that is running and tells whether somebody asked to end it.
	// No such run, or it has ended: kind internal, code "no_run".
	Progress(ctx context.Context, id string, counts map[string]int) (cancel bool, err error)
	// End gives a running run its last status and counts. Ending one that has ended, or is not there, changes nothing.
	End(ctx context.Context, id string, status RunStatus, counts map[string]int) error
	// Cancel asks a running run to end, with an entry about it in the audit log; false when no such run is running.
	Cancel(ctx context.Context, id string, a Audit) (bool, error)
	// Audits gives the latest entries that are asked for, newest first, at most q.Limit: those about runs that workers do, too.
	Audits(ctx context.Context, q AuditQuery) ([]Audit, error)
}

// RunStore is what operators need of the books of runs that managers and workers do. The contract is run.Store's.
type RunStore interface {
	StartRun(ctx context.Context, r run.Run, a run.Audit) error
	Run(ctx context.Context, id string) (run.Run, bool, error)
	ListRuns(ctx context.Context, limit int) ([]run.Run, error)
	Stats(ctx context.Context, id string) (run.Stats, error)
	BatchCounts(ctx context.Context, id string) (map[run.BatchStatus]int, error)
	CancelRun(ctx context.Context, id string, a run.Audit) (bool, error)
	ResumeRun(ctx context.Context, id string, a run.Audit) (bool, error)
	Batch(ctx context.Context, id string) (run.Batch, []run.ErrorDetail, bool, error)
	ListBatches(ctx context.Context, runID string, status run.BatchStatus, limit int) ([]run.Batch, error)
	Items(ctx context.Context, runID string, outcomes []run.Outcome, afterKey string, limit int) ([]run.ItemOutcome, error)
	RequeueBatch(ctx context.Context, id string, a run.Audit) (bool, error)
}
