package servicebus

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/Azure/go-amqp"
	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/run"
	"sqlwriter/test/conformance"
	"sqlwriter/test/emulators/servicebus"
	"sqlwriter/test/emulators/servicebus/servicebustest"
)

// The queues of an emulator.
const (
	plain     = "sqlwriter-web-runs"
	detecting = "sqlwriter-web-batches"
)

// short is the deadline of a call without an answer. A call that must succeed has the patient one, for a busy machine.
const (
	short   = 500 * time.Millisecond
	patient = time.Minute
)

func start(t *testing.T) *servicebustest.Server {
	t.Helper()
	return servicebustest.Start(t, servicebus.Queue{Name: plain},
		servicebus.Queue{Name: detecting, RequiresDuplicateDetection: true})
}

func open(t *testing.T, s *servicebustest.Server) *Namespace {
	t.Helper()
	n, err := Open(Options{Connection: s.ConnectionString(), Timeouts: Timeouts{Call: patient}})
	require.NoError(t, err)
	t.Cleanup(n.Close)
	return n
}

// empty removes a test's messages from the emulator.
func empty(s *servicebustest.Server) {
	s.Heal()
	for _, queue := range []string{plain, detecting} {
		s.Purge(queue)
	}
	const window = 11 * time.Minute // of duplicate detection: ids are new again
	s.Advance(window)
}

func stored(s *servicebustest.Server, queue string) []conformance.QueuedMessage {
	var all []conformance.QueuedMessage
	for _, p := range s.Peek(queue) {
		m := conformance.QueuedMessage{ID: p.MessageID, Body: p.Body}
		if p.ScheduledEnqueueTime != nil {
			m.Due = *p.ScheduledEnqueueTime
		}
		all = append(all, m)
	}
	return all
}

func ids(s *servicebustest.Server, queue string) []string {
	var all []string
	for _, m := range stored(s, queue) {
		all = append(all, m.ID)
	}
	return all
}

func TestQueue(t *testing.T) {
	t.Parallel()
	s := start(t)
	for _, queue := range []string{plain, detecting} {
		t.Run(queue, func(t *testing.T) {
			conformance.TestQueue(t, func(t *testing.T) conformance.QueueHarness {
				empty(s)
				n := open(t, s)
				n.now = s.Now
				always := func(f servicebus.Fault) func(testing.TB) { return func(testing.TB) { s.Fail(f) } }
				return conformance.QueueHarness{
					Queue: n.Queue(queue), Now: s.Now, Bound: 3 * patient,
					Messages: n.Queue(queue), DeadLetter: func(t testing.TB, n int) { deadLetter(t, s, queue, n) },
					Stored: func(testing.TB) []conformance.QueuedMessage { return stored(s, queue) },
					Full: always(
						servicebus.Fault{
							On: servicebus.OnSend, Then: servicebus.Reject,
							Condition: string(amqp.ErrCondResourceLimitExceeded),
						}),
					Busy: always(
						servicebus.Fault{
							On: servicebus.OnSend, Then: servicebus.Reject, Condition: string(condServerBusy),
						}),
					Down:        func(testing.TB) { s.Down() },
					LoseAnswers: always(servicebus.Fault{On: servicebus.OnSend, Then: servicebus.Drop, Apply: true}),
					Mend:        func(testing.TB) { s.Heal(); s.Up() },
				}
			})
		})
	}
}

// deadLetter makes dead letters of the first n messages.
func deadLetter(t testing.TB, s *servicebustest.Server, queue string, n int) {
	t.Helper()
	r, err := s.Client().NewReceiverForQueue(queue, nil)
	require.NoError(t, err)
	for n > 0 {
		page, err := r.ReceiveMessages(t.Context(), n, nil)
		require.NoError(t, err)
		for _, m := range page {
			require.NoError(t, r.DeadLetterMessage(t.Context(), m, nil))
			n--
		}
	}
	require.NoError(t, r.Close(t.Context()))
}

