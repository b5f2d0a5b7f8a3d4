package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/ops"
	"sqlwriter/internal/reconcile"
)

// finds stores findings as a comparison does.
func (r *real) finds(t *testing.T, comparison string, drop []reconcile.Key, keys ...reconcile.Key) {
	t.Helper()
	var seen []reconcile.Seen
	for _, k := range keys {
		seen = append(seen, reconcile.Seen{Key: k, Sure: true, Detail: "differs in IVCE_DTL.CLN_MFR_PRT_NUM"})
	}
	c := reconcile.Comparison{ID: comparison, By: "x", Why: "x", Counts: map[reconcile.Class]int{}}
	_, err := r.store.Findings("web").Begin(t.Context(), c)
	require.NoError(t, err)
	c.Ended = true
	require.NoError(t, r.store.Findings("web").Save(t.Context(), c, seen, drop))
}

// The exit code says whether something asks for a person, in any format.
func TestFindingsAreListed(t *testing.T) {
	r := operated(t)
	require.Equal(t, exitOK, r.run(t, "finding", "list"), r.errors)
	require.Contains(t, r.out, "no finding")
	require.Contains(t, r.errors, "findings: unknown: nothing was compared yet")

	edited, stale := reconcile.Key{Class: reconcile.Edited, Line: 7, Document: "a b"},
		reconcile.Key{Class: reconcile.Stale, Line: 8, Document: "c"}
	r.finds(t, "2026-01-31", nil, edited, stale)
	require.Equal(t, exitAttention, r.run(t, "finding", "list"), r.errors)
	require.Regexp(t, `(?m)^edited/7\s+\S+ \S+\s+\S+ \S+\s+differs in IVCE_DTL.CLN_MFR_PRT_NUM\s+a b$`, r.out)
	require.Contains(t, r.errors, "error: 1 finding is open: 1 stale")
	require.Contains(t, r.errors, "`sqlwriterctl explain CLASS` says what one means")
	require.Equal(t, exitOK,
		r.run(t, "finding", "list", "--class", "stale,edited", "--line", "7", "-q"), "people may edit")
	require.Equal(t, "edited/7/a b\n", r.out)
	require.Equal(t, exitAttention, r.run(t, "finding", "list", "-o", "json"))
	var page ops.FindingPage
	require.NoError(t, json.Unmarshal([]byte(r.out), &page), "stdout is JSON and nothing else")
	require.Equal(t, []int{1, 1}, []int{page.Found.Open, page.Found.Edited})
	r.finds(t, "2026-02-01", []reconcile.Key{stale})
	require.Equal(t, exitOK, r.run(t, "finding", "list"), "nothing is open")
	require.Contains(t, r.errors, "none, SQL equals Cosmos; people edited 1 line")
}

func TestWrongNamesOfFindings(t *testing.T) {
	r := operated(t)
	for says, args := range map[string][]string{
		`--class: expected one of the classes edited, `: {"finding", "list", "--class", "edit", "-q"},
		"--limit: expected 1 or more, found 0":          {"finding", "list", "--limit", "0", "-q"},
		"--why: expected the reason":                    {"finding", "compare"},
		"all: goes without ids":                         {"finding", "compare", "--all", "a", "--why", "x"},
	} {
		require.Equal(t, exitUsage, r.run(t, args...), says)
		require.Contains(t, r.errors, says)
	}
}

// A comparison changes no row, so it asks nothing.
func TestAComparisonIsBegunFromTheCommandLine(t *testing.T) {
	r := operated(t)
	require.Equal(t, exitOK, r.run(t, "finding", "compare", "a", "b", "--why", "numbers do not match"), r.errors)
	require.Regexp(t, `^comparison compare-\S+: begun\.`, r.out)
	c, there, err := r.store.Findings("web").Next(t.Context())
	require.NoError(t, err)
	require.True(t, there)
	require.Equal(t, []string{"a", "b"}, c.IDs)
	require.Equal(t, exitOK, r.run(t, "audit", "list", "--action", "COMPARE_START"), r.errors)
	require.Contains(t, r.out, "numbers do not match")
}
