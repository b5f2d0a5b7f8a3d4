package conformance

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/run"
	"sqlwriter/test/mapping"
)

// ReportsSysName is the environment that the reports under test are about.
const ReportsSysName = "web"

// ReportsHarness has the port under test and the functions that TestReports needs around it.
type ReportsHarness struct {
	// Reports is the port under test, over empty tables, about the environment ReportsSysName.
	Reports run.Reports
	// Store is the run store of an environment, over the same tables.
	Store func(sysName string) run.Store
	// Names are all reports.
	Names []string
	// Now is the database's clock.
	Now func(t testing.TB) time.Time
	// Insert puts a row into a table, by the table's name without prefix or schema. Values are texts, numbers, times,
	// and nil for what has none.
	Insert func(t testing.TB, table string, row map[string]any)
	// Sink writes to IVCE_DTL and the ledger of the same database. AddLines is as in SinkHarness.
	Sink     commit.Sink
	AddLines func(t testing.TB, lines ...int64)
}

// TestReports checks an implementation of run.Reports against the expected answers of its queries. Rows are put in as
// they would stand there; what comes out is asserted by hand. open makes a new one per case.
func TestReports(t *testing.T, open func(t *testing.T) ReportsHarness) {
	for _, c := range []struct {
		name string
		run  func(*reportsTest)
	}{
		{"of empty tables every report is a table, and no number is made up", reportsOfNothing},
		{"a report that is none names those that are", reportUnknown},
		{"a report has at most 100 rows", reportBounded},
		{"a report whose context has ended is infrastructure", reportCancelled},
		{"pending-retries", reportPendingRetries},
		{"batch-success", reportBatchSuccess},
		{"queue-lag", reportQueueLag},
		{"workers", reportWorkers},
		{"batch-progress", reportBatchProgress},
		{"batch-progress counts the stuck ones", reportStuckBatches},
		{"error-codes", reportErrors},
		{"a report of failures names the main line of its sample", reportErrorLines},
		{"a report of failures reads the latest 10,000", reportErrorsBounded},
		{"performance", reportPerformance},
		{"runs", reportRuns},
		{"same-key", reportSameKey},
		{"what belongs to runs of another environment is in no report", reportOurs},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := open(t)
			c.run(&reportsTest{T: t, ReportsHarness: h, now: h.Now(t).UTC().Truncate(time.Millisecond)})
		})
	}
}

// reportsTest is a case at work.
type reportsTest struct {
	*testing.T
	ReportsHarness
	// now is when the case began, by the database's clock.
	now    time.Time
	number int
}

// row is what differs from a usual row, or what a report says in one.
type row = map[string]any

// ago is a moment before the case began.
func (r *reportsTest) ago(d time.Duration) time.Time { return r.now.Add(-d) }

// put inserts a row: the usual one with changes.
func (r *reportsTest) put(table string, usual, changes row) {
	r.Helper()
	maps.Copy(usual, changes)
	r.Insert(r, table, usual)
}

// batch puts a batch of 100 documents in, that was made 20 minutes ago.
func (r *reportsTest) batch(of, status string, changes row) {
	r.Helper()
	r.number++
	r.put("batch", row{
		"batch_id": batchKey(r.number), "run_id": of, "number": r.number, "status": status, "attempt": 1,
		"created_at": r.ago(20 * time.Minute), "updated_at": r.ago(15 * time.Minute), "total_count": 100,
	}, changes)
}

// run puts a running run in that began ten minutes ago.
func (r *reportsTest) run(changes row) {
	r.Helper()
	r.put("run", row{
		"sys_name": ReportsSysName, "kind": "drain", "requested_by": "ops", "why": "because",
		"status": "running", "cancel": 0,
		"started_at": r.ago(10 * time.Minute), "heartbeat_at": r.now,
	}, changes)
}

// batchKey is the id of a batch in these cases.
func batchKey(number int) string { return fmt.Sprintf("%064d", number) }

