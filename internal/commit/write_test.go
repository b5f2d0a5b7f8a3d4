package commit

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// scriptedSink answers requests by rules: which documents it refuses, and how it fails.
type scriptedSink struct {
	requests [][]string
	bad      map[string]bool
	fail     func(request int, ids []string) error
	// beat is the answer of Heartbeat. Each request moves now by took.
	beat error
	now  time.Time
	took time.Duration
}

func (s *scriptedSink) Apply(_ context.Context, items []Item, _ Mode, _ breaker.Heartbeat) ([]DocumentOutcome, error) {
	var ids []string
	refused := false
	for _, it := range items {
		ids = append(ids, it.DocumentID)
		refused = refused || s.bad[it.DocumentID]
	}
	s.requests, s.now = append(s.requests, ids), s.now.Add(s.took)
	if s.fail != nil {
		if err := s.fail(len(s.requests), ids); err != nil {
			return nil, err
		}
	}
	if refused {
		return nil, fault.New(fault.Document, "sql: apply", "2628", "a value does not fit its column")
	}
	out := make([]DocumentOutcome, len(items))
	for i, it := range items {
		out[i] = DocumentOutcome{
			DocumentID: it.DocumentID, Verdict: invoice.OutcomeApplied,
			Rows: []RowOutcome{{DetailID: it.Main, Verdict: invoice.OutcomeApplied}},
		}
	}
	return out, nil
}

func (s *scriptedSink) Heartbeat(context.Context, breaker.Heartbeat) (breaker.Heartbeat, error) {
	return breaker.Heartbeat{}, s.beat
}

func (s *scriptedSink) TakeOver(context.Context, breaker.Heartbeat) (breaker.Heartbeat, error) {
	return breaker.Heartbeat{}, s.beat
}

func scripted(s *scriptedSink) *writer {
	s.now = time.Unix(1e9, 0)
	now, draw := func() time.Time { return s.now }, func() float64 { return 0 }
	c := NewCommit(nil, s, Options{
		Now: now, Draw: draw, Wait: func(context.Context, time.Duration) error { return nil },
		Breaker: breaker.New(nil, breaker.Options{
			Now: now, Draw: draw, Heartbeat: s.Heartbeat,
			Wait: func(_ context.Context, d time.Duration) error { s.now = s.now.Add(d); return nil },
		}),
	})
	return c.stages(context.Background(), Delivery{}, Write).writer
}

func numbered(n int) []Item {
	items := make([]Item, n)
	for i := range items {
		items[i] = Item{DocumentID: string(rune('a'+i%26)) + string(rune('0'+i/26)), Main: int64(i + 1)}
	}
	return items
}

// Promise G6: a bad document fails alone. The search costs about 2k*log2(n/k)+2k requests, because the tree of quarters
// has at most k refused requests on each level.
func TestBisectBlamesTheBadDocumentsAndNobodyElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 100).Draw(t, "n")
		share := rapid.SampledFrom([]int{2, 10, 30}).Draw(t, "one in")
		items := numbered(n)
		s := &scriptedSink{bad: map[string]bool{}}
		for i := range items {
			if rapid.IntRange(1, share).Draw(t, "bad") == 1 {
				s.bad[items[i].DocumentID] = true
			}
		}
		results, done, err := scripted(s).apply(context.Background(), items)
		require.NoError(t, err)
		for i, it := range items {
			require.True(t, done[i])
			require.Equal(t, s.bad[it.DocumentID], results[i].failed(), it.DocumentID)
		}
		require.LessOrEqual(t, len(s.requests), mostRequests(n, len(s.bad)), "%d bad of %d", len(s.bad), n)
	})
}

// mostRequests bounds the requests that find k bad documents among n.
func mostRequests(n, k int) int {
	if k == 0 {
		return 1
	}
	levels := math.Ceil(math.Log2(float64(n))) - math.Floor(math.Log2(float64(k)))
	return int(2*(float64(k)*levels+float64(k)-1)) + 1
}

