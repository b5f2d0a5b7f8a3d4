package servicebus_test

import (
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"sqlwriter/test/emulators/servicebus"
)

func TestAMessageOverTheLimitIsRefused(t *testing.T) {
	t.Parallel()
	s, client := start(t, func(q *servicebus.Queue) { q.MaxMessageSize = 2000 })
	sender := newSender(t, client)
	err := sender.SendMessage(deadline(t), &azservicebus.Message{Body: make([]byte, 2000)}, nil)
	require.ErrorIs(t, err, azservicebus.ErrMessageTooLarge)
	// The SDK knows the limit and did not even ask. Past it:
	_, err = s.Control.Send(t.Context(), jobs, servicebus.Outgoing{Body: make([]byte, 2000)})
	require.ErrorContains(t, err, "a message of 2")
	require.Zero(t, s.Counts(jobs).Active)
	send(t, sender, "small")
}

func TestAFullQueueTakesNoPartOfABatch(t *testing.T) {
	t.Parallel()
	s, client := start(t, func(q *servicebus.Queue) { q.MaxQueueDepth = 3 })
	sender := newSender(t, client)
	send(t, sender, "a", "b")
	batch, err := sender.NewMessageBatch(deadline(t), nil)
	require.NoError(t, err)
	require.NoError(t, batch.AddMessage(message("c"), nil))
	require.NoError(t, batch.AddMessage(message("d"), nil))
	err = sender.SendMessageBatch(deadline(t), batch, nil)
	requireCondition(t, "amqp:resource-limit-exceeded", err)
	require.Equal(t, []string{"a", "b"}, ids(s.Peek(jobs)))
	send(t, sender, "c")
	require.Equal(t, 1, s.Counts(jobs).Stats.Refused)
}

func TestADuplicateIsDroppedWithinTheWindow(t *testing.T) {
	t.Parallel()
	s, client := start(t, detecting, func(q *servicebus.Queue) { q.DuplicateDetectionWindow = time.Minute })
	sender := newSender(t, client)
	send(t, sender, "a", "a", "b", "a")
	batch, err := sender.NewMessageBatch(deadline(t), nil)
	require.NoError(t, err)
	for _, id := range []string{"b", "c", "c"} {
		require.NoError(t, batch.AddMessage(message(id), nil))
	}
	require.NoError(t, sender.SendMessageBatch(deadline(t), batch, nil))
	at := s.Now().Add(time.Hour)
	_, err = sender.ScheduleMessages(deadline(t), []*azservicebus.Message{message("c"), message("d")}, at, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b", "c", "d"}, ids(s.Peek(jobs)))
	require.Equal(t, 5, s.Counts(jobs).Stats.Duplicates)

	// Completing a message does not make its id new; only time does.
	receiver := newReceiver(t, client)
	for _, m := range receive(t, receiver, 3) {
		require.NoError(t, receiver.CompleteMessage(deadline(t), m, nil))
	}
	send(t, sender, "a")
	require.Zero(t, s.Counts(jobs).Active)
	s.Advance(30 * time.Second) // and what the machine takes
	send(t, sender, "d")
	require.Zero(t, s.Counts(jobs).Active)
	s.Advance(30 * time.Second)
	send(t, sender, "a")
	require.Equal(t, 1, s.Counts(jobs).Active)
}

func TestWithoutDetectionOrIDNothingIsADuplicate(t *testing.T) {
	t.Parallel()
	s, client := start(t)
	send(t, newSender(t, client), "a", "a")
	require.Equal(t, 2, s.Counts(jobs).Active)

	s, client = start(t, detecting)
	for range 2 {
		require.NoError(t, newSender(t, client).SendMessage(deadline(t), &azservicebus.Message{Body: []byte("x")}, nil))
	}
	require.Equal(t, 2, s.Counts(jobs).Active)
}

func TestAdvanceDeliversToAWaitingReceiverBeforeItReturns(t *testing.T) {
	t.Parallel()
	s, client := start(t)
	at := s.Now().Add(time.Hour)
	later := message("later")
	later.ScheduledEnqueueTime = &at
	receiver := newReceiver(t, client)
	got := make(chan string, 1)
	send(t, newSender(t, client), "first")
	first := receiveOne(t, receiver) // the link is there
	require.NoError(t, receiver.CompleteMessage(deadline(t), first, nil))
	go func() {
		if m, err := receiver.ReceiveMessages(deadline(t), 1, nil); err == nil && len(m) == 1 {
			got <- m[0].MessageID
		}
		close(got)
	}()
	require.NoError(t, newSender(t, client).SendMessage(deadline(t), later, nil))
	s.Advance(time.Hour)
	require.Equal(t, "later", <-got)
}

func TestControlSends(t *testing.T) {
	t.Parallel()
	s, client := start(t)
	at := s.Now().Add(time.Hour)
	s.Send(jobs, servicebus.Outgoing{
		MessageID: "raw", ContentType: "text/plain", Body: []byte{0xff, 0},
		ApplicationProperties: map[string]any{"k": "v"},
	})
	s.Send(jobs, servicebus.Outgoing{MessageID: "text", Body: []byte(`"quoted"`), BodyType: "value"})
	s.Send(jobs, servicebus.Outgoing{MessageID: "later", ScheduledEnqueueTime: &at})
	require.Equal(t, 1, s.Counts(jobs).Scheduled)
	got := receive(t, newReceiver(t, client), 2)
	require.Equal(t, []byte{0xff, 0}, got[0].Body)
	require.Equal(t, "text/plain", *got[0].ContentType)
	require.Equal(t, map[string]any{"k": "v"}, got[0].ApplicationProperties)
	require.Nil(t, got[1].Body)
	require.Equal(t, `"quoted"`, got[1].RawAMQPMessage.Body.Value)
	require.Equal(t, 3, s.Purge(jobs))
	require.Empty(t, s.Peek(jobs))
}

func TestAMessageIDHasALimit(t *testing.T) {
	t.Parallel()
	s, client := start(t)
	sender := newSender(t, client)
	send(t, sender, strings.Repeat("x", 128))
	require.Error(t, sender.SendMessage(deadline(t), message(strings.Repeat("x", 129)), nil))
	require.Equal(t, 1, s.Counts(jobs).Active)
}
