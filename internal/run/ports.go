package run

import (
	"context"
	"encoding/json"
	"time"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/invoice"
)

// Outgoing is a message to send.
type Outgoing struct {
	// ID identifies duplicates: 1 to 128 characters.
	ID   string
	Body []byte
	// Delay is how long the message stays invisible.
	Delay time.Duration
}

// MaxBody is the longest accepted body in bytes. Our own have about 300.
const MaxBody = 64 << 10

// Queue sends messages to one queue.
type Queue interface {
	// Send sends messages and returns one error for each; nil when the queue accepted it. With an error it may have
	// accepted it all the same. A later Send with the same ID is then dropped as a duplicate, or delivered twice.
	// Errors by kind: document, code "too_large", when this message is too large; infrastructure, throttled, quota for
	// all messages.
	Send(ctx context.Context, messages []Outgoing) []error
}

// Store persists runs: the tables run, batch, batch_item, worker, error_detail and audit_log.
//
// Every call is one transaction. Ages are measured by the database's clock. Every change is compare-and-set. A change
// that comes too late (another owner has the lease, or the status does not allow it) changes nothing. The call then
// answers so, or returns an error with condition fault.Changed (kind contention). Audit entries are written in the same
// transaction if something was changed, for the store's environment. Texts that are too long are truncated.
//
// Errors by kind, for all calls: infrastructure, throttled, quota, contention; internal for invalid arguments.
type Store interface {
	Runs
	Batches
	Recoveries
}

// Runs are the calls about runs.
type Runs interface {
	// StartRun adds a run: status running, no owner, epoch 0. If the ID exists: internal, code "run_exists".
	StartRun(ctx context.Context, r Run, a Audit) error
	// Run returns a run; false if it does not exist.
	Run(ctx context.Context, id string) (Run, bool, error)
	// ListRuns returns the latest runs of the store's environment, newest first, without Watermark; with before, the
	// runs that were started before that run. A Filter that names documents (Named) is left out, because there may be
	// thousands.
	ListRuns(ctx context.Context, before string, limit int) ([]Run, error)
	// Stats counts the run's batches and documents.
	Stats(ctx context.Context, id string) (Stats, error)
	// BatchCounts counts the run's batches by status. It is much cheaper than Stats.
	BatchCounts(ctx context.Context, id string) (map[BatchStatus]int, error)
	// ClaimRun gives a run to a manager. The run must be running, not cancelled, not handed off, at the epoch given,
	// and free. It is free without an owner, when shown (the message's epoch) is its epoch, or when its owner has been
	// silent for stale.
	//
	// A claim sets the owner, epoch + 1, a heartbeat and a worker row RUNNING. A former owner whose epoch was shown
	// released the run: its worker is IDLE. Any other former owner is lost: its worker is FAILED, lost_managers + 1.
	// False: nothing was changed.
	ClaimRun(ctx context.Context, id string, epoch, shown int, w Worker, stale time.Duration) (Run, bool, error)
	// BeatRun records a heartbeat and reports whether the run is to end.
	BeatRun(ctx context.Context, l RunLease) (cancel bool, err error)
	// Known reports which of the documents the run already has.
	Known(ctx context.Context, run string, documents []string) (map[string]bool, error)
	// AddChunk adds batches (attempt FirstAttempt) with their items, and sets the watermark, the counts and the
	// earliest time of the next chunk. It records a heartbeat and resets lost_managers. The caller passes one
	// BATCH_CREATED entry for each batch. Condition Changed when the lease is lost, First is not the next number, or
	// the run is to end. If the run already has a document: internal, code "bug".
	AddChunk(ctx context.Context, l RunLease, c Chunk, audits ...Audit) error
	// EndHandOff records that all is handed off and releases the run: worker COMPLETED, lost_managers 0.
	EndHandOff(ctx context.Context, l RunLease, a Audit) error
	// ReleaseRun releases the run for another manager: worker IDLE. lost_managers stays.
	ReleaseRun(ctx context.Context, l RunLease) error
	// CompleteRun ends a running run that is handed off and has no open batch. It becomes completed, or
	// completed_with_failures when Stats.Failed. A run that is to end becomes cancelled when none of its processing
	// batches has a heartbeat younger than stale. Its open batches become failed, error "cancelled". A manager that
	// still has the run: worker COMPLETED. Otherwise false, and nothing is changed. audit makes the entry from the
	// counts.
	CompleteRun(ctx context.Context, id string, stale time.Duration, audit func(RunStatus, Stats) Audit) (bool, error)
	// CancelRun asks a running run to end; false when it is not running.
	CancelRun(ctx context.Context, id string, a Audit) (bool, error)
	// FailRun fails a running run that is not handed off and has no manager, or one that has been silent for stale.
	// That manager's worker becomes FAILED. Otherwise false.
	FailRun(ctx context.Context, id, reason string, stale time.Duration, a Audit) (bool, error)
	// ResumeRun makes a failed or cancelled run running again: not cancelled, no owner, not handed off, no end, no
	// error, epoch + 1, lost_managers 0. Its unfinished batches and those that failed by the cancellation become
	// pending_retry as in RequeueBatch, because their messages were dropped meanwhile. Unfinished are pending_queue,
	// queued and pending_retry ones. False when the run is neither failed nor cancelled.
	ResumeRun(ctx context.Context, id string, a Audit) (bool, error)
}

