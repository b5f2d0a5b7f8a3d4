package conformance

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/reconcile"
	"sqlwriter/test/mapping"
)

// TestRows checks an implementation of reconcile.Rows against the port's contract. The harness has Rows. open makes a
// new harness over empty tables; it is called once per case.
func TestRows(t *testing.T, open func(t testing.TB) SinkHarness) { runCases(t, open, rowsCases()) }

// rowsCases: what a rewrite calls edited is edited here (rewriteCases), and nothing else is.
func rowsCases() []sinkCase {
	return []sinkCase{
		{"rows: an empty ledger", nil, rowsEmpty},
		{"rows: a written line is the same, with its ledger row and its values", nil, rowsSame},
		{"rows: a status that no document gives is reviewed, in either table", nil, rowsReviewed},
		{"rows: an edit of either table is edited, whatever differs", nil, rowsEdits},
		{"rows: an edit that a person took back is the same", nil, rowsTakenBack},
		{"rows: a line without its tracking row", nil, rowsNoTracking},
		{"rows: a line without its detail row", nil, rowsMissing},
		{"rows: a line without its detail row is archived if it was written long ago", nil, rowsArchived},
		{
			"rows: what was written is unknown of a mark, an adopted line, another hash version and no ledger row", nil,
			rowsUnknown,
		},
		{"rows: whatever a document gives is the same", nil, rowsValues},
		{
			"rows: unedited lines in columns of other types are the same, and edited ones are not",
			[]string{"OddColumns"},
			rowsOddColumns,
		},
		{"rows: the hash of the rows follows every change, and the write id every write", nil, rowsHashes},
		{"rows: a scan takes 1,000 ledger rows whatever their environment, and counts its own", nil, rowsPages},
		{"rows: an environment's name is exact", nil, rowsEnvironments},
		{"rows: 1,000 lines by their ids, some twice and some without any row", nil, rowsByID},
		{"rows: lines that are written meanwhile are the same, and no writer fails", nil, rowsBesideWriter},
		{
			"rows: another program's uncommitted change is not read, and the wait is bounded",
			[]string{"Lock"},
			rowsLocked,
		},
		{"rows: a missing table is infrastructure", []string{"Hide"}, rowsHidden},
		{"rows: a call whose context has ended is infrastructure", nil, rowsEnded},
	}
}

// line reads one line. A scan of its ledger row must say the same.
func (s *sinkTest) line(id int64) reconcile.Line {
	s.Helper()
	lines, err := s.h.Rows(sysName, 0).Lines(s.Context(), []int64{id})
	require.NoError(s, err)
	require.Len(s, lines, 1)
	require.Equal(s, id, lines[0].ID)
	require.Equal(s, lines[0].Rows == reconcile.RowsMissing, lines[0].Values == nil)
	if l, ok := s.h.Ledger(s, id); ok {
		counted := lines[0].Rows
		if l.Outcome == "failed" && counted == reconcile.RowsUnknown {
			counted = reconcile.RowsSame
		}
		require.Equal(s, counted, s.scanned(id))
	}
	return lines[0]
}

// counted is a scan without the documents of its lines. They have each line that it counts.
func (s *sinkTest) counted(scanned reconcile.Scanned) reconcile.Scanned {
	s.Helper()
	lines := slices.Concat(slices.Collect(maps.Values(scanned.Documents))...)
	require.Len(s, lines, scanned.Same+scanned.Reviewed+notComparable(scanned)+len(scanned.Differ))
	for _, line := range lines {
		l, _ := s.h.Ledger(s, line)
		require.Contains(s, scanned.Documents[l.DocumentID], line)
	}
	scanned.Documents = nil
	return scanned
}

func notComparable(scanned reconcile.Scanned) (n int) {
	for _, lines := range scanned.NotComparable {
		n += lines
	}
	return n
}

