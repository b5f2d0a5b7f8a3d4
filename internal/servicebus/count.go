package servicebus

import (
	"cmp"
	"context"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/ops"
)

var _ ops.Messages = (*Queue)(nil)

// peekSize is the largest number of messages that one peek asks for.
const peekSize = 250

// Count implements ops.Messages. It peeks, which needs only the right to listen that the triggers have, and changes no
// message. The service's own counts need the right to manage (docs/facts.md F111). It uses its own Client, because it
// is rare: a Client with a broken connection would have to be found and replaced.
func (q *Queue) Count(ctx context.Context, most int) (active, deadLettered ops.Count, err error) {
	ctx, cancel := context.WithTimeout(ctx, q.namespace.timeouts.Call)
	defer cancel()
	client, err := q.namespace.build()
	if err != nil {
		return active, deadLettered,
			fault.Wrap(fault.Infrastructure, "servicebus: peek", "settings", "the settings cannot be used", err)
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), q.namespace.timeouts.Close)
		defer cancel()
		_ = client.Close(closing)
	}()
	if active, err = q.peek(ctx, client, most, nil); err == nil {
		deadLettered, err = q.peek(ctx, client, most,
			&azservicebus.ReceiverOptions{SubQueue: azservicebus.SubQueueDeadLetter})
	}
	if err != nil {
		if ended := ctx.Err(); ended != nil { // go-amqp may report another error
			err = ended
		}
		failed, _ := translate("servicebus: peek", err)
		return ops.Count{}, ops.Count{}, failed
	}
	return active, deadLettered, nil
}

// peek counts the active ones among the first messages of the queue or of its dead letters.
func (q *Queue) peek(
	ctx context.Context, client *azservicebus.Client, most int, from *azservicebus.ReceiverOptions,
) (n ops.Count, err error) {
	receiver, err := client.NewReceiverForQueue(q.name, from)
	if err != nil {
		return n, err
	}
	for seen, next := 0, int64(0); seen < most; {
		page, err := receiver.PeekMessages(ctx, min(most-seen, peekSize),
			&azservicebus.PeekMessagesOptions{FromSequenceNumber: to.Ptr(next)})
		if err != nil || len(page) == 0 {
			return n, err
		}
		for _, m := range page {
			if m.State == azservicebus.MessageStateActive {
				n.Add(*cmp.Or(m.EnqueuedTime, &time.Time{}))
			}
			next = *m.SequenceNumber + 1
		}
		seen += len(page)
	}
	n.AtLeast = true
	return n, nil
}
