package sqlserver_test

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/sqlserver"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares a text with its file.
func golden(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), text, "run the test with -update and read the difference")
}

// joined is a request as a reviewer reads it: with the comments, the parameters that the driver declares, and what stands
// between transaction.sql and commit.sql indented.
func joined(parameters string, steps []sqlserver.Step) string {
	var b strings.Builder
	b.WriteString("DECLARE " + parameters + ";\n")
	indent := ""
	for _, s := range steps {
		b.WriteString(indent + "-- " + s.Name + "\n")
		if s.Name == "commit" {
			indent = ""
		}
		for line := range strings.Lines(s.Text) {
			b.WriteString(indent + line)
		}
		if s.Name == "transaction" {
			indent = "    "
		}
	}
	return b.String()
}

// The files show what the templates and the column table result in; a reviewer and the T-SQL lint read them.
func TestStatementsGolden(t *testing.T) {
	write, preview, heartbeat, err := sqlserver.Produced(invoice.Layout{})
	require.NoError(t, err)
	const parameters = "@request nvarchar(max), @rewrite bigint, @expected bigint"
	golden(t, "write.sql", joined(parameters, write))
	golden(t, "preview.sql", joined(parameters, preview))
	golden(t, "heartbeat.sql", joined("@sys_name nvarchar(256)", heartbeat))
	sample, err := sqlserver.SampleText()
	require.NoError(t, err)
	golden(t, "sample.sql", sample)
	script, err := sqlserver.MigrationScript()
	require.NoError(t, err)
	golden(t, "migrations.sql", script)
}

func TestEveryTemplateIsAStep(t *testing.T) {
	files, err := sqlserver.StepFiles()
	require.NoError(t, err)
	used := map[string]bool{}
	for _, s := range slices.Concat(sqlserver.WriteSteps(), sqlserver.PreviewSteps(), sqlserver.HeartbeatSteps()) {
		used["sql/"+s+".sql"] = true
	}
	for _, f := range files {
		require.True(t, used[f], "%s is in no request", f)
	}
	require.Len(t, used, len(files))
}

// A preview runs the very statements of a write, on a copy of the ledger: that is why it foretells. It writes to nothing
// but its own temp tables.
func TestPreviewRunsTheStatementsOfAWrite(t *testing.T) {
	write, preview, _, err := sqlserver.Produced(invoice.Layout{})
	require.NoError(t, err)
	of := map[string]string{}
	for _, s := range write {
		of[s.Name] = s.Text
	}
	for _, s := range preview {
		if text, ok := of[s.Name]; ok {
			require.Equal(t, text, strings.ReplaceAll(s.Text, "#ledger", "[sqlwriter].[ledger]"), s.Name)
		}
		for _, verb := range []string{"UPDATE [", "UPDATE d", "UPDATE t", "INSERT INTO [", "DELETE"} {
			require.NotContains(t, s.Text, verb, s.Name)
		}
	}
}

func TestStatementsFollowTheColumnTable(t *testing.T) {
	columns := append(invoice.Columns(), invoice.Column{Table: invoice.Tracking, Name: `NEW]COL`, Source: invoice.FromDocument, Kind: invoice.Text})
	write, _, _, err := sqlserver.Produced(invoice.Layout{Columns: columns})
	require.NoError(t, err)
	for _, s := range write {
		if s.Name == "tracking_update" || s.Name == "tracking_insert" {
			require.Contains(t, s.Text, `[NEW]]COL]`, "a new column is one more row of the table, whatever it is called")
		}
		if s.Name == "detail_update" {
			require.NotContains(t, s.Text, `[NEW]]COL]`)
		}
	}
	columns[len(columns)-1].Kind = "unheard of"
	_, _, _, err = sqlserver.Produced(invoice.Layout{Columns: columns})
	require.ErrorContains(t, err, "unheard of")
}

func TestNoLockHintAndNoMerge(t *testing.T) {
	write, preview, heartbeat, err := sqlserver.Produced(invoice.Layout{})
	require.NoError(t, err)
	for _, s := range slices.Concat(write, preview, heartbeat) {
		for line := range strings.Lines(s.Text) {
			if strings.HasPrefix(strings.TrimSpace(line), "--") {
				continue
			}
			for _, word := range []string{"UPDLOCK", "HOLDLOCK", "NOLOCK", "MERGE", "OUTPUT"} {
				require.NotContains(t, line, word, "design.md section 4")
			}
		}
	}
}
