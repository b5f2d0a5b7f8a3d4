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
