package spies

import (
	"context"
	"sync"
	"time"

	"sqlwriter/internal/run"
	"sqlwriter/test/inmem"
)

// mostDeliveries is the host's number of deliveries after which a message is a dead letter (host.json,
// deploy/local/servicebus.json).
const mostDeliveries = 10

// Bus is a queue as the host serves it, on the clock of a synctest bubble: a message that is not handled comes again
// at once, and is a dead letter after ten deliveries.
type Bus struct {
	*inmem.Queue
	wake chan struct{}

	mu      sync.Mutex
	letters []run.Incoming
	most    int
}

// NewBus makes an empty queue that detects duplicates for ten minutes.
func NewBus() *Bus {
	b := &Bus{Queue: inmem.NewQueue(time.Now), wake: make(chan struct{}, 1)}
	b.DetectDuplicates(10 * time.Minute)
	return b
}

// Send implements run.Queue.
func (b *Bus) Send(ctx context.Context, messages []run.Outgoing) []error {
	defer b.Signal()
	return b.Queue.Send(ctx, messages)
}

// Signal wakes one that waits for a message.
func (b *Bus) Signal() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// Next waits for a message; false when the context ends.
func (b *Bus) Next(ctx context.Context) (run.Incoming, bool) {
	for ctx.Err() == nil {
		if in, ok := b.Take(); ok {
			b.Signal() // there may be more
			b.mu.Lock()
			b.most = max(b.most, in.Count)
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

// Again gives a message back that was not handled.
func (b *Bus) Again(in run.Incoming) {
	defer b.Signal()
	if in.Count < mostDeliveries {
		b.PutBack(in)
		return
	}
	in.Properties = map[string]string{
		"DeadLetterReason":           "MaxDeliveryCountExceeded",
		"DeadLetterErrorDescription": "Message could not be consumed after 10 delivery attempts.",
	}
	b.PutLetter(in)
}

// PutLetter adds a dead letter.
func (b *Bus) PutLetter(in run.Incoming) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.letters = append(b.letters, in)
}

// TakeLetter takes the oldest dead letter.
func (b *Bus) TakeLetter() (in run.Incoming, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.letters) == 0 {
		return in, false
	}
	in, b.letters = b.letters[0], b.letters[1:]
	return in, true
}

// Letters counts the dead letters.
func (b *Bus) Letters() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.letters)
}

// MostDeliveries is the highest delivery count of a message.
func (b *Bus) MostDeliveries() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.most
}
