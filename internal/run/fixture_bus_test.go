package run_test

import (
	"context"
	"slices"
	"sync"
	"time"

	"sqlwriter/internal/run"
	"sqlwriter/test/inmem"
)

// bus is a queue with locks. A message that is taken is completed or abandoned, and after ten deliveries a dead letter.
type bus struct {
	*inmem.Queue
	wake chan struct{}

	mu            sync.Mutex
	deadLetters   []run.Incoming
	maxDeliveries int
	sent          []sending
	lockTime      time.Duration
	// refuse is the queue's error for a single message.
	refuse func(run.Outgoing) error
}

type sending struct {
	at time.Time
	id string
}

func newBus() *bus {
	b := &bus{Queue: inmem.NewQueue(time.Now), wake: make(chan struct{}, 1), lockTime: time.Minute}
	b.DetectDuplicates(10 * time.Minute)
	return b
}

func (b *bus) signal() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// Send takes an hour once more was sent than any test needs: who sends for ever then meets the end of a wait.
func (b *bus) Send(ctx context.Context, messages []run.Outgoing) []error {
	if len(b.sendings()) > 3000 {
		time.Sleep(time.Hour)
	}
	defer b.signal()
	b.mu.Lock()
	for _, m := range messages {
		b.sent = append(b.sent, sending{time.Now(), m.ID})
	}
	b.mu.Unlock()
	if b.refuse == nil {
		return b.Queue.Send(ctx, messages)
	}
	errs := make([]error, len(messages))
	for i, m := range messages {
		if errs[i] = b.refuse(m); errs[i] == nil {
			errs[i] = b.Queue.Send(ctx, []run.Outgoing{m})[0]
		}
	}
	return errs
}

func (b *bus) sendings() []sending {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.sent)
}

// again abandons a message.
func (b *bus) again(in run.Incoming) {
	defer b.signal()
	const most = 10
	if in.Count < most {
		b.PutBack(in)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	in.Properties = map[string]string{
		"DeadLetterReason":           "MaxDeliveryCountExceeded",
		"DeadLetterErrorDescription": "Message could not be consumed after 10 delivery attempts.",
	}
	b.deadLetters = append(b.deadLetters, in)
}

// take waits for a message.
func (b *bus) take(ctx context.Context) (run.Incoming, bool) {
	for ctx.Err() == nil {
		if in, ok := b.Take(); ok {
			b.signal() // there may be more
			b.mu.Lock()
			b.maxDeliveries = max(b.maxDeliveries, in.Count)
			b.mu.Unlock()
			return in, true
		}
		rest := time.Hour
		if due, ok := b.NextDue(); ok {
			rest = time.Until(due)
		}
		timer := time.NewTimer(rest)
		select {
		case <-timer.C:
		case <-b.wake:
		case <-ctx.Done():
		}
		timer.Stop()
	}
	return run.Incoming{}, false
}

func (b *bus) takeDeadLetter() (run.Incoming, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.deadLetters) == 0 {
		return run.Incoming{}, false
	}
	in := b.deadLetters[0]
	b.deadLetters = b.deadLetters[1:]
	return in, true
}

// mostDeliveries is the highest delivery count of a message.
func (b *bus) mostDeliveries() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.maxDeliveries
}

func (b *bus) countDeadLetters() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.deadLetters)
}
