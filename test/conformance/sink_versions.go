package conformance

import (
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/invoice"
)

// versionCases: one document and its snapshots, hashes of other recipes, and lines that were adopted.
func versionCases() []sinkCase {
	return []sinkCase{
		{"equal version, later snapshot, other content: applied", nil, snapshot(6, "y", "applied(applied)")},
		{"equal version, same snapshot, other content: applied", nil, snapshot(5, "y", "applied(applied)")},
		{
			"equal version, earlier snapshot, other content: superseded by itself", nil,
			snapshot(4, "y", "superseded(superseded)"),
		},
		{"equal version, later snapshot, same content: unchanged", nil, snapshot(6, "x", "unchanged(unchanged)")},
		{"equal version, same snapshot, same content: unchanged", nil, snapshot(5, "x", "unchanged(unchanged)")},
		{"equal version, earlier snapshot, same content: unchanged", nil, snapshot(4, "x", "unchanged(unchanged)")},
		{"unchanged raises source_ts alone, and then an older correction stays out", nil, unchangedRaises},
		{"a person's later correction survives every redelivery", nil, correctionSurvives},
		{"the same document twice in one request: the later snapshot wins", nil, twiceInOne},
		{"the same document twice with one snapshot: the later item wins", nil, twiceTied},
		{"the very same item twice in one request", nil, verySameTwice},
		{"three snapshots in one request, the newest of them unchanged", nil, threeSnapshots},
		{"a hash of another version with a later snapshot is written", nil, otherHashLater},
		{"a hash of another version without a later snapshot is unchanged", nil, otherHashSame},
		{"a run leaves a line of another hash version alone that was written after the commit", nil, leftSince},
		{"adopted lines: the same content is unchanged", nil, adoptedSame},
		{"adopted lines: other content of the document is applied", nil, adoptedOther},
		{"adopted lines: an older result is superseded, a newer one applied", nil, adoptedOrder},
		{"the same document with a smaller version time never goes back", nil, versionMoved},
	}
}

// snapshot is a case: after content "x" from snapshot 5 comes another item of the document.
func snapshot(ts int64, content, want string) func(*sinkTest) {
	return func(s *sinkTest) {
		s.h.AddLines(s, 1)
		first, then := doc("a", 10, 5, "x", 1), doc("a", 10, ts, content, 1)
		s.gives(first, "applied(applied)")
		o := s.gives(then, want)
		switch o.Verdict {
		case invoice.OutcomeApplied:
			s.holds(then)
		case invoice.OutcomeSuperseded:
			require.Equal(s, "a", o.SupersededBy)
			s.holds(first)
		default:
			first.SourceTS = max(first.SourceTS, ts)
			s.holds(first)
		}
	}
}

func unchangedRaises(s *sinkTest) {
	s.h.AddLines(s, 1)
	a := doc("a", 10, 5, "x", 1)
	s.gives(a, "applied(applied)")
	edited := s.edit(1)
	a.SourceTS = 9
	s.gives(a, "unchanged(unchanged)")
	l, _ := s.h.Ledger(s, 1)
	require.Equal(s, ledgerOf(a, 1), l, "source_ts rises, the rest stays")
	require.Equal(s, edited, s.h.Row(s, 1), "the row is not touched")
	s.gives(doc("a", 10, 7, "y", 1), "superseded(superseded)")
	require.Equal(s, edited, s.h.Row(s, 1))
}

func correctionSurvives(s *sinkTest) {
	s.h.AddLines(s, 1, 2)
	a, old := doc("a", 10, 5, "x", 1, 2), doc("old", 9, 99, "w", 1, 2)
	s.gives(a, "applied(applied applied)")
	edited := s.edit(2)
	for range 3 {
		a.SourceTS++
		s.gives(a, "unchanged(unchanged unchanged)")
		s.gives(old, "superseded(superseded superseded)")
		s.gives(mark(a), "unchanged(unchanged unchanged)")
	}
	require.Equal(s, edited, s.h.Row(s, 2))
}

func twiceInOne(s *sinkTest) {
	s.h.AddLines(s, 1, 2)
	for i, items := range [][]commit.Item{
		{doc("a", 10, 5, "x", 1), doc("a", 10, 6, "y", 1)},
		{doc("a", 10, 6, "y", 2), doc("a", 10, 5, "x", 2)},
	} {
		want := []string{"superseded(superseded)", "applied(applied)"}
		if i == 1 {
			want[0], want[1] = want[1], want[0]
		}
		s.givesIn(commit.Write, want, items...)
		s.holds(items[1-i])
	}
}

func twiceTied(s *sinkTest) {
	s.h.AddLines(s, 1)
	first, second := doc("a", 10, 5, "x", 1), doc("a", 10, 5, "y", 1)
	out := s.givesIn(commit.Write, []string{"superseded(superseded)", "applied(applied)"}, first, second)
	require.Equal(s, "a", out[0].SupersededBy)
	s.holds(second)
}

func verySameTwice(s *sinkTest) {
	s.h.AddLines(s, 1, 2)
	a := doc("a", 10, 5, "x", 1, 2)
	s.givesIn(commit.Write, []string{"applied(applied applied)", "applied(applied applied)"}, a, a)
	s.holds(a)
	s.givesIn(commit.Write, []string{"unchanged(unchanged unchanged)", "unchanged(unchanged unchanged)"}, a, a)
	b, earlier := doc("b", 11, 5, "y", 1, 2), doc("b", 11, 4, "y", 1, 2)
	s.givesIn(commit.Write, []string{"unchanged(unchanged unchanged)", "applied(applied applied)"}, earlier, b)
	s.holds(b)
}

