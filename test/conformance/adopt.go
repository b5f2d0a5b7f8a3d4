package conformance

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/adopt"
	"sqlwriter/internal/commit"
)

// Adoption has the ports of the adoption of a database with history.
type Adoption interface {
	adopt.Ledger
	adopt.Reader
	// MarkEmpty records that there is no history to adopt. It does nothing after that, or after an adoption began.
	MarkEmpty(ctx context.Context, who string) error
}

// LedgerHarness has a sink's harness, and the adoption of the same database.
type LedgerHarness struct {
	SinkHarness
	Adoption Adoption
	// FailPage makes the next page fail when its rows are written and its watermark is not; nil when that cannot be
	// shown.
	FailPage func(t testing.TB)
}

// ledgerTest is a case at work.
type ledgerTest struct {
	*sinkTest
	a LedgerHarness
}

// TestLedger checks an implementation of adopt.Ledger, and the state it leaves for commit.Sink, against the ports'
// contracts. open makes a new harness over empty tables; it is called once per case.
func TestLedger(t *testing.T, open func(t testing.TB) LedgerHarness) {
	cases := []struct {
		name string
		run  func(*ledgerTest)
	}{
		{"nothing was said: it is not adopted", adoptWithoutNames},
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
		{"the same page again changes nothing, in another run neither", adoptAgain},
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

// begin begins a run, which replaces an earlier one.
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
	require.Equal(s, want, s.now().Adopted())
}

func (s *ledgerTest) page(state adopt.State, from int64, advance *adopt.Advance, rows ...adopt.Row) {
	s.Helper()
	require.NoError(s,
		s.a.Adoption.Page(s.Context(), adopt.Page{Run: state.Run, From: from, Rows: rows, Advance: advance}))
}

// adoptedRows are an item's rows as the adoption makes them.
func adoptedRows(it commit.Item) []adopt.Row {
	rows := make([]adopt.Row, 0, it.Rows())
	for _, line := range linesOf(it) {
		r := adopt.Row{
			Line: line, Version: it.Version, DocumentID: it.DocumentID, SysName: sysName,
			SourceTS: it.SourceTS, Outcome: adopt.Failed,
		}
		if !it.FailureMark {
			r.Outcome, r.Hash, r.HashVersion = adopt.Adopted, it.Hash, it.HashVersion
		}
		rows = append(rows, r)
	}
	return rows
}

// ledgerRow is what the ledger shows of a row.
func ledgerRow(r adopt.Row) LedgerRow {
	return LedgerRow{
		Version: r.Version, DocumentID: r.DocumentID, SourceTS: r.SourceTS, Hash: r.Hash, HashVersion: r.HashVersion,
		SysName: r.SysName, Outcome: string(r.Outcome),
	}
}
