package ops_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/run"
	"sqlwriter/test/inmem"
)

func TestStatus(t *testing.T) {
	w := newWorld(t)
	w.put(
		result(1, "x", `{"status":"pending"}`), result(2, "x", `null`),
		result(3, "x", scheduled(start().Add(time.Hour))), result(4, "x", scheduled(start().Add(-time.Hour))),
		result(5, "x", failed(1, fault.Document, "547")), result(6, "x", failed(2, fault.Document, "547")),
		result(7, "x", failed(2, fault.Internal, "panic")),
		result(8, "x", `{"status":"processing"}`), result(9, "x", `{"status":"committed"}`),
		documentOf("elsewhere", "dev", 9, "x", `{"status":"pending"}`),
	)
	w.note(func(c *breaker.Control) {
		c.Feed, c.Poison, c.AppVersion = breaker.FeedLag{Seconds: 7, At: start()},
			breaker.PoisonCount{Hour: start(), Count: 3}, "v0"
		c.Missed = breaker.Missed{
			Documents: 26, Oldest: start().Add(-time.Hour), At: start(), Sample: "x", Code: invoice.CodeTooDeep,
		}
	})
	w.clock = start().Add(20 * time.Second)
	s := w.tick()
	require.Equal(t, map[invoice.Status]ops.Count{
		invoice.Pending: {Documents: 1}, invoice.RetryScheduled: {Documents: 2}, invoice.Processing: {Documents: 1},
		invoice.Failed: {Documents: 3},
	}, s.Counts.Depth)
	require.Equal(t, 1, s.Counts.Due)
	require.EqualValues(t, 30*60+20, s.Counts.Oldest.AgeSeconds,
		"since its first attempt, and not since its last change")
	var groups []string
	for _, g := range s.Counts.Groups {
		groups = append(groups, fmt.Sprint(g.Status, " ", g.Kind, " ", g.Code, " ", g.Documents.Documents))
	}
	require.Equal(t,
		[]string{"failed document 547 2", "retry_scheduled document 2628 2", "failed internal panic 1"}, groups)
	require.EqualValues(t, 7, s.Feed.LagSeconds)
	require.Equal(t, []any{"v0", "v1", breaker.Running}, []any{s.AppVersion, s.Version, s.Flow.State})
	require.Equal(t, "2025-12-18T10:00:20-06:00", s.At.Format(time.RFC3339))

	w.clock = w.clock.Add(time.Hour)
	w.open(fault.Quota, "9002")
	s = must(w.ops.Status(t.Context(), ops.StatusQuery{}))(t)
	require.Equal(t, []any{breaker.StoppedFlow, fault.Quota, "9002", "b", "2025-12-18T11:01:20-06:00"},
		[]any{s.Flow.State, s.Flow.Kind, s.Flow.Code, s.Flow.HeldBy, s.Flow.NextProbe.Format(time.RFC3339)})
	require.Zero(t, w.audit.calls, "the audit log is not read")
	require.Contains(t, s.RunsUnknown, "SQL is not asked while the flow is stopped")
	require.Zero(t, w.sink.applies)
}

func TestStatusReportsMassFailuresAndDocumentsPutOff(t *testing.T) {
	w := newWorld(t)
	for line := range int64(25) {
		w.put(result(1+line, "x", ""))
	}
	var ids []string
	for line := range int64(25) {
		ids = append(ids, id(1+line))
	}
	w.run(ids...)
	w.put(
		result(30, "x",
			`{"status":"retry_scheduled","retry_count":1,"retry_after":1766074800,"postponed":true,"last_error_kind":"document"}`),
		result(31, "x",
			`{"status":"retry_scheduled","retry_count":0,"retry_after":1766074800,"last_error_kind":"contention"}`))
	s := w.tick()
	require.Equal(t, breaker.Running, s.Flow.State)
	require.Contains(t, alarms(s)["mass_failure"], "25 documents began to fail with missing_detail_row")
	require.Equal(t, []int{1, 1}, []int{s.Counts.PutOff, s.Counts.Postponed})

	w.clock = w.clock.Add(2 * time.Hour)
	s = w.tick()
	require.NotContains(t, alarms(s), "mass_failure", "nothing new fails so any more")
}