// scanned is the state of a line as a scan of its ledger row counts it. Those that differ are given as they are looked
// at.
func (s *sinkTest) scanned(id int64) reconcile.RowState {
	s.Helper()
	scanned, err := s.h.Rows(sysName, 0).Scan(s.Context(), id-1, 1)
	require.NoError(s, err)
	require.Equal(s, id, scanned.Last)
	require.True(s, scanned.More, "as many as were asked for")
	require.Equal(s, 1, scanned.Same+scanned.Reviewed+notComparable(scanned)+scanned.Archived+len(scanned.Differ))
	switch {
	case scanned.Same == 1:
		return reconcile.RowsSame
	case scanned.Reviewed == 1:
		return reconcile.RowsReviewed
	case notComparable(scanned) == 1:
		l, _ := s.h.Ledger(s, id)
		version := l.HashVersion
		if l.DetailHash == "" {
			version = 0
		}
		require.Equal(s, map[int]int{version: 1}, scanned.NotComparable)
		return reconcile.RowsUnknown
	}
	require.Equal(s, []int64{id}, scanned.Differ)
	lines, err := s.h.Rows(sysName, 0).Lines(s.Context(), []int64{id})
	require.NoError(s, err)
	require.Contains(s,
		[]reconcile.RowState{reconcile.RowsEdited, reconcile.RowsNoTracking, reconcile.RowsMissing}, lines[0].Rows)
	return lines[0].Rows
}

// are requires one state of lines.
func (s *sinkTest) are(want reconcile.RowState, ids ...int64) {
	s.Helper()
	for _, id := range ids {
		require.Equal(s, want, s.line(id).Rows, "line %d", id)
	}
}

func rowsEmpty(s *sinkTest) {
	rows := s.h.Rows(sysName, 0)
	for _, after := range []int64{math.MinInt64, 0, 7} {
		scanned, err := rows.Scan(s.Context(), after, reconcile.MaxScan)
		require.NoError(s, err)
		require.Equal(s, reconcile.Scanned{Last: after}, s.counted(scanned))
	}
	lines, err := rows.Lines(s.Context(), nil)
	require.NoError(s, err)
	require.Empty(s, lines)
	lines, err = rows.Lines(s.Context(), []int64{7})
	require.NoError(s, err)
	require.Equal(s, []reconcile.Line{{ID: 7, Rows: reconcile.RowsMissing}}, lines)
}

func rowsSame(s *sinkTest) {
	s.h.AddLines(s, 1, 2, 3)
	a := doc("a", 10, 5, "x", 1, 2)
	s.gives(a, "applied(applied applied)")
	before := s.state(1, 2, 3)
	for _, id := range linesOf(a) {
		l := s.line(id)
		require.NotEmpty(s, l.Ledger.WriteID)
		require.NotEmpty(s, l.RowHash)
		require.NotNil(s, l.Ledger.Recipe)
		require.Equal(s, reconcile.Line{
			ID: id, Rows: reconcile.RowsSame, RowHash: l.RowHash, Values: mapping.InUse().RowValues(a.Values, 1, id),
			Ledger: reconcile.Ledger{
				Outcome: "applied", Version: a.Version, DocumentID: "a", SysName: sysName, SourceTS: 5, Hash: a.Hash,
				HashVersion: a.HashVersion,
				WriteID:     l.Ledger.WriteID, Recipe: l.Ledger.Recipe,
			},
		}, l)
	}
	require.Equal(s, before, s.state(1, 2, 3), "nothing is changed")
}

func rowsReviewed(s *sinkTest) {
	s.h.AddLines(s, 1, 2)
	a := doc("a", 10, 5, "x", 1, 2)
	for _, table := range []invoice.Table{invoice.Detail, invoice.Tracking} {
		for _, status := range []invoice.Value{
			invoice.Of("BY HAND"), invoice.Null(), invoice.Of(""), invoice.Of("rc-ai"),
		} {
			a.Overwrite = linesOf(a)
			s.givesIn(commit.Rewrite, []string{"applied(applied applied)"}, a)
			s.are(reconcile.RowsSame, 1, 2)
			s.change(2, table, statusColumn, status)
			s.are(reconcile.RowsReviewed, 2)
			s.are(reconcile.RowsSame, 1)
			s.edit(2)
			s.are(reconcile.RowsEdited, 2)
		}
	}
}

