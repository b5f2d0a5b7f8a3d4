package conformance

import (
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
)

// raceCases: two requests on one line, interleaved statement by statement; a race that is lost is noticed. Without a
// ledger row nothing holds the second request up. With one, an engine with row locks makes it wait behind the first and
// give up, and an engine with one writer runs it whole within the first: both end alike.
func raceCases() []sinkCase {
	during := []string{"During"}
	return []sinkCase{
		{
			"newer's UPDATE, the older one whole, newer's INSERT: contention, and then the newer",
			during, olderBetween("new"),
		},
		{
			"a document whose id has percent signs loses a race: contention, and then the newer", during,
			olderBetween("%d %s 100%"),
		},
		{"the same document twice at once: contention or unchanged, and one content", during, sameBetween},
		{"the very same item twice at once, without a ledger row: unchanged, and one content", during, verySameBetween},
		{"newer's UPDATE, a still newer one whole, newer's INSERT: superseded", during, newerBetween},
		{"with a ledger row: the older one whole after newer's UPDATE stays out", during, olderAfterUpdate},
		{
			"with a ledger row: the older one whole just before newer's UPDATE is written over",
			during, olderBeforeUpdate,
		},
		{"with a ledger row: a still newer one whole after newer's UPDATE ends on top", during, newerAfterUpdate},
		{"with a ledger row: the newer one whole just before older's UPDATE: superseded", during, newerBeforeUpdate},
		{
			"with a ledger row: an earlier snapshot of the document whole after the later's UPDATE stays out",
			during, snapshotAfterUpdate,
		},
		{"with a ledger row: the very same item twice at once is written once", during, verySameBeforeUpdate},
		{
			"a detail row that somebody else deletes in between is contention, and nothing is written",
			during, detailGoneBetween,
		},
		{
			"a detail row that somebody else deletes before a mark is contention, and nothing is marked",
			during, detailGoneBeforeMark,
		},
		{"a tracking row that somebody else makes in between is contention, and then updated", during, trackingBetween},
	}
}

// race is what two requests answered, of which the inner ran whole between two statements of the outer.
type race struct {
	outer, inner       string // in short; "" with an error
	outerErr, innerErr error
}

// race runs one item's whole request inside another's, right after a step.
func (s *sinkTest) race(step string, outer, inner commit.Item) race {
	s.Helper()
	var r race
	ran := false
	s.h.During(s, step, func(in Inside) {
		ran = true
		out, err := in.Sink.Apply(s.Context(), []commit.Item{inner}, commit.Write, unknown(sysName))
		if r.innerErr = err; err == nil {
			r.inner = inShort(out[0])
		}
	})
	out, err := s.h.Sink.Apply(s.Context(), []commit.Item{outer}, commit.Write, unknown(sysName))
	require.True(s, ran, "the request came to %s", step)
	if r.outerErr = err; err == nil {
		r.outer = inShort(out[0])
	}
	return r
}

// beforeUpdate is the step that a request has behind it when it begins to write the ledger.
func (s *sinkTest) beforeUpdate() string {
	s.Helper()
	i := slices.Index(s.h.Steps, StepLedgerUpdate)
	require.Positive(s, i, "the harness names its steps, %s not the first of them", StepLedgerUpdate)
	return s.h.Steps[i-1]
}

// innerLost requires that the inner request did not write: superseded where it could run, contention where it had to
// wait.
func (s *sinkTest) innerLost(r race) {
	s.Helper()
	if r.innerErr != nil {
		require.Equal(s, fault.Contention, fault.KindOf(r.innerErr), "%v", r.innerErr)
		return
	}
	require.Equal(s, "superseded(superseded)", r.inner)
}

// olderBetween is a case: the newer document has an id, which may be part of what the database says of it.
func olderBetween(id string) func(*sinkTest) {
	return func(s *sinkTest) {
		s.h.AddLines(s, 1, 2)
		older, newer := doc("old", 10, 5, "x", 1, 2), doc(id, 11, 5, "y", 1, 2)
		r := s.race(StepLedgerUpdate, newer, older)
		require.NoError(s, r.innerErr)
		require.Equal(s, "applied(applied applied)", r.inner)
		require.Equal(s, fault.Contention, fault.KindOf(r.outerErr), "%v", r.outerErr)
		require.Equal(s, "verdict_without_evidence", fault.CodeOf(r.outerErr))
		require.Contains(s, strings.ReplaceAll(r.outerErr.Error(), "%%", "%"), id,
			"an engine may keep a sign that is doubled for another")
		s.gives(newer, "applied(applied applied)")
		s.holds(newer)
		s.gives(older, "superseded(superseded superseded)")
		s.holds(newer)
	}
}

func sameBetween(s *sinkTest) {
	s.h.AddLines(s, 1)
	first, second := doc("a", 10, 5, "x", 1), doc("a", 10, 6, "y", 1)
	r := s.race(StepLedgerUpdate, second, first)
	require.NoError(s, r.innerErr)
	require.Equal(s, "applied(applied)", r.inner)
	require.Equal(s, fault.Contention, fault.KindOf(r.outerErr), "%v", r.outerErr)
	s.gives(second, "applied(applied)")
	s.gives(first, "superseded(superseded)")
	s.holds(second)
}

func verySameBetween(s *sinkTest) {
	s.h.AddLines(s, 1)
	a := doc("a", 10, 5, "x", 1)
	r := s.race(StepLedgerUpdate, a, a)
	require.NoError(s, r.innerErr)
	require.NoError(s, r.outerErr)
	require.Equal(s, []string{"applied(applied)", "unchanged(unchanged)"}, []string{r.inner, r.outer})
	s.holds(a)
}