// Dividing ends after two minutes. Undecided documents are not blamed, because most may be good.
func TestDividingEndsAfterTwoMinutes(t *testing.T) {
	for _, c := range []struct {
		until time.Duration
		took  time.Duration
	}{{0, 3 * time.Second}, {time.Minute, 3 * time.Second}, {0, 10 * time.Second}} {
		s := &scriptedSink{bad: map[string]bool{}, took: c.took}
		items := numbered(100)
		for _, it := range items {
			s.bad[it.DocumentID] = true
		}
		p := scripted(s)
		begin, most := s.now, divideFor
		if c.until > 0 {
			p.divideUntil, most = earlier(p.divideUntil, begin.Add(c.until)), c.until
		}
		results, done, err := p.apply(context.Background(), items)
		require.NoError(t, err, "the feed goes on")
		require.Less(t, s.now.Sub(begin), most+c.took)
		judged := 0
		for i, r := range results {
			require.True(t, done[i])
			if fault.KindOf(r.err) == fault.Document {
				judged++
				continue
			}
			require.Equal(t, []any{fault.Contention, "undecided"}, []any{fault.KindOf(r.err), fault.CodeOf(r.err)})
		}
		require.Positive(t, judged, "documents that were alone in time have a result")
		require.Less(t, judged, 100)
	}
}

func TestARequestThatLostARaceIsMadeAgainWhole(t *testing.T) {
	s := &scriptedSink{fail: func(request int, _ []string) error {
		if request < contentionTries {
			return fault.New(fault.Contention, "sql: apply", "1205", "deadlock victim")
		}
		return nil
	}}
	results, _, err := scripted(s).apply(context.Background(), numbered(5))
	require.NoError(t, err)
	require.Len(t, s.requests, contentionTries)
	for _, r := range s.requests {
		require.Len(t, r, 5, "a lost race blames no document: the whole request is retried")
	}
	require.False(t, results[0].failed())
}

func TestContentionThatLastsIsBisectedAndEndsAlone(t *testing.T) {
	for _, c := range []struct {
		condition fault.Condition
		want      fault.Kind
	}{
		{fault.NoCondition, fault.Contention},
		{fault.OwnWhenAlone, fault.Document},
	} {
		s := &scriptedSink{fail: func(_ int, ids []string) error {
			for _, id := range ids {
				if id == "b0" {
					return &fault.Error{Kind: fault.Contention, Condition: c.condition, Code: "x", Op: "sql: apply"}
				}
			}
			return nil
		}}
		results, _, err := scripted(s).apply(context.Background(), numbered(4))
		require.NoError(t, err)
		require.Equal(t, c.want, fault.KindOf(results[1].err), "alone, %q", c.condition)
		for _, i := range []int{0, 2, 3} {
			require.False(t, results[i].failed(), "a neighbour was blamed")
		}
	}
}

func TestADependencyErrorStopsTheBisectAndKeepsWhatIsDone(t *testing.T) {
	s := &scriptedSink{
		bad: map[string]bool{"d0": true}, beat: fault.New(fault.Infrastructure, "sql: heartbeat", "eof", ""),
	}
	s.fail = func(request int, _ []string) error {
		if request == 4 {
			return fault.New(fault.Infrastructure, "sql: apply", "eof", "the connection was cut")
		}
		return nil
	}
	_, done, err := scripted(s).apply(context.Background(), numbered(4))
	require.True(t, fault.IsDependency(err))
	require.Equal(t, []bool{true, true, false, false}, done, "the first half is in SQL, the rest is unchanged")
}

func TestPlanNeverSplitsADocumentAndKeepsTheBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 60).Draw(t, "n")
		items := make([]Item, n)
		for i := range items {
			items[i].Duplicates = make([]int64, rapid.SampledFrom([]int{0, 0, 1, 5, 40, 120}).Draw(t, "duplicates"))
		}
		next := 0
		for _, part := range requestsOf(items, 10, 100) {
			require.Equal(t, next, part[0], "in order, none left out")
			require.Less(t, part[0], part[1])
			rows := 0
			for _, it := range items[part[0]:part[1]] {
				rows += it.Rows()
			}
			require.LessOrEqual(t, part[1]-part[0], 10)
			require.True(t, rows <= 100 || part[1]-part[0] == 1, "%d rows in %d documents", rows, part[1]-part[0])
			next = part[1]
		}
		require.Equal(t, n, next)
	})
}

func TestADueTimeInWholeSecondsIsNeverEarly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.UnixMilli(rapid.Int64Range(0, 4e12).Draw(t, "now"))
		wait := time.Duration(rapid.Int64Range(0, int64(2*time.Hour)).Draw(t, "wait"))
		due := time.Unix(dueAt(now, wait), 0)
		require.False(t, due.Before(now.Add(wait)))
		require.Less(t, due.Sub(now.Add(wait)), time.Second)
	})
}
