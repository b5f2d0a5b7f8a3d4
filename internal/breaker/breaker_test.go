package breaker_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/fault"
)

// store is a control document in memory that can fail.
type store struct {
	mu             sync.Mutex
	control        breaker.Control
	version        int
	away, readOnly bool
	loads, puts    int
	// fails is called by one Store, which then fails.
	fails func()
	// statuses has that of each instance; told counts their writes, heard their reads.
	statuses    map[string]breaker.Status
	told, heard int
}

func (s *store) isAway(away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = away
}

func (s *store) LoadStatuses(_ context.Context, since time.Time) (all []breaker.Status, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard++
	if s.away {
		return nil, fault.New(fault.Infrastructure, "test", "503", "away")
	}
	for _, is := range s.statuses {
		if !is.At.Before(since) {
			all = append(all, is)
		}
	}
	return all, nil
}

func (s *store) StoreStatus(ctx context.Context, is breaker.Status) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told++
	if s.away || s.readOnly || ctx.Err() != nil {
		return fault.New(fault.Infrastructure, "test", "503", "away")
	}
	if s.statuses == nil {
		s.statuses = map[string]breaker.Status{}
	}
	s.statuses[is.Instance] = is
	return nil
}

func (s *store) Load(context.Context) (breaker.Control, string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loads++
	if s.away {
		return breaker.Control{}, "", fault.New(fault.Infrastructure, "test", "503", "away")
	}
	if s.version == 0 {
		return breaker.Control{}, "", nil
	}
	return s.control, strconv.Itoa(s.version), nil
}

func (s *store) Store(ctx context.Context, c breaker.Control, etag string) (string, error) {
	if fails := s.fails; fails != nil {
		s.fails = nil
		fails()
		return "", fault.New(fault.Infrastructure, "test", "503", "away")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.puts++
	if s.away || s.readOnly || ctx.Err() != nil {
		return "", fault.New(fault.Infrastructure, "test", "503", "away")
	}
	if (s.version == 0) != (etag == "") || (s.version > 0 && etag != strconv.Itoa(s.version)) {
		return "", &fault.Error{Kind: fault.Contention, Condition: fault.Changed, Code: "412"}
	}
	s.version++
	s.control = c
	return strconv.Itoa(s.version), nil
}

// server is SQL: err fails requests, beat fails heartbeats.
type server struct {
	mu           sync.Mutex
	err, beat    error
	beats, tries int
}

func (s *server) set(err, beat error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err, s.beat = err, beat
}

func (s *server) heartbeat(context.Context, breaker.Heartbeat) (breaker.Heartbeat, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.beats++
	return breaker.Heartbeat{}, s.beat
}

func (s *server) request(context.Context, breaker.Heartbeat) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tries++
	return s.err
}

// turn is SQL's answer when another instance writes (ONE_WRITER).
func turn() error {
	return &fault.Error{
		Kind: fault.Infrastructure, Condition: fault.Waits, Op: "test", Code: "one_writer", Reason: "another writes",
	}
}

func infra() error { return fault.New(fault.Infrastructure, "test", "refused", "away") }

func open(st *store, sv *server, name string) *breaker.Breaker {
	var control breaker.ControlStore
	if st != nil {
		control = st
	}
	return breaker.New(control, breaker.Options{
		Instance: name, Build: "build 1", Heartbeat: sv.heartbeat, Draw: func() float64 { return 0 },
	})
}