func rowsEdits(s *sinkTest) {
	s.h.AddLines(s, 1, 2)
	for _, table := range []invoice.Table{invoice.Detail, invoice.Tracking} {
		for name, edit := range edits() {
			for _, column := range []string{"CLN_MFR_AI_NM", "CLN_MFR_PRT_NUM", "AI_STG_NM"} {
				at := place(table, column)
				a := replaced(doc("a", 10, 5, "x", 1, 2), at, "lower case ")
				a.Overwrite = linesOf(a)
				s.givesIn(commit.Rewrite, []string{"applied(applied applied)"}, a)
				s.change(2, table, column, edit(s.h.Row(s, 2).Values[at]))
				require.Equal(s, reconcile.RowsEdited, s.line(2).Rows, "%s in %s.%s", name, table, column)
				s.are(reconcile.RowsSame, 1)
			}
		}
	}
	for _, c := range []struct {
		table  invoice.Table
		column string
		v      invoice.Value
	}{
		{invoice.Detail, "MFR_CNFDC_SCR", invoice.Of("0.0001")},
		{invoice.Detail, "DATA_VRFN_IND", invoice.Null()},
		{invoice.Detail, "PRNT_IVCE_DTL_ID", invoice.Null()},
		{invoice.Detail, "PRNT_IVCE_DTL_ID", invoice.Of("7")},
		{invoice.Tracking, "PRT_NUM_CNFDC_SCR", invoice.Null()},
		{invoice.Tracking, "PRCS_STRT_TS", invoice.Of("2025-12-17T16:30:15.999999Z")},
		{invoice.Tracking, "RQST_TS", invoice.Null()},
		{invoice.Tracking, "DUP_IND", invoice.Of("N")},
	} {
		a := doc("a", 10, 5, "x", 1, 2)
		a.Overwrite = linesOf(a)
		s.givesIn(commit.Rewrite, []string{"applied(applied applied)"}, a)
		s.change(2, c.table, c.column, c.v)
		require.Equal(s, reconcile.RowsEdited, s.line(2).Rows, "%s.%s", c.table, c.column)
		s.are(reconcile.RowsSame, 1)
	}
}

func rowsTakenBack(s *sinkTest) {
	s.h.AddLines(s, 1)
	s.gives(doc("a", 10, 5, "x", 1), "applied(applied)")
	written, hash := s.h.Row(s, 1), s.line(1).RowHash
	s.edit(1)
	require.NotEqual(s, hash, s.line(1).RowHash)
	s.h.SetRow(s, 1, written)
	s.are(reconcile.RowsSame, 1)
	require.Equal(s, hash, s.line(1).RowHash)
}

func rowsNoTracking(s *sinkTest) {
	s.h.AddLines(s, 1, 2, 3)
	a := doc("a", 10, 5, "x", 1, 2, 3)
	s.gives(a, "applied(applied applied applied)")
	for _, id := range []int64{1, 2, 3} {
		s.h.SetRow(s, id, withoutTracking(s.h.Row(s, id)))
	}
	s.change(2, invoice.Detail, statusColumn, invoice.Of("BY HAND"))
	s.edit(3)
	s.are(reconcile.RowsNoTracking, 1, 2)
	s.are(reconcile.RowsEdited, 3)
	want := SinkRow{Values: mapping.InUse().RowValues(a.Values, 1, 1)}
	require.Equal(s, withoutTracking(want).Values, s.line(1).Values)
	a.Overwrite = linesOf(a)
	s.givesIn(commit.Rewrite, []string{"applied(applied applied applied)"}, a)
	s.are(reconcile.RowsSame, 1, 2, 3)
}

// rowsArchived: the ledger's time decides, in days by the database's clock, and only for a row that is gone.
func rowsArchived(s *sinkTest) {
	s.h.AddLines(s, 4)
	for id, c := range map[int64]struct {
		outcome string
		daysAgo int
	}{1: {"applied", 31}, 2: {"adopted", 31}, 3: {"failed", 31}, 4: {"applied", 31}, 5: {"applied", 29}} {
		l := ledgerOf(doc("a", 10, 5, "x", id), id)
		if c.outcome == "failed" {
			l = ledgerOf(mark(doc("a", 10, 5, "x", id)), id)
		}
		l.Outcome, l.DaysAgo = c.outcome, c.daysAgo
		s.h.SetLedger(s, id, l)
	}
	for kept, want := range map[int][]reconcile.RowState{
		30: {
			reconcile.RowsArchived, reconcile.RowsArchived, reconcile.RowsArchived, reconcile.RowsEdited,
			reconcile.RowsMissing, reconcile.RowsMissing,
		},
		0: {
			reconcile.RowsMissing, reconcile.RowsMissing, reconcile.RowsMissing, reconcile.RowsEdited,
			reconcile.RowsMissing, reconcile.RowsMissing,
		},
	} {
		lines, err := s.h.Rows(sysName, kept).Lines(s.Context(), span(1, 6))
		require.NoError(s, err)
		found := make([]reconcile.RowState, len(want))
		scanned := reconcile.Scanned{Last: 5}
		for _, l := range lines {
			if found[l.ID-1] = l.Rows; l.Rows == reconcile.RowsArchived {
				scanned.Archived++
			} else if l.ID <= scanned.Last {
				scanned.Differ = append(scanned.Differ, l.ID)
			}
		}
		slices.Sort(scanned.Differ)
		require.Equal(s, want, found, "kept for %d days", kept)
		got, err := s.h.Rows(sysName, kept).Scan(s.Context(), 0, reconcile.MaxScan)
		require.NoError(s, err)
		got.Documents = nil // rowsEnvironments looks at them
		require.Equal(s, scanned, got)
	}
}

