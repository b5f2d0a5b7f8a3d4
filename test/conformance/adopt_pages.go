package conformance

import (
	"fmt"
	"slices"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/adopt"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/test/mapping"
)

func adoptPage(s *ledgerTest) {
	s.h.AddLines(s, 1, 2)
	s.apply(commit.Write, doc("old", 1, 1, "old", 1))
	before := s.state(1, 2, 3)
	refused := doc("refused", 3, 9, "x", 2)
	rows := slices.Concat(adoptedRows(doc("a", 2, 5, "new", 1)), adoptedRows(refused),
		adoptedRows(mark(doc("m", 2, 6, "x", 3))))
	s.page(s.begin("me"), 0, nil, rows...)
	for _, r := range rows {
		now := s.state(r.Line)[r.Line]
		require.Equal(s, ledgerRow(r), now.Ledger)
		require.Equal(s, before[r.Line].Row, now.Row, "the user's rows are as they were, and none is made")
	}
}

func adoptCounts(s *ledgerTest) {
	state := s.begin("me")
	first := int64(1)
	for _, n := range []int{0, 1, 1000, 2500} {
		var rows []adopt.Row
		if n > 0 {
			rows = adoptedRows(doc(fmt.Sprint("doc of ", n), 1, 1, "x", span(first, n)...))
		}
		s.page(state, 0, nil, rows...)
		first += int64(n)
	}
	older := adoptedRows(doc("older", 0, 1, "x", span(2, 2500)...))
	before := s.state(span(2, 2500)...)
	s.page(state, 0, nil, older...)
	require.Equal(s, before, s.state(span(2, 2500)...))
	done, err := s.a.Adoption.Finish(s.Context(), state.Run, 0)
	require.NoError(s, err)
	require.Equal(s, 3501, done.Counts.Adopted)
}

func adoptOddRows(s *ledgerTest) {
	state := s.begin("o'who <\u00fc\U0001f600>")
	require.Equal(s, "o'who <\u00fc\U0001f600>", s.now().By)
	for i, id := range []string{
		"2025-12-17 10:30:15.123456-06:00_a", `say "a" \u0041`, "it's", "<a&b>",
		"\u00fcn\u00ef-\u65e5\u672c-\U0001f600", "a", "A", "tab\there", " blank ",
	} {
		line := int64(1)<<62 - int64(i)
		r := adoptedRows(doc(id, 1<<62+int64(i), 1<<33, "x", line))
		s.page(state, 0, nil, r...)
		require.Equal(s, ledgerRow(r[0]), s.state(line)[line].Ledger, "%q", id)
	}
}

func adoptNewestWins(s *ledgerTest) {
	state := s.begin("me")
	older, newer := doc("older", 1, 9, "older", 1), doc("newer", 2, 1, "newer", 1)
	lo, hi := older, older // one time, two keys
	lo.DocumentID, lo.Version.Key = "lo", invoice.Key("lo")
	hi.DocumentID, hi.Version.Key = "hi", invoice.Key("hi")
	if lo.Version.Compare(hi.Version) > 0 {
		lo, hi = hi, lo
	}
	for line, order := range [][]commit.Item{{older, newer}, {newer, older}, {lo, hi}, {hi, lo}} {
		want := newer
		if order[0].Version.US == order[1].Version.US {
			want = hi
		}
		for _, it := range order {
			it.Main = int64(line + 1)
			s.page(state, 0, nil, adoptedRows(it)...)
		}
		want.Main = int64(line + 1)
		require.Equal(s, ledgerRow(adoptedRows(want)[0]), s.state(want.Main)[want.Main].Ledger, "order %d", line)
	}
	done, err := s.a.Adoption.Finish(s.Context(), state.Run, 0)
	require.NoError(s, err)
	require.Equal(s, 4, done.Counts.Adopted, "a line counts once, however often it was taken")
}

// adoptGuard walks through the guard for one document: what the ledger has, what comes, and whether it is taken.
func adoptGuard(s *ledgerTest) {
	state := s.begin("me")
	type side struct {
		ts      int64
		outcome adopt.Outcome
		content string
		recipe  int
	}
	const us = 1000
	v := mapping.InUse().Version()
	row := func(line int64, d side) adopt.Row {
		r := adopt.Row{
			Line: line, Version: invoice.Version{US: us, Key: invoice.Key("a")}, DocumentID: "a",
			SourceTS: d.ts, Outcome: d.outcome,
		}
		if d.outcome != adopt.Failed {
			r.Hash, r.HashVersion = invoice.Key(d.content), d.recipe
		}
		return r
	}
	for i, c := range []struct {
		why       string
		has, come side
		taken     bool
	}{
		{"other content, later", side{10, adopt.Applied, "x", v}, side{11, adopt.Adopted, "y", v}, true},
		{"other content, the same second", side{10, adopt.Applied, "x", v}, side{10, adopt.Adopted, "y", v}, true},
		{"other content, earlier", side{10, adopt.Applied, "x", v}, side{9, adopt.Adopted, "y", v}, false},
		{"the same content, later", side{10, adopt.Applied, "x", v}, side{11, adopt.Adopted, "x", v}, false},
		{"the same content, adopted before", side{10, adopt.Adopted, "x", v}, side{11, adopt.Adopted, "x", v}, false},
		{"content over a mark", side{10, adopt.Failed, "", 0}, side{10, adopt.Adopted, "x", v}, true},
		{"content over a later mark", side{10, adopt.Failed, "", 0}, side{9, adopt.Adopted, "x", v}, false},
		{"a mark over content", side{10, adopt.Applied, "x", v}, side{11, adopt.Failed, "", 0}, true},
		{"a mark over later content", side{10, adopt.Adopted, "x", v}, side{9, adopt.Failed, "", 0}, false},
		{"a mark over a mark", side{10, adopt.Failed, "", 0}, side{11, adopt.Failed, "", 0}, false},
		{
			"by another recipe: it cannot be compared",
			side{10, adopt.Applied, "x", v},
			side{11, adopt.Adopted, "y", v + 1},
			false,
		},
		{
			"proving nothing, over what was applied",
			side{10, adopt.Applied, "x", v},
			side{11, adopt.Adopted, "y", adopt.Unproven},
			false,
		},
		{
			"over what proves nothing",
			side{10, adopt.Adopted, "x", adopt.Unproven},
			side{11, adopt.Adopted, "x", v},
			true,
		},
		{
			"other content, both proving nothing",
			side{10, adopt.Adopted, "x", adopt.Unproven},
			side{11, adopt.Adopted, "y", adopt.Unproven},
			true,
		},
		{
			"the same content, both proving nothing",
			side{10, adopt.Adopted, "x", adopt.Unproven},
			side{11, adopt.Adopted, "x", adopt.Unproven},
			false,
		},
	} {
		line := int64(i + 1)
		has, come := row(line, c.has), row(line, c.come)
		s.h.SetLedger(s, line, ledgerRow(has))
		want := has
		if c.taken {
			want = come
		}
		s.page(state, 0, nil, come)
		require.Equal(s, ledgerRow(want), s.state(line)[line].Ledger, c.why)
	}
}

