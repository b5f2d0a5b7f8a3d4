package servicebus_test

import (
	"context"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"sqlwriter/test/emulators/servicebus"
)

func TestMessagesComeInOrderAndGoWhenCompleted(t *testing.T) {
	t.Parallel()
	s, client := start(t)
	want := numbered("m", 10)
	send(t, newSender(t, client), want...)
	receiver := newReceiver(t, client)
	got := receive(t, receiver, 10)
	for i, m := range got {
		require.Equal(t, want[i], m.MessageID)
	}
	counts := s.Counts(jobs)
	require.Equal(t, 10, counts.Active)
	require.Equal(t, 10, counts.Locked)
	for _, m := range got {
		require.NoError(t, receiver.CompleteMessage(deadline(t), m, nil))
	}
	counts = s.Counts(jobs)
	require.Zero(t, counts.Active)
	require.Equal(t, 10, counts.Stats.Completed)
	require.Equal(t, 1, counts.Stats.MaxDeliveries)
	requireCode(t, azservicebus.CodeLockLost,
		receiver.CompleteMessage(deadline(t), &azservicebus.ReceivedMessage{LockToken: got[0].LockToken}, nil))
}

func TestAnAbandonedMessageIsDeadLetteredAfterItsLastDelivery(t *testing.T) {
	t.Parallel()
	s, client := start(t, func(q *servicebus.Queue) { q.MaxDeliveryCount = 3 })
	send(t, newSender(t, client), "a")
	receiver := newReceiver(t, client)
	for n := range 3 {
		m := receiveOne(t, receiver)
		require.EqualValues(t, n+1, m.DeliveryCount)
		if n > 0 {
			require.EqualValues(t, n, m.ApplicationProperties["attempt"])
		}
		require.NoError(t, receiver.AbandonMessage(deadline(t), m, &azservicebus.AbandonMessageOptions{
			PropertiesToModify: map[string]any{"attempt": int64(n + 1)},
		}))
	}
	counts := s.Counts(jobs)
	require.Zero(t, counts.Active)
	require.Equal(t, 1, counts.DeadLetter)
	require.Equal(t, 3, counts.Stats.Abandoned)
	require.Equal(t, 3, counts.Stats.MaxDeliveries)
	require.Equal(t, 1, counts.Stats.DeadLettered)
	dead := receiveOne(t, newDeadLetterReceiver(t, client))
	require.Equal(t, "MaxDeliveryCountExceeded", *dead.DeadLetterReason)
	require.EqualValues(t, 3, dead.DeliveryCount)
	require.NotEmpty(t, *dead.DeadLetterErrorDescription)
	require.Equal(t, jobs, *dead.DeadLetterSource)
	require.Equal(t, "body of a", string(dead.Body))
}

func TestAMessageIsDeadLetteredWithItsReason(t *testing.T) {
	t.Parallel()
	s, client := start(t)
	m := message("a")
	m.ApplicationProperties = map[string]any{"kept": int32(1)}
	require.NoError(t, newSender(t, client).SendMessage(deadline(t), m, nil))
	receiver := newReceiver(t, client)
	require.NoError(t, receiver.AbandonMessage(deadline(t), receiveOne(t, receiver), nil))
	require.NoError(t, receiver.DeadLetterMessage(deadline(t), receiveOne(t, receiver), &azservicebus.DeadLetterOptions{
		Reason: to.Ptr("Malformed"), ErrorDescription: to.Ptr("no JSON"),
		PropertiesToModify: map[string]any{"by": "worker"},
	}))
	peeked := s.Peek(servicebus.DeadLetterPath(jobs))
	require.Len(t, peeked, 1)
	require.Equal(t, "Malformed", peeked[0].ApplicationProperties["DeadLetterReason"])

	dead := newDeadLetterReceiver(t, client)
	for n := range 12 { // there is no limit to deliveries here, and nowhere to go
		got := receiveOne(t, dead)
		require.Equal(t, "a", got.MessageID)
		require.EqualValues(t, 2, got.DeliveryCount, "that of its last delivery before")
		require.Equal(t, "Malformed", *got.DeadLetterReason)
		require.Equal(t, "no JSON", *got.DeadLetterErrorDescription)
		require.Equal(t, int32(1), got.ApplicationProperties["kept"])
		require.Equal(t, "worker", got.ApplicationProperties["by"])
		if n < 11 {
			require.NoError(t, dead.AbandonMessage(deadline(t), got, nil))
			continue
		}
		requireCondition(t, "amqp:not-allowed", dead.DeadLetterMessage(deadline(t), got, nil))
		require.NoError(t,
			dead.CompleteMessage(deadline(t), &azservicebus.ReceivedMessage{LockToken: got.LockToken}, nil))
	}
	require.Zero(t, s.Counts(jobs).DeadLetter)
}