// report gives a report's rows by their columns.
func (r *reportsTest) report(name string) []row {
	r.Helper()
	table, err := r.Reports.Report(r.Context(), name)
	require.NoError(r, err, name)
	rows := make([]row, len(table.Rows))
	for i, values := range table.Rows {
		require.Len(r, values, len(table.Columns))
		rows[i] = row{}
		for j, v := range values {
			switch v.(type) {
			case nil, string, int64, float64:
			default:
				require.Failf(r, "a value is a text, a number or nil", "%s.%s is %T", name, table.Columns[j], v)
			}
			rows[i][table.Columns[j]] = v
		}
		require.Len(r, rows[i], len(table.Columns), "two columns of %s have one name", name)
	}
	return rows
}

// same compares a row with what it is to say: whole numbers and moments exactly, fractions to the hundredth, ages to
// half a minute.
func (r *reportsTest) same(want, found row) {
	r.Helper()
	for column, w := range want {
		f, there := found[column]
		require.True(r, there, "no column %s in %v", column, found)
		switch w := w.(type) {
		case int:
			require.Equal(r, int64(w), f, column)
		case float64:
			require.InDelta(r, w, f, 0.011, column)
		case time.Duration:
			require.InDelta(r, w.Seconds(), f, 30, column)
		case time.Time:
			require.Equal(r, w.UTC().Format("2006-01-02T15:04:05.000Z"), f, column)
		default:
			require.Equal(r, w, f, column)
		}
	}
}

// rows compares a report with what it is to say, row by row.
func (r *reportsTest) rows(name string, want ...row) {
	r.Helper()
	found := r.report(name)
	require.Len(r, found, len(want), name)
	for i := range want {
		r.same(want[i], found[i])
	}
}

func reportsOfNothing(r *reportsTest) {
	for _, name := range r.available() {
		table, err := r.Reports.Report(r.Context(), name)
		require.NoError(r, err, name)
		require.NotEmpty(r, table.Columns, name)
		require.NotNil(r, table.Rows, "%s: as JSON an empty list, not null", name)
		if name != "performance" {
			require.Empty(r, table.Rows, name)
			continue
		}
		for _, found := range r.report(name) {
			r.same(
				row{
					"completed_batches": 0, "documents": 0, "avg_batch_seconds": nil,
					"documents_per_second": nil, "success_percent": nil,
				}, found)
		}
	}
}

func reportUnknown(r *reportsTest) {
	for _, name := range []string{
		"", "nothing", "RUNS", "runs.sql", "../runs/run_read", "runs; DROP TABLE sqlwriter.run",
	} {
		_, err := r.Reports.Report(r.Context(), name)
		requireFault(r, err, fault.Internal, fault.NoCondition, name)
		require.Equal(r, "no_report", fault.CodeOf(err), name)
		for _, known := range r.Names {
			require.Contains(r, fault.As(err).Reason, known, "the error lists the reports to choose from")
		}
	}
}

func reportBounded(r *reportsTest) {
	for i := range 105 {
		of := fmt.Sprintf("run %03d", i)
		r.batch(of, "pending_retry", nil)
		r.run(row{"run_id": of, "sys_name": ReportsSysName})
	}
	runs := r.report("runs")
	require.Len(r, runs, 100)
	r.same(row{"run_id": "run 104", "open_batches": 1}, runs[0])
	r.same(row{"run_id": "run 005", "open_batches": 1}, runs[99])
	require.Len(r, r.report("pending-retries"), 100)
	require.Len(r, r.report("queue-lag"), 100)
}

func reportCancelled(r *reportsTest) {
	ctx := lateContext(r)
	for _, name := range r.available() {
		table, err := r.Reports.Report(ctx, name)
		requireFault(r, err, fault.Infrastructure, fault.NoCondition, name)
		require.Empty(r, table.Rows)
	}
}

