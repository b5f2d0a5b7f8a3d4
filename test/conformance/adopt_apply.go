package conformance

import (
	"fmt"
	"maps"
	"slices"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sqlwriter/internal/adopt"
	"sqlwriter/internal/commit"
)

func adoptThenApply(s *ledgerTest) {
	s.h.AddLines(s, 1, 2)
	a := doc("a", 10, 100, "x", 1, 2)
	s.page(s.begin("me"), 0, nil, adoptedRows(a)...)
	edited := s.edit(1)
	before := s.state(1, 2)
	s.gives(a, "unchanged(unchanged unchanged)")
	later := a
	later.SourceTS = 90
	s.gives(later, "unchanged(unchanged unchanged)")
	o := s.gives(doc("older", 9, 500, "y", 1), "superseded(superseded)")
	require.Equal(s, "a", o.SupersededBy)
	require.Equal(s, before, s.state(1, 2))
	require.Equal(s, edited, s.h.Row(s, 1), "a person's correction stays")

	stale := doc("a", 10, 99, "before", 1, 2)
	s.gives(stale, "superseded(superseded superseded)")
	corrected := doc("a", 10, 101, "corrected", 1, 2)
	s.gives(corrected, "applied(applied applied)")
	s.holds(corrected)
	newer := doc("newer", 11, 1, "z", 2)
	s.gives(newer, "applied(applied)")
	s.holds(newer)
}

func adoptMarkThenApply(s *ledgerTest) {
	s.h.AddLines(s, 1)
	failed := doc("failed", 10, 100, "x", 1)
	s.page(s.begin("me"), 0, nil, adoptedRows(mark(failed))...)
	before := s.state(1)
	o := s.gives(doc("older retry", 9, 500, "y", 1), "superseded(superseded)")
	require.Equal(s, "failed", o.SupersededBy)
	require.Equal(s, before, s.state(1), "the mark stands")
	failed.SourceTS = 101
	s.gives(failed, "applied(applied)")
	s.holds(failed)
}

func adoptUnprovenThenApply(s *ledgerTest) {
	s.h.AddLines(s, 1)
	a := doc("a", 10, 100, "x", 1)
	rows := adoptedRows(a)
	rows[0].HashVersion = adopt.Unproven
	s.page(s.begin("me"), 0, nil, rows...)
	before := s.state(1)
	s.gives(a, "unchanged(unchanged)")
	s.gives(doc("older", 9, 500, "y", 1), "superseded(superseded)")
	require.Equal(s, before, s.state(1))
	a.SourceTS = 101
	s.gives(a, "applied(applied)")
	s.holds(a)
}

func adoptAfterApply(s *ledgerTest) {
	s.h.AddLines(s, 1, 2, 3)
	a := doc("a", 10, 100, "x", 1, 2)
	s.apply(commit.Write, a)
	committed := a
	committed.SourceTS = 102 // recording the outcome was a change
	older := doc("older", 9, 200, "y", 2, 3)
	state := s.begin("me")
	before := s.state(1, 2)
	s.page(state, 0, nil, adoptedRows(committed)...)
	s.page(state, 0, nil, adoptedRows(older)...)
	require.Equal(s, before, s.state(1, 2))
	require.Equal(s, ledgerRow(adoptedRows(older)[1]), s.state(3)[3].Ledger, "line 3 was not known")
	s.holds(a)
	newer := doc("newer", 11, 300, "z", 2)
	rows := s.h.Row(s, 2)
	s.page(state, 0, nil, adoptedRows(newer)...)
	require.Equal(s, ledgerRow(adoptedRows(newer)[0]), s.state(2)[2].Ledger)
	require.Equal(s, rows, s.h.Row(s, 2))
	s.holds(a, 1)
	s.gives(committed, "unchanged(unchanged superseded)")
}

// adoptHistories sends the rows of random documents in random pages, some twice, and stops and begins anew at random.
func adoptHistories(s *ledgerTest) {
	first := int64(1)
	rapid.Check(s, func(r *rapid.T) {
		const lines = 6
		from := first // lines of their own: the database is the same for all histories
		first += lines
		newest := map[int64]adopt.Row{}
		var rows []adopt.Row
		for i := range rapid.IntRange(1, 8).Draw(r, "documents") {
			it := doc(fmt.Sprintf("doc %d of %d", i, from), int64(rapid.IntRange(1, 4).Draw(r, "version")),
				int64(rapid.IntRange(1, 3).Draw(r, "ts")),
				fmt.Sprint("content ", i),
				rapid.SliceOfNDistinct(rapid.Int64Range(from, from+lines-1), 1, lines, rapid.ID).Draw(r, "lines")...)
			if rapid.Bool().Draw(r, "failed") {
				it = mark(it)
			}
			for _, row := range adoptedRows(it) {
				rows = append(rows, row)
				if best, ok := newest[row.Line]; !ok || best.Version.Compare(row.Version) < 0 {
					newest[row.Line] = row
				}
			}
		}
		rows = append(rows, rows[:rapid.IntRange(0, len(rows)).Draw(r, "again")]...)
		rows = rapid.Permutation(rows).Draw(r, "order")
		state := s.begin("me")
		for len(rows) > 0 {
			page := map[int64]adopt.Row{}
			for n := rapid.IntRange(1, len(rows)).Draw(r, "page"); n > 0 && len(rows) > 0; n-- {
				if _, twice := page[rows[0].Line]; twice {
					break
				}
				page[rows[0].Line] = rows[0]
				rows = rows[1:]
			}
			s.page(state, 0, nil, slices.Collect(maps.Values(page))...)
			if rapid.IntRange(0, 4).Draw(r, "stop") == 0 {
				state = s.begin("me")
			}
		}
		for line, want := range newest {
			require.Equal(r, ledgerRow(want), s.state(line)[line].Ledger, "line %d", line)
		}
	})
}
