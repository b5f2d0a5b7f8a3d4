package porttest

import (
	"context"
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/writer"
)

// faultCases: what fails leaves nothing behind, and a race that is lost is noticed.
func faultCases() []sinkCase {
	return []sinkCase{
		{"a value that the database refuses fails the whole request, as a document's error", []string{"Refuse"}, refusedValue},
		{"a refused value in the only document", []string{"Refuse"}, refusedAlone},
		{"an error after any statement leaves nothing", []string{"FailAfter"}, errorAfterEachStep},
		{"a call whose context has ended is infrastructure and writes nothing", nil, cancelledBefore},
		{"a call whose context ends on the way is infrastructure and writes nothing", []string{"During"}, cancelledWithin},
		{"newer's UPDATE, the older one whole, newer's INSERT: contention, and then the newer", []string{"During"}, olderBetween},
		{"the same document twice at once: contention or unchanged, and one content", []string{"During"}, sameBetween},
		{"newer's UPDATE, a still newer one whole, newer's INSERT: superseded", []string{"During"}, newerBetween},
		{"a tracking row that somebody else makes in between is contention, and then updated", []string{"During"}, trackingBetween},
	}
}

func refusedValue(s *sinkTest) {
	const n = 100
	s.h.AddLines(s, span(1, n)...)
	s.h.Refuse(s, "refused")
	before := s.state(span(1, n)...)
	for _, bad := range []int{0, n / 2, n - 1} {
		items := make([]writer.Item, n)
		for i := range items {
			items[i] = doc(fmt.Sprint("doc", i), 10, 5, fmt.Sprint("content", i), int64(i+1))
		}
		items[bad].Values[0].Text = "refused"
		s.fails(fault.Document, writer.Write, items...)
		require.Equal(s, before, s.state(span(1, n)...), "bad one at %d", bad)
		good := append(append([]writer.Item(nil), items[:bad]...), items[bad+1:]...)
		s.apply(writer.Preview, good...)
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
	b.Values[0].Text = "refused"
	s.fails(fault.Document, writer.Write, b)
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
		out, err := s.h.Sink.Apply(s.Context(), items, writer.Write)
		require.Error(s, err, "the request reaches %s", step)
		require.Nil(s, out)
		require.Equal(s, before, s.state(lines...), "after %s", step)
	}
	o := s.apply(writer.Write, items...)
	require.Equal(s, "applied(applied applied)", inShort(o[9]), "and without the error it is written")
}

func cancelledBefore(s *sinkTest) {
	s.h.AddLines(s, 1)
	before := s.state(1)
	for _, mode := range []writer.Mode{writer.Write, writer.Preview} {
		ctx, cancel := context.WithCancel(s.Context())
		cancel()
		out, err := s.h.Sink.Apply(ctx, []writer.Item{doc("a", 10, 5, "x", 1)}, mode)
		require.Nil(s, out)
		require.Equal(s, fault.Infrastructure, fault.KindOf(err), "%v", err)
		require.ErrorIs(s, err, context.Canceled)
	}
	ctx, cancel := context.WithDeadline(s.Context(), time.Unix(0, 0))
	defer cancel()
	_, err := s.h.Sink.Apply(ctx, []writer.Item{doc("a", 10, 5, "x", 1)}, writer.Write)
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
		out, err := s.h.Sink.Apply(ctx, []writer.Item{a}, writer.Write)
		cancel()
		require.Nil(s, out)
		require.Equal(s, fault.Infrastructure, fault.KindOf(err), "%s: %v", step, err)
		require.Equal(s, before, s.state(1, 2), "after %s", step)
	}
	s.gives(a, "applied(applied applied)")
	s.holds(a)
}

// between runs one item's whole request inside another's, between its two writes to the ledger.
func (s *sinkTest) between(outer, inner writer.Item, want string) error {
	s.Helper()
	ran := false
	s.h.During(s, StepLedgerUpdate, func(in Inside) {
		out, err := in.Sink.Apply(s.Context(), []writer.Item{inner}, writer.Write)
		require.NoError(s, err)
		require.Equal(s, want, inShort(out[0]))
		ran = true
	})
	out, err := s.h.Sink.Apply(s.Context(), []writer.Item{outer}, writer.Write)
	require.True(s, ran)
	if err == nil {
		require.Equal(s, outer.DocumentID, out[0].DocumentID)
		require.Equal(s, writer.Superseded, out[0].Verdict)
	}
	return err
}

func olderBetween(s *sinkTest) {
	s.h.AddLines(s, 1, 2)
	older, newer := doc("old", 10, 5, "x", 1, 2), doc("new", 11, 5, "y", 1, 2)
	err := s.between(newer, older, "applied(applied applied)")
	require.Equal(s, fault.Contention, fault.KindOf(err), "%v", err)
	require.Equal(s, "verdict_without_evidence", fault.CodeOf(err))
	s.gives(newer, "applied(applied applied)")
	s.holds(newer)
	s.gives(older, "superseded(superseded superseded)")
	s.holds(newer)
}

func sameBetween(s *sinkTest) {
	s.h.AddLines(s, 1)
	first, second := doc("a", 10, 5, "x", 1), doc("a", 10, 6, "y", 1)
	err := s.between(second, first, "applied(applied)")
	require.Equal(s, fault.Contention, fault.KindOf(err), "%v", err)
	s.gives(second, "applied(applied)")
	s.gives(first, "superseded(superseded)")
	s.holds(second)
}

func newerBetween(s *sinkTest) {
	s.h.AddLines(s, 1)
	newer, newest := doc("new", 11, 5, "y", 1), doc("newest", 12, 5, "z", 1)
	require.NoError(s, s.between(newer, newest, "applied(applied)"))
	s.holds(newest)
}

func trackingBetween(s *sinkTest) {
	s.h.AddLines(s, 1, 2)
	a := doc("a", 10, 5, "x", 1, 2)
	s.h.During(s, StepTrackingUpdate, func(in Inside) { require.NoError(s, in.AddTracking(2)) })
	err := s.failure(fault.Contention, writer.Write, a)
	require.True(s, fault.Has(err, fault.OwnWhenAlone), "when nobody else is there it is the document's own: %v", err)
	l, ok := s.h.Ledger(s, 1)
	require.False(s, ok, "%v", l)
	s.gives(a, "applied(applied applied)")
	s.holds(a)
}
