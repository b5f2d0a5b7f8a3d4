package porttest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sqlwriter/internal/adopt"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/writer"
)

// Adoption is what a store is to the adoption of a database with history.
type Adoption interface {
	adopt.Ledger
	adopt.Reader
	// MarkEmpty says that nothing was written before us; it changes nothing once something was said or begun.
	MarkEmpty(ctx context.Context, who string) error
	// Adopted reports whether the app may commit.
	Adopted(ctx context.Context) (bool, error)
}

// LedgerHarness is what TestLedger needs: a sink's harness, and the adoption of the same database.
type LedgerHarness struct {
	SinkHarness
	Adoption Adoption
	// FailPage makes the next page fail when its rows are written and its watermark is not; nil when that cannot be shown.
	FailPage func(t testing.TB)
}

// ledgerTest is a case at work.
type ledgerTest struct {
	*sinkTest
	a LedgerHarness
}

// TestLedger holds an implementation of adopt.Ledger, and what it leaves behind for writer.Sink, to the ports' contracts.
// open makes a new harness over empty tables; it is called once per case.
func TestLedger(t *testing.T, open func(t testing.TB) LedgerHarness) {
	cases := []struct {
		name string
		run  func(*ledgerTest)
	}{
		{"nothing was said: it is not adopted", adoptNothingSaid},
		{"said to be empty: it is adopted, and a run may still begin", adoptEmpty},
		{"from begin to finish", adoptLifeOfARun},
		{"a run is begun only in the place of the state that was read", adoptBeginRace},
		{"a run that was replaced, ended or moved on takes nothing", adoptFenced},
		{"of eight pages that move one watermark one does", adoptRace},
		{"a page is in the ledger as it was sent, and the user's tables are as they were", adoptPage},
		{"pages of 0, 1, 1000 and 2500 rows", adoptCounts},
		{"ids with any letters, and the largest numbers", adoptOddRows},
		{"the newest wins in whatever order the pages come", adoptNewestWins},
		{"the guard, row by row", adoptGuard},
		{"the same page again changes nothing, and is known only to another run", adoptAgain},
		{"a page that fails leaves neither rows nor progress", adoptPageFails},
		{"an ended context is infrastructure", adoptCancelled},
		{"over adopted content the same is unchanged, the older superseded, the newer applied", adoptThenApply},
		{"over an adopted mark the older is superseded and the document itself is written", adoptMarkThenApply},
		{"content that proves nothing gives way to a later snapshot only", adoptUnprovenThenApply},
		{"what was applied is left alone, and gives way to what somebody else committed later", adoptAfterApply},
		{"the ledger's rows by line", adoptRows},
		{"random histories: every line is the newest document's", adoptHistories},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			h := open(t)
			s := &sinkTest{T: t, h: h.SinkHarness, answer: &lastAnswer{sink: h.Sink}}
			d, listed := h.Deviations[c.name]
			if !listed || h.RealServer {
				c.run(&ledgerTest{sinkTest: s, a: h})
				return
			}
			if wrong := d.judge(s.observe(func(s *sinkTest) { c.run(&ledgerTest{sinkTest: s, a: h}) })); wrong != "" {
				t.Error(wrong)
			}
			t.Logf("deviation: %s (seen: %s)", d.Because, d.Seen)
		})
	}
}

func adoptNothingSaid(s *ledgerTest) {
	require.Equal(s, adopt.State{}, s.now())
	s.adopted(false)
	_, err := s.a.Adoption.Page(s.Context(), adopt.Page{Run: "", From: 0, Rows: adoptedRows(doc("a", 1, 1, "x", 1))})
	requireFault(s, err, fault.Contention, fault.Changed, "there is no run")
	_, err = s.a.Adoption.Finish(s.Context(), "", 0)
	requireFault(s, err, fault.Contention, fault.Changed)
	require.False(s, s.state(1)[1].InLedger)
}