// floodedBacklog has many failed documents and one pending one, in pages of 1,000.
type floodedBacklog struct{ documents int }

func (f floodedBacklog) Find(_ context.Context, q commit.Query, continuation string) (commit.Page, error) {
	if q.From != 0 { // all of them are old
		return commit.Page{}, nil
	}
	if q.Statuses[0] != invoice.Failed {
		return oneWaits(), nil
	}
	done, _ := strconv.Atoi(continuation) // none is 0
	rows := make([]commit.PendingDoc, min(1000, f.documents-done))
	for i := range rows {
		rows[i] = commit.PendingDoc{
			ID: fmt.Sprint(done + i), TS: 1, Status: invoice.Failed, Kind: "document", Code: "547",
		}
	}
	next := ""
	if done += len(rows); done < f.documents {
		next = strconv.Itoa(done)
	}
	return inmem.PendingPage(rows, next), nil
}

func oneWaits() commit.Page {
	return inmem.PendingPage([]commit.PendingDoc{{ID: "waits", TS: 1, Status: invoice.Pending}}, "")
}

func TestCountingStopsAtItsLimit(t *testing.T) {
	w := newWorld(t)
	for n, want := range map[int]ops.Count{5000: {Documents: 5000}, 5001: {Documents: 5000, AtLeast: true}} {
		w.backlog(floodedBacklog{documents: n})
		s := w.tick()
		require.Equal(t, want, s.Counts.Depth[invoice.Failed])
		require.Equal(t, ops.Count{Documents: 1}, s.Counts.Depth[invoice.Pending], "many failed ones do not hide it")
	}
}

// backlog replaces the container that is counted.
func (w *world) backlog(b commit.Finder) {
	w.ops = ops.New(ops.Ports{Documents: w.docs, Finder: b, Breaker: w.breaker, Counts: w.counts, Stores: w.stores},
		ops.Options{SysName: "web", Now: func() time.Time { return w.clock }})
}

// slowBacklog answers when its time is over.
type slowBacklog struct{}

func (slowBacklog) Find(ctx context.Context, q commit.Query, continuation string) (commit.Page, error) {
	if q.Statuses[0] != invoice.Failed && continuation == "" {
		page := oneWaits()
		page.Next = "more"
		return page, nil
	}
	<-ctx.Done()
	return commit.Page{}, fault.Wrap(fault.Infrastructure, "test: waiting", "timeout", "no answer", ctx.Err())
}

func TestCountingStopsAtItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.backlog(slowBacklog{})
		begin := time.Now()
		s := w.tick()
		require.Equal(t, 20*time.Second, time.Since(begin))
		require.Equal(t, []ops.Count{{Documents: 1, AtLeast: true}, {AtLeast: true}},
			[]ops.Count{s.Counts.Depth[invoice.Pending], s.Counts.Depth[invoice.Failed]})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.True(t, fault.IsDependency(w.ops.SaveCounts(ctx)), "the caller's own time is over")
	})
}

