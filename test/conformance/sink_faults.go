package conformance

import (
	"context"
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
)

// faultCases: what fails leaves nothing behind.
func faultCases() []sinkCase {
	return []sinkCase{
		{
			"a value that the database refuses fails the whole request, as a document's error",
			[]string{"Refuse"},
			refusedValue,
		},
		{"a refused value in the only document", []string{"Refuse"}, refusedAlone},
		{"an error after any statement leaves nothing", []string{"FailAfter"}, errorAfterEachStep},
		{"a call whose context has ended is infrastructure and writes nothing", nil, cancelledBefore},
		{
			"a call whose context ends on the way is infrastructure and writes nothing",
			[]string{"During"},
			cancelledWithin,
		},
	}
}

func refusedValue(s *sinkTest) {
	const n = 100
	s.h.AddLines(s, span(1, n)...)
	s.h.Refuse(s, "refused")
	before := s.state(span(1, n)...)
	for _, bad := range []int{0, n / 2, n - 1} {
		items := make([]commit.Item, n)
		for i := range items {
			items[i] = doc(fmt.Sprint("doc", i), 10, 5, fmt.Sprint("content", i), int64(i+1))
		}
		items[bad] = replaced(items[bad], 0, "refused")
		s.fails(fault.Document, commit.Write, items...)
		require.Equal(s, before, s.state(span(1, n)...), "bad one at %d", bad)
		good := append(append([]commit.Item(nil), items[:bad]...), items[bad+1:]...)
		s.apply(commit.Preview, good...)
	}
	s.gives(doc("good", 11, 5, "good", 1), "applied(applied)")
}

func refusedAlone(s *sinkTest) {
	s.h.AddLines(s, 1, 2)
	a := doc("a", 10, 5, "x", 1, 2)
	s.gives(a, "applied(applied applied)")
	s.h.Refuse(s, "refused")
	before := s.state(1, 2)
	b := doc("b", 11, 5, "y", 1, 2)
	b = replaced(b, 0, "refused")
	s.fails(fault.Document, commit.Write, b)
	require.Equal(s, before, s.state(1, 2), "the ledger does not name what was not written")
	s.gives(a, "unchanged(unchanged unchanged)")
}

func errorAfterEachStep(s *sinkTest) {
	items := s.mixed()
	lines := span(1, 13)
	before := s.state(lines...)
	require.NotEmpty(s, s.h.Steps)
	for _, step := range s.h.Steps {
		s.h.FailAfter(s, step)
		out, err := s.h.Sink.Apply(s.Context(), items, commit.Write, unknown(sysName))
		require.Error(s, err, "the request reaches %s", step)
		require.Nil(s, out)
		require.Equal(s, before, s.state(lines...), "after %s", step)
	}
	o := s.apply(commit.Write, items...)
	require.Equal(s, "applied(applied applied)", inShort(o[9]), "and without the error it is written")
}

func cancelledBefore(s *sinkTest) {
	s.h.AddLines(s, 1)
	before := s.state(1)
	for _, mode := range []commit.Mode{commit.Write, commit.Preview} {
		ctx, cancel := context.WithCancel(s.Context())
		cancel()
		out, err := s.h.Sink.Apply(ctx, []commit.Item{doc("a", 10, 5, "x", 1)}, mode, unknown(sysName))
		require.Nil(s, out)
		require.Equal(s, fault.Infrastructure, fault.KindOf(err), "%v", err)
		require.ErrorIs(s, err, context.Canceled)
	}
	ctx, cancel := context.WithDeadline(s.Context(), time.Unix(0, 0))
	defer cancel()
	_, err := s.h.Sink.Apply(ctx, []commit.Item{doc("a", 10, 5, "x", 1)}, commit.Write, unknown(sysName))
	require.Equal(s, fault.Infrastructure, fault.KindOf(err), "%v", err)
	require.ErrorIs(s, err, context.DeadlineExceeded)
	require.Equal(s, before, s.state(1))
	s.gives(doc("a", 10, 5, "x", 1), "applied(applied)")
}

func cancelledWithin(s *sinkTest) {
	s.h.AddLines(s, 1, 2)
	before := s.state(1, 2)
	a := doc("a", 10, 5, "x", 1, 2)
	for _, step := range []string{StepLedgerUpdate, StepDetailUpdate, StepTrackingUpdate} {
		ctx, cancel := context.WithCancel(s.Context())
		s.h.During(s, step, func(Inside) { cancel() })
		out, err := s.h.Sink.Apply(ctx, []commit.Item{a}, commit.Write, unknown(sysName))
		cancel()
		require.Nil(s, out)
		require.Equal(s, fault.Infrastructure, fault.KindOf(err), "%s: %v", step, err)
		require.Equal(s, before, s.state(1, 2), "after %s", step)
	}
	s.gives(a, "applied(applied applied)")
	s.holds(a)
}