func TestALateSettlementIsRefusedAsLockLost(t *testing.T) {
	t.Parallel()
	s, client := start(t, func(q *servicebus.Queue) { q.LockDuration, q.MaxDeliveryCount = 30*time.Second, 2 })
	send(t, newSender(t, client), "a")
	receiver := newReceiver(t, client)
	first := receiveOne(t, receiver)
	s.Advance(31 * time.Second)
	counts := s.Counts(jobs)
	require.Zero(t, counts.Locked)
	require.Equal(t, 1, counts.Stats.Expired)
	for range 2 {
		requireCode(t, azservicebus.CodeLockLost, receiver.RenewMessageLock(deadline(t), first, nil))
	}
	requireCode(t, azservicebus.CodeLockLost, receiver.CompleteMessage(deadline(t), first, nil))
	second := receiveOne(t, receiver)
	require.EqualValues(t, 2, second.DeliveryCount)
	require.NotEqual(t, first.LockToken, second.LockToken)

	s.Advance(31 * time.Second)
	require.Equal(t, 1, s.Counts(jobs).DeadLetter, "that was its last delivery")
	requireCode(t, azservicebus.CodeLockLost, receiver.AbandonMessage(deadline(t), second, nil))
}

func TestALockCanBeRenewed(t *testing.T) {
	t.Parallel()
	s, client := start(t, func(q *servicebus.Queue) { q.LockDuration = time.Minute })
	send(t, newSender(t, client), "a")
	receiver := newReceiver(t, client)
	m := receiveOne(t, receiver)
	for range 3 {
		before := *m.LockedUntil
		s.Advance(35 * time.Second)
		require.NoError(t, receiver.RenewMessageLock(deadline(t), m, nil))
		require.WithinDuration(t, before.Add(35*time.Second), *m.LockedUntil, 25*time.Second)
	}
	require.NoError(t, receiver.CompleteMessage(deadline(t), m, nil))
	require.Zero(t, s.Counts(jobs).Stats.Expired)
}

func TestALockEndsByItselfToo(t *testing.T) {
	t.Parallel()
	s, client := start(t, func(q *servicebus.Queue) { q.LockDuration = 50 * time.Millisecond })
	send(t, newSender(t, client), "a")
	receiver := newReceiver(t, client)
	receiveOne(t, receiver)
	require.EqualValues(t, 2, receiveOne(t, receiver).DeliveryCount, "redelivered without anybody asking")
	require.GreaterOrEqual(t, s.Counts(jobs).Stats.Expired, 1)
}

func TestAClosedReceiverKeepsItsLocks(t *testing.T) {
	t.Parallel()
	s, client := start(t)
	send(t, newSender(t, client), "a")
	first := newReceiver(t, client)
	receiveOne(t, first)
	require.NoError(t, first.Close(deadline(t)))
	require.Equal(t, 1, s.Counts(jobs).Locked)
	s.Advance(time.Minute)
	require.EqualValues(t, 2, receiveOne(t, newReceiver(t, client)).DeliveryCount)
}

