package sqlite_test

import (
	"database/sql"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/store/sqlite"
	"sqlwriter/test/mapping"
	"sqlwriter/test/sqltest"
)

var update = flag.Bool("update", false, "write the golden files anew")

// The file shows reviewers the rendered SQL.
func TestStatementsGolden(t *testing.T) {
	write, preview, err := sqlite.Statements()
	require.NoError(t, err)
	var b strings.Builder
	for _, name := range append(sqlite.WriteSteps(), "rewrite_read", "rewrite_line") {
		b.WriteString("---- " + name + "\n" + write[name] + "\n")
	}
	for _, name := range []string{
		"preview_clear", "preview_ledger", "preview_before", "heartbeat", "heartbeat_row", "temp",
	} {
		b.WriteString("---- " + name + "\n" + preview[name] + "\n")
	}
	for _, name := range []string{"reconcile_scan", "reconcile_lines"} {
		b.WriteString("---- " + name + "\n" + write[name] + "\n")
	}
	golden := filepath.Join("testdata", "statements.sql")
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(b.String()), 0o600))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), b.String(), "run the test with -update and read the difference")
}

// A preview predicts correctly only if it runs the statements of a write on its copy of the ledger.
func TestPreviewRunsTheStatementsOfAWrite(t *testing.T) {
	write, preview, err := sqlite.Statements()
	require.NoError(t, err)
	for name, text := range write {
		if name == "preview_ledger" || name == "preview_clear" || name == "temp" {
			require.Equal(t, text, preview[name], name)
			continue
		}
		require.Equal(t, text, strings.ReplaceAll(preview[name], "sqlwriter_ledger_copy", "sqlwriter_ledger"), name)
	}
	for _, name := range []string{"ledger_update", "ledger_insert", "ledger_raise"} {
		require.NotContains(t, strings.ReplaceAll(preview[name], "sqlwriter_ledger_copy", ""), "sqlwriter_ledger", name)
	}
}

func TestStatementsFollowTheColumnTable(t *testing.T) {
	text, err := sqlite.StatementsFor(sqltest.WithColumn(`NEW"COL`))
	require.NoError(t, err)
	for _, name := range []string{"tracking_update", "tracking_insert"} {
		require.Contains(t, text[name], `"NEW""COL"`,
			"a new column is one more row of the table, whatever it is called")
	}
	require.NotContains(t, text["detail_update"], "NEW")
}

// Paths do not reach SQL, and names only in quotes. The texts are run.
func TestNoPathAndNoNameOfAColumnDisturbsAStatement(t *testing.T) {
	want, _, err := sqlite.Statements()
	require.NoError(t, err)
	text, err := sqlite.StatementsFor(sqltest.HostilePaths())
	require.NoError(t, err)
	require.Equal(t, want, text)

	m := sqltest.HostileNames()
	s, _ := named(t, m, 1, 2, 3)
	require.NoError(t, s.Check(t.Context()))
	content, mark := sqltest.Item("a", 1, 1, 2), sqltest.Item("b", 2, 3)
	mark.FailureMark, mark.Values = true, mapping.InUse().MarkValues()
	for _, o := range apply(t, s, content, mark) {
		require.Equal(t, invoice.OutcomeApplied, o.Verdict)
	}
	out, err := s.Apply(t.Context(), []commit.Item{sqltest.Item("c", 3, 2, 3)}, commit.Preview, breaker.Heartbeat{})
	require.NoError(t, err)
	require.Equal(t, mapping.InUse().RowValues(content.Values, 1, 2), out[0].Rows[0].Before)
	for i, v := range out[0].Rows[1].Before {
		if c := m.Columns()[i]; c.Status && c.Table == invoice.Detail {
			require.Equal(t, invoice.StatusAIError, v.Text)
			continue
		}
		require.True(t, v.Null, "a mark writes the status alone")
	}
}

// The user's tables and the ledger only grow. Every statement must find its rows by key, starting from the small
// staged table.
func TestNoStatementScansARealTable(t *testing.T) {
	s := newStore(t)
	write, preview, err := sqlite.Statements()
	require.NoError(t, err)
	texts := map[string]string{}
	for _, name := range sqlite.WriteSteps() {
		texts[name] = write[name]
	}
	for _, name := range []string{"preview_ledger", "preview_before"} {
		texts[name] = preview[name]
	}
	for _, name := range []string{"clear_items", "clear_rows", "send", "load_items", "load_rows"} {
		delete(texts, name) // they read no stored table
	}
	for name, text := range texts {
		plan := planOf(t, s, text)
		require.False(t, slices.ContainsFunc(plan, func(step string) bool {
			for _, alias := range []string{"l", "t", "d"} {
				if alias == "d" && name != "preview_before" {
					continue // a temp table of staged lines
				}
				if step == "SCAN "+alias || strings.HasPrefix(step, "SCAN "+alias+" ") {
					return true
				}
			}
			return false
		}), "%s: %s", name, strings.Join(plan, "; "))
		require.NotContains(t, strings.Join(plan, "; "), "AUTOMATIC", name)
	}
}

// planOf returns the database's plan of a statement, on the connection that writes: it has the temporary tables.
func planOf(t *testing.T, s *sqlite.Store, text string) []string {
	t.Helper()
	args := []any{"0"} // for a single "?"
	for _, parameter := range regexp.MustCompile(`@(\w+)`).FindAllStringSubmatch(text, -1) {
		args = append(args, sql.Named(parameter[1], "0"))
	}
	if len(args) > 1 {
		args = args[1:]
	}
	rows, err := s.Writer().QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+text, args...)
	require.NoError(t, err, text)
	defer func() { require.NoError(t, rows.Close()) }()
	var plan []string
	for rows.Next() {
		var id, parent, unused int
		var detail string
		require.NoError(t, rows.Scan(&id, &parent, &unused, &detail))
		plan = append(plan, detail)
	}
	require.NoError(t, rows.Err())
	return plan
}
