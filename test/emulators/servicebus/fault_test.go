package servicebus_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"sqlwriter/test/emulators/servicebus"
	"sqlwriter/test/emulators/servicebus/servicebustest"
)

// What the SDK makes of each answer, with quick retries. A wrong row here is a wrong emulator or a new SDK.
func TestFaultsOnSend(t *testing.T) {
	t.Parallel()
	const once = 1
	code := func(want azservicebus.Code) func(*testing.T, error) {
		return func(t *testing.T, err error) { t.Helper(); requireCode(t, want, err) }
	}
	condition := func(want string) func(*testing.T, error) {
		return func(t *testing.T, err error) {
			t.Helper()
			requireCondition(t, want, err)
			var coded *azservicebus.Error
			require.False(t, errors.As(err, &coded), "no code of the SDK")
		}
	}
	works := func(t *testing.T, err error) { t.Helper(); require.NoError(t, err) }
	tooLarge := func(t *testing.T, err error) { t.Helper(); require.ErrorIs(t, err, azservicebus.ErrMessageTooLarge) }
	reject := func(condition string) servicebus.Fault {
		return servicebus.Fault{Then: servicebus.Reject, Condition: condition}
	}
	for name, c := range map[string]struct {
		fault          servicebus.Fault
		want           func(*testing.T, error)
		stored, struck int
	}{
		"queue full": {reject("amqp:resource-limit-exceeded"), condition("amqp:resource-limit-exceeded"), 0, 1},
		"busy once": {
			servicebus.Fault{Then: servicebus.Reject, Condition: "com.microsoft:server-busy", Times: once}, works, 1, 1,
		},
		"always busy":    {reject("com.microsoft:server-busy"), condition("com.microsoft:server-busy"), 0, 3},
		"timeout":        {reject("com.microsoft:timeout"), code(azservicebus.CodeTimeout), 0, 3},
		"internal error": {reject("amqp:internal-error"), code(azservicebus.CodeConnectionLost), 0, 3},
		"unauthorized":   {reject("amqp:unauthorized-access"), code(azservicebus.CodeUnauthorizedAccess), 0, 1},
		"disabled":       {reject("com.microsoft:entity-disabled"), condition("com.microsoft:entity-disabled"), 0, 1},
		"too large":      {reject("amqp:link:message-size-exceeded"), tooLarge, 0, 1},
		"stored yet timeout": {
			servicebus.Fault{Then: servicebus.Reject, Condition: "com.microsoft:timeout", Apply: true},
			code(azservicebus.CodeTimeout), 3, 3,
		},
		"stored, cut once": {servicebus.Fault{Then: servicebus.Drop, Apply: true, Times: once}, works, 2, 1},
		"stored, always cut": {
			servicebus.Fault{Then: servicebus.Drop, Apply: true}, code(azservicebus.CodeConnectionLost), 3, 3,
		},
		"cut once":   {servicebus.Fault{Then: servicebus.Drop, Times: once}, works, 1, 1},
		"always cut": {servicebus.Fault{Then: servicebus.Drop}, code(azservicebus.CodeConnectionLost), 0, 3},
		"link ended once": {
			servicebus.Fault{Then: servicebus.Detach, Condition: "amqp:link:detach-forced", Times: once}, works, 1, 1,
		},
		"only after two":    {servicebus.Fault{Then: servicebus.Drop, Skip: 2}, works, 1, 0},
		"for another queue": {servicebus.Fault{Queue: "other", Then: servicebus.Drop}, works, 1, 0},
		"for its dead letter": {
			servicebus.Fault{Queue: servicebus.DeadLetterPath(jobs), Then: servicebus.Drop}, works, 1, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, client := startTwo(t)
			fault := c.fault
			fault.On = servicebus.OnSend
			if fault.Queue == "" {
				fault.Queue = jobs
			}
			s.Fail(fault)
			sender := newSender(t, client)
			c.want(t, sender.SendMessage(deadline(t), &azservicebus.Message{Body: []byte("x")}, nil))
			require.Equal(t, c.stored, s.Counts(jobs).Active)
			require.Equal(t, c.struck, s.Faults()[0].Struck)
			s.Heal()
			send(t, sender, "afterwards")
			require.Equal(t, c.stored+1, s.Counts(jobs).Active)
		})
	}
}

// untilStruck does something until the first fault has struck, and gives what became of it.
func untilStruck(t *testing.T, s *servicebustest.Server, do func(context.Context) error) error {
	t.Helper()
	ctx, cancel := context.WithCancel(deadline(t))
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- do(ctx) }()
	require.Eventually(t, func() bool { return s.Faults()[0].Struck > 0 }, patience, time.Millisecond)
	select {
	case err := <-ended:
		return err
	default:
	}
	cancel()
	return <-ended
}

// rhea's own dispositions gave 32 concurrent senders wrong outcomes.
func TestEverySenderGetsItsOwnOutcome(t *testing.T) {
	t.Parallel()
	s, client := start(t)
	const senders, each = 32, 50
	s.Fail(
		servicebus.Fault{
			On: servicebus.OnSend, Then: servicebus.Reject, Condition: "amqp:resource-limit-exceeded", Every: 2,
		})
	sender := newSender(t, client)
	var wg sync.WaitGroup
	var stored, refused atomic.Int64
	for range senders {
		wg.Go(func() {
			for range each {
				if err := sender.SendMessage(deadline(t), &azservicebus.Message{Body: []byte("x")}, nil); err != nil {
					refused.Add(1)
				} else {
					stored.Add(1)
				}
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, senders*each/2, stored.Load())
	require.EqualValues(t, senders*each/2, refused.Load())
	require.Equal(t, senders*each/2, s.Counts(jobs).Active)
}

func TestFaultsOnSettle(t *testing.T) {
	t.Parallel()
	t.Run("lock lost", func(t *testing.T) {
		s, client := start(t)
		send(t, newSender(t, client), "a")
		receiver := newReceiver(t, client)
		m := receiveOne(t, receiver)
		s.Fail(servicebus.Fault{Queue: jobs, On: servicebus.OnSettle, Then: servicebus.LockLost, Times: 1})
		requireCode(t, azservicebus.CodeLockLost, receiver.CompleteMessage(deadline(t), m, nil))
		require.Equal(t, 1, s.Counts(jobs).Active)
		again := receiveOne(t, receiver)
		require.EqualValues(t, 2, again.DeliveryCount)
		require.NoError(t, receiver.CompleteMessage(deadline(t), again, nil))
	})
	for name, c := range map[string]struct {
		apply bool
		left  int
	}{"done, not told": {true, 0}, "neither done nor told": {false, 1}} {
		t.Run(name, func(t *testing.T) {
			s, client := start(t)
			send(t, newSender(t, client), "a")
			receiver := newReceiver(t, client)
			m := receiveOne(t, receiver)
			s.Fail(servicebus.Fault{On: servicebus.OnSettle, Then: servicebus.Hang, Apply: c.apply, Times: 1})
			err := untilStruck(t, s, func(ctx context.Context) error { return receiver.CompleteMessage(ctx, m, nil) })
			require.ErrorIs(t, err, context.Canceled)
			require.Equal(t, c.left, s.Counts(jobs).Active)
		})
	}
}
