package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
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
	// HideAudits takes the table away until restore; nil where there is none.
	HideAudits func(t testing.TB) (restore func())
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
		{"any letters, and JSON of any length", auditOddTexts},
		{"words that are too long are cut, and seen to be", auditTruncates},
		{"what is no JSON is refused, and nothing is kept", auditRefuses},
		{"the latest come first, and no more than asked for", auditLatest},
		{"what people did is not behind the steps of workers", auditQueries},
		{"an action is asked for as it is spelled", auditActionSpelled},
		{"two environments in one database see only their own", auditEnvironments},
		{"who marked documents, and why: the last entry of each", auditMarks},
		{"eight entries at once are all kept", auditParallel},
		{"a missing table is infrastructure", auditMissing},
		{"a call whose context has ended is infrastructure and keeps nothing", auditCancelled},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(&auditLogTest{T: t, AuditLogHarness: open(t)}) })
	}
}

func (j *auditLogTest) audits(limit int) []run.Audit {
	j.Helper()
	audits, err := j.AuditLog.Audits(j.Context(), ops.AuditQuery{All: true, Limit: limit})
	require.NoError(j, err)
	return audits
}

// write adds an entry that must be kept.
func (j *auditLogTest) write(a run.Audit) {
	j.Helper()
	require.NoError(j, j.AuditLog.Write(j.Context(), a))
}

// now requires that a time is the clock's.
func (j *auditLogTest) now(at time.Time) {
	j.Helper()
	require.WithinDuration(j, j.Now(), at, 10*time.Minute, "by the database's clock")
	require.Equal(j, time.UTC, at.Location())
}

func auditEntry(j *auditLogTest) {
	require.Equal(j, []run.Audit{}, j.audits(10))
	a := run.Audit{
		At: time.Unix(1, 0), Action: "pause", By: "Ann", Why: "the index is being rebuilt", Subject: "the flow",
		Detail: json.RawMessage(`{"until": "2025-12-18T16:00:00Z", "n": 1.50}`),
	}
	j.write(a)
	found := j.audits(10)
	require.Len(j, found, 1)
	j.now(found[0].At)
	require.Positive(j, found[0].ID)
	a.ID, a.At = found[0].ID, found[0].At
	require.Equal(j, a, found[0])
}

func auditMarks(j *auditLogTest) {
	odd := "O'Neil \u00e4\u6f22\U0001f600"
	mark := func(log ops.AuditLog, document, by string) {
		j.Helper()
		require.NoError(j, log.Write(j.Context(),
			run.Audit{
				Action: run.CodeMarkCommitted, By: by, Why: "why " + by, Subject: document,
				Detail: json.RawMessage(`{"committed_at":"at ` + by + `"}`),
			}))
	}
	asked := []string{"a", "none", odd, "other action", "theirs"}
	for i := range 250 { // more than one statement takes
		asked = append(asked, fmt.Sprint("document ", i))
	}
	for document, by := range map[string]string{"A": "x", "a ": "x", "b": "x", odd: "bob", "document 249": "eve"} {
		mark(j.AuditLog, document, by)
	}
	mark(j.AuditLog, "a", "ann")
	mark(j.AuditLog, "a", "kim")
	mark(j.Other, "theirs", "x")
	j.write(run.Audit{Action: "retry", By: "x", Why: "x", Subject: "other action"})
	marks, err := j.AuditLog.Marks(j.Context(), asked)
	require.NoError(j, err)
	require.Len(j, marks, 4)
	for by, document := range map[string]string{"ann": "a", "kim": "a", "bob": odd, "eve": "document 249"} {
		a := marks[run.Mark{Document: document, CommittedAt: "at " + by}]
		require.Equal(j, []string{run.CodeMarkCommitted, document, by, "why " + by},
			[]string{a.Action, a.Subject, a.By, a.Why})
		j.now(a.At)
	}
	marks, err = j.AuditLog.Marks(j.Context(), nil)
	require.NoError(j, err)
	require.Empty(j, marks)
}