func reportPendingRetries(r *reportsTest) {
	r.batch("b", "pending_retry", row{"created_at": r.ago(time.Hour), "queue_attempt_count": 1})
	r.batch("b", "pending_retry", row{"created_at": r.ago(2 * time.Hour), "queue_attempt_count": 2})
	r.batch("a", "pending_retry", row{"created_at": r.ago(time.Minute)})
	r.batch("a", "queued", row{"created_at": r.ago(9 * time.Hour), "queue_attempt_count": 3})
	r.batch("c", "failed", row{"queue_attempt_count": 3})
	r.rows("pending-retries",
		row{
			"parent_job_id": "b", "pending_batches": 2, "oldest_batch": r.ago(2 * time.Hour),
			"oldest_seconds": 2 * time.Hour, "max_attempts": 2,
		},
		row{
			"parent_job_id": "a", "pending_batches": 1, "oldest_batch": r.ago(time.Minute),
			"oldest_seconds": time.Minute, "max_attempts": 0,
		},
	)
}

func reportBatchSuccess(r *reportsTest) {
	noon := r.now.Truncate(24 * time.Hour).Add(-12 * time.Hour)
	before := noon.Add(-48 * time.Hour)
	for _, status := range []string{
		"completed", "completed", "failed", "queued", "processing", "pending_queue", "pending_retry",
	} {
		attempts := map[string]int{"failed": 3, "pending_retry": 2}[status]
		r.batch("a", status, row{"created_at": noon, "queue_attempt_count": attempts})
	}
	// The first and the last millisecond of a day.
	r.batch("b", "pending_queue", row{"created_at": before.Truncate(24 * time.Hour), "queue_attempt_count": 1})
	r.batch("b", "queued",
		row{
			"created_at":          before.Truncate(24 * time.Hour).Add(24*time.Hour - time.Millisecond),
			"queue_attempt_count": 2,
		})
	r.batch("old", "completed", row{"created_at": r.ago(8 * 24 * time.Hour)})
	r.rows("batch-success",
		row{
			"created_on": noon.Format(time.DateOnly), "total_batches": 7, "handed_off_batches": 4,
			"successful_batches": 2, "failed_batches": 1,
			"success_percent": 66.67, "avg_attempts": 0.71,
		},
		row{
			"created_on": before.Format(time.DateOnly), "total_batches": 2, "handed_off_batches": 1,
			"successful_batches": 0, "failed_batches": 0,
			"success_percent": nil, "avg_attempts": 1.5,
		},
	)
}

func reportQueueLag(r *reportsTest) {
	queued := r.ago(10 * time.Minute)
	r.batch("a", "pending_queue", row{"created_at": r.ago(50 * time.Minute)})
	r.batch("a", "pending_retry", nil)
	r.batch("a", "queued", row{"queued_at": queued})
	r.batch("a", "processing", row{"queued_at": queued, "process_start_time": queued.Add(2 * time.Second)})
	r.batch("a", "completed", row{"queued_at": queued, "process_start_time": queued.Add(3 * time.Second)})
	// Claimed before the acceptance was written down, and queued again after its first claim: no wait is known.
	r.batch("a", "completed", row{"process_start_time": queued})
	r.batch("a", "failed", row{"queued_at": queued, "process_start_time": queued.Add(-time.Minute)})
	r.batch("b", "completed", row{"created_at": r.ago(5 * time.Minute)})
	r.batch("b", "completed", row{"created_at": r.ago(70 * time.Minute)})
	r.batch("old", "queued", row{"created_at": r.ago(61 * time.Minute)})
	r.rows("queue-lag",
		row{
			"parent_job_id": "a", "pending": 1, "pending_retry": 1, "queued": 1, "processing": 1, "completed": 2,
			"failed": 1, "avg_lag_seconds": 2.5,
		},
		row{
			"parent_job_id": "b", "pending": 0, "pending_retry": 0, "queued": 0, "processing": 0, "completed": 1,
			"failed": 0, "avg_lag_seconds": nil,
		},
	)
}

