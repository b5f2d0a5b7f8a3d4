package conformance

import (
	"slices"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/invoice"
	"sqlwriter/test/mapping"
)

// previewCases: a preview foretells a write and writes nothing.
func previewCases() []sinkCase {
	return []sinkCase{
		{"a preview gives the outcomes that the write then has, and writes nothing", nil, previewForetells},
		{"a preview shows the values before and after", nil, previewValues},
		{"a preview of a line that two items want shows what the winner leaves", nil, previewWinner},
		{"a preview of what a rewrite would do says unchanged: it previews a write", nil, previewIsOfWrite},
	}
}

// mixed is a request with every outcome in it, over lines prepared for it: 1 to 12 exist, 13 does not.
func (s *sinkTest) mixed() []commit.Item {
	s.Helper()
	s.h.AddLines(s, span(1, 12)...)
	same, newer, old := doc("same", 10, 5, "s", 1, 2), doc("newer", 20, 5, "n", 3), doc("old", 5, 5, "o", 4)
	s.apply(commit.Write, same, newer, old)
	later := same
	later.SourceTS = 9
	return []commit.Item{
		later,
		doc("older", 10, 5, "x", 3),
		doc("partly", 11, 5, "p", 5, 3, 6),
		doc("over", 12, 5, "v", 4),
		doc("without", 13, 5, "w", 7, 13),
		mark(doc("marked", 14, 5, "m", 8, 13)),
		doc("twice", 15, 5, "t", 9),
		doc("twice", 15, 6, "u", 9),
		mark(same),
		doc("wide", 16, 5, "d", 10, 11),
		mark(doc("over", 12, 4, "v2", 4)),
	}
}

func previewForetells(s *sinkTest) {
	items := s.mixed()
	before := s.state(span(1, 13)...)
	foretold := s.apply(commit.Preview, items...)
	require.Equal(s, before, s.state(span(1, 13)...), "a preview writes nothing")
	done := s.apply(commit.Write, items...)
	seen := map[invoice.Outcome]bool{}
	for i := range foretold {
		for j := range foretold[i].Rows {
			r := &foretold[i].Rows[j]
			require.Equal(s, before[r.DetailID].Row.Detail, r.Before != nil, "before, line %d", r.DetailID)
			if row := s.h.Row(s, r.DetailID); r.After != nil || row.Detail {
				require.Equal(s, row.Values, r.After, "after, line %d", r.DetailID)
			}
			if r.Before != nil {
				require.Equal(s, before[r.DetailID].Row.Values, r.Before)
			}
			require.Equal(s, r.Before != nil, r.Want != nil)
			r.Before, r.After, r.Want = nil, nil, nil
			seen[r.Verdict] = true
		}
	}
	require.Equal(s, done, foretold)
	for _, v := range []invoice.Outcome{
		invoice.OutcomeApplied, invoice.OutcomeUnchanged, invoice.OutcomeSuperseded, invoice.OutcomeMissing,
	} {
		require.True(s, seen[v], "the request shows %s", v)
	}
}

func previewValues(s *sinkTest) {
	s.h.AddLines(s, 1)
	a := doc("a", 10, 5, "x", 1)
	r := s.givesIn(commit.Preview, []string{"applied(applied)"}, a)[0].Rows[0]
	require.Equal(s, nullValues(), r.Before)
	require.Equal(s, mapping.InUse().RowValues(a.Values, 1, 1), r.After)
	s.gives(a, "applied(applied)")
	edited := s.edit(1)
	r = s.givesIn(commit.Preview, []string{"unchanged(unchanged)"}, a)[0].Rows[0]
	require.Equal(s, edited.Values, r.Before)
	require.Equal(s, edited.Values, r.After)
	require.Equal(s, mapping.InUse().RowValues(a.Values, 1, 1), r.Want, "what the item wants and does not get")
	r = s.givesIn(commit.Preview, []string{"applied(applied)"}, mark(doc("a", 10, 6, "y", 1)))[0].Rows[0]
	require.Equal(s, edited.Values, r.Before)
	require.Equal(s, withStatus(edited).Values, r.After)
	require.Equal(s, r.After, r.Want)
	r = s.givesIn(commit.Preview, []string{"missing(missing)"}, doc("b", 10, 6, "y", 2))[0].Rows[0]
	require.Nil(s, r.Before)
	require.Nil(s, r.After)
	require.Nil(s, r.Want)
}

func previewWinner(s *sinkTest) {
	s.h.AddLines(s, 1)
	a, b := doc("a", 10, 5, "x", 1), doc("b", 11, 5, "y", 1)
	for _, items := range [][]commit.Item{{a, b}, {b, a}} {
		for i, o := range s.apply(commit.Preview, items...) {
			require.Equal(s, mapping.InUse().RowValues(b.Values, 1, 1), o.Rows[0].After, "of %s", o.DocumentID)
			require.Equal(s, mapping.InUse().RowValues(items[i].Values, 1, 1), o.Rows[0].Want, "of %s", o.DocumentID)
		}
	}
	require.False(s, slices.ContainsFunc(s.h.Row(s, 1).Values, func(v invoice.Value) bool { return !v.Null }))
}

func previewIsOfWrite(s *sinkTest) {
	s.h.AddLines(s, 1)
	a := doc("a", 10, 5, "x", 1)
	s.gives(a, "applied(applied)")
	s.givesIn(commit.Preview, []string{"unchanged(unchanged)"}, a)
}
