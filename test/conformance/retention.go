package conformance

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/reconcile"
	"sqlwriter/internal/retention"
	"sqlwriter/internal/run"
)

// RetentionFixture has the port under test and the functions that TestRetention needs around it.
type RetentionFixture struct {
	// RunStore is about the environment "web" in the same, empty database. Its Age moves the times of error details,
	// findings and the audit log too.
	RunStore RunStoreFixture
	// Retention is under test, of the environment "web". OtherRetention is that of "dev" in the same database.
	Retention, OtherRetention retention.Store
	OtherRuns                 run.Store
	Findings, OtherFindings   reconcile.Findings
	// Rows counts the rows of each table that a purge is about, of all environments.
	Rows func(t testing.TB) map[string]int
	// Kept is all that the ledger, the adoption and the heartbeats have: some rows, years old; nil where they are not
	// kept beside.
	Kept func(t testing.TB) string
	// KeepAudits is what an administrator does: the audit log of an environment is kept for so many days; 0 for ever.
	KeepAudits func(t testing.TB, sysName string, days int)
	// HideWorkers takes the table worker away until restore, so that a purge fails in its middle; nil where there are
	// no tables.
	HideWorkers func(t testing.TB) (restore func())
}

// retentionTest is a running case.
type retentionTest struct {
	runTest
	RetentionFixture
}

// TestRetention checks an implementation of retention.Store against the port's contract. open makes a new, empty one
// per case.
func TestRetention(t *testing.T, open func(t testing.TB) RetentionFixture) {
	for _, c := range []struct {
		name string
		run  func(*retentionTest)
	}{
		{"each part goes by its own age", retentionParts},
		{"a run goes however it ended", retentionEnds},
		{"a limit is kept, and repeated calls go on", retentionLimit},
		{"2,500 documents go in chunks, and the run's row last", retentionChunks},
		{"the run that ended first goes first", retentionOrder},
		{"nothing continues a run whose rows begin to go", retentionPurged},
		{"a purge that fails in its middle deletes nothing", retentionWhole},
		{"never: what is younger", retentionYounger},
		{"never: the audit log, but as its own row says", retentionAudits},
		{"never: a running run and its error details", retentionRunning},
		{"never: a run that a running run names", retentionNamed},
		{"never: the last comparison that ended well, and one that goes on", retentionLastCompared},
		{"never: the ledger, the adoption, the heartbeats", retentionKept},
		{"never: another environment's rows", retentionEnvironments},
		{"never: rows of the last 30 days, whoever asks", retentionRefused},
		{"a call whose context has ended is infrastructure", retentionCancelled},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := open(t)
			f.KeepAudits(t, runSys, leastAudit)
			f.KeepAudits(t, "dev", leastAudit)
			c.run(&retentionTest{runTest{T: t, RunStoreFixture: f.RunStore}, f})
		})
	}
}

// leastAudit is how many days the audit log is kept at least, as long as evidence (deploy/storage/lifecycle.json).
const leastAudit = 365

// old is an age that a purge takes, of the audit log too.
const old = (leastAudit + 1) * 24 * time.Hour

// purge makes one call, and returns how many rows went.
func (f *retentionTest) purge(part retention.Part, limit int) int {
	f.Helper()
	return f.purgeBy(f.Retention, part, limit)
}

// purgeBy requires that so many rows are gone as the answer says.
func (f *retentionTest) purgeBy(r retention.Store, part retention.Part, limit int) int {
	f.Helper()
	before := f.all()
	n, err := r.Purge(f.Context(), part, retention.LeastDays, limit)
	require.NoError(f, err)
	require.LessOrEqual(f, n, limit)
	require.Equal(f, n, before-f.all(), "rows that went")
	return n
}

// purgeAll purges all parts until none is left.
func (f *retentionTest) purgeAll(r retention.Store) {
	f.Helper()
	for _, part := range retention.Parts() {
		for f.purgeBy(r, part, retention.MaxPurge) > 0 { //nolint:revive // until nothing is left
		}
	}
}

// rows counts the rows of a table.
func (f *retentionTest) rows(table string) int {
	f.Helper()
	n, ok := f.Rows(f)[table]
	require.True(f, ok, table)
	return n
}

// all counts the rows of all tables.
func (f *retentionTest) all() (n int) {
	f.Helper()
	for _, rows := range f.Rows(f) {
		n += rows
	}
	return n
}

// endedRun makes a run with a batch that failed, its error detail and two documents. It ends by a cancellation.
func (f *retentionTest) endedRun(id string) {
	f.Helper()
	f.endedRunOf(runSys, id, 1)
}