func rowsMissing(s *sinkTest) {
	for n, outcome := range []string{"applied", "adopted", "failed"} {
		id := int64(n + 1)
		l := ledgerOf(doc("a", 10, 5, "x", id), id)
		l.Outcome = outcome
		if outcome == "failed" {
			l = ledgerOf(mark(doc("a", 10, 5, "x", id)), id)
		}
		s.h.SetLedger(s, id, l)
		s.are(reconcile.RowsMissing, id)
		got := s.line(id)
		require.Empty(s, got.RowHash)
		require.Equal(s, outcome, got.Ledger.Outcome)
	}
}

func rowsUnknown(s *sinkTest) {
	s.h.AddLines(s, 1, 2, 3, 4, 5, 6)
	s.gives(mark(doc("a", 10, 5, "x", 1)), "applied(applied)")
	s.gives(otherRecipe(doc("b", 10, 5, "x", 2)), "applied(applied)")
	for _, id := range []int64{3, 4} {
		c := doc("c", 10, 5, "x", id)
		s.gives(c, "applied(applied)")
		l := ledgerOf(c, id)
		l.DetailHash, l.TrackingHash = "", ""
		if id == 3 {
			l.Outcome = "adopted"
		}
		s.h.SetLedger(s, id, l)
	}
	s.h.SetRow(s, 6, SinkRow{Detail: true, Tracking: true, Values: contentValues("somebody else's")})
	s.are(reconcile.RowsUnknown, 1, 2, 3, 4, 5, 6)
	s.h.SetRow(s, 3, withoutTracking(s.h.Row(s, 3)))
	s.edit(2)
	s.are(reconcile.RowsUnknown, 2, 3)
	mark := s.line(1).Ledger
	require.Equal(s, reconcile.Ledger{
		Outcome: "failed", Version: invoice.Version{US: 10, Key: invoice.Key("a")}, DocumentID: "a", SysName: sysName,
		SourceTS: 5, WriteID: mark.WriteID,
	}, mark)
	require.Equal(s, reconcile.Ledger{}, s.line(5).Ledger)
	require.Equal(s, nullValues(), s.line(5).Values)
	require.Equal(s, contentValues("somebody else's"), s.line(6).Values)
}

func rowsValues(s *sinkTest) {
	s.h.AddLines(s, 1, 2)
	for n, text := range []string{
		"", "x", "ünï", "漢字", "ß", "😀", "𝄞 a 😀", "'); --", "a ", " a", " ", "\u00a0", "0042", "1e5", "-0", "1.50",
		"true", "2025-12-17", "null",
	} {
		a := with(doc("a", int64(10+n), 5, "x", 1, 2), func(c invoice.Column) (string, bool) {
			return text, free(c) && len(text) <= width(c)
		})
		s.gives(a, "applied(applied applied)")
		s.are(reconcile.RowsSame, 1, 2)
		require.Equal(s, mapping.InUse().RowValues(a.Values, 1, 2), s.line(2).Values)
	}
	for n, decimal := range []string{"0.0000", "1.0000", "0.9500", "0.1000", "0.9999", "0.0001", "0.3333"} {
		a := with(doc("a", int64(100+n), 5, "x", 1, 2), func(c invoice.Column) (string, bool) {
			return decimal, c.Kind == invoice.Decimal
		})
		s.gives(a, "applied(applied applied)")
		s.are(reconcile.RowsSame, 1, 2)
		require.Equal(s, mapping.InUse().RowValues(a.Values, 1, 2), s.line(2).Values)
	}
	for n, at := range []string{
		"1970-01-01T00:00:00.000000Z", "2025-12-17T16:30:15.000001Z", "2024-02-29T23:59:59.999999Z",
		"9999-12-31T23:59:59.999999Z",
	} {
		a := with(doc("a", int64(200+n), 5, "x", 1, 2), func(c invoice.Column) (string, bool) {
			return moment(c, at), c.Kind == invoice.Time
		})
		s.gives(a, "applied(applied applied)")
		s.are(reconcile.RowsSame, 1, 2)
	}
	a := with(doc("a", 300, 5, "x", 1, 2), func(c invoice.Column) (string, bool) {
		return strings.Repeat("ü", width(c)), free(c)
	})
	s.gives(a, "applied(applied applied)")
	s.are(reconcile.RowsSame, 1, 2)
	a = doc("a", 301, 5, "x", 1, 2)
	for i, c := range mapping.InUse().Columns() {
		if !c.Required {
			a.Values[i] = invoice.Null()
		}
	}
	s.gives(a, "applied(applied applied)")
	s.are(reconcile.RowsSame, 1, 2)
}

