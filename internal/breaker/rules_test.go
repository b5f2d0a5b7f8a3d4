package breaker_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/fault"
)

// put changes the control document, as another instance would.
func (s *store) put(state breaker.State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	s.control.Breaker = state
}

func halfOpen() breaker.State {
	return breaker.State{
		Name: breaker.HalfOpen, Limit: 1, Kind: fault.Infrastructure, OpenUntil: time.Now(),
		Since: time.Now(), ChangedAt: time.Now(),
	}
}

// After an outage one instance sends the first document. The others wait for its answer, or for a minute if it dies.
func TestTheFirstRequestForDocumentsIsClaimed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, sv := &store{}, &server{}
		st.put(halfOpen())
		a, b, c := open(st, sv, "a"), open(st, sv, "b"), open(st, sv, "c")
		dies := func(context.Context, breaker.Heartbeat) error { panic("the process is gone") }
		require.Panics(t, func() { _ = a.Do(t.Context(), 1, 0, dies) })
		time.Sleep(59 * time.Second)
		require.True(t, breaker.IsRefusal(b.Do(t.Context(), 1, 0, sv.request)), "it may still answer")
		time.Sleep(2 * time.Second)
		err := b.Do(t.Context(), 1, 0, func(context.Context, breaker.Heartbeat) error {
			time.Sleep(5 * time.Second)
			require.True(t, breaker.IsRefusal(c.Do(t.Context(), 1, 0, sv.request)), "one at a time")
			return nil
		})
		require.NoError(t, err)
		require.Zero(t, sv.tries)
		time.Sleep(6 * time.Second)
		require.True(t, breaker.IsRefusal(c.Do(t.Context(), 6, 0, sv.request)), "no more than the ramp allows")
		require.NoError(t, c.Do(t.Context(), 5, 0, sv.request))
	})
}

// Two instances that saw the same half-open breaker do not both send the first document.
func TestTheFirstRequestOfTwoInstancesIsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, sv := &store{}, &server{}
		st.put(halfOpen())
		a, b := open(st, sv, "a"), open(st, sv, "b")
		a.View(t.Context())
		b.View(t.Context())
		require.NoError(t, a.Do(t.Context(), 1, 0, func(context.Context, breaker.Heartbeat) error {
			require.True(t, breaker.IsRefusal(b.Do(t.Context(), 1, 0, sv.request)))
			return nil
		}))
		require.Zero(t, sv.tries)
	})
}

// Two documents that repeatedly fail like an outage count as two documents.
func TestTwoDocumentsAreNoOutageHoweverOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv := &server{}
		b := open(nil, sv, "a")
		sv.set(infra(), nil)
		for range 50 {
			for _, document := range []string{"one", "two"} {
				time.Sleep(10 * time.Second)
				require.True(t,
					b.FailedAlone(t.Context(), document, b.Do(t.Context(), 1, 0, sv.request)), "it is put off")
			}
		}
		require.Empty(t, b.Unaudited(t.Context()), "it never opened")
	})
}

// A document that fails alone reopens a half-open breaker three times at most.
func TestADocumentOpensAHalfOpenBreakerAgainAtMostThreeTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, sv := &store{}, &server{}
		b := open(st, sv, "a")
		failsAlone := func(document string) (putOff bool) {
			st.put(halfOpen())
			time.Sleep(6 * time.Second)
			require.Equal(t, breaker.HalfOpen, b.View(t.Context()).Control.Breaker.Name)
			return b.FailedAlone(t.Context(), document, infra())
		}
		require.True(t, failsAlone("one"), "one document is no outage")
		for range 3 {
			require.False(t, failsAlone("two"), "the failure is the database's")
			require.Equal(t, breaker.Open, st.control.Breaker.Name)
		}
		require.True(t, failsAlone("two"))

		b.Applied(time.Now())
		require.True(t, failsAlone("three"), "it is the first since something was applied")
	})
}

