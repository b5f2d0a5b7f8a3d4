package run

import (
	"time"
)

// Incoming is a message as the trigger delivers it.
type Incoming struct {
	// Body is the body as it was sent, without the host's wrapping.
	Body []byte
	// ID is the message's id. Count is the number of deliveries, this one included. Both are empty when the trigger
	// does not say.
	ID    string
	Count int
	// EnqueuedAt is the time at which the queue accepted it; zero when the trigger does not say.
	EnqueuedAt time.Time
	// Properties are the application properties as texts. A dead letter has DeadLetterReason and
	// DeadLetterErrorDescription.
	Properties map[string]string
	// Invocation is the host's id of the invocation.
	Invocation string
}

// Handled is the result of a message, for the logs. Every field may be empty.
type Handled struct {
	// Did is the action: committed, deferred, skipped, dead_lettered, handed_off, ...
	Did string
	// Run and Batch are the message's. Reason explains Did.
	Run, Batch, Reason string
	// Foreign marks a message of another environment. It is dead-lettered all the same.
	Foreign bool
	// Counts are numbers of documents by outcome, of batches, and of milliseconds.
	Counts map[string]int
}
