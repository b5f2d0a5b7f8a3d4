package servicebus

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"sqlwriter/internal/fault"
)

// Namespace is the connection to a Service Bus namespace: one Client for the process and one Sender for each queue, made
// when they are first needed and made anew when they are broken. It is safe for concurrent use.
type Namespace struct {
	build    buildFunc
	timeouts Timeouts
	now      func() time.Time

	mu sync.Mutex
	// client is nil until it is needed, and after it was given up.
	client  *azservicebus.Client
	senders map[string]*sender
	closed  bool
	// closing counts what is being closed in the background. Nothing joins it once closed is set: Close waits for it.
	closing sync.WaitGroup
}

// sender is an SDK's Sender.
type sender struct {
	*azservicebus.Sender
	client *azservicebus.Client
	queue  string
	// proven says that a call through it has succeeded: its connection was there once.
	proven atomic.Bool
}

// Queue gives one queue. Nothing is asked of the service; a queue that does not exist is found by the first Send.
func (n *Namespace) Queue(name string) *Queue { return &Queue{namespace: n, name: name} }

// Close lets go of the connection. Calls that are still under way fail as infrastructure, and so does every later one.
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

// call makes one call through a queue's Sender within its deadline. A Sender that has worked before and is broken now is
// replaced, and the call is made once more; see doc.go.
func (n *Namespace) call(ctx context.Context, op, queue string, do func(context.Context, *azservicebus.Sender) error) *fault.Error {
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
		if ended := ctx.Err(); ended != nil { // go-amqp's own word for it may be another
			native = ended
		}
		failed, leaves := translate(op, native)
		if leaves == works {
			return failed
		}
		worked := s.proven.Load()
		n.discard(ctx, s, leaves == lost && !worked)
		if again || !worked || ctx.Err() != nil {
			return failed
		}
	}
}

// sender gives a queue's Sender.
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

// discard gives a Sender up, and its Client with all Senders when withClient says so, unless somebody else was faster. After
// Close there is nothing to give up: the Senders end with their Client.
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

// retire closes something in the background. That it cannot be closed is no news: it was broken. The caller holds mu.
func (n *Namespace) retire(ctx context.Context, closeIt func(context.Context) error) {
	n.closing.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), n.timeouts.Close)
		defer cancel()
		_ = closeIt(ctx)
	})
}
