package servicebus_test

import (
	"slices"
	"sync"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"
)

// sendMany sends n messages in batches.
func sendMany(t *testing.T, client *azservicebus.Client, n int) {
	t.Helper()
	sender := newSender(t, client)
	for sent := 0; sent < n; {
		batch, err := sender.NewMessageBatch(deadline(t), nil)
		require.NoError(t, err)
		for range min(500, n-sent) {
			require.NoError(t, batch.AddMessage(&azservicebus.Message{Body: []byte("a job")}, nil))
		}
		require.NoError(t, sender.SendMessageBatch(deadline(t), batch, nil))
		sent += int(batch.NumMessages())
	}
}

// completeAll completes messages 16 at a time.
func completeAll(t *testing.T, receiver *azservicebus.Receiver, messages []*azservicebus.ReceivedMessage) {
	t.Helper()
	var wg sync.WaitGroup
	for part := range slices.Chunk(messages, (len(messages)+15)/16) {
		wg.Go(func() {
			for _, m := range part {
				if err := receiver.CompleteMessage(deadline(t), m, nil); err != nil {
					t.Errorf("complete: %v", err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// rhea keeps every delivery that is not settled in its own way, and stops when its ring of 8,192 is full.
func TestDeliveryGoesOn(t *testing.T) {
	t.Parallel()
	s, client := start(t)
	const n = 9000
	sendMany(t, client, n)
	receiver := newReceiver(t, client)
	for done := 0; done < n; {
		got := receive(t, receiver, min(300, n-done))
		completeAll(t, receiver, got)
		done += len(got)
	}
	counts := s.Counts(jobs)
	require.Zero(t, counts.Active)
	require.Equal(t, n, counts.Stats.Completed)
	require.Equal(t, 1, counts.Stats.MaxDeliveries)
}