// What many retries change every few minutes waits since its first failure. Oldest failures are many, and do not hide
// the latest. The command of a group takes no other group, so one without a kind or with an unknown code has none; nor
// has one that waits for a dependency.
func TestCountsSayWhatWaitsLongestAndWhatFailsNow(t *testing.T) {
	w := newWorld(t)
	w.clock = start().Add(-50 * time.Hour)
	for line := range int64(3) {
		w.put(
			result(100+line, "x",
				`{"status":"failed","failed_at":"2025-12-16 08:00:00.000000-06:00","last_error_kind":"document","last_error_code":"547","last_error_at":"2025-12-16 08:00:00.000000-06:00"}`))
	}
	w.clock = start().Add(-time.Minute)
	w.put(
		result(1, "x",
			`{"status":"retry_scheduled","retry_after":1766074800,"last_error_kind":"document","last_error_code":"2628","last_error_at":"2025-12-18 09:59:00.000000-06:00",
			"attempts":[{"at":"2025-12-18 07:00:00.000000-06:00","kind":"document","error":"x"}]}`),
		result(2, "x", `{"status":"pending"}`),
		result(3, "x", failed(1, fault.Document, "547")), result(4, "x", failed(59, fault.Document, "547")),
		result(5, "x", failed(5, fault.Internal, "")), result(6, "x", `{"status":"failed"}`),
		result(7, "x", failed(1, fault.Document, "it's; rm")),
		result(8, "x",
			`{"status":"retry_scheduled","retry_after":1766074800,"last_error_kind":"infrastructure","last_error_code":"refused","last_error_at":"2025-12-18 09:59:00.000000-06:00"}`),
	)
	w.clock = start().Add(2 * time.Minute) // 10:02, another hour of the clock
	s := w.tick()
	require.Equal(t,
		&ops.Oldest{
			ID: id(1), Status: invoice.RetryScheduled, Since: start().Add(-3 * time.Hour).In(s.At.Location()),
			AgeSeconds: 3*3600 + 120,
		}, s.Counts.Oldest)
	require.Equal(t, 2, s.Counts.PoisonLastHour, "at 2025-12-18T09:05:00-06:00 and 09:59")
	at := func(ago time.Duration) time.Time { return start().Add(-ago).In(s.At.Location()) }
	require.Equal(t, []ops.Group{
		{
			Status: invoice.Failed, Kind: "document", Code: "547", Documents: ops.Count{Documents: 5},
			First: at(50 * time.Hour), Last: at(time.Minute),
			Sample: id(4), Line: 4,
			Retry: `sqlwriterctl document retry --status failed --kind document --error-code 547 --why "..."`,
		},
		{
			Status: invoice.Failed, Documents: ops.Count{Documents: 1}, First: at(time.Minute), Last: at(time.Minute),
			Sample: id(6), Line: 6,
		},
		{
			Status: invoice.Failed, Kind: "document", Code: "it's; rm", Documents: ops.Count{Documents: 1},
			First: at(59 * time.Minute), Last: at(59 * time.Minute),
			Sample: id(7), Line: 7,
		},
		{
			Status: invoice.Failed, Kind: "internal", Documents: ops.Count{Documents: 1}, First: at(55 * time.Minute),
			Last:   at(55 * time.Minute),
			Sample: id(5), Line: 5,
		},
		{
			Status: invoice.RetryScheduled, Kind: "document", Code: "2628", Documents: ops.Count{Documents: 1},
			First: at(time.Minute), Last: at(time.Minute),
			Sample: id(1), Line: 1,
			Retry: `sqlwriterctl document retry --status retry_scheduled --kind document --error-code 2628 --why "..."`,
		},
		{
			Status: invoice.RetryScheduled, Kind: "infrastructure", Code: "refused", Documents: ops.Count{Documents: 1},
			First: at(time.Minute), Last: at(time.Minute),
			Sample: id(8), Line: 8,
		},
	}, s.Counts.Groups)
}

// Ten thousand failures of last week leave room for those of this hour.
func TestOldFailuresHideNoPoison(t *testing.T) {
	w := newWorld(t)
	w.backlog(windowedBacklog{now: func() time.Time { return w.clock }})
	require.Equal(t, 7, w.tick().Counts.PoisonLastHour)
}

// windowedBacklog has 10,000 failed documents a week ago, and seven now.
type windowedBacklog struct{ now func() time.Time }