func adoptEmpty(s *ledgerTest) {
	require.NoError(s, s.a.Adoption.MarkEmpty(s.Context(), "somebody"))
	s.adopted(true)
	state := s.now()
	require.Equal(s, adopt.Empty, state.Phase)
	require.Equal(s, "somebody", state.Who)
	require.NoError(s, s.a.Adoption.MarkEmpty(s.Context(), "somebody else"), "saying it again is nothing")
	require.Equal(s, state, s.now())
	s.begin("me")
	s.adopted(false)
	require.NoError(s, s.a.Adoption.MarkEmpty(s.Context(), "me"))
	s.adopted(false)
	require.Equal(s, adopt.Running, s.now().Phase, "what was begun is not said to be empty")
}

func adoptLifeOfARun(s *ledgerTest) {
	state := s.begin("me@here")
	require.Equal(s, adopt.Running, state.Phase)
	require.Regexp(s, `^[0-9a-f]{32}$`, state.Run)
	require.Zero(s, state.Watermark)
	require.Equal(s, "me@here", state.Who)
	require.WithinDuration(s, time.Now(), state.Started, time.Minute)
	require.Zero(s, state.Finished)
	require.Equal(s, state, s.now())
	s.adopted(false)

	a, b, c := doc("a", 1, 1, "x", 1, 2), doc("b", 2, 1, "x", 2, 3), mark(doc("c", 2, 1, "x", 4))
	s.page(state, 0, nil, adoptedRows(a)...)
	require.Equal(s, state, s.now(), "without an advance nothing of the state moves")
	counts := adopt.Counts{
		Documents: 3, Lines: 5, Known: 7, Unproven: 1, Open: 2, Processing: 1,
		Skipped: map[adopt.Reason]int{adopt.NoLine: 2, "<odd> \u00fc": 1},
	}
	s.page(state, 0, &adopt.Advance{Watermark: 100, Counts: counts}, slices.Concat(adoptedRows(b), adoptedRows(c))...)
	state = s.now()
	require.Equal(s, int64(100), state.Watermark)
	require.Equal(s, counts, state.Counts)
	s.adopted(false)

	done, err := s.a.Adoption.Finish(s.Context(), state.Run, 100)
	require.NoError(s, err)
	counts.Adopted, counts.Marked = 3, 1
	require.Equal(s, counts, done.Counts, "what the ledger holds of the run is counted at its end")
	require.Equal(s, adopt.Done, done.Phase)
	require.WithinDuration(s, time.Now(), done.Finished, time.Minute)
	require.Equal(s, done, s.now())
	s.adopted(true)

	again := s.begin("another")
	require.NotEqual(s, done.Run, again.Run)
	require.Zero(s, again.Watermark)
	require.Equal(s, adopt.Counts{}, again.Counts)
	require.Zero(s, again.Finished)
	s.adopted(false)
}

func adoptBeginRace(s *ledgerTest) {
	none := s.now()
	first := s.begin("first")
	_, err := s.a.Adoption.Begin(s.Context(), none, "second")
	requireFault(s, err, fault.Contention, fault.Changed)
	require.Equal(s, first, s.now())
	other := first
	other.Run = none.Run
	_, err = s.a.Adoption.Begin(s.Context(), other, "second")
	requireFault(s, err, fault.Contention, fault.Changed)
	other = first
	other.Phase = adopt.Done
	_, err = s.a.Adoption.Begin(s.Context(), other, "second")
	requireFault(s, err, fault.Contention, fault.Changed)
	require.Equal(s, first, s.now())
}

func adoptFenced(s *ledgerTest) {
	state := s.begin("me")
	row := adoptedRows(doc("a", 1, 1, "x", 1))
	refused := func(run string, from int64) {
		s.Helper()
		before := s.now()
		for _, advance := range []*adopt.Advance{nil, {Watermark: 50}} {
			_, err := s.a.Adoption.Page(s.Context(), adopt.Page{Run: run, From: from, Rows: row, Advance: advance})
			requireFault(s, err, fault.Contention, fault.Changed)
		}
		_, err := s.a.Adoption.Finish(s.Context(), run, from)
		requireFault(s, err, fault.Contention, fault.Changed)
		require.Equal(s, before, s.now())
		require.False(s, s.state(1)[1].InLedger, "nothing of the page stays")
	}
	refused(state.Run, 1)
	refused(invoice.Key("another run")[:32], 0)
	s.page(state, 0, &adopt.Advance{Watermark: 10})
	refused(state.Run, 0)
	_, err := s.a.Adoption.Finish(s.Context(), state.Run, 10)
	require.NoError(s, err)
	refused(state.Run, 10)
	s.begin("me")
	refused(state.Run, 0)
}

