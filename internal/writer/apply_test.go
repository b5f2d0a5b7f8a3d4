package writer

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sqlwriter/internal/fault"
)

// scriptedSink answers requests from rules instead of a database: which documents it refuses, and how it fails.
type scriptedSink struct {
	requests [][]string
	bad      map[string]bool
	fail     func(request int, ids []string) error
}

func (s *scriptedSink) Apply(_ context.Context, items []Item, _ Mode) ([]Outcome, error) {
	var ids []string
	refused := false
	for _, it := range items {
		ids = append(ids, it.DocumentID)
		refused = refused || s.bad[it.DocumentID]
	}
	s.requests = append(s.requests, ids)
	if s.fail != nil {
		if err := s.fail(len(s.requests), ids); err != nil {
			return nil, err
		}
	}
	if refused {
		return nil, fault.New(fault.Document, "sql: apply", "2628", "a value does not fit its column")
	}
	out := make([]Outcome, len(items))
	for i, it := range items {
		out[i] = Outcome{DocumentID: it.DocumentID, Verdict: Applied, Rows: []RowOutcome{{DetailID: it.Main, Verdict: Applied}}}
	}
	return out, nil
}

func (s *scriptedSink) Heartbeat(context.Context, string) error { return nil }

func scripted(s *scriptedSink) *pass {
	c := NewCommit(nil, s, Options{
		Now: func() time.Time { return time.Unix(1e9, 0) }, Draw: func() float64 { return 0 },
		Wait: func(context.Context, time.Duration) error { return nil },
	})
	return &pass{c: c, report: Report{Outcomes: map[string]int{}, Kinds: map[string]int{}}, adm: &Admission{gate: c.gate, Limit: c.o.MaxDocuments}}
}

func numbered(n int) []Item {
	items := make([]Item, n)
	for i := range items {
		items[i] = Item{DocumentID: string(rune('a'+i%26)) + string(rune('0'+i/26)), Main: int64(i + 1)}
	}
	return items
}

// Promise G6: a bad document fails alone, and finding it costs about 2k*log2(n/k)+2k requests: the tree of halves has at
// most k refused requests on each level, and fewer than k above the level that has room for k.
func TestBisectBlamesTheBadDocumentsAndNobodyElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 100).Draw(t, "n")
		items := numbered(n)
		s := &scriptedSink{bad: map[string]bool{}}
		for i := range items {
			if rapid.IntRange(0, 9).Draw(t, "bad") == 0 {
				s.bad[items[i].DocumentID] = true
			}
		}
		results, done, err := scripted(s).apply(context.Background(), items)
		require.NoError(t, err)
		for i, it := range items {
			require.True(t, done[i])
			require.Equal(t, s.bad[it.DocumentID], results[i].failed(), it.DocumentID)
		}
		k := float64(len(s.bad))
		if k == 0 {
			require.Len(t, s.requests, 1)
			return
		}
		levels := math.Ceil(math.Log2(float64(n))) - math.Floor(math.Log2(k))
		most := 2*(k*levels+k-1) + 1
		require.LessOrEqual(t, float64(len(s.requests)), most, "%d bad of %d", len(s.bad), n)
	})
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
		require.Len(t, r, 5, "a lost race is nobody's fault: the whole request is repeated")
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
	s := &scriptedSink{bad: map[string]bool{"d0": true}, fail: func(request int, _ []string) error {
		if request == 4 {
			return fault.New(fault.Infrastructure, "sql: apply", "eof", "the connection was cut")
		}
		return nil
	}}
	_, done, err := scripted(s).apply(context.Background(), numbered(4))
	require.True(t, fault.IsDependency(err))
	require.Equal(t, []bool{true, true, false, false}, done, "the first half is in SQL, the rest is as it was")
}

func TestPlanNeverSplitsADocumentAndKeepsTheBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 60).Draw(t, "n")
		items := make([]Item, n)
		for i := range items {
			items[i].Duplicates = make([]int64, rapid.SampledFrom([]int{0, 0, 1, 5, 40, 120}).Draw(t, "duplicates"))
		}
		next := 0
		for _, part := range plan(items, 10, 100) {
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
