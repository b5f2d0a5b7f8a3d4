package run

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"time"

	"sqlwriter/internal/invoice"
)

// Kind is what a run does.
type Kind string

// The kinds.
const (
	// Drain commits what waits: pending documents and retries that are due.
	Drain Kind = "drain"
	// Replay tries failed documents again.
	Replay Kind = "replay"
	// Reindex writes the lines of committed documents again.
	Reindex Kind = "reindex"
)

// Run is one row of the table run.
type Run struct {
	// ID is chosen by the caller and unique: 1 to 64 visible ASCII characters.
	ID      string `json:"id"`
	SysName string `json:"sys_name"`
	Kind    Kind   `json:"kind"`
	// Filter is what was asked for (Filter) as JSON. It may name thousands of documents: not every call gives it.
	Filter json.RawMessage `json:"filter,omitempty"`
	// Named is how many documents the filter of a run that workers do names. The store counts them when the run is started.
	Named int `json:"ids_named,omitempty"`
	// Pattern is how its batches are handed off: the name of a row of Patterns. Empty: one process does the run alone, and
	// none of the calls below concerns it.
	Pattern string `json:"pattern,omitempty"`
	// Rate is how many documents are handed off a minute, Limit how many at most; 0 means no bound.
	Rate  int `json:"rate_per_minute,omitempty"`
	Limit int `json:"limit,omitempty"`
	// Matched is how many documents its preview found, no more than Limit; with AtLeast there may be more. 0 means that nothing
	// was counted.
	Matched int  `json:"matched,omitempty"`
	AtLeast bool `json:"at_least,omitempty"`
	// RequestedBy and Why are the operator's words.
	RequestedBy string    `json:"requested_by"`
	Why         string    `json:"why"`
	Status      RunStatus `json:"status"`
	// Cancel says that somebody asked to end it.
	Cancel bool `json:"cancel,omitempty"`
	// Counts is how many documents ended how, of a run that one process does alone; empty otherwise (Stats).
	Counts map[string]int `json:"counts"`
	// Error is why it failed.
	Error string `json:"error,omitempty"`
	// Watermark is how far the documents were looked for: opaque to the store. Documents and Batches are how many have rows.
	Watermark string `json:"-"`
	Documents int    `json:"documents"`
	Batches   int    `json:"batches"`
	// Owner is the manager that has it; empty when none does. Epoch grows by one with every claim.
	Owner string `json:"owner,omitempty"`
	Epoch int    `json:"epoch"`
	// LostManagers is how many managers were lost with it one after another since one handed off something, or since it was resumed.
	LostManagers int `json:"lost_managers,omitempty"`
	// The times are by the database's clock, UTC; zero when it has not come to that.
	StartedAt   time.Time `json:"started_at"`
	HandedOffAt time.Time `json:"handed_off_at,omitzero"`
	EndedAt     time.Time `json:"ended_at,omitzero"`
	HeartbeatAt time.Time `json:"heartbeat_at,omitzero"`
	// NextIn is how long the rate lets the next chunk wait, by the database's clock.
	NextIn time.Duration `json:"-"`
	// Silent is for how long its manager has said nothing, by the database's clock.
	Silent time.Duration `json:"-"`
	// Age is how long it has run, or ran, by the database's clock.
	Age time.Duration `json:"-"`
}

// Known is how many documents the run has, as far as that is known; with more there may be more. Until all are handed off it is
// what the preview found, or what was handed off if that is more. A run that one process does alone takes what it matched, and
// no more.
func (r Run) Known() (documents int, more bool) {
	if r.Pattern == "" {
		return r.Matched, false
	}
	if !r.HandedOffAt.IsZero() {
		return r.Documents, false
	}
	searching := r.Status == RunRunning && (r.Matched == 0 || r.Documents > r.Matched)
	return max(r.Documents, r.Matched), r.AtLeast || searching
}

// Filter says which documents a run takes.
type Filter struct {
	// Code and ErrorKind are those of the last error; From and To (not included) bound failed_at for a replay and _ts
	// otherwise; zero means any.
	ErrorKind string    `json:"error_kind,omitempty"`
	Code      string    `json:"code,omitempty"`
	From      time.Time `json:"from,omitzero"`
	To        time.Time `json:"to,omitzero"`
	// IDs names documents; nothing else is then looked for.
	IDs []string `json:"ids,omitempty"`
	// Run names another run: what failed or was deferred there, with the Code if one is given, and nothing else is looked for.
	Run string `json:"run,omitempty"`
}

