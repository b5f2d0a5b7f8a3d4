package ops_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/reconcile"
	"sqlwriter/internal/run"
	"sqlwriter/test/inmem"
	"sqlwriter/test/mapping"
)

// meddle changes a column of a line as another program does.
func (r *runs) meddle(line int64, table invoice.Table, column, value string) {
	r.t.Helper()
	l, ok := r.sink.Line(line)
	require.True(r.t, ok)
	l.Values = slices.Clone(l.Values)
	for i, c := range invoice.DefaultMapping().Columns() {
		if c.Table == table && c.Name == column {
			l.Values[i] = invoice.Of(value)
		}
	}
	r.sink.SetLine(line, l)
}

// loseTracking deletes a line's row in IVCE_TRKG_MSTR.
func (r *runs) loseTracking(line int64) {
	r.t.Helper()
	l, ok := r.sink.Line(line)
	require.True(r.t, ok)
	l.Tracking, l.Values = false, slices.Clone(l.Values)
	for i, c := range invoice.DefaultMapping().Columns() {
		if c.Table == invoice.Tracking {
			l.Values[i] = invoice.Null()
		}
	}
	r.sink.SetLine(line, l)
}

// makerOf and statusOf are values of IVCE_DTL.
func (r *runs) makerOf(line int64) string { return r.value(line, "CLN_MFR_AI_NM") }

func (r *runs) statusOf(line int64) string {
	return r.value(line, invoice.DefaultMapping().Status(invoice.Detail))
}

func (r *runs) value(line int64, column string) string {
	r.t.Helper()
	l, ok := r.sink.Line(line)
	require.True(r.t, ok)
	for i, c := range invoice.DefaultMapping().Columns() {
		if c.Table == invoice.Detail && c.Name == column {
			return l.Values[i].Text
		}
	}
	return ""
}

func twoLines(id string, main, duplicate int64, maker string) string {
	return fmt.Sprintf(`{"id":%q,"request_details":{"sys_name":"web"},"invoice_details_from_rpa":{"IVCE_DTL_UID":%d},
		"process_output":{"manufacturer_name":%q,"part_number":"425","unspsc":"39131711","invoice_line_status":"RC-AI"},
		"post-processing":{"duplicate_detail_uids":[%d]},"sql_writer":{"status":"pending","retry_count":0}}`, id, main, maker, duplicate)
}

// Lines of five classes, each with its neighbours: an edit that was not found, one that was accepted, a steward's
// status, a newer result.
func (r *runs) broken() {
	r.t.Helper()
	r.sink.AddLines(1, 2, 3, 4, 6, 7, 8, 9)
	r.put(twoLines(id(1), 1, 2, "a"), result(3, "c", ""), result(4, "d", ""), result(6, "f", ""),
		result(7, "g", ""), result(8, "h", ""),
		documentOf("2025-12-17 10:00:00.000000-06:00-0002-6", "web", 6, "newer", ""), result(9, "i", ""))
	require.Len(r.t, r.startHere(ops.StartRequest{Kind: run.Drain, Why: "x"}).First, 8)
	r.put(result(5, "e", `{"status":"committed","outcome":"applied"}`))
	r.meddle(1, invoice.Detail, "CLN_MFR_AI_NM", "somebody's")
	r.meddle(1, invoice.Detail, invoice.DefaultMapping().Status(invoice.Detail), "BY HAND")
	r.meddle(2, invoice.Detail, "CLN_MFR_AI_NM", "not found yet")
	r.meddle(3, invoice.Detail, invoice.DefaultMapping().Status(invoice.Detail), "BY HAND")
	r.loseTracking(3)
	l, _ := r.sink.Line(4)
	blank := slices.Repeat([]invoice.Value{invoice.Null()}, len(l.Values))
	r.sink.SetLine(4, inmem.Line{Values: blank}) // deleted, and made again by the program that makes lines
	r.meddle(7, invoice.Detail, "CLN_MFR_AI_NM", "not found, too")
	r.put(result(9, "i", `{"status":"committed","outcome":"manual"}`))
	r.meddle(9, invoice.Detail, "CLN_MFR_AI_NM", "by hand")
	r.finds(
		reconcile.Key{Class: reconcile.Edited, Line: 1, Document: id(1)},
		reconcile.Key{Class: reconcile.TrackingMissing, Line: 3, Document: id(3)},
		reconcile.Key{Class: reconcile.RowMissing, Line: 4, Document: id(4)},
		reconcile.Key{Class: reconcile.RowMissing, Line: 5, Document: id(5)},
		reconcile.Key{Class: reconcile.Stale, Line: 6, Document: id(6)},
	)
}

