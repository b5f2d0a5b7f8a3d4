package commit

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// A request took so long on the T-SQL engine at a distance of 2 ms (docs/figures.md).
const (
	perRequest  = 8700 * time.Microsecond
	perDocument = 245 * time.Microsecond
	lockTimeout = 5 * time.Second
)

// server is a database on the clock of a synctest bubble, with ten connections.
type server struct {
	// bad documents are refused. locked ones lose their race after lockTimeout. breaking ones break their connection.
	bad, locked, breaking map[string]bool

	// fails, if set, is the answer to requests that fail at once. beat is the answer of a heartbeat. began, if set, is
	// called with the number of requests under way.
	fails func(items []Item) error
	beat  error
	began func(busy int)

	mu          sync.Mutex
	connections chan struct{}
	busy, most  int
	requests    int
	lines       map[int64]bool
	shared      bool
	cancelled   int
}

func newServer(connections int) *server {
	return &server{
		connections: make(chan struct{}, connections), lines: map[int64]bool{}, bad: map[string]bool{},
		locked: map[string]bool{}, breaking: map[string]bool{},
	}
}

func (s *server) Apply(ctx context.Context, items []Item, _ Mode, _ breaker.Heartbeat) ([]DocumentOutcome, error) {
	s.connections <- struct{}{}
	defer func() { <-s.connections }()
	s.begin(items)
	defer s.end(items)
	took := perRequest + time.Duration(len(items))*perDocument
	if s.fails != nil {
		if err := s.fails(items); err != nil {
			time.Sleep(took)
			return nil, err
		}
	}
	for _, it := range items {
		if s.locked[it.DocumentID] {
			took = lockTimeout
		}
	}
	select {
	case <-time.After(took):
	case <-ctx.Done():
		s.mu.Lock()
		defer s.mu.Unlock()
		s.cancelled++
		return nil, fault.Wrap(fault.Infrastructure, "sql: apply", "cancelled", "", ctx.Err())
	}
	out := make([]DocumentOutcome, len(items))
	for i, it := range items {
		switch {
		case s.locked[it.DocumentID]:
			return nil, fault.New(fault.Contention, "sql: apply", "1222", "another transaction has the row")
		case s.breaking[it.DocumentID]:
			return nil, fault.New(fault.Infrastructure, "sql: apply", "eof", "the connection was cut")
		case s.bad[it.DocumentID]:
			return nil, fault.New(fault.Document, "sql: apply", "2628", "a value does not fit its column")
		}
		out[i] = DocumentOutcome{DocumentID: it.DocumentID, Verdict: invoice.OutcomeApplied}
	}
	return out, nil
}

// begin notes what is under way.
func (s *server) begin(items []Item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	s.busy++
	s.most = max(s.most, s.busy)
	if s.began != nil {
		s.began(s.busy)
	}
	own := map[int64]bool{}
	for _, it := range items {
		own[it.Main] = true
	}
	for line := range own {
		s.shared = s.shared || s.lines[line]
		s.lines[line] = true
	}
}

func (s *server) end(items []Item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy--
	for _, it := range items {
		delete(s.lines, it.Main)
	}
}

func (s *server) Heartbeat(context.Context, breaker.Heartbeat) (breaker.Heartbeat, error) {
	return breaker.Heartbeat{}, s.beat
}

func (s *server) TakeOver(context.Context, breaker.Heartbeat) (breaker.Heartbeat, error) {
	return breaker.Heartbeat{}, nil
}

// control is a control document that only its test shares.
type control struct {
	breaker.ControlStore
	mu sync.Mutex
	c  breaker.Control
}

func (c *control) Load(context.Context) (breaker.Control, string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.c, "1", nil
}

func (c *control) Store(_ context.Context, to breaker.Control, _ string) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.c = to
	return "1", nil
}

// committing makes a Commit over a server, which may send some parts at once.
func committing(s *server, partsAtOnce int) *Commit {
	return NewCommit(nil, s, Options{PartsAtOnce: partsAtOnce})
}

