package main

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/reconcile"
)

// An operator looks at what a rewrite of an edited line would do, and does it.
func TestAnEditedLineIsShownAndWrittenAgain(t *testing.T) {
	r := operated(t)
	id := r.failed(t, 7, "2628")
	require.Equal(t, exitOK, r.run(t, "document", "retry", id, "--why", "x"), r.errors)
	_, err := r.store.Writer().ExecContext(t.Context(),
		`UPDATE IVCE_DTL SET CLN_MFR_AI_NM = 'somebody', CLN_MFR_PRT_NUM = NULL WHERE IVCE_DTL_UID = 7`)
	require.NoError(t, err)
	require.Equal(t, exitOK, r.run(t, "run", "start", "reindex", "--findings", "edited", "--dry-run"), r.errors)
	require.Contains(t, r.errors, "there is no finding of edited")
	r.finds(t, "2026-01-31", nil, reconcile.Key{Class: reconcile.Edited, Line: 7, Document: id})

	require.Equal(t, exitOK, r.run(t, "run", "start", "reindex", "--findings", "edited,stale", "--dry-run"), r.errors)
	require.Contains(t, r.out, "1 document matches a reindex")
	require.Contains(t, r.out, fmt.Sprintf("document  %s\nline 7 (main): applied: a rewrite changes 2 columns\n", id))
	require.Regexp(t, `IVCE_DTL\s+CLN_MFR_AI_NM\s+"somebody"\s+"M"\n`, r.out)
	require.Regexp(t, `IVCE_DTL\s+CLN_MFR_PRT_NUM\s+NULL\s+"425"\n`, r.out)
	require.Equal(t, exitOK,
		r.run(t, "run", "start", "reindex", "--findings", "edited,stale", "--yes", "--why", "the edit was a mistake"),
		r.errors)
	require.Equal(t, exitOK, r.run(t, "run", "start", "reindex", "--findings", "edited", "--dry-run"), r.errors)
	require.Contains(t, r.out, "line 7 (main): applied: a rewrite changes 0 columns")

	require.Equal(t, exitUsage, r.run(t, "run", "start", "reindex", "--findings", "left_behind", "--dry-run"))
	require.Contains(t, r.errors,
		"--findings: expected edited, mark_without_audit, no_document, not_in_ledger, not_named, row_missing, stale, "+
			`tracking_missing, found "left_behind"`)
	require.Equal(t, exitUsage,
		r.run(t, "run", "start", "reindex", "--findings", "edited", "--since", "1d", "--dry-run"))
	require.Contains(t, r.errors, "expected one of ids, since, run, findings and all, found 2")
}
