package funchost

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Pauses of a receiver that meets nothing but errors, and the shortest one between two renewals of a lock.
const (
	receivePauseMin = time.Second
	receivePauseMax = 30 * time.Second
	renewPauseMin   = 400 * time.Millisecond
	// renewBuffer is how long before the end of a long lock it is renewed; of a short one it is half its length.
	renewBuffer = 10 * time.Second
	// linkEndings is how many links may end one after the other without a message before the receiver is made anew.
	linkEndings = 3
)

var errLinksEnd = errors.New("the link ends again and again")

// serviceBusListener is the message processor of one serviceBusTrigger function. Sources: ServiceBusListener.cs
// ProcessMessageAsync, MessageProcessor.cs; Azure.Messaging.ServiceBus ReceiverManager.cs.
type serviceBusListener struct {
	host     *Host
	function *function
	trigger  *serviceBusTrigger
	slots    chan struct{} // bounds the messages held: those worked on and those prefetched
	calls    chan struct{} // bounds the invocations
	receipts sync.WaitGroup
}

// receiving is one receiver with the messages that came by it and are not settled yet.
type receiving struct {
	messageReceiver
	unsettled sync.WaitGroup
	ended     chan struct{} // closed when no message is taken any more
}

// listenServiceBus receives until ctx ends and returns when every message it took has been settled or given up. A
// receiver that fails is replaced after a pause; messages already received are settled by the one they came from.
func (h *Host) listenServiceBus(ctx context.Context, f *function) error {
	t := f.serviceBus
	l := &serviceBusListener{
		host: h, function: f, trigger: t,
		slots: make(chan struct{}, t.maxCalls+t.prefetch), calls: make(chan struct{}, t.maxCalls),
	}
	defer l.receipts.Wait()
	l.event(Event{Kind: ListenerStarted})
	pauses := l.newPauses()
	for {
		got, err := l.session(ctx)
		if over(ctx) {
			return nil
		}
		if got > 0 {
			pauses = l.newPauses()
		}
		pause := pauses.next()
		l.event(Event{Kind: ReceiveFailed, Err: err, Delay: pause})
		if !h.clock.Sleep(ctx, pause, waitReceive) {
			return nil
		}
	}
}

func (l *serviceBusListener) newPauses() *backoff {
	return newBackoff(receivePauseMin, receivePauseMax)
}

func (l *serviceBusListener) event(e Event) {
	e.Function = l.function.name
	l.host.event(e)
}

// session opens a receiver and receives until it fails or ctx ends. The receiver is closed once its last message is
// settled, which session does not wait for.
func (l *serviceBusListener) session(ctx context.Context) (got int, err error) {
	opened, err := l.host.openServiceBus(l.trigger)
	if err != nil {
		return 0, err
	}
	r := &receiving{messageReceiver: opened, ended: make(chan struct{})}
	got, err = l.receive(ctx, r)
	if over(ctx) {
		r.stop(context.WithoutCancel(ctx))
	}
	close(r.ended)
	l.receipts.Go(func() {
		r.unsettled.Wait()
		r.close(context.WithoutCancel(ctx))
	})
	return got, err
}

// receive takes one message after the other while there is room for one, and says how many it got.
func (l *serviceBusListener) receive(ctx context.Context, r *receiving) (got int, err error) {
	endings := 0
	for {
		select {
		case l.slots <- struct{}{}:
		case <-ctx.Done():
			return got, nil
		}
		d, failed := r.receive(ctx)
		if d != nil {
			got, endings = got+1, 0
			r.unsettled.Go(func() {
				defer func() { <-l.slots }()
				l.process(ctx, r, d)
			})
			continue
		}
		<-l.slots
		if endings++; failed == nil && endings >= linkEndings {
			failed = errLinksEnd
		}
		if failed != nil || over(ctx) {
			return got, failed
		}
	}
}

