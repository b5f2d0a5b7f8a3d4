package run

import "slices"

// BatchStatus is where a batch is (docs/requirements.md R69).
type BatchStatus string

// The statuses of a batch.
const (
	// PendingQueue: its rows are there, its message is not sent.
	PendingQueue BatchStatus = "pending_queue"
	// Queued: its message was accepted.
	Queued BatchStatus = "queued"
	// PendingRetry: its message was not accepted, or nobody is known to have it: the timer sends it (again).
	PendingRetry BatchStatus = "pending_retry"
	// Processing: a worker has it.
	Processing BatchStatus = "processing"
	// Completed: every document of it has an outcome.
	Completed BatchStatus = "completed"
	// Failed: it was given up. An operator may requeue it.
	Failed BatchStatus = "failed"
)

// BatchStatuses are all of them, in the order of a batch's life.
func BatchStatuses() []BatchStatus {
	return []BatchStatus{PendingQueue, PendingRetry, Queued, Processing, Completed, Failed}
}

// Open reports whether something is still to come.
func (s BatchStatus) Open() bool { return s != Completed && s != Failed }

// Transition is one row of the table of states.
type Transition struct {
	From, To BatchStatus
	// By says what makes the change; the adapters' statements are tested against it.
	By string
}

// What makes a batch change.
const (
	byConfirm  = "its message was accepted"
	byUnsent   = "its message was not accepted, or nobody knows"
	byClaim    = "a worker claims it"
	byTakeOver = "a worker takes over from one that is dead or let go: in place, epoch + 1"
	byFinish   = "every document has an outcome"
	byGiveUp   = "its worker gives up"
	byTimer    = "the timer finds its worker dead"
	bySilence  = "the timer finds that no batch of its run starts any more"
	byLimit    = "its message was refused too often"
	byDead     = "its message is a dead letter"
	byCancel   = "its run was cancelled"
	byRequeue  = "an operator wants it again: epoch + 1"
)

// Transitions is the one table of states (docs/requirements.md R69). What is not in it does not happen; a late "queued" cannot regress
// processing because processing -> queued is not in it.
func Transitions() []Transition {
	return []Transition{
		{PendingQueue, Queued, byConfirm},
		{PendingRetry, Queued, byConfirm},
		{PendingQueue, PendingRetry, byUnsent},
		{Queued, PendingRetry, byUnsent}, // of an optimistic hand-off
		{PendingRetry, PendingRetry, byUnsent},
		{PendingQueue, Processing, byClaim},
		{PendingRetry, Processing, byClaim},
		{Queued, Processing, byClaim},
		{Processing, Processing, byTakeOver},
		{Processing, Completed, byFinish},
		{Processing, Failed, byGiveUp},
		{Processing, PendingRetry, byTimer},
		{Queued, PendingRetry, bySilence},
		{PendingQueue, Failed, byLimit},
		{PendingRetry, Failed, byLimit},
		{Queued, Failed, byLimit}, // of an optimistic hand-off
		{PendingQueue, Failed, byDead},
		{PendingRetry, Failed, byDead},
		{Queued, Failed, byDead},
		{Processing, Failed, byDead}, // its worker is dead, too
		{PendingQueue, Failed, byCancel},
		{PendingRetry, Failed, byCancel},
		{Queued, Failed, byCancel},
		{Failed, PendingRetry, byRequeue},
	}
}

// May reports whether a batch may change so.
func May(from, to BatchStatus) bool {
	return slices.ContainsFunc(Transitions(), func(t Transition) bool { return t.From == from && t.To == to })
}

// RunStatus is where a run is.
type RunStatus string //nolint:revive // run.BatchStatus is a batch's

// The statuses of a run. Stopped is of runs that one process does alone (reprocess): they end with their process.
const (
	RunRunning   RunStatus = "running"
	RunCompleted RunStatus = "completed"
	// RunCompletedWithFailures: all its batches ended, and something is left to do (Stats.Failed).
	RunCompletedWithFailures RunStatus = "completed_with_failures"
	RunCancelled             RunStatus = "cancelled"
	RunStopped               RunStatus = "stopped"
	// RunFailed: its hand-off was given up: by its manager, which says why, or because its message is a dead letter. It can be
	// resumed.
	RunFailed RunStatus = "failed"
)

// Requeueable reports whether batches of such a run may be wanted again; one that was cancelled or failed is resumed.
func (s RunStatus) Requeueable() bool {
	return s == RunRunning || s == RunCompleted || s == RunCompletedWithFailures
}

// Last reports whether a run that one process does alone can end with the status.
func (s RunStatus) Last() bool {
	return s == RunCompleted || s == RunCompletedWithFailures || s == RunCancelled || s == RunStopped
}

// Outcome is what became of one document of a batch.
type Outcome string

// The outcomes.
const (
	// Committed, Unchanged, Superseded: the document's content is in SQL, or something newer is.
	DocCommitted  Outcome = "committed"
	DocUnchanged  Outcome = "unchanged"
	DocSuperseded Outcome = "superseded"
	// Deferred: a retry of the document's own is scheduled, or the recovery timer will look at it.
	DocDeferred Outcome = "deferred"
	// Failed: it is a poison message now; or it could not be rewritten.
	DocFailed Outcome = "failed"
	// Gone: the document was deleted. Skipped: it is not in a state that the run takes over from (any more).
	DocGone    Outcome = "gone"
	DocSkipped Outcome = "skipped"
)

// Outcomes are all of them.
func Outcomes() []Outcome {
	return []Outcome{DocCommitted, DocUnchanged, DocSuperseded, DocDeferred, DocFailed, DocGone, DocSkipped}
}

// Success reports whether nothing is left to do for the document: success_count and failure_count divide by it.
func (o Outcome) Success() bool { return o != DocDeferred && o != DocFailed }
