package conformance

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/run"
)

// runLifeCases are those about runs.
func runLifeCases() []runCase {
	return []runCase{
		{"a run begins running, without an owner", runBegins},
		{"a run's id stands once, and another case is another id", runExists},
		{"what is no run or no JSON is refused, and nothing is kept", runRefused},
		{"an entry of the audit log comes back as it was written", runAudit},
		{"ids and words of any characters", runOddTexts},
		{"words that are too long are clipped", runTruncates},
		{"there is no such run and no such batch", runNothing},
		{"the latest runs come first", runLatest},
		{"what may be long comes to whoever needs it", runLong},
		{"a manager claims a run", runClaim},
		{"a run that is not to be claimed", runNoClaim},
		{"a manager takes over from one that has said nothing", runTakeOver},
		{"managers that die with a run are counted, until it is gone on with", runLostManagers},
		{"a run that is resumed begins the count of lost managers anew", runLostManagersResumed},
		{"a manager that speaks keeps its run and learns that it is to end", runBeat},
		{"a chunk adds batches, documents, watermark and the wait", runChunk},
		{"a chunk of a thousand documents, and which of them are known", runBigChunk},
		{"a chunk without a batch moves the watermark", runEmptyChunk},
		{"a chunk that comes too late adds nothing", runLateChunk},
		{"a chunk with a document that the run has adds nothing", runKnownChunk},
		{"a chunk that cannot be is refused", runImpossibleChunk},
		{"the end of the hand-off lets go of the run", runEndHandOff},
		{"a released run is claimed at once", runRelease},
		{"a late manager changes nothing", runLateManager},
		{"a run is completed when it is handed off and has no open batch", runComplete},
		{"a run that completed says whether something is left to do", runCompleteTruly},
		{"a run that is to end is cancelled when no batch of it is alive", runCancel},
		{"a run without a batch ends", runCompleteEmpty},
		{"only a running run is cancelled", runCancelNothing},
		{"a run whose manager is dead is failed", runFail},
		{"a run that is handed off or has a manager is not failed", runFailNothing},
		{"a failed run is resumed", runResumeFailed},
		{"a failed run is resumed with the batches that wait", runResumeWaiting},
		{"a cancelled run is resumed with the batches that it cut short", runResumeCancelled},
		{"a run of many batches is cancelled and resumed", runMany},
		{"the numbers of a run", runStats},
		{"a change without its entry is none", runWhole},
		{"a call whose context has ended is infrastructure and changes nothing", runEndedContext},
	}
}

func runBegins(r *runTest) {
	given := run.Run{
		ID: "r-1", SysName: runSys, Kind: run.Replay, Filter: json.RawMessage(`{"code":"2628"}`), Rate: 60, Limit: 7,
		Matched: 6, AtLeast: true, RequestedBy: "Ann", Why: "the column is wider now", Status: run.RunCompleted,
		Cancel: true, Error: "x",
		Watermark: "x", Documents: 1, Batches: 1, Owner: "x", Epoch: 9, LostManagers: 9, StartedAt: time.Unix(1, 0),
		HandedOffAt: time.Unix(1, 0), EndedAt: time.Unix(1, 0), HeartbeatAt: time.Unix(1, 0),
	}
	require.NoError(r, r.Store.StartRun(r.Context(), given, entry("RUN_START")))
	found := r.read("r-1")
	r.recent(found.StartedAt)
	require.JSONEq(r, string(given.Filter), string(found.Filter))
	require.Less(r, found.Age, time.Minute)
	require.Less(r, found.Silent, time.Minute)
	want := run.Run{
		ID: "r-1", SysName: runSys, Kind: run.Replay, Filter: found.Filter, Rate: 60, Limit: 7, Matched: 6,
		AtLeast: true, RequestedBy: "Ann", Why: "the column is wider now", Status: run.RunRunning,
		StartedAt: found.StartedAt, Age: found.Age, Silent: found.Silent,
	}
	require.Equal(r, want, found, "whatever the caller says of what is to come")
	require.Equal(r, []string{"RUN_START"}, r.codes())
	r.Age(r, time.Hour)
	require.InDelta(r, time.Hour, r.read("r-1").Age, float64(time.Minute))
}

