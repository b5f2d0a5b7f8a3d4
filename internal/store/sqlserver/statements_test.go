package sqlserver_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/store/sqlserver"
	"sqlwriter/test/mapping"
	"sqlwriter/test/sqltest"
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

// The files show reviewers and the T-SQL lint the rendered SQL.
func TestStatementsGolden(t *testing.T) {
	set, hash, err := sqlserver.Produced(nil)
	require.NoError(t, err)
	for name, p := range set {
		golden(t, name+".sql", p.Text)
	}
	sample, err := sqlserver.SampleText()
	require.NoError(t, err)
	golden(t, "sample.sql", sample)
	user, err := sqlserver.UserTexts(sqlserver.SetUp{User: "web_identity", ClientID: clientID})
	require.NoError(t, err)
	golden(t, "user.sql", strings.Join(user, "GO\n"))
	script, err := sqlserver.MigrationScript(sqlserver.Options{}, sqlserver.SetUp{})
	require.NoError(t, err)
	head, _, found := strings.Cut(script, "IF OBJECT_ID(N'sqlwriter.apply_"+hash)
	require.True(t, found)
	golden(t, "migrations.sql", head[:strings.LastIndex(head, "-- ")])
	for _, p := range set {
		require.Contains(t, script, "CREATE PROCEDURE "+p.Name+"\n", "the script creates what Migrate does")
	}
}

func TestEveryTemplateIsAStep(t *testing.T) {
	files, err := sqlserver.StepFiles()
	require.NoError(t, err)
	used := map[string]bool{}
	set, _, err := sqlserver.Produced(nil)
	require.NoError(t, err)
	for _, name := range []string{
		"apply", "rewrite_read", "preview", "heartbeat", "purge", "started", "reconcile_scan", "reconcile_lines",
	} {
		for _, s := range set[name].Steps {
			used["sql/"+s.Name+".sql"] = true
		}
	}
	used["sql/shared.sql"] = true // parts of steps
	for _, f := range files {
		require.True(t, used[f], "%s is in no procedure", f)
	}
	require.Len(t, used, len(files))
}

// A preview predicts correctly only if it runs the statements of a write on its copy of the ledger. It writes to temp
// tables only.
func TestPreviewRunsTheStatementsOfAWrite(t *testing.T) {
	set, _, err := sqlserver.Produced(nil)
	require.NoError(t, err)
	of := map[string]string{}
	for _, s := range set["apply"].Steps {
		of[s.Name] = s.Text
	}
	for _, s := range set["preview"].Steps {
		if text, ok := of[s.Name]; ok {
			require.Equal(t, text, strings.ReplaceAll(s.Text, "#ledger", "[sqlwriter].[ledger]"), s.Name)
		}
		for _, verb := range []string{"UPDATE [", "UPDATE d", "UPDATE t", "INSERT INTO [", "DELETE"} {
			require.NotContains(t, s.Text, verb, s.Name)
		}
	}
}

// The names of the procedures depend on the build and the settings file only.
func TestTheHashDependsOnBuildAndSettingsOnly(t *testing.T) {
	_, hash, err := sqlserver.Produced(nil)
	require.NoError(t, err)
	_, same, err := sqlserver.Produced(invoice.DefaultMapping())
	require.NoError(t, err)
	require.Equal(t, hash, same)
	wider := mapping.Edited(func(tables map[invoice.Table]*mapping.Table) {
		tables[invoice.Detail].Columns[0]["type"] = "text(256)"
	})
	// Its texts are those of the default: the paths are not in them.
	hostile := sqltest.HostilePaths()
	for _, m := range []*invoice.Mapping{mapping.Renamed(), wider, hostile} {
		_, other, err := sqlserver.Produced(m)
		require.NoError(t, err)
		require.NotEqual(t, hash, other)
	}
}

// A checkout may change line ends.
func TestTheHashDoesNotDependOnLineEnds(t *testing.T) {
	require.Equal(t, "a\nb\n", sqlserver.NormalizeLineEnds("a\r\nb\n"))
	set, _, err := sqlserver.Produced(nil)
	require.NoError(t, err)
	for name, p := range set {
		require.NotContains(t, p.Text, "\r", name)
	}
}

func TestStatementsFollowTheColumnTable(t *testing.T) {
	set, _, err := sqlserver.Produced(sqltest.WithColumn(`NEW]COL`))
	require.NoError(t, err)
	for _, s := range set["apply"].Steps {
		if s.Name == "tracking_update" || s.Name == "tracking_insert" {
			require.Contains(t, s.Text, `[NEW]]COL]`,
				"a new column is one more row of the table, whatever it is called")
		}
		if s.Name == "detail_update" {
			require.NotContains(t, s.Text, `[NEW]]COL]`)
		}
	}
}

// Paths do not reach SQL, and names only in brackets, where none is longer than the server allows.
func TestNoPathAndNoNameOfAColumnDisturbsAStatement(t *testing.T) {
	want, _, err := sqlserver.Produced(nil)
	require.NoError(t, err)
	set, _, err := sqlserver.Produced(sqltest.HostilePaths())
	require.NoError(t, err)
	for name, p := range set {
		require.Equal(t, want[name].Steps, p.Steps, name)
	}

	m := sqltest.HostileNames()
	set, _, err = sqlserver.Produced(m)
	require.NoError(t, err)
	quoted, longest := regexp.MustCompile(`\[(?:[^\]]|\]\])*\]`), 0
	for name, p := range set {
		for i, s := range p.Steps {
			plain := want[name].Steps[i].Text
			require.Equal(t, quoted.ReplaceAllString(plain, "[]"), quoted.ReplaceAllString(s.Text, "[]"), name)
			for _, q := range quoted.FindAllString(s.Text, -1) {
				longest = max(longest, len(utf16.Encode([]rune(strings.ReplaceAll(q[1:len(q)-1], "]]", "]")))))
			}
		}
	}
	require.Equal(t, sqltest.MaxName, longest)
	mark := slices.IndexFunc(set["apply"].Steps, func(s sqlserver.Step) bool { return s.Name == "detail_mark" })
	require.Contains(t, set["apply"].Steps[mark].Text, "SET ["+m.Status(invoice.Detail)+"]")
}

func TestNoLockHintAndNoMerge(t *testing.T) {
	set, _, err := sqlserver.Produced(nil)
	require.NoError(t, err)
	// the heartbeat is read without a wait, and an application lock is taken by a procedure of the server
	allowed := map[string]string{"database": "NOLOCK", "one_writer": "EXEC"}
	for name, p := range set {
		for _, s := range p.Steps {
			for line := range strings.Lines(s.Text) {
				if strings.HasPrefix(strings.TrimSpace(line), "--") {
					continue
				}
				for _, word := range []string{
					"UPDLOCK", "HOLDLOCK", "NOLOCK", "MERGE", "OUTPUT", "EXEC", "sp_executesql",
				} {
					if allowed[s.Name] != word {
						require.NotContains(t, line, word, "%s: docs/requirements.md R52", name)
					}
				}
			}
		}
	}
}
