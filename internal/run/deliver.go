package run

import (
	"cmp"
	"context"
	"time"

	"sqlwriter/internal/fault"
)

// delivered counts what became of messages.
type delivered struct {
	sent, unsent, failed int
	sending, updating    time.Duration
	// queueAway: the queue did not answer.
	queueAway bool
}

// deliver sends the messages of batches and records the results: accepted ones become queued, the others pending_retry.
// Only a refusal of the message itself counts towards its three attempts. lease is the manager's; empty when Recovery
// sends. The error is the store's, or the queue's of dependency scope.
func (b base) deliver(ctx context.Context, l RunLease, batches []Batch) (d delivered, err error) {
	messages := make([]Outgoing, len(batches))
	for i, batch := range batches {
		messages[i] = batchPayload(b.o.SysName, batch).Outgoing(0)
	}
	begin := b.o.Now()
	answers := send(ctx, b.p.BatchQueue, messages)
	d.sending = b.o.Now().Sub(begin)
	var accepted []Batch
	refusals := map[string]*refusal{}
	for i, answer := range answers {
		if answer == nil {
			accepted = append(accepted, batches[i])
			continue
		}
		r := refusals[errorText(answer)]
		if r == nil {
			r = &refusal{err: answer}
			refusals[errorText(answer)] = r
		}
		r.batches = append(r.batches, batches[i])
	}
	d.sent = len(accepted)
	begin = b.o.Now()
	defer func() { d.updating = b.o.Now().Sub(begin) }()
	ctx = context.WithoutCancel(ctx) // what was sent must be recorded
	if len(accepted) > 0 {
		err = b.withStoreAlways(ctx, func(ctx context.Context) error {
			_, err := b.p.Store.MarkQueued(ctx, l, accepted)
			return err
		})
	}
	for reason, r := range refusals {
		unsent, failed, storeErr := b.markUnsent(ctx, r, reason)
		d.unsent, d.failed, err = d.unsent+unsent, d.failed+failed, cmp.Or(err, storeErr)
		if fault.IsDependency(r.err) {
			d.queueAway = true
			err = cmp.Or(err, r.err)
		}
	}
	return d, err
}

// refusal groups batches by the queue's error.
type refusal struct {
	err     error
	batches []Batch
}

// markUnsent records a refusal, with an audit entry for each batch that fails by it.
func (b base) markUnsent(ctx context.Context, r *refusal, reason string) (retry, failed int, err error) {
	counted := !fault.IsDependency(r.err)
	err = b.withStoreAlways(ctx, func(ctx context.Context) (err error) {
		retry, failed, err = b.p.Store.MarkUnsent(ctx, r.batches, reason, counted, func(batch Batch) Audit {
			return Audit{
				Action: CodeBatchFail, Level: LevelError, By: b.o.Instance, Why: batch.Error,
				Run: batch.Run, Batch: batch.ID,
				Detail: detail(map[string]any{"last_queue_error": batch.LastQueueError}),
			}
		})
		return err
	})
	return retry, failed, err
}