func rowsOddColumns(s *sinkTest) {
	edits := s.h.OddColumns(s)
	require.NotEmpty(s, edits)
	s.h.AddLines(s, 1, 2)
	for n, stamp := range []string{
		"2025-12-17T16:30:15.123456Z", "2025-12-17T23:59:59.999999Z", "2025-12-17T16:30:15.005000Z",
		"2025-12-17T16:30:15.000000Z",
	} {
		for _, text := range []string{"lower case", "blank ", "ünï"} {
			a := with(doc("a", int64(10+n), 5, "x", 1, 2), func(c invoice.Column) (string, bool) {
				if c.Kind == invoice.Time {
					return formed(c, invoice.Of(stamp)).Text, true
				}
				return text, free(c)
			})
			a.Overwrite = linesOf(a)
			s.givesIn(commit.Rewrite, []string{"applied(applied applied)"}, a)
			s.are(reconcile.RowsSame, 1, 2)
			for _, edit := range edits {
				edit(2)
				s.are(reconcile.RowsEdited, 2)
				s.are(reconcile.RowsSame, 1)
				s.givesIn(commit.Rewrite, []string{"applied(applied applied)"}, a)
			}
		}
	}
}

func rowsHashes(s *sinkTest) {
	s.h.AddLines(s, 1)
	a := doc("a", 10, 5, "x", 1)
	hashes, writes := map[string]string{}, map[string]string{}
	hash := func(what string) string {
		h := s.line(1).RowHash
		require.NotEmpty(s, h)
		require.Empty(s, hashes[h], "%s: the hash of other rows", what)
		hashes[h] = what
		return h
	}
	write := func(what string) {
		id := s.line(1).Ledger.WriteID
		require.Empty(s, writes[id], "%s: the id of another write", what)
		writes[id] = what
	}
	hash("nothing written")
	s.gives(a, "applied(applied)")
	written := hash("written")
	write("written")
	now := s.line(1)
	s.gives(a, "unchanged(unchanged)")
	require.Equal(s, now, s.line(1))
	s.givesIn(commit.Rewrite, []string{"applied(applied)"}, a)
	write("written again")
	require.Equal(s, written, s.line(1).RowHash)
	for _, c := range []struct {
		table  invoice.Table
		column string
		v      invoice.Value
	}{
		{invoice.Detail, statusColumn, invoice.Of("BY HAND")},
		{invoice.Tracking, statusColumn, invoice.Of("BY HAND")},
		{invoice.Detail, "UPC_CD", invoice.Null()},
		{invoice.Detail, "UPC_CD", invoice.Of("")},
		{invoice.Tracking, "UPC_CD", invoice.Null()},
		{invoice.Detail, "MFR_CNFDC_SCR", invoice.Of("1.0000")},
		{invoice.Tracking, "DUP_IND", invoice.Of("Y")},
	} {
		s.change(1, c.table, c.column, c.v)
		hash(fmt.Sprint(c))
	}
	s.h.SetRow(s, 1, withoutTracking(s.h.Row(s, 1)))
	hash("no tracking row")
	empty := s.h.Row(s, 1)
	empty.Tracking = true
	s.h.SetRow(s, 1, empty)
	hash("a tracking row without values")
}