// Named is how many documents a filter (Filter as JSON) names, 1 where it names them by a run; 0 also for what is no filter.
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

// Batch is one batch: a row of the table job.
type Batch struct {
	// ID is BatchID: 64 characters.
	ID string `json:"id"`
	// Run and Number say which batch of which run; numbers begin with 1.
	Run    string      `json:"run"`
	Number int         `json:"number"`
	Status BatchStatus `json:"status"`
	// Attempt is how often a message was meant to be sent: a part of its id, so that a wanted repetition is no duplicate.
	Attempt int `json:"attempt"`
	// QueueAttempts counts refusals of its message by the queue (queue_attempt_count); LastQueueError is the last of them.
	QueueAttempts  int    `json:"queue_attempt_count"`
	LastQueueError string `json:"last_queue_error,omitempty"`
	// Error is why it failed.
	Error string `json:"error,omitempty"`
	// Owner is the worker that has it. Epoch grows by one with every claim and requeue.
	Owner string `json:"owner,omitempty"`
	Epoch int    `json:"epoch"`
	// LostWorkers is how many workers were lost with it since it was made or requeued.
	LostWorkers int `json:"lost_workers,omitempty"`
	// Total is how many documents it has; Success and Failure how many of them had such an outcome when it last ended.
	Total   int `json:"total"`
	Success int `json:"success"`
	Failure int `json:"failure"`
	// The times are by the database's clock, UTC; zero when it has not come to that.
	CreatedAt   time.Time `json:"created_at"`
	QueuedAt    time.Time `json:"queued_at,omitzero"`
	StartedAt   time.Time `json:"process_start_time,omitzero"`
	EndedAt     time.Time `json:"process_end_time,omitzero"`
	HeartbeatAt time.Time `json:"heartbeat_at,omitzero"`
}

// FirstAttempt is Job.Attempt of a batch whose message was never sent.
const FirstAttempt = 0

// BatchID names a batch: the lower-case hex SHA-256 of what it is the batch of.
func BatchID(sysName, run string, number int) string {
	sum := sha256.Sum256([]byte(sysName + "\n" + run + "\n" + strconv.Itoa(number)))
	return hex.EncodeToString(sum[:])
}

// DocumentKey is the key of a document in the tables: the lower-case hex SHA-256 of its id, as in the ledger.
func DocumentKey(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])
}

// Worker is one invocation that works: a row of the table worker. The row begins RUNNING with a claim and ends COMPLETED or
// FAILED; IDLE is one that let go of what it had claimed.
type Worker struct {
	// ID is "worker-" or "manager-" and eight hex digits: of the process and of what it has.
	ID string `json:"id"`
	// Instance names the process.
	Instance string `json:"instance"`
}

// WorkerStatus is where a worker is.
type WorkerStatus string

// The statuses of a worker (docs/requirements.md R81).
const (
	WorkerIdle      WorkerStatus = "IDLE"
	WorkerRunning   WorkerStatus = "RUNNING"
	WorkerCompleted WorkerStatus = "COMPLETED"
	WorkerFailed    WorkerStatus = "FAILED"
)

// RunLease is a manager's hold of a run.
type RunLease struct {
	Run, Owner string
	Epoch      int
}

// BatchLease is a worker's hold of a batch.
type BatchLease struct {
	Batch, Run, Owner string
	Epoch             int
}

// Ticket is what a message shows to claim a batch.
type Ticket struct {
	// Attempt is the batch's when the message was made. A message older than its row's attempt is outdated.
	Attempt int
	// Epoch is that of the owner that let go of the batch and put the message off; 0 when no owner did.
	Epoch int
}

// OnTheWay is how many batches of an environment are on their way.
type OnTheWay struct {
	// Busy ones are queued or processing. Retry ones wait for their message to be sent again.
	Busy, Retry int
	// HandingOff is how many running runs have more to hand off.
	HandingOff int
}

// Chunk is what a manager adds to a run at once: batches, and how far it came.
type Chunk struct {
	// Batches are the ids of documents, not more than 100 in each and none that the run has already.
	Batches [][]string
	// First is the number of the first of them: one more than the run has.
	First int
	// Initial is the status they begin with: PendingQueue or Queued.
	Initial BatchStatus
	// Watermark replaces the run's.
	Watermark string
	// Wait is how long the next chunk is to wait, by the database's clock.
	Wait time.Duration
}