func TestFiveFailuresThatSpanFifteenSecondsOpenIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, sv := &store{}, &server{}
		b := open(st, sv, "a")
		sv.set(infra(), infra())
		var wg sync.WaitGroup
		for range 40 {
			wg.Go(func() { _ = b.Do(t.Context(), 1, 0, sv.request) })
		}
		time.Sleep(9 * time.Second)
		require.NoError(t, b.Permit(t.Context()), "40 failures at once are one hiccup")
		sv.set(nil, nil)
		wg.Wait()
		require.NoError(t, b.Permit(t.Context()))

		sv.set(infra(), infra())
		begin := time.Now()
		require.Error(t, b.Do(t.Context(), 1, 0, sv.request))
		require.LessOrEqual(t, time.Since(begin), 41*time.Second, "one request finds out by heartbeats")
		require.True(t, breaker.IsRefusal(b.Permit(t.Context())))
		require.Equal(t, breaker.Open, st.control.Breaker.Name)
		require.Len(t, st.control.Transitions, 1)

		tries, beats := sv.tries, sv.beats
		for range 600 { // ten minutes of requests
			time.Sleep(time.Second)
			require.Error(t, b.Permit(t.Context()))
			require.Error(t, b.Do(t.Context(), 1, 0, sv.request))
		}
		require.Equal(t, tries, sv.tries, "no request for documents while it is open")
		require.LessOrEqual(t, sv.beats-beats, 10, "and one probe a minute")
	})
}

// The parts of a divided batch fail together. If only this instance is cut off, others need the 40 s to write
// something.
func TestRequestsThatFailTogetherCountOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, sv := &store{}, &server{}
		b := open(st, sv, "a")
		sv.set(infra(), infra())
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() { _ = b.Do(t.Context(), 1, 0, sv.request) })
		}
		time.Sleep(39 * time.Second)
		require.NoError(t, b.Permit(t.Context()))
		wg.Wait()
		require.True(t, breaker.IsRefusal(b.Permit(t.Context())))
		require.Equal(t, breaker.Open, st.control.Breaker.Name)
	})
}

// Single documents that fail within 15 s may meet one hiccup.
func TestLoneFailuresOpenItWhenTheySpanFifteenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(nil, &server{}, "a")
		for n := range 7 { // the first is one document and no outage; six count, from the 4th second to the 14th
			time.Sleep(2 * time.Second)
			b.FailedAlone(t.Context(), string(rune('a'+n)), infra())
		}
		require.NoError(t, b.Permit(t.Context()))
		time.Sleep(6 * time.Second)
		b.FailedAlone(t.Context(), "z", infra())
		require.True(t, breaker.IsRefusal(b.Permit(t.Context())))
	})
}

func TestOneDocumentIsNoOutageAndManyAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv := &server{}
		b := open(nil, sv, "a")
		sv.set(infra(), nil)
		for range 100 {
			time.Sleep(10 * time.Second)
			err := b.Do(t.Context(), 1, 0, sv.request)
			require.True(t, fault.Has(err, fault.OthersAnswered), "the heartbeat was committed")
			b.FailedAlone(t.Context(), "one", err)
		}
		require.Empty(t, b.Unaudited(t.Context()), "it never opened")
		for _, document := range []string{"two", "one", "three", "four", "two", "five", "six"} {
			time.Sleep(10 * time.Second)
			b.FailedAlone(t.Context(), document, b.Do(t.Context(), 1, 0, sv.request))
		}
		require.True(t, breaker.IsRefusal(b.Permit(t.Context())),
			"many documents fail, and nothing was applied between")
	})
}

func TestATickFindsAnOutageWithoutTraffic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, sv := &store{}, &server{}
		b := open(st, sv, "a")
		require.NoError(t, b.Tick(t.Context()))
		sv.set(nil, infra())
		begin := time.Now()
		require.Error(t, b.Tick(t.Context()))
		require.Equal(t, breaker.Open, st.control.Breaker.Name)
		require.LessOrEqual(t, time.Since(begin), 41*time.Second)

		sv.set(nil, nil)
		time.Sleep(5 * time.Minute)
		require.NoError(t, b.Tick(t.Context()))
		require.Equal(t, breaker.HalfOpen, st.control.Breaker.Name)
		time.Sleep(5 * time.Minute)
		require.NoError(t, b.Tick(t.Context()))
		require.Equal(t, breaker.Closed, st.control.Breaker.Name, "two heartbeats without a request between")
	})
}