func newerBetween(s *sinkTest) {
	s.h.AddLines(s, 1)
	newer, newest := doc("new", 11, 5, "y", 1), doc("newest", 12, 5, "z", 1)
	r := s.race(StepLedgerUpdate, newer, newest)
	require.NoError(s, r.innerErr)
	require.NoError(s, r.outerErr)
	require.Equal(s, []string{"applied(applied)", "superseded(superseded)"}, []string{r.inner, r.outer})
	s.holds(newest)
}

// known gives line 1 a ledger row of an old document.
func (s *sinkTest) known() {
	s.Helper()
	s.h.AddLines(s, 1)
	s.gives(doc("base", 1, 5, "w", 1), "applied(applied)")
}

func olderAfterUpdate(s *sinkTest) {
	s.known()
	older, newer := doc("old", 10, 5, "x", 1), doc("new", 11, 5, "y", 1)
	r := s.race(StepLedgerUpdate, newer, older)
	s.innerLost(r)
	require.NoError(s, r.outerErr)
	require.Equal(s, "applied(applied)", r.outer)
	s.holds(newer)
	require.Equal(s, "new", s.gives(older, "superseded(superseded)").SupersededBy)
}

func olderBeforeUpdate(s *sinkTest) {
	s.known()
	older, newer := doc("old", 10, 5, "x", 1), doc("new", 11, 5, "y", 1)
	r := s.race(s.beforeUpdate(), newer, older)
	require.NoError(s, r.innerErr)
	require.NoError(s, r.outerErr)
	require.Equal(s, []string{"applied(applied)", "applied(applied)"}, []string{r.inner, r.outer})
	s.holds(newer)
}

func newerAfterUpdate(s *sinkTest) {
	s.known()
	newer, newest := doc("new", 11, 5, "y", 1), doc("newest", 12, 5, "z", 1)
	r := s.race(StepLedgerUpdate, newer, newest)
	require.NoError(s, r.outerErr)
	if r.innerErr == nil { // the outer one was overtaken and must say so
		require.Equal(s, []string{"applied(applied)", "superseded(superseded)"}, []string{r.inner, r.outer})
		s.holds(newest)
		return
	}
	require.Equal(s, fault.Contention, fault.KindOf(r.innerErr), "%v", r.innerErr)
	require.Equal(s, "applied(applied)", r.outer)
	s.holds(newer)
	s.gives(newest, "applied(applied)")
	s.holds(newest)
}

func newerBeforeUpdate(s *sinkTest) {
	s.known()
	older, newer := doc("old", 10, 5, "x", 1), doc("new", 11, 5, "y", 1)
	r := s.race(s.beforeUpdate(), older, newer)
	require.NoError(s, r.innerErr)
	require.NoError(s, r.outerErr)
	require.Equal(s, []string{"applied(applied)", "superseded(superseded)"}, []string{r.inner, r.outer})
	s.holds(newer)
}

func snapshotAfterUpdate(s *sinkTest) {
	s.h.AddLines(s, 1)
	s.gives(doc("a", 10, 4, "w", 1), "applied(applied)")
	earlier, later := doc("a", 10, 5, "x", 1), doc("a", 10, 6, "y", 1)
	r := s.race(StepLedgerUpdate, later, earlier)
	s.innerLost(r)
	require.NoError(s, r.outerErr)
	require.Equal(s, "applied(applied)", r.outer)
	s.holds(later)
	s.gives(earlier, "superseded(superseded)")
}

func verySameBeforeUpdate(s *sinkTest) {
	s.known()
	a := doc("a", 10, 5, "x", 1)
	r := s.race(s.beforeUpdate(), a, a)
	require.NoError(s, r.innerErr)
	require.NoError(s, r.outerErr)
	require.Equal(s, []string{"applied(applied)", "unchanged(unchanged)"}, []string{r.inner, r.outer})
	s.holds(a)
}

// detailGone deletes a line's detail row while a request that has written the ledger is under way.
func (s *sinkTest) detailGone(it commit.Item) {
	s.Helper()
	s.h.AddLines(s, 1, 2)
	before := s.h.Row(s, 1)
	s.h.During(s, StepLedgerUpdate, func(in Inside) { require.NoError(s, in.DropDetail(2)) })
	err := s.failure(fault.Contention, commit.Write, it)
	require.True(s, fault.Has(err, fault.OwnWhenAlone), "when nobody else is there it is the document's own: %v", err)
	require.Equal(s, before, s.h.Row(s, 1))
	l, ok := s.h.Ledger(s, 1)
	require.False(s, ok, "%v", l)
}

func detailGoneBetween(s *sinkTest) { s.detailGone(doc("a", 10, 5, "x", 1, 2)) }

func detailGoneBeforeMark(s *sinkTest) { s.detailGone(mark(doc("a", 10, 5, "x", 1, 2))) }

func trackingBetween(s *sinkTest) {
	s.h.AddLines(s, 1, 2)
	a := doc("a", 10, 5, "x", 1, 2)
	s.h.During(s, StepTrackingUpdate, func(in Inside) { require.NoError(s, in.AddTracking(2)) })
	err := s.failure(fault.Contention, commit.Write, a)
	require.True(s, fault.Has(err, fault.OwnWhenAlone), "when nobody else is there it is the document's own: %v", err)
	l, ok := s.h.Ledger(s, 1)
	require.False(s, ok, "%v", l)
	s.gives(a, "applied(applied applied)")
	s.holds(a)
}