func adoptRace(s *ledgerTest) {
	const n = 8
	state := s.begin("me")
	errs := make([]error, n)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-start
			_, errs[i] = s.a.Adoption.Page(s.Context(), adopt.Page{
				Run: state.Run, From: 0, Rows: adoptedRows(doc("a", 1, 1, "x", int64(i+1))), Advance: &adopt.Advance{Watermark: int64(i + 1)},
			})
		})
	}
	close(start)
	wg.Wait()
	winner := -1
	for i, err := range errs {
		if err == nil {
			require.Equal(s, -1, winner, "two moved it")
			winner = i
			continue
		}
		require.Equal(s, fault.Contention, fault.KindOf(err), "%v", err)
	}
	require.NotEqual(s, -1, winner, "nobody moved it: %v", errs)
	require.Equal(s, int64(winner+1), s.now().Watermark)
	for line, found := range s.state(span(1, n)...) {
		require.Equal(s, line == int64(winner+1), found.InLedger, "line %d", line)
	}
}

func adoptPage(s *ledgerTest) {
	s.h.AddLines(s, 1, 2)
	s.apply(writer.Write, doc("old", 1, 1, "old", 1))
	before := s.state(1, 2, 3)
	refused := doc("refused", 3, 9, "x", 2)
	rows := slices.Concat(adoptedRows(doc("a", 2, 5, "new", 1)), adoptedRows(refused), adoptedRows(mark(doc("m", 2, 6, "x", 3))))
	rows[1].RowHash = ""
	require.Equal(s, adopt.Written{Taken: 3}, s.page(s.begin("me"), 0, nil, rows...))
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
		require.Equal(s, adopt.Written{Taken: n}, s.page(state, 0, nil, rows...))
		first += int64(n)
	}
	require.Equal(s, adopt.Written{}, s.page(state, 0, nil, adoptedRows(doc("older", 0, 1, "x", span(2, 2500)...))...))
	done, err := s.a.Adoption.Finish(s.Context(), state.Run, 0)
	require.NoError(s, err)
	require.Equal(s, 3501, done.Counts.Adopted)
}