// Batches are the calls about batches. Every call of any interface that ends a batch also sets its success_count and
// failure_count from the outcomes in the database.
type Batches interface {
	// ClaimBatch gives a batch to a worker: a pending_queue, pending_retry or queued one, or a processing one that is
	// free as in ClaimRun. A lost worker adds one to lost_workers. A ticket with another attempt than the batch's
	// gets nothing, nor does one for a batch of another environment. A claim sets status processing, owner, epoch + 1,
	// heartbeat, the process_start_time of the first claim, and a worker row RUNNING. The entry is written for the
	// first claim and when a worker was lost. Otherwise nothing is changed.
	ClaimBatch(ctx context.Context, id string, t Ticket, w Worker, stale time.Duration, a Audit) (Claimed, error)
	// BeatBatch records a heartbeat and reports whether the run is to end.
	BeatBatch(ctx context.Context, l BatchLease) (cancel bool, err error)
	// SaveOutcomes stores the outcomes of the batch's documents, over earlier ones, and their error details. The
	// worker's documents_processed grows by as many. At most 100 of each.
	SaveOutcomes(ctx context.Context, l BatchLease, outcomes []ItemOutcome, details []ErrorDetail) error
	// FinishBatch counts the outcomes in the database and ends the batch. It is completed when every document has one.
	// Otherwise it is failed, with an error that says what is missing. Worker COMPLETED or FAILED. audit makes the
	// entry from the counts.
	FinishBatch(ctx context.Context, l BatchLease, audit func(BatchStats) Audit) (BatchStats, error)
	// ReleaseBatch releases the batch for the next message: it stays processing, without owner and heartbeat; worker
	// IDLE.
	ReleaseBatch(ctx context.Context, l BatchLease, audits ...Audit) error
	// FailBatch fails the batch: worker FAILED.
	FailBatch(ctx context.Context, l BatchLease, reason string, a Audit) error
	// Batch returns a batch with at most 100 error details, latest first; false if it does not exist.
	Batch(ctx context.Context, id string) (Batch, []ErrorDetail, bool, error)
	// ListBatches returns a run's batches by number; without a run, the latest of all runs. An empty status means any.
	// With after, the id of a batch, only those behind it.
	ListBatches(ctx context.Context, run string, status BatchStatus, after string, limit int) ([]Batch, error)
	// Items returns documents of a run with their outcomes, in the order of their keys, after afterKey ("" starts).
	// Without outcomes it returns all.
	Items(ctx context.Context, run string, outcomes []invoice.Outcome, afterKey string,
		limit int) ([]ItemOutcome, error)
	// RequeueBatch makes a failed batch pending_retry: epoch + 1, attempt + 1, no queue attempts, no error,
	// lost_workers 0. A run that had completed runs again and is not handed off any more, so that a manager sends the
	// message. False when the batch is not failed, or its run was cancelled or failed.
	RequeueBatch(ctx context.Context, id string, a Audit) (bool, error)
	// DeadLetter fails a batch whose message of an attempt is a dead letter. It leaves a batch alone that has ended,
	// has another attempt, has a worker that was silent for less than stale, or whose run is purged or of another
	// environment. False when nothing was changed.
	DeadLetter(ctx context.Context, id string, attempt int, reason string, stale time.Duration, a Audit) (bool, error)
	// Write adds an entry to the audit log.
	Write(ctx context.Context, a Audit) error
}

