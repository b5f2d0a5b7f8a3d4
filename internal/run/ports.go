package run

import (
	"context"
	"encoding/json"
	"time"

	"sqlwriter/internal/commit"
)

// Selection finds the documents of a run, page by page and from where it stopped.
type Selection interface {
	// Page gives some documents that match, and the continuation of the next page: "" continues nothing and begins, and is
	// answered when there are no more. A page may be empty and have a next one. Pages are of at most 1,000 documents, in no order. What
	// changes meanwhile may be missed or come twice. Statuses are matched as commit.Backlog matches them.
	// Errors by kind: document, code "continuation", when the continuation is none (any more): begin again; infrastructure,
	// throttled.
	Page(ctx context.Context, q Query, continuation string) (found []commit.PendingDoc, next string, err error)
}

// Outgoing is one message on its way.
type Outgoing struct {
	// ID is what duplicates are recognised by: 1 to 128 characters.
	ID   string
	Body []byte
	// Delay is how long it stays invisible; 0 means not at all.
	Delay time.Duration
}

// MaxBody is the longest body of a message in bytes. Ours have some 300.
const MaxBody = 64 << 10

// Queue sends messages to one queue.
type Queue interface {
	// Send sends messages and answers one error for each of them: nil when the queue has it. With an error it may have it all
	// the same, and a later Send of the same ID is then dropped by the queue or comes twice.
	// Errors by kind: document, code "too_large", when the message alone is too large; infrastructure, throttled, quota for
	// what concerns them all.
	Send(ctx context.Context, messages []Outgoing) []error
}

// Store keeps the books of runs: the tables run, job, batch_item, worker, error_detail and audit_log.
//
// Every call is one transaction, all or nothing. Ages are by the database's clock. Every change is compare-and-set: one that
// comes too late (another has the lease or the hold, or the status is not one that it may change from) changes nothing and is
// answered so, where it needs one by an error with condition fault.Changed (kind contention). Entries of the audit log given
// along are written in the same transaction if something was changed, as the store's environment's. What is too long is clipped.
// All calls: errors by kind infrastructure, throttled, quota, contention; internal for arguments that cannot be.
type Store interface {
	Runs
	Batches
	Recoveries
}

// Runs are the calls about runs.
type Runs interface {
	// StartRun adds a run with status running, no owner, epoch 0. One with the ID exists: internal, code "run_exists".
	StartRun(ctx context.Context, r Run, a Audit) error
	// Run gives one; false when there is none.
	Run(ctx context.Context, id string) (Run, bool, error)
	// ListRuns gives the latest of the store's environment, newest first: those that one process does
	// alone, too. They have no Watermark, and no Filter that names documents (Named), which may be thousands; only of those that
	// one process does alone they do.
	ListRuns(ctx context.Context, limit int) ([]Run, error)
	// Stats counts its batches and documents.
	Stats(ctx context.Context, id string) (Stats, error)
	// BatchCounts counts its batches by status: of a long run that is much less to count than Stats.
	BatchCounts(ctx context.Context, id string) (map[BatchStatus]int, error)
	// ClaimRun gives the run to a manager, if it is running, not to be cancelled, not handed off, still has the epoch, and is free.
	// It is free when it has no owner, when shown (the epoch in the message) is its epoch, or when its owner has said nothing for
	// stale. Owner, epoch + 1, heartbeat, a worker row RUNNING. An owner whose epoch was shown let go: its worker is IDLE. Any
	// other former owner is lost: its worker is FAILED, lost_managers + 1. Otherwise false, and nothing is changed.
	ClaimRun(ctx context.Context, id string, epoch, shown int, w Worker, stale time.Duration) (Run, bool, error)
	// BeatRun says that the manager lives and tells whether somebody asked to end the run.
	BeatRun(ctx context.Context, l RunLease) (cancel bool, err error)
	// Known answers which of the documents the run has already.
	Known(ctx context.Context, run string, documents []string) (map[string]bool, error)
	// AddChunk adds the batches (attempt FirstAttempt) with their items and sets the watermark, the counts and when the next
	// chunk may come; a heartbeat too; lost_managers is 0 again. One entry BATCH_CREATED for each batch is the caller's to give.
	// Condition Changed when the lease is lost, First is not the next number, or the run is to end. A document that the run has
	// already: internal, code "known".
	AddChunk(ctx context.Context, l RunLease, c Chunk, audits ...Audit) error
	// EndHandOff says that there is nothing more to hand off, and lets go of the run: worker COMPLETED; lost_managers is 0
	// again.
	EndHandOff(ctx context.Context, l RunLease, a Audit) error
	// ReleaseRun lets go of the run for another to go on: worker IDLE; lost_managers stays.
	ReleaseRun(ctx context.Context, l RunLease) error
	// CompleteRun ends a running run when it is handed off and has no open batch: completed, or completed_with_failures when a batch
	// failed or has documents that failed or were deferred. It ends as cancelled when somebody asked for that and no batch of it is
	// processing with a heartbeat younger than stale: its open batches become failed, error "cancelled". False when it is neither,
	// and nothing is changed. A manager that still has it: worker COMPLETED. audit makes the entry of the numbers.
	CompleteRun(ctx context.Context, id string, stale time.Duration, audit func(RunStatus, Stats) Audit) (bool, error)
	// CancelRun asks a running run to end; false when no such run is running.
	CancelRun(ctx context.Context, id string, a Audit) (bool, error)
	// FailRun ends a running run that is not handed off and whose manager is none or has said nothing for stale: failed,
	// with the reason; that manager's worker FAILED. False when it is not so.
	FailRun(ctx context.Context, id, reason string, stale time.Duration, a Audit) (bool, error)
	// ResumeRun makes a failed or cancelled run running again: cancel 0, no owner, not handed off, ended_at and error empty,
	// epoch + 1; lost_managers is 0 again. Its batches that failed because it was cancelled, and its pending_queue, queued and pending_retry
	// ones, become pending_retry as RequeueBatch makes them: what came of their messages while it had ended was answered Ended, and
	// is gone. False when it is neither.
	ResumeRun(ctx context.Context, id string, a Audit) (bool, error)
}

