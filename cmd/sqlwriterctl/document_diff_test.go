package main

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
)

// An operator looks at what a retry would change, and retries.
func TestADocumentIsComparedBeforeItIsTriedAgain(t *testing.T) {
	r := operated(t)
	id := r.failed(t, 7, "547")
	_, err := r.store.Writer().ExecContext(t.Context(),
		`UPDATE IVCE_DTL SET CLN_MFR_AI_NM = '', CLN_MFR_PRT_NUM = NULL WHERE IVCE_DTL_UID = 7`)
	require.NoError(t, err)
	require.Equal(t, exitOK, r.run(t, "document", "diff", id, "nobody"), r.errors)
	require.Contains(t, r.errors, "flow: running")
	require.Contains(t, r.out,
		fmt.Sprintf(
			"document  %s\nstatus    failed\nwhy       failed 2025-12-18 09:00:00-06:00 after 5 of 5 retries: document 547\n", id))
	require.Contains(t, r.out,
		"next      nothing by itself: fix the cause and `document retry`, or repair by hand and `document mark-committed`\noutcome   applied\n")
	require.Contains(t, r.out, "warning   SQL refused its last write (547): a diff asks no constraint")
	require.Regexp(t,
		`line 7 \(main\): applied: a write changes \d+ columns\n  TABLE\s+COLUMN\s+IN SQL\s+IN THE DOCUMENT\n`, r.out)
	require.Regexp(t, `IVCE_DTL\s+CLN_MFR_AI_NM\s+""\s+"M"\n`, r.out)
	require.Regexp(t, `IVCE_DTL\s+CLN_MFR_PRT_NUM\s+NULL\s+"425"\n`, r.out)
	require.Contains(t, r.out, "\n\ndocument  nobody\nstatus    gone\nproblem   no document has this id\n")

	var maker string
	require.NoError(t,
		r.store.Reader().QueryRowContext(t.Context(),
			`SELECT CLN_MFR_AI_NM FROM IVCE_DTL WHERE IVCE_DTL_UID = 7`).Scan(&maker))
	require.Empty(t, maker, "nothing was written")
	require.Equal(t, exitOK, r.run(t, "document", "retry", id, "--why", "x"), r.errors)
	require.Equal(t, exitOK, r.run(t, "document", "diff", id, "-o", "json"), r.errors)
	var d ops.Diff
	require.NoError(t, json.Unmarshal([]byte(r.out), &d))
	require.Equal(t,
		[]ops.LineDiff{
			{Line: 7, Outcome: invoice.OutcomeUnchanged, Says: "it has this content", Columns: []ops.ColumnDiff{}},
		}, d.Documents[0].Lines)

	require.Equal(t, exitUsage, r.run(t, "document", "diff"))
	require.Equal(t, exitUsage, r.run(t, "document", "diff", "a,b"))
	require.Contains(t, r.errors, "ids without a comma")
}

// The answer to "why" has the lines of the document: before and after, whatever its state.
func TestWhyShowsTheLines(t *testing.T) {
	r := operated(t)
	id := r.failed(t, 7, "2628")
	require.Equal(t, exitOK, r.run(t, "document", "why", id), r.errors)
	require.Regexp(t, `(?m)^a write now\s+applied$`, r.out)
	require.Regexp(t,
		`\n\nline 7 \(main\): applied: a write changes \d+ columns\n  TABLE\s+COLUMN\s+IN SQL\s+IN THE DOCUMENT\n`,
		r.out)
	require.Regexp(t, `IVCE_DTL\s+CLN_MFR_AI_NM\s+"OLD"\s+"M"\n`, r.out)
	require.Equal(t, exitOK, r.run(t, "document", "retry", id, "--why", "x"), r.errors)
	require.Equal(t, exitOK, r.run(t, "document", "why", "--line", "7"), r.errors)
	require.Contains(t, r.out, "\nline 7 (main): unchanged: it has this content\n")
	_, err := r.store.Writer().ExecContext(t.Context(), `UPDATE IVCE_DTL SET UNSPSC_CD = '1' WHERE IVCE_DTL_UID = 7`)
	require.NoError(t, err)
	require.Equal(t, exitOK, r.run(t, "document", "why", id, "-o", "json"), r.errors)
	var e explained
	require.NoError(t, json.Unmarshal([]byte(r.out), &e))
	require.Contains(t, e.Diff.Lines[0].Says, "this content was written before, and 1 column changed since")
	require.Equal(t, "UNSPSC_CD", e.Diff.Lines[0].Columns[0].Column)
	_, err = r.store.Writer().ExecContext(t.Context(), `DELETE FROM IVCE_DTL WHERE IVCE_DTL_UID = 7`)
	require.NoError(t, err)
	require.Equal(t, exitOK, r.run(t, "document", "why", id), r.errors)
	require.Contains(t, r.out, "nothing of it is written: IVCE_DTL has no row for line 7")
}
