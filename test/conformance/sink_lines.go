package conformance

import (
	"fmt"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/invoice"
	"sqlwriter/test/mapping"
)

// lineCases: missing lines, many duplicates, batches of all sizes, and ids that look alike.
func lineCases() []sinkCase {
	return []sinkCase{
		{"a missing main line leaves the document out", nil, missingMain},
		{"a missing duplicate leaves the whole document out", nil, missingDuplicate},
		{"a missing line fails nobody else in the request", nil, missingFailsNobody},
		{"the newer of two on one line is missing another: the older one is written", nil, newerMissing},
		{"the newer of two on one line is good: the older one's other lines are written", nil, newerGood},
		{"0 duplicates", nil, duplicates(0)},
		{"1 duplicate", nil, duplicates(1)},
		{"10 duplicates", nil, duplicates(10)},
		{"500 duplicates", nil, duplicates(500)},
		{"2,500 duplicates in one request", nil, duplicates(2500)},
		{"a batch of 1", nil, batchOf(1)},
		{"a batch of 100", nil, batchOf(100)},
		{"a batch of 1,000", nil, batchOf(1000)},
		{"ids that differ by case or a trailing blank only are different documents", nil, idsThatLookAlike},
		{"a line becomes another document's duplicate and a main line again", nil, roleChanges},
		{"a tracking row that is there is updated, one that is absent is made", nil, trackingPresentAndAbsent},
	}
}

func missingMain(s *sinkTest) {
	s.h.AddLines(s, 2)
	before := s.state(1, 2)
	o := s.gives(doc("a", 10, 5, "x", 1, 2), "missing(missing -)")
	require.Equal(s, []int64{1}, o.Missing())
	require.Empty(s, o.SupersededBy)
	require.Equal(s, before, s.state(1, 2))
}

func missingDuplicate(s *sinkTest) {
	s.h.AddLines(s, 1, 3)
	before := s.state(1, 2, 3, 4)
	o := s.gives(doc("a", 10, 5, "x", 1, 2, 3, 4), "missing(- missing - missing)")
	require.Equal(s, []int64{2, 4}, o.Missing())
	require.Equal(s, before, s.state(1, 2, 3, 4))
	s.h.AddLines(s, 2, 4)
	a := doc("a", 10, 5, "x", 1, 2, 3, 4)
	s.gives(a, "applied(applied applied applied applied)")
	s.holds(a)
}

func missingFailsNobody(s *sinkTest) {
	s.h.AddLines(s, 1, 2, 4)
	a, b, c := doc("a", 10, 5, "x", 1), doc("b", 11, 5, "y", 2, 3), doc("c", 12, 5, "z", 4)
	s.givesIn(commit.Write, []string{"applied(applied)", "missing(- missing)", "applied(applied)"}, a, b, c)
	s.holds(a)
	s.holds(c)
	_, ok := s.h.Ledger(s, 2)
	require.False(s, ok)
}

func newerMissing(s *sinkTest) {
	s.h.AddLines(s, 1, 2)
	older, newer := doc("old", 10, 5, "x", 1, 2), doc("new", 11, 5, "y", 1, 99)
	s.givesIn(commit.Write, []string{"missing(- missing)", "applied(applied applied)"}, newer, older)
	s.holds(older)
}

func newerGood(s *sinkTest) {
	s.h.AddLines(s, 1, 2, 3)
	older, newer := doc("old", 10, 5, "x", 1, 2), doc("new", 11, 5, "y", 1, 3)
	s.givesIn(commit.Write, []string{"applied(applied applied)", "applied(superseded applied)"}, newer, older)
	s.holds(newer)
	s.holds(older, 2)
}

// duplicates is a case: a document with n duplicates is one request, whatever caps the caller has.
func duplicates(n int) func(*sinkTest) {
	return func(s *sinkTest) {
		lines := span(1000, n+1)
		s.h.AddLines(s, lines...)
		a := doc("a", 10, 5, "x", lines...)
		for _, want := range []invoice.Outcome{invoice.OutcomeApplied, invoice.OutcomeUnchanged} {
			o := s.apply(commit.Write, a)[0]
			require.Equal(s, want, o.Verdict)
			for _, r := range o.Rows {
				require.Equal(s, want, r.Verdict)
			}
		}
		s.holds(a)
	}
}

// batchOf is a case: n documents with a main line and a duplicate each.
func batchOf(n int) func(*sinkTest) {
	return func(s *sinkTest) {
		s.h.AddLines(s, span(1, 2*n)...)
		items := make([]commit.Item, n)
		for i := range items {
			items[i] = doc(fmt.Sprintf("doc-%d", i), int64(1+i%7), 5, fmt.Sprintf("content %d", i),
				int64(2*i+2), int64(2*i+1))
		}
		for _, o := range s.apply(commit.Write, items...) {
			require.Equal(s, "applied(applied applied)", inShort(o))
		}
		for _, it := range items {
			s.holds(it)
		}
		for _, o := range s.apply(commit.Write, items...) {
			require.Equal(s, "unchanged(unchanged unchanged)", inShort(o))
		}
	}
}

func idsThatLookAlike(s *sinkTest) {
	ids := []string{"doc a", "Doc a", "doc a ", "doc a.", "döc a", "do\u0308c a"}
	for i, id := range ids {
		line := int64(i + 1)
		s.h.AddLines(s, line)
		a := doc(id, 10, 5, "x", line)
		s.gives(a, "applied(applied)")
		s.holds(a)
		for _, other := range ids {
			b := doc(other, 10, 5, "x", line)
			switch b.Version.Compare(a.Version) {
			case 0:
				s.gives(b, "unchanged(unchanged)")
			case 1:
				s.gives(b, "applied(applied)")
				a = b
			default:
				require.Equal(s, a.DocumentID, s.gives(b, "superseded(superseded)").SupersededBy)
			}
		}
		s.holds(a)
	}
}

func roleChanges(s *sinkTest) {
	s.h.AddLines(s, 1, 2)
	a, b, c := doc("a", 10, 5, "x", 1, 2), doc("b", 11, 5, "x", 2, 1), doc("c", 12, 5, "x", 1)
	s.gives(a, "applied(applied applied)")
	s.gives(b, "applied(applied applied)")
	s.holds(b)
	s.gives(c, "applied(applied)")
	s.holds(c)
	s.holds(b, 2)
}

func trackingPresentAndAbsent(s *sinkTest) {
	s.h.AddLines(s, 1, 2, 3)
	there := SinkRow{Detail: true, Tracking: true, Values: contentValues("somebody else's")}
	s.h.SetRow(s, 2, there)
	require.Equal(s, there, s.h.Row(s, 2), "the harness writes what it is told")
	a := doc("a", 10, 5, "x", 1, 2, 3)
	s.gives(a, "applied(applied applied applied)")
	s.holds(a)
	gone := s.h.Row(s, 3)
	gone.Tracking = false
	for i, c := range mapping.InUse().Columns() {
		if c.Table == invoice.Tracking {
			gone.Values[i] = invoice.Null()
		}
	}
	s.h.SetRow(s, 3, gone)
	a.Overwrite = []int64{3}
	s.givesIn(commit.Rewrite, []string{"applied(applied applied applied)"}, a)
	s.holds(a)
}