// An instance that alone cannot reach SQL must not stop the others. A real outage afterwards must stop all.
func TestAnInstanceThatIsCutOffStopsNobody(t *testing.T) {
	for _, every := range []time.Duration{time.Second, 10 * time.Second, 10 * time.Minute} {
		t.Run(every.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { cutOff(t, every) })
		})
	}
}

func cutOff(t *testing.T, every time.Duration) {
	st, well, ill := &store{}, &server{}, &server{}
	a, b := open(st, well, "a"), open(st, ill, "b")
	ill.set(infra(), infra())
	var wg sync.WaitGroup
	end := time.Now().Add(time.Hour)
	refused := 0
	wg.Go(func() {
		for time.Now().Before(end) {
			if a.Permit(t.Context()) != nil || a.Do(t.Context(), 1, 0, well.request) != nil {
				refused++
			} else {
				a.Applied(time.Now())
			}
			a.Note(t.Context(), breaker.FeedLag{})
			time.Sleep(every)
		}
	})
	cut := 0
	for time.Now().Before(end) {
		if b.CutOff(t.Context()) {
			cut++
		} else {
			_ = b.Do(t.Context(), 1, 0, ill.request)
		}
		time.Sleep(10 * time.Second)
	}
	wg.Wait()
	require.Greater(t, cut, 150)
	require.False(t, a.CutOff(t.Context()))
	if every < 40*time.Second {
		require.Zero(t, refused)
		require.Empty(t, st.control.Transitions)
	} else {
		require.LessOrEqual(t, refused, 2, "a cut-off is unknown, once, if no instance writes for 40 s")
	}

	well.set(infra(), infra())
	_ = a.Do(t.Context(), 1, 0, well.request)
	require.Equal(t, breaker.Open, st.control.Breaker.Name)
	time.Sleep(6 * time.Second)
	require.False(t, b.CutOff(t.Context()), "now it is everybody's outage")
	ill.set(nil, nil)
	well.set(nil, nil)
	time.Sleep(2 * time.Minute)
	require.NoError(t, b.Permit(t.Context()))
}

func TestTwentyFiveInstancesMakeOneProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, sv := &store{}, &server{}
		st.control.Breaker = breaker.State{
			Name: breaker.Open, OpenUntil: time.Now().Add(time.Minute), Kind: fault.Infrastructure,
		}
		st.version = 1
		time.Sleep(time.Minute)
		var wg sync.WaitGroup
		var mu sync.Mutex
		passed := 0
		for i := range 25 {
			wg.Go(func() {
				b := open(st, sv, string(rune('a'+i)))
				if b.Permit(t.Context()) == nil && b.Do(t.Context(), 1, 0, sv.request) == nil {
					mu.Lock()
					passed++
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		require.Equal(t, 1, sv.beats)
		require.GreaterOrEqual(t, passed, 1)
		require.NotEqual(t, breaker.Open, st.control.Breaker.Name)
	})
}

func TestWithoutTheControlDocumentNothingIsProvenAndTheBreakerWorks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, sv := &store{}, &server{}
		b := open(st, sv, "a")
		b.Applied(time.Now())
		b.Note(t.Context(), breaker.FeedLag{})
		failedAt := time.Now().Add(-time.Hour)
		require.True(t, b.Proven(t.Context(), failedAt))
		require.False(t, b.Proven(t.Context(), time.Now().Add(-59*time.Second)), "clocks differ")
		require.Equal(t, "build 1", st.control.Applied[0].Build)

		st.away = true
		time.Sleep(6 * time.Second)
		require.False(t, b.Proven(t.Context(), failedAt))
		require.NoError(t, b.Permit(t.Context()))
		sv.set(infra(), infra())
		for range 6 {
			_ = b.Do(t.Context(), 1, 0, sv.request)
		}
		require.True(t, breaker.IsRefusal(b.Permit(t.Context())), "by its own copy")
		require.Error(t, b.Pause(t.Context(), "eva", "why"), "the others would not know")

		st.away = false
		time.Sleep(6 * time.Second)
		b.Applied(time.Now())
		require.True(t, b.Proven(t.Context(), failedAt))
	})
}

