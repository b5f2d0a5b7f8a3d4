package shared_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/run"
	"sqlwriter/internal/store/shared"
)

func TestEveryFileIsAStatementAboutFindings(t *testing.T) {
	words, tables := testDialect(), shared.FindingTables{Finding: "the_findings", Adoption: "the_adoption", IndexByState: " BY STATE"}
	texts, err := shared.FindingTexts(words, tables)
	require.NoError(t, err)
	files, err := os.ReadDir("findings")
	require.NoError(t, err)
	require.Len(t, texts, len(files)-1+2, "parts is none, findings_list is two, audit_add is a statement about runs")
	code, err := os.ReadFile("findings.go")
	require.NoError(t, err)
	for name, text := range texts {
		require.Regexp(t, `^(-- .+\n)+(INSERT|UPDATE|SELECT)\b`, text, "a statement says what it does")
		require.True(t, name == "audit_add" || strings.Contains(string(code), `"`+name+`"`), name)
		require.Equal(t, name == "findings_list_by_state", strings.Contains(text, "BY STATE"), name)
		if strings.Contains(text, "UPDATE the_findings") || strings.Contains(text, "INSERT INTO the_findings") {
			require.Contains(t, text, "list(@rows", "%s: many rows make the server lock the table", name)
		}
	}
	words.LockTimeout = 700
	texts, err = shared.FindingTexts(words, tables)
	require.NoError(t, err)
	for name, text := range texts {
		writes := strings.Contains(text, "INSERT INTO") || strings.Contains(text, "UPDATE")
		require.Equal(t, writes, strings.Contains(text, "SET XACT_ABORT ON;\nSET LOCK_TIMEOUT 700;\n"), name)
	}
	require.Contains(t, texts["last_completed"], "'"+string(run.RunCompleted)+"'")
	require.Equal(t, 2, strings.Count(texts["run_waits"], "'"+string(run.RunRunning)+"'"))
}
