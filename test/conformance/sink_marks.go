package conformance

import (
	"slices"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/adopt"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/invoice"
	"sqlwriter/test/mapping"
)

// markCases: a failure mark writes one status, and never over content that is there after all.
func markCases() []sinkCase {
	return []sinkCase{
		{"a mark on untouched lines writes the status and nothing else", nil, markFresh},
		{"a mark leaves every other value and the tracking row as they were", nil, markTouchesOnlyStatus},
		{"a mark against lines that hold this very content is skipped", nil, markAgainstApplied},
		{"a mark for other content of the document is written", nil, markOtherContent},
		{"a mark leaves content of another hash version alone", nil, markOtherVersion},
		{"a mark from an older snapshot than the ledger's is superseded", nil, markOlderSnapshot},
		{"a mark of an older document is superseded", nil, markSuperseded},
		{"a mark of a newer document takes the line over", nil, markTakesOver},
		{"after a mark the content can be written, also from the same snapshot", nil, contentAfterMark},
		{"after a mark a rewrite of what cannot be compared restores the line", nil, rewriteAfterMark},
		{"a mark against a row just applied and then corrected, and a rewrite after it", nil, markAfterApplied},
		{"a mark loses only the line that is missing", nil, markMissingLine},
		{"a mark none of whose lines exist is missing", nil, markAllMissing},
		{"a mark and content of one document in one request", nil, markAndContent},
		{"marks and contents of several documents in one request", nil, markAmongOthers},
	}
}

// withStatus is a row with a mark on it.
func withStatus(r SinkRow) SinkRow {
	r.Values = slices.Clone(r.Values)
	for i, c := range mapping.InUse().Columns() {
		if c.Table == invoice.Detail && c.Status {
			r.Values[i] = invoice.Of(invoice.StatusAIError)
		}
	}
	return r
}

// marked requires that the ledger has a mark of an item and the row is as it was but for the status.
func (s *sinkTest) marked(it commit.Item, before SinkRow, line int64) {
	s.Helper()
	require.Equal(s, withStatus(before), s.h.Row(s, line), "line %d", line)
	l, ok := s.h.Ledger(s, line)
	require.True(s, ok)
	require.Equal(s, ledgerOf(mark(it), line), l)
}

func markFresh(s *sinkTest) {
	s.h.AddLines(s, 1, 2)
	a := doc("a", 10, 5, "x", 1, 2)
	s.gives(mark(a), "applied(applied applied)")
	for _, line := range []int64{1, 2} {
		s.marked(a, SinkRow{Detail: true, Values: nullValues()}, line)
		require.False(s, s.h.Row(s, line).Tracking, "no tracking row is made")
	}
}

func markTouchesOnlyStatus(s *sinkTest) {
	s.h.AddLines(s, 1)
	old := doc("old", 9, 5, "w", 1)
	s.gives(old, "applied(applied)")
	before := s.h.Row(s, 1)
	a := doc("a", 10, 5, "x", 1)
	s.gives(mark(a), "applied(applied)")
	s.marked(a, before, 1)
}

func markAgainstApplied(s *sinkTest) {
	s.h.AddLines(s, 1, 2)
	a := doc("a", 10, 5, "x", 1, 2)
	s.gives(a, "applied(applied applied)")
	s.gives(mark(a), "unchanged(unchanged unchanged)")
	s.holds(a)
	a.SourceTS = 6
	s.gives(mark(a), "unchanged(unchanged unchanged)")
	s.holds(a)
}

func markOtherContent(s *sinkTest) {
	s.h.AddLines(s, 1)
	a, b := doc("a", 10, 5, "x", 1), doc("a", 10, 6, "y", 1)
	s.gives(a, "applied(applied)")
	before := s.h.Row(s, 1)
	s.gives(mark(b), "applied(applied)")
	s.marked(b, before, 1)
	s.gives(a, "superseded(superseded)")
	s.marked(b, before, 1)
}

// Nobody can tell whether the content that failed is the one that the line has.
func markOtherVersion(s *sinkTest) {
	s.h.AddLines(s, 1, 2)
	s.gives(otherRecipe(doc("a", 10, 5, "x", 1)), "applied(applied)")
	adopted := ledgerOf(doc("a", 10, 5, "x", 2), 2)
	adopted.Outcome, adopted.HashVersion, adopted.DetailHash, adopted.TrackingHash = "adopted", adopt.Unproven, "", ""
	s.h.SetLedger(s, 2, adopted)
	s.edit(1)
	before := s.state(1, 2)
	for _, ts := range []int64{4, 5, 6} {
		for _, mode := range []commit.Mode{commit.Preview, commit.Write, commit.Rewrite} {
			s.givesIn(mode, []string{"not_comparable(not_comparable not_comparable)"},
				mark(doc("a", 10, ts, "y", 1, 2)))
			require.Equal(s, before, s.state(1, 2))
		}
	}
	// the mark is of a later snapshot than the content beside it
	s.givesIn(commit.Write, []string{"superseded(superseded)", "not_comparable(not_comparable)"},
		doc("a", 10, 6, "y", 1), mark(doc("a", 10, 7, "z", 1)))
	require.Equal(s, before, s.state(1, 2))
	newer := doc("b", 11, 1, "z", 1, 2)
	s.gives(mark(newer), "applied(applied applied)")
	for _, line := range []int64{1, 2} {
		s.marked(newer, before[line].Row, line)
	}
}