// endedRunOf is endedRun of an environment and with n error details, at most 100.
func (f *retentionTest) endedRunOf(sysName, id string, n int) {
	f.Helper()
	f.batchesIn(sysName, id, 1)
	h := f.leaseBatch(run.BatchID(sysName, id, 1))
	f.details(h, n)
	require.NoError(f, f.Store.FailBatch(f.Context(), h, "x", entry("BATCH_FAIL")))
	f.cancel(id)
}

// rowsOfEnded are the rows of one of endedRun: itself, a batch, two documents, a manager and a worker.
const rowsOfEnded = 6

func (f *retentionTest) cancel(id string) {
	f.Helper()
	f.must(f.Store.CancelRun(f.Context(), id, entry("RUN_CANCEL")))
	ok, _, _ := f.complete(id)
	require.True(f, ok)
}

// details adds error details to a batch.
func (f *retentionTest) details(h run.BatchLease, n int) {
	f.Helper()
	one := run.ErrorDetail{Document: "a", Code: "2628", Message: "m", Type: run.TypeMigration}
	require.NoError(f, f.Store.SaveOutcomes(f.Context(), h, nil, slices.Repeat([]run.ErrorDetail{one}, n)))
}

func (f *retentionTest) there(id string) bool {
	f.Helper()
	_, ok, err := f.Store.Run(f.Context(), id)
	require.NoError(f, err)
	return ok
}

// compared begins and ends comparisons that name documents, each with its entry of the audit log.
func (f *retentionTest) compared(s reconcile.Findings, ids ...int64) {
	f.Helper()
	for _, id := range ids {
		begun(f, s, reconcile.Comparison{ID: fmt.Sprint(id), IDs: []string{"a"}})
		end(f, s, "")
	}
}

func retentionParts(f *retentionTest) {
	f.endedRunOf(runSys, "r", 4)
	f.compared(f.Findings, 1, 2)
	audits := f.rows("audit_log")
	f.Age(f, old)
	for part, want := range map[retention.Part]map[string]int{
		retention.ErrorDetails: {"error_detail": 4},
		retention.EndedRuns:    {"run": 1, "batch": 1, "batch_item": 2, "worker": 2},
		retention.Comparisons:  {"comparison": 2},
		retention.AuditLog:     {"audit_log": audits},
	} {
		left := f.Rows(f)
		sum := 0
		for table, n := range want {
			require.Equal(f, n, left[table], "%s has them", table)
			left[table], sum = 0, sum+n
		}
		require.Equal(f, sum, f.purge(part, retention.MaxPurge), part)
		require.Equal(f, left, f.Rows(f), part)
		require.Zero(f, f.purge(part, retention.MaxPurge), part)
	}
	require.Zero(f, f.all())
}

func retentionEnds(f *retentionTest) {
	complete := func(id string, outcome invoice.Outcome) {
		l := f.batches(id, 1)
		h := f.leaseBatch(batchID(id, 1))
		f.save(h, outcome, f.openOf(h)[0])
		f.finish(h)
		require.NoError(f, f.Store.EndHandOff(f.Context(), l, entry("HANDED_OFF")))
		ok, _, _ := f.complete(id)
		require.True(f, ok)
	}
	complete("completed", invoice.OutcomeApplied)
	complete("completed-with-failures", invoice.OutcomeFailed)
	f.endedRun("cancelled")
	f.start("failed")
	f.must(f.Store.FailRun(f.Context(), "failed", "x", 0, entry("RUN_FAIL")))
	list, err := f.Store.ListRuns(f.Context(), "", 10)
	require.NoError(f, err)
	statuses := map[run.RunStatus]bool{}
	for _, r := range list {
		statuses[r.Status] = true
	}
	require.Equal(f, map[run.RunStatus]bool{
		run.RunCompleted: true, run.RunCompletedWithFailures: true, run.RunCancelled: true, run.RunFailed: true,
	}, statuses)
	f.Age(f, old)
	f.purgeAll(f.Retention)
	require.Zero(f, f.all())
}