func reportWorkers(r *reportsTest) {
	for i, w := range []struct {
		kind, status string
		silent       time.Duration
	}{
		{"worker", "RUNNING", time.Minute},
		{"worker", "RUNNING", 9 * time.Minute},
		{"worker", "RUNNING", 11 * time.Minute},
		{"worker", "RUNNING", 2 * time.Hour},
		{"worker", "IDLE", time.Hour},
		{"worker", "COMPLETED", time.Hour},
		{"worker", "COMPLETED", 0},
		{"worker", "FAILED", time.Hour},
		{"manager", "RUNNING", 0},
		{"manager", "FAILED", time.Hour},
		{"worker", "RUNNING", 8 * 24 * time.Hour}, // not rescued
		{"worker", "COMPLETED", 8 * 24 * time.Hour},
		{"worker", "IDLE", 8 * 24 * time.Hour},
	} {
		changes := row{
			"heartbeat_at": r.ago(w.silent), "kind": w.kind, "status": w.status, "documents_processed": 10 * i,
		}
		if w.kind == "worker" {
			changes["batch_id"] = batchKey(i)
		}
		r.put("worker", row{
			"worker_id": fmt.Sprintf("%s-%08d", w.kind, i), "instance": "here", "run_id": "a",
			"started_at": r.ago(max(3*time.Hour, w.silent)),
		}, changes)
	}
	r.rows("workers",
		row{
			"kind": "manager", "active": 1, "dead": 0, "silent_seconds": nil, "idle": 0, "completed": 0, "failed": 1,
			"documents_processed": 170, "last_heartbeat": r.now,
		},
		row{
			"kind": "worker", "active": 2, "dead": 3, "silent_seconds": 8 * 24 * time.Hour, "idle": 1, "completed": 2,
			"failed": 1, "documents_processed": 380, "last_heartbeat": r.now,
		},
	)
}

func reportBatchProgress(r *reportsTest) {
	for _, status := range []string{"failed", "completed", "processing", "queued", "pending_retry", "pending_queue"} {
		var ended any
		if status == "completed" || status == "failed" {
			ended = r.ago(time.Hour)
		}
		r.batch("a", status, row{"process_end_time": ended})
		r.batch("b", status, row{"process_end_time": ended, "total_count": 1, "updated_at": r.ago(time.Hour)})
	}
	r.batch("old", "failed",
		row{"process_end_time": r.ago(8 * 24 * time.Hour), "updated_at": r.ago(8 * 24 * time.Hour)})
	r.batch("old", "queued", row{"created_at": r.ago(8 * 24 * time.Hour), "total_count": 3}) // not ended
	r.batch("b", "failed", row{"process_end_time": r.ago(6 * 24 * time.Hour)})
	r.batch("b", "completed", row{"total_count": 2_000_000_000, "process_end_time": r.ago(time.Hour)})
	r.batch("b", "completed", row{"total_count": 2_000_000_000, "process_end_time": r.ago(6 * 24 * time.Hour)})
	r.batch("old", "completed",
		row{"process_end_time": r.ago(8 * 24 * time.Hour), "updated_at": r.ago(8 * 24 * time.Hour)})
	var want []row
	for _, status := range []string{"pending_queue", "pending_retry", "queued", "processing", "completed", "failed"} {
		w := row{
			"batch_status": status, "batches": 2, "documents": 101, "oldest_change": r.ago(time.Hour),
			"oldest_seconds": time.Hour, "stuck": 0,
		}
		if status == "completed" { // more than an int of SQL Server's holds
			w["batches"], w["documents"] = 4, 4_000_000_101
		}
		if status == "failed" {
			w["batches"], w["documents"] = 3, 201
		}
		if status == "processing" {
			w["stuck"] = 2
		}
		if status == "queued" {
			w["batches"], w["documents"] = 3, 104
		}
		want = append(want, w)
	}
	r.rows("batch-progress", want...)
}

