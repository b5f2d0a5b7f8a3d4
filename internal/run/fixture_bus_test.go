package run_test

import (
	"context"
	"slices"
	"sync"
	"time"

	"sqlwriter/internal/run"
	"sqlwriter/test/spies"
)

// lockTime is how long a message stays locked whose process has died.
const lockTime = time.Minute

// bus is a queue that remembers what was sent.
type bus struct {
	*spies.Bus
	// refuse is the queue's error for a single message.
	refuse func(run.Outgoing) error

	mu   sync.Mutex
	sent []sending
}

type sending struct {
	at time.Time
	id string
}

func newBus() *bus { return &bus{Bus: spies.NewBus()} }

// Send takes an hour once more was sent than any test needs: who sends for ever then meets the end of a wait.
func (b *bus) Send(ctx context.Context, messages []run.Outgoing) []error {
	if len(b.sendings()) > 3000 {
		time.Sleep(time.Hour)
	}
	b.mu.Lock()
	for _, m := range messages {
		b.sent = append(b.sent, sending{time.Now(), m.ID})
	}
	b.mu.Unlock()
	if b.refuse == nil {
		return b.Bus.Send(ctx, messages)
	}
	errs := make([]error, len(messages))
	for i, m := range messages {
		if errs[i] = b.refuse(m); errs[i] == nil {
			errs[i] = b.Bus.Send(ctx, []run.Outgoing{m})[0]
		}
	}
	return errs
}

func (b *bus) sendings() []sending {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.sent)
}