func markOlderSnapshot(s *sinkTest) {
	s.h.AddLines(s, 1)
	a := doc("a", 10, 5, "x", 1)
	s.gives(a, "applied(applied)")
	s.gives(mark(doc("a", 10, 4, "y", 1)), "superseded(superseded)")
	s.holds(a)
}

func markSuperseded(s *sinkTest) {
	s.h.AddLines(s, 1, 2)
	newer, a := doc("new", 11, 1, "y", 1, 2), doc("a", 10, 5, "x", 1, 2)
	s.gives(newer, "applied(applied applied)")
	o := s.gives(mark(a), "superseded(superseded superseded)")
	require.Equal(s, "new", o.SupersededBy)
	s.holds(newer)
}

func markTakesOver(s *sinkTest) {
	s.h.AddLines(s, 1)
	old, a := doc("old", 9, 5, "x", 1), doc("a", 10, 1, "x", 1)
	s.gives(old, "applied(applied)")
	before := s.h.Row(s, 1)
	s.gives(mark(a), "applied(applied)")
	s.marked(a, before, 1)
	o := s.gives(old, "superseded(superseded)")
	require.Equal(s, "a", o.SupersededBy)
	s.marked(a, before, 1)
}

func contentAfterMark(s *sinkTest) {
	s.h.AddLines(s, 1, 2)
	a := doc("a", 10, 5, "x", 1, 2)
	s.gives(mark(a), "applied(applied applied)")
	s.gives(a, "applied(applied applied)")
	s.holds(a)
	s.gives(a, "unchanged(unchanged unchanged)")
}

func rewriteAfterMark(s *sinkTest) {
	s.h.AddLines(s, 1)
	a := doc("a", 10, 5, "x", 1)
	s.gives(a, "applied(applied)")
	s.gives(mark(doc("a", 10, 6, "y", 1)), "applied(applied)")
	s.givesIn(commit.Rewrite, []string{"superseded(superseded)"}, a)
	a.SourceTS = 6
	a.NotComparable = true
	s.givesIn(commit.Rewrite, []string{"applied(applied)"}, a)
	s.holds(a)
}

func markAfterApplied(s *sinkTest) {
	s.h.AddLines(s, 1, 2)
	a := doc("a", 10, 5, "x", 1, 2)
	s.gives(a, "applied(applied applied)")
	s.gives(mark(a), "unchanged(unchanged unchanged)")
	edited := s.edit(2)
	s.gives(mark(a), "unchanged(unchanged unchanged)")
	require.Equal(s, edited, s.h.Row(s, 2), "what is there after all is not marked")
	a.Overwrite = []int64{2}
	s.givesIn(commit.Rewrite, []string{"applied(applied applied)"}, a)
	s.holds(a)
	s.gives(mark(a), "unchanged(unchanged unchanged)")
	s.holds(a)
}

func markMissingLine(s *sinkTest) {
	s.h.AddLines(s, 1, 3)
	a := doc("a", 10, 5, "x", 1, 2, 3)
	o := s.gives(mark(a), "applied(applied missing applied)")
	require.Equal(s, []int64{2}, o.Missing())
	s.marked(a, SinkRow{Detail: true, Values: nullValues()}, 1)
	s.marked(a, SinkRow{Detail: true, Values: nullValues()}, 3)
	_, ok := s.h.Ledger(s, 2)
	require.False(s, ok, "the ledger says nothing of a line that does not exist")
}

func markAllMissing(s *sinkTest) {
	o := s.gives(mark(doc("a", 10, 5, "x", 1, 2)), "missing(missing missing)")
	require.Equal(s, []int64{1, 2}, o.Missing())
}

func markAndContent(s *sinkTest) {
	s.h.AddLines(s, 1, 2)
	a, b := doc("a", 10, 5, "x", 1), doc("a", 10, 6, "y", 1)
	s.givesIn(commit.Write, []string{"unchanged(unchanged)", "applied(applied)"}, mark(b), b)
	s.holds(b)
	a.Main, b.Main = 2, 2
	s.givesIn(commit.Write, []string{"applied(applied)", "superseded(superseded)"}, mark(b), a)
	s.marked(b, SinkRow{Detail: true, Values: nullValues()}, 2)
}

func markAmongOthers(s *sinkTest) {
	s.h.AddLines(s, 1, 2, 3)
	s.gives(doc("old", 1, 5, "w", 2), "applied(applied)")
	before := s.h.Row(s, 2)
	require.True(s, before.Tracking)
	a, b, c := doc("a", 10, 5, "x", 1, 2), doc("b", 11, 5, "y", 2, 3), doc("c", 12, 5, "z", 3)
	s.givesIn(commit.Write,
		[]string{"applied(applied superseded)", "applied(applied superseded)", "applied(applied)"}, a, mark(b), c)
	s.holds(a, 1)
	s.marked(b, before, 2)
	s.holds(c, 3)
}
