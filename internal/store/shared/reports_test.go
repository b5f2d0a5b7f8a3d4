package shared_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/run"
	"sqlwriter/internal/store/shared"
	"sqlwriter/test/mapping"
)

func TestEveryFileIsAReport(t *testing.T) {
	texts, err := shared.Texts(testDialect(), shared.OfReports)
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
		for _, c := range mapping.InUse().Columns() {
			source, err := os.ReadFile("reports/" + f.Name())
			require.NoError(t, err)
			require.NotContains(t, string(source), c.Name, "%s: the mapping gives the name of a column", name)
		}
	}
	for _, r := range shared.ReportNames() {
		require.NotEmpty(t, r.Meaning, r.Name)
		require.NotContains(t, r.Meaning, "\n", r.Name)
	}
}

// The others are as before, and so is the start.
func TestAReportOfAMemberWithoutAColumnSaysSo(t *testing.T) {
	words := testDialect()
	words.Mapping = mapping.Edited(func(tables map[invoice.Table]*mapping.Table) {
		tables[invoice.Detail].Columns = tables[invoice.Detail].Columns[1:]
	})
	texts, err := shared.Texts(words, shared.OfReports)
	require.NoError(t, err)
	all, err := shared.Texts(testDialect(), shared.OfReports)
	require.NoError(t, err)
	all["same-key"] = "-- not available: no column of IVCE_DTL has the member process_output.manufacturer_name (MAPPING)"
	require.Equal(t, all, texts)
	table, err := shared.NewReports(shared.Engine{Dialect: words}).Report(t.Context(), "same-key")
	require.NoError(t, err)
	require.Equal(t, run.Table{
		Columns: []string{"not_available"},
		Rows:    [][]any{{"no column of IVCE_DTL has the member process_output.manufacturer_name (MAPPING)"}},
	}, table)
}
