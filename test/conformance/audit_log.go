package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/run"
)

// The environments of the suite's audit logs.
const (
	AuditLogSysName      = "web"
	AuditLogOtherSysName = "dev"
)

// AuditLogHarness has the port under test and the functions that TestAuditLog needs around it.
type AuditLogHarness struct {
	// AuditLog is the port under test, of the environment AuditLogSysName and empty; Store is the run store of the
	// same environment in the same database.
	AuditLog ops.AuditLog
	Store    run.Store
	// Other and OtherStore are those of AuditLogOtherSysName in the same database.
	Other      ops.AuditLog
	OtherStore run.Store
	// Now is the clock that its times come from, or one that is close to it.
	Now func() time.Time
	// HideRuns and HideAudits take the table of the runs or of the audit log away until restore; nil where there are no
	// tables.
	HideRuns, HideAudits func(t testing.TB) (restore func())
}

// auditLogTest is a running case.
type auditLogTest struct {
	*testing.T
	AuditLogHarness
}

// TestAuditLog checks an implementation of ops.AuditLog against the port's contract. open makes a new one per case.
func TestAuditLog(t *testing.T, open func(t testing.TB) AuditLogHarness) {
	for _, c := range []struct {
		name string
		run  func(*auditLogTest)
	}{
		{"an entry of the audit log comes back as it was written", auditEntry},
		{"a run from its request to its receipt", auditLifeOfARun},
		{"any letters, and no JSON at all", auditOddTexts},
		{"words that are too long are cut, and seen to be", auditTruncates},
		{"what is no run or no JSON is refused, and nothing is kept", auditRefuses},
		{"a run's id stands once, and another case is another id", auditRunExists},
		{"of eight starts of one run one does", auditStartRace},
		{"a run without its entry is not started", auditStartWhole},
		{"progress of a run that is not running", auditNoRun},
		{"a run ends once", auditEndsOnce},
		{"of eight ends of one run one does", auditEndRace},
		{"a cancelled run learns of it, and may still complete", auditCancel},
		{"only a running run can be cancelled", auditCancelNothing},
		{"a cancellation without its entry is none", auditCancelWhole},
		{"the latest come first, and no more than asked for", auditLatest},
		{"what people did is not behind the steps of workers", auditQueries},
		{"an action is asked for as it is spelled", auditActionSpelled},
		{"two environments in one database see only their own", auditEnvironments},
		{"what is another environment's is not running here", auditForeign},
		{"eight runs at once, each with counts of its own", auditParallel},
		{"missing tables are infrastructure", auditMissing},
		{"a call whose context has ended is infrastructure and keeps nothing", auditCancelled},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(&auditLogTest{T: t, AuditLogHarness: open(t)}) })
	}
}

// runs are the audit log's runs as the run store lists them.
func (j *auditLogTest) runs(limit int) []ops.Run {
	j.Helper()
	list, err := j.Store.ListRuns(j.Context(), limit)
	require.NoError(j, err)
	runs := []ops.Run{}
	for _, r := range list {
		runs = append(runs, ops.Run{
			ID: r.ID, Kind: string(r.Kind), Filter: r.Filter, Matched: r.Matched, AtLeast: r.AtLeast, RequestedBy: r.RequestedBy, Why: r.Why,
			Status: r.Status, Cancel: r.Cancel, Counts: r.Counts, StartedAt: r.StartedAt, EndedAt: r.EndedAt,
		})
	}
	return runs
}

func (j *auditLogTest) audits(limit int) []ops.Audit {
	j.Helper()
	audits, err := j.AuditLog.Audits(j.Context(), ops.AuditQuery{All: true, Limit: limit})
	require.NoError(j, err)
	return audits
}

// actions are those of the audit log, newest first.
func (j *auditLogTest) actions() []string {
	j.Helper()
	list := []string{}
	for _, a := range j.audits(1000) {
		list = append(list, a.Action+" "+a.Subject)
	}
	return list
}

// start begins a run that must begin.
func (j *auditLogTest) start(id string) {
	j.Helper()
	require.NoError(j, j.AuditLog.Start(j.Context(), ops.Run{ID: id, Kind: "reprocess"}, ops.Audit{Action: "reprocess", Subject: id}))
}