func reportStuckBatches(r *reportsTest) {
	r.batch("a", "processing", row{"heartbeat_at": r.ago(11 * time.Minute), "updated_at": r.now})
	r.batch("a", "processing", row{"heartbeat_at": r.ago(time.Minute), "updated_at": r.ago(time.Hour)})
	r.batch("b", "processing", row{"updated_at": r.ago(30 * time.Minute)}) // let go of
	r.batch("b", "processing", row{"updated_at": r.ago(time.Minute)})
	r.batch("b", "completed", row{"heartbeat_at": r.ago(time.Hour), "process_end_time": r.now})
	r.rows("batch-progress",
		row{"batch_status": "processing", "batches": 4, "stuck": 2},
		row{"batch_status": "completed", "batches": 1, "stuck": 0},
	)
}

func reportErrors(r *reportsTest) {
	for _, e := range []struct {
		document, code, kind string
		retryable            int
		age                  time.Duration
	}{
		{"a", "2628", run.TypeMigration, 1, time.Minute},
		{"a", "2628", run.TypeMigration, 0, 2 * time.Hour},
		{"b", "2628", run.TypeMigration, 1, 3 * time.Hour},
		{"c", "validation.too_long", run.TypeValidation, 0, 30 * time.Minute},
		{"d", "validation.missing", run.TypeValidation, 0, 6 * 24 * time.Hour},
		{"e", "2628", run.TypeMigration, 1, 8 * 24 * time.Hour},
		{"f", "panic", run.TypeSystem, 1, 8 * 24 * time.Hour},
	} {
		r.error(
			row{
				"document_id": e.document, "error_code": e.code, "error_type": e.kind, "is_retryable": e.retryable,
				"created_at": r.ago(e.age),
			})
	}
	r.error(row{"sys_name": "dev"})
	r.rows("error-codes",
		row{
			"error_code": "2628", "error_type": run.TypeMigration, "errors": 3, "errors_percent": 60.0,
			"errors_of_type": 3, "documents": 2, "retryable": 2, "last_hour": 1, "first_at": r.ago(3 * time.Hour),
			"last_at": r.ago(time.Minute),
		},
		row{
			"error_code": "validation.missing", "error_type": run.TypeValidation, "errors": 1, "errors_percent": 20.0,
			"errors_of_type": 2, "documents": 1, "retryable": 0, "last_hour": 0, "last_at": r.ago(6 * 24 * time.Hour),
		},
		row{
			"error_code": "validation.too_long", "error_type": run.TypeValidation, "errors": 1,
			"errors_of_type": 2, "last_hour": 1,
		},
	)
}

// error puts a failure of a document in, a minute ago.
func (r *reportsTest) error(changes row) {
	r.Helper()
	r.put("error_detail", row{
		"sys_name": ReportsSysName, "run_id": "r", "batch_id": batchKey(1), "document_id": "d", "error_code": "2628",
		"error_message": "too long", "error_type": run.TypeMigration,
		"retry_count": 1, "is_retryable": 1, "created_at": r.ago(time.Minute),
	}, changes)
}

// batchOf makes a batch of an environment, with a worker's lease.
func (r *reportsTest) batchOf(sysName string) (store run.Store, h run.BatchLease) {
	r.Helper()
	store = r.Store(sysName)
	of := runTest{T: r.T, RunStoreFixture: RunStoreFixture{Store: store, For: r.Store}}
	of.batchesIn(sysName, "of-"+sysName, 1)
	return store, of.leaseBatch(run.BatchID(sysName, "of-"+sysName, 1))
}

func reportErrorLines(r *reportsTest) {
	failure := func(document string, line int64, code, kind string) run.ErrorDetail {
		return run.ErrorDetail{
			Document: document, EntityID: line, Code: code, Message: "in our words", Type: kind,
			RetryCount: 1, Retryable: true,
		}
	}
	const wide = 9_007_199_254_740_993 // no float holds it
	store, h := r.batchOf(ReportsSysName)
	require.NoError(r, store.SaveOutcomes(r.Context(), h, nil, []run.ErrorDetail{
		failure("a", 7, "2628", run.TypeMigration), failure("b", 0, "document.unreadable", run.TypeValidation),
		failure("c", wide, "2628", run.TypeMigration),
	}))
	store, h = r.batchOf("dev")
	require.NoError(r,
		store.SaveOutcomes(r.Context(), h, nil, []run.ErrorDetail{failure("theirs", 9, "2628", run.TypeMigration)}))
	r.rows("error-codes",
		row{
			"error_code": "2628", "errors": 2, "documents": 2, "retryable": 2, "last_hour": 2,
			"sample_id": "c", "sample_line": wide,
		},
		row{"error_code": "document.unreadable", "errors": 1, "sample_id": "b", "sample_line": nil},
	)
}

