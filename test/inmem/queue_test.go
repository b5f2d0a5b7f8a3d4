package inmem_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/run"
	"sqlwriter/test/conformance"
	"sqlwriter/test/inmem"
)

func TestQueue(t *testing.T) {
	always := func(q *inmem.Queue, f inmem.QueueFault) func(testing.TB) { return func(testing.TB) { q.Always(f) } }
	for name, window := range map[string]time.Duration{
		"duplicates come twice": 0, "duplicates are dropped": time.Hour,
	} {
		t.Run(name, func(t *testing.T) {
			conformance.TestQueue(t, func(*testing.T) conformance.QueueHarness {
				now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
				q := inmem.NewQueue(func() time.Time { return now })
				q.DetectDuplicates(window)
				return conformance.QueueHarness{
					Queue: q, Messages: q, DeadLetter: func(_ testing.TB, n int) {
						q.DeadLetter(n)
					}, Now: func() time.Time { return now }, Bound: time.Second,
					Stored: func(testing.TB) []conformance.QueuedMessage {
						var all []conformance.QueuedMessage
						for _, m := range q.Messages() {
							all = append(all, conformance.QueuedMessage{ID: m.ID, Body: m.Body, Due: m.Due})
						}
						return all
					},
					Full: always(q, inmem.QueueFull()), Busy: always(q, inmem.QueueBusy()),
					Down:        always(q, inmem.QueueDown()),
					LoseAnswers: always(q, inmem.QueueLosesAnswer()), Mend: func(testing.TB) { q.Mend() },
				}
			})
		})
	}
}

// clocked is a queue with a clock that the test moves.
func clocked() (*inmem.Queue, *time.Time) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return inmem.NewQueue(func() time.Time { return now }), &now
}

func sent(t *testing.T, q *inmem.Queue, messages ...run.Outgoing) []error {
	t.Helper()
	errs := q.Send(t.Context(), messages)
	require.Len(t, errs, len(messages))
	return errs
}

func taken(q *inmem.Queue) (ids []string) {
	for {
		d, ok := q.Take()
		if !ok {
			return ids
		}
		ids = append(ids, d.ID)
	}
}

func TestAQueueGivesWhatIsDueByItsClock(t *testing.T) {
	q, now := clocked()
	sent(t, q, run.Outgoing{ID: "late", Delay: time.Hour}, run.Outgoing{ID: "a"},
		run.Outgoing{ID: "soon", Delay: time.Minute}, run.Outgoing{ID: "b"})
	require.Equal(t, []string{"a", "b"}, taken(q))
	due, ok := q.NextDue()
	require.True(t, ok)
	require.Equal(t, now.Add(time.Minute), due)
	*now = due
	require.Equal(t, []string{"soon"}, taken(q))
	*now = now.Add(time.Hour)
	require.Equal(t, []string{"late"}, taken(q))
	_, ok = q.NextDue()
	require.False(t, ok)
}

func TestAMessageThatIsPutBackComesAgain(t *testing.T) {
	q, now := clocked()
	sent(t, q, run.Outgoing{ID: "a", Body: []byte("x")})
	for count := 1; count <= 3; count++ {
		d, ok := q.Take()
		require.True(t, ok)
		require.Equal(t, run.Incoming{ID: "a", Body: []byte("x"), Count: count, EnqueuedAt: *now}, d)
		_, ok = q.Take()
		require.False(t, ok, "a message that is taken cannot be taken again")
		q.PutBack(d)
	}
	require.Equal(t, 1, q.Lose())
	require.Empty(t, q.Messages())
}

func TestDuplicatesAreDroppedWithinTheWindow(t *testing.T) {
	q, now := clocked()
	q.DetectDuplicates(time.Minute)
	sent(t, q, run.Outgoing{ID: "a"}, run.Outgoing{ID: "a"}, run.Outgoing{ID: "b"})
	require.Equal(t, []string{"a", "b"}, taken(q))
	*now = now.Add(59 * time.Second)
	sent(t, q, run.Outgoing{ID: "a"})
	require.Empty(t, taken(q), "that it was taken does not make it new")
	*now = now.Add(time.Second)
	sent(t, q, run.Outgoing{ID: "a"})
	require.Equal(t, []string{"a"}, taken(q))
}

func TestAQueueFailsAsPlanned(t *testing.T) {
	q, _ := clocked()
	down := inmem.QueueDown()
	q.Plan(inmem.QueueFault{Accepted: 1, Unconfirmed: 1, Err: down.Err}, inmem.QueueFault{}, inmem.QueueFull())
	messages := []run.Outgoing{{ID: "a"}, {ID: "b"}, {ID: "c"}}
	errs := sent(t, q, messages...)
	require.NoError(t, errs[0])
	require.Equal(t, []error{down.Err, down.Err}, errs[1:])
	require.Equal(t, []string{"a", "b"}, taken(q), "b is there and nobody knows")
	require.Equal(t, []error{nil, nil, nil}, sent(t, q, messages...))
	require.Equal(t, fault.Quota, fault.KindOf(sent(t, q, messages...)[0]))
	require.Equal(t, []error{nil, nil, nil}, sent(t, q, messages...), "the plan is over")
	q.Always(down)
	q.Plan(inmem.QueueFault{})
	require.NoError(t, sent(t, q, messages[0])[0])
	require.Equal(t, down.Err, sent(t, q, messages[0])[0])
	q.Mend()
	require.NoError(t, sent(t, q, messages[0])[0])
	require.Equal(t, 7, q.Sends())
}
