package run

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"time"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/invoice"
)

// Run is a row of the table run.
type Run struct {
	// ID is chosen by the caller and unique: 1 to 64 visible ASCII characters.
	ID      string `json:"id"`
	SysName string `json:"sys_name"`
	Kind    Kind   `json:"kind"`
	// Filter is the request (Filter) as JSON. It may name thousands of documents, so not every call returns it.
	Filter json.RawMessage `json:"filter,omitempty"`
	// Named is how many documents the filter names. The store counts them at the start.
	Named int `json:"ids_named,omitempty"`
	// Rate is documents handed off per minute; Limit bounds their number. 0 means no bound.
	Rate  int `json:"rate_per_minute,omitempty"`
	Limit int `json:"limit,omitempty"`
	// Matched is how many documents the preview found, at most Limit; AtLeast says that there may be more. 0: not
	// counted.
	Matched int  `json:"matched,omitempty"`
	AtLeast bool `json:"at_least,omitempty"`
	// RequestedBy and Why are the operator's words.
	RequestedBy string    `json:"requested_by"`
	Why         string    `json:"why"`
	Status      RunStatus `json:"status"`
	// Cancel says that an operator asked the run to end.
	Cancel bool `json:"cancel,omitempty"`
	// Error is why the run failed.
	Error string `json:"error,omitempty"`
	// Watermark is the position of the search; opaque to the store. Documents and Batches count those that have rows.
	Watermark string `json:"-"`
	Documents int    `json:"documents"`
	Batches   int    `json:"batches"`
	// Owner is the manager; empty without one. Epoch grows by one with every claim.
	Owner string `json:"owner,omitempty"`
	Epoch int    `json:"epoch"`
	// LostManagers counts managers lost in a row since one handed off a batch, or since a resume.
	LostManagers int `json:"lost_managers,omitempty"`
	// The times are by the database's clock, in UTC; zero when not reached.
	StartedAt   time.Time `json:"started_at"`
	HandedOffAt time.Time `json:"handed_off_at,omitzero"`
	EndedAt     time.Time `json:"ended_at,omitzero"`
	HeartbeatAt time.Time `json:"heartbeat_at,omitzero"`
	// NextIn is the wait for the next chunk by the rate, by the database's clock.
	NextIn time.Duration `json:"-"`
	// Silent is the time since the manager's last heartbeat, by the database's clock.
	Silent time.Duration `json:"-"`
	// Age is the run's duration so far, or in all, by the database's clock.
	Age time.Duration `json:"-"`
}

// Known returns how many documents the run has, as far as known; more says that there may be more. Until the hand-off
// is over it is the larger of what the preview found and what was handed off.
func (r Run) Known() (documents int, more bool) {
	if !r.HandedOffAt.IsZero() {
		return r.Documents, false
	}
	searching := r.Status == RunRunning && (r.Matched == 0 || r.Documents > r.Matched)
	return max(r.Documents, r.Matched), r.AtLeast || searching
}

// HeldBy says which live process hands off or executes the run; empty when none does.
func (r Run) HeldBy() string {
	if r.Status != RunRunning || r.Owner == "" || r.Silent >= ManagerStale {
		return ""
	}
	return fmt.Sprintf("%s has it, last heard %s ago; after %s of silence another process may take it over", r.Owner,
		r.Silent.Round(time.Second), ManagerStale)
}

// Filter selects the documents of a run.
type Filter struct {
	// ErrorKind and Code are those of the last error. From and To (exclusive) bound the last change, _ts. Zero means
	// any.
	ErrorKind string    `json:"error_kind,omitempty"`
	Code      string    `json:"code,omitempty"`
	From      time.Time `json:"from,omitzero"`
	To        time.Time `json:"to,omitzero"`
	// Statuses are those that are searched, of KindRow.Selectable; empty means KindRow.Statuses.
	Statuses []invoice.Status `json:"statuses,omitempty"`
	// IDs names documents; nothing else is then searched.
	IDs []string `json:"ids,omitempty"`
	// Run names another run: what it left undone: documents with one of invoice.Unfinished. Nothing else is then
	// searched.
	Run string `json:"run,omitempty"`
	// OverwriteEdits are lines that a rewrite writes although a person edited them. NotComparable lets it write lines
	// that cannot be compared with what was written. Neither selects documents.
	OverwriteEdits []int64 `json:"overwrite_edits,omitempty"`
	NotComparable  bool    `json:"not_comparable,omitempty"`
	// Releases let a rewrite write lines of the named documents over the content of newer ones.
	Releases []commit.Release `json:"releases,omitempty"`
}

