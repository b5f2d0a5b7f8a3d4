package funchost

import (
	"context"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"sqlwriter/test/emulators/servicebus"
	"sqlwriter/test/emulators/servicebus/servicebustest"
)

// onBus points a host's connection at the Service Bus emulator.
func onBus(server *servicebustest.Server) func(*Host, *Options) {
	return with(func(o *Options) {
		o.Settings["SERVICEBUS"], o.Tune.ServiceBusRetry = server.ConnectionString(), 50*time.Millisecond
	})
}

// onWallTime lets a host pause in real time, for what happens between two processes.
func onWallTime() func(*Host, *Options) {
	return with(func(o *Options) { o.Clock = systemClock{} })
}

func busStart(t *testing.T, queue servicebus.Queue) *servicebustest.Server {
	t.Helper()
	queue.Name = "batches"
	return servicebustest.Start(t, queue)
}

// The whole path on real wires: SDK, AMQP, encoding, completion.
func TestServiceBusTriggerOverTheWire(t *testing.T) {
	t.Parallel()
	server := busStart(t, servicebus.Queue{})
	client := server.Client()
	sender, err := client.NewSender("batches", nil)
	require.NoError(t, err)
	require.NoError(t, sender.SendMessage(t.Context(), &azservicebus.Message{
		MessageID: to.Ptr("job:1:0"), Subject: to.Ptr("batch"), ContentType: to.Ptr("application/json"),
		TimeToLive:            to.Ptr(time.Hour),
		ApplicationProperties: map[string]any{"n": int64(1 << 60), "on": true}, Body: []byte(`{"batch_id":7}`),
	}, nil))
	b := start(t, newRoot(t).function("F", busBinding("")), onBus(server))
	require.Equal(t, "job:1:0", b.await(MessageCompleted).MessageID)
	c := b.control.seen()[0]
	require.Equal(t, `{"batch_id":7}`, c.message(t))
	got := c.metadata(t)
	for name, want := range map[string]any{
		"DeliveryCount": "1", "SequenceNumber": "1", "MessageId": `"job:1:0"`, "Subject": `"batch"`, "Label": `"batch"`,
		"ContentType": `"application/json"`, "batch_id": `"7"`,
		"ApplicationProperties": map[string]any{"n": float64(1 << 60), "on": true},
	} {
		require.Equal(t, want, got[name], name)
	}
	require.Regexp(t, `^"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"$`, got["LockToken"])
	enqueued, err := time.Parse(time.RFC3339, got["EnqueuedTime"].(string))
	require.NoError(t, err)
	expires, err := time.Parse(time.RFC3339, got["ExpiresAt"].(string))
	require.NoError(t, err)
	require.Equal(t, time.Hour, expires.Sub(enqueued))
	counts := server.Counts("batches")
	require.Zero(t, counts.Active)
	require.Equal(t, 1, counts.Stats.Completed)
}

func TestAHandlerMayWorkLongerThanTheLock(t *testing.T) {
	t.Parallel()
	server := busStart(t, servicebus.Queue{LockDuration: time.Minute})
	server.Send("batches", servicebus.Outgoing{MessageID: "a", Body: []byte("x")})
	c, clock := newControl(t), newFakeClock()
	g := c.gate()
	clock.now = server.Now()
	b := prepare(t, newRoot(t).function("F", busBinding("")), c, clock, onBus(server))
	b.run()
	g.wait(t, 1)
	for n := range 3 { // both clocks are moved on together: of a lock's minute only the last quarter is real time
		pause := clock.wait(t, waitLock, 1)[0]
		server.Advance(45 * time.Second)
		clock.advance(pause)
		b.awaitN(MessageLockRenewed, n+1)
	}
	g.release <- ok
	require.Equal(t, 1, b.await(MessageCompleted).DeliveryCount)
	require.Len(t, c.seen(), 1)
	require.Zero(t, server.Counts("batches").Stats.Expired)
}

func TestALockLostOverTheWire(t *testing.T) {
	t.Parallel()
	server := busStart(t, servicebus.Queue{})
	server.Send("batches", servicebus.Outgoing{MessageID: "a", Body: []byte("x")})
	c := newControl(t)
	g := c.gate()
	b := prepare(t,
		newRoot(t).file("host.json", busHost(`{"maxAutoLockRenewalDuration":"00:00:00"}`)).function("F", busBinding("")),
		c, newFakeClock(), onBus(server))
	b.run()
	g.wait(t, 1)
	server.Advance(time.Minute)
	g.wait(t, 2) // delivered again while the first delivery is still in work
	g.release <- ok
	g.release <- ok
	require.Equal(t, 2, b.await(MessageCompleted).DeliveryCount)
	lost := b.await(MessageLockLost)
	require.Equal(t, 1, lost.DeliveryCount)
	require.ErrorIs(t, lost.Err, errMessageLockLost)
	require.Zero(t, b.count(SettleFailed)+b.count(MessageAbandoned))
}

