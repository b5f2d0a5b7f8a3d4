package ops_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/reconcile"
	"sqlwriter/internal/run"
)

// finds stores findings as a comparison does, by class, line and document.
func (w *world) finds(keys ...reconcile.Key) {
	w.t.Helper()
	var seen []reconcile.Seen
	for _, k := range keys {
		seen = append(seen, reconcile.Seen{Key: k, Sure: true, Detail: "IVCE_LNE_AMT differs"})
	}
	w.saves(seen, nil)
}

// saves saves a step of a comparison that names a document, and ends it.
func (w *world) saves(seen []reconcile.Seen, drop []reconcile.Key) {
	w.t.Helper()
	f := w.store.Findings(nil)
	w.compares++
	c := reconcile.Comparison{ID: "named-" + string(rune('a'+w.compares)), IDs: []string{"x"}, By: "ann", Why: "x"}
	began := must(f.Begin(w.t.Context(), c))(w.t)
	require.True(w.t, began)
	c.Ended = true
	require.NoError(w.t, f.Save(w.t.Context(), c, seen, drop))
}

// compared is a comparison that has ended.
func (r *runs) compared(newEdits int) {
	r.t.Helper()
	c := reconcile.Comparison{ID: r.clock.Format(time.DateTime), By: "ann", Why: "x"}
	began, err := r.store.Findings(nil).Begin(r.t.Context(), c)
	require.NoError(r.t, err)
	require.True(r.t, began)
	c.Ended, c.Counts = true, map[reconcile.Class]int{reconcile.NewEdits: newEdits}
	require.NoError(r.t, r.store.Findings(nil).Save(r.t.Context(), c, nil, nil))
}

func names(rows []ops.FindingRow) (all []string) {
	for _, r := range rows {
		all = append(all, r.Name)
	}
	return all
}

func TestFindingsAreListedByClassAndLine(t *testing.T) {
	w := newWorld(t)
	w.finds(
		reconcile.Key{Class: reconcile.Edited, Line: 7, Document: id(7)},
		reconcile.Key{Class: reconcile.Edited, Line: 8, Document: id(8)},
		reconcile.Key{Class: reconcile.RowMissing, Line: 7, Document: id(7)},
	)
	w.saves([]reconcile.Seen{{Key: reconcile.Key{Class: reconcile.Stale, Line: 9, Document: id(9)}}}, nil) // a suspect
	for name, c := range map[string]struct {
		q    ops.FindingQuery
		want []string
	}{
		"all": {ops.FindingQuery{}, []string{"edited/7/" + id(7), "edited/8/" + id(8), "row_missing/7/" + id(7)}},
		"a class": {
			ops.FindingQuery{Classes: []reconcile.Class{reconcile.Edited}},
			[]string{"edited/7/" + id(7), "edited/8/" + id(8)},
		},
		"a line": {ops.FindingQuery{Line: 7}, []string{"edited/7/" + id(7), "row_missing/7/" + id(7)}},
		"none":   {ops.FindingQuery{Line: 9}, nil},
	} {
		page := must(w.ops.FindingList(t.Context(), c.q))(t)
		require.Equal(t, c.want, names(page.Findings), name)
		require.NotNil(t, page.Findings)
		require.Equal(t, []int{1, 2}, []int{page.Found.Open, page.Found.Edited}, "whatever is asked for")
	}
	var all []string
	for q := (ops.FindingQuery{Limit: 1}); ; {
		page := must(w.ops.FindingList(t.Context(), q))(t)
		all = append(all, names(page.Findings)...)
		if q.Page = page.Next; q.Page == "" {
			break
		}
	}
	require.Equal(t, []string{"edited/7/" + id(7), "edited/8/" + id(8), "row_missing/7/" + id(7)}, all, "page by page")
	for says, q := range map[string]ops.FindingQuery{
		`classes: expected one of the classes edited, mark_without_audit, `: {Classes: []reconcile.Class{"edit"}},
		`page: expected the next of a page before, found "x"`:               {Page: "x"},
		`line: expected the id of a line, found -1`:                         {Line: -1},
		`limit: expected 1 to 1000, found 1001`:                             {Limit: 1001},
	} {
		_, err := w.ops.FindingList(t.Context(), q)
		require.Equal(t, ops.Usage, refusal(err), says)
		require.ErrorContains(t, err, says)
	}
}