func TestReceiveAndDelete(t *testing.T) {
	t.Parallel()
	s, client := start(t)
	send(t, newSender(t, client), "a", "b")
	receiver, err := client.NewReceiverForQueue(jobs,
		&azservicebus.ReceiverOptions{ReceiveMode: azservicebus.ReceiveModeReceiveAndDelete})
	require.NoError(t, err)
	got := receive(t, receiver, 2)
	require.Equal(t, "b", got[1].MessageID)
	counts := s.Counts(jobs)
	require.Zero(t, counts.Active)
	require.Equal(t, 2, counts.Stats.Completed)
}

func TestPeekSeesAllAndLocksNothing(t *testing.T) {
	t.Parallel()
	s, client := start(t)
	sender, receiver := newSender(t, client), newReceiver(t, client)
	none, err := receiver.PeekMessages(deadline(t), 5, nil)
	require.NoError(t, err)
	require.Empty(t, none)
	send(t, sender, "locked", "free")
	receiveOne(t, receiver)
	_, err = sender.ScheduleMessages(deadline(t), []*azservicebus.Message{message("later")},
		s.Now().Add(time.Hour), nil)
	require.NoError(t, err)
	seen, err := receiver.PeekMessages(deadline(t), 2, nil)
	require.NoError(t, err)
	require.Len(t, seen, 2)
	more, err := receiver.PeekMessages(deadline(t), 2, nil)
	require.NoError(t, err)
	require.Len(t, more, 1, "it goes on where it was")
	require.Equal(t, "later", more[0].MessageID)
	require.Equal(t, azservicebus.MessageStateScheduled, more[0].State)
	require.Equal(t, 1, s.Counts(jobs).Locked)
}

// A message that came over a connection that is gone can be settled over another: renew first, then by its token alone.
func TestAMessageIsSettledOverAnotherConnection(t *testing.T) {
	t.Parallel()
	s, client := start(t)
	send(t, newSender(t, client), "complete", "abandon", "deadletter")
	receiver := newReceiver(t, client)
	got := receive(t, receiver, 3)
	s.Disconnect()
	token := func(i int) *azservicebus.ReceivedMessage {
		return &azservicebus.ReceivedMessage{LockToken: got[i].LockToken}
	}
	require.NoError(t, receiver.RenewMessageLock(deadline(t), got[0], nil))
	require.NoError(t, receiver.CompleteMessage(deadline(t), token(0), nil))
	require.NoError(t, receiver.AbandonMessage(deadline(t), token(1), nil))
	require.NoError(t,
		receiver.DeadLetterMessage(deadline(t), token(2), &azservicebus.DeadLetterOptions{Reason: to.Ptr("r")}))
	requireCode(t, azservicebus.CodeLockLost, receiver.CompleteMessage(deadline(t), token(0), nil))
	counts := s.Counts(jobs)
	require.Equal(t, 1, counts.Active)
	require.Equal(t, 1, counts.DeadLetter)
	require.Equal(t, "r", s.Peek(servicebus.DeadLetterPath(jobs))[0].ApplicationProperties["DeadLetterReason"])
	require.EqualValues(t, 2, receiveOne(t, receiver).DeliveryCount)
}

func TestDeferringIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	s, client := start(t)
	send(t, newSender(t, client), "a")
	receiver := newReceiver(t, client)
	m := receiveOne(t, receiver)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // its retries would take 40 s
	defer cancel()
	requireCondition(t, "amqp:not-allowed", receiver.DeferMessage(ctx, m, nil))
	require.Equal(t, 1, s.Counts(jobs).Locked)
}

func TestReceiversShareAQueue(t *testing.T) {
	t.Parallel()
	s, client := start(t)
	all := numbered("m", 40)
	send(t, newSender(t, client), all...)
	first, second := newReceiver(t, client), newReceiver(t, client)
	var seen []string
	for _, r := range []*azservicebus.Receiver{first, second} {
		for _, m := range receive(t, r, 20) {
			seen = append(seen, m.MessageID)
			require.NoError(t, r.CompleteMessage(deadline(t), m, nil))
		}
	}
	require.ElementsMatch(t, all, seen)
	require.Zero(t, s.Counts(jobs).Active)
}
