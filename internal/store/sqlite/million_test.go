package sqlite_test

import (
	"cmp"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sqlwriter/internal/reconcile"
	"sqlwriter/internal/run"
	"sqlwriter/internal/store/shared"
	"sqlwriter/internal/store/sqlite"
)

// millionPage makes TestMillion fill the tables with a million rows and write its section of this file.
var millionPage = flag.String("million", "", "fill the tables with a million rows, and write the section of this page")

// millionHeading begins the section, which is the page's last.
const millionHeading = "## Statements about runs, findings, reports and the audit log, with a million rows"

// slowest is the p99 that one of these statements may have.
const slowest = 200 * time.Millisecond

// TestMillion times each statement of the run store, the audit log, the reports and the findings. Five tables have n
// rows: run, batch_item, audit_log, error_detail and finding. One run has all documents. Each statement is made for
// that run, with lists of 100 rows where it takes a list, and undone. Without -million the tables are small and nothing
// is asserted about time.
func TestMillion(t *testing.T) {
	n, times := 2_000, 1
	if *millionPage != "" {
		n, times = 1_000_000, 100
	}
	d := spying(newStore(t))
	d.fill(t, n)
	lists := d.lists(t)
	type statement struct {
		of, name    string
		median, p99 time.Duration
	}
	var all []statement
	for _, of := range []string{shared.OfRuns, shared.OfAuditLog, shared.OfReports, shared.OfFindings} {
		texts, err := sqlite.Texts(of)
		require.NoError(t, err)
		for _, name := range slices.Sorted(maps.Keys(texts)) {
			took := d.time(t, name, texts[name], lists, times)
			all = append(all, statement{of, name, took[len(took)/2], took[len(took)*99/100]})
		}
	}
	// a page shows a batch of this environment, which its id tells
	for _, table := range []string{"batch", "error_detail"} {
		d.spy.Exec(t,
			fmt.Sprintf("UPDATE sqlwriter_%s SET batch_id = '%s' WHERE batch_id = printf('%%064d', 1)", table,
				run.BatchID("web", bigRun, 1)))
	}
	pages := timePages(t, d.Store, times)
	if *millionPage == "" {
		return
	}
	slices.SortFunc(all, func(a, b statement) int { return cmp.Compare(b.p99, a.p99) })
	for _, s := range all {
		assert.Less(t, s.p99, slowest, "%s: %s", s.of, s.name)
	}
	for _, p := range pages {
		assert.Less(t, p.p99, slowest, "page %s", p.name)
	}
	const rest = 5
	section := fmt.Sprintf(`%s

SQLite, %s, each statement and page %d times. Five tables have 1,000,000 rows each, and one run has all documents, in 10,000 batches. Lists have 100
rows. A change is undone, so its commit is not in its time. The goal is a p99 of less than %d ms. The slowest of %d statements is `+"`%s`"+` with a
median of %s ms and a p99 of %s ms; all but %d have at most %s ms. Of the pages over the same tables, with documents in memory, `+"`%s`"+` is the
slowest: %s and %s ms, %d bytes.%s
`, millionHeading, time.Now().UTC().Format("2006-01-02"), times, slowest.Milliseconds(), len(all), all[0].name,
		ms(all[0].median), ms(all[0].p99), rest, ms(all[rest].p99), pages[0].name, ms(pages[0].median),
		ms(pages[0].p99), pages[0].bytes, load())
	page, err := os.ReadFile(*millionPage)
	require.NoError(t, err)
	before, _, _ := strings.Cut(string(page), millionHeading)
	require.NoError(t, os.WriteFile(*millionPage, []byte(strings.TrimRight(before, "\n")+"\n\n"+section), 0o600))
}

// load says how busy the machine was, where it tells.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if fields := strings.Fields(string(text)); err == nil && len(fields) > 3 {
		return fmt.Sprintf(" Load average at the end: %s, with %d cores.",
			strings.Join(fields[:3], " "), runtime.NumCPU())
	}
	return ""
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1f", float64(d.Microseconds())/1000) }

// bigRun is the run with all documents, whose manager is manager. Its first batch has the worker worker-1.
const bigRun = "run-1"