func TestARewriteOfFindingsWritesExactlyTheirLines(t *testing.T) {
	r := newRuns(t)
	r.broken()
	request := ops.StartRequest{
		Kind: run.Reindex, Why: "looked at with the stewards",
		Findings: []reconcile.Class{reconcile.Edited, reconcile.TrackingMissing, reconcile.RowMissing, reconcile.Stale},
	}
	res := r.startHere(request)
	require.Equal(t,
		map[invoice.Outcome]int{
			invoice.OutcomeEdited: 1, invoice.OutcomeApplied: 2, invoice.OutcomeSuperseded: 1, invoice.OutcomeFailed: 1,
		}, res.Progress.Stats.Outcomes)
	require.Equal(t, []string{"a", "RC-AI"}, []string{r.makerOf(1), r.statusOf(1)})
	require.Equal(t, "not found yet", r.makerOf(2), "no comparison found it")
	require.Equal(t, []string{"c", "BY HAND"}, []string{r.makerOf(3), r.statusOf(3)}, "a steward's status stays")
	l, _ := r.sink.Line(3)
	require.True(t, l.Tracking)
	require.Equal(t, "d", r.makerOf(4))
	require.Equal(t, "newer", r.makerOf(6))
	require.Equal(t, "not found, too", r.makerOf(7))
	require.Equal(t, "by hand", r.makerOf(9))
	require.JSONEq(t,
		`{"kind":"reindex","matched":5,"at_least":false,"here":false,"findings":"edited, tracking_missing, row_missing, stale"}`,
		string(r.audited(run.CodeRunStart)[1].Detail))
	row, _, err := r.store.Run(t.Context(), res.Run)
	require.NoError(t, err)
	require.JSONEq(t,
		fmt.Sprintf(`{"ids":[%q,%q,%q,%q,%q],"overwrite_edits":[1,4,5,6]}`, id(1), id(3), id(4), id(5), id(6)),
		string(row.Filter))
}

// Rows that were as written when a comparison saw them are no reason to overwrite what a person edited since.
func TestARewriteOfFindingsLeavesLaterEditsAlone(t *testing.T) {
	r := newRuns(t)
	r.sink.AddLines(1)
	r.put(result(1, "old", ""))
	r.startHere(ops.StartRequest{Kind: run.Drain, Why: "x"})
	r.put(result(1, "new", `{"status":"committed","outcome":"applied"}`))
	r.meddle(1, invoice.Detail, "CLN_MFR_AI_NM", "edited since")
	for _, mends := range []bool{true, false} {
		want := map[bool]string{true: "edited since", false: "new"}[mends]
		r.saves(
			[]reconcile.Seen{
				{Key: reconcile.Key{Class: reconcile.Stale, Line: 1, Document: id(1)}, Sure: true, Mends: mends},
			}, nil)
		r.startHere(ops.StartRequest{Kind: run.Reindex, Why: "x", Findings: []reconcile.Class{reconcile.Stale}})
		require.Equal(t, want, r.makerOf(1), mends)
	}
}

