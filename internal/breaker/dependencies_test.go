package breaker_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/fault"
)

// openSkewed is open with a clock that is wrong by skew.
func openSkewed(st *store, name string, skew time.Duration) *breaker.Breaker {
	return breaker.New(st, breaker.Options{Instance: name, Build: "v1", Now: func() time.Time { return time.Now().Add(skew) }})
}

// noted is a dependency in the control document.
func (s *store) noted(name string) breaker.Dependency {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.control.Dependencies[name]
}

func (s *store) requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.loads + s.puts
}

// noting is open for an app: the instance notes each answer of SQL.
func noting(st *store, sv *server, name string) (b *breaker.Breaker, request func(ctx context.Context, known breaker.Heartbeat) error) {
	b = breaker.New(st, breaker.Options{
		Instance: name, Build: "v1", Draw: func() float64 { return 0 },
		Heartbeat: func(ctx context.Context, known breaker.Heartbeat) (breaker.Heartbeat, error) {
			row, err := sv.heartbeat(ctx, known)
			b.NoteDependency(ctx, "sql", err)
			return row, err
		},
	})
	return b, func(ctx context.Context, known breaker.Heartbeat) error {
		err := sv.request(ctx, known)
		b.NoteDependency(ctx, "sql", err)
		return err
	}
}

// The breaker opens 40 s after the first failure, and operators look before that.
func TestAllInstancesKnowTheFirstFailureBeforeTheBreakerOpens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, sv := &store{}, &server{}
		a, request := noting(st, sv, "a")
		b, _ := noting(st, sv, "b")
		c, onC := noting(st, sv, "c")
		require.NoError(t, a.Do(t.Context(), 100, 0, request))
		require.NoError(t, c.Do(t.Context(), 100, 0, onC))
		time.Sleep(time.Hour)
		down := time.Now()
		sv.set(infra(), infra())
		go func() { _ = a.Do(t.Context(), 100, 0, request) }()
		time.Sleep(6 * time.Second)
		for name, is := range map[string]*breaker.Breaker{"a": a, "b": b, "c": c} {
			v := is.View(t.Context()).Control
			sql := v.Dependencies["sql"]
			require.Equal(t, breaker.Running, v.Breaker.Flow(), name)
			require.Equal(t, []any{breaker.DependencyFailing, fault.Infrastructure, "refused", "away", "a"}, []any{sql.State, sql.Kind, sql.Code, sql.Reason, sql.By}, name)
			require.True(t, sql.Since.Equal(down), name)
		}
		time.Sleep(time.Minute)
		require.Equal(t, breaker.StoppedFlow, c.View(t.Context()).Control.Breaker.Flow())
		sv.set(nil, nil)
		for range 20 {
			time.Sleep(10 * time.Second)
			_ = a.Permit(t.Context())
			_ = a.Do(t.Context(), 1, 0, request)
			_ = c.Do(t.Context(), 1, 0, onC)
		}
		sql := b.View(t.Context()).Control.Dependencies["sql"]
		require.Equal(t, breaker.DependencyOK, sql.State)
		require.Empty(t, sql.Code)
	})
}

func TestGoodAnswersCostNoRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &store{}
		a := openSkewed(st, "a", 0)
		a.View(t.Context())
		before := st.requests()
		for range 1000 {
			time.Sleep(time.Second)
			a.NoteDependency(t.Context(), "cosmos", nil)
			a.NoteDependency(t.Context(), "sql", fault.New(fault.Document, "test", "2628", "too long"))
		}
		require.Equal(t, before, st.requests())
		a.BeganToFail(t.Context(), "2628")
		a.Note(t.Context(), breaker.FeedLag{})
		require.Equal(t, breaker.DependencyOK, st.noted("sql").State, "it goes with a write that is made anyway")
		require.WithinDuration(t, time.Now(), st.noted("sql").SeenAt, 0)
		openSkewed(st, "b", 0).NoteDependency(t.Context(), "cosmos", infra())
		seen := st.noted("sql").SeenAt
		time.Sleep(time.Minute)
		c := openSkewed(st, "c", -5*time.Minute)
		c.NoteDependency(t.Context(), "sql", nil)
		c.BeganToFail(t.Context(), "2628")
		c.Note(t.Context(), breaker.FeedLag{})
		require.Equal(t, seen, st.noted("sql").SeenAt, "an older answer does not count")
	})
}

