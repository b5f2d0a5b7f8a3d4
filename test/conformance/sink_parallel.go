package conformance

import (
	"fmt"
	"sync"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// parallelCases: writers at the same time.
func parallelCases() []sinkCase {
	return []sinkCase{
		{"20 writers on overlapping lines: the newest wins and only contention surfaces", nil, twentyWriters},
		{
			"20 writers of one item: it is written once, the others find it there",
			[]string{"CountWrites"},
			oneItemTwentyTimes,
		},
	}
}

// writers is how many write at once.
const writers = 20

// insist makes a request until it is not lost to a race, as the use case does.
func (s *sinkTest) insist(items ...commit.Item) ([]commit.DocumentOutcome, error) {
	for try := 0; ; try++ {
		out, err := s.h.Sink.Apply(s.Context(), items, commit.Write, unknown(sysName))
		if fault.KindOf(err) != fault.Contention || try == 50 {
			return out, err
		}
	}
}

// all runs f n times at once and answers the errors.
func all(n int, f func(w int) error) []error {
	errs := make([]error, n)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for w := range n {
		wg.Go(func() {
			<-start
			errs[w] = f(w)
		})
	}
	close(start)
	wg.Wait()
	return errs
}

func twentyWriters(s *sinkTest) {
	const lines, rounds = 12, 6
	s.h.AddLines(s, span(1, lines)...)
	newest := map[int64]commit.Item{}
	work := make([][]commit.Item, writers)
	for w := range writers {
		for r := range rounds {
			first := int64((5*w+7*r)%lines + 1)
			a := doc(fmt.Sprintf("doc-%d-%d", w, r), int64((w*13+r*29)%40), 5, fmt.Sprint("content", w, r), first,
				first%lines+1, (first+1)%lines+1)
			for _, line := range linesOf(a) {
				if old, ok := newest[line]; !ok || old.Version.Compare(a.Version) < 0 {
					newest[line] = a
				}
			}
			work[w] = append(work[w], a)
		}
	}
	for w, err := range all(writers, func(w int) error {
		for r := 0; r < rounds; r += 2 {
			if _, err := s.insist(work[w][r], work[w][r+1]); err != nil {
				return err
			}
		}
		return nil
	}) {
		require.NoError(s, err, "writer %d", w)
	}
	for line, it := range newest {
		s.holds(it, line)
	}
}

func oneItemTwentyTimes(s *sinkTest) {
	s.h.AddLines(s, 1, 2)
	writes := s.h.CountWrites(s)
	a := doc("a", 10, 5, "x", 1, 2)
	verdicts := make([]invoice.Outcome, writers)
	for w, err := range all(writers, func(w int) error {
		out, err := s.insist(a)
		if err == nil {
			verdicts[w] = out[0].Verdict
		}
		return err
	}) {
		require.NoError(s, err, "writer %d", w)
	}
	count := map[invoice.Outcome]int{}
	for _, v := range verdicts {
		count[v]++
	}
	require.Equal(s, map[invoice.Outcome]int{invoice.OutcomeApplied: 1, invoice.OutcomeUnchanged: writers - 1}, count)
	detail, tracking := writes(2)
	require.Equal(s, []int{1, 1}, []int{detail, tracking})
	s.holds(a)
}