// A look at a queue opens it as a send does, and sends nothing.
func TestAQueueThatCanBeSentTo(t *testing.T) {
	t.Parallel()
	s := start(t)
	n := open(t, s)
	require.NoError(t, n.Queue(plain).Try(t.Context()))
	require.Empty(t, ids(s, plain))
	require.Equal(t, "amqp:not-found", fault.CodeOf(n.Queue("another").Try(t.Context())))
	s.Fail(servicebus.Fault{
		On: servicebus.OnAttach, Then: servicebus.Refuse, Condition: string(amqp.ErrCondUnauthorizedAccess),
	})
	require.Equal(t, "unauthorized", fault.CodeOf(n.Queue(detecting).Try(t.Context())))
	s.Heal()
	require.NoError(t, n.Queue(detecting).Try(t.Context()))
	s.Fail(servicebus.Fault{ // who may send and not listen; the sender is open
		On: servicebus.OnAttach, Then: servicebus.Refuse, Condition: string(amqp.ErrCondUnauthorizedAccess),
	})
	require.Equal(t, "unauthorized", fault.CodeOf(n.Queue(detecting).Try(t.Context())))
}

// A look locks no message and raises no delivery count. Without the right to listen the error says so.
func TestACountLeavesMessagesAsTheyAre(t *testing.T) {
	t.Parallel()
	s := start(t)
	q := open(t, s).Queue(plain)
	requireSent(t, q.Send(t.Context(), messages(3, 10)))
	active, _, err := q.Count(t.Context(), 10)
	require.NoError(t, err)
	require.Equal(t, 3, active.Documents)
	for _, m := range s.Peek(plain) {
		require.Equal(t, []any{"active", 0}, []any{m.State, m.DeliveryCount})
	}
	s.Fail(
		servicebus.Fault{
			On: servicebus.OnAttach, Then: servicebus.Refuse, Condition: string(amqp.ErrCondUnauthorizedAccess),
		})
	_, _, err = q.Count(t.Context(), 10)
	require.Equal(t, "unauthorized", fault.CodeOf(err), "%v", err)
}

// messages makes n messages with bodies of size bytes.
func messages(n, size int) []run.Outgoing {
	all := make([]run.Outgoing, n)
	for i := range all {
		all[i] = run.Outgoing{ID: fmt.Sprintf("m-%d", i+1), Body: bytes.Repeat([]byte("x"), size)}
	}
	return all
}

// requireSent requires that every message was accepted.
func requireSent(t *testing.T, errs []error) {
	t.Helper()
	for _, err := range errs {
		require.NoError(t, err)
	}
}

func TestAMessageOnTheWire(t *testing.T) {
	t.Parallel()
	s := start(t)
	requireSent(t, open(t, s).Queue(plain).Send(t.Context(), []run.Outgoing{{ID: "batch:1:0:0", Body: []byte(`{"v":1}`)}}))
	got := s.Peek(plain)
	require.Len(t, got, 1)
	require.Equal(t, "batch:1:0:0", got[0].MessageID)
	require.Equal(t, "data", got[0].BodyType)
	require.Equal(t, `{"v":1}`, string(got[0].Body))
	require.Equal(t, "application/json", got[0].Properties["contentType"])
	require.Empty(t, got[0].ApplicationProperties)
}

// The emulator accepts 256 KiB at once, as the Standard tier does: three messages of 64 KiB with their headers.
func TestBatchesAreFilledBySize(t *testing.T) {
	t.Parallel()
	s := start(t)
	q := open(t, s).Queue(plain)
	// only counts
	s.Fail(
		servicebus.Fault{
			On: servicebus.OnSend, Then: servicebus.Reject, Condition: "com.microsoft:none", Skip: 1 << 30,
		})
	requireSent(t, q.Send(t.Context(), messages(10, run.MaxBody)))
	require.Equal(t, 4, s.Faults()[0].Seen, "3 + 3 + 3 + 1")
	requireSent(t, q.Send(t.Context(), messages(1000, 100)))
	require.Equal(t, 5, s.Faults()[0].Seen, "a thousand messages fit into one batch")
}