func (b windowedBacklog) Find(_ context.Context, q commit.Query, _ string) (commit.Page, error) {
	var rows []commit.PendingDoc
	if q.Statuses[0] != invoice.Failed {
		return commit.Page{}, nil
	}
	for ago, n := range map[time.Duration]int{160 * time.Hour: 10_000, time.Minute: 7} {
		ts := b.now().Add(-ago).Unix()
		for range n {
			if ts >= q.From && ts < q.To {
				at := time.Unix(ts, 0).UTC().Format("2006-01-02 15:04:05.000000-07:00")
				rows = append(rows, commit.PendingDoc{ID: "x", TS: ts, Status: invoice.Failed, FailedAt: at})
			}
		}
	}
	return inmem.PendingPage(rows, ""), nil
}

// The timer counts while the flow is paused or stopped, and asks neither SQL nor the breaker.
func TestTheTimerCountsWhateverTheFlowDoes(t *testing.T) {
	w := newWorld(t)
	w.put(result(1, "x", ""))
	for _, stop := range []func(){
		func() { w.pausedSince(time.Minute) },
		func() { w.openSince(fault.Infrastructure, "refused", time.Minute, 0) },
	} {
		stop()
		w.clock = w.clock.Add(5 * time.Minute)
		require.NoError(t, w.ops.SaveCounts(t.Context()))
		c := must(w.counts.LoadCounts(t.Context()))(t)
		require.Equal(t, []any{w.clock, 1}, []any{c.At, c.Depth[invoice.Pending].Documents})
	}
	require.Zero(t, w.sink.heartbeats+w.audit.calls)
}

// Only the timer counts. A status gives its last counts with their age, also when they are old, and says so.
func TestTheTimerIsSilentAfterTwoTicks(t *testing.T) {
	w := newWorld(t)
	show := func() ops.Status {
		t.Helper()
		s := must(w.ops.Status(t.Context(), ops.StatusQuery{}))(t)
		return s
	}
	timer := func(s ops.Status) ops.DependencyView { return s.Dependencies[len(s.Dependencies)-1] }
	s := show()
	require.Equal(t, []any{ops.DepUnknown, "unknown: the timer has not counted yet", true},
		[]any{timer(s).State, s.CountsUnknown, s.Counts == nil})
	for _, every := range []time.Duration{5 * time.Minute, 15 * time.Minute, 20 * time.Second} {
		w.clock = w.clock.Add(10 * time.Hour) // such a pause makes no slow timer
		w.tick()
		w.clock = w.clock.Add(every)
		w.tick()
		at := w.clock
		w.put(result(1, "x", ""))
		w.clock = at.Add(2 * max(every, 5*time.Minute))
		s = show()
		require.Equal(t, []any{ops.DepOK, ""}, []any{timer(s).State, s.CountsUnknown}, "%s", every)
		w.clock = w.clock.Add(time.Second)
		s = show()
		require.Equal(t, ops.DepSilent, timer(s).State)
		require.Regexp(t, "^unknown: the timer is silent since ", s.CountsUnknown)
		require.True(t, s.Counts.At.Equal(at), "the last counts are given all the same")
	}
	require.NotZero(t, s.Counts.Depth[invoice.Pending].Documents)
}

// A queue that cannot be asked is unknown, and the rest is counted.
func TestAQueueThatCannotBeAskedIsUnknown(t *testing.T) {
	w := newWorld(t)
	for text, err := range map[string]error{
		"no right to ask": fault.New(fault.Infrastructure, "test: peek", "unauthorized", "not allowed"),
		"test: peek: infrastructure connlost: no connection": fault.New(fault.Infrastructure, "test: peek",
			"connlost", "no connection"),
	} {
		w.queue.Always(inmem.QueueFault{Err: err})
		require.Equal(t, []ops.QueueCount{{Queue: "runs", Unknown: text}, {Queue: "batches"}}, w.tick().Counts.Queues)
	}
	w.queue.Mend()
	require.Empty(t, w.queue.Send(t.Context(), []run.Outgoing{{ID: "a"}})[0])
	require.Equal(t, ops.Count{Documents: 1, Since: start()}, w.tick().Counts.Queues[0].Active)
}

