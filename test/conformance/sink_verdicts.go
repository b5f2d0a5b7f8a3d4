package conformance

import (
	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/test/mapping"
)

// verdictCases: the four verdicts, the modes, and that the newest wins in whatever order results arrive.
func verdictCases() []sinkCase {
	return []sinkCase{
		{"nothing to write is no request", nil, noItems},
		{"an unknown mode is our own mistake", nil, unknownMode},
		{"a line that an item names twice is our own mistake", nil, repeatedLine},
		{"a first result is applied to both tables and named in the ledger", nil, firstApplied},
		{"the same items again are unchanged", nil, againUnchanged},
		{"a replay writes no row of the user's again", []string{"CountWrites"}, replayWritesNothing},
		{"the newer result wins: older first", nil, olderFirst},
		{"the newer result wins: newer first, and names itself", nil, newerFirst},
		{"a replay of the older one after the newer changes nothing", nil, replayOfOlder},
		{"the newer result wins within one request, wherever it stands", nil, newestInBatch},
		{"versions with one time are ordered by the document key", nil, keyBreaksTie},
		{"a version is compared as a number and before the key", nil, versionAsNumber},
		{"a document may be newer on one line and older on another", nil, mixedLines},
		{"superseded names the newest of the documents that hold its lines", nil, supersededByNewest},
		{"newest wins across several lines of overlapping documents", nil, overlapping},
		{"a redelivery leaves a person's correction alone", nil, redeliveryOverEdit},
		{"rewrite never overwrites a newer result", nil, rewriteNotOverNewer},
		{"rewrite of an older snapshot of the same document changes nothing", nil, rewriteOfOldSnapshot},
		{"content that comes back after another is written again", nil, contentComesBack},
	}
}

func noItems(s *sinkTest) {
	for _, mode := range []commit.Mode{commit.Write, commit.Rewrite, commit.Preview} {
		out, err := s.h.Sink.Apply(s.Context(), nil, mode, unknown(sysName))
		require.NoError(s, err)
		require.Empty(s, out)
	}
}

func unknownMode(s *sinkTest) {
	s.h.AddLines(s, 1)
	before := s.state(1)
	s.fails(fault.Internal, "upsert", doc("a", 1, 1, "x", 1))
	require.Equal(s, before, s.state(1))
}

func repeatedLine(s *sinkTest) {
	s.h.AddLines(s, 1, 2)
	before := s.state(1, 2)
	s.fails(fault.Internal, commit.Write, doc("a", 1, 1, "x", 1, 2, 1))
	require.Equal(s, before, s.state(1, 2))
}

func firstApplied(s *sinkTest) {
	s.h.AddLines(s, 1, 2, 3)
	a := doc("a", 10, 5, "x", 2, 1)
	o := s.gives(a, "applied(applied applied)")
	require.Empty(s, o.SupersededBy)
	s.holds(a)
	require.Equal(s, SinkRow{Detail: true, Values: nullValues()}, s.h.Row(s, 3), "other lines stay as they are")
	_, ok := s.h.Ledger(s, 3)
	require.False(s, ok)
}

func againUnchanged(s *sinkTest) {
	s.h.AddLines(s, 1, 2, 3)
	a, b := doc("a", 10, 5, "x", 1, 2), doc("b", 11, 5, "y", 3)
	s.givesIn(commit.Write, []string{"applied(applied applied)", "applied(applied)"}, a, b)
	before := s.state(1, 2, 3)
	s.givesIn(commit.Write, []string{"unchanged(unchanged unchanged)", "unchanged(unchanged)"}, a, b)
	require.Equal(s, before, s.state(1, 2, 3))
}

func replayWritesNothing(s *sinkTest) {
	s.h.AddLines(s, 1, 2)
	writes := s.h.CountWrites(s)
	old, a := doc("old", 9, 9, "w", 1, 2), doc("a", 10, 5, "x", 1, 2)
	s.apply(commit.Write, a)
	for range 3 {
		s.apply(commit.Write, a)
		s.apply(commit.Write, old)
		s.apply(commit.Preview, a)
	}
	for _, line := range []int64{1, 2} {
		detail, tracking := writes(line)
		require.Equal(s, []int{1, 1}, []int{detail, tracking}, "line %d is written once in each table", line)
	}
}

func olderFirst(s *sinkTest) {
	s.h.AddLines(s, 1)
	older, newer := doc("a", 10, 50, "x", 1), doc("b", 11, 1, "y", 1)
	s.gives(older, "applied(applied)")
	s.gives(newer, "applied(applied)")
	s.holds(newer)
}

func newerFirst(s *sinkTest) {
	s.h.AddLines(s, 1)
	older, newer := doc("a", 10, 50, "x", 1), doc("b", 11, 1, "y", 1)
	s.gives(newer, "applied(applied)")
	o := s.gives(older, "superseded(superseded)")
	require.Equal(s, "b", o.SupersededBy)
	require.Equal(s, "b", o.Rows[0].By)
	s.holds(newer)
}

func replayOfOlder(s *sinkTest) {
	s.h.AddLines(s, 1)
	older, newer := doc("a", 10, 50, "x", 1), doc("b", 11, 1, "y", 1)
	s.gives(older, "applied(applied)")
	s.gives(newer, "applied(applied)")
	s.gives(older, "superseded(superseded)")
	s.givesIn(commit.Write, []string{"superseded(superseded)", "unchanged(unchanged)"}, older, newer)
	s.holds(newer)
}

