package inmem_test

import (
	"testing"
	"time"

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