// only is the one run there is.
func (j *auditLogTest) only() ops.Run {
	j.Helper()
	runs := j.runs(10)
	require.Len(j, runs, 1)
	return runs[0]
}

// now requires that a time is the clock's.
func (j *auditLogTest) now(at time.Time) {
	j.Helper()
	require.WithinDuration(j, j.Now(), at, 10*time.Minute, "by the database's clock")
	require.Equal(j, time.UTC, at.Location())
}

// refused requires an error of our own making.
func (j *auditLogTest) refused(code string, err error) {
	j.Helper()
	require.Equal(j, []string{string(fault.Internal), code}, []string{string(fault.KindOf(err)), fault.CodeOf(err)}, "%v", err)
}

func auditEntry(j *auditLogTest) {
	require.Equal(j, []ops.Audit{}, j.audits(10))
	a := ops.Audit{
		At: time.Unix(1, 0), Action: "pause", By: "Ann", Why: "the index is being rebuilt", Subject: "the flow",
		Detail: json.RawMessage(`{"until": "2025-12-18T16:00:00Z", "n": 1.50}`),
	}
	require.NoError(j, j.AuditLog.Write(j.Context(), a))
	found := j.audits(10)
	require.Len(j, found, 1)
	j.now(found[0].At)
	a.At = found[0].At
	require.Equal(j, a, found[0])
	require.Empty(j, j.runs(10), "an entry is no run")
}

func auditLifeOfARun(j *auditLogTest) {
	require.Equal(j, []ops.Run{}, j.runs(10))
	r := ops.Run{
		ID: "r-1", Kind: "reprocess", Filter: json.RawMessage(`{"kind": "document", "codes": ["2628", "547"]}`), RequestedBy: "Ann",
		Why: "the column is wider now", Status: ops.Completed, Cancel: true, Counts: map[string]int{"selected": 7},
		StartedAt: time.Unix(1, 0), EndedAt: time.Unix(2, 0),
	}
	r.Matched, r.AtLeast = 7, true
	require.NoError(j, j.AuditLog.Start(j.Context(), r, ops.Audit{Action: "reprocess", By: "Ann", Why: r.Why, Subject: r.ID, Detail: r.Filter}))
	began := j.only()
	j.now(began.StartedAt)
	r.Status, r.Cancel, r.StartedAt, r.EndedAt = ops.Running, false, began.StartedAt, time.Time{}
	require.Equal(j, r, began, "it begins running, whatever the caller says")
	require.Equal(j, []string{"reprocess r-1"}, j.actions())

	for n := range 3 {
		counts := map[string]int{"done": n, fmt.Sprint("only ", n): 1}
		cancel, err := j.AuditLog.Progress(j.Context(), "r-1", counts)
		require.NoError(j, err)
		require.False(j, cancel)
		require.Equal(j, counts, j.only().Counts, "replaced, not added")
	}
	require.NoError(j, j.AuditLog.End(j.Context(), "r-1", ops.Stopped, map[string]int{"done": 3}))
	ended := j.only()
	j.now(ended.EndedAt)
	require.False(j, ended.EndedAt.Before(ended.StartedAt))
	r.Status, r.Counts, r.EndedAt = ops.Stopped, map[string]int{"done": 3}, ended.EndedAt
	require.Equal(j, r, ended)
	require.Len(j, j.audits(10), 1, "progress and end are no actions")
}

func auditOddTexts(j *auditLogTest) {
	odd := "O'Neil \"x\" \\ %s @id; DROP TABLE run -- \u00e4\u6f22\U0001f600 \ttab\nline "
	r := ops.Run{ID: "!'\"@;--~", Kind: "k'", RequestedBy: odd, Why: odd, Counts: map[string]int{odd: -1}}
	require.NoError(j, j.AuditLog.Start(j.Context(), r, ops.Audit{Action: "a'", By: odd, Why: odd, Subject: odd}))
	found := j.only()
	require.Nil(j, found.Filter)
	require.Equal(j, []any{r.ID, r.Kind, odd, odd, r.Counts}, []any{found.ID, found.Kind, found.RequestedBy, found.Why, found.Counts})
	a := j.audits(1)[0]
	require.Nil(j, a.Detail)
	require.Equal(j, []string{"a'", odd, odd, odd}, []string{a.Action, a.By, a.Why, a.Subject})
	cancel, err := j.AuditLog.Progress(j.Context(), r.ID, nil)
	require.NoError(j, err)
	require.False(j, cancel)
	require.Equal(j, map[string]int{}, j.only().Counts, "none are an empty list of them")

	text, err := json.Marshal(strings.Repeat(odd, 5000))
	require.NoError(j, err)
	require.NoError(j, j.AuditLog.Write(j.Context(), ops.Audit{Action: "long", Detail: text}))
	require.Equal(j, json.RawMessage(text), j.audits(1)[0].Detail, "JSON is never cut")
}

