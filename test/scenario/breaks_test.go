package scenario

import (
	"context"
	"hash/fnv"
	"sync/atomic"
	"time"

	"sqlwriter/internal/fault"
)

// span is a time in a scenario, from its beginning.
type span struct{ from, to time.Duration }

// always is the whole scenario.
func always() span { return span{0, 1 << 62} }

// now reports whether a span is running.
func (w *world) now(s span) bool {
	d := time.Since(w.began)
	return d >= s.from && d < s.to
}

// Answers as the adapters classify them.

func refusal() error {
	return fault.New(fault.Document, "scenario: apply", "547", "the statement conflicted with a CHECK constraint")
}

func lockTimeout() error {
	return fault.New(fault.Contention, "scenario: apply", "1222", "the lock request time out period was exceeded")
}

func unreachable() error {
	return fault.New(fault.Infrastructure, "scenario: apply", "connection", "the connection was refused")
}

func throttled() error {
	return fault.New(fault.Throttled, "scenario: apply", "40501", "the service is busy")
}

func full(code string) error {
	return fault.New(fault.Quota, "scenario: apply", code, "there is no room")
}

func timeout(ctx context.Context) error {
	e := fault.New(fault.Infrastructure, "scenario: apply", "timeout",
		"no answer in time: the request may have been carried out")
	e.Err = ctx.Err()
	return e
}

// What single documents do.

// refused: a constraint does not take the content.
func (w *world) refused(s span) behaviour {
	return func(context.Context) error {
		if w.now(s) {
			return refusal()
		}
		return nil
	}
}

// locked: another program has locked the line's row; the request waits LOCK_TIMEOUT for it.
func (w *world) locked(s span) behaviour {
	const lockWait = 5 * time.Second
	return func(ctx context.Context) error {
		if !w.now(s) {
			return nil
		}
		if err := w.spend(ctx, lockWait); err != nil {
			return err
		}
		return lockTimeout()
	}
}

// hangs: the request is never answered.
func hangs(ctx context.Context) error {
	<-ctx.Done()
	return timeout(ctx)
}

// severe: a trigger raises an error of severity 18, which ends the connection's trust and no more.
func severe(context.Context) error {
	return fault.New(fault.Infrastructure, "scenario: apply", "50000", "severity 18")
}

// What the database does.

// schema refuses what a share of the documents write, chosen by their ids: 100 is all.
func (w *world) schema(s span, percent uint32) rule {
	return func(_ context.Context, q request) error {
		if !w.now(s) {
			return nil
		}
		for _, it := range q.items {
			if !it.FailureMark && hit(it.DocumentID, percent) {
				return refusal()
			}
		}
		return nil
	}
}

// hit reports whether a document is among the share that a break hits.
func hit(id string, percent uint32) bool {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id))
	return h.Sum32()%100 < percent
}

// documentsOnly breaks requests for documents and leaves heartbeats alone.
func (w *world) documentsOnly(s span, err func() error) rule {
	return func(_ context.Context, q request) error {
		if q.ofDocuments() && w.now(s) {
			return err()
		}
		return nil
	}
}

// everything breaks heartbeats, too.
func (w *world) everything(s span, err func() error) rule {
	return func(context.Context, request) error {
		if w.now(s) {
			return err()
		}
		return nil
	}
}

// everyNth throttles each nth request for documents.
func (w *world) everyNth(s span, n int64) rule {
	var count atomic.Int64
	return func(_ context.Context, q request) error {
		if q.ofDocuments() && w.now(s) && count.Add(1)%n == 0 {
			return throttled()
		}
		return nil
	}
}

// cutOff is an instance that alone cannot reach SQL.
func (w *world) cutOff(s span, instance string) rule {
	return func(_ context.Context, q request) error {
		if q.instance == instance && w.now(s) {
			return unreachable()
		}
		return nil
	}
}