func retentionLimit(f *retentionTest) {
	add := func(id string, from, n int64) map[string]int {
		f.endedRunOf(runSys, id, int(n))
		for line := range n {
			f.compared(f.Findings, from+line)
		}
		return f.Rows(f)
	}
	older := add("older", 0, 25)
	f.Age(f, 48*time.Hour)
	all := add("younger", 100, 5)
	f.Age(f, retention.LeastDays*24*time.Hour+time.Hour)
	for part, table := range map[retention.Part]string{
		retention.ErrorDetails: "error_detail", retention.Comparisons: "comparison",
	} {
		rest := older[table] - 20
		require.Equal(f, []int{10, 10, rest}, []int{f.purge(part, 10), f.purge(part, 10), f.purge(part, rest)}, part)
		n, err := f.Retention.Purge(f.Context(), part, retention.LeastDays+1, 1000)
		require.NoError(f, err)
		require.Zero(f, n, "%s: the oldest went", part)
		require.Equal(f, []int{all[table] - older[table], 0}, []int{f.purge(part, 1000), f.purge(part, 10)}, part)
	}
}

func retentionChunks(f *retentionTest) {
	f.start("big")
	l := f.leaseRun("big")
	for chunk := range 5 {
		list := [][]string{}
		for batch := range 5 {
			documents := make([]string, 100)
			for i := range documents {
				documents[i] = fmt.Sprintf("%d of batch %d", i, 5*chunk+batch)
			}
			list = append(list, documents)
		}
		f.add(l, run.PendingQueue, list...)
	}
	f.cancel("big")
	f.Age(f, old)
	const all = 2_500 + 25 + 1 + 1 // a manager, and the run
	require.Equal(f, 1000, f.purge(retention.EndedRuns, 1000))
	require.Equal(f, run.RunPurged, f.read("big").Status)
	_, err := f.Retention.Purge(lateContext(f), retention.EndedRuns, retention.LeastDays, 1000) // the process dies
	require.Error(f, err)
	require.Equal(f, 1000, f.purge(retention.EndedRuns, 1000))
	require.Equal(f, all-2001, f.purge(retention.EndedRuns, all-2001))
	require.Equal(f,
		map[string]int{
			"run": 1, "batch": 0, "batch_item": 0, "worker": 0, "error_detail": 0, "finding": 0, "comparison": 0,
		}, without(f.Rows(f), "audit_log"),
		"its row goes last")
	require.Equal(f, run.RunPurged, f.read("big").Status)
	require.Equal(f, 1, f.purge(retention.EndedRuns, 1000))
	require.False(f, f.there("big"))
	require.Zero(f, f.purge(retention.EndedRuns, 1000))
}

// without is a table of rows without one.
func without(rows map[string]int, table string) map[string]int {
	rows = maps.Clone(rows)
	delete(rows, table)
	return rows
}

func retentionOrder(f *retentionTest) {
	f.batches("ends-last", 1)
	f.endedRun("ends-first")
	f.Age(f, time.Minute)
	f.cancel("ends-last")
	f.Age(f, old)
	require.Equal(f, rowsOfEnded, f.purge(retention.EndedRuns, 1000), "one run a call")
	require.Equal(f, []bool{false, true}, []bool{f.there("ends-first"), f.there("ends-last")})
	require.NotZero(f, f.purge(retention.EndedRuns, 1000))
	require.False(f, f.there("ends-last"))
}

