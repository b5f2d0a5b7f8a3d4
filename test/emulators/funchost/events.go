package funchost

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Kind says what happened.
type Kind string

// The kinds of events.
const (
	FunctionIndexed   Kind = "function indexed"
	FunctionRefused   Kind = "function refused"  // Err says why; the function does not run
	FunctionDisabled  Kind = "function disabled" // AzureWebJobs.<Name>.Disabled
	NoFunctions       Kind = "no functions found"
	HostStarted       Kind = "host started"
	HostStopped       Kind = "host stopped"
	HandlerStarted    Kind = "handler started"
	HandlerReady      Kind = "handler ready"
	HandlerExited     Kind = "handler exited" // ExitCode; -1 when killed by a signal
	HandlerKilled     Kind = "handler killed" // by the host; Err says why
	HandlerRestarting Kind = "handler restarting"
	HandlerGaveUp     Kind = "handler restarts exceeded" // the host shuts down
	ListenerStarted   Kind = "listener started"
	ListenerFailed    Kind = "listener failed" // Err; started again after a pause
	InvocationStarted Kind = "invocation started"
	InvocationSuccess Kind = "invocation succeeded"
	InvocationFailed  Kind = "invocation failed" // Err is an *InvocationError
	InvocationTimeout Kind = "invocation timed out"
	Retry             Kind = "retry" // RetryCount is the coming attempt's, Delay the pause before it
	RetriesExhausted  Kind = "retries exhausted"
	LeaseCreated      Kind = "lease created"
	LeaseAcquired     Kind = "lease acquired"
	LeaseReleased     Kind = "lease released"
	LeaseLost         Kind = "lease lost"
	LeaseError        Kind = "lease error"
	LeaseDeleted      Kind = "lease deleted" // its range was split
	Checkpoint        Kind = "checkpoint"
	FeedError         Kind = "feed error"      // Text is the extension's; Err why
	TimerScheduled    Kind = "timer scheduled" // Delay until the next tick
	TimerStatusFailed Kind = "timer status not stored"
	UserLog           Kind = "user log" // Err nil, Text from the reply's Logs
	// The kinds of a serviceBusTrigger. MessageID and DeliveryCount are set in all but the first.
	ReceiveFailed      Kind = "receive failed"    // Err; Delay until a new receiver is made
	MessageCompleted   Kind = "message completed" // gone from the queue
	MessageAbandoned   Kind = "message abandoned" // given back; Err is why, nil when the host stopped
	MessageLeft        Kind = "message left"      // not settled: it comes again when its lock expires
	MessageLockRenewed Kind = "message lock renewed"
	MessageLockLost    Kind = "message lock lost" // Err; Text says when
	RenewFailed        Kind = "message lock not renewed"
	SettleFailed       Kind = "message not settled"
)

// maxRemembered bounds the memory of events; when it is reached the older half is forgotten.
const maxRemembered = 8192

// Event is one thing that happened in the host.
type Event struct {
	// Seq counts from 1 without gaps.
	Seq  int
	Time time.Time
	Kind Kind
	// Function, InvocationID, Range (the id of a lease's range) and Owner are set where they mean something.
	Function, InvocationID, Range, Owner string
	// RetryCount is 0 for the first attempt.
	RetryCount int
	// Items is the number of documents in a Cosmos batch.
	Items int
	// MessageID and DeliveryCount (1 for the first delivery) name a Service Bus message.
	MessageID     string
	DeliveryCount int

	ExitCode int
	Pid      int
	Delay    time.Duration
	Text     string
	Err      error
}

// eventLog keeps the last events and wakes the callers of WaitEvent.
type eventLog struct {
	mu      sync.Mutex
	seq     int
	events  []Event
	changed chan struct{} // closed and replaced at every event
	notify  func(Event)
	now     func() time.Time
}

func newEventLog(now func() time.Time, notify func(Event)) *eventLog {
	return &eventLog{changed: make(chan struct{}), notify: notify, now: now}
}

func (l *eventLog) add(e Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seq++
	e.Seq, e.Time = l.seq, l.now()
	if len(l.events) >= maxRemembered {
		l.events = slices.Delete(l.events, 0, maxRemembered/2)
	}
	l.events = append(l.events, e)
	close(l.changed)
	l.changed = make(chan struct{})
	if l.notify != nil {
		l.notify(e)
	}
}

func (l *eventLog) since(seq int) ([]Event, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i, _ := slices.BinarySearchFunc(l.events, seq+1, func(e Event, want int) int { return e.Seq - want })
	return slices.Clone(l.events[i:]), l.changed
}

// Events returns the remembered events after number seq (0 for all), oldest first. The host remembers at least the last
// four thousand.
func (h *Host) Events(seq int) []Event {
	events, _ := h.events.since(seq)
	return events
}

// WaitEvent returns the first remembered or coming event after number seq for which match is true. The error is
// ctx.Err().
func (h *Host) WaitEvent(ctx context.Context, seq int, match func(Event) bool) (Event, error) {
	for {
		events, changed := h.events.since(seq)
		for _, e := range events {
			if match(e) {
				return e, nil
			}
			seq = e.Seq
		}
		select {
		case <-ctx.Done():
			return Event{}, ctx.Err()
		case <-changed:
		}
	}
}
