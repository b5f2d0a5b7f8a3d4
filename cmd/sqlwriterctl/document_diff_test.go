package main

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/ops"
)

// An operator looks at what a retry would change, and retries.
func TestADocumentIsComparedBeforeItIsTriedAgain(t *testing.T) {
	r := operated(t)
	id := r.failed(t, 7, "547")
	_, err := r.store.Writer().ExecContext(t.Context(), `UPDATE IVCE_DTL SET CLN_MFR_AI_NM = '', CLN_MFR_PRT_NUM = NULL WHERE IVCE_DTL_UID = 7`)
	require.NoError(t, err)
	require.Equal(t, exitOK, r.run(t, "document", "diff", id, "nobody"), r.errors)
	require.Contains(t, r.errors, "flow: running")
	require.Contains(t, r.out, fmt.Sprintf("document  %s\nstatus    failed\nwhy       failed 2025-12-18 09:00:00-06:00 after 5 of 5 retries: document 547\n", id))
	require.Contains(t, r.out, "next      nothing by itself: fix the cause and `document retry`, or repair by hand and `document mark-committed`\nverdict   applied\n")
	require.Contains(t, r.out, "warning   SQL refused its last write (547): a diff asks no constraint")
	require.Regexp(t, `line 7 \(main\): applied: a write changes \d+ columns\n  TABLE\s+COLUMN\s+IN SQL\s+IN THE DOCUMENT\n`, r.out)
	require.Regexp(t, `IVCE_DTL\s+CLN_MFR_AI_NM\s+""\s+"M"\n`, r.out)
	require.Regexp(t, `IVCE_DTL\s+CLN_MFR_PRT_NUM\s+NULL\s+"425"\n`, r.out)
	require.Contains(t, r.out, "\n\ndocument  nobody\nstatus    gone\nproblem   no document has this id\n")

	var maker string
	require.NoError(t, r.store.Reader().QueryRowContext(t.Context(), `SELECT CLN_MFR_AI_NM FROM IVCE_DTL WHERE IVCE_DTL_UID = 7`).Scan(&maker))
	require.Empty(t, maker, "nothing was written")
	require.Equal(t, exitOK, r.run(t, "document", "retry", id, "--why", "x"), r.errors)
	require.Equal(t, exitOK, r.run(t, "document", "diff", id, "-o", "json"), r.errors)
	var d ops.Diff
	require.NoError(t, json.Unmarshal([]byte(r.out), &d))
	require.Equal(t, []ops.LineDiff{{Line: 7, Verdict: commit.Unchanged, Says: "it has this content", Columns: []ops.ColumnDiff{}}}, d.Documents[0].Lines)

	require.Equal(t, exitUsage, r.run(t, "document", "diff"))
	require.Equal(t, exitUsage, r.run(t, "document", "diff", "a,b"))
	require.Contains(t, r.errors, "ids without a comma")
}