// Batches are the calls about batches. Whatever ends a batch, of this interface or the others, sets success_count and failure_count
// to the outcomes that its documents have in the database.
type Batches interface {
	// ClaimBatch gives a batch to a worker: pending_queue, pending_retry or queued ones; processing ones that are free as a run is
	// (ClaimRun; a lost worker adds one to lost_workers). A ticket with an earlier attempt than the batch's gets nothing. Status
	// processing, owner, epoch + 1, heartbeat, process_start_time (of the first claim), a worker row RUNNING. The entry is written
	// with the first claim and over a lost worker. Otherwise nothing is changed.
	ClaimBatch(ctx context.Context, id string, t Ticket, w Worker, stale time.Duration, a Audit) (Claimed, error)
	// BeatBatch says that the worker lives and tells whether somebody asked to end the run.
	BeatBatch(ctx context.Context, l BatchLease) (cancel bool, err error)
	// SaveOutcomes keeps the outcomes of documents of the batch, over those that they have, and their error details; the
	// worker's documents_processed grows by as many. At most 100 of each.
	SaveOutcomes(ctx context.Context, l BatchLease, outcomes []ItemOutcome, details []ErrorDetail) error
	// FinishBatch counts the outcomes in the database and ends the batch: completed when every document has one, otherwise
	// failed with an error that says what is missing. Worker COMPLETED or FAILED. audit makes the entry of the numbers.
	FinishBatch(ctx context.Context, l BatchLease, audit func(BatchStats) Audit) (BatchStats, error)
	// ReleaseBatch lets go of the batch for the next message: it stays processing, without owner and heartbeat; worker IDLE.
	ReleaseBatch(ctx context.Context, l BatchLease, audits ...Audit) error
	// FailBatch gives the batch up: failed, worker FAILED.
	FailBatch(ctx context.Context, l BatchLease, reason string, a Audit) error
	// Batch gives one with its error details (at most 100, the latest first); false when there is none.
	Batch(ctx context.Context, id string) (Batch, []ErrorDetail, bool, error)
	// ListBatches gives batches of a run by number (of all runs: the latest first), those with the status if one is given.
	ListBatches(ctx context.Context, run string, status BatchStatus, limit int) ([]Batch, error)
	// Items gives documents of a run that come after a document's key, by key, with their outcomes; "" begins. Outcomes, if any are
	// given, are those that are wanted.
	Items(ctx context.Context, run string, outcomes []Outcome, afterKey string, limit int) ([]ItemOutcome, error)
	// RequeueBatch makes a failed batch pending_retry: epoch + 1, attempt + 1, no queue attempts, no error; lost_workers is 0 again. Its
	// run runs again if it had ended, and is not handed off any more: a manager sends the message. False when the batch is not
	// failed, or its run was cancelled or failed.
	RequeueBatch(ctx context.Context, id string, a Audit) (bool, error)
	// DeadLetter ends a batch whose message of an attempt is a dead letter: failed, with the reason; not a completed or failed
	// one, one with a later attempt (another message of it is on its way), nor one whose worker has said something within
	// stale. False when nothing was changed.
	DeadLetter(ctx context.Context, id string, attempt int, reason string, stale time.Duration, a Audit) (bool, error)
	// Write adds an entry to the audit log.
	Write(ctx context.Context, a Audit) error
}

