package shared_test

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/run"
	"sqlwriter/internal/store/shared"
	"sqlwriter/test/conformance"
)

func testDialect() shared.Dialect {
	return shared.Dialect{
		Prefix: "the_", Now: "the_clock()", Limit: "\nLIMIT @limit", FromNowFormat: "from_now(%s)",
		SecondsFormat: "seconds(%s, %s)", DayFormat: "day(%s)",
		HashFormat: "%s", DetailTable: "the_lines", Quote: strconv.Quote,
		ListOf: func(parameter string, columns []string) string {
			return "list(" + parameter + ": " + strings.Join(columns, ", ") + ")"
		},
	}
}

// Each file is a statement that says what it does. Only an engine with LockTimeout bounds the locks of writes.
func TestEveryFileIsAStatement(t *testing.T) {
	for _, folder := range []string{shared.OfRuns, shared.OfAuditLog, shared.OfFindings} {
		words := testDialect()
		texts, err := shared.Texts(words, folder)
		require.NoError(t, err)
		files, err := os.ReadDir(folder)
		require.NoError(t, err)
		for _, f := range files {
			require.Contains(t, texts, strings.TrimSuffix(f.Name(), ".sql"))
		}
		for name, text := range texts {
			require.NotContains(t, text, "LOCK_TIMEOUT", "%s: only an engine with LockTimeout sets it", name)
			require.Regexp(t, `^(-- .+\n)+(INSERT|UPDATE|SELECT|DELETE)\b`, text, "a statement says what it does")
		}
		words.LockTimeout = 700
		texts, err = shared.Texts(words, folder)
		require.NoError(t, err)
		for name, text := range texts {
			writes := strings.Contains(text, "INSERT INTO") || strings.Contains(text, "UPDATE") ||
				strings.Contains(text, "DELETE FROM")
			require.Equal(t, writes, strings.Contains(text, "SET XACT_ABORT ON;\nSET LOCK_TIMEOUT 700;\n"), name)
		}
	}
}

func TestListsOfRunsAreBounded(t *testing.T) {
	texts, err := shared.Texts(testDialect(), shared.OfRuns)
	require.NoError(t, err)
	for name, text := range texts {
		require.Equal(t, strings.Contains(text, "ORDER BY") && strings.HasPrefix(withoutHead(text), "SELECT") &&
			!strings.Contains(name, "items_open"),
			strings.Contains(text, "@limit"), "%s: a list is bounded, except the documents of one batch", name)
	}
}

func TestFindingsAreWrittenInLists(t *testing.T) {
	texts, err := shared.Texts(testDialect(), shared.OfFindings)
	require.NoError(t, err)
	code, err := os.ReadFile("findings.go")
	require.NoError(t, err)
	for name, text := range texts {
		require.Contains(t, string(code), `"`+name+`"`)
		if strings.Contains(text, "UPDATE the_finding") || strings.Contains(text, "INSERT INTO the_finding") {
			require.Contains(t, text, "list(@rows", "%s: many rows make the server lock the table", name)
		}
	}
}

// A statement that wrote a whole run would lock too many rows, and the server would then lock the table.
func TestAStatementAboutRunsWritesOneRowOrAList(t *testing.T) {
	texts, err := shared.Texts(testDialect(), shared.OfRuns)
	require.NoError(t, err)
	writes := 0
	for name, text := range texts {
		text = withoutHead(text)
		if strings.HasPrefix(text, "SELECT") || strings.HasPrefix(text, "INSERT") && strings.Contains(text, "VALUES") {
			continue
		}
		writes++
		require.Regexp(t, `list\(@rows|\b(run_id = @run|batch_id = @batch|worker_id = @owner)\b`, text, name)
		if strings.HasPrefix(text, "UPDATE the_batch") && !strings.Contains(text, "list(@rows") {
			require.Contains(t, text, "batch_id = @batch", name)
		}
	}
	require.Greater(t, writes, 25)
}

// withoutHead is a statement without its header.
func withoutHead(text string) string {
	return regexp.MustCompile(`^(--.*\n)+`).ReplaceAllString(text, "")
}

// A run may name 10,000 documents in half a megabyte. Heartbeats, claims and lists must not read it.
func TestLongColumnsAreReadOnlyWhereNeeded(t *testing.T) {
	const short = "CASE WHEN r.named_count = 0 THEN r.filter END"
	texts, err := shared.Texts(testDialect(), shared.OfRuns)
	require.NoError(t, err)
	for name, text := range texts {
		text = strings.ReplaceAll(text, short, "")
		for _, column := range []string{"r.filter", "r.watermark"} {
			require.Equal(t, name == "run_read", strings.Contains(text, column), "%s: %s", name, column)
		}
	}
	for file, want := range map[string]int{
		"run_store_runs.go": 2, "run_store_batches.go": 0, "run_store_recoveries.go": 0,
	} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, want, strings.Count(string(text), "s.readRun(ctx"),
			"%s: only Run and ClaimRun read the long columns", file)
	}
}

