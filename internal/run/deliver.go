package run

import (
	"context"
	"time"

	"sqlwriter/internal/fault"
)

// delivered is what became of messages.
type delivered struct {
	sent, unsent, failed int
	sending, updating    time.Duration
}

// deliver sends the messages of batches and records what became of each: confirmed ones become queued, the others
// pending_retry. Only what the queue has against a message itself counts towards the three attempts; that the queue is away says
// nothing of a message (docs/adr). The error is of the books, or of dependency scope from the queue. l is the sender's lease,
// if a manager sends.
func (k base) deliver(ctx context.Context, l RunLease, jobs []Batch, confirm bool) (d delivered, err error) {
	messages := make([]Outgoing, len(jobs))
	for i, j := range jobs {
		messages[i] = batchPayload(k.o.SysName, j).Outgoing(0)
	}
	begin := k.o.Now()
	answers := send(ctx, k.p.BatchQueue, messages)
	d.sending = k.o.Now().Sub(begin)
	var accepted []Batch
	refusals := map[string]*refusal{}
	for i, answer := range answers {
		if answer == nil {
			accepted = append(accepted, jobs[i])
			continue
		}
		r := refusals[errorText(answer)]
		if r == nil {
			r = &refusal{err: answer}
			refusals[errorText(answer)] = r
		}
		r.batches = append(r.batches, jobs[i])
	}
	d.sent = len(accepted)
	begin = k.o.Now()
	defer func() { d.updating = k.o.Now().Sub(begin) }()
	ctx = context.WithoutCancel(ctx) // what was sent should be told
	if confirm && len(accepted) > 0 {
		err = k.withStoreAlways(ctx, func(ctx context.Context) error {
			_, err := k.p.Store.MarkQueued(ctx, l, accepted)
			return err
		})
	}
	for reason, r := range refusals {
		unsent, failed, bookErr := k.unsent(ctx, r, reason)
		d.unsent, d.failed = d.unsent+unsent, d.failed+failed
		if err == nil {
			err = bookErr
		}
		if err == nil && fault.IsDependency(r.err) {
			err = r.err
		}
	}
	return d, err
}

// refusal is what the queue had against some messages.
type refusal struct {
	err     error
	batches []Batch
}

// unsent records what the queue did not take, with an entry for each batch that is given up for it.
func (k base) unsent(ctx context.Context, r *refusal, reason string) (retry, failed int, err error) {
	counted := !fault.IsDependency(r.err)
	err = k.withStoreAlways(ctx, func(ctx context.Context) (err error) {
		retry, failed, err = k.p.Store.MarkUnsent(ctx, r.batches, reason, counted, func(j Batch) Audit {
			return Audit{
				Code: CodeBatchFail, Level: LevelError, By: k.o.Instance, Why: j.Error, Run: j.Run, Batch: j.ID,
				Detail: detail(map[string]any{"last_queue_error": j.LastQueueError}),
			}
		})
		return err
	})
	return retry, failed, err
}
