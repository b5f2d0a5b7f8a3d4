package run

import (
	"time"
)

// Incoming is one message as the trigger brings it.
type Incoming struct {
	// Body is the message's body as it was sent, without the host's layers.
	Body []byte
	// ID is the message's id, Count how often it was delivered, this time included; both are empty when the trigger does not say.
	ID    string
	Count int
	// EnqueuedAt is when the queue took it; zero when the trigger does not say.
	EnqueuedAt time.Time
	// Properties are its application properties as texts: DeadLetterReason and DeadLetterErrorDescription of a dead letter
	// among them.
	Properties map[string]string
	// Invocation is the host's name of the invocation.
	Invocation string
}

// Handled says what became of a message, for the invocation's log line and the host's log. All of it may be empty.
type Handled struct {
	// Did is what was done: committed, deferred, skipped, dead_lettered, handed_off, ...; for people and for the log.
	Did string
	// Run and Batch say what the message was about; Reason says more of Did in our own words.
	Run, Batch, Reason string
	// Foreign says that the message is of another environment. It is put aside all the same.
	Foreign bool
	// Counts are numbers: outcomes of documents, batches handed off, milliseconds.
	Counts map[string]int
}