// process runs the function on one message and settles it. Its lock is kept as long as it runs, which may be longer
// than the host listens.
func (l *serviceBusListener) process(ctx context.Context, r *receiving, d *delivery) { //nolint:contextcheck // see above
	select {
	case l.calls <- struct{}{}:
		defer func() { <-l.calls }()
	case <-ctx.Done():
	}
	if over(ctx) { // "received for a listener that is not in a running state … will be abandoned"
		l.abandon(ctx, r, d, nil)
		return
	}
	renewing, stop := context.WithCancel(l.host.life)
	var renewal sync.WaitGroup
	renewal.Go(func() { l.keepLock(renewing, r, d) })
	handler := l.host.dispatcher.current()
	err := l.invoke(ctx, d)
	l.host.dispatcher.awaitExit(handler, err)
	stop()
	renewal.Wait()
	l.settle(ctx, r, d, err)
}

func (l *serviceBusListener) invoke(ctx context.Context, d *delivery) error {
	p, err := serviceBusPayload(d.ReceivedMessage, l.host.options.Zone)
	if err != nil {
		err = &InvocationError{Reason: ReasonBinding, Err: err}
		l.event(l.about(d, Event{Kind: InvocationFailed, Err: err}))
		return err
	}
	_, err = l.host.execute(ctx, l.function, p)
	return err
}

// settle completes a message whose invocation succeeded and gives back at once, without a pause, one whose invocation
// failed. Two cases are neither: when the host stopped meanwhile a success doesn't count any more; and when the host
// was gone before the invocation ended nothing can settle it, so that the lock has to expire.
func (l *serviceBusListener) settle(ctx context.Context, r *receiving, d *delivery, failed error) {
	switch {
	case failed != nil && l.host.dispatcher.ended():
		l.event(l.about(d, Event{Kind: MessageLeft, Err: failed}))
	case failed != nil || over(ctx):
		l.abandon(ctx, r, d, failed)
	default:
		l.settled(d, MessageCompleted, nil, r.complete(context.WithoutCancel(ctx), d))
	}
}

func (l *serviceBusListener) abandon(ctx context.Context, r *receiving, d *delivery, cause error) {
	if over(ctx) {
		<-r.ended // else the message would come back to this very receiver
	}
	l.settled(d, MessageAbandoned, cause, r.abandon(context.WithoutCancel(ctx), d))
}

// settled records how a settlement ended. Whatever went wrong, the message comes again when its lock expires.
func (l *serviceBusListener) settled(d *delivery, kind Kind, cause, err error) {
	switch {
	case err == nil:
		l.event(l.about(d, Event{Kind: kind, Err: cause}))
	case errors.Is(err, errMessageLockLost):
		l.event(l.about(d, Event{Kind: MessageLockLost, Err: err, Text: "when it was settled"}))
	default:
		l.event(l.about(d, Event{Kind: SettleFailed, Err: err}))
	}
}

// keepLock renews the lock while the invocation runs, at most for maxAutoLockRenewalDuration. Its loss does not end the
// invocation: a custom handler does not learn of it.
func (l *serviceBusListener) keepLock(ctx context.Context, r *receiving, d *delivery) {
	clock, began := l.host.clock, l.host.clock.Now()
	for d.LockedUntil != nil {
		pause := renewPause(d.LockedUntil.Sub(clock.Now()))
		if clock.Now().Add(pause).Sub(began) > l.trigger.maxRenewal {
			return
		}
		if !clock.Sleep(ctx, pause, waitLock) {
			return
		}
		switch err := r.renew(ctx, d); {
		case over(ctx):
			return
		case errors.Is(err, errMessageLockLost):
			l.event(l.about(d, Event{Kind: MessageLockLost, Err: err, Text: "while the function ran"}))
			return
		case err != nil:
			l.event(l.about(d, Event{Kind: RenewFailed, Err: err}))
		default:
			l.event(l.about(d, Event{Kind: MessageLockRenewed}))
		}
	}
}

// renewPause is how long to wait before a lock with that much left is renewed (ReceiverManager.cs CalculateRenewDelay).
func renewPause(left time.Duration) time.Duration {
	return max(left-min(left/2, renewBuffer), renewPauseMin)
}

// about names the message in an event.
func (l *serviceBusListener) about(d *delivery, e Event) Event {
	e.MessageID, e.DeliveryCount = d.MessageID, int(d.DeliveryCount)
	return e
}