// A dry run says what the rewrite would do, not what a write would.
func TestADryRunOfFindingsShowsTheColumns(t *testing.T) {
	r := newRuns(t)
	r.broken()
	audits := len(r.runStore.Audits())
	res := r.start(ops.StartRequest{
		Kind: run.Reindex, DryRun: true,
		Findings: []reconcile.Class{reconcile.Edited, reconcile.TrackingMissing, reconcile.RowMissing, reconcile.Stale},
	})
	require.Equal(t, 5, res.Matched)
	text := func(s string) *string { return &s }
	byID := map[string]ops.DocumentDiff{}
	for _, d := range res.Diffs {
		byID[d.ID] = d
	}
	require.Equal(t,
		ops.DocumentDiff{
			ID: id(1),
			Lines: []ops.LineDiff{
				{
					Line: 1, Outcome: invoice.OutcomeApplied, Writes: true, Says: "a rewrite changes 2 columns",
					Columns: []ops.ColumnDiff{
						{Table: invoice.Detail, Column: "CLN_MFR_AI_NM", Before: text("somebody's"), After: text("a")},
						{
							Table: invoice.Detail, Column: invoice.DefaultMapping().Status(invoice.Detail),
							Before: text("BY HAND"), After: text("RC-AI"),
						},
					},
				},
			},
		}, byID[id(1)], "the other line is not the finding's")
	lost := byID[id(3)].Lines[0]
	require.Equal(t, invoice.OutcomeApplied, lost.Outcome)
	for _, c := range lost.Columns {
		require.Equal(t, invoice.Tracking, c.Table, "%s: the status stays", c.Column)
		require.Nil(t, c.Before)
		require.NotNil(t, c.After)
	}
	require.NotEmpty(t, lost.Columns)
	require.Equal(t, invoice.OutcomeApplied, byID[id(4)].Lines[0].Outcome)
	require.Equal(t, ops.DocumentDiff{
		ID: id(5), Problem: "nothing of it is written: IVCE_DTL has no row for line 5",
		Lines: []ops.LineDiff{
			{Line: 5, Outcome: invoice.OutcomeMissing, Says: "IVCE_DTL has no row for it", Columns: []ops.ColumnDiff{}},
		},
	}, byID[id(5)])
	superseded := byID[id(6)].Lines[0]
	require.Equal(t, []any{invoice.OutcomeSuperseded, "2025-12-17 10:00:00.000000-06:00-0002-6"},
		[]any{superseded.Outcome, superseded.By})
	require.Len(t, r.runStore.Audits(), audits)
	require.Equal(t, "somebody's", r.makerOf(1), "nothing is changed")

	// Somebody edits the row beside the lost one after the comparison: the rewrite leaves it alone, and the dry run
	// says so.
	r.meddle(3, invoice.Detail, "CLN_MFR_AI_NM", "edited since")
	res = r.start(
		ops.StartRequest{Kind: run.Reindex, DryRun: true, Findings: []reconcile.Class{reconcile.TrackingMissing}})
	require.Equal(t, invoice.OutcomeEdited, res.Diffs[0].Lines[0].Outcome)
	require.Equal(t, "somebody edited it since it was written: a rewrite leaves it alone", res.Diffs[0].Lines[0].Says)
	r.startHere(ops.StartRequest{Kind: run.Reindex, Why: "x", Findings: []reconcile.Class{reconcile.TrackingMissing}})
	require.Equal(t, "edited since", r.makerOf(3))
}

// A column comes to the mapping. The dry run says what the rewrite does with each line that was written without it.
func TestADryRunOfLinesOfAnEarlierMapping(t *testing.T) {
	r := newRuns(t)
	r.sink.AddLines(1, 2, 3, 4, 5)
	earlier := mapping.Without(invoice.Detail, "UNSPSC_CD")
	for line := int64(1); line <= 5; line++ {
		r.put(result(line, "a", `{"status":"committed","outcome":"applied"}`))
		raw := must(r.docs.Read(t.Context(), id(line)))(t)
		doc := must(invoice.Reader{Mapping: earlier}.Read(raw, r.clock))(t)
		_, err := r.sink.Under(earlier).Apply(t.Context(), []commit.Item{commit.ItemOf(doc)}, commit.Write,
			breaker.Heartbeat{SysName: "web"})
		require.NoError(t, err)
	}
	r.meddle(1, invoice.Detail, invoice.DefaultMapping().Status(invoice.Detail), "BY HAND")
	r.clock = r.clock.Add(time.Minute)
	r.put(result(1, "a", `{"status":"committed","outcome":"applied"}`)) // the record made a later snapshot
	r.meddle(2, invoice.Detail, "CLN_MFR_AI_NM", "somebody's")
	r.meddle(3, invoice.Detail, "UNSPSC_CD", "somebody's")
	r.meddle(4, invoice.Detail, "UNSPSC_CD", "39131711")
	e, _ := r.sink.Entry(5)
	e.HashVersion++
	r.sink.SetEntry(5, e)
	const told = ": only `reindex --not-comparable` writes it"
	for _, all := range []bool{false, true} {
		request := ops.StartRequest{Kind: run.Reindex, DryRun: true, NotComparable: all}
		for line := int64(1); line <= 5; line++ {
			request.IDs = append(request.IDs, id(line))
		}
		lines := map[int64]ops.LineDiff{}
		outcomes := map[invoice.Outcome]int{}
		for _, d := range r.start(request).Diffs {
			lines[d.Lines[0].Line] = d.Lines[0]
			outcomes[d.Lines[0].Outcome]++
		}
		require.Equal(t, invoice.OutcomeEdited, lines[2].Outcome)
		says := []string{lines[3].Says, lines[5].Says}
		if all {
			require.Equal(t, []string{"a rewrite changes 1 column", "a rewrite changes 1 column"}, says)
		} else {
			require.Equal(t, "a rewrite changes 1 column", lines[1].Says)
			require.Equal(t, "39131711", *lines[1].Columns[0].After)
			require.Nil(t, lines[1].Columns[0].Before)
			require.Equal(t, []string{
				"it has a value that somebody else wrote: its mapping did not have the column" + told,
				"another mapping wrote it, and somebody may have edited it" + told,
			}, says)
		}
		require.Empty(t, lines[4].Columns)
		request.DryRun, request.Why = false, "the column is new"
		require.Equal(t, outcomes, r.startHere(request).Progress.Stats.Outcomes, "the run does what the dry run said")
	}
	require.Equal(t, []string{"somebody's", "BY HAND"}, []string{r.makerOf(2), r.statusOf(1)})
}