func auditTruncates(j *auditLogTest) {
	long := strings.Repeat("\u6f22\U0001f600", 1500)
	id := strings.Repeat("x", ops.MaxRunID)
	require.NoError(j, j.AuditLog.Start(j.Context(), ops.Run{ID: id, Kind: long, RequestedBy: long, Why: long},
		ops.Audit{Action: long, By: long, Why: long, Subject: long}))
	r, a := j.only(), j.audits(1)[0]
	require.Equal(j, []string{id, ops.Truncate(long, ops.MaxKind), ops.Truncate(long, ops.MaxBy), ops.Truncate(long, ops.MaxWhy)},
		[]string{r.ID, r.Kind, r.RequestedBy, r.Why})
	require.Equal(j, []string{ops.Truncate(long, ops.MaxKind), ops.Truncate(long, ops.MaxBy), ops.Truncate(long, ops.MaxWhy), ops.Truncate(long, ops.MaxSubject)},
		[]string{a.Action, a.By, a.Why, a.Subject})
	require.NoError(j, j.AuditLog.Write(j.Context(), ops.Audit{Action: "x", By: "a\xffb\x00c"}))
	require.Equal(j, "a\ufffdb\ufffdc", j.audits(1)[0].By)
}

func auditRefuses(j *auditLogTest) {
	ctx, good := j.Context(), ops.Audit{Action: "reprocess"}
	broken := json.RawMessage(`{"a":`)
	for _, id := range []string{"", "a b", "a ", "\u00e4", strings.Repeat("x", ops.MaxRunID+1)} {
		j.refused("run_id", j.AuditLog.Start(ctx, ops.Run{ID: id}, good))
	}
	j.refused("json", j.AuditLog.Start(ctx, ops.Run{ID: "r", Filter: broken}, good))
	j.refused("json", j.AuditLog.Start(ctx, ops.Run{ID: "r"}, ops.Audit{Detail: broken}))
	j.refused("json", j.AuditLog.Write(ctx, ops.Audit{Detail: broken}))
	require.Empty(j, j.runs(10))
	require.Empty(j, j.audits(10))
	j.start("r")
	_, err := j.AuditLog.Cancel(ctx, "r", ops.Audit{Detail: broken})
	j.refused("json", err)
	for _, status := range []ops.RunStatus{"", ops.Running, "done"} {
		j.refused("status", j.AuditLog.End(ctx, "r", status, nil))
	}
	r := j.only()
	require.Equal(j, []any{ops.Running, false}, []any{r.Status, r.Cancel})
	require.Len(j, j.audits(10), 1)
}

func auditRunExists(j *auditLogTest) {
	j.start("run")
	require.NoError(j, j.AuditLog.End(j.Context(), "run", ops.Completed, map[string]int{"done": 1}))
	was := j.only()
	err := j.AuditLog.Start(j.Context(), ops.Run{ID: "run", Kind: "other"}, ops.Audit{Action: "again", Subject: "run"})
	j.refused("run_exists", err)
	require.Equal(j, was, j.only())
	require.Equal(j, []string{"reprocess run"}, j.actions(), "nobody did what was refused")
	j.start("RUN")
	cancel, err := j.AuditLog.Cancel(j.Context(), "Run", ops.Audit{Action: "cancel"})
	require.NoError(j, err)
	require.False(j, cancel)
	require.Equal(j, []string{"RUN running false", "run completed false"}, j.short())
}

