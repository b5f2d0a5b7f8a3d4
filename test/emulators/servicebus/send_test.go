package servicebus_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"sqlwriter/test/emulators/servicebus"
)

func TestAMessageComesBackAsItWasSent(t *testing.T) {
	t.Parallel()
	s, client := start(t)
	stamp := time.Date(2025, 12, 17, 10, 30, 15, 123_000_000, time.UTC).Local() // as the SDK gives times
	sent := &azservicebus.Message{
		MessageID: to.Ptr("m-1"), Body: []byte{0, 1, 0xff, '\n'},
		ContentType: to.Ptr("application/json"), CorrelationID: to.Ptr("c-1"), Subject: to.Ptr("job"),
		To: to.Ptr("there"), ReplyTo: to.Ptr("here"), ReplyToSessionID: to.Ptr("rs"), SessionID: to.Ptr("session"),
		PartitionKey: to.Ptr("session"), TimeToLive: to.Ptr(time.Hour),
		ApplicationProperties: map[string]any{
			"string": "ünï", "int32": int32(-7), "int64": int64(math.MaxInt64), "uint8": uint8(200), "double": 1.5,
			"bool": true, "time": stamp, "bytes": []byte{1, 2}, "none": nil,
		},
	}
	require.NoError(t, newSender(t, client).SendMessage(deadline(t), sent, nil))
	before := s.Now()
	got := receiveOne(t, newReceiver(t, client))

	require.Equal(t, sent, got.Message(), "what Message copies")
	require.Equal(t, sent.ApplicationProperties, got.ApplicationProperties)
	require.EqualValues(t, 1, got.DeliveryCount)
	require.EqualValues(t, 1, *got.SequenceNumber)
	require.EqualValues(t, 1, *got.EnqueuedSequenceNumber)
	require.Equal(t, azservicebus.MessageStateActive, got.State)
	require.WithinDuration(t, before, *got.EnqueuedTime, time.Minute)
	require.Equal(t, got.EnqueuedTime.Add(time.Hour), *got.ExpiresAt)
	require.WithinDuration(t, before.Add(time.Minute), *got.LockedUntil, 30*time.Second, "lock of a minute")

	seen := s.Peek(jobs)
	require.Len(t, seen, 1)
	require.Equal(t, "m-1", seen[0].MessageID)
	require.Equal(t, "application/json", seen[0].Properties["contentType"])
	require.Equal(t, "ünï", seen[0].ApplicationProperties["string"])
	require.Equal(t, "data", seen[0].BodyType)
	require.Equal(t, sent.Body, seen[0].Body)
}

func TestABatchIsFilledBySizeAndStoredWhole(t *testing.T) {
	t.Parallel()
	s, client := start(t)
	sender := newSender(t, client)
	batch, err := sender.NewMessageBatch(deadline(t), nil)
	require.NoError(t, err)
	err = batch.AddMessage(&azservicebus.Message{Body: make([]byte, 300_000)}, nil)
	require.ErrorIs(t, err, azservicebus.ErrMessageTooLarge, "one that never fits")
	for err = nil; err == nil; {
		err = batch.AddMessage(&azservicebus.Message{Body: make([]byte, 10_000)}, nil)
	}
	require.ErrorIs(t, err, azservicebus.ErrMessageTooLarge)
	require.EqualValues(t, 26, batch.NumMessages(), "256 KiB")
	require.NoError(t, sender.SendMessageBatch(deadline(t), batch, nil))
	require.Equal(t, 26, s.Counts(jobs).Active)
}

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

func TestAScheduledMessageComesAtItsTime(t *testing.T) {
	t.Parallel()
	s, client := start(t)
	sender, receiver := newSender(t, client), newReceiver(t, client)
	at := s.Now().Add(time.Hour).Truncate(time.Millisecond)
	later := message("later")
	later.ScheduledEnqueueTime = &at
	require.NoError(t, sender.SendMessage(deadline(t), later, nil))
	past := message("past")
	past.ScheduledEnqueueTime = to.Ptr(at.Add(-2 * time.Hour))
	require.NoError(t, sender.SendMessage(deadline(t), past, nil))
	counts := s.Counts(jobs)
	require.Equal(t, 1, counts.Scheduled)
	require.Equal(t, 1, counts.Active, "a time that is over means now")
	first := receiveOne(t, receiver)
	require.Equal(t, "past", first.MessageID)
	require.NoError(t, receiver.CompleteMessage(deadline(t), first, nil))

	s.Advance(59 * time.Minute)
	require.Equal(t, 1, s.Counts(jobs).Scheduled)
	s.Advance(time.Minute)
	counts = s.Counts(jobs)
	require.Zero(t, counts.Scheduled)
	require.Equal(t, 1, counts.Stats.Scheduled)
	got := receiveOne(t, receiver)
	require.Equal(t, "later", got.MessageID)
	require.Equal(t, at, got.ScheduledEnqueueTime.UTC())
	require.Equal(t, at, got.EnqueuedTime.UTC())
	require.EqualValues(t, 3, *got.SequenceNumber, "it is appended as if it had just been sent")
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

func TestScheduledMessagesCanBeTakenBack(t *testing.T) {
	t.Parallel()
	s, client := start(t)
	sender := newSender(t, client)
	numbers, err := sender.ScheduleMessages(deadline(t), []*azservicebus.Message{message("a"), message("b")},
		s.Now().Add(time.Hour), nil)
	require.NoError(t, err)
	require.Len(t, numbers, 2)
	require.NoError(t, sender.CancelScheduledMessages(deadline(t), numbers[:1], nil))
	require.Equal(t, []string{"b"}, ids(s.Peek(jobs)))
	requireCode(t, azservicebus.CodeNotFound, sender.CancelScheduledMessages(deadline(t), numbers, nil))
	require.Equal(t, 1, s.Counts(jobs).Scheduled, "all or none")
	s.Advance(time.Hour)
	requireCode(t, azservicebus.CodeNotFound, sender.CancelScheduledMessages(deadline(t), numbers[1:], nil))
	require.Equal(t, 1, s.Counts(jobs).Active)
}

func TestAMessageTooOldIsDropped(t *testing.T) {
	t.Parallel()
	s, client := start(t)
	for _, id := range []string{"kept", "old"} {
		m := message(id)
		m.TimeToLive = to.Ptr(time.Minute)
		require.NoError(t, newSender(t, client).SendMessage(deadline(t), m, nil))
	}
	receiver := newReceiver(t, client)
	kept := receiveOne(t, receiver)
	s.Advance(30 * time.Second) // and what the machine takes
	require.NoError(t, receiver.RenewMessageLock(deadline(t), kept, nil))
	require.Equal(t, 2, s.Counts(jobs).Active)
	s.Advance(30 * time.Second)
	require.Equal(t, []string{"kept"}, ids(s.Peek(jobs)), "a locked one stays")
	require.NoError(t, receiver.AbandonMessage(deadline(t), kept, nil))
	require.Zero(t, s.Counts(jobs).Active)
	require.Equal(t, 2, s.Counts(jobs).Stats.TimeToLiveExpired)
	require.Zero(t, s.Counts(jobs).DeadLetter)
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
