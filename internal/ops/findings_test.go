package ops_test

import (
	"fmt"
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
		seen = append(seen, reconcile.Seen{Key: k, RowHash: "h1", Detail: "IVCE_LNE_AMT differs"})
	}
	_, _, err := w.store.Findings(nil).Save(w.t.Context(), "reconcile-1", seen, nil)
	require.NoError(w.t, err)
}

// compared runs a comparison without a step to its end, so that there is a last completed one.
func (r *runs) compared() {
	r.t.Helper()
	id := fmt.Sprintf("reconcile-%d", r.clock.Unix())
	require.NoError(r.t, r.store.StartRun(r.t.Context(), run.Run{ID: id, SysName: "web", Kind: run.Reconcile, Pattern: run.InPasses}, run.Audit{Code: run.CodeRunStart}))
	lease := r.claim(id)
	require.NoError(r.t, r.store.EndHandOff(r.t.Context(), lease, run.Audit{Code: run.CodeRunHandedOff}))
	ended, err := r.store.CompleteRun(r.t.Context(), id, time.Minute, func(run.RunStatus, run.Stats) run.Audit { return run.Audit{Code: run.CodeRunDone} })
	require.NoError(r.t, err)
	require.True(r.t, ended)
}

func names(rows []ops.FindingRow) (all []string) {
	for _, r := range rows {
		all = append(all, r.Name)
	}
	return all
}

func TestFindingsAreListedByClassStateAndLine(t *testing.T) {
	w := newWorld(t)
	w.finds(
		reconcile.Key{Class: reconcile.Edited, Line: 7, Document: id(7)}, reconcile.Key{Class: reconcile.Edited, Line: 8, Document: id(8)},
		reconcile.Key{Class: reconcile.RowMissing, Line: 7, Document: id(7)}, reconcile.Key{Class: reconcile.LeftBehind, Document: "web-a.lock"},
	)
	_, err := w.ops.FindingAccept(by(t, "kim"), ops.AcceptRequest{Findings: []string{"edited/8"}, Why: "the vendor's correction"})
	require.NoError(t, err)
	for name, c := range map[string]struct {
		q    ops.FindingQuery
		want []string
	}{
		"open":     {ops.FindingQuery{}, []string{"edited/7/" + id(7), "left_behind/web-a.lock", "row_missing/7/" + id(7)}},
		"accepted": {ops.FindingQuery{State: "accepted"}, []string{"edited/8/" + id(8)}},
		"all":      {ops.FindingQuery{State: "all", Classes: []reconcile.Class{reconcile.Edited}}, []string{"edited/7/" + id(7), "edited/8/" + id(8)}},
		"a line":   {ops.FindingQuery{Line: 7}, []string{"edited/7/" + id(7), "row_missing/7/" + id(7)}},
		"gone":     {ops.FindingQuery{State: "gone"}, nil},
	} {
		page, err := w.ops.FindingList(t.Context(), c.q)
		require.NoError(t, err)
		require.Equal(t, c.want, names(page.Findings), name)
		require.NotNil(t, page.Findings)
		require.Equal(t, []int{3, 1}, []int{page.Found.Open, page.Found.Accepted}, "whatever is asked for")
	}
	var all []string
	for q := (ops.FindingQuery{State: "all", Limit: 1}); ; {
		page, err := w.ops.FindingList(t.Context(), q)
		require.NoError(t, err)
		all = append(all, names(page.Findings)...)
		if q.Page = page.Next; q.Page == "" {
			break
		}
	}
	require.Equal(t, []string{"edited/7/" + id(7), "edited/8/" + id(8), "left_behind/web-a.lock", "row_missing/7/" + id(7)}, all, "page by page")
	for says, q := range map[string]ops.FindingQuery{
		`classes: expected one of the classes edited, evidence_without_failed, `: {Classes: []reconcile.Class{"edit"}},
		`state: expected one of open, accepted, gone, all, found "closed"`:       {State: "closed"},
		`page: expected the next of a page before, found "x"`:                    {Page: "x"},
		`line: expected the id of a line, found -1`:                              {Line: -1},
		`limit: expected 1 to 1000, found 1001`:                                  {Limit: 1001},
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
		reconcile.Key{Class: reconcile.Edited, Line: 7, Document: id(7)}, reconcile.Key{Class: reconcile.Stale, Line: 7, Document: "a"},
		reconcile.Key{Class: reconcile.Stale, Line: 7, Document: "b"}, reconcile.Key{Class: reconcile.LeftBehind, Document: "web-a.lock"},
		reconcile.Key{Class: reconcile.PendingTooLong, Line: 9, Document: "9"},
	)
	for name, want := range map[string]string{
		"edited/7": "edited/7/" + id(7), "edited/7/" + id(7): "edited/7/" + id(7), "edited/" + id(7): "edited/7/" + id(7),
		"stale/7/b": "stale/7/b", "stale/b": "stale/7/b", "left_behind/web-a.lock": "left_behind/web-a.lock", "pending_too_long/9/9": "pending_too_long/9/9",
	} {
		found, err := w.ops.FindingList(t.Context(), ops.FindingQuery{Finding: name})
		require.NoError(t, err, name)
		require.Equal(t, []string{want}, names(found.Findings), name)
		require.Equal(t, 5, found.Found.Open, "all are counted")
	}
	for name, c := range map[string]struct {
		refusal ops.Refusal
		says    string
	}{
		"stale/7":    {ops.Conflict, `2 findings are named stale/7, such as "stale/7/`},
		"edited/8":   {ops.NotFound, `no finding "edited/8"`},
		"edited":     {ops.Usage, "expected CLASS/LINE, CLASS/LINE/DOCUMENT or CLASS/DOCUMENT"},
		"edit/7":     {ops.Usage, "finding: expected one of the classes edited, "},
		"stale/7/c":  {ops.NotFound, `no finding "stale/7/c"`},
		"edited/-1":  {ops.NotFound, `no finding "edited/-1"`},
		"edited/7/x": {ops.NotFound, `no finding "edited/7/x"`},
	} {
		_, err := w.ops.FindingList(t.Context(), ops.FindingQuery{Finding: name})
		require.Equal(t, c.refusal, refusal(err), name)
		require.ErrorContains(t, err, c.says)
	}
	_, _, err := w.store.Findings(nil).Save(t.Context(), "reconcile-2", nil, []reconcile.Key{{Class: reconcile.Stale, Line: 7, Document: "a"}})
	require.NoError(t, err)
	found, err := w.ops.FindingList(t.Context(), ops.FindingQuery{Finding: "stale/7"})
	require.NoError(t, err)
	require.Equal(t, []string{"stale/7/b"}, names(found.Findings), "the other is gone")
	_, err = w.ops.FindingList(t.Context(), ops.FindingQuery{Finding: "stale/7", Line: 7})
	require.Equal(t, ops.Usage, refusal(err))
}

