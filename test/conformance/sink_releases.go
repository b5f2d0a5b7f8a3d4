package conformance

import (
	"slices"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// releaseCases: a rewrite writes a line over newer content where a release names the ledger's row as it is, and nowhere
// else.
func releaseCases() []sinkCase {
	return []sinkCase{
		{"a release writes its line over newer content, and no other line", nil, releaseWrites},
		{"a release of an earlier write of the same document is superseded", nil, releaseOfEarlierWrite},
		{"a release is superseded when the newer document was written with the same content again", nil, releaseRaised},
		{"a release of another row than the ledger's is superseded", nil, releaseOfAnother},
		{"a release that was made already changes nothing", nil, releaseTwice},
		{"of two releases of a line the first one counts, unless the second document is newer", nil, releaseTwo},
		{"an older document is superseded after a release, as before it", nil, releaseThenOlder},
		{"the newer document takes the line again after a release", nil, releaseThenNewer},
		{"a release leaves an edited line alone, and writes it when it is named", nil, releaseEdited},
		{"a release leaves a line alone that is not comparable, and writes it when that is allowed", nil, releaseUnknown},
		{"a release keeps no status of the content that it replaces", nil, releaseStatus},
		{"a release makes a lost tracking row", nil, releaseTracking},
		{"a release counts in a rewrite alone", nil, releaseInOtherModes},
		{"a release beside other documents of the request", nil, releaseBeside},
		{"a release of 500 lines in one request", nil, releaseMany},
		{
			"a release whose line is edited between read and write is contention, and is found then",
			[]string{"BetweenReadAndWrite"},
			releaseEditBetween,
		},
		{
			"a release that loses to the newer document between read and write is superseded",
			[]string{"BetweenReadAndWrite"},
			releaseRaceBetween,
		},
	}
}

// releases lets an item take lines from what the ledger names for them now.
func (s *sinkTest) releases(it commit.Item, lines ...int64) commit.Item {
	s.Helper()
	it.Releases = slices.Clone(it.Releases)
	for _, line := range lines {
		l := s.line(line).Ledger
		it.Releases = append(it.Releases, commit.Release{
			Line: line, Document: it.DocumentID, Key: l.Version.Key, WriteID: l.WriteID, SourceTS: l.SourceTS,
		})
	}
	return it
}

// dropped makes line 2 hold the content of a newer document that also has lines 1 and 3, and gives the older one of
// lines 2 and 4 that had it before.
func (s *sinkTest) dropped() (older, newer commit.Item) {
	s.Helper()
	s.h.AddLines(s, 1, 2, 3, 4)
	older, newer = doc("old", 10, 5, "right", 2, 4), doc("new", 20, 6, "wrong", 1, 2, 3)
	s.gives(older, "applied(applied applied)")
	s.gives(newer, "applied(applied applied applied)")
	return older, newer
}

func releaseWrites(s *sinkTest) {
	older, newer := s.dropped()
	s.rewrites(older, "applied(superseded applied)")
	s.rewrites(s.releases(older, 2), "applied(applied applied)")
	s.holds(older)
	s.holds(newer, 1, 3)
}

func releaseOfEarlierWrite(s *sinkTest) {
	older, newer := s.dropped()
	release := s.releases(older, 2)
	newer.Values, newer.Hash, newer.SourceTS = contentValues("again"), invoice.Key("again"), 7
	s.gives(newer, "applied(applied applied applied)")
	s.rewrites(release, "applied(superseded applied)")
	s.holds(newer)
}

// A write of content that the line has leaves the write id, and raises source_ts alone.
func releaseRaised(s *sinkTest) {
	older, newer := s.dropped()
	release := s.releases(older, 2)
	newer.SourceTS = 7
	s.gives(newer, "unchanged(unchanged unchanged unchanged)")
	s.rewrites(release, "applied(superseded applied)")
	s.holds(newer)
}

func releaseOfAnother(s *sinkTest) {
	older, newer := s.dropped()
	whole := s.releases(older, 2)
	for _, change := range []func(r *commit.Release){
		func(r *commit.Release) { r.Key = invoice.Key("other") },
		func(r *commit.Release) { r.WriteID = "00000000-0000-0000-0000-000000000000" },
		func(r *commit.Release) { r.SourceTS++ },
		func(r *commit.Release) { r.Line = 4 },
	} {
		release := whole
		release.Releases = slices.Clone(whole.Releases)
		change(&release.Releases[0])
		s.rewrites(release, "applied(superseded applied)")
		s.holds(newer)
	}
}

func releaseTwice(s *sinkTest) {
	older, _ := s.dropped()
	release := s.releases(older, 2)
	s.rewrites(release, "applied(applied applied)")
	s.rewrites(release, "applied(applied applied)") // as a rewrite of what it has
	s.holds(older)
}

func releaseTwo(s *sinkTest) {
	older, newer := s.dropped()
	middle := doc("middle", 15, 5, "also right", 2)
	first, second := s.releases(older, 2), s.releases(middle, 2)
	s.rewrites(second, "applied(applied)")
	s.rewrites(first, "applied(superseded applied)")
	s.holds(middle)
	newer.SourceTS, newer.Hash = 8, invoice.Key("again")
	s.gives(newer, "applied(applied applied applied)")
	first, second = s.releases(older, 2), s.releases(middle, 2)
	s.rewrites(first, "applied(applied applied)")
	s.rewrites(second, "applied(applied)")
	s.holds(middle)
}

func releaseThenOlder(s *sinkTest) {
	older, _ := s.dropped()
	third := doc("third", 5, 9, "ancient", 2)
	release := s.releases(older, 2)
	s.gives(third, "superseded(superseded)")
	s.rewrites(release, "applied(applied applied)")
	s.gives(third, "superseded(superseded)")
	s.rewrites(third, "superseded(superseded)")
	s.holds(older)
}

func releaseThenNewer(s *sinkTest) {
	older, newer := s.dropped()
	s.rewrites(s.releases(older, 2), "applied(applied applied)")
	s.gives(newer, "applied(unchanged applied unchanged)")
	s.holds(newer)
	s.holds(older, 4)
}

func releaseEdited(s *sinkTest) {
	older, _ := s.dropped()
	s.edit(2)
	before, release := s.state(2), s.releases(older, 2)
	s.rewrites(release, "edited(edited applied)")
	require.Equal(s, before, s.state(2))
	release.Overwrite = []int64{2}
	s.rewrites(release, "applied(applied applied)")
	s.holds(older)
}

func releaseUnknown(s *sinkTest) {
	s.h.AddLines(s, 1, 2)
	older := doc("old", 10, 5, "right", 2)
	s.gives(mark(doc("new", 20, 6, "wrong", 1, 2)), "applied(applied applied)")
	before, release := s.state(2), s.releases(older, 2)
	s.rewrites(release, "not_comparable(not_comparable)")
	require.Equal(s, before, s.state(2))
	release.NotComparable = true
	s.rewrites(release, "applied(applied)")
	s.holds(older)
}

func releaseStatus(s *sinkTest) {
	older, _ := s.dropped()
	s.setStatus(2, "BY HAND")
	s.rewrites(s.releases(older, 2), "applied(applied applied)")
	s.holds(older)
}

func releaseTracking(s *sinkTest) {
	older, _ := s.dropped()
	s.h.SetRow(s, 2, withoutTracking(s.h.Row(s, 2)))
	s.rewrites(s.releases(older, 2), "applied(applied applied)")
	s.holds(older)
}

func releaseInOtherModes(s *sinkTest) {
	older, newer := s.dropped()
	release := s.releases(older, 2)
	s.givesIn(commit.Preview, []string{"unchanged(superseded unchanged)"}, release)
	s.gives(release, "unchanged(superseded unchanged)")
	s.holds(newer)
}

func releaseBeside(s *sinkTest) {
	older, newer := s.dropped()
	s.h.AddLines(s, 5)
	// a document that is newer than the released one, and has no release itself, is the line's newest here
	middle, other := doc("middle", 15, 5, "also right", 2), doc("other", 16, 5, "y", 5)
	release := s.releases(older, 2)
	s.givesIn(commit.Rewrite, []string{"superseded(superseded)", "applied(superseded applied)", "applied(applied)"},
		middle, release, other)
	s.holds(newer)
	s.givesIn(commit.Rewrite, []string{"applied(applied)", "applied(superseded applied)", "applied(applied)"},
		s.releases(middle, 2), release, other)
	s.holds(middle)
}

func releaseMany(s *sinkTest) {
	lines := make([]int64, 500)
	for i := range lines {
		lines[i] = int64(i + 1)
	}
	s.h.AddLines(s, lines...)
	older, newer := doc("old", 10, 5, "right", lines...), doc("new", 20, 6, "wrong", lines...)
	s.apply(commit.Write, older)
	s.apply(commit.Write, newer)
	require.Equal(s, invoice.OutcomeApplied, s.apply(commit.Rewrite, s.releases(older, lines[1:]...))[0].Verdict)
	s.holds(newer, 1)
	s.holds(older, lines[1:]...)
}

func releaseEditBetween(s *sinkTest) {
	older, _ := s.dropped()
	release := s.releases(older, 2)
	var before map[int64]lineState
	s.h.BetweenReadAndWrite(s, func() {
		s.edit(2)
		before = s.state(2)
	})
	s.fails(fault.Contention, commit.Rewrite, release)
	require.Equal(s, before, s.state(2))
	s.rewrites(release, "edited(edited applied)")
	require.Equal(s, before, s.state(2))
}

func releaseRaceBetween(s *sinkTest) {
	older, newer := s.dropped()
	release := s.releases(older, 2)
	newer.SourceTS = 7
	s.h.BetweenReadAndWrite(s, func() { s.gives(newer, "unchanged(unchanged unchanged unchanged)") })
	s.rewrites(release, "applied(superseded applied)")
	s.holds(newer)
}