func adoptAgain(s *ledgerTest) {
	rows := slices.Concat(adoptedRows(doc("a", 1, 1, "x", 1, 2)), adoptedRows(mark(doc("m", 1, 1, "x", 3))))
	state := s.begin("me")
	s.page(state, 0, nil, rows...)
	before := s.state(1, 2, 3)
	s.page(state, 0, &adopt.Advance{Watermark: 5}, rows...)
	require.Equal(s, before, s.state(1, 2, 3))

	next := s.begin("me")
	s.page(next, 0, &adopt.Advance{Watermark: 5}, rows...)
	require.Equal(s, before, s.state(1, 2, 3))
	done, err := s.a.Adoption.Finish(s.Context(), next.Run, 5)
	require.NoError(s, err)
	require.Zero(s, done.Counts.Adopted+done.Counts.Marked, "they are the earlier run's")
}

func adoptPageFails(s *ledgerTest) {
	if s.a.FailPage == nil {
		s.Skip("not shown here: needs FailPage")
	}
	state := s.begin("me")
	s.a.FailPage(s)
	p := adopt.Page{Run: state.Run, Rows: adoptedRows(doc("a", 1, 1, "x", 1, 2)), Advance: &adopt.Advance{Watermark: 5}}
	require.Error(s, s.a.Adoption.Page(s.Context(), p))
	require.Equal(s, state, s.now())
	require.False(s, s.state(1)[1].InLedger)
	require.NoError(s, s.a.Adoption.Page(s.Context(), p), "and the next one is not hurt")
	require.Len(s, s.state(1, 2), 2)
	require.True(s, s.state(2)[2].InLedger)
}

func adoptCancelled(s *ledgerTest) {
	state := s.begin("me")
	ctx := lateContext(s)
	page := s.a.Adoption.Page(ctx,
		adopt.Page{Run: state.Run, Rows: adoptedRows(doc("a", 1, 1, "x", 1)), Advance: &adopt.Advance{Watermark: 5}})
	_, read := s.a.Adoption.State(ctx)
	_, begin := s.a.Adoption.Begin(ctx, state, "x")
	_, finish := s.a.Adoption.Finish(ctx, state.Run, 0)
	_, rows := s.a.Adoption.Rows(ctx, []int64{1})
	_, rowsOf := s.a.Adoption.RowsOf(ctx, "a")
	for name, err := range map[string]error{
		"page": page, "state": read, "begin": begin, "finish": finish, "rows": rows, "rows of": rowsOf,
		"empty": s.a.Adoption.MarkEmpty(ctx, "x"),
	} {
		requireFault(s, err, fault.Infrastructure, fault.NoCondition, name)
	}
	require.Equal(s, state, s.now())
	require.False(s, s.state(1)[1].InLedger)
}

func adoptRows(s *ledgerTest) {
	s.h.AddLines(s, 1)
	applied := doc("applied", 10, 100, "x", 1)
	s.apply(commit.Write, applied)
	rows := slices.Concat(adoptedRows(doc("a", 2, 5, "y", 2)), adoptedRows(mark(doc("m", 2, 6, "z", 3))))
	s.page(s.begin("me"), 0, nil, rows...)
	want := adoptedRows(applied)
	want[0].Outcome = adopt.Applied
	found, err := s.a.Adoption.Rows(s.Context(), []int64{3, 1, 99, 2, 1})
	require.NoError(s, err)
	byLine := map[int64]adopt.Row{}
	for _, r := range found {
		byLine[r.Line] = r
	}
	require.Equal(s, map[int64]adopt.Row{1: want[0], 2: rows[0], 3: rows[1]}, byLine)
	found, err = s.a.Adoption.Rows(s.Context(), nil)
	require.NoError(s, err)
	require.Empty(s, found)

	for document, line := range map[string]int64{"applied": 1, "a": 2, "m": 3} {
		found, err = s.a.Adoption.RowsOf(s.Context(), document)
		require.NoError(s, err)
		require.Equal(s, []adopt.Row{byLine[line]}, found)
	}
	found, err = s.a.Adoption.RowsOf(s.Context(), "A") // no collation decides
	require.NoError(s, err)
	require.Empty(s, found)
}
