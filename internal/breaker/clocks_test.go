package breaker_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/fault"
)

// skewed is an instance whose clock is ahead.
func skewed(st *store, sv *server, name string, ahead time.Duration, most int) *breaker.Breaker {
	return breaker.New(st, breaker.Options{
		Instance: name, Build: "build 1", Heartbeat: sv.heartbeat, MaxPoisonPerHour: most,
		Now: func() time.Time { return time.Now().Add(ahead) },
	})
}

// It proves nothing, brings nothing early, and is replaced by the next write. A clock that comes back, ahead as before,
// changes nothing of that.
func TestAWriteInTheFutureProvesNothing(t *testing.T) {
	for _, ahead := range []time.Duration{5 * time.Second, 10 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			st, sv := &store{}, &server{}
			wrong, right := skewed(st, sv, "wrong", ahead, 100), open(st, sv, "right")
			for range 2 {
				began := time.Now()
				wrong.Applied(began.Add(ahead))
				wrong.Note(t.Context(), breaker.FeedLag{Seconds: 400, At: began.Add(ahead)})
				time.Sleep(6 * time.Second)
				require.False(t, right.Proven(t.Context(), began))
				require.False(t, right.EarlyBefore(t.Context()).After(began))
				if ahead > 5*time.Second {
					require.True(t, right.EarlyBefore(t.Context()).Before(began.Add(-50*time.Minute)))
					require.NotEqualValues(t, 400, right.View(t.Context()).Control.Feed.Seconds)
				}
				time.Sleep(5 * time.Second)
				right.Applied(time.Now())
				right.Note(t.Context(), breaker.FeedLag{Seconds: 1, At: time.Now()})
				require.Equal(t, time.Now(), st.control.AppliedBy("build 1"))
				if ahead > 5*time.Second {
					require.EqualValues(t, 1, st.control.Feed.Seconds)
				}
				require.True(t, right.Proven(t.Context(), time.Now().Add(-time.Minute)))
				time.Sleep(time.Hour)
			}
		})
	}
}

// A breaker that it opened, or a probe that it claimed and did not make, keeps nobody waiting for the difference.
func TestAProbeClaimedInTheFutureIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, sv := &store{}, &server{}
		st.put(breaker.State{
			Name: breaker.Open, Kind: fault.Infrastructure, Code: "refused", HeldBy: "wrong",
			Since:     time.Now().Add(10 * time.Minute),
			ChangedAt: time.Now().Add(10 * time.Minute), OpenUntil: time.Now().Add(11 * time.Minute),
		})
		right := open(st, sv, "right")
		require.NoError(t, right.Permit(t.Context()), "the probe is due, and the database answers")
		require.Equal(t, breaker.HalfOpen, st.control.Breaker.Name)
		require.WithinDuration(t, time.Now(), st.control.Breaker.ChangedAt, 0)
	})
}

// Two clocks that are apart around a full hour give up no more than the limit.
func TestTheHoursLimitHoldsAroundAFullHour(t *testing.T) {
	for _, ahead := range []time.Duration{time.Minute, 10 * time.Minute, -time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			const most = 10
			st, sv := &store{}, &server{}
			a, b := skewed(st, sv, "a", 0, most), skewed(st, sv, "b", ahead, most)
			time.Sleep(time.Until(time.Now().Truncate(time.Hour).Add(time.Hour - 30*time.Second)))
			given := 0
			for n := range 100 {
				for k, i := range []*breaker.Breaker{a, b} {
					if taken(t, i, fmt.Sprint(k, n), true) {
						given++
					}
				}
				time.Sleep(100 * time.Millisecond)
			}
			require.LessOrEqual(t, given, most+1, "%s", ahead)
		})
	}
}
