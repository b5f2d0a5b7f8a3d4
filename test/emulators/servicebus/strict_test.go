package servicebus_test

import (
	"testing"

	"github.com/Azure/go-amqp"
	"github.com/stretchr/testify/require"

	"sqlwriter/test/emulators/servicebus"
)

func TestNamesKnowNoCase(t *testing.T) {
	t.Parallel()
	s, client := start(t)
	sender, err := client.NewSender("JOBS", nil)
	require.NoError(t, err)
	send(t, sender, "a")
	require.Equal(t, 1, s.Counts(jobs).Active)
}

func TestThereAreNoSessions(t *testing.T) {
	t.Parallel()
	_, client := start(t)
	_, err := client.AcceptSessionForQueue(deadline(t), jobs, "s", nil)
	requireCondition(t, "amqp:not-allowed", err)
}

// raw gives an AMQP session without the SDK's manners.
func raw(t *testing.T, address string) *amqp.Session {
	t.Helper()
	conn, err := amqp.Dial(deadline(t), "amqp://"+address, &amqp.ConnOptions{SASLType: amqp.SASLTypeAnonymous()})
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() }) // the test is over
	session, err := conn.NewSession(deadline(t), nil)
	require.NoError(t, err)
	return session
}

func TestSendingToADeadLetterQueueIsRefused(t *testing.T) {
	t.Parallel()
	s, _ := start(t)
	_, err := raw(t, s.AMQP).NewSender(deadline(t), servicebus.DeadLetterPath(jobs), nil)
	requireCondition(t, "amqp:not-allowed", err)
}

func TestABatchMustConsistOfMessages(t *testing.T) {
	t.Parallel()
	s, _ := start(t)
	session := raw(t, s.AMQP)
	for name, batch := range map[string]amqp.Message{
		"no message at all":      {Value: "x"},
		"not a message":          {Data: [][]byte{[]byte("hello")}},
		"one that is cut off":    {Data: [][]byte{{0x00, 0x53, 0x75, 0xa0, 9, 1}}},
		"one that is not a type": {Data: [][]byte{{0x00, 0x53, 0x75, 0x10}}},
	} {
		sender, err := session.NewSender(deadline(t), jobs, nil)
		require.NoError(t, err)
		batch.Format = 0x80013700
		t.Log(name)
		requireCondition(t, "amqp:decode-error", sender.Send(deadline(t), &batch, nil))
		require.NoError(t, sender.Close(deadline(t)))
	}
	require.Zero(t, s.Counts(jobs).Active)
}

func TestWhatManagementDoesNotKnow(t *testing.T) {
	t.Parallel()
	_, client := start(t)
	send(t, newSender(t, client), "a")
	receiver := newReceiver(t, client)
	m := receiveOne(t, receiver)
	_, err := receiver.ReceiveDeferredMessages(deadline(t), []int64{*m.SequenceNumber}, nil)
	require.ErrorContains(t, err, "501")
}

func TestControlRefuses(t *testing.T) {
	t.Parallel()
	s, _ := start(t)
	for want, err := range map[string]error{
		"no queue nowhere": s.Control.Fail(t.Context(),
			servicebus.Fault{Queue: "nowhere", On: servicebus.OnSend, Then: servicebus.Drop}),
		"on is one of": s.Control.Fail(t.Context(), servicebus.Fault{Then: servicebus.Drop}),
		"then is one of": s.Control.Fail(t.Context(),
			servicebus.Fault{On: servicebus.OnSend, Then: servicebus.LockLost}),
		"needs a condition": s.Control.Fail(t.Context(),
			servicebus.Fault{On: servicebus.OnSend, Then: servicebus.Reject}),
		"cannot apply": s.Control.Fail(t.Context(),
			servicebus.Fault{On: servicebus.OnSettle, Then: servicebus.LockLost, Apply: true}),
		"not below 0":         s.Control.Advance(t.Context(), -1e9),
		"there is no queue x": second(s.Control.Counts(t.Context(), "x")),
		"no queue y":          second(s.Control.Peek(t.Context(), "y", 1)),
		"dead-letter queue": second(
			s.Control.Send(t.Context(), servicebus.DeadLetterPath(jobs), servicebus.Outgoing{})),
	} {
		require.ErrorContains(t, err, want)
	}
	require.Empty(t, s.Faults())
}

func second[T any](_ T, err error) error { return err }

// The JavaScript SDK opens its reply link without a target address and gives the link's name as the address of answers.
func TestAReplyLinkWithoutATargetIsMeantByItsName(t *testing.T) {
	t.Parallel()
	s, _ := start(t)
	session := raw(t, s.AMQP)
	address := jobs + "/$management"
	answers, err := session.NewReceiver(deadline(t), address, &amqp.ReceiverOptions{Name: "answers"})
	require.NoError(t, err)
	requests, err := session.NewSender(deadline(t), address, nil)
	require.NoError(t, err)
	for operation, want := range map[string]struct {
		body      map[string]any
		status    int32
		condition string
	}{
		"com.microsoft:cancel-scheduled-message": {
			map[string]any{"sequence-numbers": []int64{77}}, 404, "com.microsoft:message-not-found",
		},
		"com.microsoft:renew-lock": {
			map[string]any{"lock-tokens": []amqp.UUID{{1}}}, 410, "com.microsoft:message-lock-lost",
		},
		"com.microsoft:update-disposition": {
			map[string]any{"lock-tokens": []amqp.UUID{{1}}, "disposition-status": "defered"},
			501, "amqp:not-implemented",
		},
		"com.microsoft:no-such-thing": {map[string]any{}, 501, "amqp:not-implemented"},
	} {
		id, reply := any(operation), "answers"
		require.NoError(t, requests.Send(deadline(t), &amqp.Message{
			Properties:            &amqp.MessageProperties{MessageID: id, ReplyTo: &reply},
			ApplicationProperties: map[string]any{"operation": operation},
			Value:                 want.body,
		}, nil))
		answer, err := answers.Receive(deadline(t), nil)
		require.NoError(t, err, operation)
		require.NoError(t, answers.AcceptMessage(deadline(t), answer))
		require.Equal(t, operation, answer.Properties.CorrelationID)
		require.Equal(t, want.status, answer.ApplicationProperties["status-code"], operation)
		// go-amqp reads a symbol as a text
		require.Equal(t, want.condition, answer.ApplicationProperties["error-condition"], operation)
	}
}