// Recoveries are the calls of the hand-off and of the timer about messages.
type Recoveries interface {
	// Unsent returns the run's pending_queue batches, by number.
	Unsent(ctx context.Context, run string, limit int) ([]Batch, error)
	// MarkQueued makes batches queued whose message was accepted: pending_queue and pending_retry ones that still have
	// the attempt. It returns how many changed. If l still has the run, lost_managers is 0 again. An empty lease is
	// Recovery's.
	MarkQueued(ctx context.Context, l RunLease, batches []Batch) (int, error)
	// MarkUnsent makes batches pending_retry whose message was not accepted: pending_queue, pending_retry and queued
	// ones that still have the attempt. It sets attempt + 1 and last_queue_error. With counted, queue_attempt_count
	// grows; at MaxQueueAttempts the batch fails with MaxQueueError, and audit makes its entry.
	MarkUnsent(ctx context.Context, batches []Batch, reason string, counted bool,
		audit func(Batch) Audit) (retry, failed int, err error)
	// ToSend returns pending_retry batches of running runs that are not to end, by run and number.
	ToSend(ctx context.Context, sysName string, limit int) ([]Batch, error)
	// OnTheWay counts the outstanding batches of all running runs of the environment, and the runs that share the
	// limit.
	OnTheWay(ctx context.Context, sysName string) (OnTheWay, error)
	// RequeueSilent makes queued batches pending_retry (attempt + 1) whose message counts as lost. They have been
	// queued for silent. A batch of a running run that was queued later was claimed at least silent ago, so the queue
	// has passed them. If nothing of the environment was queued or claimed for silent, only the first of them is
	// requeued. It returns how many changed.
	RequeueSilent(ctx context.Context, sysName string, silent time.Duration, limit int) (int, error)
	// Rescue makes processing batches pending_retry (attempt + 1, no owner). It takes those whose worker has been
	// silent for stale (lost_workers + 1), and those released for at least released. RUNNING workers of these batches,
	// and RUNNING workers silent for stale, become FAILED. It returns how many batches and workers changed.
	Rescue(ctx context.Context, sysName string, stale, released time.Duration,
		limit int) (batches, workers int, err error)
	// OpenRuns returns the environment's running runs, oldest first, without Filter, Watermark and Counts.
	OpenRuns(ctx context.Context, sysName string, limit int) ([]Run, error)
}

// MaxQueueAttempts is how often the queue may refuse a batch's message before the batch fails.
const MaxQueueAttempts = 3

// MaxQueueError is the error of a batch that failed by MaxQueueAttempts (docs/requirements.md R72).
const MaxQueueError = "Max queue retries exceeded"

// CancelledError is the error of a batch whose run was cancelled before the batch was claimed.
const CancelledError = "cancelled"

// Reports answers the monitoring queries (docs/requirements.md R85) for one environment.
type Reports interface {
	// Names returns all reports in reading order. It does not ask the database.
	Names() []ReportName
	// Report runs the report with the name. If no report has it: internal, code "no_report".
	Report(ctx context.Context, name string) (Table, error)
}

// ReportName describes a report.
type ReportName struct {
	Name string `json:"name"`
	// Meaning says in one line what it answers.
	Meaning string `json:"meaning"`
}

// Table is the answer of a report.
type Table struct {
	Columns []string `json:"columns"`
	// Rows have one value for each column: a text, a number or nil.
	Rows [][]any `json:"rows"`
}

// Breaker guards SQL: *breaker.Breaker.
type Breaker interface {
	// Permit returns nil when work that concerns no document may use SQL now. While the breaker is open it returns an
	// infrastructure error (code "breaker_open" or "paused"; RetryAfter is the wait). When a probe is due it sends the
	// probe (a heartbeat) and answers by its result. The breaker does not learn what SQL then answers to the caller.
	Permit(ctx context.Context) error
	// ClosedSince returns since when the breaker has been closed without a break, as far as this process knows; false
	// while it is not closed.
	ClosedSince(ctx context.Context) (time.Time, bool)
}

// Committer writes documents to SQL and records the results: *commit.Commit.
type Committer interface {
	Run(ctx context.Context, b commit.Delivery) (commit.Report, error)
}

// Documents reads documents: the part of commit.Documents that a worker needs.
type Documents interface {
	ReadMany(ctx context.Context, ids []string) ([]json.RawMessage, error)
}