// short is each run's id, status and whether it shall end, newest first.
func (j *auditLogTest) short() []string {
	j.Helper()
	list := []string{}
	for _, r := range j.runs(1000) {
		list = append(list, fmt.Sprint(r.ID, " ", r.Status, " ", r.Cancel))
	}
	return list
}

// together calls f eight times at once and answers the errors.
func together(f func(n int) error) []error {
	errs := make([]error, 8)
	var group sync.WaitGroup
	begin := make(chan struct{})
	for i := range errs {
		group.Go(func() {
			<-begin
			errs[i] = f(i)
		})
	}
	close(begin)
	group.Wait()
	return errs
}

func auditStartRace(j *auditLogTest) {
	won := -1
	for i, err := range together(func(n int) error {
		return j.AuditLog.Start(j.Context(), ops.Run{ID: "r", RequestedBy: fmt.Sprint(n)}, ops.Audit{Action: "reprocess", Subject: fmt.Sprint(n)})
	}) {
		if err == nil {
			require.Negative(j, won, "one of them")
			won = i
			continue
		}
		j.refused("run_exists", err)
	}
	require.Equal(j, fmt.Sprint(won), j.only().RequestedBy)
	require.Equal(j, []string{fmt.Sprint("reprocess ", won)}, j.actions())
}

func auditStartWhole(j *auditLogTest) {
	if j.HideAudits == nil {
		j.Skip("not shown here: nothing can fail between the two")
	}
	restore := j.HideAudits(j)
	err := j.AuditLog.Start(j.Context(), ops.Run{ID: "r"}, ops.Audit{Action: "reprocess"})
	require.Equal(j, fault.Infrastructure, fault.KindOf(err), "%v", err)
	restore()
	require.Empty(j, j.runs(10))
	j.start("r")
}

func auditNoRun(j *auditLogTest) {
	_, err := j.AuditLog.Progress(j.Context(), "r", map[string]int{"done": 1})
	j.refused("no_run", err)
	j.start("r")
	require.NoError(j, j.AuditLog.End(j.Context(), "r", ops.Completed, map[string]int{"done": 2}))
	was := j.only()
	cancel, err := j.AuditLog.Progress(j.Context(), "r", map[string]int{"done": 3})
	j.refused("no_run", err)
	require.False(j, cancel)
	require.Equal(j, was, j.only())
}

func auditEndsOnce(j *auditLogTest) {
	require.NoError(j, j.AuditLog.End(j.Context(), "nobody", ops.Completed, nil), "a run that is not there is none that runs")
	require.Empty(j, j.runs(10))
	j.start("r")
	require.NoError(j, j.AuditLog.End(j.Context(), "r", ops.Cancelled, map[string]int{"done": 1}))
	was := j.only()
	require.Equal(j, ops.Cancelled, was.Status)
	require.NoError(j, j.AuditLog.End(j.Context(), "r", ops.Completed, map[string]int{"done": 2}))
	require.Equal(j, was, j.only())
}

func auditEndRace(j *auditLogTest) {
	j.start("r")
	for _, err := range together(func(n int) error {
		status := []ops.RunStatus{ops.Completed, ops.Stopped}[n%2]
		return j.AuditLog.End(j.Context(), "r", status, map[string]int{string(status): n})
	}) {
		require.NoError(j, err)
	}
	r := j.only()
	require.Len(j, r.Counts, 1)
	require.Contains(j, r.Counts, string(r.Status), "status and counts are one caller's")
}

func auditCancel(j *auditLogTest) {
	j.start("other")
	j.start("r")
	cancel, err := j.AuditLog.Cancel(j.Context(), "r", ops.Audit{Action: "cancel", By: "Ann", Why: "wrong filter", Subject: "r"})
	require.NoError(j, err)
	require.True(j, cancel)
	require.Equal(j, []string{"cancel r", "reprocess r", "reprocess other"}, j.actions())
	require.Equal(j, []string{"r running true", "other running false"}, j.short(), "it ends by itself")
	for id, want := range map[string]bool{"r": true, "other": false} {
		cancel, err = j.AuditLog.Progress(j.Context(), id, map[string]int{"done": 4})
		require.NoError(j, err)
		require.Equal(j, want, cancel, id)
	}
	require.NoError(j, j.AuditLog.End(j.Context(), "r", ops.Completed, map[string]int{"done": 5}))
	require.Equal(j, []string{"r completed true", "other running false"}, j.short())
}