func retentionPurged(f *retentionTest) {
	l := f.batches("failed", 4)
	silent := f.leaseBatch(batchID("failed", 3))
	require.NoError(f, f.Store.FailBatch(f.Context(), f.leaseBatch(batchID("failed", 4)), "x", entry("BATCH_FAIL")))
	require.NoError(f, f.Store.ReleaseRun(f.Context(), l))
	f.must(f.Store.FailRun(f.Context(), "failed", "x", 0, entry("RUN_FAIL")))
	f.endedRun("cancelled")
	f.Age(f, old)
	require.Equal(f, 1, f.purge(retention.EndedRuns, 1), "one of four batches")
	require.Equal(f, run.RunPurged, f.read("failed").Status)
	f.changesNothing("the run is purged", func() {
		for name, change := range map[string]func() (bool, error){
			"resume": func() (bool, error) { return f.Store.ResumeRun(f.Context(), "failed", entry("X")) },
			"requeue": func() (bool, error) {
				return f.Store.RequeueBatch(f.Context(), batchID("failed", 4), entry("X"))
			},
			"complete": func() (bool, error) {
				return f.Store.CompleteRun(f.Context(), "failed", 0, ended(entry("X")))
			},
			"cancel": func() (bool, error) { return f.Store.CancelRun(f.Context(), "failed", entry("X")) },
			"fail":   func() (bool, error) { return f.Store.FailRun(f.Context(), "failed", "x", 0, entry("X")) },
			"claim": func() (bool, error) {
				_, ok, err := f.Store.ClaimRun(f.Context(), "failed", f.read("failed").Epoch, noEpoch,
					f.worker(RunManager), 0)
				return ok, err
			},
			"dead letter": func() (bool, error) {
				return f.Store.DeadLetter(f.Context(), batchID("failed", 2), run.FirstAttempt, "x", 0, entry("X"))
			},
			"rescue": func() (bool, error) {
				batches, workers, err := f.Store.Rescue(f.Context(), runSys, runStale, runReleased, 10)
				return batches+workers > 0, err
			},
			"silent": func() (bool, error) {
				n, err := f.Store.RequeueSilent(f.Context(), runSys, runSilent, 10)
				return n > 0, err
			},
		} {
			ok, err := change()
			require.NoError(f, err, name)
			require.False(f, ok, name)
		}
		require.Equal(f, run.Ended, f.claim(batchID("failed", 2)).Answer)
		open, err := f.Store.OpenRuns(f.Context(), runSys, 10)
		require.NoError(f, err)
		require.Empty(f, open)
		send, err := f.Store.ToSend(f.Context(), runSys, 10)
		require.NoError(f, err)
		require.Empty(f, send)
	})
	f.must(f.Store.ResumeRun(f.Context(), "cancelled", entry("X"))) // its rows had not begun to go
	require.Equal(f, 3+8+3+1, f.purge(retention.EndedRuns, 1000), "batches, documents, workers, the run")
	_, err := f.Store.BeatBatch(f.Context(), silent)
	f.lost(err)
	require.Equal(f, run.Unknown, f.claim(batchID("failed", 2)).Answer)
	f.start("failed") // nothing has the name any more
}

func retentionWhole(f *retentionTest) {
	if f.HideWorkers == nil {
		f.Skip("no tables")
	}
	f.endedRun("r")
	f.Age(f, old)
	was := f.stateOf("r")
	restore := f.HideWorkers(f)
	_, err := f.Retention.Purge(f.Context(), retention.EndedRuns, retention.LeastDays, 1000)
	restore()
	require.Equal(f, fault.Infrastructure, fault.KindOf(err), "%v", err)
	require.Equal(f, was, f.stateOf("r"))
	require.Equal(f, rowsOfEnded, f.purge(retention.EndedRuns, 1000))
}

func retentionYounger(f *retentionTest) {
	f.endedRun("r")
	f.compared(f.Findings, 1)
	f.Age(f, retention.LeastDays*24*time.Hour-time.Hour)
	was := f.all()
	f.purgeAll(f.Retention)
	require.Equal(f, was, f.all())
	f.Age(f, 2*time.Hour)
	n, err := f.Retention.Purge(f.Context(), retention.EndedRuns, retention.LeastDays+1, 1000)
	require.NoError(f, err)
	require.Zero(f, n, "as many days as asked")
	f.purgeAll(f.Retention)
	require.Equal(f, f.rows("audit_log"), f.all(), "which goes by its own days")
}

// Whoever may call the purge, with whatever days: the audit log goes by the row that only an administrator writes. What
// a person said of repaired lines stays, because a document's outcome manual counts only with it.
func retentionAudits(f *retentionTest) {
	f.endedRun("r")
	n := f.rows("audit_log")
	require.NoError(f, f.Store.Write(f.Context(), run.Audit{Action: run.CodeMarkCommitted, By: "kim", Why: "w"}))
	f.Age(f, old)
	f.KeepAudits(f, runSys, 0)
	require.Zero(f, f.purge(retention.AuditLog, 10), "without a row it is kept for ever")
	f.KeepAudits(f, runSys, leastAudit+2)
	require.Zero(f, f.purge(retention.AuditLog, 10), "it is younger")
	f.Age(f, 48*time.Hour)
	f.KeepAudits(f, "dev", 0)
	require.Equal(f, []int{1, n - 1, 0}, []int{
		f.purge(retention.AuditLog, 1), f.purge(retention.AuditLog, 10), f.purge(retention.AuditLog, 10),
	})
	require.Equal(f, 1, f.rows("audit_log"), "the mark")
}

func retentionRunning(f *retentionTest) {
	f.batches("running", 1)
	f.details(f.leaseBatch(batchID("running", 1)), 1)
	f.endedRun("cancelled")
	f.Age(f, old)
	f.must(f.Store.ResumeRun(f.Context(), "cancelled", entry("X")))
	was := without(f.Rows(f), "audit_log")
	f.purgeAll(f.Retention)
	require.Equal(f, was, without(f.Rows(f), "audit_log"))
}

