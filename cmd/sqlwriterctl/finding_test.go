package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/ops"
	"sqlwriter/internal/reconcile"
	"sqlwriter/internal/run"
)

// finds stores findings as a comparison does.
func (r *real) finds(t *testing.T, runID string, gone []reconcile.Key, keys ...reconcile.Key) {
	t.Helper()
	var seen []reconcile.Seen
	for _, k := range keys {
		seen = append(seen, reconcile.Seen{Key: k, RowHash: "h-" + runID, Detail: "differs in IVCE_DTL.CLN_MFR_PRT_NUM"})
	}
	_, _, err := r.store.Findings("web").Save(t.Context(), runID, seen, gone)
	require.NoError(t, err)
}

// The exit code says whether something is open, in any format.
func TestFindingsAreListedAndAccepted(t *testing.T) {
	r := operated(t)
	require.Equal(t, exitOK, r.run(t, "finding", "list"), r.errors)
	require.Contains(t, r.out, "no finding")
	require.Contains(t, r.errors, "findings: unknown: nothing was compared yet")

	edited, stale := reconcile.Key{Class: reconcile.Edited, Line: 7, Document: "a b"}, reconcile.Key{Class: reconcile.Stale, Line: 8, Document: "c"}
	r.finds(t, "reconcile-1", nil, edited, stale)
	require.Equal(t, exitAttention, r.run(t, "finding", "list"), r.errors)
	require.Regexp(t, `(?m)^edited/7\s+open\s+\S+ \S+\s+\S+ \S+\s+-\s+differs in IVCE_DTL.CLN_MFR_PRT_NUM\s+a b$`, r.out)
	require.Contains(t, r.errors, "error: 2 findings are open: 1 edited, 1 stale")
	require.Contains(t, r.errors, "`sqlwriterctl explain CLASS` says what one means")
	require.Equal(t, exitAttention, r.run(t, "finding", "list", "--class", "stale,edited", "--line", "7", "-q"))
	require.Equal(t, "edited/7/a b\n", r.out)
	require.Equal(t, exitAttention, r.run(t, "finding", "list", "-o", "json"))
	var page ops.FindingPage
	require.NoError(t, json.Unmarshal([]byte(r.out), &page), "stdout is JSON and nothing else")
	require.Equal(t, 2, page.Found.Open)
	require.Equal(t, exitOK, r.run(t, "finding", "list", "--class", "row_missing"), "of this class none is open")

	require.Equal(t, exitUsage, r.run(t, "finding", "accept", "edited/7", "stale/8", "--why", "x"))
	require.Contains(t, r.errors, "add --yes", "several need a confirmation")
	require.Equal(t, exitUsage, r.run(t, "finding", "accept", "edited/7"))
	require.Contains(t, r.errors, "--why: expected the reason")
	require.Equal(t, exitOK, r.run(t, "finding", "accept", "edited/7", "--why", "the vendor's correction"), r.errors)
	require.Equal(t, "edited/7/a b: accepted, it was open\n", r.out)
	require.Equal(t, exitOK, r.run(t, "finding", "accept", "--yes", "edited/7", "stale/8", "--why", "twice"), r.errors)
	require.Equal(t, exitOK, r.run(t, "finding", "list"), "nothing is open")
	require.Contains(t, r.errors, "2 accepted")
	require.Equal(t, exitOK, r.run(t, "finding", "list", "--state", "accepted", "--line", "7"))
	require.Regexp(t, `differs in IVCE_DTL.CLN_MFR_PRT_NUM; accepted by function key default: twice\s+a b\n`, r.out)

	r.finds(t, "reconcile-2", []reconcile.Key{stale}, edited) // other rows
	require.Equal(t, exitAttention, r.run(t, "finding", "list"))
	require.Regexp(t, `IVCE_DTL.CLN_MFR_PRT_NUM; was accepted by function key default: twice\s+a b\n`, r.out)
	require.Equal(t, exitFailed, r.run(t, "finding", "accept", "stale/8", "--why", "x"))
	require.Contains(t, r.errors, "finding stale/8 is gone")
	require.Equal(t, exitOK, r.run(t, "audit", "list", "--action", "FINDING_ACCEPT"), r.errors)
	require.Contains(t, r.out, "the vendor's correction")
}

func TestWrongNamesOfFindings(t *testing.T) {
	r := operated(t)
	for args, says := range map[[5]string]string{
		{"finding", "list", "--class", "edit", "-q"}:   `--class: expected one of the classes edited, `,
		{"finding", "list", "--state", "closed", "-q"}: `--state: expected one of open, accepted, gone, all, found "closed"`,
		{"finding", "list", "--limit", "0", "-q"}:      "--limit: expected 1 or more, found 0",
		{"finding", "accept", "edited", "--why", "x"}:  "expected CLASS/LINE, CLASS/LINE/DOCUMENT or CLASS/DOCUMENT",
		{"finding", "accept", "edit/7", "--why", "x"}:  "expected one of the classes edited, ",
	} {
		require.Equal(t, exitUsage, r.run(t, args[:]...), says)
		require.Contains(t, r.errors, says)
	}
}

// A comparison changes no row, so it asks nothing.
func TestAComparisonIsStartedFromTheCommandLine(t *testing.T) {
	r := operated(t)
	require.Equal(t, exitOK, r.run(t, "run", "start", "reconcile", "--why", "x"), r.errors)
	require.Regexp(t, `^run reconcile-\S+: compares documents, ledger, rows and evidence\n`, r.out)
	require.Contains(t, r.errors, "the timer executes it, for some minutes at a time")
	require.Equal(t, exitUsage, r.run(t, "run", "start", "reconcile", "--since", "1d", "--why", "x"))
	require.Contains(t, r.errors, "kind: a reconcile goes with ids or all, run, and a rate")
	require.Equal(t, exitUsage, r.run(t, "run", "start", "reconcile", "--dry-run"))
	require.Contains(t, r.errors, "--dry-run: a reconcile changes no row")
	require.Equal(t, exitOK, r.run(t, "run", "list"), r.errors)
	require.Contains(t, r.out, "0 compared")
}

// So does run show.
func TestTheEndOfAComparisonWithOpenFindingsAsksForAttention(t *testing.T) {
	p := ops.RunProgress{Run: run.Run{ID: "reconcile-1", Status: run.RunCompleted}, Findings: &ops.Found{}}
	require.NoError(t, verdict(p))
	p.Findings = &ops.Found{Open: 1, Classes: []reconcile.Count{{Class: reconcile.Edited, Open: 1}}}
	var attention *attentionError
	require.ErrorAs(t, verdict(p), &attention)
	require.ErrorContains(t, attention, "1 finding is open: 1 edited")
	p.Status = run.RunFailed
	require.NotErrorAs(t, verdict(p), &attention, "it compared only a part")
}
