package servicebus_test

import (
	"context"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"
	"github.com/stretchr/testify/require"

	"sqlwriter/test/emulators/servicebus"
	"sqlwriter/test/emulators/servicebus/servicebustest"
)

// jobs is the queue of most tests.
const jobs = "jobs"

// patience is for what should take milliseconds.
const patience = time.Minute

func deadline(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// start gives an emulator with the queue jobs and a client of it.
func start(t *testing.T, change ...func(*servicebus.Queue)) (*servicebustest.Server, *azservicebus.Client) {
	t.Helper()
	q := servicebus.Queue{Name: jobs}
	for _, c := range change {
		c(&q)
	}
	s := servicebustest.Start(t, q)
	return s, s.Client()
}

// startTwo gives one with the queues jobs and other.
func startTwo(t *testing.T) (*servicebustest.Server, *azservicebus.Client) {
	t.Helper()
	s := servicebustest.Start(t, servicebus.Queue{Name: jobs}, servicebus.Queue{Name: "other"})
	return s, s.Client()
}

func detecting(q *servicebus.Queue) { q.RequiresDuplicateDetection = true }

func newSender(t *testing.T, client *azservicebus.Client) *azservicebus.Sender {
	t.Helper()
	s, err := client.NewSender(jobs, nil)
	require.NoError(t, err)
	return s
}

func newReceiver(t *testing.T, client *azservicebus.Client) *azservicebus.Receiver {
	t.Helper()
	r, err := client.NewReceiverForQueue(jobs, nil)
	require.NoError(t, err)
	return r
}

func message(id string) *azservicebus.Message {
	return &azservicebus.Message{MessageID: to.Ptr(id), Body: []byte("body of " + id)}
}

func send(t *testing.T, sender *azservicebus.Sender, ids ...string) {
	t.Helper()
	for _, id := range ids {
		require.NoError(t, sender.SendMessage(deadline(t), message(id), nil))
	}
}

// receive gives exactly n messages, in the order in which they came.
//
// It waits for all of them in one request. Between two requests the SDK gives
// back what still arrives, and the queue delivers that after later messages.
func receive(t *testing.T, receiver *azservicebus.Receiver, n int) []*azservicebus.ReceivedMessage {
	t.Helper()
	ctx := deadline(t)
	together := &azservicebus.ReceiveMessagesOptions{TimeAfterFirstMessage: patience}
	var all []*azservicebus.ReceivedMessage
	for len(all) < n {
		got, err := receiver.ReceiveMessages(ctx, n-len(all), together)
		require.NoError(t, err, "%d of %d messages came", len(all), n)
		all = append(all, got...)
	}
	return all
}

func receiveOne(t *testing.T, receiver *azservicebus.Receiver) *azservicebus.ReceivedMessage {
	t.Helper()
	return receive(t, receiver, 1)[0]
}

// requireCode wants the SDK's code of an error.
func requireCode(t *testing.T, want azservicebus.Code, err error) {
	t.Helper()
	var e *azservicebus.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, want, e.Code, err.Error())
}

// requireCondition wants the AMQP condition of an error.
func requireCondition(t *testing.T, want string, err error) {
	t.Helper()
	var e *amqp.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, want, string(e.Condition), err.Error())
}

func ids(peeked []servicebus.Peeked) []string {
	all := make([]string, len(peeked))
	for i, m := range peeked {
		all[i] = m.MessageID
	}
	return all
}