func adoptOddRows(s *ledgerTest) {
	state := s.begin("o'who <\u00fc\U0001f600>")
	require.Equal(s, "o'who <\u00fc\U0001f600>", s.now().Who)
	for i, id := range []string{
		"2025-12-17 10:30:15.123456-06:00_a", `say "a" \u0041`, "it's", "<a&b>", "\u00fcn\u00ef-\u65e5\u672c-\U0001f600", "a", "A", "tab\there", " blank ",
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
	for line, order := range [][]writer.Item{{older, newer}, {newer, older}, {lo, hi}, {hi, lo}} {
		want := newer
		if order[0].Version.US == order[1].Version.US {
			want = hi
		}
		taken := 0
		for _, it := range order {
			it.Main = int64(line + 1)
			taken += s.page(state, 0, nil, adoptedRows(it)...).Taken
		}
		want.Main = int64(line + 1)
		require.Equal(s, ledgerRow(adoptedRows(want)[0]), s.state(want.Main)[want.Main].Ledger, "order %d", line)
		require.Equal(s, 1+(line+1)%2, taken)
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
	v := invoice.HashVersion
	row := func(line int64, d side) adopt.Row {
		r := adopt.Row{
			Line: line, Version: invoice.Version{US: us, Key: invoice.Key("a")}, DocumentID: "a", SourceTS: d.ts, Outcome: d.outcome,
		}
		if d.outcome != adopt.Failed {
			r.Hash, r.HashVersion, r.RowHash = invoice.Key(d.content), d.recipe, invoice.Key("row "+d.content)
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
		{"by another recipe: it cannot be compared", side{10, adopt.Applied, "x", v}, side{11, adopt.Adopted, "y", v + 1}, false},
		{"proving nothing, over what was applied", side{10, adopt.Applied, "x", v}, side{11, adopt.Adopted, "y", adopt.Unproven}, false},
		{"over what proves nothing", side{10, adopt.Adopted, "x", adopt.Unproven}, side{11, adopt.Adopted, "x", v}, true},
		{"other content, both proving nothing", side{10, adopt.Adopted, "x", adopt.Unproven}, side{11, adopt.Adopted, "y", adopt.Unproven}, true},
		{"the same content, both proving nothing", side{10, adopt.Adopted, "x", adopt.Unproven}, side{11, adopt.Adopted, "x", adopt.Unproven}, false},
	} {
		line := int64(i + 1)
		has, come := row(line, c.has), row(line, c.come)
		s.h.SetLedger(s, line, ledgerRow(has))
		want, written := has, adopt.Written{Known: 1}
		if c.taken {
			want, written = come, adopt.Written{Taken: 1}
		}
		require.Equal(s, written, s.page(state, 0, nil, come), c.why)
		require.Equal(s, ledgerRow(want), s.state(line)[line].Ledger, c.why)
	}
}

func adoptAgain(s *ledgerTest) {
	rows := slices.Concat(adoptedRows(doc("a", 1, 1, "x", 1, 2)), adoptedRows(mark(doc("m", 1, 1, "x", 3))))
	state := s.begin("me")
	require.Equal(s, adopt.Written{Taken: 3}, s.page(state, 0, nil, rows...))
	before := s.state(1, 2, 3)
	require.Equal(s, adopt.Written{}, s.page(state, 0, &adopt.Advance{Watermark: 5, Counts: adopt.Counts{Known: 2}}, rows...))
	require.Equal(s, 2, s.now().Counts.Known, "a window that is read again counts as it did")
	require.Equal(s, before, s.state(1, 2, 3))

	next := s.begin("me")
	require.Equal(s, adopt.Written{Known: 3}, s.page(next, 0, &adopt.Advance{Watermark: 5, Counts: adopt.Counts{Known: 2}}, rows...))
	require.Equal(s, 5, s.now().Counts.Known, "the page's own are added")
	require.Equal(s, before, s.state(1, 2, 3))
	done, err := s.a.Adoption.Finish(s.Context(), next.Run, 5)
	require.NoError(s, err)
	require.Zero(s, done.Counts.Adopted+done.Counts.Marked, "they are the earlier run's")

	lo, hi := doc("lo", 1, 1, "x", 9), doc("hi", 1, 1, "x", 9)
	if lo.Version.Compare(hi.Version) > 0 {
		lo, hi = hi, lo
	}
	s.page(s.begin("me"), 0, nil, adoptedRows(hi)...)
	require.Equal(s, adopt.Written{}, s.page(s.begin("me"), 0, nil, adoptedRows(lo)...), "known is a document, not a time")
}

func adoptPageFails(s *ledgerTest) {
	if s.a.FailPage == nil {
		s.Skip("not shown here: needs FailPage")
	}
	state := s.begin("me")
	s.a.FailPage(s)
	p := adopt.Page{Run: state.Run, Rows: adoptedRows(doc("a", 1, 1, "x", 1, 2)), Advance: &adopt.Advance{Watermark: 5}}
	_, err := s.a.Adoption.Page(s.Context(), p)
	require.Error(s, err)
	require.Equal(s, state, s.now())
	require.False(s, s.state(1)[1].InLedger)
	written, err := s.a.Adoption.Page(s.Context(), p)
	require.NoError(s, err, "and the next one is not hurt")
	require.Equal(s, 2, written.Taken)
}

func adoptCancelled(s *ledgerTest) {
	state := s.begin("me")
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	_, page := s.a.Adoption.Page(ctx, adopt.Page{Run: state.Run, Rows: adoptedRows(doc("a", 1, 1, "x", 1)), Advance: &adopt.Advance{Watermark: 5}})
	_, read := s.a.Adoption.State(ctx)
	_, begin := s.a.Adoption.Begin(ctx, state, "x")
	_, finish := s.a.Adoption.Finish(ctx, state.Run, 0)
	_, rows := s.a.Adoption.Rows(ctx, []int64{1})
	_, adopted := s.a.Adoption.Adopted(ctx)
	for name, err := range map[string]error{
		"page": page, "state": read, "begin": begin, "finish": finish, "rows": rows, "adopted": adopted, "empty": s.a.Adoption.MarkEmpty(ctx, "x"),
	} {
		requireFault(s, err, fault.Infrastructure, fault.NoCondition, name)
	}
	require.Equal(s, state, s.now())
	require.False(s, s.state(1)[1].InLedger)
}

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
	rows[0].HashVersion, rows[0].RowHash = adopt.Unproven, ""
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
	s.apply(writer.Write, a)
	committed := a
	committed.SourceTS = 102 // recording the outcome was a change
	older := doc("older", 9, 200, "y", 2, 3)
	state := s.begin("me")
	require.Equal(s, adopt.Written{Known: 2}, s.page(state, 0, nil, adoptedRows(committed)...))
	require.Equal(s, adopt.Written{Taken: 1}, s.page(state, 0, nil, adoptedRows(older)...), "line 3 was not known")
	s.holds(a)
	newer := doc("newer", 11, 300, "z", 2)
	rows := s.h.Row(s, 2)
	require.Equal(s, adopt.Written{Taken: 1}, s.page(state, 0, nil, adoptedRows(newer)...))
	require.Equal(s, ledgerRow(adoptedRows(newer)[0]), s.state(2)[2].Ledger)
	require.Equal(s, rows, s.h.Row(s, 2))
	s.holds(a, 1)
	s.gives(committed, "unchanged(unchanged superseded)")
}

func adoptRows(s *ledgerTest) {
	s.h.AddLines(s, 1)
	applied := doc("applied", 10, 100, "x", 1)
	s.apply(writer.Write, applied)
	rows := slices.Concat(adoptedRows(doc("a", 2, 5, "y", 2)), adoptedRows(mark(doc("m", 2, 6, "z", 3))))
	rows[0].RowHash = ""
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
			it := doc(fmt.Sprintf("doc %d of %d", i, from), int64(rapid.IntRange(1, 4).Draw(r, "version")), int64(rapid.IntRange(1, 3).Draw(r, "ts")),
				fmt.Sprint("content ", i), rapid.SliceOfNDistinct(rapid.Int64Range(from, from+lines-1), 1, lines, rapid.ID).Draw(r, "lines")...)
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

// begin begins a run in the place of whatever there is.
func (s *ledgerTest) begin(who string) adopt.State {
	s.Helper()
	state, err := s.a.Adoption.Begin(s.Context(), s.now(), who)
	require.NoError(s, err)
	return state
}

func (s *ledgerTest) now() adopt.State {
	s.Helper()
	state, err := s.a.Adoption.State(s.Context())
	require.NoError(s, err)
	return state
}

func (s *ledgerTest) adopted(want bool) {
	s.Helper()
	adopted, err := s.a.Adoption.Adopted(s.Context())
	require.NoError(s, err)
	require.Equal(s, want, adopted)
}

func (s *ledgerTest) page(state adopt.State, from int64, advance *adopt.Advance, rows ...adopt.Row) adopt.Written {
	s.Helper()
	written, err := s.a.Adoption.Page(s.Context(), adopt.Page{Run: state.Run, From: from, Rows: rows, Advance: advance})
	require.NoError(s, err)
	return written
}

// adoptedRows are an item's rows as the adoption makes them.
func adoptedRows(it writer.Item) []adopt.Row {
	rows := make([]adopt.Row, 0, it.Rows())
	for _, line := range linesOf(it) {
		r := adopt.Row{Line: line, Version: it.Version, DocumentID: it.DocumentID, SourceTS: it.SourceTS, Outcome: adopt.Failed}
		if !it.FailureMark {
			r.Outcome, r.Hash, r.HashVersion = adopt.Adopted, it.Hash, it.HashVersion
			r.RowHash = invoice.RowHash(it.Values, it.Main, line)
		}
		rows = append(rows, r)
	}
	return rows
}

// ledgerRow is what the ledger shows of a row.
func ledgerRow(r adopt.Row) LedgerRow {
	return LedgerRow{
		Version: r.Version, DocumentID: r.DocumentID, SourceTS: r.SourceTS, Hash: r.Hash, HashVersion: r.HashVersion,
		RowHash: r.RowHash, Outcome: string(r.Outcome),
	}
}
