package servicebus_test

import (
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"sqlwriter/test/emulators/servicebus"
)

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
