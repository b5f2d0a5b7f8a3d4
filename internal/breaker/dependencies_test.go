package breaker_test

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/fault"
)

// openSkewed is open with a clock that is wrong by skew.
func openSkewed(st *store, name string, skew time.Duration) *breaker.Breaker {
	return breaker.New(st,
		breaker.Options{Instance: name, Build: "v1", Now: func() time.Time { return time.Now().Add(skew) }})
}

// dependency is how a dependency answered, as an instance shows it.
func dependency(t *testing.T, b *breaker.Breaker, name string) breaker.Dependency {
	t.Helper()
	return b.View(t.Context()).Status.Dependencies[name]
}

func TestGoodAnswersCostNoRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &store{}
		a := openSkewed(st, "a", 0)
		for range 1000 {
			time.Sleep(time.Second)
			a.NoteDependency(t.Context(), "cosmos", nil)
			a.NoteDependency(t.Context(), "sql", fault.New(fault.Document, "test", "2628", "too long"))
		}
		require.Zero(t, st.told+st.puts+st.loads)
		a.Tell(t.Context())
		require.Equal(t, breaker.DependencyOK, dependency(t, openSkewed(st, "b", 0), "sql").State)
	})
}

// A failure is told at once, then once a minute, and is believed for two minutes. Nobody ends it: neither its own
// instance nor another.
func TestAFailureIsBelievedForTwoMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &store{}
		bad, good, began := openSkewed(st, "bad", 0), openSkewed(st, "good", 0), time.Now()
		for range 600 {
			bad.NoteDependency(t.Context(), "sql", infra())
			good.NoteDependency(t.Context(), "sql", nil)
			is := dependency(t, good, "sql")
			require.Equal(t, []any{breaker.DependencyFailing, "bad"}, []any{is.State, is.By})
			require.True(t, is.Since.Equal(began))
			time.Sleep(time.Second)
		}
		require.LessOrEqual(t, st.told, 11, "once a minute")
		time.Sleep(58 * time.Second)
		require.Equal(t, breaker.DependencyFailing, dependency(t, good, "sql").State)
		time.Sleep(time.Minute + 3*time.Second)
		good.NoteDependency(t.Context(), "sql", nil)
		require.Equal(t, breaker.DependencyOK, dependency(t, good, "sql").State)
		require.NotEqual(t, breaker.DependencyFailing, dependency(t, bad, "sql").State, "its own failure is old, too")
	})
}

// Another instance that fails carries the failure on, with the time of the first one. One that flaps costs a write
// every five seconds.
func TestAnotherInstanceCarriesOnTheFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, began := &store{}, time.Now()
		openSkewed(st, "dead", 0).NoteDependency(t.Context(), "blob", infra())
		other := openSkewed(st, "other", 0)
		time.Sleep(119 * time.Second)
		other.NoteDependency(t.Context(), "blob", infra())
		is := dependency(t, other, "blob")
		require.Equal(t, "other", is.By)
		require.True(t, is.Since.Equal(began))
		before := st.told
		for n := range 60 {
			other.NoteDependency(t.Context(), "blob", []error{nil, infra()}[n%2])
			time.Sleep(time.Second)
		}
		require.LessOrEqual(t, st.told-before, 13)
		require.Equal(t, breaker.DependencyFailing, dependency(t, openSkewed(st, "good", 0), "blob").State)
	})
}

// An answer of a clock that is ahead is not there.
func TestAnAnswerInTheFutureIsNotThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &store{}
		openSkewed(st, "ahead", 10*time.Minute).NoteDependency(t.Context(), "sql", infra())
		require.Empty(t, dependency(t, openSkewed(st, "right", 0), "sql"))
	})
}

