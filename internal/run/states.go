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
		{From: PendingQueue, To: Queued, By: byConfirm},
		{From: PendingRetry, To: Queued, By: byConfirm},
		{From: PendingQueue, To: PendingRetry, By: byUnsent},
		{From: Queued, To: PendingRetry, By: byUnsent}, // two processes sent it, and the other one's was accepted
		{From: PendingRetry, To: PendingRetry, By: byUnsent},
		{From: PendingQueue, To: Processing, By: byClaim},
		{From: PendingRetry, To: Processing, By: byClaim},
		{From: Queued, To: Processing, By: byClaim},
		{From: Processing, To: Processing, By: byTakeOver},
		{From: Processing, To: Completed, By: byFinish},
		{From: Processing, To: Failed, By: byGiveUp},
		{From: Processing, To: PendingRetry, By: byTimer},
		{From: Queued, To: PendingRetry, By: bySilence},
		{From: PendingQueue, To: Failed, By: byLimit},
		{From: PendingRetry, To: Failed, By: byLimit},
		{From: Queued, To: Failed, By: byLimit}, // as above
		{From: PendingQueue, To: Failed, By: byDead},
		{From: PendingRetry, To: Failed, By: byDead},
		{From: Queued, To: Failed, By: byDead},
		{From: Processing, To: Failed, By: byDead}, // its worker is dead, too
		{From: PendingQueue, To: Failed, By: byCancel},
		{From: PendingRetry, To: Failed, By: byCancel},
		{From: Queued, To: Failed, By: byCancel},
		{From: Failed, To: PendingRetry, By: byRequeue},
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