func reportErrorsBounded(r *reportsTest) {
	r.error(row{"error_code": "oldest", "created_at": r.ago(time.Hour)})
	many := make([]run.ErrorDetail, 100)
	for i := range many {
		many[i] = run.ErrorDetail{Document: fmt.Sprint(i), Code: "2628", Type: run.TypeMigration}
	}
	store, h := r.batchOf(ReportsSysName)
	for range 100 {
		require.NoError(r, store.SaveOutcomes(r.Context(), h, nil, many))
	}
	r.rows("error-codes", row{"error_code": "2628", "errors": 10_000, "documents": 100})
}

func reportPerformance(r *reportsTest) {
	done := func(ended, took time.Duration, total, success int) {
		r.batch("a", "completed", row{
			"process_start_time": r.ago(ended + took), "process_end_time": r.ago(ended), "total_count": total,
			"success_count": success,
			"failure_count": total - success,
		})
	}
	done(10*time.Minute, 10*time.Second, 100, 100) // begins at 610 s
	done(590*time.Second, 15*time.Second, 50, 49)  // ends at 590 s
	done(2*time.Hour, 1500*time.Millisecond, 3, 0) // of the day
	done(3*24*time.Hour, 20*time.Second, 7, 7)     // of the week
	done(8*24*time.Hour, time.Hour, 1000, 0)       // too old
	r.batch("a", "failed", row{"process_start_time": r.ago(time.Minute), "process_end_time": r.now})
	r.batch("a", "processing", row{"process_start_time": r.ago(time.Minute)})
	r.rows("performance",
		// 150 documents in 20 s; 149 of 150.
		row{
			"last_hours": 1, "completed_batches": 2, "documents": 150, "avg_batch_seconds": 12.5,
			"documents_per_second": 7.5, "success_percent": 99.33,
		},
		// 153 documents in 7201.5 - 590 s; (10 + 15 + 1.5) / 3.
		row{
			"last_hours": 24, "completed_batches": 3, "documents": 153, "avg_batch_seconds": 8.83,
			"documents_per_second": 0.02, "success_percent": 97.39,
		},
		row{
			"last_hours": 168, "completed_batches": 4, "documents": 160, "avg_batch_seconds": 11.63,
			"documents_per_second": 0.0, "success_percent": 97.5,
		},
	)
}