// fill puts n rows into each of the five tables, n/100 batches into one run, and as many into others. The audit log and
// the error details are of the last 7 days, the runs and their batches of the last 30. A tenth is another
// environment's.
func (d db) fill(t *testing.T, n int) {
	t.Helper()
	class := fmt.Sprintf("CASE i / 10 %% %d", len(reconcile.FindingClasses()))
	for i, c := range reconcile.FindingClasses() {
		class += fmt.Sprintf(" WHEN %d THEN '%s'", i, c)
	}
	class += " END"
	for _, statement := range []string{
		`CREATE TEMP TABLE n (i INTEGER PRIMARY KEY, part REAL)`, // part grows from 0 to 1
		`WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < {n}) INSERT INTO n SELECT i, i * 1.0 / {n} FROM c`,
		`INSERT INTO sqlwriter_run (run_id, sys_name, kind, filter, requested_by, why, status, cancel, documents, batches,
			owner, epoch, started_at, ended_at, handed_off_at, heartbeat_at)
		SELECT 'run-' || i, CASE WHEN i % 10 = 0 THEN 'dev' ELSE 'web' END, CASE WHEN i % 1000 = 7 THEN 'reconcile' ELSE 'drain' END, '{}', 'ann', 'the text of a reason',
			CASE WHEN i % 10000 = 1 THEN 'running' WHEN i % 100 = 2 THEN 'failed' ELSE 'completed' END, 0, 100, 1,
			'manager', 1, {30 days}, {30 days}, CASE WHEN i % 10000 <> 1 THEN {30 days} END, {30 days}
		FROM n`,
		`UPDATE sqlwriter_run SET documents = {n}, batches = {n} / 100 WHERE run_id = 'run-1'`,
		`INSERT INTO sqlwriter_batch (batch_id, run_id, number, status, attempt, owner, epoch, heartbeat_at, queued_at, claimed_at,
			process_start_time, process_end_time, created_at, updated_at, total_count, success_count, failure_count, outcomes, error)
		SELECT printf('%064d', i), CASE WHEN i <= {n} / 100 THEN 'run-1' ELSE 'run-' || i END, i,
			CASE WHEN i = 1 THEN 'processing' WHEN i % 100 = 2 THEN 'failed' WHEN i % 4 <> 0 THEN 'completed'
				WHEN i % 16 = 0 THEN 'queued' WHEN i % 16 = 4 THEN 'pending_retry' ELSE 'pending_queue' END,
			0, 'worker-1', 1, {30 days}, {30 days}, {30 days}, CASE WHEN i % 4 <> 0 THEN {30 days} END, CASE WHEN i <> 1 AND i % 4 <> 0 THEN {30 days} END,
			
			{30 days}, {30 days}, 100, 98, 2, CASE WHEN i <> 1 AND i % 4 <> 0 AND i % 100 <> 2 THEN '{"applied":98,"failed":' || (2 + i % 100) || '}' END, CASE WHEN i % 200 = 2 THEN 'cancelled' END
		FROM (SELECT i, part * 50 AS part FROM n WHERE i <= {n} / 50)`,
		`INSERT INTO sqlwriter_batch_item (run_id, document_key, document_id, batch_id, position, outcome, code, updated_at)
		SELECT 'run-1', k, '2025-12-17 10:30:15.123456-06:00-0001-' || i, printf('%064d', (i + 99) / 100), i % 100,
			CASE WHEN i % 50 = 1 THEN 'failed' WHEN i > 50 THEN 'applied' END, CASE WHEN i % 50 = 1 THEN '2628' END, {30 days}
		FROM (SELECT i, part, randomblob(32) AS k FROM n) ORDER BY k`,
		`INSERT INTO sqlwriter_worker (worker_id, kind, instance, status, run_id, batch_id, started_at, heartbeat_at)
		SELECT 'worker-' || i, 'worker', 'here', CASE WHEN i <= 20 THEN 'RUNNING' ELSE 'COMPLETED' END, 'run-1', printf('%064d', i), {30 days}, {30 days}
		FROM (SELECT i, part * 50 AS part FROM n WHERE i <= {n} / 50)`,
		`INSERT INTO sqlwriter_audit_log (done_at, sys_name, level, action, done_by, why, subject, run_id, batch_id)
		SELECT {7 days}, CASE WHEN i % 10 = 0 THEN 'dev' ELSE 'web' END,
			CASE WHEN i % 1000 = 3 THEN 'ERROR' WHEN i % 100 = 3 THEN 'WARN' WHEN i % 10000 = 4 THEN NULL ELSE 'INFO' END,
			CASE i % 4 WHEN 0 THEN 'BATCH_CREATED' WHEN 1 THEN 'BATCH_START' ELSE 'BATCH_DONE' END,
			'worker-' || i, 'the text of a reason', 'subject', CASE WHEN i % 4 = 0 THEN 'run-' || i ELSE 'run-1' END, printf('%064d', i)
		FROM n`,
		`INSERT INTO sqlwriter_error_detail (sys_name, run_id, batch_id, document_id, entity_id, error_code, error_message, error_type,
			retry_count, is_retryable, created_at)
		SELECT CASE WHEN i % 10 = 0 THEN 'dev' ELSE 'web' END, CASE WHEN i % 2 = 0 THEN 'run-1' ELSE 'run-2' END,
			printf('%064d', 1 + i % 100), '2025-12-17 10:30:15.123456-06:00-0001-' || (i / 3), i / 3,
			'validation.' || (i % 40), printf('%0150d', i), 'VALIDATION', i % 6, 1, {7 days}
		FROM n`,
		`INSERT INTO sqlwriter_finding (sys_name, class, detail_id, document_key, document_id, first_seen, last_seen, mark, sure, detail, mends)
		SELECT CASE WHEN i % 10 = 0 THEN 'dev' ELSE 'web' END, {class}, i, randomblob(32),
			'2025-12-17 10:30:15.123456-06:00-0001-' || i, {30 days}, {30 days}, printf('%064d', i), i % 9 < 8, 'MFR_NM and PRT_NUM of IVCE_DTL differ', i % 2
		FROM n WHERE i <= 50000`,
		`DROP TABLE n`,
	} {
		statement = strings.ReplaceAll(strings.ReplaceAll(statement, "{n}", fmt.Sprint(n)), "{class}", class)
		for _, days := range []int{7, 30} {
			ago := fmt.Sprintf(
				"strftime('%%Y-%%m-%%dT%%H:%%M:%%fZ', 'now', ((part - 1) * %d) || ' seconds')", days*86400)
			statement = strings.ReplaceAll(statement, fmt.Sprintf("{%d days}", days), ago)
		}
		d.spy.Exec(t, statement)
	}
}