func auditCancelNothing(j *auditLogTest) {
	j.start("r")
	require.NoError(j, j.AuditLog.End(j.Context(), "r", ops.Completed, nil))
	for _, id := range []string{"r", "nobody", ""} {
		cancel, err := j.AuditLog.Cancel(j.Context(), id, ops.Audit{Action: "cancel", Subject: id})
		require.NoError(j, err)
		require.False(j, cancel, id)
	}
	require.Equal(j, []string{"r completed false"}, j.short())
	require.Equal(j, []string{"reprocess r"}, j.actions(), "nothing was done")
}

func auditCancelWhole(j *auditLogTest) {
	if j.HideAudits == nil {
		j.Skip("not shown here: nothing can fail between the two")
	}
	j.start("r")
	restore := j.HideAudits(j)
	cancel, err := j.AuditLog.Cancel(j.Context(), "r", ops.Audit{Action: "cancel"})
	require.Equal(j, fault.Infrastructure, fault.KindOf(err), "%v", err)
	require.False(j, cancel)
	restore()
	require.Equal(j, []string{"r running false"}, j.short())
}

func auditLatest(j *auditLogTest) {
	const n = 12
	for i := range n {
		j.start(fmt.Sprint("r", i))
	}
	require.NoError(j, j.AuditLog.End(j.Context(), "r3", ops.Completed, nil), "what becomes of one does not move it")
	for _, limit := range []int{-1, 0, 1, 5, n, n + 1} {
		var ids, subjects, want []string
		for _, r := range j.runs(limit) {
			ids = append(ids, r.ID)
		}
		for _, a := range j.audits(limit) {
			subjects = append(subjects, a.Subject)
		}
		for i := range max(0, min(limit, n)) {
			want = append(want, fmt.Sprint("r", n-1-i))
		}
		require.Equal(j, want, ids, "%d runs", limit)
		require.Equal(j, want, subjects, "%d entries", limit)
	}
}

// noted are the entries that a query finds, newest first.
func (j *auditLogTest) noted(q ops.AuditQuery) []string {
	j.Helper()
	audits, err := j.AuditLog.Audits(j.Context(), q)
	require.NoError(j, err)
	list := []string{}
	for _, a := range audits {
		list = append(list, strings.Join([]string{a.Action, a.Level, a.Run, a.Batch}, " "))
	}
	return list
}