// One that fails beside nineteen that succeed must not flap, whatever their clocks say.
func TestOthersDoNotEndAFailureThatGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &store{}
		bad := openSkewed(st, "bad", -5*time.Minute)
		good := openSkewed(st, "good", 0)
		for range 600 {
			bad.NoteDependency(t.Context(), "sql", infra())
			require.Equal(t, breaker.DependencyFailing, st.noted("sql").State)
			good.View(t.Context())
			good.NoteDependency(t.Context(), "sql", nil)
			time.Sleep(time.Second)
		}
		require.Equal(t, breaker.DependencyFailing, st.noted("sql").State)
		require.LessOrEqual(t, st.puts, 11, "once a minute")
		bad.NoteDependency(t.Context(), "sql", nil)
		require.Equal(t, breaker.DependencyOK, st.noted("sql").State, "its own success ends it at once")
	})
}

func TestAFailureOfAnInstanceThatIsGoneEndsAfterTwoMinutes(t *testing.T) {
	for _, skew := range []time.Duration{-5 * time.Minute, 0, 5 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			st := &store{}
			good := openSkewed(st, "good", skew)
			good.View(t.Context())
			openSkewed(st, "dead", 0).NoteDependency(t.Context(), "sql", infra())
			time.Sleep(6 * time.Second)
			good.View(t.Context())
			good.NoteDependency(t.Context(), "sql", nil)
			time.Sleep(119 * time.Second)
			good.NoteDependency(t.Context(), "sql", nil)
			require.Equal(t, breaker.DependencyFailing, st.noted("sql").State, "%s", skew)
			time.Sleep(2 * time.Second)
			good.NoteDependency(t.Context(), "sql", nil)
			require.Equal(t, breaker.DependencyOK, st.noted("sql").State, "%s", skew)
			require.Equal(t, "good", st.noted("sql").By)
		})
	}
}

// A second instance that fails takes the note over when the first is gone, with the time of the first failure.
func TestAnotherInstanceCarriesOnTheFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, began := &store{}, time.Now()
		openSkewed(st, "dead", 0).NoteDependency(t.Context(), "blob", infra())
		other, good := openSkewed(st, "other", 0), openSkewed(st, "good", 0)
		good.View(t.Context())
		time.Sleep(5 * time.Second)
		for range 130 {
			other.NoteDependency(t.Context(), "blob", infra())
			time.Sleep(time.Second)
		}
		require.Equal(t, 2, st.puts)
		require.Equal(t, "other", st.noted("blob").By)
		require.True(t, st.noted("blob").Since.Equal(began))
		good.NoteDependency(t.Context(), "blob", nil)
		require.Equal(t, breaker.DependencyFailing, st.noted("blob").State)
	})
}

// A failure is noted when it happens: what others ended since stays ended.
func TestAnOldFailureIsNotNotedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &store{}
		a, b := openSkewed(st, "a", 0), openSkewed(st, "b", 0)
		a.NoteDependency(t.Context(), "blob", infra())
		b.View(t.Context())
		time.Sleep(10 * time.Minute)
		b.NoteDependency(t.Context(), "blob", nil)
		require.Equal(t, breaker.DependencyOK, st.noted("blob").State)
		a.NoteDependency(t.Context(), "sql", infra())
		require.Equal(t, breaker.DependencyFailing, st.noted("sql").State)
		require.Equal(t, breaker.DependencyOK, st.noted("blob").State)
		require.Equal(t, breaker.DependencyOK, a.Seen().Control.Dependencies["blob"].State)
	})
}

// A hiccup ends at once. One that comes back within a minute stays for a minute: that bounds the writes.
func TestAFailureThatComesBackStaysForAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &store{}
		a := openSkewed(st, "a", 0)
		note := func(err error) string {
			a.NoteDependency(t.Context(), "blob", err)
			time.Sleep(time.Second)
			return st.noted("blob").State
		}
		require.Equal(t, breaker.DependencyFailing, note(infra()))
		require.Equal(t, breaker.DependencyOK, note(nil))
		require.Equal(t, breaker.DependencyFailing, note(infra()))
		require.Equal(t, breaker.DependencyFailing, note(nil))
		time.Sleep(59 * time.Second)
		a.NoteDependency(t.Context(), "cosmos", nil) // the evidence store is asked again in a week
		require.Equal(t, breaker.DependencyOK, st.noted("blob").State)
	})
}

// The first good answer is no end of a failure: what fails soon after the start ends with the next answer.
func TestAFailureSoonAfterTheStartEndsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &store{}
		a := openSkewed(st, "a", 0)
		a.View(t.Context())
		a.NoteDependency(t.Context(), "sql", nil)
		a.BeganToFail(t.Context(), "2628")
		a.Note(t.Context(), breaker.FeedLag{})
		require.Equal(t, breaker.DependencyOK, st.noted("sql").State)
		time.Sleep(10 * time.Second)
		a.NoteDependency(t.Context(), "sql", infra())
		require.Equal(t, breaker.DependencyFailing, st.noted("sql").State)
		time.Sleep(10 * time.Second)
		a.NoteDependency(t.Context(), "sql", nil)
		require.Equal(t, breaker.DependencyOK, st.noted("sql").State)
	})
}