// parameters has the values of the statements' parameters. A list of a statement is in lists.
func parameters() map[string]any {
	batch := strings.Repeat("0", 63) + "1"
	return map[string]any{
		"run": bigRun, "batch": batch, "owner": "worker-1", "epoch": 1, "shown": 1, "attempt": 0, "stale": 600_000,
		"released": 600_000, "silent": 1_800_000,
		"sys_name": "web", "limit": 100, "after": "", "after_key": make([]byte, 32), "before_run": "",
		"before": 1_000_000, "status": "completed", "action": "BATCH_CREATED", "all": 0, "by": "ann", "why": "a test",
		"subject": "", "detail": "", "level": "INFO", "cancelled": run.CancelledError, "reason": "a test", "counted": 1,
		"most": 3, "given_up": "x",
		"error": "", "success": 100, "failure": 0, "documents": 100, "first": 1, "batches": 1, "watermark": "w",
		"wait": 1000, "counts": "{}", "outcomes": "{}", "ended": 1,
		"class": "edited", "from": 1000, "to": math.MaxInt64, "suspects": 1, "mends": 0, "line": 7,
		"key": make([]byte, 32), "id": "2025-12-18", "night": 1, "step": 1, "position": "",
		"request": "{}",
		"kind":    "worker", "instance": "here", "filter": "{}", "rate": 0, "bound": 0, "matched": 0,
		"at_least": 0, "named": 0,
	}
}

// keyOf are the bytes of a document's key.
func keyOf(document string) []byte {
	sum := sha256.Sum256([]byte(document))
	return sum[:]
}