// applied applies items as one batch, and gives the results and the time.
func applied(t require.TestingT, c *Commit, items []Item) ([]result, time.Duration) {
	begin := time.Now()
	results, done, err := c.stages(context.Background(), Delivery{}, Write).writer.apply(context.Background(), items)
	require.NoError(t, err)
	for i := range items {
		require.True(t, done[i])
	}
	return results, time.Since(begin)
}

// inBubble runs f on a clock of its own.
func inBubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

// One bad document among a hundred, wherever it stands: with four connections the batch takes less than 2.5 times as
// long as a clean one. With one connection it takes as long as the requests one after the other.
func TestOneBadDocumentInAHundredTakesTwiceACleanBatch(t *testing.T) {
	for _, c := range []struct {
		partsAtOnce int
		most        float64
	}{{1, 5.75}, {4, 2.35}} {
		inBubble(t, func(t *testing.T) {
			items := numbered(100)
			_, clean := applied(t, committing(newServer(10), c.partsAtOnce), items)
			worst := 0.0
			for bad := range items {
				s := newServer(10)
				s.bad[items[bad].DocumentID] = true
				results, took := applied(t, committing(s, c.partsAtOnce), items)
				for i, r := range results {
					require.Equal(t, i == bad, r.failed())
				}
				require.LessOrEqual(t, s.requests, 15)
				require.Equal(t, c.partsAtOnce, s.most)
				worst = max(worst, took.Seconds()/clean.Seconds())
			}
			t.Logf("%d at once: at most %.2f times as long as a clean batch", c.partsAtOnce, worst)
			require.LessOrEqual(t, worst, c.most)
		})
	}
}

// Promise G6 with four connections. Documents that share a line are never under way at once: one would lose the race
// for it. What a batch took of the connections for parts it gives back.
func TestPartsAtOnceBlameTheBadDocumentsAndNobodyElse(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		items := numbered(rapid.IntRange(1, 100).Draw(rt, "n"))
		share, lines := rapid.SampledFrom([]int{2, 10, 30}).Draw(rt, "one in"),
			rapid.SampledFrom([]int{5, 40, 1000}).Draw(rt, "lines")
		s := newServer(10)
		for i := range items {
			items[i].Main = int64(rapid.IntRange(1, lines).Draw(rt, "line"))
			if rapid.IntRange(1, share).Draw(rt, "bad") == 1 {
				s.bad[items[i].DocumentID] = true
			}
		}
		var results []result
		c := committing(s, 4)
		inBubble(t, func(t *testing.T) { results, _ = applied(t, c, items) })
		require.Empty(rt, c.spare)
		for i, it := range items {
			require.Equal(rt, s.bad[it.DocumentID], results[i].failed(), it.DocumentID)
		}
		require.LessOrEqual(rt, s.requests, mostRequests(len(items), len(s.bad)))
		require.LessOrEqual(rt, s.most, 4)
		require.False(rt, s.shared)
	})
}

// 99 of 100 documents are locked, in three batches at once. Dividing ends after two minutes. A good batch beside them
// finds a connection as fast as ever.
func TestLockedPartsLeaveConnectionsToOthers(t *testing.T) {
	judged := map[int]int{}
	for _, partsAtOnce := range []int{1, 4} {
		inBubble(t, func(t *testing.T) {
			s := newServer(10)
			items := numbered(500)
			for i := range 400 {
				s.locked[items[i].DocumentID] = i != 160
			}
			c := committing(s, partsAtOnce)
			var batches sync.WaitGroup
			for n := range 3 {
				batches.Go(func() {
					results, took := applied(t, c, items[100*n:100*(n+1)])
					if took >= divideFor+lockTimeout {
						t.Errorf("dividing took %s", took)
					}
					s.mu.Lock()
					defer s.mu.Unlock()
					for _, r := range results {
						if fault.CodeOf(r.err) != codeUndecided {
							judged[partsAtOnce]++
						}
					}
				})
			}
			time.Sleep(time.Minute)
			for range 20 {
				_, took := applied(t, c, items[400:])
				require.Equal(t, perRequest+100*perDocument, took)
				time.Sleep(time.Second)
			}
			batches.Wait()
			require.LessOrEqual(t, s.most, 3+1+partsAtOnce-1)
		})
	}
	t.Log("documents with an answer by parts at once: ", judged)
	require.Greater(t, judged[4], judged[1])
}

