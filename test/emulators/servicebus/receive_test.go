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