func runLong(r *runTest) {
	filter := `{"code":"2628","ids":["a","b","c"]}`
	require.NoError(r, r.Store.StartRun(r.Context(), run.Run{
		ID: "r", SysName: runSys, Kind: run.Replay, Filter: json.RawMessage(filter),
	}, entry("RUN_START")))
	l := r.leaseRun("r")
	r.add(l, run.Queued, []string{"a"})
	whole := r.read("r")
	require.JSONEq(r, filter, string(whole.Filter))
	require.Equal(r, []any{"w", 3}, []any{whole.Watermark, whole.Named})

	c := r.claim(batchID("r", 1))
	require.Equal(r, run.Taken, c.Answer)
	unnamed := json.RawMessage(`{"code":"2628"}`)
	require.NoError(r,
		r.Store.StartRun(r.Context(), run.Run{ID: "s", SysName: runSys, Filter: unnamed}, entry("RUN_START")))
	latest, err := r.Store.ListRuns(r.Context(), "", 2)
	require.NoError(r, err)
	require.JSONEq(r, string(unnamed), string(latest[0].Filter))
	open, err := r.Store.OpenRuns(r.Context(), runSys, 1)
	require.NoError(r, err)
	for about, brief := range map[string]run.Run{
		"a claim of a batch": c.Run, "a list": latest[1], "the open ones": open[0],
	} {
		whole, brief := whole, brief
		whole.Filter, whole.Watermark = nil, ""
		for _, of := range []*run.Run{&whole, &brief} {
			of.Silent, of.Age = 0, 0
		}
		require.Equal(r, whole, brief, "%s has all but the filter and the watermark", about)
	}

	require.NoError(r, r.Store.ReleaseRun(r.Context(), l))
	again, ok, err := r.Store.ClaimRun(r.Context(), "r", l.Epoch, noEpoch, r.worker(RunManager), runStale)
	r.must(ok, err)
	require.JSONEq(r, filter, string(again.Filter), "a manager goes on with the search")
	require.Equal(r, "w", again.Watermark)
}

func runExists(r *runTest) {
	r.start("r")
	r.changesNothing("the id is taken", func() {
		r.refused(r.Store.StartRun(r.Context(), run.Run{ID: "r", SysName: "other"}, entry("RUN_START")), "run_exists")
	})
	r.start("R")
	require.True(r, r.claimsRun("R"))
	require.Zero(r, r.read("r").Epoch)
}

func runRefused(r *runTest) {
	for _, id := range []string{"", "a b", "\u00e9", "a\n", strings.Repeat("x", 65)} {
		r.refused(r.Store.StartRun(r.Context(), run.Run{ID: id, SysName: runSys}, entry("RUN_START")), "", id)
	}
	bad := entry("RUN_START")
	bad.Detail = json.RawMessage(`{`)
	r.refused(r.Store.StartRun(r.Context(), run.Run{ID: "r", SysName: runSys}, bad), "")
	r.refused(
		r.Store.StartRun(r.Context(), run.Run{ID: "r", SysName: runSys, Filter: json.RawMessage(`{`)},
			entry("RUN_START")), "")
	r.refused(r.Store.Write(r.Context(), bad), "")
	require.Empty(r, r.Audits(r))
	runs, err := r.Store.ListRuns(r.Context(), "", 10)
	require.NoError(r, err)
	require.Empty(r, runs)
}

func runAudit(r *runTest) {
	full := run.Audit{
		Action: "BATCH_DONE", Level: run.LevelWarn, By: "worker-00000001", Why: "all of it", Subject: "s",
		Run: "r", Batch: batchID("r", 1),
		Detail: json.RawMessage(`{"committed": 2, "ms": 1.5}`),
	}
	bare := run.Audit{Action: "BARE", Level: run.LevelError, By: "Ann", Why: "no more to say"}
	require.NoError(r, r.Store.Write(r.Context(), full))
	require.NoError(r, r.Store.Write(r.Context(), bare))
	found := r.Audits(r)
	require.Len(r, found, 2)
	require.JSONEq(r, string(full.Detail), string(found[0].Detail))
	found[0].Detail = full.Detail
	for i := range found {
		found[i].ID, found[i].At = 0, time.Time{}
	}
	require.Equal(r, []run.Audit{full, bare}, found)
}