func auditOddTexts(j *auditLogTest) {
	odd := "O'Neil \"x\" \\ %s @id; DROP TABLE run -- \u00e4\u6f22\U0001f600 \ttab\nline "
	j.write(run.Audit{Action: "a'", By: odd, Why: odd, Subject: odd})
	a := j.audits(1)[0]
	require.Nil(j, a.Detail)
	require.Equal(j, []string{"a'", odd, odd, odd}, []string{a.Action, a.By, a.Why, a.Subject})

	text, err := json.Marshal(strings.Repeat(odd, 5000))
	require.NoError(j, err)
	j.write(run.Audit{Action: "long", Detail: text})
	require.Equal(j, json.RawMessage(text), j.audits(1)[0].Detail, "JSON is never cut")
}

func auditTruncates(j *auditLogTest) {
	long := strings.Repeat("\u6f22\U0001f600", 1500)
	j.write(run.Audit{Action: long, By: long, Why: long, Subject: long})
	a := j.audits(1)[0]
	require.Equal(j,
		[]string{
			run.Truncate(long, run.MaxKind), run.Truncate(long, run.MaxBy), run.Truncate(long, run.MaxWhy),
			run.Truncate(long, run.MaxSubject),
		},
		[]string{a.Action, a.By, a.Why, a.Subject})
	j.write(run.Audit{Action: "x", By: "a\xffb\x00c"})
	require.Equal(j, "a\ufffdb\ufffdc", j.audits(1)[0].By)
}

func auditRefuses(j *auditLogTest) {
	err := j.AuditLog.Write(j.Context(), run.Audit{Detail: json.RawMessage(`{"a":`)})
	require.Equal(j, []string{string(fault.Internal), fault.CodeBug},
		[]string{string(fault.KindOf(err)), fault.CodeOf(err)}, "%v", err)
	require.Empty(j, j.audits(10))
}

