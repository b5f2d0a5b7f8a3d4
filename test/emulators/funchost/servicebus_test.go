package funchost

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"
)

// message decodes the layers of a Service Bus message.
func (c call) message(t *testing.T) string {
	t.Helper()
	var body struct{ Data map[string]string }
	require.NoError(t, json.Unmarshal(c.Body, &body))
	var inner string
	require.NoError(t, json.Unmarshal([]byte(body.Data["message"]), &inner))
	return inner
}

// gate delays the answers to calls until a test releases them, and counts the waiting ones.
type gate struct {
	mu      sync.Mutex
	inside  int
	most    int
	release chan answer
}

func (c *control) gate() *gate {
	g := &gate{release: make(chan answer)}
	c.say(func(ctx context.Context, _ int, _ call) answer {
		g.mu.Lock()
		g.inside++
		g.most = max(g.most, g.inside)
		g.mu.Unlock()
		defer func() {
			g.mu.Lock()
			g.inside--
			g.mu.Unlock()
		}()
		select {
		case a := <-g.release:
			return a
		case <-ctx.Done():
			return failure(500)
		}
	})
	return g
}

func (g *gate) wait(t *testing.T, n int) {
	t.Helper()
	require.Eventually(t, func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.inside == n
	}, patience, time.Millisecond, "%d calls inside", n)
}

func TestADeadHandlerLosesOnlyADelivery(t *testing.T) {
	bus := newFakeBus() // whose redelivery takes no time at all
	bus.put("a", "x")
	c := newControl(t)
	c.inOrder(answer{exit: 1}, ok)
	b := prepare(t, newRoot(t).function("F", busBinding("")), c, newFakeClock(), bus.uses())
	b.run()
	require.Equal(t, 2, b.await(MessageCompleted).DeliveryCount)
	require.Equal(t, ReasonConnection, invocationError(t, b.await(MessageAbandoned)).Reason)
}

func TestFunctionTimeoutAbandonsTheMessage(t *testing.T) {
	bus := newFakeBus()
	bus.put("a", "x")
	c := newControl(t)
	c.say(func(ctx context.Context, n int, seen call) answer {
		if n == 1 {
			return hold(ctx, n, seen)
		}
		return ok
	})
	b := prepare(t, newRoot(t).function("F", busBinding("")), c, newFakeClock(), bus.uses())
	b.run()
	c.wait(t, 1)
	b.clock.wait(t, waitTimeout, 1)
	b.clock.advance(5 * time.Minute)
	require.Equal(t, ReasonTimeout, invocationError(t, b.await(MessageAbandoned)).Reason)
	b.await(MessageCompleted)
}

func TestAtMostMaxConcurrentCallsRun(t *testing.T) {
	bus := newFakeBus()
	for i := range 9 {
		bus.put(strconv.Itoa(i), "x")
	}
	c := newControl(t)
	g := c.gate()
	b := prepare(t,
		newRoot(t).file("host.json", busHost(`{"maxConcurrentCalls":3,"prefetchCount":2}`)).function("F",
			busBinding("")), c, newFakeClock(), bus.uses())
	b.run()
	g.wait(t, 3)
	waiting := func() (n int) {
		bus.read(func() { n = len(bus.waiting) })
		return n
	}
	require.Eventually(t, func() bool { return waiting() == 4 }, patience, time.Millisecond, "3 in work, 2 prefetched")
	require.Never(t, func() bool { return waiting() < 4 || len(c.seen()) > 3 }, 50*time.Millisecond, 5*time.Millisecond)
	for range 9 {
		g.release <- ok
	}
	b.awaitN(MessageCompleted, 9)
	require.Equal(t, 3, g.most)
}

// host.json says nothing: sixteen.
func TestSixteenCallsRunByDefault(t *testing.T) {
	bus := newFakeBus()
	for i := range 17 {
		bus.put(strconv.Itoa(i), "x")
	}
	c := newControl(t)
	g := c.gate()
	b := prepare(t, newRoot(t).function("F", busBinding("")), c, newFakeClock(), bus.uses())
	b.run()
	g.wait(t, 16)
	require.Never(t, func() bool { return len(c.seen()) > 16 }, 50*time.Millisecond, 5*time.Millisecond)
	g.release <- ok
	c.wait(t, 17)
	for range 16 {
		g.release <- ok
	}
	b.awaitN(MessageCompleted, 17)
	require.Equal(t, 16, g.most)
}