// Every answer of SQL except an outage is a success, also a refusal and contention.
func TestARefusalAndALostRaceSayThatTheDatabaseWorks(t *testing.T) {
	for _, kind := range []fault.Kind{fault.Document, fault.Internal, fault.Contention} {
		synctest.Test(t, func(t *testing.T) {
			st, sv := &store{}, &server{}
			b := open(st, sv, "a")
			for row := range 3 { // at most four count, because the first document of all does not; then an answer
				sv.set(infra(), nil)
				for n := range 4 {
					time.Sleep(10 * time.Second)
					document := string(rune('a' + 4*row + n))
					require.True(t, b.FailedAlone(t.Context(), document, b.Do(t.Context(), 1, 0, sv.request)))
				}
				sv.set(fault.New(kind, "test", "547", "refused"), nil)
				require.Equal(t, kind, fault.KindOf(b.Do(t.Context(), 1, 0, sv.request)))
				require.Empty(t, b.Unaudited(t.Context()), "it opened in row %d", row)
			}

			st.put(halfOpen())
			time.Sleep(6 * time.Second)
			for _, limit := range []int{5, 25, breaker.FullLimit} {
				require.Error(t, b.Do(t.Context(), 1, 0, sv.request))
				require.Equal(t, limit, st.control.Breaker.MaxDocuments(), "it ramps up")
			}
			require.Equal(t, breaker.Closed, st.control.Breaker.Name)
		})
	}
}

// A request that waited in vain for another writer's turn wrote nothing: the ramp stays, and the first request is
// anybody's again. The database answered, so earlier failures count no more.
func TestAnotherWritersTurnIsNoStepOfTheRamp(t *testing.T) {
	for _, kind := range []fault.Kind{fault.Infrastructure, fault.Throttled, fault.Quota} {
		for _, limit := range []int{1, 5, 25} {
			synctest.Test(t, func(t *testing.T) {
				st, sv := &store{}, &server{}
				was := halfOpen()
				was.Kind, was.Limit = kind, limit
				st.put(was)
				instances := []*breaker.Breaker{open(st, sv, "a"), open(st, sv, "b"), open(st, sv, "c")}
				sv.set(turn(), nil)
				for range 3 {
					for _, is := range instances {
						time.Sleep(6 * time.Second)
						require.Equal(t, "one_writer", fault.CodeOf(is.Do(t.Context(), 1, 0, sv.request)))
						require.Equal(t, []any{breaker.HalfOpen, limit},
							[]any{st.control.Breaker.Name, st.control.Breaker.Limit})
					}
				}
				sv.set(nil, nil)
				require.NoError(t, instances[0].Do(t.Context(), 1, 0, sv.request))
				require.NotEqual(t, limit, st.control.Breaker.Limit, "an answer is one")
			})
		}
	}
	synctest.Test(t, func(t *testing.T) {
		sv := &server{}
		b := open(nil, sv, "a")
		for range 4 {
			for n := range 4 {
				time.Sleep(10 * time.Second)
				sv.set(infra(), nil)
				b.FailedAlone(t.Context(), strconv.Itoa(n), b.Do(t.Context(), 1, 0, sv.request))
			}
			sv.set(turn(), nil)
			require.Equal(t, "one_writer", fault.CodeOf(b.Do(t.Context(), 1, 0, sv.request)))
		}
		require.Empty(t, b.Unaudited(t.Context()))
	})
}

// While documents fail alone, two heartbeats do not close a half-open breaker.
func TestAHeartbeatAloneClosesNothingWhileDocumentsFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, sv := &store{}, &server{}
		st.put(halfOpen())
		b := open(st, sv, "a")
		require.NoError(t, b.Tick(t.Context()))
		time.Sleep(110 * time.Second)
		require.True(t, b.FailedAlone(t.Context(), "one", infra()))
		time.Sleep(20 * time.Second)
		require.NoError(t, b.Tick(t.Context()))
		require.Equal(t, breaker.HalfOpen, st.control.Breaker.Name)
		time.Sleep(2 * time.Minute)
		require.NoError(t, b.Tick(t.Context()))
		require.Equal(t, breaker.Closed, st.control.Breaker.Name)
	})
}

// Documents that fail alone once an hour are not an outage, however many there are.
func TestFailuresHoursApartAreNoRow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(nil, &server{}, "a")
		for n := range 12 {
			require.True(t, b.FailedAlone(t.Context(), string(rune('a'+n)), infra()))
			time.Sleep(time.Hour)
		}
		require.Empty(t, b.Unaudited(t.Context()), "it never opened")
	})
}