// lists has the rows of the statements that take a list.
func (d db) lists(t *testing.T) map[string][][]any {
	t.Helper()
	var keys, batches, added, workers, items, outcomes, details [][]any
	d.spy.Each(t, `SELECT document_key FROM sqlwriter_batch_item WHERE batch_id = printf('%064d', 1) ORDER BY document_key`,
		func(rows *sql.Rows) error {
			var key []byte
			err := rows.Scan(&key)
			keys = append(keys, []any{key})
			outcomes = append(outcomes, []any{key, bigRun, "applied", nil})
			return err
		})
	findings := map[string][][]any{}
	d.spy.Each(t,
		`SELECT detail_id, document_key FROM sqlwriter_finding WHERE sys_name = 'web' AND class = 'edited' LIMIT 100`,
		func(rows *sql.Rows) error {
			var line int64
			var key []byte
			err := rows.Scan(&line, &key)
			findings["see"] = append(findings["see"],
				[]any{line, key, "edited", "web", "a mark", 1, "the status differs", 0})
			return err
		})
	for i := range 100 {
		findings["insert"] = append(findings["insert"],
			[]any{i, keyOf("a document"), "edited", "web", "a mark", 0, "the status differs", 0, "a document"})
		batches = append(batches, []any{fmt.Sprintf("%064d", 4+4*i), 0})
		added = append(added, []any{fmt.Sprintf("new%061d", i), 1_000_000 + i, 100})
		workers = append(workers, []any{fmt.Sprint("worker-", i)})
		items = append(items, []any{keyOf(fmt.Sprint(i)), "a document", fmt.Sprintf("new%061d", i), i})
		details = append(details, []any{i, "a document", i, "validation.too_long", "a message", "VALIDATION", 1, 1})
	}
	return map[string][][]any{
		"items_known": keys, "items_save": outcomes, "items_insert": items, "batches_insert": added,
		"workers_rescue": workers, "details_insert": details,
		"items_page_by_outcome": {{"failed"}, {"retry_scheduled"}}, "": batches,
		"findings_see": findings["see"], "findings_insert": findings["insert"],
	}
}

// time makes a statement so often, and gives how long it took, the shortest first. A change is undone.
func (d db) time(t *testing.T, name, text string, lists map[string][][]any, times int) []time.Duration {
	t.Helper()
	values := parameters()
	switch name {
	case "run_start":
		values["run"] = "new"
	case "findings_insert":
		values["most"] = reconcile.MaxFindings
	case "run_add", "run_beat", "run_claim", "run_release", "run_sent":
		values["owner"] = "manager"
	}
	list, ok := lists[name]
	if !ok {
		list = lists[""]
	}
	var hashes []byte
	sent := make([][]any, len(list))
	for i, row := range list {
		sent[i] = slices.Clone(row)
		for j, v := range row {
			if key, ok := v.([]byte); ok {
				sent[i][j] = len(hashes) / len(key)
				hashes = append(hashes, key...)
			}
		}
	}
	values["hashes"] = hashes
	rows, err := json.Marshal(sent)
	require.NoError(t, err)
	values["rows"] = string(rows)
	var args []any
	for _, found := range regexp.MustCompile(`@(\w+)`).FindAllStringSubmatch(text, -1) {
		require.True(t, values[found[1]] != nil, "%s: a value for @%s", name, found[1])
		args = append(args, sql.Named(found[1], values[found[1]]))
	}
	took := make([]time.Duration, times)
	for i := range took {
		if strings.Contains(text, "INSERT ") || strings.Contains(text, "UPDATE ") || strings.Contains(text, "DELETE ") {
			took[i] = d.undone(t, name, text, args)
		} else {
			took[i] = d.read(t, name, text, args)
		}
	}
	slices.Sort(took)
	return took
}

// read reads all rows, and gives how long that took.
func (d db) read(t *testing.T, name, text string, args []any) time.Duration {
	t.Helper()
	begin := time.Now()
	found, err := d.Reader().QueryContext(t.Context(), text, args...)
	require.NoError(t, err, name)
	defer func() { require.NoError(t, found.Close()) }()
	for found.Next() {
	}
	require.NoError(t, found.Err(), name)
	return time.Since(begin)
}

// undone makes a change, undoes it, and gives how long the change took.
func (d db) undone(t *testing.T, name, text string, args []any) time.Duration {
	t.Helper()
	tx, err := d.Writer().BeginTx(t.Context(), nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, tx.Rollback()) }()
	begin := time.Now()
	_, err = tx.ExecContext(t.Context(), text, args...)
	require.NoError(t, err, name)
	return time.Since(begin)
}