func auditLatest(j *auditLogTest) {
	const n = 12
	for i := range n {
		j.write(run.Audit{Action: "pause", Subject: fmt.Sprint("s", i)})
	}
	for _, limit := range []int{-1, 0, 1, 5, n, n + 1} {
		var subjects, want []string
		for _, a := range j.audits(limit) {
			subjects = append(subjects, a.Subject)
		}
		for i := range max(0, min(limit, n)) {
			want = append(want, fmt.Sprint("s", n-1-i))
		}
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
		require.NoError(j, j.Store.StartRun(ctx, run.Run{ID: id, SysName: AuditLogSysName, Kind: run.Drain},
			run.Audit{Action: run.CodeRunStart, Level: run.LevelInfo, By: "Ann", Why: "x", Run: id}))
	}
	write := func(of run.Store, code, level, id, batch string) {
		require.NoError(j,
			of.Write(ctx, run.Audit{Action: code, Level: level, By: "Ann", Why: "x", Run: id, Batch: batch}))
	}
	steps := func(of run.Store) {
		for range 30 {
			write(of, run.CodeBatchStart, run.LevelInfo, "q", batch)
			write(of, run.CodeBatchDone, run.LevelInfo, "q", batch)
		}
	}
	j.write(run.Audit{Action: "pause", By: "Ann", Why: "x", Subject: "flow"})
	begin("q")
	steps(j.Store)
	j.write(run.Audit{Action: "mark", By: "Ann", Why: "x", Subject: "d", Run: "r"})
	write(j.Store, run.CodeBatchReleased, run.LevelWarn, "q", batch)
	steps(j.Store)
	write(j.Store, run.CodeBatchFail, run.LevelError, "q", batch)
	write(j.Store, run.CodeBatchRequeue, run.LevelInfo, "q", batch)
	write(j.Store, run.CodeRunCancel, run.LevelWarn, "q", "")
	write(j.Store, run.CodeRunResume, run.LevelInfo, "q", "")
	begin("q2")
	j.write(run.Audit{Action: "resume", By: "Ann", Why: "x", Subject: "flow", Run: "r"})
	steps(j.Store)
	for _, code := range []string{run.CodeRunStart, run.CodeBatchFail} { // another environment's stand in front of ours
		for range 30 {
			write(j.OtherStore, code,
				map[string]string{run.CodeRunStart: run.LevelInfo, run.CodeBatchFail: run.LevelError}[code], "q", batch)
		}
	}
	steps(j.OtherStore)

	ofQ := []string{
		"RUN_RESUME INFO q ", "RUN_CANCEL WARN q ", "BATCH_REQUEUE INFO q " + batch, "BATCH_FAIL ERROR q " + batch,
		"BATCH_RELEASED WARN q " + batch, "RUN_START INFO q ",
	}
	notable := slices.Concat([]string{"resume  r ", "RUN_START INFO q2 "}, ofQ[:5],
		[]string{"mark  r ", ofQ[5], "pause   "})
	for _, limit := range []int{1, 3, len(notable), 100} {
		require.Equal(j, notable[:min(limit, len(notable))], j.noted(ops.AuditQuery{Limit: limit}))
	}
	require.Empty(j, j.noted(ops.AuditQuery{}), "no more than asked for")
	for _, q := range []ops.AuditQuery{
		{},
		{All: true},
		{Run: "q"},
		{Run: "q", All: true},
		{Action: run.CodeBatchDone},
		{Action: run.CodeBatchDone, Run: "q"},
	} {
		q.Limit = 1000
		all, err := j.AuditLog.Audits(ctx, q)
		require.NoError(j, err)
		require.Greater(j, len(all), 3)
		q.Limit, q.Before = 2, all[1].ID
		page, err := j.AuditLog.Audits(ctx, q)
		require.NoError(j, err)
		require.Equal(j, all[2:4], page, "%+v", q)
	}
	require.Len(j, j.noted(ops.AuditQuery{All: true, Limit: 1000}), 180+len(notable))
	require.Equal(j, "BATCH_DONE INFO q "+batch, j.noted(ops.AuditQuery{All: true, Limit: 1})[0])

	require.Equal(j, ofQ, j.noted(ops.AuditQuery{Run: "q", Limit: 100}))
	require.Equal(j, ofQ[:2], j.noted(ops.AuditQuery{Run: "q", Limit: 2}))
	require.Len(j, j.noted(ops.AuditQuery{Run: "q", All: true, Limit: 1000}), 180+len(ofQ))
	require.Equal(j, []string{"resume  r ", "mark  r "}, j.noted(ops.AuditQuery{Run: "r", Limit: 100}))
	require.Empty(j, j.noted(ops.AuditQuery{Run: "nobody", All: true, Limit: 100}))

	require.Equal(j, []string{"pause   "}, j.noted(ops.AuditQuery{Action: "pause", Limit: 100}))
	require.Len(j, j.noted(ops.AuditQuery{Action: run.CodeBatchDone, Limit: 1000}), 90,
		"a step that is asked for by name")
	require.Len(j, j.noted(ops.AuditQuery{Action: run.CodeBatchDone, Run: "q", Limit: 1000}), 90)
	require.Equal(j, []string{"RUN_START INFO q2 ", "RUN_START INFO q "},
		j.noted(ops.AuditQuery{Action: run.CodeRunStart, Limit: 100}))
	require.Equal(j, ofQ[5:], j.noted(ops.AuditQuery{Action: run.CodeRunStart, Run: "q", Limit: 100}))
	for _, q := range []ops.AuditQuery{{Limit: 100}, {All: true, Limit: 1000}} { // the one rule, in SQL and in words
		found, err := j.AuditLog.Audits(ctx, q)
		require.NoError(j, err)
		var want []run.Audit
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
	j.write(run.Audit{Action: "mark", By: "Ann", Why: "x", Run: "r"})
	j.write(run.Audit{Action: "pause", By: "Ann", Why: "x"})
	for action, found := range map[string]int{"pause": 1, "PAUSE": 0, "Pause": 0, "pausé": 0, "mark": 1, "MARK": 0} {
		require.Len(j, j.noted(ops.AuditQuery{Action: action, Limit: 10}), found, action)
	}
	for action, found := range map[string]int{"": 1, "mark": 1, "Mark": 0} {
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
	listed, err := store.ListRuns(j.Context(), "", most)
	require.NoError(j, err)
	for _, r := range listed {
		runs = append(runs, r.ID)
	}
	return runs, subjects
}

func auditEnvironments(j *auditLogTest) {
	ctx := j.Context()
	entry := func(of string) run.Audit {
		return run.Audit{Action: run.CodeRunStart, Level: run.LevelInfo, By: "Ann", Why: "x", Run: of}
	}
	n := 0
	for range 3 { // behind those of the other one
		for _, of := range []struct {
			name, sysName string
			auditLog      ops.AuditLog
			store         run.Store
		}{{"ours", AuditLogSysName, j.AuditLog, j.Store}, {"theirs", AuditLogOtherSysName, j.Other, j.OtherStore}} {
			id := fmt.Sprint(of.name, "-", n)
			require.NoError(j, of.store.StartRun(ctx, run.Run{ID: id, SysName: of.sysName, Kind: run.Drain}, entry(id)))
			require.NoError(j, of.store.Write(ctx, entry(fmt.Sprint(of.name, "-written-", n))))
			require.NoError(j,
				of.auditLog.Write(ctx, run.Audit{Action: "pause", Subject: fmt.Sprint(of.name, "-paused-", n)}))
			n++
		}
	}
	runs, subjects := seen(j, j.AuditLog, j.Store)
	require.Equal(j, []string{"ours-4", "ours-2", "ours-0"}, runs)
	require.Equal(j, []string{
		"ours-paused-4", "ours-written-4", "ours-4", "ours-paused-2", "ours-written-2", "ours-2", "ours-paused-0",
		"ours-written-0", "ours-0",
	}, subjects)
	runs, subjects = seen(j, j.Other, j.OtherStore)
	require.Equal(j, []string{"theirs-5", "theirs-3", "theirs-1"}, runs)
	require.Len(j, subjects, 9)
	require.NotContains(j, strings.Join(subjects, " "), "ours")

	latest, err := j.Store.ListRuns(ctx, "", 1)
	require.NoError(j, err)
	require.Equal(j, "ours-4", latest[0].ID, "no more than asked for, and none of theirs counts")
}

func auditParallel(j *auditLogTest) {
	_, errs := atOnce(8, func(n int) (bool, error) {
		return true, j.AuditLog.Write(j.Context(), run.Audit{Action: "pause", Subject: fmt.Sprint(n)})
	})
	subjects := map[string]bool{}
	for _, err := range errs {
		require.NoError(j, err)
	}
	for _, a := range j.audits(100) {
		subjects[a.Subject] = true
	}
	require.Len(j, subjects, 8)
}

func auditMissing(j *auditLogTest) {
	if j.HideAudits == nil {
		j.Skip("not shown here: there is no table")
	}
	j.write(run.Audit{Action: "pause"})
	restore := j.HideAudits(j)
	for name, call := range j.calls(j.Context()) {
		err := call()
		require.Equal(j, fault.Infrastructure, fault.KindOf(err), "%s: %v", name, err)
	}
	restore()
	require.Len(j, j.audits(10), 1)
}

// calls are all calls of the port.
func (j *auditLogTest) calls(ctx context.Context) map[string]func() error {
	return map[string]func() error{
		"marks":  func() error { _, err := j.AuditLog.Marks(ctx, []string{"a"}); return err },
		"write":  func() error { return j.AuditLog.Write(ctx, run.Audit{}) },
		"audits": func() error { _, err := j.AuditLog.Audits(ctx, ops.AuditQuery{Limit: 1}); return err },
	}
}

func auditCancelled(j *auditLogTest) {
	j.write(run.Audit{Action: "pause"})
	ctx := lateContext(j)
	for name, call := range j.calls(ctx) {
		err := call()
		require.Equal(j, fault.Infrastructure, fault.KindOf(err), "%s: %v", name, err)
		require.ErrorIs(j, err, context.Canceled, name)
	}
	require.Len(j, j.audits(10), 1)
}
