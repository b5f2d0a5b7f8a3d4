package funchost

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"
)

// fakeBus is one queue in memory, with locks of a minute.
type fakeBus struct {
	mu      sync.Mutex
	waiting []*azservicebus.ReceivedMessage
	changed chan struct{} // closed and replaced when something happened
	clock   *fakeClock
	ends    int // how many of the next receives meet a link that ends
	opened  int
}

func newFakeBus() *fakeBus { return &fakeBus{changed: make(chan struct{})} }

// locked is when a lock ends that is got now.
func (f *fakeBus) locked() *time.Time {
	until := f.clock.Now().Add(time.Minute)
	return &until
}

// uses makes a host receive from f.
func (f *fakeBus) uses() func(*Host, *Options) {
	return func(h *Host, _ *Options) {
		if h != nil {
			f.clock, _ = h.clock.(*fakeClock)
			h.openServiceBus = func(*serviceBusTrigger) (messageReceiver, error) {
				f.mu.Lock()
				defer f.mu.Unlock()
				f.opened++
				return f, nil
			}
		}
	}
}

func (f *fakeBus) put(id, body string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waiting = append(f.waiting, &azservicebus.ReceivedMessage{MessageID: id, Body: []byte(body)})
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *fakeBus) receive(ctx context.Context) (*delivery, error) {
	for ctx.Err() == nil {
		f.mu.Lock()
		changed := f.changed
		if f.ends > 0 {
			f.ends--
			f.mu.Unlock()
			return nil, nil
		}
		if len(f.waiting) > 0 {
			m := *f.waiting[0]
			f.waiting = f.waiting[1:]
			m.DeliveryCount++
			m.LockedUntil = f.locked()
			f.mu.Unlock()
			return &delivery{ReceivedMessage: &m}, nil
		}
		f.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
	return nil, ctx.Err()
}

func (f *fakeBus) renew(_ context.Context, d *delivery) error {
	d.LockedUntil = f.locked()
	return nil
}

func (*fakeBus) complete(ctx context.Context, _ *delivery) error { return ctx.Err() }
func (*fakeBus) abandon(ctx context.Context, _ *delivery) error  { return ctx.Err() }
func (*fakeBus) stop(context.Context)                            {}
func (*fakeBus) close(context.Context)                           {}

const serviceBusSetting = "Endpoint=sb://127.0.0.1:1;SharedAccessKeyName=k;SharedAccessKey=secret=;UseDevelopmentEmulator=true;"

// busBinding is a good serviceBusTrigger with some more properties.
func busBinding(properties string) string {
	return fmt.Sprintf(
		`{"bindings":[{"type":"serviceBusTrigger","name":"message","direction":"in","queueName":"batches","connection":"SERVICEBUS"%s}]}`, properties)
}

func TestAFunctionWhoseQueueIsNotSetIsNotIndexedAndTheOthersRun(t *testing.T) {
	bus := newFakeBus()
	text := strings.Replace(busBinding(""), `"batches"`, `"%BATCHES_QUEUE%"`, 1)
	b := start(t, newRoot(t).function("Bad", text).function("Good", busBinding("")), bus.uses())
	e := b.await(FunctionRefused)
	require.Equal(t, "Bad", e.Function)
	require.ErrorContains(t, e.Err, "'%BATCHES_QUEUE%' does not resolve to a value: set it in the app settings")
	bus.put("a", "x")
	require.Equal(t, "Good", b.await(MessageCompleted).Function)
}