// The first answer of a dependency ends the requests beside it, and no other follows. What was answered before is kept.
func TestTheFirstAnswerOfADependencyStopsAllParts(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		items := numbered(100)
		s := newServer(10)
		s.bad[items[3].DocumentID] = true
		for _, it := range items[7:21] {
			s.locked[it.DocumentID] = true // these take five seconds
		}
		s.fails = func(some []Item) error {
			if some[0].Main == 1 && len(some) < 25 {
				return fault.New(fault.Throttled, "sql: apply", "10928", "too many requests")
			}
			return nil
		}
		w := committing(s, 4).stages(t.Context(), Delivery{}, Write).writer
		begin := time.Now()
		_, done, err := w.apply(t.Context(), items)
		require.Equal(t, fault.Throttled, fault.KindOf(err))
		require.Less(t, time.Since(begin), 2*lockTimeout+time.Second,
			"the request and a part of it were refused after five seconds each")
		require.Equal(t, []int{2, 0}, []int{s.cancelled, s.busy})
		require.Equal(t, 1+4+4, s.requests)
		for i := range items {
			require.Equal(t, i >= 21, done[i], "document %d", i) // 21 to 24 were answered before
		}
	})
}

// Also where SQL goes away: heartbeats tell for 40 s that it is an outage, and no other part waits for that.
func TestAnOutageStopsAllPartsAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		items, s := numbered(100), newServer(10)
		for _, it := range items[25:] {
			s.locked[it.DocumentID] = true // these take five seconds
		}
		cut := fault.New(fault.Infrastructure, "sql: apply", "eof", "the connection was cut")
		s.beat = cut
		s.fails = func(some []Item) error {
			if some[0].Main == 1 && len(some) < 100 {
				return cut
			}
			return nil
		}
		w := committing(s, 4).stages(t.Context(), Delivery{}, Write).writer
		_, done, err := w.apply(t.Context(), items)
		require.Equal(t, fault.Infrastructure, fault.KindOf(err))
		require.Equal(t, []int{3, 0}, []int{s.cancelled, s.busy})
		require.Equal(t, make([]bool, 100), done)
		require.True(t, w.breaker.Seen().Control.Breaker.Stopped(), "and it is known as an outage")
	})
}

// Half-open, after throttling and where there is one writer, one request is made at a time.
func TestPartsWaitForEachOtherUnlessTheBreakerIsClosed(t *testing.T) {
	for name, c := range map[string]struct {
		state  breaker.State
		serial bool
		most   int
	}{
		"half-open": {breaker.State{Name: breaker.HalfOpen, Limit: 5}, false, 4},
		// a bubble begins with this year
		"after throttling": {breaker.State{SerialUntil: time.Date(2000, 1, 1, 0, 4, 0, 0, time.UTC)}, false, 1},
		"one writer":       {breaker.State{}, true, 1},
		"closed":           {breaker.State{}, false, 4},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				s, stored := newServer(10), &control{c: breaker.Control{Breaker: c.state}}
				items := numbered(100)
				for i := 0; i < len(items); i += 5 {
					s.bad[items[i].DocumentID] = true
				}
				s.began = func(busy int) {
					if now, _, _ := stored.Load(t.Context()); now.Breaker.Name == breaker.HalfOpen {
						require.Equal(t, 1, busy)
					}
				}
				b := breaker.New(stored, breaker.Options{Heartbeat: s.Heartbeat, Serial: c.serial})
				results, _ := applied(t, NewCommit(nil, s, Options{PartsAtOnce: 4, Breaker: b}), items)
				for i, r := range results {
					require.Equal(t, i%5 == 0, r.failed())
				}
				require.Equal(t, c.most, s.most)
			})
		})
	}
}