// No hot loop: one line per pause while it is away.
func TestServiceBusThatIsAwayIsAskedNowAndThen(t *testing.T) {
	t.Parallel()
	server := busStart(t, servicebus.Queue{})
	server.Down()
	server.Send("batches", servicebus.Outgoing{MessageID: "a", Body: []byte("x")})
	b := start(t, newRoot(t).function("F", busBinding("")), onBus(server))
	last := time.Duration(0)
	for i := range 8 {
		pause := b.clock.wait(t, waitReceive, 1)[0]
		require.Equal(t, i+1, b.count(ReceiveFailed))
		require.GreaterOrEqual(t, pause, last)
		b.clock.advance(pause)
		b.awaitN(ReceiveFailed, i+2)
		last = pause
	}
	require.Equal(t, 30*time.Second, last)
	require.Equal(t, []time.Duration{30 * time.Second}, b.clock.wait(t, waitReceive, 1))
	server.Up()
	b.clock.advance(30 * time.Second)
	b.await(MessageCompleted)
}

// What the .NET client does too when the answer to a settlement does not come.
func TestASettlementWithoutAnAnswerIsTriedByTheLockToken(t *testing.T) {
	t.Parallel()
	server := busStart(t, servicebus.Queue{})
	q := openQueue(t, server)
	q.timeout = 2 * time.Second // room for the second try on a busy machine
	for _, c := range []struct {
		settle func(context.Context, *delivery) error
		want   func(servicebus.Stats) int
	}{
		{q.complete, func(s servicebus.Stats) int { return s.Completed }},
		{q.abandon, func(s servicebus.Stats) int { return s.Abandoned }},
	} {
		server.Send("batches", servicebus.Outgoing{MessageID: "a", Body: []byte("x")})
		d, err := q.receive(t.Context())
		require.NoError(t, err)
		server.Fail(servicebus.Fault{On: servicebus.OnSettle, Then: servicebus.Hang, Times: 1})
		require.NoError(t, c.settle(t.Context(), d))
		require.Equal(t, 1, c.want(server.Counts("batches").Stats))
	}
}

func TestAStoppedHostGivesBackWhatItHad(t *testing.T) {
	t.Parallel()
	server := busStart(t, servicebus.Queue{})
	server.Send("batches", servicebus.Outgoing{MessageID: "a", Body: []byte("x")})
	c := newControl(t)
	g := c.gate()
	r := newRoot(t).function("F", busBinding(""))
	b := prepare(t, r, c, newFakeClock(), onBus(server), waitsToStop())
	b.run()
	g.wait(t, 1)
	stopped := make(chan error, 1)
	go func() { stopped <- b.Stop() }()
	<-b.listening.Done()
	g.release <- ok
	require.NoError(t, <-stopped)
	counts := server.Counts("batches")
	require.Equal(t, []int{1, 0, 1, 0, 0},
		[]int{counts.Active, counts.Locked, counts.Stats.Abandoned, counts.Stats.Completed, counts.Stats.Released})
	next := start(t, r, onBus(server))
	require.Equal(t, 2, next.await(MessageCompleted).DeliveryCount)
}

// With every call taken nothing receives, so the settlement is the first to find the connection lost.
func TestAConnectionLostUnnoticed(t *testing.T) {
	t.Parallel()
	server := busStart(t, servicebus.Queue{})
	server.Send("batches", servicebus.Outgoing{MessageID: "a", Body: []byte("x")})
	c := newControl(t)
	g := c.gate()
	b := prepare(t, newRoot(t).file("host.json", busHost(`{"maxConcurrentCalls":1}`)).function("F", busBinding("")), c,
		newFakeClock(), onBus(server), onWallTime())
	b.run()
	g.wait(t, 1)
	server.Disconnect()
	g.release <- ok
	require.Equal(t, 1, b.await(MessageCompleted).DeliveryCount)
	server.Send("batches", servicebus.Outgoing{MessageID: "b", Body: []byte("x")})
	g.wait(t, 1)
	g.release <- ok
	b.awaitN(MessageCompleted, 2)
	require.Len(t, c.seen(), 2)
}

func openQueue(t *testing.T, server *servicebustest.Server) *queueReceiver {
	t.Helper()
	opened, err := openServiceBus(
		&serviceBusTrigger{connection: server.ConnectionString(), entity: "batches", retryDelay: clientRetryDelay})
	require.NoError(t, err)
	q, is := opened.(*queueReceiver)
	require.True(t, is)
	t.Cleanup(func() { q.close(context.WithoutCancel(t.Context())) })
	return q
}