// TakesAllSince returns since when the run takes every document that changed, whatever else is true of it; false if its
// filter or its limit leaves some out. The zero time means all documents.
func (r Run) TakesAllSince() (since time.Time, all bool) {
	f, err := r.filter()
	since, f.From = f.From, time.Time{}
	return since, err == nil && r.Named == 0 && r.Limit == 0 && reflect.ValueOf(f).IsZero()
}

// Named returns how many documents a filter as JSON names; 1 when it names a run for its documents, 0 also for invalid
// JSON.
func Named(filter json.RawMessage) int {
	var f Filter
	switch {
	case json.Unmarshal(filter, &f) != nil:
		return 0
	case f.Run != "":
		return 1
	}
	return len(f.IDs)
}

// Batch is a row of the table batch.
type Batch struct {
	// ID is BatchID: 64 characters.
	ID string `json:"id"`
	// Number is the position in the run, from 1.
	Run    string      `json:"run"`
	Number int         `json:"number"`
	Status BatchStatus `json:"status"`
	// Attempt counts the messages meant for the batch. It is a part of their id, so that a wanted repetition is not a
	// duplicate.
	Attempt int `json:"attempt"`
	// QueueAttempts counts the queue's refusals of its message (queue_attempt_count); LastQueueError is the last.
	QueueAttempts  int    `json:"queue_attempt_count"`
	LastQueueError string `json:"last_queue_error,omitempty"`
	// Error is why the batch failed.
	Error string `json:"error,omitempty"`
	// Owner is the worker. Epoch grows by one with every claim and requeue.
	Owner string `json:"owner,omitempty"`
	Epoch int    `json:"epoch"`
	// LostWorkers counts workers lost with the batch since it was created or requeued.
	LostWorkers int `json:"lost_workers,omitempty"`
	// Total counts its documents. Success and Failure count their outcomes when the batch last ended.
	Total   int `json:"total"`
	Success int `json:"success"`
	Failure int `json:"failure"`
	// The times are by the database's clock, in UTC; zero when not reached.
	CreatedAt   time.Time `json:"created_at"`
	QueuedAt    time.Time `json:"queued_at,omitzero"`
	StartedAt   time.Time `json:"process_start_time,omitzero"`
	EndedAt     time.Time `json:"process_end_time,omitzero"`
	HeartbeatAt time.Time `json:"heartbeat_at,omitzero"`
}

// FirstAttempt is Batch.Attempt before the first message.
const FirstAttempt = 0

// BatchID is the lower-case hex SHA-256 of environment, run and number.
func BatchID(sysName, run string, number int) string {
	sum := sha256.Sum256([]byte(sysName + "\n" + run + "\n" + strconv.Itoa(number)))
	return hex.EncodeToString(sum[:])
}

// DocumentKey is the key of a document in the tables: the lower-case hex SHA-256 of its id, as in the ledger.
func DocumentKey(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])
}

// Worker is a row of the table worker. It starts RUNNING with a claim and ends COMPLETED or FAILED; IDLE means
// released.
type Worker struct {
	// ID is "worker-" or "manager-" and eight hex digits, of the process and of what it claimed.
	ID string `json:"id"`
	// Instance names the process.
	Instance string `json:"instance"`
}

// WorkerStatus is the state of a worker row (docs/requirements.md R81).
type WorkerStatus string

// The statuses of a worker (docs/requirements.md R81).
const (
	WorkerIdle      WorkerStatus = "IDLE"
	WorkerRunning   WorkerStatus = "RUNNING"
	WorkerCompleted WorkerStatus = "COMPLETED"
	WorkerFailed    WorkerStatus = "FAILED"
)

// RunLease is a manager's lease of a run.
type RunLease struct { //nolint:revive // BatchLease is a batch's
	Run, Owner string
	Epoch      int
}

// BatchLease is a worker's lease of a batch.
type BatchLease struct {
	Batch, Run, Owner string
	Epoch             int
}

// Ticket is what a message shows to claim a batch.
type Ticket struct {
	// Attempt is the batch's when the message was made. With an older one than the row's the message is outdated.
	Attempt int
	// Epoch is that of the owner that released the batch and deferred the message; 0 when no owner did.
	Epoch int
}