func rowsPages(s *sinkTest) {
	rows := s.h.Rows(sysName, 0)
	const n = 1000
	ids := span(1, 3*n+1)
	s.h.AddLines(s, ids...)
	for i, sys := range []string{sysName, otherSys, sysName} { // 1 to 1000, 1001 to 2000, 2001 to 3000
		lines := ids[i*n : (i+1)*n]
		for at := 0; at < n; at += 500 {
			_, err := s.h.Sink.Apply(s.Context(),
				[]commit.Item{doc(fmt.Sprint(sys, i), 10, 5, "x", lines[at:at+500]...)}, commit.Write, unknown(sys))
			require.NoError(s, err)
		}
	}
	for _, id := range []int64{7, 1007, 2007} {
		s.edit(id)
	}
	s.setStatus(8, "BY HAND")
	s.setStatus(1008, "BY HAND")
	s.gives(mark(doc("m", 11, 5, "x", 9)), "applied(applied)")
	s.h.SetLedger(s, 5000, ledgerOf(doc("gone", 10, 5, "x", 5000), 5000))
	var pages []reconcile.Scanned
	after, more := int64(0), true
	for more {
		page, err := rows.Scan(s.Context(), after, reconcile.MaxScan)
		require.NoError(s, err)
		pages, after, more = append(pages, s.counted(page)), page.Last, page.More
	}
	require.Equal(s, []reconcile.Scanned{
		{Last: 1000, More: true, Same: 998, Reviewed: 1, Differ: []int64{7}},
		{Last: 2000, More: true},
		{Last: 3000, More: true, Same: 999, Differ: []int64{2007}},
		{Last: 5000, Differ: []int64{5000}},
	}, pages)
}

func rowsEnvironments(s *sinkTest) {
	others := []string{otherSys, strings.ToUpper(sysName), sysName + " ", sysName + "x", ""}
	ids := span(1, len(others)+1)
	s.h.AddLines(s, ids...)
	s.gives(doc("own", 10, 5, "x", ids[len(others)]), "applied(applied)")
	for i, sys := range others {
		it := doc("a", 10, 5, "x", ids[i])
		s.gives(it, "applied(applied)")
		l := ledgerOf(it, ids[i])
		l.SysName = sys
		s.h.SetLedger(s, ids[i], l)
		s.edit(ids[i])
	}
	scanned, err := s.h.Rows(sysName, 0).Scan(s.Context(), 0, reconcile.MaxScan)
	require.NoError(s, err)
	require.Equal(s, map[string][]int64{"own": {ids[len(others)]}}, scanned.Documents)
	require.Equal(s, reconcile.Scanned{Last: int64(len(ids)), Same: 1}, s.counted(scanned))
	lines, err := s.h.Rows(sysName, 0).Lines(s.Context(), ids)
	require.NoError(s, err)
	require.Len(s, lines, len(ids))
	for _, l := range lines {
		if l.Ledger.SysName != sysName {
			require.Equal(s, reconcile.RowsEdited, l.Rows, "lines of any environment are compared")
			require.Contains(s, others, l.Ledger.SysName)
		}
	}
}

func rowsByID(s *sinkTest) {
	ids := span(math.MaxInt64-500, 500)
	s.h.AddLines(s, ids...)
	s.gives(doc("a", 10, 5, "x", ids...), "applied("+strings.TrimSuffix(strings.Repeat("applied ", 500), " ")+")")
	asked := slices.Concat(ids, span(7, 400), ids[:100])
	slices.Reverse(asked)
	before := slices.Clone(asked)
	lines, err := s.h.Rows(sysName, 0).Lines(s.Context(), asked)
	require.NoError(s, err)
	require.Equal(s, before, asked, "the caller's list stays as it is")
	states, seen := map[reconcile.RowState]int{}, map[int64]bool{}
	for _, l := range lines {
		require.False(s, seen[l.ID], "line %d twice", l.ID)
		seen[l.ID] = true
		states[l.Rows]++
	}
	require.Equal(s, map[reconcile.RowState]int{reconcile.RowsSame: 500, reconcile.RowsMissing: 400}, states)
	require.True(s, seen[math.MaxInt64-1] && seen[7])
}