func TestProofIsPerBuild(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, sv := &store{}, &server{}
		old := open(st, sv, "a")
		old.Applied(time.Now())
		old.Note(t.Context(), breaker.FeedLag{})
		young := breaker.New(st, breaker.Options{Build: "build 2", Heartbeat: sv.heartbeat})
		require.True(t, old.Proven(t.Context(), time.Now().Add(-time.Hour)))
		require.False(t, young.Proven(t.Context(), time.Now().Add(-time.Hour)))
	})
}

func TestPauseAndResumeWorkInAFreshProcessWithSQLAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, sv := &store{}, &server{}
		sv.set(infra(), infra())
		st.control.Breaker, st.version = breaker.State{
			Name: breaker.Open, Kind: fault.Quota, Code: "9002", OpenUntil: time.Now().Add(time.Hour),
		}, 1
		b := open(st, sv, "fresh")
		require.NoError(t, b.Resume(t.Context(), "eva", "space was added"))
		require.Equal(t, breaker.HalfOpen, st.control.Breaker.Name)
		require.Equal(t, "space was added", st.control.Transitions[len(st.control.Transitions)-1].Why)
		require.Zero(t, sv.beats+sv.tries, "SQL is not asked")
		require.NoError(t, b.Pause(t.Context(), "eva", "maintenance"))
		other := open(st, sv, "other")
		err := other.Permit(t.Context())
		require.True(t, breaker.IsRefusal(err))
		require.Equal(t, breaker.CodePaused, fault.CodeOf(err))

		logged := b.Unaudited(t.Context())
		require.NotEmpty(t, logged)
		b.Audited(t.Context(), logged[:1])
		require.Len(t, st.control.Transitions, len(logged)-1)
	})
}

func TestACallersEndIsNobodysFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv := &server{}
		b := open(nil, sv, "a")
		for range 20 {
			ctx, cancel := context.WithCancel(t.Context())
			_ = b.Do(ctx, 1, 0, func(context.Context, breaker.Heartbeat) error {
				cancel()
				return fault.Wrap(fault.Infrastructure, "test", "cancelled", "", errors.New("x"))
			})
			time.Sleep(5 * time.Second)
		}
		require.NoError(t, b.Permit(t.Context()))
		require.Zero(t, sv.beats)
	})
}

// A committed heartbeat ends the cut-off, so that the next outage counts as a common one.
func TestACommittedHeartbeatEndsTheCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, well, ill := &store{}, &server{}, &server{}
		a, b := open(st, well, "a"), open(st, ill, "b")
		ill.set(infra(), infra())
		var wg sync.WaitGroup
		wg.Go(func() {
			for range 12 {
				require.NoError(t, a.Do(t.Context(), 1, 0, well.request))
				a.Applied(time.Now())
				a.Note(t.Context(), breaker.FeedLag{})
				time.Sleep(5 * time.Second)
			}
		})
		_ = b.Do(t.Context(), 1, 0, ill.request)
		wg.Wait()
		require.True(t, b.Seen().CutOff)
		ill.set(nil, nil)
		require.NoError(t, b.Tick(t.Context()))
		require.False(t, b.Seen().CutOff)

		ill.set(infra(), infra())
		time.Sleep(time.Hour)
		require.Error(t, b.Tick(t.Context()))
		require.Equal(t, breaker.Open, st.control.Breaker.Name, "within one tick")
	})
}

func TestATickWhoseFirstHeartbeatIsAHiccupGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv := &server{}
		b := open(nil, sv, "a")
		sv.set(nil, infra())
		go func() {
			time.Sleep(5 * time.Second)
			sv.set(nil, nil)
		}()
		require.NoError(t, b.Tick(t.Context()))
		require.NoError(t, b.Permit(t.Context()))
	})
}
