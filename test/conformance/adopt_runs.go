package conformance

import (
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/adopt"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

func adoptWithoutNames(s *ledgerTest) {
	require.Equal(s, adopt.State{}, s.now())
	s.adopted(false)
	err := s.a.Adoption.Page(s.Context(), adopt.Page{Run: "", From: 0, Rows: adoptedRows(doc("a", 1, 1, "x", 1))})
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
	require.Equal(s, "somebody", state.By)
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
	require.Equal(s, "me@here", state.By)
	require.WithinDuration(s, time.Now(), state.Started, time.Minute)
	require.Zero(s, state.Finished)
	require.Equal(s, state, s.now())
	s.adopted(false)

	a, b, c := doc("a", 1, 1, "x", 1, 2), doc("b", 2, 1, "x", 2, 3), mark(doc("c", 2, 1, "x", 4))
	s.page(state, 0, nil, adoptedRows(a)...)
	require.Equal(s, state, s.now(), "without an advance nothing of the state moves")
	counts := adopt.Counts{
		Documents: 3, Lines: 5, Unproven: 1, Open: 2, Processing: 1,
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
			err := s.a.Adoption.Page(s.Context(), adopt.Page{Run: run, From: from, Rows: row, Advance: advance})
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
	_, errs := atOnce(n, func(i int) (bool, error) {
		return true, s.a.Adoption.Page(s.Context(), adopt.Page{
			Run: state.Run, From: 0, Rows: adoptedRows(doc("a", 1, 1, "x", int64(i+1))),
			Advance: &adopt.Advance{Watermark: int64(i + 1)},
		})
	})
	winner := oneWins(s, errs, fault.NoCondition)
	require.Equal(s, int64(winner+1), s.now().Watermark)
	for line, found := range s.state(span(1, n)...) {
		require.Equal(s, line == int64(winner+1), found.InLedger, "line %d", line)
	}
}