func TestWithoutTheControlDocumentAnInstanceShowsWhatItSees(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &store{}
		a := openSkewed(st, "a", 0)
		openSkewed(st, "gone", 0).NoteDependency(t.Context(), "blob", infra())
		a.View(t.Context())
		before := st.control.Dependencies
		st.away = true
		time.Sleep(time.Minute)
		a.NoteDependency(t.Context(), "blob", infra())
		v := a.View(t.Context())
		require.True(t, v.Lost)
		require.Equal(t, breaker.DependencyFailing, v.Control.Dependencies["blob"].State)
		a.NoteDependency(t.Context(), "blob", nil)
		require.Equal(t, breaker.DependencyOK, a.Seen().Control.Dependencies["blob"].State, "nobody else's view counts")
		require.Equal(t, before, st.control.Dependencies)

		a.NoteDependency(t.Context(), "sql", infra())
		st.away = false
		time.Sleep(10 * time.Second)
		require.Equal(t, breaker.DependencyFailing, a.View(t.Context()).Control.Dependencies["sql"].State)
		require.Empty(t, st.noted("sql").State)
		a.NoteDependency(t.Context(), "sql", infra())
		require.Equal(t, breaker.DependencyFailing, st.noted("sql").State, "the next answer is written")
	})
}

// Who cannot read the control document sees Cosmos DB fail, whoever asks it for anything else.
func TestAnUnreadableControlDocumentIsAFailureOfCosmos(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &store{}
		a := openSkewed(st, "a", 0)
		require.NotContains(t, a.View(t.Context()).Control.Dependencies, "cosmos")
		st.away = true
		time.Sleep(time.Minute)
		begin := time.Now()
		for range 3 {
			v := a.View(t.Context())
			require.True(t, v.Lost)
			require.Equal(t, breaker.Dependency{
				State: breaker.DependencyFailing, Kind: fault.Infrastructure, Code: "503", Reason: "away", Since: begin, SeenAt: time.Now(), By: "a",
			}, v.Control.Dependencies["cosmos"])
			require.Equal(t, v, a.Seen(), "Health says the same")
			time.Sleep(6 * time.Second)
		}
		st.away = false
		require.NotContains(t, a.View(t.Context()).Control.Dependencies, "cosmos")
	})
}

// This instance fails, and nobody could be told: it counts for two minutes beside what the others noted.
func TestAnInstancesOwnFreshFailureCountsBesideTheSharedView(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &store{}
		openSkewed(st, "b", 0).NoteDependency(t.Context(), "sql", infra())
		a := openSkewed(st, "a", 0)
		a.View(t.Context())
		since := st.noted("sql").Since
		time.Sleep(time.Minute)
		a.NoteDependency(t.Context(), "sql", fault.New(fault.Quota, "test", "9002", "full"))
		is := a.Seen().Control.Dependencies["sql"]
		require.Equal(t, []any{"9002", "a"}, []any{is.Code, is.By})
		require.Equal(t, since, is.Since, "the failure is one")
		require.Equal(t, "refused", st.noted("sql").Code)
		time.Sleep(2 * time.Minute)
		require.Equal(t, "refused", a.Seen().Control.Dependencies["sql"].Code)
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
		a.NoteDependency(stopped, "sql", fault.Wrap(fault.Infrastructure, "test", "cancelled", "stopped", stopped.Err()))
		require.Empty(t, a.Seen().Control.Dependencies)
		late, end := context.WithTimeout(t.Context(), time.Second)
		defer end()
		<-late.Done()
		a.NoteDependency(late, "sql", fault.Wrap(fault.Infrastructure, "test", "timeout", "no answer", late.Err()))
		require.Equal(t, "timeout", st.noted("sql").Code, "no answer in time is one, and the note has time of its own")
	})
}