func TestAMessageThatFitsIntoNoBatchFailsAlone(t *testing.T) {
	t.Parallel()
	s := servicebustest.Start(t, servicebus.Queue{Name: plain, MaxMessageSize: 2000})
	all := messages(5, 100)
	for _, i := range []int{0, 3} {
		all[i].Body = bytes.Repeat([]byte("x"), 2000)
	}
	errs := open(t, s).Queue(plain).Send(t.Context(), all)
	for i, err := range errs {
		require.Equal(t, i == 0 || i == 3, err != nil, "%d: %v", i, err)
		if err != nil {
			require.Equal(t, fault.Document, fault.KindOf(err))
			require.Equal(t, "too_large", fault.CodeOf(err))
		}
	}
	require.Equal(t, []string{"m-2", "m-3", "m-5"}, ids(s, plain))
}

// The service may count otherwise than the SDK: a batch that it finds too large is divided until the large message is
// alone.
func TestABatchThatTheServiceFindsTooLargeIsDivided(t *testing.T) {
	t.Parallel()
	s := start(t)
	// 5, 2, 1
	s.Fail(
		servicebus.Fault{
			On: servicebus.OnSend, Then: servicebus.Reject,
			Condition: string(amqp.ErrCondMessageSizeExceeded), Times: 3,
		})
	errs := open(t, s).Queue(plain).Send(t.Context(), messages(5, 100))
	require.Equal(t, "too_large", fault.CodeOf(errs[0]))
	requireSent(t, errs[1:])
	require.Equal(t, []string{"m-2", "m-3", "m-4", "m-5"}, ids(s, plain), "in their order")
}

// An error that concerns all messages ends the call: earlier messages stay sent, and the rest gets the same error
// untried.
func TestAFailureInTheMiddle(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.Fail(
		servicebus.Fault{
			On: servicebus.OnSend, Then: servicebus.Reject,
			Condition: string(amqp.ErrCondResourceLimitExceeded), Skip: 1,
		})
	all := messages(10, run.MaxBody)
	all[9].ID = ""
	errs := open(t, s).Queue(plain).Send(t.Context(), all)
	requireSent(t, errs[:3])
	for _, err := range errs[3:9] {
		require.Equal(t, fault.Quota, fault.KindOf(err))
		require.Equal(t, errs[3], err)
	}
	require.Equal(t, "message_id", fault.CodeOf(errs[9]), "its own error stays")
	require.Equal(t, 1, s.Faults()[0].Struck, "the rest is not tried")
	require.Equal(t, []string{"m-1", "m-2", "m-3"}, ids(s, plain))
}

// wedging are the conditions whose detach leaves the SDK's Sender broken for ever.
func wedging() []string {
	return []string{
		string(amqp.ErrCondResourceLimitExceeded), string(condServerBusy), string(condEntityDisabled),
		string(amqp.ErrCondUnauthorizedAccess), string(amqp.ErrCondNotAllowed),
	}
}

func TestAWedgedSenderIsReplaced(t *testing.T) {
	t.Parallel()
	s := start(t)
	for _, condition := range wedging() {
		t.Run(condition, func(t *testing.T) {
			empty(s)
			q := open(t, s).Queue(plain)
			requireSent(t, q.Send(t.Context(), messages(1, 10)))
			s.Fail(servicebus.Fault{On: servicebus.OnSend, Then: servicebus.Detach, Condition: condition, Times: 1})
			requireSent(t, q.Send(t.Context(), messages(2, 10)))
			require.Equal(t, []string{"m-1", "m-1", "m-2"}, ids(s, plain))
			require.Equal(t, 1, s.Faults()[0].Struck)
		})
	}
}