// After throttling requests wait for each other. A waiting request is refused if the one before it was throttled again.
func TestARequestThatWaitedForItsTurnLooksAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, sv := &store{}, &server{}
		st.put(breaker.State{SerialUntil: time.Now().Add(time.Minute)})
		b := open(st, sv, "a")
		ended := make(chan error)
		go func() {
			ended <- b.Do(t.Context(), 100, 0, func(context.Context, breaker.Heartbeat) error {
				time.Sleep(time.Second)
				return fault.New(fault.Throttled, "test", "10928", "too many")
			})
		}()
		synctest.Wait()
		require.True(t, breaker.IsRefusal(b.Do(t.Context(), 100, 0, sv.request)))
		require.Zero(t, sv.tries)
		require.Equal(t, fault.Throttled, fault.KindOf(<-ended))
	})
}

// Every reason that keeps the heartbeat from committing is an outage, also a lock.
func TestAHeartbeatThatIsLockedOutIsAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, sv := &store{}, &server{}
		b := open(st, sv, "a")
		sv.set(nil, fault.New(fault.Contention, "test", "1222", "another transaction locks the row"))
		err := b.Tick(t.Context())
		require.Equal(t, []any{fault.Infrastructure, "1222"}, []any{fault.KindOf(err), fault.CodeOf(err)})
		require.Equal(t, []any{breaker.Open, fault.Infrastructure},
			[]any{st.control.Breaker.Name, st.control.Breaker.Kind})
	})
}

// All instances see a change of one instance within five seconds.
func TestEveryInstanceKnowsWithinFiveSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, sv := &store{}, &server{}
		a, b := open(st, sv, "a"), open(st, sv, "b")
		require.NoError(t, b.Permit(t.Context()))
		require.NoError(t, a.Pause(t.Context(), "eva", "maintenance"))
		time.Sleep(5 * time.Second)
		require.True(t, breaker.IsRefusal(b.Permit(t.Context())))
	})
}

// An instance that may only read the control document uses its own copy, except for an operator's command.
func TestAnInstanceThatCannotWriteTheControlDocumentGoesByItsOwnCopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, sv := &store{}, &server{}
		st.put(breaker.State{})
		st.readOnly = true
		b := open(st, sv, "a")
		sv.set(infra(), infra())
		require.Error(t, b.Do(t.Context(), 1, 0, sv.request))
		time.Sleep(6 * time.Second)
		require.True(t, breaker.IsRefusal(b.Permit(t.Context())))
		require.True(t, b.Seen().Lost)
		require.Empty(t, st.control.Breaker.Name)

		st.put(breaker.State{Name: breaker.Paused, HeldBy: "eva"})
		time.Sleep(6 * time.Second)
		require.Equal(t, breaker.CodePaused, fault.CodeOf(b.Permit(t.Context())))
		st.put(breaker.State{})
		time.Sleep(6 * time.Second)
		require.NoError(t, b.Permit(t.Context()), "the operator resumed")

		st.readOnly = false
		time.Sleep(6 * time.Second)
		require.NoError(t, b.Permit(t.Context()))
		require.False(t, b.Seen().Lost)
	})
}

// taken is whether a poison message is counted.
func taken(t *testing.T, b *breaker.Breaker, folder string, proven bool) bool {
	t.Helper()
	counted, err := b.TakePoison(t.Context(), folder, proven)
	require.NoError(t, err)
	return counted
}

// The limit of poison messages per hour is common to all instances. A repeated message counts once.
func TestTheHoursPoisonMessagesAreTheWholeApps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &store{}
		instance := func(name string) *breaker.Breaker {
			return breaker.New(st, breaker.Options{Instance: name, MaxPoisonPerHour: 3})
		}
		a, b := instance("a"), instance("b")
		for _, folder := range []string{"one", "two", "one"} {
			require.True(t, taken(t, a, folder, true))
		}
		require.True(t, b.MayPoison(t.Context()))
		require.True(t, taken(t, b, "three", true))
		require.False(t, b.MayPoison(t.Context()))
		require.False(t, taken(t, b, "four", true))
		require.True(t, taken(t, a, "one", true), "it is counted already")
		time.Sleep(time.Hour)
		require.True(t, b.MayPoison(t.Context()))
		require.True(t, taken(t, b, "four", true))
		require.Equal(t, 1, st.control.Poison.Count)
	})
}