// OnTheWay counts the outstanding batches of an environment.
type OnTheWay struct {
	// Busy ones are queued or processing. Retry ones are pending_retry.
	Busy, Retry int
	// HandingOff counts running runs that are not handed off.
	HandingOff int
}

// Chunk is what a manager adds to a run in one transaction.
type Chunk struct {
	// Batches are document ids, at most 100 in each, that the run does not have yet.
	Batches [][]string
	// First is the number of the first batch: one more than the run has.
	First int
	// Watermark replaces the run's.
	Watermark string
	// Wait is the delay of the next chunk, by the database's clock.
	Wait time.Duration
}

// Claimed is the result of a claim.
type Claimed struct {
	Answer Answer
	// The other fields are set when Answer is Taken. Run and Batch are set for every answer but Unknown. Run lacks
	// Filter and Watermark, which may be long.
	Lease BatchLease
	Batch Batch
	Run   Run
	// Open are the ids of the documents without an outcome, in their order.
	Open []string
	// TookOver says that another worker had it until this claim.
	TookOver bool
	// Begun says that some worker had it before, so that documents may be finished without a stored outcome. The epoch
	// does not say so: a requeue raises it, too.
	Begun bool
}

// Answer is the outcome of a claim.
type Answer string

// The answers.
const (
	// Taken: the caller has the lease.
	Taken Answer = "taken"
	// Busy: another live owner has it.
	Busy Answer = "busy"
	// Finished: the batch is completed or failed.
	Finished Answer = "finished"
	// Ended: its run has ended or is to end.
	Ended Answer = "ended"
	// Outdated: the message is not of the batch's attempt.
	Outdated Answer = "outdated"
	// Foreign: its run is of another environment.
	Foreign Answer = "foreign"
	// Unknown: there is no such row.
	Unknown Answer = "unknown"
)

// ItemOutcome is the result of one document.
type ItemOutcome struct {
	Document string          `json:"document"`
	Outcome  invoice.Outcome `json:"outcome"`
	// Code is the last error's; empty without an error.
	Code string `json:"code,omitempty"`
	// Number is the batch's. Only Store.Items sets it.
	Number int `json:"batch,omitempty"`
}

// ErrorDetail is a row of the table error_detail: one failure of a document in a run.
type ErrorDetail struct {
	Document string `json:"document"`
	// EntityID is the main line's id; 0 when the document names none.
	EntityID int64  `json:"entity_id,omitempty"`
	Code     string `json:"error_code"`
	// Message is in our own words, without content of the document.
	Message string `json:"error_message"`
	Type    string `json:"error_type"`
	// RetryCount counts the retries spent; Retryable says that another follows.
	RetryCount int       `json:"retry_count"`
	Retryable  bool      `json:"is_retryable"`
	At         time.Time `json:"at,omitzero"`
}

// The types of an error (docs/requirements.md R81).
const (
	// TypeValidation: the document's content.
	TypeValidation = "VALIDATION"
	// TypeMigration: the database's refusal.
	TypeMigration = "MIGRATION"
	// TypeSystem: our own failure.
	TypeSystem = "SYSTEM"
)

// BatchStats counts the outcomes of a batch in the database.
type BatchStats struct {
	Total    int                     `json:"total"`
	Success  int                     `json:"success"`
	Failure  int                     `json:"failure"`
	Outcomes map[invoice.Outcome]int `json:"outcomes"`
	// AddsUp says that every document has an outcome.
	AddsUp bool `json:"adds_up"`
}

// Stats counts a run's rows in the database.
type Stats struct {
	// Batches counts batches by status, Outcomes documents by outcome ("" for those without one).
	Batches  map[BatchStatus]int     `json:"batches"`
	Outcomes map[invoice.Outcome]int `json:"documents"`
}

// Failed reports whether something is left to do: a failed batch, or a document with one of
// invoice.Unfinished.
func (s Stats) Failed() bool {
	return s.Left() > 0 || s.Batches[Failed] > 0
}

// Left counts the documents for which something is left to do.
func (s Stats) Left() (n int) {
	for _, o := range invoice.Unfinished() {
		n += s.Outcomes[o]
	}
	return n
}

// Done counts the documents that have an outcome.
func (s Stats) Done() int {
	n := 0
	for o, count := range s.Outcomes {
		if o != "" {
			n += count
		}
	}
	return n
}