func newestInBatch(s *sinkTest) {
	docs := []commit.Item{doc("a", 10, 3, "x", 1), doc("b", 12, 1, "y", 1), doc("c", 11, 2, "z", 1)}
	for first := range docs {
		line := int64(first + 1)
		s.h.AddLines(s, line)
		var items []commit.Item
		var want []string
		for i := range docs {
			it := docs[(first+i)%len(docs)]
			it.Main = line
			items = append(items, it)
			want = append(want,
				map[bool]string{true: "applied(applied)", false: "superseded(superseded)"}[it.DocumentID == "b"])
		}
		for i, o := range s.givesIn(commit.Write, want, items...) {
			if items[i].DocumentID == "b" {
				require.Empty(s, o.SupersededBy)
				s.holds(items[i])
				continue
			}
			require.Equal(s, "b", o.SupersededBy)
		}
	}
}

func keyBreaksTie(s *sinkTest) {
	s.h.AddLines(s, 1, 2)
	small, large := doc("a", 10, 9, "x", 1), doc("b", 10, 1, "y", 1)
	if small.Version.Key > large.Version.Key {
		small, large = large, small
	}
	s.gives(small, "applied(applied)")
	s.gives(large, "applied(applied)")
	s.gives(small, "superseded(superseded)")
	s.holds(large)
	small.Main, large.Main = 2, 2
	s.givesIn(commit.Write, []string{"applied(applied)", "superseded(superseded)"}, large, small)
	s.holds(large)
}

func versionAsNumber(s *sinkTest) {
	s.h.AddLines(s, 1)
	nine, ten := doc("z", 9_000_000_000_000_000, 9, "x", 1), doc("a", 10_000_000_000_000_000, 1, "y", 1)
	if nine.Version.Key < ten.Version.Key {
		nine.Version.Key, ten.Version.Key = ten.Version.Key, nine.Version.Key // the key must not help
	}
	s.gives(ten, "applied(applied)")
	s.gives(nine, "superseded(superseded)")
	s.holds(ten)
}

func mixedLines(s *sinkTest) {
	s.h.AddLines(s, 1, 2, 3)
	newer, older := doc("new", 20, 1, "y", 1), doc("old", 10, 1, "x", 2, 1, 3)
	s.gives(newer, "applied(applied)")
	o := s.gives(older, "applied(applied superseded applied)")
	require.Equal(s, "new", o.SupersededBy)
	require.Equal(s, "new", o.Rows[1].By)
	require.Empty(s, o.Rows[0].By)
	s.holds(newer)
	s.holds(older, 2, 3)
	s.gives(older, "unchanged(unchanged superseded unchanged)")
}

func supersededByNewest(s *sinkTest) {
	s.h.AddLines(s, 1, 2, 3)
	s.apply(commit.Write, doc("b", 12, 1, "y", 1), doc("c", 13, 1, "z", 2), doc("d", 11, 1, "v", 3))
	o := s.gives(doc("a", 10, 1, "x", 1, 2, 3), "superseded(superseded superseded superseded)")
	require.Equal(s, "c", o.SupersededBy)
	require.Equal(s, []string{"b", "c", "d"}, []string{o.Rows[0].By, o.Rows[1].By, o.Rows[2].By})
}

func overlapping(s *sinkTest) {
	s.h.AddLines(s, span(1, 6)...)
	a, b, c := doc("a", 10, 1, "x", 1, 2, 3), doc("b", 11, 1, "y", 3, 4), doc("c", 12, 1, "z", 4, 5, 6)
	s.givesIn(commit.Write, []string{
		"applied(applied superseded)", "applied(applied applied superseded)", "applied(applied applied applied)",
	}, b, a, c)
	s.holds(a, 1, 2)
	s.holds(b, 3)
	s.holds(c, 4, 5, 6)
}

func redeliveryOverEdit(s *sinkTest) {
	s.h.AddLines(s, 1)
	a := doc("a", 10, 5, "x", 1)
	s.gives(a, "applied(applied)")
	edited := s.edit(1)
	s.gives(a, "unchanged(unchanged)")
	require.Equal(s, edited, s.h.Row(s, 1))
}

func rewriteNotOverNewer(s *sinkTest) {
	s.h.AddLines(s, 1, 2)
	a, b := doc("a", 10, 5, "x", 1, 2), doc("b", 11, 1, "y", 1)
	s.gives(a, "applied(applied applied)")
	s.gives(b, "applied(applied)")
	o := s.givesIn(commit.Rewrite, []string{"applied(superseded applied)"}, a)[0]
	require.Equal(s, "b", o.SupersededBy)
	s.holds(b)
	s.holds(a, 2)
}

func rewriteOfOldSnapshot(s *sinkTest) {
	s.h.AddLines(s, 1)
	old, now := doc("a", 10, 5, "x", 1), doc("a", 10, 6, "y", 1)
	s.gives(now, "applied(applied)")
	s.givesIn(commit.Rewrite, []string{"superseded(superseded)"}, old)
	s.holds(now)
	edited := s.edit(1)
	older := now
	older.SourceTS = 4
	s.givesIn(commit.Rewrite, []string{"unchanged(unchanged)"}, older)
	require.Equal(s, edited, s.h.Row(s, 1))
}

func contentComesBack(s *sinkTest) {
	s.h.AddLines(s, 1)
	first, second, third := doc("a", 10, 5, "x", 1), doc("a", 10, 6, "y", 1), doc("a", 10, 7, "x", 1)
	s.gives(first, "applied(applied)")
	s.gives(second, "applied(applied)")
	s.gives(third, "applied(applied)")
	s.holds(third)
	s.gives(second, "superseded(superseded)")
	s.gives(first, "unchanged(unchanged)")
	s.holds(third)
}

// nullValues is a line without a write.
func nullValues() []invoice.Value {
	values := make([]invoice.Value, len(mapping.InUse().Columns()))
	for i := range values {
		values[i] = invoice.Null()
	}
	return values
}