// A failure is reported by kind while it lasts. Afterwards the next Send succeeds, whether the Sender was new or not.
func TestADetachThatLasts(t *testing.T) {
	t.Parallel()
	s := start(t)
	for condition, kind := range map[string]fault.Kind{
		string(amqp.ErrCondResourceLimitExceeded): fault.Quota, string(condServerBusy): fault.Throttled,
		string(condEntityDisabled): fault.Infrastructure, string(amqp.ErrCondUnauthorizedAccess): fault.Infrastructure,
		string(amqp.ErrCondDetachForced): fault.Infrastructure,
	} {
		for _, worked := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, worked before: %v", condition, worked), func(t *testing.T) {
				empty(s)
				q := open(t, s).Queue(plain)
				if worked {
					requireSent(t, q.Send(t.Context(), messages(1, 10)))
				}
				s.Fail(servicebus.Fault{On: servicebus.OnSend, Then: servicebus.Detach, Condition: condition})
				for range 2 {
					for _, err := range q.Send(t.Context(), messages(2, 10)) {
						require.Equal(t, kind, fault.KindOf(err), "%v", err)
					}
				}
				s.Heal()
				requireSent(t, q.Send(t.Context(), messages(2, 10)))
			})
		}
	}
}

func TestALinkThatIsRefused(t *testing.T) {
	t.Parallel()
	s := start(t)
	for condition, kind := range map[string]fault.Kind{
		string(amqp.ErrCondNotFound):           fault.Infrastructure,
		string(amqp.ErrCondUnauthorizedAccess): fault.Infrastructure,
		string(condEntityDisabled):             fault.Infrastructure, string(condServerBusy): fault.Throttled,
	} {
		t.Run(condition, func(t *testing.T) {
			empty(s)
			q := open(t, s).Queue(plain)
			s.Fail(servicebus.Fault{On: servicebus.OnAttach, Then: servicebus.Refuse, Condition: condition})
			for range 2 {
				errs := q.Send(t.Context(), messages(2, 10))
				require.Equal(t, kind, fault.KindOf(errs[0]), "%v", errs[0])
				require.Equal(t, errs[0], errs[1])
			}
			s.Heal()
			requireSent(t, q.Send(t.Context(), messages(2, 10)))
		})
	}
}

func TestAQueueThatDoesNotExist(t *testing.T) {
	t.Parallel()
	s := start(t)
	err := open(t, s).Queue("sqlwriter-web-other").Send(t.Context(), messages(1, 10))[0]
	require.Equal(t, fault.Infrastructure, fault.KindOf(err))
	require.Contains(t, []string{"amqp:not-found", "notfound"}, fault.CodeOf(err), "%v", err)
}

// A queue that never answers costs a call its deadline, and does not affect the next call.
func TestASendThatIsNeverAnswered(t *testing.T) {
	t.Parallel()
	s := start(t)
	for name, apply := range map[string]bool{"stored": true, "not stored": false} {
		t.Run(name, func(t *testing.T) {
			empty(s)
			n := open(t, s)
			q := n.Queue(detecting)
			requireSent(t, q.Send(t.Context(), []run.Outgoing{{ID: "first"}}))
			s.Fail(servicebus.Fault{On: servicebus.OnSend, Then: servicebus.Hang, Apply: apply})
			n.timeouts.Call = short
			for range 2 {
				began := time.Now()
				errs := q.Send(t.Context(), messages(2, 10))
				require.Equal(t, "deadline", fault.CodeOf(errs[0]), "%v", errs[0])
				require.GreaterOrEqual(t, time.Since(began), short)
			}
			n.timeouts.Call = patient
			s.Heal()
			requireSent(t, q.Send(t.Context(), messages(2, 10)))
			require.Equal(t, []string{"first", "m-1", "m-2"}, ids(s, detecting), "a retry has the same ids")
		})
	}
}

// The connection breaks once, in every way, and no caller gets an error.
func TestADroppedConnectionIsMended(t *testing.T) {
	t.Parallel()
	s := start(t)
	n := open(t, s)
	for i, breakIt := range []func(){
		s.Disconnect,
		func() { s.Down(); s.Up() },
		func() {
			s.Fail(servicebus.Fault{On: servicebus.OnSend, Then: servicebus.Drop, Apply: true, Times: 1})
		},
		func() { s.Fail(servicebus.Fault{On: servicebus.OnSend, Then: servicebus.Drop, Times: 1}) },
		s.Restart,
	} {
		for _, queue := range []string{detecting, plain} {
			requireSent(t, n.Queue(queue).Send(t.Context(), []run.Outgoing{{ID: fmt.Sprintf("before-%d", i)}}))
		}
		breakIt()
		for _, queue := range []string{detecting, plain} {
			id := fmt.Sprintf("after-%d", i)
			requireSent(t, n.Queue(queue).Send(t.Context(), []run.Outgoing{{ID: id}}))
			require.Contains(t, ids(s, queue), id)
		}
	}
}

