package run

import (
	"context"

	"sqlwriter/internal/fault"
)

// WaitingRoom takes messages while nothing else can be done with them: the process has not opened SQL yet. It is safe for
// concurrent use.
type WaitingRoom struct {
	kit
	queue Queue
	kind  MessageKind
}

// NewWaitingRoom makes the one of a queue. A nil queue stands for dead letters, which cannot be put off.
func NewWaitingRoom(o Options, queue Queue, kind MessageKind) *WaitingRoom {
	return &WaitingRoom{kit{o: o.withDefaults()}, queue, kind}
}

// Put puts a message off because of cause. One that cannot be read, or be put off, is held as long as its lock is renewed and
// then given back: it is looked at when something can be done with it. Errors by kind: infrastructure.
func (w *WaitingRoom) Put(ctx context.Context, d Delivery, cause error) (Handled, error) {
	if n, err := ReadNotice(d.Body, w.kind); err == nil && w.queue != nil {
		return w.later(ctx, w.queue, n, w.delayFor(cause), said(cause))
	}
	err := w.hold(ctx, func(context.Context) error {
		return fault.Wrap(fault.Infrastructure, "run: hold", fault.CodeOf(cause), "nothing can be done with the message yet", cause)
	})
	return Handled{Did: "held", Reason: said(cause)}, err
}
