package funchost

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"
)

// fakeBus is one queue in memory, with locks that expire only when a test says so.
type fakeBus struct {
	mu        sync.Mutex
	waiting   []*azservicebus.ReceivedMessage
	changed   chan struct{} // closed and replaced when something happened
	clock     *fakeClock
	lock      time.Duration // of a message from its receipt, and of a renewal
	lost      map[string]bool
	fail      []error // of the next receives; nil is an ending link
	opened    int
	closed    int
	renewals  int
	completed []string
	abandoned []string
	stopping  chan struct{} // if not nil, stop waits until it is closed
}

func newFakeBus() *fakeBus {
	return &fakeBus{changed: make(chan struct{}), lost: map[string]bool{}, lock: time.Minute}
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

func (f *fakeBus) happenedLocked() {
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *fakeBus) put(id, body string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waiting = append(f.waiting, &azservicebus.ReceivedMessage{MessageID: id, Body: []byte(body)})
	f.happenedLocked()
}

// fails makes the next receives end with these errors, also one that is waiting.
func (f *fakeBus) fails(errs ...error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail = append(f.fail, errs...)
	f.happenedLocked()
}

func (f *fakeBus) receive(ctx context.Context) (*delivery, error) {
	for ctx.Err() == nil {
		f.mu.Lock()
		changed := f.changed
		if len(f.fail) > 0 {
			err := f.fail[0]
			f.fail = f.fail[1:]
			f.mu.Unlock()
			return nil, err
		}
		if len(f.waiting) > 0 {
			m := *f.waiting[0]
			f.waiting = f.waiting[1:]
			m.DeliveryCount++
			until := f.clock.Now().Add(f.lock)
			m.LockedUntil = &until
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
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lost[d.MessageID] {
		return errMessageLockLost
	}
	f.renewals++
	until := f.clock.Now().Add(f.lock)
	d.LockedUntil = &until
	return nil
}

func (f *fakeBus) complete(ctx context.Context, d *delivery) error {
	return f.settle(ctx, d, &f.completed)
}

func (f *fakeBus) abandon(ctx context.Context, d *delivery) error {
	if err := f.settle(ctx, d, &f.abandoned); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if d.DeliveryCount < 10 { // then it is dead
		f.waiting = slices.Insert(f.waiting, 0, d.ReceivedMessage)
		f.happenedLocked()
	}
	return nil
}

func (f *fakeBus) settle(ctx context.Context, d *delivery, list *[]string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if f.lost[d.MessageID] {
		return errMessageLockLost
	}
	*list = append(*list, d.MessageID)
	return nil
}

func (f *fakeBus) stop(context.Context) {
	if f.stopping != nil {
		<-f.stopping
	}
}

func (f *fakeBus) close(context.Context) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed++
}

// read returns what has happened so far.
func (f *fakeBus) read(what func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	what()
}

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