// Recoveries are the calls of the hand-off and of the timer about messages.
type Recoveries interface {
	// Unsent gives the run's batches that are pending_queue, by number.
	Unsent(ctx context.Context, run string, limit int) ([]Batch, error)
	// MarkQueued makes batches queued whose message was accepted: pending_queue and pending_retry ones that still have
	// the attempt. It answers how many were changed. l is the lease of the manager that sent the messages: while that has the
	// run, lost_managers is 0 again. Without a run it is nobody's, and whose it is changes nothing else.
	MarkQueued(ctx context.Context, l RunLease, batches []Batch) (int, error)
	// MarkUnsent makes batches pending_retry whose message was not accepted: pending_queue, pending_retry and queued ones
	// that still have the attempt; attempt + 1, last_queue_error. counted adds to queue_attempt_count, and at MaxQueueAttempts the
	// batch is failed, error "Max queue retries exceeded"; audit makes the entry of each of those, of the batch as it is then. It
	// answers how many became pending_retry and how many failed.
	MarkUnsent(ctx context.Context, batches []Batch, reason string, counted bool, audit func(Batch) Audit) (retry, failed int, err error)
	// ToSend gives batches of running runs, that are not to end, whose message is to be sent again (pending_retry); grouped by
	// run, by number.
	ToSend(ctx context.Context, sysName string, limit int) ([]Batch, error)
	// OnTheWay counts the batches of all running runs of the environment that are on their way, and the runs that share it.
	OnTheWay(ctx context.Context, sysName string) (OnTheWay, error)
	// RequeueSilent makes queued batches pending_retry (attempt + 1) whose message is taken for lost. They have been queued for silent.
	// And a batch of a running run of the environment that was queued later was claimed, silent ago or longer: the queue has
	// passed them. Or nothing of the environment was queued or claimed for silent: then the first of them alone. It answers how
	// many.
	RequeueSilent(ctx context.Context, sysName string, silent time.Duration, limit int) (int, error)
	// Rescue makes processing batches pending_retry (attempt + 1, no owner) whose worker has said nothing for stale
	// (lost_workers + 1), or that were let go of for released and longer; their RUNNING workers FAILED, and RUNNING workers that
	// have said nothing for stale, too. It answers how many batches and workers.
	Rescue(ctx context.Context, sysName string, stale, released time.Duration, limit int) (batches, workers int, err error)
	// OpenRuns gives the running runs of the environment that have a pattern, oldest first, without Filter, Watermark and
	// Counts.
	OpenRuns(ctx context.Context, sysName string, limit int) ([]Run, error)
}

// MaxQueueAttempts is how often a queue may refuse a batch's message.
const MaxQueueAttempts = 3

// MaxQueueError is the error of a batch whose message was refused too often (docs/requirements.md R72).
const MaxQueueError = "Max queue retries exceeded"

// CancelledError is the error of a batch whose run was cancelled before it began.
const CancelledError = "cancelled"

// Reports answers the monitoring queries (docs/requirements.md R85) for one environment: what belongs to the runs of others is
// not in them.
type Reports interface {
	// Names are all reports, in the order in which an operator reads them. Nothing is asked for it.
	Names() []ReportName
	// Report runs one by name. No such: internal, code "no_report".
	Report(ctx context.Context, name string) (Table, error)
}

// ReportName is a report for people.
type ReportName struct {
	Name string `json:"name"`
	// Meaning says in a line what it answers.
	Meaning string `json:"meaning"`
}

// Table is the answer of a report.
type Table struct {
	Columns []string `json:"columns"`
	// Rows have one value for each column: a text, a number or nil.
	Rows [][]any `json:"rows"`
}

// Breaker stands between the program and SQL: *breaker.Breaker.
type Breaker interface {
	// Permit answers nil when what concerns no document may use SQL now. While the breaker is open it refuses with an
	// infrastructure error (code "breaker_open" or "paused", RetryAfter = the wait); when a probe is due it makes it (a heartbeat)
	// and answers by it. What SQL then answers to the caller is reported to nobody.
	Permit(ctx context.Context) error
	// ClosedSince is since when SQL can be used without a break, as far as this process knows; false while it cannot.
	ClosedSince(ctx context.Context) (time.Time, bool)
}

// Committer takes documents to SQL and records what became of them: *commit.Commit.
type Committer interface {
	Run(ctx context.Context, b commit.Batch) (commit.Report, error)
}

// Documents reads documents: the part of commit.Documents that a worker needs.
type Documents interface {
	ReadMany(ctx context.Context, ids []string) ([]json.RawMessage, error)
}
