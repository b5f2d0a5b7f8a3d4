package run

// BatchStatus is the state of a batch (docs/requirements.md R69).
type BatchStatus string

// The statuses of a batch.
const (
	// PendingQueue: the rows exist, the message is not sent.
	PendingQueue BatchStatus = "pending_queue"
	// Queued: the message was accepted.
	Queued BatchStatus = "queued"
	// PendingRetry: the message must be sent again.
	PendingRetry BatchStatus = "pending_retry"
	// Processing: a worker claimed it.
	Processing BatchStatus = "processing"
	// Completed: every document has an outcome.
	Completed BatchStatus = "completed"
	// Failed: it ended without completing. An operator may requeue it.
	Failed BatchStatus = "failed"
)

// BatchStatuses returns all statuses, in the order of a batch's life.
func BatchStatuses() []BatchStatus {
	return []BatchStatus{PendingQueue, PendingRetry, Queued, Processing, Completed, Failed}
}

// Open reports whether the batch has not ended.
func (s BatchStatus) Open() bool { return s != Completed && s != Failed }

// Transition is one allowed change of a batch's status.
type Transition struct {
	From, To BatchStatus
	// By says what causes it. The conformance suite tests the adapters' statements against it.
	By string
}

// The causes of transitions.
const (
	byConfirm  = "its message was accepted"
	byUnsent   = "its message was not accepted, or the answer was lost"
	byClaim    = "a worker claims it"
	byTakeOver = "a worker takes over a dead or released one: in place, epoch + 1"
	byFinish   = "every document has an outcome"
	byGiveUp   = "its worker fails it"
	byTimer    = "the timer finds its worker dead"
	bySilence  = "the timer takes its message for lost"
	byLimit    = "its message was refused too often"
	byDead     = "its message is a dead letter"
	byCancel   = "its run was cancelled"
	byRequeue  = "an operator requeues it: epoch + 1"
)

// Transitions is the table of allowed changes (docs/requirements.md R69). A late "queued" cannot regress a processing
// batch, because the table has no such change.
func Transitions() []Transition {
	return []Transition{
		{PendingQueue, Queued, byConfirm},
		{PendingRetry, Queued, byConfirm},
		{PendingQueue, PendingRetry, byUnsent},
		{Queued, PendingRetry, byUnsent}, // two processes sent it, and the other one's was accepted
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
		{Queued, Failed, byLimit}, // as above
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

// RunStatus is the state of a run.
type RunStatus string //nolint:revive // BatchStatus is a batch's

// The statuses of a run.
const (
	RunRunning   RunStatus = "running"
	RunCompleted RunStatus = "completed"
	// RunCompletedWithFailures: all batches ended, and something is left to do (Stats.Failed).
	RunCompletedWithFailures RunStatus = "completed_with_failures"
	RunCancelled             RunStatus = "cancelled"
	// RunFailed: the hand-off was abandoned, by its manager or because its message is a dead letter. An operator may
	// resume it.
	RunFailed RunStatus = "failed"
	// RunPurged: retention deletes the run and its rows (retention.Store). Nothing continues it.
	RunPurged RunStatus = "purged"
)

// Requeueable reports whether batches of such a run may be requeued. A cancelled or failed run must be resumed instead.
func (s RunStatus) Requeueable() bool {
	return s == RunRunning || s == RunCompleted || s == RunCompletedWithFailures
}