func TestTheLockIsRenewedNoLongerThanMaxAutoLockRenewalDuration(t *testing.T) {
	for limit, renewals := range map[string]int{"00:00:00": 0, "00:01:39": 1, "00:01:40": 2} {
		bus := newFakeBus()
		bus.put("a", "x")
		c := newControl(t)
		g := c.gate()
		b := prepare(t,
			newRoot(t).file("host.json", busHost(`{"maxAutoLockRenewalDuration":"`+limit+`"}`)).function("F",
				busBinding("")), c, newFakeClock(), bus.uses())
		b.run()
		g.wait(t, 1)
		for i := range renewals {
			b.clock.wait(t, waitLock, 1)
			b.clock.advance(50 * time.Second)
			b.awaitN(MessageLockRenewed, i+1)
		}
		require.Never(t, func() bool {
			return len(b.clock.asleep(waitLock)) > 0
		}, 30*time.Millisecond, 5*time.Millisecond)
		g.release <- ok
		b.await(MessageCompleted)
	}
}

func TestRenewPauses(t *testing.T) {
	for left, want := range map[time.Duration]time.Duration{
		time.Minute: 50 * time.Second, 20 * time.Second: 10 * time.Second, 2 * time.Second: time.Second,
		time.Millisecond: 400 * time.Millisecond, -time.Hour: 400 * time.Millisecond,
	} {
		require.Equal(t, want, renewPause(left))
	}
}

func TestALockLostWhileTheFunctionRunsIsOnlyLogged(t *testing.T) {
	bus := newFakeBus()
	bus.put("a", "x")
	c := newControl(t)
	g := c.gate()
	b := prepare(t, newRoot(t).function("F", busBinding("")), c, newFakeClock(), bus.uses())
	b.run()
	g.wait(t, 1)
	bus.read(func() { bus.lost["a"] = true })
	b.clock.wait(t, waitLock, 1)
	b.clock.advance(50 * time.Second)
	require.Equal(t, "while the function ran", b.await(MessageLockLost).Text)
	g.release <- ok
	require.Equal(t, "when it was settled", b.awaitN(MessageLockLost, 2).Text)
	require.Zero(t, b.count(MessageCompleted)+b.count(MessageAbandoned)+b.count(SettleFailed))
	require.Equal(t, 1, b.count(InvocationSuccess))
}

func TestWithoutAutoCompleteNothingIsSettledAfterASuccess(t *testing.T) {
	bus := newFakeBus()
	bus.put("a", "x")
	b := start(t, newRoot(t).function("F", busBinding(`,"autoCompleteMessages":false`)), bus.uses())
	b.await(MessageLeft)
	require.NoError(t, b.Stop())
	require.Empty(t, bus.completed)
	require.Empty(t, bus.abandoned)
}

// A receiver that fails is replaced after a pause that grows; one that got a message begins anew with the first pause.
func TestAReceiverThatFailsIsReplacedAfterAPause(t *testing.T) {
	bus := newFakeBus()
	down := errors.New("down")
	bus.fails(down, down)
	b := start(t, newRoot(t).function("F", busBinding("")), bus.uses())
	require.Equal(t, []time.Duration{time.Second}, b.clock.wait(t, waitReceive, 1))
	require.ErrorIs(t, b.await(ReceiveFailed).Err, down)
	b.clock.advance(time.Second)
	b.awaitN(ReceiveFailed, 2)
	pause := b.clock.wait(t, waitReceive, 1)[0]
	require.Greater(t, pause, time.Second)
	b.clock.advance(pause)
	bus.put("a", "x")
	b.await(MessageCompleted)
	bus.fails(nil, nil, nil) // links that end without a word
	require.ErrorIs(t, b.awaitN(ReceiveFailed, 3).Err, errLinksEnd)
	require.Equal(t, []time.Duration{time.Second}, b.clock.wait(t, waitReceive, 1))
	b.clock.advance(time.Second)
	bus.put("b", "x")
	b.awaitN(MessageCompleted, 2)
	require.NoError(t, b.Stop())
	require.Equal(t, 4, bus.opened)
	require.Equal(t, 4, bus.closed)
}