func TestADryRunNamesWhatAPersonRepaired(t *testing.T) {
	r := newRuns(t)
	r.broken()
	for _, kind := range []run.Kind{run.Reindex, run.Reapply} {
		res := r.start(ops.StartRequest{Kind: kind, DryRun: true, IDs: []string{id(9)}})
		require.Equal(t,
			[]ops.NotTaken{{ID: id(9), Why: "a person repaired its lines and marked it as committed"}}, res.NotTaken)
	}
	res := r.start(ops.StartRequest{Kind: run.Reindex, DryRun: true, IDs: []string{id(9)}, OverwriteEdits: []int64{9}})
	require.Equal(t, 1, res.Matched)
}

func TestThereIsNoFinding(t *testing.T) {
	r := newRuns(t)
	res := r.start(ops.StartRequest{Kind: run.Reindex, Why: "x", Findings: []reconcile.Class{reconcile.Stale}})
	require.Empty(t, res.Run)
	require.Equal(t, "there is no finding of stale", res.Note)
	require.Empty(t, r.runStore.Audits())
}

func TestTooManyFindingsAreRefused(t *testing.T) {
	r := newRuns(t)
	var keys []reconcile.Key
	for n := range int64(10_000) {
		keys = append(keys, reconcile.Key{Class: reconcile.Edited, Line: n + 1, Document: id(n + 1)})
	}
	r.finds(keys...)
	res := r.start(ops.StartRequest{Kind: run.Reindex, DryRun: true, Findings: []reconcile.Class{reconcile.Edited}})
	require.Len(t, res.NotTaken, 10_000, "none exists")
	r.finds(reconcile.Key{Class: reconcile.Stale, Line: 10_001, Document: id(10_001)})
	_, err := r.ops.StartRun(by(t, "pat"),
		ops.StartRequest{Kind: run.Reindex, Why: "x", Findings: []reconcile.Class{reconcile.Edited, reconcile.Stale}})
	require.Equal(t, ops.Usage, refusal(err))
	require.ErrorContains(t, err,
		"findings: those of edited, stale name more than 10000 documents or lines: name fewer classes")
}

// A line that its document does not name any more brings another document, the one that gets it.
func TestReleasesCountAsDocuments(t *testing.T) {
	r := newRuns(t)
	r.sink.AddLines(20_000)
	r.commitAll(result(20_000, "older", ""))
	newer := strings.Replace(id(20_000), "10:00", "11:00", 1)
	r.commitAll(documentOf(newer, "web", 20_000, "newer", ""))
	r.put(documentOf(newer, "web", 20_001, "newer", `{"status":"committed","outcome":"applied"}`))
	keys := []reconcile.Key{{Class: reconcile.NotNamed, Line: 20_000, Document: newer}}
	ask := func() (ops.Started, error) {
		r.finds(keys...)
		return r.ops.StartRun(by(t, "pat"), ops.StartRequest{
			Kind: run.Reindex, DryRun: true, Findings: []reconcile.Class{reconcile.Edited, reconcile.NotNamed},
		})
	}
	res := must(ask())(t)
	require.Equal(t, []any{1, id(20_000)}, []any{res.Matched, res.First[0].ID})
	for n := range int64(10_000) {
		keys = append(keys, reconcile.Key{Class: reconcile.Edited, Line: n + 1, Document: id(n + 1)})
	}
	_, err := ask()
	require.Equal(t, ops.Usage, refusal(err), "%v", err)
	require.ErrorContains(t, err, "name more than 10000 documents or lines")
}
