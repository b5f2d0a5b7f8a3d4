package servicebus

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"sqlwriter/internal/fault"
)

// Namespace is the connection to a Service Bus namespace: one Client for the process and one Sender for each queue. It
// connects on first use and replaces broken clients and senders. It is safe for concurrent use.
type Namespace struct {
	build    buildFunc
	timeouts Timeouts
	now      func() time.Time

	mu sync.Mutex
	// client is nil before the first use, and after a failure that needs a new one.
	client  *azservicebus.Client
	senders map[string]*sender
	closed  bool
	// closing counts the closings in the background. Close waits for it, and nothing is added once closed is set.
	closing sync.WaitGroup
}

type sender struct {
	*azservicebus.Sender
	client *azservicebus.Client
	queue  string
	// proven is true after the first successful call through the Sender.
	proven atomic.Bool
}

// Queue gives one queue without a request. The first Send finds out whether the queue exists.
func (n *Namespace) Queue(name string) *Queue { return &Queue{namespace: n, name: name} }

// Close closes the connection. Calls in progress and later calls fail as infrastructure.
func (n *Namespace) Close() {
	n.mu.Lock()
	if n.client != nil {
		n.retire(context.Background(), n.client.Close)
	}
	n.closed = true
	n.client, n.senders = nil, map[string]*sender{}
	n.mu.Unlock()
	n.closing.Wait()
}

// call makes one call through a queue's Sender within its deadline. A Sender that worked before and is broken now is
// replaced, and the call is made once more (see doc.go).
func (n *Namespace) call(
	ctx context.Context, op, queue string, do func(context.Context, *azservicebus.Sender) error,
) *fault.Error {
	ctx, cancel := context.WithTimeout(ctx, n.timeouts.Call)
	defer cancel()
	for again := false; ; again = true {
		s, err := n.sender(queue)
		if err != nil {
			return err
		}
		native := do(ctx, s.Sender)
		if native == nil {
			s.proven.Store(true)
			return nil
		}
		if ended := ctx.Err(); ended != nil { // go-amqp may report another error
			native = ended
		}
		failed, state := translate(op, native)
		if state == usable {
			return failed
		}
		worked := s.proven.Load()
		n.discard(ctx, s, state == lost && !worked)
		if again || !worked || ctx.Err() != nil {
			return failed
		}
	}
}

// sender gives a queue's Sender, and makes it on first use.
func (n *Namespace) sender(queue string) (*sender, *fault.Error) {
	const op = "servicebus: open"
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil, fault.New(fault.Infrastructure, op, "closed", "the connection was closed while it was in use")
	}
	if s, there := n.senders[queue]; there {
		return s, nil
	}
	if n.client == nil {
		client, err := n.build()
		if err != nil {
			return nil, fault.Wrap(fault.Infrastructure, op, "settings", "the settings cannot be used", err)
		}
		n.client = client
	}
	native, err := n.client.NewSender(queue, nil)
	if err != nil {
		failed, _ := translate(op, err)
		return nil, failed
	}
	s := &sender{Sender: native, client: n.client, queue: queue}
	n.senders[queue] = s
	return s, nil
}

// discard removes a Sender, and its Client with all Senders when withClient is true. It skips what another call has
// replaced already. After Close it does nothing: the Senders end with their Client.
func (n *Namespace) discard(ctx context.Context, s *sender, withClient bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return
	}
	if n.senders[s.queue] == s {
		delete(n.senders, s.queue)
	}
	if withClient && n.client == s.client && n.client != nil {
		n.client = nil
		clear(n.senders)
		n.retire(ctx, s.client.Close)
		return
	}
	n.retire(ctx, s.Close)
}

// retire closes a Sender or Client in the background. It ignores the error, because the thing was broken. The caller
// holds mu.
func (n *Namespace) retire(ctx context.Context, closeIt func(context.Context) error) {
	n.closing.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), n.timeouts.Close)
		defer cancel()
		_ = closeIt(ctx)
	})
}