func auditQueries(j *auditLogTest) {
	ctx := j.Context()
	batch := strings.Repeat("b", 64)
	begin := func(id string) {
		require.NoError(j, j.Store.StartRun(ctx, run.Run{ID: id, SysName: AuditLogSysName, Kind: run.Drain, Pattern: "two_phase"},
			run.Audit{Code: run.CodeRunStart, Level: run.LevelInfo, By: "Ann", Why: "x", Run: id}))
	}
	write := func(of run.Store, code, level, id, batch string) {
		require.NoError(j, of.Write(ctx, run.Audit{Code: code, Level: level, By: "Ann", Why: "x", Run: id, Batch: batch}))
	}
	steps := func(of run.Store) {
		for range 30 {
			write(of, run.CodeBatchStart, run.LevelInfo, "q", batch)
			write(of, run.CodeBatchDone, run.LevelInfo, "q", batch)
		}
	}
	require.NoError(j, j.AuditLog.Write(ctx, ops.Audit{Action: "pause", By: "Ann", Why: "x", Subject: "flow"}))
	begin("q")
	steps(j.Store)
	j.start("r")
	write(j.Store, run.CodeBatchReleased, run.LevelWarn, "q", batch)
	steps(j.Store)
	write(j.Store, run.CodeBatchFail, run.LevelError, "q", batch)
	write(j.Store, run.CodeBatchRequeue, run.LevelInfo, "q", batch)
	write(j.Store, run.CodeRunCancel, run.LevelWarn, "q", "")
	write(j.Store, run.CodeRunResume, run.LevelInfo, "q", "")
	begin("q2")
	cancelled, err := j.AuditLog.Cancel(ctx, "r", ops.Audit{Action: "cancel", Subject: "r"})
	require.NoError(j, err)
	require.True(j, cancelled)
	steps(j.Store)
	for _, code := range []string{run.CodeRunStart, run.CodeBatchFail} { // another environment's stand in front of ours
		for range 30 {
			write(j.OtherStore, code, map[string]string{run.CodeRunStart: run.LevelInfo, run.CodeBatchFail: run.LevelError}[code], "q", batch)
		}
	}
	steps(j.OtherStore)

	ofQ := []string{
		"RUN_RESUME INFO q ", "RUN_CANCEL WARN q ", "BATCH_REQUEUE INFO q " + batch, "BATCH_FAIL ERROR q " + batch,
		"BATCH_RELEASED WARN q " + batch, "RUN_START INFO q ",
	}
	notable := slices.Concat([]string{"cancel  r ", "RUN_START INFO q2 "}, ofQ[:5], []string{"reprocess  r ", ofQ[5], "pause   "})
	for _, limit := range []int{1, 3, len(notable), 100} {
		require.Equal(j, notable[:min(limit, len(notable))], j.noted(ops.AuditQuery{Limit: limit}))
	}
	require.Empty(j, j.noted(ops.AuditQuery{}), "no more than asked for")
	require.Len(j, j.noted(ops.AuditQuery{All: true, Limit: 1000}), 180+len(notable))
	require.Equal(j, "BATCH_DONE INFO q "+batch, j.noted(ops.AuditQuery{All: true, Limit: 1})[0])

	require.Equal(j, ofQ, j.noted(ops.AuditQuery{Run: "q", Limit: 100}))
	require.Equal(j, ofQ[:2], j.noted(ops.AuditQuery{Run: "q", Limit: 2}))
	require.Len(j, j.noted(ops.AuditQuery{Run: "q", All: true, Limit: 1000}), 180+len(ofQ))
	require.Equal(j, []string{"cancel  r ", "reprocess  r "}, j.noted(ops.AuditQuery{Run: "r", Limit: 100}), "what one process does alone, too")
	require.Empty(j, j.noted(ops.AuditQuery{Run: "nobody", All: true, Limit: 100}))

	require.Equal(j, []string{"pause   "}, j.noted(ops.AuditQuery{Action: "pause", Limit: 100}))
	require.Len(j, j.noted(ops.AuditQuery{Action: run.CodeBatchDone, Limit: 1000}), 90, "a step that is asked for by name")
	require.Len(j, j.noted(ops.AuditQuery{Action: run.CodeBatchDone, Run: "q", Limit: 1000}), 90)
	require.Equal(j, []string{"RUN_START INFO q2 ", "RUN_START INFO q "}, j.noted(ops.AuditQuery{Action: run.CodeRunStart, Limit: 100}))
	require.Equal(j, ofQ[5:], j.noted(ops.AuditQuery{Action: run.CodeRunStart, Run: "q", Limit: 100}))
	for _, q := range []ops.AuditQuery{{Limit: 100}, {All: true, Limit: 1000}} { // the one rule, in SQL and in words
		found, err := j.AuditLog.Audits(ctx, q)
		require.NoError(j, err)
		var want []ops.Audit
		for _, a := range found {
			if a.Notable() {
				want = append(want, a)
			}
		}
		require.Len(j, want, len(notable))
	}
}

// Whatever the database's collation takes for one.
func auditActionSpelled(j *auditLogTest) {
	j.start("r")
	require.NoError(j, j.AuditLog.Write(j.Context(), ops.Audit{Action: "pause", By: "Ann", Why: "x"}))
	for action, found := range map[string]int{"pause": 1, "PAUSE": 0, "Pause": 0, "pausé": 0, "reprocess": 1, "REPROCESS": 0} {
		require.Len(j, j.noted(ops.AuditQuery{Action: action, Limit: 10}), found, action)
	}
	for action, found := range map[string]int{"": 1, "reprocess": 1, "Reprocess": 0} {
		require.Len(j, j.noted(ops.AuditQuery{Action: action, Run: "r", Limit: 10}), found, "of a run: %q", action)
	}
}

