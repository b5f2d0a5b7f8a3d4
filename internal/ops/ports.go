package ops

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"sqlwriter/internal/run"
)

// Run is one run that one process executes alone.
type Run struct {
	// ID is chosen by the caller and unique.
	ID string `json:"id"`
	// Kind is "reprocess".
	Kind string `json:"kind"`
	// Filter is the request as JSON.
	Filter json.RawMessage `json:"filter,omitempty"`
	// Matched is how many documents it takes. AtLeast says that more match, which it leaves.
	Matched int  `json:"matched,omitempty"`
	AtLeast bool `json:"at_least,omitempty"`
	// RequestedBy and Why are the operator's words.
	RequestedBy string    `json:"requested_by"`
	Why         string    `json:"why"`
	Status      RunStatus `json:"status"`
	// Cancel says that an operator asked the run to end.
	Cancel bool `json:"cancel,omitempty"`
	// Counts is documents by outcome.
	Counts map[string]int `json:"counts"`
	// StartedAt and EndedAt are by the database's clock, in UTC; EndedAt is zero while it runs.
	StartedAt time.Time `json:"started_at"`
	EndedAt   time.Time `json:"ended_at,omitzero"`
}

// RunStatus is the state of a run.
type RunStatus = run.RunStatus

// The statuses of a run that one process does alone.
const (
	Running   = run.RunRunning
	Completed = run.RunCompleted
	// CompletedWithFailures: it tried all its documents, and one or more failed or were deferred.
	CompletedWithFailures = run.RunCompletedWithFailures
	Cancelled             = run.RunCancelled
	// Stopped: a deadline or an outage ended it early. The same request continues with the rest.
	Stopped = run.RunStopped
)

// Audit is an entry of the audit log. Only reading fills At (the database's clock), Level and Batch.
type Audit struct {
	At time.Time `json:"at"`
	// Level is that of an entry about a run with workers (run.LevelInfo, ...); other entries have none.
	Level string `json:"level,omitempty"`
	// Action is "reprocess", "mark-committed", "cancel", one of run.Codes, or one of the Flow actions.
	Action string `json:"action"`
	// By and Why are the operator's words. Subject is the id of the document or run.
	By      string `json:"by"`
	Why     string `json:"why"`
	Subject string `json:"subject,omitempty"`
	// Run and Batch are the ids that it concerns; both may be empty. Builds without batches wrote neither.
	Run   string `json:"run,omitempty"`
	Batch string `json:"batch,omitempty"`
	// Detail is JSON, without content of documents.
	Detail json.RawMessage `json:"detail,omitempty"`
}

// AuditQuery selects entries of the audit log. By default these are the Notable ones.
type AuditQuery struct {
	// Run and Batch are the ids that it concerns; both may be empty.
	Run string `json:"run,omitempty"`
	// Action bounds them to those of one action, spelled as it is, Notable or not; empty means any.
	Action string `json:"action,omitempty"`
	// All adds those that are not Notable.
	All   bool `json:"all,omitempty"`
	Limit int  `json:"limit,omitempty"`
}

// Notable reports whether an entry is for people: an operator's action, a warning or an error. The rest are routine steps of managers,
// workers and timers, three or more for each batch.
func (a Audit) Notable() bool {
	return a.Level == "" || a.Level == run.LevelWarn || a.Level == run.LevelError || slices.Contains(PeopleCodes(), a.Action)
}

// PeopleCodes are the codes that only operators cause.
func PeopleCodes() []string {
	return []string{run.CodeRunStart, run.CodeRunCancel, run.CodeRunResume, run.CodeBatchRequeue}
}

// AuditLog stores an environment's audit log and the runs that one process executes alone. Environments may share the tables; a run of
// another one counts as missing. Entries are stored as Run.Normalize and Audit.Normalize return them. Errors by kind, for all calls:
// infrastructure, throttled, quota, contention.
type AuditLog interface {
	// Write adds an entry.
	Write(ctx context.Context, a Audit) error
	// Start adds a running run and its audit entry in one transaction. If the ID exists: internal, code "run_exists".
	Start(ctx context.Context, r Run, a Audit) error
	// Progress replaces the counts of a running run and reports whether it is to end. If no such run is running: internal, code
	// "no_run".
	Progress(ctx context.Context, id string, counts map[string]int) (cancel bool, err error)
	// End sets the last status and counts of a running run. For any other run it changes nothing.
	End(ctx context.Context, id string, status RunStatus, counts map[string]int) error
	// Cancel asks a running run to end and adds the entry; false when it is not running.
	Cancel(ctx context.Context, id string, a Audit) (bool, error)
	// Audits returns the latest matching entries, newest first, at most q.Limit, also those about runs with workers.
	Audits(ctx context.Context, q AuditQuery) ([]Audit, error)
}

// RunStore is the part of run.Store that operators need, with the same contract.
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