func runOddTexts(r *runTest) {
	odd := "O'Neil \"x\" \\ %s @id; DROP TABLE run -- \u00e4\u6f22\U0001f600 \ttab\nline"
	const id = "!'\"@;--~%_[]"
	given := run.Run{ID: id, SysName: "w'b", Kind: "k'", RequestedBy: odd, Why: odd}
	require.NoError(r,
		r.Store.StartRun(r.Context(), given, run.Audit{Action: "c'", Level: run.LevelInfo, By: odd, Why: odd, Run: id}))
	l := r.leaseRun(id)
	docs := []string{odd, "%", "_", "A", "a", "\u00e9", "e\u0301", strings.Repeat("\u6f22", 255)}
	require.NoError(r, r.Store.AddChunk(r.Context(), l, run.Chunk{Batches: [][]string{docs}, First: 1, Watermark: odd}))
	found := r.read(id)
	require.Equal(r, []string{"w'b", "k'", odd, odd, odd},
		[]string{found.SysName, string(found.Kind), found.RequestedBy, found.Why, found.Watermark})
	known, err := r.Store.Known(r.Context(), id, append([]string{"E\u0301", ""}, docs...))
	require.NoError(r, err)
	for _, d := range docs {
		require.True(r, known[d], "%q", d)
	}
	require.False(r, known["E\u0301"])
	require.False(r, known[""])

	c := r.claim(run.BatchID("w'b", id, 1))
	require.Equal(r, run.Taken, c.Answer)
	require.Equal(r, docs, c.Open, "ids are compared byte by byte, and stay in their order")
	r.save(c.Lease, invoice.OutcomeSkipped, "a")
	require.NoError(r,
		r.Store.FailBatch(r.Context(), c.Lease, odd,
			run.Audit{Action: "c", Level: run.LevelInfo, By: odd, Why: odd, Batch: c.Batch.ID}))
	require.Equal(r, odd, r.batchOf(c.Batch.ID).Error)
	n := 0
	for _, it := range r.items(id) {
		if it.Outcome != "" {
			require.Equal(r, "a", it.Document)
			n++
		}
	}
	require.Equal(r, 1, n)
	require.Equal(r, odd, r.Audits(r)[0].Why)
}

func runTruncates(r *runTest) {
	long := strings.Repeat("\u00e4", 3000)
	clipped := func(text string, limit int, about string) {
		r.Helper()
		require.Equal(r, limit, utf8.RuneCountInString(text), about)
		require.True(r, strings.HasSuffix(text, "…"), about)
	}
	a := run.Audit{Action: "RUN_START", Level: run.LevelInfo, By: long, Why: long}
	require.NoError(r,
		r.Store.StartRun(r.Context(),
			run.Run{ID: "r", SysName: runSys, Kind: run.Kind(long), RequestedBy: long, Why: long}, a))
	clipped(string(r.read("r").Kind), 40, "kind")
	clipped(r.read("r").RequestedBy, 256, "requested_by")
	clipped(r.read("r").Why, 2000, "why")
	clipped(r.Audits(r)[0].By, 256, "by")
	clipped(r.Audits(r)[0].Why, 2000, "why of an entry")

	r.add(r.leaseRun("r"), run.PendingQueue, []string{"a"}, []string{"b"}, []string{"c"})
	h := r.leaseBatch(batchID("r", 1))
	details := []run.ErrorDetail{{Document: "a", Code: "2628", Message: long, Type: run.TypeMigration}}
	require.NoError(r,
		r.Store.SaveOutcomes(r.Context(), h,
			[]run.ItemOutcome{{Document: "a", Outcome: invoice.OutcomeFailed, Code: "2628"}}, details))
	_, found, _, err := r.Store.Batch(r.Context(), h.Batch)
	require.NoError(r, err)
	require.True(r, strings.HasSuffix(found[0].Message, "…"), "a detail's message")
	require.NoError(r, r.Store.FailBatch(r.Context(), h, long, entry("BATCH_FAIL")))
	clipped(r.batchOf(h.Batch).Error, 2000, "error")
	_, err = r.Store.DeadLetter(r.Context(), batchID("r", 2), run.FirstAttempt, long, runStale, entry("DEAD_LETTER"))
	require.NoError(r, err)
	clipped(r.batchOf(batchID("r", 2)).Error, 2000, "reason of a dead letter")
	_, _, err = r.Store.MarkUnsent(r.Context(), []run.Batch{r.batchOf(batchID("r", 3))}, long, true, givenUp)
	require.NoError(r, err)
	clipped(r.batchOf(batchID("r", 3)).LastQueueError, 2000, "last_queue_error")
	r.Age(r, runStale)
	_, err = r.Store.FailRun(r.Context(), "r", long, runStale, entry("RUN_FAIL"))
	require.NoError(r, err)
	clipped(r.read("r").Error, 2000, "error of a run")
}