// seen gives the runs that a store lists and the subjects of the entries that an audit log lists, newest first.
func seen(j *auditLogTest, of ops.AuditLog, store run.Store) (runs, subjects []string) {
	j.Helper()
	const most = 100
	audits, err := of.Audits(j.Context(), ops.AuditQuery{All: true, Limit: most})
	require.NoError(j, err)
	for _, a := range audits {
		subjects = append(subjects, a.Subject)
	}
	listed, err := store.ListRuns(j.Context(), most)
	require.NoError(j, err)
	for _, r := range listed {
		runs = append(runs, r.ID)
	}
	return runs, subjects
}

func auditEnvironments(j *auditLogTest) {
	ctx := j.Context()
	entry := func(of string) run.Audit {
		return run.Audit{Code: run.CodeRunStart, Level: run.LevelInfo, By: "Ann", Why: "x", Run: of}
	}
	alone := func(id string) (ops.Run, ops.Audit) {
		return ops.Run{ID: id, Kind: "reprocess", Matched: 3, AtLeast: true}, ops.Audit{Action: "reprocess", Subject: id}
	}
	n := 0
	for range 3 { // behind those of the other one
		for _, of := range []struct {
			name, sysName string
			auditLog      ops.AuditLog
			store         run.Store
		}{{"ours", AuditLogSysName, j.AuditLog, j.Store}, {"theirs", AuditLogOtherSysName, j.Other, j.OtherStore}} {
			r, a := alone(fmt.Sprint(of.name, "-", n))
			require.NoError(j, of.auditLog.Start(ctx, r, a))
			queued := fmt.Sprint(of.name, "-queued-", n)
			require.NoError(j, of.store.StartRun(ctx, run.Run{ID: queued, SysName: of.sysName, Kind: run.Drain, Pattern: "two_phase"}, entry(queued)))
			require.NoError(j, of.store.Write(ctx, entry(fmt.Sprint(of.name, "-written-", n))))
			require.NoError(j, of.auditLog.Write(ctx, ops.Audit{Action: "pause", Subject: fmt.Sprint(of.name, "-paused-", n)}))
			n++
		}
	}
	runs, subjects := seen(j, j.AuditLog, j.Store)
	require.Equal(j, []string{"ours-queued-4", "ours-4", "ours-queued-2", "ours-2", "ours-queued-0", "ours-0"}, runs)
	require.Equal(j, []string{
		"ours-paused-4", "ours-written-4", "ours-queued-4", "ours-4", "ours-paused-2", "ours-written-2", "ours-queued-2", "ours-2",
		"ours-paused-0", "ours-written-0", "ours-queued-0", "ours-0",
	}, subjects)
	runs, subjects = seen(j, j.Other, j.OtherStore)
	require.Equal(j, []string{"theirs-queued-5", "theirs-5", "theirs-queued-3", "theirs-3", "theirs-queued-1", "theirs-1"}, runs)
	require.Len(j, subjects, 12)
	require.NotContains(j, strings.Join(subjects, " "), "ours")

	latest, err := j.Store.ListRuns(ctx, 1)
	require.NoError(j, err)
	require.Equal(j, "ours-queued-4", latest[0].ID, "no more than asked for, and none of theirs counts")

	r, there, err := j.Store.Run(ctx, "ours-0")
	require.NoError(j, err)
	require.True(j, there)
	require.Equal(j, []any{AuditLogSysName, "", 3, true, map[string]int{}}, []any{r.SysName, r.Pattern, r.Matched, r.AtLeast, r.Counts})
	require.NoError(j, j.AuditLog.End(ctx, "ours-0", ops.Stopped, map[string]int{"applied": 2}))
	r, _, err = j.Store.Run(ctx, "ours-0")
	require.NoError(j, err)
	require.Equal(j, []any{run.RunStopped, map[string]int{"applied": 2}}, []any{r.Status, r.Counts}, "the run store has its end")
}