func threeSnapshots(s *sinkTest) {
	s.h.AddLines(s, 1)
	s.gives(doc("a", 10, 5, "x", 1), "applied(applied)")
	last := doc("a", 10, 8, "x", 1)
	s.givesIn(commit.Write, []string{"superseded(superseded)", "unchanged(unchanged)", "unchanged(unchanged)"},
		doc("a", 10, 7, "y", 1), last, doc("a", 10, 6, "x", 1))
	s.holds(last)
}

// otherRecipe is an item as a build with another recipe for hashes would send it.
func otherRecipe(it commit.Item) commit.Item {
	it.HashVersion++
	it.Hash = invoice.Key("another recipe" + it.Hash)
	return it
}

func otherHashLater(s *sinkTest) {
	s.h.AddLines(s, 1)
	s.gives(doc("a", 10, 5, "x", 1), "applied(applied)")
	then := otherRecipe(doc("a", 10, 6, "x", 1))
	s.gives(then, "applied(applied)")
	s.holds(then)
}

func otherHashSame(s *sinkTest) {
	s.h.AddLines(s, 1)
	first := doc("a", 10, 5, "x", 1)
	s.gives(first, "applied(applied)")
	for _, ts := range []int64{5, 4} {
		s.gives(otherRecipe(doc("a", 10, ts, "x", 1)), "unchanged(unchanged)")
	}
	s.holds(first)
	again := otherRecipe(first)
	s.givesIn(commit.Rewrite, []string{"applied(applied)"}, again)
	s.holds(again)
}

func leftSince(s *sinkTest) {
	s.h.AddLines(s, 1, 2, 3, 4)
	now := time.Now().Unix()
	before, after := now-3600, now+3600
	first := otherRecipe(doc("a", 10, 5, "x", 1, 2))
	s.gives(first, "applied(applied applied)")
	s.edit(1)
	state := s.state(1, 2)
	then := doc("a", 10, 8, "y", 1, 2, 3)
	then.LeaveSince = before
	s.givesIn(commit.Preview, []string{"not_comparable(not_comparable not_comparable applied)"}, then)
	s.gives(then, "not_comparable(not_comparable not_comparable applied)")
	require.Equal(s, state, s.state(1, 2))
	s.holds(then, 3)  // the ledger lacked it
	then.SourceTS = 5 // the document is as it was
	s.gives(then, "not_comparable(not_comparable not_comparable unchanged)")
	s.gives(mark(then), "not_comparable(not_comparable not_comparable unchanged)")
	for _, line := range []int64{1, 2} {
		s.h.SetLedger(s, line, ledgerOf(mark(then), line))
	}
	then.SourceTS = 8
	s.gives(then, "applied(applied applied unchanged)")
	s.holds(then, 1, 2) // a mark has no recipe

	// the commit is later than the line, which the database lost
	s.gives(otherRecipe(doc("b", 10, 5, "x", 4)), "applied(applied)")
	lost := doc("b", 10, 6, "y", 4)
	lost.LeaveSince = after
	s.gives(lost, "applied(applied)")
	s.holds(lost)
	// what was offered again after the commit is there, whenever it was written
	s.gives(otherRecipe(doc("b", 10, after+1, "z", 4)), "applied(applied)")
	lost.SourceTS = after + 2
	s.gives(lost, "not_comparable(not_comparable)")
	newer := doc("c", 11, 5, "w", 4)
	newer.LeaveSince = before
	s.gives(newer, "applied(applied)") // newest wins, whatever its recipe
	s.holds(newer)
	s.gives(lost, "superseded(superseded)")
}

// adopt puts an item into the ledger as adopted.
func (s *sinkTest) adopt(it commit.Item) {
	s.Helper()
	for _, line := range linesOf(it) {
		s.h.AddLines(s, line)
		l := ledgerOf(it, line)
		l.Outcome, l.DetailHash, l.TrackingHash = "adopted", "", ""
		s.h.SetLedger(s, line, l)
	}
}

func adoptedSame(s *sinkTest) {
	a := doc("a", 10, 5, "x", 1, 2)
	s.adopt(a)
	before := s.state(1, 2)
	s.gives(a, "unchanged(unchanged unchanged)")
	require.Equal(s, before, s.state(1, 2), "the user's rows are as they were, whatever they hold")
	s.gives(mark(a), "unchanged(unchanged unchanged)")
	a.SourceTS = 8
	s.gives(a, "unchanged(unchanged unchanged)")
	s.gives(doc("a", 10, 7, "y", 1, 2), "superseded(superseded superseded)")
	a.Overwrite = linesOf(a)
	s.givesIn(commit.Rewrite, []string{"applied(applied applied)"}, a)
	s.holds(a)
}

func adoptedOther(s *sinkTest) {
	s.adopt(doc("a", 10, 5, "x", 1))
	s.gives(doc("a", 10, 4, "y", 1), "superseded(superseded)")
	then := doc("a", 10, 6, "y", 1)
	s.gives(then, "applied(applied)")
	s.holds(then)
}

func adoptedOrder(s *sinkTest) {
	s.adopt(doc("a", 10, 5, "x", 1))
	o := s.gives(doc("old", 9, 50, "w", 1), "superseded(superseded)")
	require.Equal(s, "a", o.SupersededBy)
	newer := doc("new", 11, 1, "y", 1)
	s.gives(newer, "applied(applied)")
	s.holds(newer)
}

func versionMoved(s *sinkTest) {
	s.h.AddLines(s, 1)
	now := doc("a", 10, 5, "x", 1)
	s.gives(now, "applied(applied)")
	s.gives(doc("a", 9, 6, "y", 1), "superseded(superseded)")
	s.gives(doc("a", 9, 6, "x", 1), "unchanged(unchanged)")
	now.SourceTS = 6
	s.holds(now)
}