func reportRuns(r *reportsTest) {
	for _, changes := range []row{
		{"run_id": "foreign", "status": "running", "sys_name": "dev"},
		{
			"run_id": "empty", "matched_count": 40, "handed_off_at": r.ago(time.Hour), "status": "completed",
			"ended_at": r.ago(time.Hour), "started_at": r.ago(61 * time.Minute),
		},
		{
			"run_id": "big", "status": "running", "sys_name": "web", "documents": 300, "batches": 3,
			"matched_count": 400, "handed_off_at": r.ago(9 * time.Minute), "kind": "replay",
		},
		{
			"run_id": "early", "status": "running", "sys_name": "web", "documents": 100, "batches": 1,
			"matched_count": 400, "at_least": 1,
		},
		{
			"run_id": "grown", "status": "running", "sys_name": "web", "documents": 100, "batches": 1,
			"matched_count": 50, "at_least": 0,
		},
		{
			"run_id": "gone", "status": "failed", "sys_name": "web", "documents": 100, "batches": 1, "cancel": 1,
			"error": "the message was a dead letter", "ended_at": r.now,
		},
	} {
		r.run(changes)
	}
	r.batch("foreign", "completed", nil)
	r.batch("early", "completed", nil)
	r.batch("grown", "completed", row{"total_count": 50})
	r.batch("big", "completed", nil)
	r.batch("big", "failed", nil)
	r.batch("big", "processing", nil)
	r.batch("gone", "pending_retry", nil)
	r.rows("runs",
		row{
			"run_id": "gone", "status": "failed", "cancel": 1, "documents": 100, "documents_done": 0,
			"done_percent": 0.0, "batches": 1, "open_batches": 1,
			"failed_batches": 0, "ended_at": r.now, "handed_off_at": nil, "run_seconds": 10 * time.Minute,
			"error": "the message was a dead letter",
		},
		row{
			"run_id": "grown", "documents": 100, "documents_known": 100, "at_least": 0,
			"documents_done": 50, "done_percent": 50.0,
		},
		row{
			"run_id": "early", "documents": 100, "documents_known": 400, "at_least": 1,
			"documents_done": 100, "done_percent": 25.0,
		},
		row{
			"run_id": "big", "sys_name": "web", "kind": "replay", "status": "running", "cancel": 0, "documents": 300,
			"documents_known": 300, "documents_done": 100, "done_percent": 33.33,
			"batches": 3, "open_batches": 1, "failed_batches": 1, "started_at": r.ago(10 * time.Minute),
			"handed_off_at": r.ago(9 * time.Minute), "ended_at": nil,
			"run_seconds": 10 * time.Minute, "requested_by": "ops", "error": nil,
		},
		row{
			"run_id": "empty", "sys_name": ReportsSysName, "status": "completed", "documents": 0, "documents_done": 0,
			"done_percent": nil, "open_batches": 0,
			"run_seconds": time.Minute,
		},
	)
}

// keyed writes a line with a manufacturer, a part number and a UNSPSC code. An empty text is NULL. The confidence of
// each is 0.8, but for the member in unsure: it has less, or none if the line is without.
func (r *reportsTest) keyed(of string, line int64, manufacturer, part, code, unsure string, without bool) {
	r.Helper()
	r.AddLines(r, line)
	it := doc(fmt.Sprint("doc ", line), line, 5, "x", line)
	texts := map[string]string{"manufacturer_name": manufacturer, "part_number": part, "unspsc": code}
	for i, c := range mapping.InUse().Columns() {
		member := strings.TrimPrefix(strings.Join(c.Paths, " "), "process_output.")
		text, chosen := texts[member]
		if of, ok := strings.CutSuffix(member, "_confidence"); ok {
			text, chosen = "0.8000", true
			if of == unsure {
				text = map[bool]string{false: "0.7999"}[without]
			}
		}
		if chosen {
			it.Values[i] = invoice.Value{Null: text == "", Text: text}
		}
	}
	out, err := r.Sink.Apply(r.Context(), []commit.Item{it}, commit.Write, unknown(of))
	require.NoError(r, err)
	require.Equal(r, invoice.OutcomeApplied, out[0].Verdict)
}

// available are the reports that the mapping in use has columns for.
func (r *reportsTest) available() []string {
	return slices.DeleteFunc(slices.Clone(r.Names), func(name string) bool {
		return name == "same-key" && !sameKeyAvailable()
	})
}

// sameKeyAvailable asks for the one member of that report that some mapping of the tests leaves out.
func sameKeyAvailable() bool { return mapping.Place(invoice.Detail, "PRT_NUM_CNFDC_SCR") >= 0 }