func auditForeign(j *auditLogTest) {
	j.start("r")
	require.NoError(j, j.AuditLog.Write(j.Context(), ops.Audit{Action: "pause", Subject: "r"}))
	before := j.only()
	_, err := j.Other.Progress(j.Context(), "r", map[string]int{"done": 1})
	j.refused("no_run", err)
	running, err := j.Other.Cancel(j.Context(), "r", ops.Audit{Action: "cancel", Subject: "r"})
	require.NoError(j, err)
	require.False(j, running)
	require.NoError(j, j.Other.End(j.Context(), "r", ops.Completed, map[string]int{"done": 1}))
	require.Equal(j, before, j.only())
	require.Equal(j, []string{"pause r", "reprocess r"}, j.actions())
	theirs, err := j.Other.Audits(j.Context(), ops.AuditQuery{Limit: 10})
	require.NoError(j, err)
	require.Empty(j, theirs)
	j.refused("run_exists", j.Other.Start(j.Context(), ops.Run{ID: "r"}, ops.Audit{Action: "reprocess"}))
}

func auditParallel(j *auditLogTest) {
	const steps = 5
	for _, err := range together(func(n int) error {
		id := fmt.Sprint("r", n)
		if err := j.AuditLog.Start(j.Context(), ops.Run{ID: id}, ops.Audit{Action: "reprocess", Subject: id}); err != nil {
			return err
		}
		for i := range steps {
			if _, err := j.AuditLog.Progress(j.Context(), id, map[string]int{id: i}); err != nil {
				return err
			}
		}
		return j.AuditLog.End(j.Context(), id, ops.Completed, map[string]int{id: steps})
	}) {
		require.NoError(j, err)
	}
	runs := j.runs(100)
	require.Len(j, runs, 8)
	for _, r := range runs {
		require.Equal(j, []any{ops.Completed, map[string]int{r.ID: steps}}, []any{r.Status, r.Counts})
	}
	require.Len(j, j.audits(100), 8)
}

func auditMissing(j *auditLogTest) {
	if j.HideRuns == nil || j.HideAudits == nil {
		j.Skip("not shown here: there are no tables")
	}
	ctx := j.Context()
	j.start("r")
	calls := map[string]func() error{
		"start":    func() error { return j.AuditLog.Start(ctx, ops.Run{ID: "s"}, ops.Audit{}) },
		"progress": func() error { _, err := j.AuditLog.Progress(ctx, "r", nil); return err },
		"end":      func() error { return j.AuditLog.End(ctx, "r", ops.Completed, nil) },
		"cancel":   func() error { _, err := j.AuditLog.Cancel(ctx, "r", ops.Audit{}); return err },
	}
	restore := j.HideRuns(j)
	for name, call := range calls {
		err := call()
		require.Equal(j, fault.Infrastructure, fault.KindOf(err), "%s: %v", name, err)
	}
	restore()
	restore = j.HideAudits(j)
	for name, call := range map[string]func() error{
		"write":  func() error { return j.AuditLog.Write(ctx, ops.Audit{}) },
		"audits": func() error { _, err := j.AuditLog.Audits(ctx, ops.AuditQuery{Limit: 1}); return err },
	} {
		err := call()
		require.Equal(j, fault.Infrastructure, fault.KindOf(err), "%s: %v", name, err)
	}
	restore()
	require.Equal(j, []string{"r running false"}, j.short())
	require.Equal(j, []string{"reprocess r"}, j.actions())
}

func auditCancelled(j *auditLogTest) {
	j.start("r")
	ctx, cancel := context.WithCancel(j.Context())
	cancel()
	for name, call := range map[string]func() error{
		"write":    func() error { return j.AuditLog.Write(ctx, ops.Audit{}) },
		"start":    func() error { return j.AuditLog.Start(ctx, ops.Run{ID: "s"}, ops.Audit{}) },
		"progress": func() error { _, err := j.AuditLog.Progress(ctx, "r", map[string]int{"done": 1}); return err },
		"end":      func() error { return j.AuditLog.End(ctx, "r", ops.Completed, nil) },
		"cancel":   func() error { _, err := j.AuditLog.Cancel(ctx, "r", ops.Audit{}); return err },
		"audits":   func() error { _, err := j.AuditLog.Audits(ctx, ops.AuditQuery{Limit: 1}); return err },
	} {
		err := call()
		require.Equal(j, fault.Infrastructure, fault.KindOf(err), "%s: %v", name, err)
		require.ErrorIs(j, err, context.Canceled, name)
	}
	r := j.only()
	require.Equal(j, []any{ops.Running, false, map[string]int{}}, []any{r.Status, r.Cancel, r.Counts})
	require.Len(j, j.audits(10), 1)
}