// All are accepted, or none; the audit log names them.
func TestFindingsAreAcceptedTogetherAndAudited(t *testing.T) {
	w := newWorld(t)
	w.finds(
		reconcile.Key{Class: reconcile.Edited, Line: 7, Document: "a"}, reconcile.Key{Class: reconcile.Edited, Line: 8, Document: "b"},
		reconcile.Key{Class: reconcile.Stale, Line: 9, Document: "c"},
	)
	_, _, err := w.store.Findings(nil).Save(t.Context(), "reconcile-2", nil, []reconcile.Key{{Class: reconcile.Stale, Line: 9, Document: "c"}})
	require.NoError(t, err)
	for says, r := range map[string]ops.AcceptRequest{
		"found none":                 {Why: "x"},
		"why: expected the reason":   {Findings: []string{"edited/7"}},
		`no finding "edited/9"`:      {Findings: []string{"edited/7", "edited/9"}, Why: "x"},
		"finding stale/9 is gone":    {Findings: []string{"edited/7", "stale/9"}, Why: "x"},
		"expected at most 1000":      {Findings: many(1001), Why: "x"},
		"expected one of the classe": {Findings: []string{"edited/7", "x/9"}, Why: "x"},
	} {
		_, err := w.ops.FindingAccept(by(t, "kim"), r)
		require.ErrorContains(t, err, says)
		require.NotEmpty(t, refusal(err), says)
	}
	require.Empty(t, w.audits())
	done, err := w.ops.FindingAccept(by(t, "kim"), ops.AcceptRequest{Findings: []string{"edited/7", "edited/8", "edited/7"}, Why: "the vendor's correction"})
	require.NoError(t, err)
	require.Equal(t, []string{"edited/7/a", "edited/8/b"}, names(done.Findings))
	found, err := w.ops.FindingList(t.Context(), ops.FindingQuery{Finding: "edited/7"})
	require.NoError(t, err)
	f := found.Findings[0]
	require.Equal(t, []any{reconcile.Accepted, "kim", "the vendor's correction", "h1"}, []any{f.State, f.By, f.Why, f.AcceptedHash})
	audits := w.audits()
	require.Len(t, audits, 1)
	require.Equal(t, []string{run.CodeFindingAccept, "kim"}, []string{audits[0].Action, audits[0].By})
	require.JSONEq(t, `{"findings":["edited/7/a","edited/8/b"]}`, string(audits[0].Detail))
	require.True(t, audits[0].Notable(), "a person did it")

	w.open(fault.Infrastructure, "refused")
	w.sink.fails = down()
	_, err = w.ops.FindingList(t.Context(), ops.FindingQuery{})
	require.True(t, fault.IsDependency(err), "the breaker is asked")
}

func many(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("edited/%d", i+1)
	}
	return all
}

func TestAShadowAcceptsNothing(t *testing.T) {
	r := newRuns(t)
	r.finds(reconcile.Key{Class: reconcile.Edited, Line: 7})
	r.readOnly = "MODE=shadow: nothing is written"
	r.renew()
	_, err := r.ops.FindingAccept(by(t, "kim"), ops.AcceptRequest{Findings: []string{"edited/7"}, Why: "x"})
	require.Equal(t, ops.Conflict, refusal(err))
	require.NoError(t, r.ops.SaveCounts(t.Context()))
	c, err := r.counts.LoadCounts(t.Context())
	require.NoError(t, err)
	require.Nil(t, c.Findings, "it compares nothing")
}