// A link that ends now and then, as idle ones do, is not a failure.
func TestALinkThatEndsIsFollowedByTheNext(t *testing.T) {
	bus := newFakeBus()
	bus.fails(nil, nil)
	bus.put("a", "x")
	b := start(t, newRoot(t).function("F", busBinding("")), bus.uses())
	b.await(MessageCompleted)
	require.Zero(t, b.count(ReceiveFailed))
	require.Equal(t, 1, bus.opened)
}

// As in the real extension a success after the stop doesn't count: the message comes again.
func TestAMessageThatEndsAfterTheStopIsAbandoned(t *testing.T) {
	bus := newFakeBus()
	bus.stopping = make(chan struct{})
	bus.put("a", "x")
	c := newControl(t)
	g := c.gate()
	b := prepare(t, newRoot(t).function("F", busBinding("")), c, newFakeClock(), bus.uses(), waitsToStop())
	b.run()
	mayStop := sync.OnceFunc(func() { close(bus.stopping) })
	t.Cleanup(mayStop)
	g.wait(t, 1)
	stopped := make(chan error, 1)
	go func() { stopped <- b.Stop() }()
	<-b.listening.Done()
	bus.put("b", "x")
	g.release <- ok
	b.await(InvocationSuccess)
	require.Never(t, func() bool { return b.count(MessageAbandoned) > 0 }, 50*time.Millisecond, 5*time.Millisecond,
		"it would come back to the receiver that is being stopped")
	mayStop()
	require.NoError(t, <-stopped)
	require.Equal(t, 1, b.count(InvocationSuccess))
	require.Equal(t, []string{"a"}, bus.abandoned)
	require.Empty(t, bus.completed)
	require.Len(t, c.seen(), 1)
}

func TestABodyThatIsNoStringFailsBeforeTheHandlerIsCalled(t *testing.T) {
	bus := newFakeBus()
	raw := &azservicebus.AMQPAnnotatedMessage{Body: azservicebus.AMQPAnnotatedMessageBody{Value: int64(1)}}
	bus.waiting = append(bus.waiting, &azservicebus.ReceivedMessage{MessageID: "a", RawAMQPMessage: raw})
	b := start(t, newRoot(t).function("F", busBinding("")), bus.uses())
	require.Equal(t, ReasonBinding, invocationError(t, b.await(InvocationFailed)).Reason)
	b.awaitN(MessageAbandoned, 10)
	var counts []int // an abandoned message may be offered again before its event is there
	for _, e := range b.Events(0) {
		if e.Kind == MessageAbandoned {
			counts = append(counts, e.DeliveryCount)
		}
	}
	require.ElementsMatch(t, []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, counts)
	require.Empty(t, b.control.seen())
}

// Discouraged, and applied nevertheless: the lock is kept meanwhile.
func TestARetryPolicyIsAppliedWhileTheLockIsKept(t *testing.T) {
	bus := newFakeBus()
	bus.put("a", "x")
	c := newControl(t)
	c.inOrder(failure(500), ok)
	text := strings.Replace(busBinding(""), `}]}`,
		`}],"retry":{"strategy":"fixedDelay","maxRetryCount":2,"delayInterval":"00:00:55"}}`, 1)
	b := prepare(t, newRoot(t).function("F", text), c, newFakeClock(), bus.uses())
	b.run()
	require.Contains(t, b.await(FunctionWarning).Text, "serviceBusTrigger")
	b.clock.wait(t, waitRetry, 1)
	b.clock.wait(t, waitLock, 1)
	b.clock.advance(50 * time.Second)
	b.await(MessageLockRenewed)
	b.clock.advance(5 * time.Second)
	require.Equal(t, 1, b.await(MessageCompleted).DeliveryCount)
}

func TestManualInvocationOfAServiceBusFunction(t *testing.T) {
	b := start(t, newRoot(t).function("F", busBinding("")), newFakeBus().uses(), with(masterKey))
	code, _, _ := b.request("POST", "/admin/functions/F",
		reader2(`{"input":"{\"batch_id\":1}"}`), "x-functions-key", "m")
	require.Equal(t, 202, code)
	c := b.control.wait(t, 1)[0]
	require.Equal(t, `{"batch_id":1}`, c.message(t))
	require.Equal(t, `"1"`, c.metadata(t)["batch_id"])
}