// Parts of one batch count at once. What one of them wrote meanwhile is not undone.
func TestPoisonMessagesOfOneInstanceAreCountedAtOnce(t *testing.T) {
	st, noon := &store{}, time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	b := breaker.New(st, breaker.Options{
		Instance: "a", MaxPoisonPerHour: 10_000, Now: func() time.Time { return noon },
	})
	var counted atomic.Int64
	var all sync.WaitGroup
	for part := range 8 {
		all.Go(func() {
			for i := range 250 {
				if taken, err := b.TakePoison(t.Context(), fmt.Sprint(part, " ", i), true); err == nil && taken {
					counted.Add(1)
				}
			}
		})
	}
	all.Wait()
	require.Positive(t, counted.Load())
	require.EqualValues(t, counted.Load(), st.control.Poison.Count)
}

// Without proof a build gives up three documents, counted by all instances, until it writes content. Five other builds
// do not renew that.
func TestAFewDocumentsOfABuildMayEndWithoutProof(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, sv := &store{}, &server{}
		instance := func(build string) *breaker.Breaker {
			return breaker.New(st, breaker.Options{Build: build, Heartbeat: sv.heartbeat})
		}
		a, b := instance("build 1"), instance("build 1")
		for _, folder := range []string{"one", "two", "one"} {
			require.True(t, a.MayEndUnproven(t.Context()))
			require.True(t, taken(t, a, folder, false))
		}
		require.True(t, taken(t, b, "three", false))
		time.Sleep(6 * time.Second)
		require.False(t, a.MayEndUnproven(t.Context()))
		require.False(t, taken(t, a, "four", false))
		require.True(t, taken(t, a, "proven", true), "proof has no such limit")

		require.True(t, taken(t, instance("build 2"), "five", false),
			"what a build cannot write says nothing of another")
		for _, other := range []string{"build 3", "build 4", "build 5"} {
			o := instance(other)
			o.Applied(time.Now())
			o.Note(t.Context(), breaker.FeedLag{})
			time.Sleep(6 * time.Second)
		}
		require.False(t, a.MayEndUnproven(t.Context()))
		require.False(t, taken(t, a, "four", false))

		a.Applied(time.Now())
		a.Note(t.Context(), breaker.FeedLag{})
		require.True(t, taken(t, b, "four", false), "it writes again")

		st.away = true
		time.Sleep(6 * time.Second)
		require.False(t, a.MayEndUnproven(t.Context()), "nobody can count it")
		_, err := a.TakePoison(t.Context(), "five", true)
		require.True(t, fault.IsDependency(err))
	})
}

// A document whose retries are spent comes early when its next failure would be proven, and not while none may be given
// up.
func TestWhatIsPostponedComesEarlyWhenItCouldEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, sv := &store{}, &server{}
		b := breaker.New(st, breaker.Options{Build: "build 1", Heartbeat: sv.heartbeat, MaxPoisonPerHour: 1})
		require.Zero(t, b.EarlyBefore(t.Context()), "nothing was written")
		applied := time.Now()
		b.Applied(applied)
		early := b.EarlyBefore(t.Context())
		require.Equal(t, applied.Add(-time.Minute), early)
		require.True(t, b.Proven(t.Context(), early))
		require.False(t, b.Proven(t.Context(), early.Add(time.Second)))
		require.True(t, taken(t, b, "one", true))
		require.Zero(t, b.EarlyBefore(t.Context()))
		time.Sleep(time.Hour)
		require.Equal(t, applied.Add(-time.Minute), b.EarlyBefore(t.Context()))
	})
}

// The lag of a slow range stays noted beside quick ones, until it has said nothing for five minutes.
func TestTheLagOfTheSlowestRangeIsNoted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, sv := &store{}, &server{}
		b := open(st, sv, "a")
		for _, c := range []struct {
			after         time.Duration
			seconds, want int64
		}{
			{0, 10, 10},
			{time.Minute, 700, 700},
			{time.Minute, 0, 700},
			{3 * time.Minute, 1, 700},
			{time.Minute, 2, 2},
			{time.Minute, 3, 3},
		} {
			time.Sleep(c.after)
			b.Note(t.Context(), breaker.FeedLag{Seconds: c.seconds, At: time.Now()})
			require.Equal(t, c.want, st.control.Feed.Seconds)
		}
	})
}