// A missing status would not be counted.
func TestTheCountsOfARunNameEveryStatus(t *testing.T) {
	texts, err := shared.Texts(testDialect(), shared.OfRuns)
	require.NoError(t, err)
	for _, s := range run.BatchStatuses() {
		require.Contains(t, texts["run_batches"], "'"+string(s)+"'")
	}
}

func TestEveryStatementAboutRunsIsRun(t *testing.T) {
	texts, err := shared.Texts(testDialect(), shared.OfRuns)
	require.NoError(t, err)
	var code strings.Builder
	for _, f := range []string{
		"changes.go", "dialect.go", "run_store.go", "run_store_rows.go", "run_store_runs.go", "run_store_batches.go",
		"run_store_recoveries.go",
	} {
		text, err := os.ReadFile(f)
		require.NoError(t, err)
		code.Write(text)
	}
	for name := range texts {
		require.Contains(t, code.String(), `"`+name+`"`)
	}
	for _, found := range regexp.MustCompile(
		`"((?:run|runs|batch|batches|items?|workers?|details)_\w+)"`).FindAllStringSubmatch(code.String(), -1) {
		if name := found[1]; !slices.Contains([]string{"batches_list", "batch_size", "run_exists"}, name) {
			require.Contains(t, texts, name)
		}
	}
}

// The statements contain statuses as texts. Each must be in the table of states.
func TestTheStatementsKnowTheStatuses(t *testing.T) {
	known := []string{"IDLE", "RUNNING", "FAILED", "cancelled", "''", ""}
	for _, s := range run.BatchStatuses() {
		known = append(known, string(s))
	}
	for _, o := range invoice.Outcomes() {
		known = append(known, string(o))
	}
	for _, s := range []run.RunStatus{
		run.RunRunning, run.RunCompleted, run.RunCompletedWithFailures, run.RunCancelled, run.RunFailed, run.RunPurged,
	} {
		known = append(known, string(s))
	}
	texts, err := shared.Texts(testDialect(), shared.OfRuns)
	require.NoError(t, err)
	var named []string
	for name, text := range texts {
		for _, found := range regexp.MustCompile(`'([^']*)'`).FindAllStringSubmatch(withoutHead(text), -1) {
			if found[1] != "{}" {
				require.Contains(t, known, found[1], name)
				named = append(named, found[1])
			}
		}
	}
	for _, s := range run.BatchStatuses() {
		require.True(t, slices.Contains(named, string(s)) || s == run.Completed, s)
	}
}

// Each UPDATE of a batch's status must be a transition of the table of states.
func TestTheStatementsMakeOnlyTheTransitionsOfTheTable(t *testing.T) {
	texts, err := shared.Texts(testDialect(), shared.OfRuns)
	require.NoError(t, err)
	to := regexp.MustCompile(`(?s)SET\s.*?\bstatus = '(\w+)'.*?WHERE`)
	from := regexp.MustCompile(`(?s)WHERE(.*)$`)
	statuses := regexp.MustCompile(`(?s)status (?:= '(\w+)'|IN \(([^)]*)\))`)
	changes := 0
	for name, text := range texts {
		text = withoutHead(text)
		if !strings.HasPrefix(text, "UPDATE the_batch") {
			continue
		}
		target := to.FindStringSubmatch(text)
		if target == nil {
			continue // the status is unchanged or a parameter
		}
		where := from.FindStringSubmatch(text)[1]
		sources := []string{}
		for _, found := range statuses.FindAllStringSubmatch(where, -1) {
			for _, s := range append([]string{found[1]}, strings.Split(found[2], ",")...) {
				if s = strings.Trim(strings.TrimSpace(s), "'"); s != "" {
					sources = append(sources, s)
				}
			}
		}
		require.NotEmpty(t, sources, "%s: a change says from where", name)
		for _, source := range sources {
			require.True(t, conformance.AllowedChange(run.BatchStatus(source), run.BatchStatus(target[1])),
				"%s: %s -> %s", name, source, target[1])
			changes++
		}
	}
	require.Greater(t, changes, 20)
}

func TestMillis(t *testing.T) {
	for given, want := range map[time.Duration]int64{
		0: 0, -time.Second: 0, 1500 * time.Microsecond: 1, time.Minute: 60_000, 100 * 24 * time.Hour: 1<<31 - 1,
	} {
		require.Equal(t, want, shared.Millis(given), given)
	}
}
