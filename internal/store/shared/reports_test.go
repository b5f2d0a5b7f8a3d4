package shared_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/store/shared"
)

func TestEveryFileIsAReport(t *testing.T) {
	texts, err := shared.ReportTexts(shared.ReportDialect{
		Run: "the_runs", Batch: "the_batches", ProcessingBatch: "the_jobs", Worker: "the_workers", ErrorDetail: "the_errors", AuditLog: "the_audits",
		Now: "the_clock()", Limit: "\nLIMIT @limit", AgoFormat: "ago(%d)", SecondsFormat: "seconds(%s, %s)", DayFormat: "day(%s)",
	})
	require.NoError(t, err)
	files, err := os.ReadDir("reports")
	require.NoError(t, err)
	require.Len(t, texts, len(files))
	require.Len(t, shared.ReportNames(), len(files), "a name stands once")
	for _, f := range files {
		name := strings.TrimSuffix(f.Name(), ".sql")
		require.Contains(t, texts, name)
		require.Regexp(t, `^[a-z]+(-[a-z]+)*$`, name)
		require.Regexp(t, `^(-- .+\n)+(SELECT\n|WITH )`, texts[name], "a report says what it answers, and reads only")
		require.Equal(t, 1, strings.Count(texts[name], "LIMIT @limit;"), "%s is bounded", name)
		require.Regexp(t, `sys_name (=|<>) @sys_name`, texts[name], "%s is of one environment", name)
		require.Equal(t, 1, strings.Count(texts[name], ";"), "%s is one statement", name)
		require.NotContains(t, texts[name], "%!", name)
	}
	for _, r := range shared.ReportNames() {
		require.NotEmpty(t, r.Meaning, r.Name)
		require.NotContains(t, r.Meaning, "\n", r.Name)
	}
}
