package ops

import (
	"context"
	"encoding/json"
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
type RunStatus string

// The statuses of a run.
const (
	Running   RunStatus = "running"
	Completed RunStatus = "completed"
	Cancelled RunStatus = "cancelled"
	// Stopped: it ended before its work did (a deadline, an outage); asked for again it goes on with what is left.
	Stopped RunStatus = "stopped"
)

// Audit is one entry of the audit log: who did what, and why. At is by the database's clock, filled when read.
type Audit struct {
	At time.Time `json:"at"`
	// Action is what was done: "reprocess", "pause", "resume", "mark-committed", "cancel".
	Action string `json:"action"`
	// By and Why are the operator's words; Subject is what it was done to: a document's id, a run's.
	By      string `json:"by"`
	Why     string `json:"why"`
	Subject string `json:"subject,omitempty"`
	// Detail is more, as JSON; never content of documents.
	Detail json.RawMessage `json:"detail,omitempty"`
}

// Journal keeps runs and the audit log. All calls: errors by kind infrastructure, throttled, quota, contention. What is
// kept is what Run.Kept and Audit.Kept answer: words that are too long are clipped, and what those refuse is refused.
type Journal interface {
	// Write adds an entry to the audit log.
	Write(ctx context.Context, a Audit) error
	// Start adds a run with status running and its entry to the audit log, both or neither. A run with the ID exists: kind
	// internal, code "run_exists".
	Start(ctx context.Context, r Run, a Audit) error
	// Progress replaces the counts of a run that is running and tells whether somebody asked to end it.
	// No such run, or it has ended: kind internal, code "no_run".
	Progress(ctx context.Context, id string, counts map[string]int) (cancel bool, err error)
	// End gives a running run its last status and counts. Ending one that has ended, or
	// is not there, changes nothing.
	End(ctx context.Context, id string, status RunStatus, counts map[string]int) error
	// Cancel asks a running run to end, with an entry in the audit log; false when no such run is running.
	Cancel(ctx context.Context, id string, a Audit) (bool, error)
	// Runs gives the latest runs, newest first, at most limit.
	Runs(ctx context.Context, limit int) ([]Run, error)
	// Audits gives the latest entries, newest first, at most limit.
	Audits(ctx context.Context, limit int) ([]Audit, error)
}

// RunBooks is what operators need of the books of runs that managers and workers do. The contract is run.Store's.
type RunBooks interface {
	StartRun(ctx context.Context, r run.Run, a run.Audit) error
	Run(ctx context.Context, id string) (run.Run, bool, error)
	ListRuns(ctx context.Context, limit int) ([]run.Run, error)
	Stats(ctx context.Context, id string) (run.Stats, error)
	JobCounts(ctx context.Context, id string) (map[run.Status]int, error)
	CancelRun(ctx context.Context, id string, a run.Audit) (bool, error)
	ResumeRun(ctx context.Context, id string, a run.Audit) (bool, error)
	Job(ctx context.Context, id string) (run.Job, []run.ErrorDetail, bool, error)
	ListJobs(ctx context.Context, runID string, status run.Status, limit int) ([]run.Job, error)
	Items(ctx context.Context, runID, afterKey string, limit int) ([]run.ItemOutcome, error)
	RequeueJob(ctx context.Context, id string, a run.Audit) (bool, error)
}
