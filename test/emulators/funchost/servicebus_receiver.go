package funchost

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

// errMessageLockLost says that a message is no longer this receiver's: its lock has expired, or it is settled.
var errMessageLockLost = errors.New("the message's lock is lost")

// delivery is one locked message.
type delivery struct {
	*azservicebus.ReceivedMessage
	link int64 // the receiver's link it came over
}

// messageReceiver takes messages out of one queue under a lock (peek-lock).
type messageReceiver interface {
	// receive waits for one message. Neither a message nor an error means that the link ended: the next call makes a
	// new one.
	receive(ctx context.Context) (*delivery, error)
	// renew lengthens the lock and updates LockedUntil. errMessageLockLost: it is too late.
	renew(ctx context.Context, d *delivery) error
	// complete deletes the message, abandon gives it back with its delivery count raised. Both are safe to call after
	// the connection the message came over is gone. errMessageLockLost: it is too late.
	complete(ctx context.Context, d *delivery) error
	abandon(ctx context.Context, d *delivery) error
	// stop ends the receiving, so that no message is taken any more; those that are out can still be settled.
	stop(ctx context.Context)
	// close gives up the connection; locks run on until they expire.
	close(ctx context.Context)
}

// queueReceiver is a messageReceiver over AMQP. It has a client, and so a connection, of its own: a receiver in trouble
// closes and dials the connection again, which would disturb every other link of a shared one.
type queueReceiver struct {
	client   *azservicebus.Client
	entity   string
	receiver *azservicebus.Receiver
	settler  atomic.Pointer[azservicebus.Receiver] // the same one until stop
	link     atomic.Int64                          // counts the links that are known to have ended
	timeout  time.Duration                         // of one try to settle
}

// Deadlines of single calls, in wall time: the client itself waits without end for a peer that has gone silent, and a
// settlement over a link that is gone is never answered.
const (
	settleTimeout = 5 * time.Second
	renewTimeout  = 10 * time.Second
	closeTimeout  = 2 * time.Second
)

func openServiceBus(t *serviceBusTrigger) (messageReceiver, error) {
	client, err := azservicebus.NewClientFromConnectionString(t.connection, &azservicebus.ClientOptions{
		RetryOptions: azservicebus.RetryOptions{
			MaxRetries: 3, RetryDelay: t.retryDelay, MaxRetryDelay: time.Minute,
		},
	})
	if err != nil {
		return nil, fmt.Errorf("service bus client: %w", err)
	}
	receiver, err := client.NewReceiverForQueue(t.entity, nil)
	if err != nil {
		return nil, fmt.Errorf("service bus receiver: %w", err)
	}
	q := &queueReceiver{client: client, entity: t.entity, receiver: receiver, timeout: settleTimeout}
	q.settler.Store(receiver)
	return q, nil
}

// receive asks for one message at a time: credit that is left over from a larger request makes the client take messages
// in and release them behind the caller's back.
func (q *queueReceiver) receive(ctx context.Context) (*delivery, error) {
	got, err := q.receiver.ReceiveMessages(ctx, 1, nil)
	if len(got) > 0 {
		return &delivery{got[0], q.link.Load()}, nil
	}
	if ctx.Err() == nil {
		q.link.Add(1)
	}
	return nil, err
}

func (q *queueReceiver) renew(ctx context.Context, d *delivery) error {
	ctx, cancel := context.WithTimeout(ctx, renewTimeout)
	defer cancel()
	return lockError(q.settler.Load().RenewMessageLock(ctx, d.ReceivedMessage, nil))
}

func (q *queueReceiver) complete(ctx context.Context, d *delivery) error {
	return q.settle(ctx, d,
		func(ctx context.Context, r *azservicebus.Receiver, message *azservicebus.ReceivedMessage) error {
			return r.CompleteMessage(ctx, message, nil)
		})
}

func (q *queueReceiver) abandon(ctx context.Context, d *delivery) error {
	return q.settle(ctx, d,
		func(ctx context.Context, r *azservicebus.Receiver, message *azservicebus.ReceivedMessage) error {
			return r.AbandonMessage(ctx, message, nil)
		})
}

// settlement is one way to settle a message.
type settlement func(ctx context.Context, r *azservicebus.Receiver, message *azservicebus.ReceivedMessage) error

// settle settles over the link the message came by, or, when that link is gone, by its lock token over the management
// link, as the .NET client does. A renewal goes before the latter: it brings the connection up again by the client's
// own retry options, which a settlement does not heed.
func (q *queueReceiver) settle(ctx context.Context, d *delivery, how settlement) error {
	if d.link == q.link.Load() {
		direct, cancel := context.WithTimeout(ctx, q.timeout)
		defer cancel()
		err := lockError(how(direct, q.receiver, d.ReceivedMessage))
		if err == nil || errors.Is(err, errMessageLockLost) {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, q.timeout)
	defer cancel()
	settler := q.settler.Load()
	if err := settler.RenewMessageLock(ctx, d.ReceivedMessage, nil); err != nil {
		return lockError(err)
	}
	return lockError(how(ctx, settler, &azservicebus.ReceivedMessage{LockToken: d.LockToken}))
}

// stop closes the link and leaves the settling to another one, which never asks for a message. The receive that was cut
// short has left credit behind: what the host abandons from now on would come back over it, and stay locked.
func (q *queueReceiver) stop(ctx context.Context) {
	if settler, err := q.client.NewReceiverForQueue(q.entity, nil); err == nil {
		q.settler.Store(settler)
	}
	q.link.Add(1)
	closeReceiver(ctx, q.receiver)
}

func closeReceiver(ctx context.Context, r *azservicebus.Receiver) {
	ctx, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	_ = r.Close(ctx) // a failed close keeps no lock
}

func (q *queueReceiver) close(ctx context.Context) {
	closeReceiver(ctx, q.settler.Load())
	closeReceiver(ctx, q.receiver)
	ctx, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	_ = q.client.Close(ctx) // as above
}

// lockError recognizes a lost lock.
func lockError(err error) error {
	var failed *azservicebus.Error
	if errors.As(err, &failed) && failed.Code == azservicebus.CodeLockLost {
		return fmt.Errorf("%w: %w", errMessageLockLost, err)
	}
	return err
}