// A name may leave out the document, as long as it is that of one finding.
func TestAFindingIsShownByItsName(t *testing.T) {
	w := newWorld(t)
	w.finds(
		reconcile.Key{Class: reconcile.Edited, Line: 7, Document: id(7)},
		reconcile.Key{Class: reconcile.Stale, Line: 7, Document: "a"},
		reconcile.Key{Class: reconcile.Stale, Line: 7, Document: "b"},
	)
	for name, want := range map[string]string{
		"edited/7": "edited/7/" + id(7), "edited/7/" + id(7): "edited/7/" + id(7), "stale/7/b": "stale/7/b",
	} {
		found, err := w.ops.FindingList(t.Context(), ops.FindingQuery{Finding: name})
		require.NoError(t, err, name)
		require.Equal(t, []string{want}, names(found.Findings), name)
		require.Equal(t, 2, found.Found.Open, "all are counted")
	}
	for name, c := range map[string]struct {
		refusal ops.Refusal
		says    string
	}{
		"stale/7":    {ops.Conflict, `2 findings are named stale/7, such as "stale/7/`},
		"edited/8":   {ops.NotFound, `no finding "edited/8"`},
		"edited":     {ops.Usage, "expected CLASS/LINE or CLASS/LINE/DOCUMENT"},
		"edit/7":     {ops.Usage, "finding: expected one of the classes edited, "},
		"stale/7/c":  {ops.NotFound, `no finding "stale/7/c"`},
		"edited/-1":  {ops.Usage, "expected CLASS/LINE or CLASS/LINE/DOCUMENT"},
		"edited/7/x": {ops.NotFound, `no finding "edited/7/x"`},
	} {
		_, err := w.ops.FindingList(t.Context(), ops.FindingQuery{Finding: name})
		require.Equal(t, c.refusal, refusal(err), name)
		require.ErrorContains(t, err, c.says)
	}
	w.saves(nil, []reconcile.Key{{Class: reconcile.Stale, Line: 7, Document: "a"}})
	found := must(w.ops.FindingList(t.Context(), ops.FindingQuery{Finding: "stale/7"}))(t)
	require.Equal(t, []string{"stale/7/b"}, names(found.Findings), "the other is no finding any more")
	_, err := w.ops.FindingList(t.Context(), ops.FindingQuery{Finding: "stale/7", Line: 7})
	require.Equal(t, ops.Usage, refusal(err))

	w.open(fault.Infrastructure, "refused")
	w.sink.fails = down()
	_, err = w.ops.FindingList(t.Context(), ops.FindingQuery{})
	require.True(t, fault.IsDependency(err), "the breaker is asked")
}

// A comparison is begun with who asked for it and why, and the ticks carry it on.
func TestAComparisonIsBegun(t *testing.T) {
	r := newRuns(t)
	next := func(q ops.CompareRequest) reconcile.Comparison {
		t.Helper()
		q.Why = "numbers do not match"
		begun := must(r.ops.Compare(by(t, "kim"), q))(t)
		c, there := r.store.Comparison(begun.Comparison)
		require.True(t, there)
		require.Equal(t, []string{"kim", "numbers do not match"}, []string{c.By, c.Why})
		require.False(t, c.Night, "it mends nothing")
		return c
	}
	require.Equal(t, []any{[]string(nil), false},
		[]any{next(ops.CompareRequest{}).IDs, next(ops.CompareRequest{}).Whole})
	require.True(t, next(ops.CompareRequest{All: true}).Whole)
	require.Equal(t, []string{"a", "b"}, next(ops.CompareRequest{IDs: []string{"a", "b", "a"}}).IDs)
	require.Equal(t, run.CodeCompare, r.runStore.Audits()[0].Action)
	require.Zero(t, r.queue.Sends(), "the timer carries it on")
	for says, q := range map[string]ops.CompareRequest{
		"ids: expected at most 1000":  {IDs: manyIDs(1001), Why: "x"},
		"all: goes without ids":       {IDs: []string{"a"}, All: true, Why: "x"},
		"why: expected the reason":    {},
		"id: expected the id of a do": {IDs: []string{""}, Why: "x"},
	} {
		_, err := r.ops.Compare(by(t, "kim"), q)
		require.Equal(t, ops.Usage, refusal(err), says)
		require.ErrorContains(t, err, says[:4])
	}
	r.readOnly = "MODE=shadow: nothing is written"
	r.renew()
	_, err := r.ops.Compare(by(t, "kim"), ops.CompareRequest{Why: "x"})
	require.Equal(t, ops.Conflict, refusal(err))
	require.NoError(t, r.ops.SaveCounts(t.Context()))
	c := must(r.counts.LoadCounts(t.Context()))(t)
	require.Nil(t, c.Findings, "a shadow compares nothing")
}

func manyIDs(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = id(int64(i + 1))
	}
	return all
}