// After a request that failed like an outage while heartbeats are committed, the breaker weighs one failure at a time.
func TestPartsOfARequestThatBrokeItsConnectionWaitForEachOther(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, items := newServer(10), numbered(100)
		s.breaking[items[40].DocumentID] = true
		results, _ := applied(t, committing(s, 4), items)
		for i, r := range results {
			require.Equal(t, i == 40, r.failed())
		}
		require.Equal(t, 1, s.most)
	})
}

// Where all are bad, four parts are under way before the first says so: seven requests more for a hundred, in a third
// of the time.
func TestPartsAtOnceWhereAllAreBad(t *testing.T) {
	for partsAtOnce, want := range map[int]int{1: 105, 4: 112} {
		inBubble(t, func(t *testing.T) {
			items := numbered(100)
			s := newServer(10)
			for _, it := range items {
				s.bad[it.DocumentID] = true
			}
			_, _ = applied(t, committing(s, partsAtOnce), items)
			require.Equal(t, want, s.requests)
		})
	}
}

// What a request waits for those before it in its own instance is not its time: after a broken connection it is made
// once more, and is not divided.
func TestTheOwnQueueIsNotARequestsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, broke := newServer(1), false
		var sizes []int
		s.fails = func(items []Item) error {
			if sizes = append(sizes, len(items)); broke {
				return nil
			}
			broke = true
			return fault.New(fault.Infrastructure, "sql: apply", "eof", "the connection was cut")
		}
		b := breaker.New(nil, breaker.Options{Serial: true, Heartbeat: s.Heartbeat})
		queue := make(chan error)
		go func() {
			queue <- b.Do(t.Context(), 1, 0, func(context.Context, breaker.Heartbeat) error {
				time.Sleep(12 * time.Second)
				return nil
			})
		}()
		synctest.Wait()
		stages := NewCommit(nil, s, Options{Breaker: b}).stages(t.Context(), Delivery{}, Write)
		_, done, err := stages.writer.apply(t.Context(), numbered(100))
		require.NoError(t, err)
		require.NotContains(t, done, false)
		require.NoError(t, <-queue)
		require.Equal(t, []int{100, 100}, sizes)
		require.Equal(t, 2, stages.tally.report.SQLRequests)
		require.Less(t, stages.tally.report.SQL, time.Second)
	})
}

// bounded is a server that notes how long each request may take.
type bounded struct {
	*server
	bounds []time.Duration
}

func (s *bounded) Apply(ctx context.Context, items []Item, m Mode, known breaker.Heartbeat) ([]DocumentOutcome, error) {
	until, _ := ctx.Deadline()
	s.bounds = append(s.bounds, time.Until(until))
	return s.server.Apply(ctx, items, m, known)
}

// A part has ten seconds. With ONE_WRITER it has them after it has waited for its turn.
func TestAPartHasTimeToWaitForItsTurn(t *testing.T) {
	for serial, part := range map[bool]time.Duration{false: 10 * time.Second, true: 15 * time.Second} {
		inBubble(t, func(t *testing.T) {
			s, items := &bounded{server: newServer(1)}, numbered(4)
			s.breaking[items[0].DocumentID] = true
			b := breaker.New(nil, breaker.Options{Serial: serial, Heartbeat: s.Heartbeat})
			stages := NewCommit(nil, s, Options{Breaker: b, PartsAtOnce: 1}).stages(t.Context(), Delivery{}, Write)
			_, _, err := stages.writer.apply(t.Context(), items)
			require.NoError(t, err)
			require.Greater(t, len(s.bounds), 2)
			for n, bound := range s.bounds {
				if n == 0 {
					require.Equal(t, 30*time.Second, bound)
					continue
				}
				require.Equal(t, part, bound, n)
			}
		})
	}
}