func retentionNamed(f *retentionTest) {
	filter, err := json.Marshal(run.Filter{Run: "named", Code: "2628"})
	require.NoError(f, err)
	f.endedRun("named")
	f.endedRun("other")
	require.NoError(f,
		f.Store.StartRun(f.Context(),
			run.Run{ID: "replay", SysName: runSys, Kind: run.Replay, Filter: filter}, entry("RUN_START")))
	f.start("plain")
	f.Age(f, old)
	f.purgeAll(f.Retention)
	require.Equal(f, []bool{true, false}, []bool{f.there("named"), f.there("other")})
	require.Equal(f, run.RunCancelled, f.read("named").Status)
	require.Len(f, f.items("named"), 2)
	f.cancel("replay")
	f.purgeAll(f.Retention)
	require.False(f, f.there("named"))
	require.True(f, f.there("replay"), "it ended just now")
}

func retentionLastCompared(f *retentionTest) {
	for _, c := range []struct {
		id, failed string
		ids        []string
	}{{"before", "", nil}, {"last", "", nil}, {"failed", "x", nil}, {"named", "", []string{"a"}}} {
		begun(f, f.Findings, reconcile.Comparison{ID: c.id, IDs: c.ids})
		f.Age(f, time.Minute)
		end(f, f.Findings, c.failed)
	}
	begun(f, f.Findings, reconcile.Comparison{ID: "open"})
	f.Age(f, old)
	require.Equal(f, []int{1, 2, 0},
		[]int{
			f.purge(retention.Comparisons, 1), f.purge(retention.Comparisons, 1000),
			f.purge(retention.Comparisons, 1000),
		})
	last, _, err := f.Findings.Last(f.Context())
	require.NoError(f, err)
	open, _, err := f.Findings.Next(f.Context())
	require.NoError(f, err)
	require.Equal(f, []string{"last", "open"}, []string{last.ID, open.ID})
	end(f, f.Findings, "")
	require.Equal(f, 1, f.purge(retention.Comparisons, 1000), "another one is the last")
}

func retentionKept(f *retentionTest) {
	if f.Kept == nil {
		f.Skip("they are not kept beside")
	}
	f.endedRun("r")
	f.compared(f.Findings, 1)
	f.Age(f, old)
	was := f.Kept(f)
	require.NotEmpty(f, was)
	f.purgeAll(f.Retention)
	require.Zero(f, f.all())
	require.Equal(f, was, f.Kept(f))
}

func retentionEnvironments(f *retentionTest) {
	others := *f
	others.Store, others.names = f.OtherRuns, 100
	others.endedRunOf("dev", "theirs", 2)
	f.compared(f.OtherFindings, 1)
	before := f.Rows(f)
	f.endedRun("ours")
	f.compared(f.Findings, 1)
	f.Age(f, old)
	f.purgeAll(f.Retention)
	require.Equal(f, before, f.Rows(f))
	f.purgeAll(f.OtherRetention)
	require.Zero(f, f.all())
}

func retentionRefused(f *retentionTest) {
	f.endedRun("r")
	f.compared(f.Findings, 1)
	f.Age(f, old)
	was := f.all()
	refused := func(part retention.Part, days, limit int, code string) {
		f.Helper()
		_, err := f.Retention.Purge(f.Context(), part, days, limit)
		f.refused(err, code, part, days, limit)
	}
	for _, part := range retention.Parts() {
		for _, days := range []int{retention.LeastDays - 1, 1, 0, -1, -100} {
			refused(part, days, 1000, retention.CodeDays)
		}
		refused(part, retention.LeastDays, 0, "limit")
		refused(part, retention.LeastDays, retention.MaxPurge+1, "limit")
	}
	refused("ledger", retention.LeastDays, 1000, "part")
	refused("", retention.LeastDays, 1000, "part")
	require.Equal(f, was, f.all())
}

func retentionCancelled(f *retentionTest) {
	f.endedRun("r")
	f.Age(f, old)
	for _, part := range retention.Parts() {
		_, err := f.Retention.Purge(lateContext(f), part, retention.LeastDays, 1000)
		require.Equal(f, fault.Infrastructure, fault.KindOf(err), "%s: %v", part, err)
	}
	require.Equal(f, 1, f.rows("error_detail"))
}

// PurgedTables are the tables that a purge is about.
func PurgedTables() []string {
	return []string{"run", "batch", "batch_item", "worker", "error_detail", "finding", "comparison", "audit_log"}
}