func TestWithoutTheControlDocumentAnInstanceShowsWhatItSees(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &store{}
		a := openSkewed(st, "a", 0)
		require.NotContains(t, a.View(t.Context()).Status.Dependencies, "cosmos")
		st.away = true
		time.Sleep(time.Minute)
		a.NoteDependency(t.Context(), "blob", infra())
		begin := time.Now()
		for range 3 {
			v := a.View(t.Context())
			require.True(t, v.Lost)
			require.Equal(t, breaker.DependencyFailing, v.Status.Dependencies["blob"].State)
			require.Equal(t, breaker.Dependency{
				State: breaker.DependencyFailing, Kind: fault.Infrastructure, Code: "503", Reason: "away", Since: begin,
				SeenAt: time.Now(), By: "a",
			}, v.Status.Dependencies["cosmos"], "who cannot read the control document sees Cosmos DB fail")
			require.Equal(t, v, a.Seen(), "Health says the same")
			time.Sleep(6 * time.Second)
		}
		st.away = false
		require.NotContains(t, a.View(t.Context()).Status.Dependencies, "cosmos")
		a.Tell(t.Context())
		require.Equal(t, breaker.DependencyFailing, dependency(t, openSkewed(st, "b", 0), "blob").State,
			"it is told when that is possible")
	})
}

// Another writer's turn is an answer of SQL: its failure is over.
func TestAnotherWritersTurnIsAGoodAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := openSkewed(&store{}, "a", 0)
		a.NoteDependency(t.Context(), "sql", infra())
		a.NoteDependency(t.Context(), "sql", turn())
		require.Equal(t, breaker.DependencyOK, a.Seen().Status.Dependencies["sql"].State)
	})
}

func TestWhatIsNoAnswerIsNotNoted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, sv := &store{}, &server{}
		st.put(breaker.State{Name: breaker.Paused, HeldBy: "ops"})
		a := open(st, sv, "a")
		refusal := a.Do(t.Context(), 1, 0, sv.request)
		require.True(t, breaker.IsRefusal(refusal))
		a.NoteDependency(t.Context(), "sql", refusal)
		stopped, stop := context.WithCancel(t.Context())
		stop()
		a.NoteDependency(stopped, "sql",
			fault.Wrap(fault.Infrastructure, "test", "cancelled", "stopped", stopped.Err()))
		require.Empty(t, a.Seen().Status.Dependencies)
		late, end := context.WithTimeout(t.Context(), time.Second)
		defer end()
		<-late.Done()
		a.NoteDependency(late, "sql", fault.Wrap(fault.Infrastructure, "test", "timeout", "no answer", late.Err()))
		require.Equal(t, "timeout", st.statuses["a"].Dependencies["sql"].Code,
			"no answer in time is one, and the status has time of its own")
	})
}

func TestSkippedDocumentsAreCountedByName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &store{}
		a := openSkewed(st, "a", 0)
		time.Sleep(time.Hour)
		skip := func(name string, n int, sample string) {
			a.NoteSkipped(t.Context(), []breaker.Skipped{{SysName: name, Documents: n, Sample: sample}})
		}
		first := time.Now()
		skip("wbe", 2, "one")
		require.Equal(t, []breaker.Skipped{{SysName: "wbe", Documents: 2, Since: first, LastAt: first, Sample: "one"}},
			st.control.Skipped, "the first one at once")
		for range 50 {
			time.Sleep(time.Second)
			skip("wbe", 1, "two")
		}
		require.Equal(t, 1, st.puts, "known ones once a minute")
		time.Sleep(11 * time.Second)
		a.NoteSkipped(t.Context(), nil)
		require.Equal(t,
			[]breaker.Skipped{
				{SysName: "wbe", Documents: 52, Since: first, LastAt: first.Add(50 * time.Second), Sample: "two"},
			}, st.control.Skipped)
		time.Sleep(6 * time.Second)
		skip("new", 1, "two")
		require.Equal(t, "new", st.control.Skipped[0].SysName, "a new one at once")
		for i := range 20 {
			time.Sleep(6 * time.Second)
			skip("name"+strconv.Itoa(i), 1, "three")
		}
		require.Len(t, st.control.Skipped, 8)
		require.Equal(t, []string{"name19", "name12"},
			[]string{st.control.Skipped[0].SysName, st.control.Skipped[7].SysName}, "the newest first")
		before := st.puts
		for i := range 100 {
			skip("hostile"+strconv.Itoa(i), 1, "four")
		}
		require.Equal(t, before, st.puts, "new names every five seconds")
		time.Sleep(8 * 24 * time.Hour)
		skip("", 1, "five")
		require.Equal(t, "", st.control.Skipped[0].SysName)
		skip("later", 1, "six")
		time.Sleep(8 * 24 * time.Hour)
		skip("last", 1, "seven")
		require.Len(t, st.control.Skipped, 1, "a week without documents")
	})
}
