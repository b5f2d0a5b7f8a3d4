package servicebus

import (
	"context"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/run"
)

// Queue is one queue of a namespace. It is safe for concurrent use.
type Queue struct {
	namespace *Namespace
	name      string
}

var _ run.Queue = (*Queue)(nil)

// maxID is the service's limit for a message's id (docs/facts.md F56).
const maxID = 128

// Send sends messages in as few batches as their sizes allow. The service stores a batch whole or not at all. An error
// that concerns all messages ends the call; the messages not yet sent get the same error. Errors by kind: as run.Queue,
// and internal, code "message_id", for an ID that is empty or too long.
func (q *Queue) Send(ctx context.Context, messages []run.Outgoing) []error {
	s := sending{queue: q, messages: messages, errs: make([]error, len(messages)), decided: make([]bool, len(messages))}
	at := make([]int, 0, len(messages))
	for i, m := range messages {
		if err := check(m); err != nil {
			s.decide(err, i)
			continue
		}
		at = append(at, i)
	}
	if err := s.send(ctx, at); err != nil {
		for i := range s.errs {
			if !s.decided[i] {
				s.errs[i] = err
			}
		}
	}
	return s.errs
}

// check finds messages that must not reach the service, which would refuse the whole batch with an error like a lost
// connection.
func check(m run.Outgoing) *fault.Error {
	const op = "servicebus: send"
	switch {
	case m.ID == "" || len(m.ID) > maxID:
		return fault.New(fault.Internal, op, "message_id",
			"a message's id has 1 to %d characters, not %d", maxID, len(m.ID))
	case len(m.Body) > run.MaxBody:
		return fault.New(fault.Document, op, codeTooLarge, "a body has at most %d bytes, not %d",
			run.MaxBody, len(m.Body))
	}
	return nil
}

type sending struct {
	queue    *Queue
	messages []run.Outgoing
	errs     []error
	// decided marks the messages whose result in errs is final.
	decided []bool
}

// decide sets the result of messages.
func (s *sending) decide(err *fault.Error, at ...int) {
	for _, i := range at {
		s.decided[i] = true
		if err != nil {
			s.errs[i] = err
		}
	}
}

// send sends the messages at the indexes at, in their order. Its error concerns all messages that are not decided.
func (s *sending) send(ctx context.Context, at []int) *fault.Error {
	for len(at) > 0 {
		batch, err := s.queue.newBatch(ctx)
		if err != nil {
			return err
		}
		n, err := s.fill(batch, at)
		if err != nil && err.Code != codeTooLarge {
			return err
		}
		if n == 0 { // it fits into no batch
			s.decide(err, at[0])
			at = at[1:]
			continue
		}
		if err := s.sendBatch(ctx, batch, at[:n]); err != nil {
			return err
		}
		at = at[n:]
	}
	return nil
}

// fill adds messages to a batch. It returns how many fit, and the error of the next one.
func (s *sending) fill(batch *azservicebus.MessageBatch, at []int) (int, *fault.Error) {
	for n, i := range at {
		if err := batch.AddMessage(s.queue.native(s.messages[i]), nil); err != nil {
			failed, _ := translate("servicebus: send", err)
			return n, failed
		}
	}
	return len(at), nil
}

// sendBatch sends a batch of the messages at the indexes at. A batch that the service finds too large is divided,
// because the service counts otherwise than the SDK.
func (s *sending) sendBatch(ctx context.Context, batch *azservicebus.MessageBatch, at []int) *fault.Error {
	err := s.queue.namespace.call(ctx, "servicebus: send", s.queue.name,
		func(ctx context.Context, native *azservicebus.Sender) error {
			return native.SendMessageBatch(ctx, batch, nil)
		})
	switch {
	case err == nil:
		s.decide(nil, at...)
		return nil
	case err.Code != codeTooLarge:
		return err
	case len(at) == 1:
		s.decide(err, at...)
		return nil
	}
	if err := s.send(ctx, at[:len(at)/2]); err != nil {
		return err
	}
	return s.send(ctx, at[len(at)/2:])
}

// newBatch makes an empty batch. The first one opens the queue, because only the service knows its limit for a batch.
func (q *Queue) newBatch(ctx context.Context) (*azservicebus.MessageBatch, *fault.Error) {
	var batch *azservicebus.MessageBatch
	err := q.namespace.call(ctx, "servicebus: open", q.name,
		func(ctx context.Context, native *azservicebus.Sender) error {
			var err error
			batch, err = native.NewMessageBatch(ctx, nil)
			return err
		})
	return batch, err
}

// native converts a message to the SDK's type.
func (q *Queue) native(m run.Outgoing) *azservicebus.Message {
	native := &azservicebus.Message{Body: m.Body, MessageID: to.Ptr(m.ID), ContentType: to.Ptr("application/json")}
	if m.Delay > 0 {
		native.ScheduledEnqueueTime = to.Ptr(q.namespace.now().UTC().Add(m.Delay).Round(time.Millisecond))
	}
	return native
}

// Try opens the queue as Send does and looks into it as Count does, and sends nothing. Errors as theirs.
func (q *Queue) Try(ctx context.Context) error {
	if _, err := q.newBatch(ctx); err != nil {
		return err
	}
	_, _, err := q.Count(ctx, 1)
	return err
}