// After an outage of any length the next call succeeds: a new Sender without a connection causes a new Client.
func TestAnOutage(t *testing.T) {
	t.Parallel()
	s := start(t)
	n := open(t, s)
	for _, queue := range []string{plain, detecting} {
		requireSent(t, n.Queue(queue).Send(t.Context(), messages(1, 10)))
	}
	first := n.client
	s.Down()
	for range 2 {
		for _, queue := range []string{plain, detecting} {
			err := n.Queue(queue).Send(t.Context(), messages(2, 10))[0]
			require.Equal(t, "connlost", fault.CodeOf(err), "it is known without waiting for the deadline: %v", err)
			require.Contains(t, err.Error(), "refused", "the system's error")
		}
	}
	require.NotSame(t, first, n.client)
	s.Up()
	for _, queue := range []string{plain, detecting} {
		requireSent(t, n.Queue(queue).Send(t.Context(), messages(2, 10)))
	}
}

func TestOneSenderForEachQueue(t *testing.T) {
	t.Parallel()
	s := start(t)
	n := open(t, s)
	for range 3 {
		for _, queue := range []string{plain, detecting} {
			requireSent(t, n.Queue(queue).Send(t.Context(), messages(1, 10)))
		}
	}
	require.Len(t, n.senders, 2)
	before := n.senders[plain]
	requireSent(t, n.Queue(plain).Send(t.Context(), messages(1, 10)))
	require.Same(t, before, n.senders[plain])
}

func TestAfterClose(t *testing.T) {
	t.Parallel()
	s := start(t)
	n := open(t, s)
	requireSent(t, n.Queue(plain).Send(t.Context(), messages(1, 10)))
	n.Close()
	n.Close()
	err := n.Queue(plain).Send(t.Context(), messages(1, 10))[0]
	require.Equal(t, fault.Infrastructure, fault.KindOf(err))
	require.Equal(t, "closed", fault.CodeOf(err))
}

func TestCloseEndsWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	s := start(t)
	n := open(t, s)
	requireSent(t, n.Queue(plain).Send(t.Context(), messages(1, 10)))
	s.Fail(servicebus.Fault{On: servicebus.OnSend, Then: servicebus.Hang})
	answer := make(chan error, 1)
	go func() { answer <- n.Queue(plain).Send(context.Background(), messages(1, 10))[0] }()
	require.Eventually(t, func() bool { return s.Faults()[0].Struck > 0 }, patient, 10*time.Millisecond)
	n.Close()
	select {
	case err := <-answer:
		require.Equal(t, fault.Infrastructure, fault.KindOf(err), "%v", err)
	case <-time.After(patient):
		t.Fatal("it hangs")
	}
}

// No error of a chain contains a body or a key.
func TestErrorsHoldNoContent(t *testing.T) {
	t.Parallel()
	s := start(t)
	const marker = "payload-marker"
	connection := strings.Replace(s.ConnectionString(), "localhost", "127.0.0.1", 1)
	n, err := Open(Options{Connection: connection, Timeouts: Timeouts{Call: patient}})
	require.NoError(t, err)
	t.Cleanup(n.Close)
	for _, f := range []servicebus.Fault{
		{On: servicebus.OnSend, Then: servicebus.Reject, Condition: string(amqp.ErrCondResourceLimitExceeded)},
		{On: servicebus.OnSend, Then: servicebus.Drop},
		{On: servicebus.OnAttach, Then: servicebus.Refuse, Condition: string(amqp.ErrCondUnauthorizedAccess)},
	} {
		s.Heal()
		s.Fail(f)
		s.Disconnect()
		err := n.Queue(plain).Send(t.Context(), []run.Outgoing{{ID: "a", Body: []byte(marker)}})[0]
		require.Error(t, err)
		require.NotContains(t, err.Error(), marker)
		require.NotContains(t, err.Error(), emulatorKey)
	}
}
