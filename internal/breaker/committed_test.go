package breaker_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sqlwriter/internal/breaker"
)

// Whatever the instances do, and however often the control document is away, no document is counted twice, and when all have said what
// waits, the count lacks only what instances that died had not said.
func TestTheCountOfCommittedDocumentsAddsUp(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		synctest.Test(t, func(t *testing.T) {
			st, sv := &store{}, &server{}
			all := make([]*breaker.Breaker, 5)
			for i := range all {
				all[i] = open(st, sv, fmt.Sprint(i))
			}
			committed, waits := int64(0), map[*breaker.Breaker]int64{} // waits bounds what a death loses
			for range rapid.IntRange(1, 60).Draw(rt, "steps") {
				time.Sleep(time.Duration(rapid.IntRange(0, 20).Draw(rt, "seconds")) * time.Second)
				i := rapid.IntRange(0, len(all)-1).Draw(rt, "instance")
				b := all[i]
				switch rapid.SampledFrom([]string{"batch", "batch", "minute", "beat", "dies", "away"}).Draw(rt, "step") {
				case "batch":
					n := rapid.IntRange(1, 100).Draw(rt, "documents")
					b.Applied(time.Now())
					b.Committed(n)
					b.Note(t.Context(), breaker.FeedLag{})
					committed += int64(n)
					waits[b] += int64(n)
				case "minute":
					before := st.count()
					b.NoteCommitted(t.Context())
					if st.count() > before {
						waits[b] = 0
					}
				case "beat":
					_ = b.Tick(t.Context())
				case "dies":
					before := st.count()
					all[i] = open(st, sv, fmt.Sprint(i))
					committed -= waits[b] // at most: some of them were noted
					delete(waits, b)
					require.Equal(rt, before, st.count())
				case "away":
					st.mu.Lock()
					st.away = !st.away
					st.mu.Unlock()
				}
			}
			st.away = false
			time.Sleep(time.Minute)
			for _, b := range all {
				b.NoteCommitted(t.Context())
			}
			require.GreaterOrEqual(rt, st.count(), committed)
			puts := st.puts
			for _, b := range all {
				b.NoteCommitted(t.Context())
			}
			require.Equal(rt, puts, st.puts, "nothing waits: nothing is written")
		})
	})
}

// Exactly, where nobody dies: many batches end at once, and the count goes with the writes that are made anyway.
func TestManyBatchesThatEndAtOnceAreCountedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, sv := &store{}, &server{}
		all := []*breaker.Breaker{open(st, sv, "a"), open(st, sv, "b"), open(st, sv, "c")}
		var batches sync.WaitGroup
		for _, b := range all {
			for range 20 {
				batches.Go(func() {
					for range 30 {
						time.Sleep(time.Second)
						b.Applied(time.Now())
						b.Committed(7)
						b.Note(t.Context(), breaker.FeedLag{})
					}
				})
			}
		}
		batches.Wait()
		const total = 3 * 20 * 30 * 7
		require.Greater(t, st.count(), int64(total/10), "it goes with the notes of success")
		require.Less(t, st.puts, 60, "and costs few writes")
		for _, b := range all {
			b.NoteCommitted(t.Context())
		}
		require.EqualValues(t, total, st.count())
	})
}

// While the control document is away the count waits, and is added once when it is back.
func TestACountWaitsForTheControlDocument(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, sv := &store{}, &server{}
		b := open(st, sv, "a")
		b.View(t.Context())
		st.away = true
		for range 5 {
			time.Sleep(time.Minute)
			b.Applied(time.Now())
			b.Committed(10)
			b.Note(t.Context(), breaker.FeedLag{})
			b.NoteCommitted(t.Context())
		}
		st.away = false
		time.Sleep(time.Minute)
		b.View(t.Context())
		ended, end := context.WithCancel(t.Context())
		end()
		b.NoteCommitted(ended)
		require.Zero(t, st.count(), "the caller's time is over")
		b.NoteCommitted(t.Context())
		require.EqualValues(t, 50, st.count())
		require.EqualValues(t, 50, b.View(t.Context()).Control.Committed)
	})
}

// count is Control.Committed.
func (s *store) count() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.control.Committed
}