// Whatever instances see, and whatever their clocks say: a failure that goes on is never hidden for 15 s, one that is over ends,
// and the writes are few.
func TestDependenciesNeverHideAFailureNorFlap(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		type instance struct {
			b       *breaker.Breaker
			every   int
			percent []int // of failures, by minute
			dies    int
			streak  int
		}
		const minutes = 6
		var all []*instance
		for i := range rapid.IntRange(1, 6).Draw(r, "instances") {
			all = append(all, &instance{
				every:   rapid.IntRange(1, 8).Draw(r, "every"),
				percent: rapid.SliceOfN(rapid.SampledFrom([]int{0, 0, 5, 50, 100}), minutes, minutes).Draw(r, "percent"),
				dies:    rapid.SampledFrom([]int{1e6, 1e6, 1e6, 100}).Draw(r, "dies") + i,
			})
		}
		skews := rapid.SliceOfN(rapid.IntRange(-300, 300), len(all), len(all)).Draw(r, "skews")
		draws := rapid.SliceOfN(rapid.IntRange(0, 99), 97, 97).Draw(r, "draws")
		wrong := ""
		synctest.Test(t, func(t *testing.T) {
			st := &store{}
			for i, is := range all {
				is.b = openSkewed(st, strconv.Itoa(i), time.Duration(skews[i])*time.Second)
				is.b.View(t.Context())
			}
			var writes []int // after each second
			okFor, draw := 0, 0
			for second := range (minutes + 5) * 60 {
				for _, is := range all {
					if second >= is.dies {
						is.streak = 0
						continue
					}
					is.streak++
					if second%is.every == 0 {
						is.b.View(t.Context()) // as the requests do
						var err error
						if draw++; second < minutes*60 && draws[draw*31%97] < is.percent[second/60] {
							err = infra()
						} else {
							is.streak = 0
						}
						is.b.NoteDependency(t.Context(), "sql", err)
					}
				}
				time.Sleep(time.Second)
				if okFor++; st.noted("sql").State == breaker.DependencyFailing {
					okFor = 0
				}
				for i, is := range all {
					if is.streak > 15+is.every && okFor > 15 {
						wrong = fmt.Sprintf("second %d: instance %d fails for %d s, and for %d s nobody is told", second, i, is.streak, okFor)
						return
					}
				}
				writes = append(writes, st.version)
				// An instance begins a failure and ends it; the next one within a minute stays for a minute.
				if n := st.version - writes[max(0, second-60)]; n > 2*len(all)+2 {
					wrong = fmt.Sprintf("second %d: %d writes within a minute", second, n)
					return
				}
			}
			alive := false
			for _, is := range all {
				alive = alive || is.dies > minutes*60
			}
			if alive && st.noted("sql").State == breaker.DependencyFailing {
				wrong = fmt.Sprintf("nobody fails for five minutes, and it is still noted: %+v", st.noted("sql"))
			}
		})
		if wrong != "" {
			r.Fatal(wrong)
		}
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
		require.Equal(t, []breaker.Skipped{{SysName: "wbe", Documents: 2, Since: first, LastAt: first, Sample: "one"}}, st.control.Skipped, "the first one at once")
		for range 50 {
			time.Sleep(time.Second)
			skip("wbe", 1, "two")
		}
		require.Equal(t, 1, st.puts, "known ones once a minute")
		time.Sleep(11 * time.Second)
		a.NoteSkipped(t.Context(), nil)
		require.Equal(t, []breaker.Skipped{{SysName: "wbe", Documents: 52, Since: first, LastAt: first.Add(50 * time.Second), Sample: "two"}}, st.control.Skipped)
		time.Sleep(6 * time.Second)
		skip("new", 1, "two")
		require.Equal(t, "new", st.control.Skipped[0].SysName, "a new one at once")
		for i := range 20 {
			time.Sleep(6 * time.Second)
			skip("name"+strconv.Itoa(i), 1, "three")
		}
		require.Len(t, st.control.Skipped, 8)
		require.Equal(t, []string{"name19", "name12"}, []string{st.control.Skipped[0].SysName, st.control.Skipped[7].SysName}, "the newest first")
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

// The document that makes a mass failure of it is told at once: the next Note may be far away.
func TestAMassFailureIsToldWhenItIsRecognised(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, sv := &store{}, &server{}
		a, b := open(st, sv, "a"), open(st, sv, "b")
		for range 12 {
			a.BeganToFail(t.Context(), "547")
		}
		a.Note(t.Context(), breaker.FeedLag{})
		require.Equal(t, 12, st.control.Failing[0].Documents)
		b.View(t.Context())
		for range 7 {
			b.BeganToFail(t.Context(), "547")
		}
		require.Empty(t, st.control.MassFailures(time.Now()))
		puts := st.puts
		b.BeganToFail(t.Context(), "547")
		require.Equal(t, 20, st.control.MassFailures(time.Now())[0].Documents)
		b.BeganToFail(t.Context(), "547")
		require.Equal(t, puts+1, st.puts, "the others wait for Note")
	})
}
