package breaker_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
)

// committed adds up what the instances told.
func (s *store) committed() (n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, is := range s.statuses {
		n += is.Committed
	}
	return n
}

// Many batches end at once and the store is away at times: each document is counted once when all have told.
func TestTheCountsOfCommittedDocumentsAddUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, sv := &store{}, &server{}
		all := []*breaker.Breaker{open(st, sv, "a"), open(st, sv, "b"), open(st, sv, "c")}
		var batches sync.WaitGroup
		for _, b := range all {
			for range 20 {
				batches.Go(func() {
					for n := range 30 {
						time.Sleep(time.Second)
						b.Committed(7)
						if n%10 == 0 {
							b.Tell(t.Context())
						}
					}
				})
			}
		}
		batches.Wait()
		st.away = true
		all[0].Committed(1)
		all[0].Tell(t.Context())
		st.away = false
		for _, b := range all {
			b.Tell(t.Context())
		}
		require.EqualValues(t, 3*20*30*7+1, st.committed())
		require.Zero(t, st.puts, "and the control document is not written for it")
		require.Len(t, all[1].View(t.Context()).Instances, 3)
		time.Sleep(25 * time.Hour)
		require.Empty(t, all[1].View(t.Context()).Instances, "none of them has told for a day")
	})
}

// The failures of all instances are one mass failure. The one that has enough of its own tells it at once.
func TestAMassFailureOfAllInstancesIsSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, sv := &store{}, &server{}
		a, b := open(st, sv, "a"), open(st, sv, "b")
		began := time.Now()
		for range 12 {
			a.BeganToFail(t.Context(), "547")
		}
		a.Tell(t.Context())
		time.Sleep(10 * time.Second)
		for range 7 {
			b.BeganToFail(t.Context(), "547")
		}
		require.Empty(t, b.View(t.Context()).Status.MassFailures(time.Now()))
		b.BeganToFail(t.Context(), "547")
		want := breaker.Failing{Code: "547", Documents: 20, Since: began, LastAt: time.Now()}
		require.Equal(t, []breaker.Failing{want}, b.View(t.Context()).Status.MassFailures(time.Now()))
		require.Empty(t, a.View(t.Context()).Status.MassFailures(time.Now()), "not told yet")
		told := st.told
		for range 12 {
			b.BeganToFail(t.Context(), "547")
		}
		require.Equal(t, told+1, st.told, "its own twentieth is told at once")
		time.Sleep(6 * time.Second)
		require.Equal(t, 32, a.View(t.Context()).Status.MassFailures(time.Now())[0].Documents)
		time.Sleep(time.Hour + time.Second)
		require.Empty(t, a.View(t.Context()).Status.MassFailures(time.Now()))
		require.Empty(t, breaker.Status{Failing: []breaker.Failing{want}}.MassFailures(time.Now()),
			"also of one instance alone")
	})
}

// Few failures in an hour are no mass failure, however long they go on, and a status has the codes that failed last.
func TestFewFailuresAnHourAreNoMassFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(&store{}, &server{}, "a")
		for range 100 {
			b.BeganToFail(t.Context(), "547")
			time.Sleep(5 * time.Minute)
		}
		require.Empty(t, b.Seen().Status.MassFailures(time.Now()))
		for n := range 20 {
			b.BeganToFail(t.Context(), fmt.Sprint(n))
			time.Sleep(time.Second)
		}
		require.Len(t, b.Seen().Status.Failing, 8)
		require.Equal(t, "19", b.Seen().Status.Failing[0].Code)
	})
}

// All instances see a stop that has ended once, as the one that was there saw it.
func TestAStopThatSeveralSawIsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &store{}
		at := func(minute int) time.Time { return time.Date(2000, 1, 1, 0, minute, 0, 0, time.UTC) }
		for name, to := range map[string]time.Time{"a": at(5), "b": at(5), "late": at(9)} {
			require.NoError(t,
				st.StoreStatus(t.Context(),
					breaker.Status{
						Instance: name, At: time.Now(),
						Stops: []breaker.Stop{{From: at(1), To: to}, {From: at(20), To: at(21)}},
					}))
		}
		require.Equal(t, []breaker.Stop{{From: at(1), To: at(5)}, {From: at(20), To: at(21)}},
			open(st, &server{}, "c").View(t.Context()).Status.Stops)
	})
}