// Claimed is the answer to a claim of a batch.
type Claimed struct {
	Answer Answer
	// The rest is filled when Answer is Taken; Run and Job also when it is another one but Unknown. Run has no Filter,
	// Watermark and Counts: whoever claims a batch needs them not, and they may be long.
	Lease BatchLease
	Batch Batch
	Run   Run
	// Open are the ids of the documents that have no outcome yet, in their order.
	Open []string
	// TookOver says that it was another worker's until this claim, who let go of it or is dead.
	TookOver bool
	// Begun says that some worker had it before, however long ago: it may have finished documents and not told of them. The epoch
	// does not say so, it also grows where an operator wants the batch again.
	Begun bool
}

// Answer is what a claim comes to.
type Answer string

// The answers.
const (
	// Taken: it is the caller's.
	Taken Answer = "taken"
	// Busy: somebody else has it, and is alive.
	Busy Answer = "busy"
	// Finished: the batch is completed or failed.
	Finished Answer = "finished"
	// Ended: its run has ended, or is to end.
	Ended Answer = "ended"
	// Outdated: a later message of it is on its way.
	Outdated Answer = "outdated"
	// Unknown: there is no such row.
	Unknown Answer = "unknown"
)

// ItemOutcome is what became of a document, and of what batch.
type ItemOutcome struct {
	Document string  `json:"document"`
	Outcome  Outcome `json:"outcome"`
	// Code says more: the last error's code; empty for none.
	Code string `json:"code,omitempty"`
	// Number is the batch's. Answered by Store.Items only.
	Number int `json:"batch,omitempty"`
}

// ErrorDetail is a row of the table error_detail: one document's failure in a batch.
type ErrorDetail struct {
	Document string `json:"document"`
	Code     string `json:"error_code"`
	// Message is in our own words, without content.
	Message string `json:"error_message"`
	Type    string `json:"error_type"`
	// RetryCount is how many retries the document has spent; Retryable says that it has a next one.
	RetryCount int       `json:"retry_count"`
	Retryable  bool      `json:"is_retryable"`
	At         time.Time `json:"at,omitzero"`
}

// The types of an error (docs/requirements.md R81).
const (
	// TypeValidation: the document's own content.
	TypeValidation = "VALIDATION"
	// TypeMigration: the database refuses it.
	TypeMigration = "MIGRATION"
	// TypeSystem: ourselves.
	TypeSystem = "SYSTEM"
)

// BatchStats are the outcomes of a batch as the database counts them.
type BatchStats struct {
	Total    int             `json:"total"`
	Success  int             `json:"success"`
	Failure  int             `json:"failure"`
	Outcomes map[Outcome]int `json:"outcomes"`
	// Adds up: every document has an outcome.
	AddsUp bool `json:"adds_up"`
}

// Stats are the numbers of a run as the database counts them.
type Stats struct {
	// Batches counts its batches by status, Outcomes its documents by outcome; those without one are under "".
	Batches  map[BatchStatus]int `json:"batches"`
	Outcomes map[Outcome]int     `json:"documents"`
}

// Failed reports whether something is left to do: a batch failed, or a document failed or was deferred.
func (s Stats) Failed() bool {
	for o, n := range s.Outcomes {
		if o != "" && !o.Success() && n > 0 {
			return true
		}
	}
	return s.Batches[Failed] > 0
}

// Done is how many documents have an outcome.
func (s Stats) Done() int {
	n := 0
	for o, count := range s.Outcomes {
		if o != "" {
			n += count
		}
	}
	return n
}

// Audit is one entry of the audit log.
type Audit struct {
	// Code says what happened: RUN_START, BATCH_DONE (the table of codes is Codes).
	Code string `json:"code"`
	// Level is INFO, WARN or ERROR.
	Level string `json:"level"`
	// By is the operator, the worker or the function; Why is a sentence for people.
	By  string `json:"by"`
	Why string `json:"why"`
	// Run and Job say what it concerns; either may be empty.
	Run   string `json:"run,omitempty"`
	Batch string `json:"batch,omitempty"`
	// Detail is more, as JSON: counts, durations, codes; never content of documents.
	Detail json.RawMessage `json:"detail,omitempty"`
}

// The levels.
const (
	LevelInfo  = "INFO"
	LevelWarn  = "WARN"
	LevelError = "ERROR"
)

// Query asks for documents of an environment by status and time.
type Query struct {
	SysName  string
	Statuses []invoice.Status
	// From and To bound _ts in whole seconds; To is not included.
	From, To int64
}