// SQL that does not answer holds a status up for five seconds.
func TestAStatusWaitsShortlyForSQL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		o := ops.New(ops.Ports{
			Documents: w.docs, Finder: w.docs, Breaker: w.breaker, Counts: w.counts,
			Stores: func(ctx context.Context) (ops.Stores, error) {
				<-ctx.Done()
				return ops.Stores{}, fault.Wrap(fault.Infrastructure, "test: open", "timeout", "no answer", ctx.Err())
			},
		}, ops.Options{SysName: "web", Now: func() time.Time { return w.clock }})
		begin := time.Now()
		s := must(o.Status(t.Context(), ops.StatusQuery{}))(t)
		require.Equal(t, 5*time.Second, time.Since(begin))
		require.Equal(t, "test: open: infrastructure timeout: no answer", s.RunsUnknown)
	})
}

// Cosmos DB and SQL, of which neither answers, hold a status up for six seconds together.
func TestAStatusWaitsShortlyForBoth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent := func(ctx context.Context) error {
			<-ctx.Done()
			return fault.Wrap(fault.Infrastructure, "test: ask", "timeout", "no answer", ctx.Err())
		}
		flow := breaker.New(silentControl{ask: silent}, breaker.Options{})
		o := ops.New(ops.Ports{
			Breaker: flow, Counts: silentCounts{ask: silent},
			Stores: func(ctx context.Context) (ops.Stores, error) { return ops.Stores{}, silent(ctx) },
		}, ops.Options{SysName: "web"})
		begin := time.Now()
		s := must(o.Status(t.Context(), ops.StatusQuery{}))(t)
		require.Equal(t, 6*time.Second, time.Since(begin))
		require.Equal(t, []string{ops.DepFailing, "timeout"}, []string{s.Dependencies[0].State, s.Dependencies[0].Code})
		require.Equal(t, "test: ask: infrastructure timeout: no answer", s.RunsUnknown)
	})
}

// silentControl and silentCounts are in an account that answers nothing. The adapter bounds each read.
type (
	silentControl struct {
		breaker.ControlStore
		ask func(context.Context) error
	}
	silentCounts struct {
		ops.CountsStore
		ask func(context.Context) error
	}
)

func (c silentControl) Load(ctx context.Context) (breaker.Control, string, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return breaker.Control{}, "", c.ask(ctx)
}

func (c silentCounts) LoadCounts(ctx context.Context) (ops.Saved, error) {
	return ops.Saved{}, c.ask(ctx)
}

// An operator's words of any length leave room for the rest.
func TestLongWordsAreCutWhereTheyAreShown(t *testing.T) {
	r := newRuns(t)
	long := strings.Repeat("because ", 1250)
	r.put(result(1, "x", ""))
	r.tick()
	_, err := r.ops.Pause(by(t, "kim"), ops.FlowRequest{Why: long})
	require.NoError(t, err)
	s := must(r.ops.Status(t.Context(), ops.StatusQuery{}))(t)
	e := must(r.ops.Why(t.Context(), ops.WhyQuery{ID: id(1)}))(t)
	for _, text := range []string{s.Flow.Says, s.Flow.Reason, s.Attention[0].Says, e.Next, e.Flow} {
		require.Less(t, len(text), 400)
		require.Contains(t, text, "because because")
	}
	_, err = r.ops.Resume(by(t, "kim"), ops.ResumeFlow{Why: long})
	require.NoError(t, err)
	r.fill(1)
	r.start(ops.StartRequest{Kind: run.Replay, All: true, Why: long})
	list := must(r.ops.RunList(t.Context(), ops.RunQuery{Limit: 1}))(t)
	require.Less(t, len(list.Runs[0].Why), 400)
}
