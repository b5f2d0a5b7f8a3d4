package servicebus_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"sqlwriter/test/emulators/servicebus"
	"sqlwriter/test/emulators/servicebus/servicebustest"
)

func startWithJournal(t *testing.T) (*servicebustest.Server, string) {
	t.Helper()
	journal := filepath.Join(t.TempDir(), "messages.jsonl")
	return servicebustest.StartWith(t, servicebus.Options{
		Journal: journal,
		Queues:  []servicebus.Queue{{Name: jobs, RequiresDuplicateDetection: true, MaxDeliveryCount: 3}},
	}), journal
}

func TestAKilledEmulatorComesBackWithItsMessages(t *testing.T) {
	t.Parallel()
	s, _ := startWithJournal(t)
	client := s.Client()
	sender, receiver := newSender(t, client), newReceiver(t, client)
	send(t, sender, "done", "dead-lettered", "tried", "locked")
	// a busy machine makes two deliveries of them, and their order is not the senders'
	got := map[string]*azservicebus.ReceivedMessage{}
	for _, m := range receive(t, receiver, 4) {
		got[m.MessageID] = m
	}
	require.NoError(t, receiver.CompleteMessage(deadline(t), got["done"], nil))
	require.NoError(t,
		receiver.DeadLetterMessage(deadline(t), got["dead-lettered"],
			&azservicebus.DeadLetterOptions{Reason: to.Ptr("r")}))
	require.NoError(t,
		receiver.AbandonMessage(deadline(t), got["tried"],
			&azservicebus.AbandonMessageOptions{PropertiesToModify: map[string]any{"k": "v"}}))
	send(t, sender, "free")
	s.Advance(time.Second)
	at := s.Now().Add(time.Hour)
	later := message("later")
	later.ScheduledEnqueueTime = &at
	later.ApplicationProperties = map[string]any{"n": int32(7)}
	require.NoError(t, sender.SendMessage(deadline(t), later, nil))
	before := s.Peek(jobs)

	for range 2 { // what was compacted comes back as well
		s.Restart()
		require.Equal(t, before, s.Peek(jobs))
		counts := s.Counts(jobs)
		require.Equal(t, 3, counts.Active)
		require.Zero(t, counts.Locked)
		require.Equal(t, 1, counts.Scheduled)
		require.Equal(t, 1, counts.DeadLetter)
	}
	// The client and its links find the new process by themselves.
	send(t, sender, "done", "locked", "new")
	require.Equal(t, 2, s.Counts(jobs).Stats.Duplicates, "ids that were seen stay seen")
	s.Advance(time.Hour)
	var messages []string
	for _, m := range receive(t, newReceiver(t, client), 5) {
		messages = append(messages, m.MessageID)
		switch m.MessageID {
		case "tried":
			require.EqualValues(t, 2, m.DeliveryCount)
			require.Equal(t, "v", m.ApplicationProperties["k"])
		case "later":
			require.Equal(t, int32(7), m.ApplicationProperties["n"])
		case "new":
			require.Greater(t, *m.SequenceNumber, before[len(before)-1].SequenceNumber, "no number is given twice")
		}
	}
	require.ElementsMatch(t, []string{"tried", "locked", "free", "new", "later"}, messages)
	dead := receiveOne(t, newDeadLetterReceiver(t, client))
	require.Equal(t, "r", *dead.DeadLetterReason)
}

func TestTheClockStaysMoved(t *testing.T) {
	t.Parallel()
	s, _ := startWithJournal(t)
	before := s.Now()
	s.Advance(24 * time.Hour)
	s.Restart()
	require.GreaterOrEqual(t, s.Now().Sub(before), 24*time.Hour)
}

func TestWithoutAJournalNothingIsKept(t *testing.T) {
	t.Parallel()
	s, client := start(t)
	send(t, newSender(t, client), "a")
	s.Restart()
	require.Zero(t, s.Counts(jobs).Active)
}

func TestTheJournalIsCompactedAtTheStart(t *testing.T) {
	t.Parallel()
	s, journal := startWithJournal(t)
	for range 100 {
		s.Send(jobs, servicebus.Outgoing{Body: make([]byte, 1000)})
	}
	s.Purge(jobs)
	s.Stop()
	full, err := os.Stat(journal)
	require.NoError(t, err)
	require.Greater(t, full.Size(), int64(100_000))
	s.Restart()
	small, err := os.Stat(journal)
	require.NoError(t, err)
	require.Less(t, small.Size(), int64(1000))
	s.Restart() // from the compacted one
	require.EqualValues(t, 101, s.Send(jobs, servicebus.Outgoing{}), "the numbers go on")
}

func TestADamagedJournal(t *testing.T) {
	t.Parallel()
	s, journal := startWithJournal(t)
	s.Send(jobs, servicebus.Outgoing{MessageID: "a"})
	s.Stop()
	kept, err := os.ReadFile(journal)
	require.NoError(t, err)

	require.NoError(t, os.WriteFile(journal, append(kept, `{"op":"put","que`...), 0o600))
	s.Restart()
	require.Equal(t, []string{"a"}, ids(s.Peek(jobs)), "a torn last line was never answered")
	s.Stop()

	require.NoError(t, os.WriteFile(journal, append([]byte("nonsense\n"), kept...), 0o600))
	dir, err := os.Getwd()
	require.NoError(t, err)
	_, err = servicebus.Start(t.Context(), servicebus.Options{Dir: dir, Journal: journal})
	require.ErrorContains(t, err, "line 1 of the journal")
}