func runNothing(r *runTest) {
	ctx, s := r.Context(), r.Store
	_, ok, err := s.Run(ctx, "r")
	require.NoError(r, err)
	require.False(r, ok)
	stats, err := s.Stats(ctx, "r")
	require.NoError(r, err)
	require.Empty(r, stats.Batches)
	require.Empty(r, stats.Outcomes)
	require.Empty(r, r.items("r"))
	require.Empty(r, r.batchesOf("r"))
	require.Empty(r, r.batchesOf(""))
	_, _, ok, err = s.Batch(ctx, batchID("r", 1))
	require.NoError(r, err)
	require.False(r, ok)
	require.Equal(r, run.Unknown, r.claim(batchID("r", 1)).Answer)
	known, err := s.Known(ctx, "r", []string{"a"})
	require.NoError(r, err)
	require.False(r, known["a"])
	for name, call := range map[string]func() (bool, error){
		"claim": func() (bool, error) {
			_, ok, err := s.ClaimRun(ctx, "r", 0, noEpoch, r.worker(RunManager), runStale)
			return ok, err
		},
		"cancel":   func() (bool, error) { return s.CancelRun(ctx, "r", entry("X")) },
		"fail":     func() (bool, error) { return s.FailRun(ctx, "r", "x", 0, entry("X")) },
		"resume":   func() (bool, error) { return s.ResumeRun(ctx, "r", entry("X")) },
		"complete": func() (bool, error) { return s.CompleteRun(ctx, "r", 0, ended(entry("X"))) },
		"requeue":  func() (bool, error) { return s.RequeueBatch(ctx, batchID("r", 1), entry("X")) },
		"dead letter": func() (bool, error) {
			return s.DeadLetter(ctx, batchID("r", 1), run.FirstAttempt, "x", 0, entry("X"))
		},
	} {
		ok, err := call()
		require.NoError(r, err, name)
		require.False(r, ok, name)
	}
	n, err := s.MarkQueued(ctx, run.RunLease{}, []run.Batch{{ID: batchID("r", 1)}})
	require.NoError(r, err)
	require.Zero(r, n)
	retry, failed, err := s.MarkUnsent(ctx, []run.Batch{{ID: batchID("r", 1)}}, "x", true, givenUp)
	require.NoError(r, err)
	require.Zero(r, retry+failed)
	n, err = s.MarkQueued(ctx, run.RunLease{}, nil)
	require.NoError(r, err)
	require.Zero(r, n)
	require.Empty(r, r.Audits(r))
	require.Empty(r, r.Workers(r))
}

// ended makes the entry of a run's end.
func ended(a run.Audit) func(run.RunStatus, run.Stats) run.Audit {
	return func(run.RunStatus, run.Stats) run.Audit { return a }
}

func runLatest(r *runTest) {
	const n = 5
	for i := range n {
		r.start(fmt.Sprint("r", i))
	}
	for _, limit := range []int{0, 1, 3, n, n + 1} {
		runs, err := r.Store.ListRuns(r.Context(), "", limit)
		require.NoError(r, err)
		ids, want := []string{}, []string{}
		for _, found := range runs {
			ids = append(ids, found.ID)
		}
		for i := range min(limit, n) {
			want = append(want, fmt.Sprint("r", n-1-i))
		}
		require.Equal(r, want, ids, "%d runs", limit)
	}
	for before, want := range map[string][]string{
		"r4": {"r3", "r2"}, "r2": {"r1", "r0"}, "r1": {"r0"}, "r0": nil, "nobody": nil,
	} {
		var ids []string
		runs, err := r.Store.ListRuns(r.Context(), before, 2)
		require.NoError(r, err)
		for _, found := range runs {
			ids = append(ids, found.ID)
		}
		require.Equal(r, want, ids, "before %s", before)
	}
}