func reportSameKey(r *reportsTest) {
	if !sameKeyAvailable() {
		r.rows("same-key", row{
			"not_available": "no column of IVCE_DTL has the member process_output.part_number_confidence (MAPPING)",
		})
		return
	}
	for _, l := range []struct {
		of                        string
		line                      int64
		maker, part, code, unsure string
		without                   bool
	}{
		{ReportsSysName, 11, "ACME", "P-1", "111", "", false},
		{ReportsSysName, 12, "ACME", "P-1", "222", "", false},
		{ReportsSysName, 13, "ACME", "P-1", "222", "unspsc", false},
		{ReportsSysName, 14, "ACME", "P-1", "", "", false},    // no code contradicts none
		{ReportsSysName, 21, "ACME", "P-2", "111", "", false}, // another part may have another code
		{ReportsSysName, 22, "ACME", "P-2", "222", "manufacturer_name", false},
		{ReportsSysName, 23, "ACME", "P-2", "333", "part_number", false},
		{ReportsSysName, 24, "ACME", "P-2", "444", "unspsc", false},
		{ReportsSysName, 25, "ACME", "P-2", "555", "unspsc", true},
		{ReportsSysName, 31, "Bolt", "P-1", "333", "", false}, // so may the part of another manufacturer
		{ReportsSysName, 32, "Bolt", "P-1", "333", "", false},
		{"dev", 33, "Bolt", "P-1", "444", "", false},
		{ReportsSysName, 41, "", "P-3", "111", "", false}, // no key
		{ReportsSysName, 42, "", "P-3", "222", "", false},
		{ReportsSysName, 43, "Carr", "", "111", "", false},
		{ReportsSysName, 44, "Carr", "", "222", "", false},
		{ReportsSysName, 51, "ACME", "P-4", "111", "", false},
		{ReportsSysName, 52, "ACME", "P-4", "222", "", false}, // failed below: its row is no result
	} {
		r.keyed(l.of, l.line, l.maker, l.part, l.code, l.unsure, l.without)
	}
	failed := mark(doc("failed", 100, 5, "y", 52))
	_, err := r.Sink.Apply(r.Context(), []commit.Item{failed}, commit.Write, unknown(ReportsSysName))
	require.NoError(r, err)
	r.rows("same-key",
		row{
			"line_count": 4, "code_count": 2, "sure_lines": 3, "sure_codes": 2, "first_line": 11, "last_line": 14,
		},
		row{"line_count": 5, "code_count": 5, "sure_lines": 1, "sure_codes": 1, "first_line": 21, "last_line": 25},
	)
}

// reportOurs puts the same things in for runs of each environment, and one that is not there: only those of the
// other environment are in no report.
func reportOurs(r *reportsTest) {
	r.run(row{"run_id": "ours", "sys_name": ReportsSysName})
	r.run(row{"run_id": "theirs", "sys_name": "dev"})
	r.run(row{"run_id": "second"})
	begun := row{
		"heartbeat_at": r.ago(time.Hour), "queued_at": r.ago(2 * time.Minute), "process_start_time": r.ago(time.Minute),
		"process_end_time": r.now,
	}
	for i, of := range []string{"ours", "theirs", "second", "gone"} {
		for _, status := range []string{
			"pending_queue", "pending_retry", "queued", "processing", "completed", "failed",
		} {
			r.batch(of, status, maps.Clone(begun))
		}
		r.put("worker", row{
			"worker_id": fmt.Sprintf("worker-%08d", i), "kind": "worker", "instance": "here", "run_id": of,
			"status": "RUNNING", "documents_processed": 1,
			"started_at": r.ago(time.Hour), "heartbeat_at": r.ago(time.Hour),
		}, nil)
		r.error(
			row{
				"run_id": of, "batch_id": batchKey(i),
				"sys_name": map[bool]string{true: "dev", false: ReportsSysName}[of == "theirs"],
			})
	}
	ids := func(name, column string) (found []any) {
		for _, line := range r.report(name) {
			found = append(found, line[column])
		}
		return found
	}
	require.Equal(r, []any{"second", "ours"}, ids("runs", "run_id"))
	three := []any{"ours", "second", "gone"}
	for name, column := range map[string]string{
		"pending-retries": "parent_job_id", "queue-lag": "parent_job_id",
	} {
		require.ElementsMatch(r, three, ids(name, column), name)
	}
	for name, column := range map[string]string{
		"batch-progress": "batches", "error-codes": "errors", "workers": "dead", "performance": "completed_batches",
	} {
		for _, n := range ids(name, column) {
			require.Equal(r, int64(3), n, name)
		}
	}
	require.Equal(r, []any{int64(18)}, ids("batch-success", "total_batches"))
}