func rowsBesideWriter(s *sinkTest) {
	const rounds = 60
	ids := span(1, 40)
	s.h.AddLines(s, ids...)
	s.apply(commit.Write, doc("a", 10, 0, "x0", ids...))
	var failed error
	var writer sync.WaitGroup
	done := make(chan struct{})
	writer.Go(func() {
		defer close(done)
		for n := range int64(rounds) {
			if _, err := s.h.Sink.Apply(s.Context(), []commit.Item{doc("a", 10, n+1, fmt.Sprint("x", n+1), ids...)},
				commit.Write, unknown(sysName)); err != nil {
				failed = err
				return
			}
		}
	})
	rows, looks := s.h.Rows(sysName, 0), 0
	for running := true; running; {
		select {
		case <-done:
			running = false // and look once more
		default:
		}
		lines, err := rows.Lines(s.Context(), ids)
		if fault.KindOf(err) == fault.Contention {
			continue // the reader gives way
		}
		require.NoError(s, err)
		require.Len(s, lines, len(ids))
		looks++
		for _, l := range lines {
			require.Equal(s, reconcile.RowsSame, l.Rows, "line %d between two writes", l.ID)
			want := mapping.InUse().RowValues(contentValues(fmt.Sprint("x", l.Ledger.SourceTS)), 1, l.ID)
			require.Equal(s, want, l.Values, "line %d has the content that the ledger names", l.ID)
		}
		scanned, err := rows.Scan(s.Context(), 0, reconcile.MaxScan)
		if fault.KindOf(err) == fault.Contention {
			continue
		}
		require.NoError(s, err)
		require.Equal(s, len(ids), scanned.Same+scanned.Reviewed+len(scanned.Differ))
	}
	writer.Wait()
	require.NoError(s, failed, "the writer wins")
	require.Positive(s, looks)
	s.are(reconcile.RowsSame, ids...)
}

func rowsLocked(s *sinkTest) {
	s.h.AddLines(s, 1, 2)
	s.gives(doc("a", 10, 5, "x", 1, 2), "applied(applied applied)")
	unlock := s.lock(1)
	lines, err := s.h.Rows(sysName, 0).Lines(s.Context(), []int64{1, 2})
	if err != nil {
		require.Equal(s, fault.Contention, fault.KindOf(err), "%v", err)
	} else {
		require.Equal(s, []reconcile.RowState{reconcile.RowsSame, reconcile.RowsSame},
			[]reconcile.RowState{lines[0].Rows, lines[1].Rows})
	}
	scanned, err := s.h.Rows(sysName, 0).Scan(s.Context(), 0, reconcile.MaxScan)
	if err != nil {
		require.Equal(s, fault.Contention, fault.KindOf(err), "%v", err)
	} else {
		require.Equal(s, reconcile.Scanned{Last: 2, Same: 2}, s.counted(scanned))
	}
	unlock()
	s.are(reconcile.RowsSame, 1, 2)
}

func rowsHidden(s *sinkTest) {
	s.h.AddLines(s, 1)
	s.gives(doc("a", 10, 5, "x", 1), "applied(applied)")
	rows := s.h.Rows(sysName, 0)
	for _, c := range []struct {
		table  invoice.Table
		column string
	}{
		{invoice.Detail, ""},
		{invoice.Tracking, ""},
		{LedgerTable, ""},
		{invoice.Detail, RuledColumn(invoice.Detail).Name},
		{invoice.Tracking, RuledColumn(invoice.Tracking).Name},
	} {
		restore := s.hide(c.table, c.column)
		_, scan := rows.Scan(s.Context(), 0, reconcile.MaxScan)
		_, lines := rows.Lines(s.Context(), []int64{1})
		for _, err := range []error{scan, lines} {
			require.Equal(s, fault.Infrastructure, fault.KindOf(err), "%s %s: %v", c.table, c.column, err)
		}
		restore()
		s.are(reconcile.RowsSame, 1)
	}
}

func rowsEnded(s *sinkTest) {
	s.h.AddLines(s, 1)
	s.gives(doc("a", 10, 5, "x", 1), "applied(applied)")
	ctx := lateContext(s)
	rows := s.h.Rows(sysName, 0)
	_, scan := rows.Scan(ctx, 0, reconcile.MaxScan)
	_, lines := rows.Lines(ctx, []int64{1})
	for _, err := range []error{scan, lines} {
		require.Equal(s, fault.Infrastructure, fault.KindOf(err), "%v", err)
	}
	s.are(reconcile.RowsSame, 1)
}
