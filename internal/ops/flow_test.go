package ops_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
	"sqlwriter/test/inmem"
)

func replace(text string, at time.Time) string {
	return strings.Replace(text, "%RETRY%", fmt.Sprint(at.Unix()), 1)
}

// note changes the control document.
func (w *world) note(f func(*breaker.Control)) {
	w.t.Helper()
	c, etag, err := w.control.Load(w.t.Context())
	require.NoError(w.t, err)
	f(&c)
	_, err = w.control.Store(w.t.Context(), c, etag)
	require.NoError(w.t, err)
}

// openSince opens the breaker in the past, with the next probe in the future.
func (w *world) openSince(kind fault.Kind, code string, ago, probe time.Duration) {
	w.set(breaker.State{
		Name: breaker.Open, Kind: kind, Code: code, Reason: "set by the test", Since: w.clock.Add(-ago),
		OpenUntil: w.clock.Add(probe), WaitSeconds: int(probe / time.Second),
	})
}

func (w *world) pausedSince(ago time.Duration) {
	w.set(breaker.State{Name: breaker.Paused, Since: w.clock.Add(-ago), HeldBy: "kim", Reason: "maintenance"})
}

func flowRequest(why string) ops.FlowRequest { return ops.FlowRequest{Why: why} }

func TestPauseAndResume(t *testing.T) {
	w := newWorld(t)
	change := must(w.ops.Pause(by(t, "kim"), flowRequest("index rebuild")))(t)
	require.Equal(t, []any{breaker.Running, breaker.PausedFlow, true},
		[]any{change.Was.State, change.Is.State, change.Audited})
	w.put(result(1, "x", ""))
	raws := must(w.docs.ReadMany(t.Context(), []string{id(1)}))(t)
	_, err := w.commit.Run(t.Context(), commit.Delivery{Documents: raws, Received: w.clock})
	require.True(t, breaker.IsRefusal(err))

	change = must(w.ops.Resume(by(t, "pat"), ops.ResumeFlow{Why: "it is built"}))(t)
	require.Equal(t, []any{breaker.PausedFlow, breaker.RampingUp, true},
		[]any{change.Was.State, change.Is.State, change.Audited})
	audits := w.audits()
	require.Len(t, audits, 2)
	require.Equal(t, []string{ops.FlowResumed, "pat", "it is built", "flow:web"},
		[]string{audits[0].Action, audits[0].By, audits[0].Why, audits[0].Subject})
	require.Equal(t, []string{ops.FlowPaused, "kim", "index rebuild"},
		[]string{audits[1].Action, audits[1].By, audits[1].Why})
	require.Empty(t, w.breaker.Unaudited(t.Context()))

	for _, r := range []ops.FlowRequest{{}, {Why: " "}} {
		_, err = w.ops.Pause(by(t, "kim"), r)
		require.Equal(t, ops.Usage, refusal(err))
		_, err = w.ops.Resume(by(t, "kim"), ops.ResumeFlow{Why: r.Why})
		require.Equal(t, ops.Usage, refusal(err))
	}
	require.Equal(t, breaker.RampingUp, w.flow().Flow())
}

// A process that starts with a full database can pause and resume. The audit log gets the entries once it accepts
// writes.
func TestAFreshProcessResumesBehindAFullDatabase(t *testing.T) {
	full := fault.New(fault.Quota, "test: audit log", "9002", "the log is full")
	for _, kind := range []fault.Kind{fault.Infrastructure, fault.Throttled, fault.Quota} {
		w := newWorld(t)
		w.open(kind, "9002")
		w.audit.fails, w.sink.fails = full, full
		fresh := w.newBreaker("fresh")
		o := ops.New(
			ops.Ports{Documents: w.docs, Finder: w.docs, Breaker: fresh, Stores: w.stores, Evidence: w.evidence},
			ops.Options{SysName: "web", Now: func() time.Time { return w.clock }})
		change, err := o.Resume(by(t, "kim"), ops.ResumeFlow{Why: "the disk is larger", Force: true})
		require.NoError(t, err)
		require.Equal(t, []any{breaker.StoppedFlow, breaker.RampingUp, false},
			[]any{change.Was.State, change.Is.State, change.Audited})
		change = must(o.Pause(by(t, "kim"), flowRequest("it is not")))(t)
		require.Equal(t, []any{breaker.PausedFlow, false}, []any{change.Is.State, change.Audited})
		require.Zero(t, w.sink.heartbeats, "neither asks SQL whether it is well")

		w.clock = w.clock.Add(6 * time.Second)
		require.Error(t, w.ops.TellTransitions(t.Context()), "still full")
		w.audit.fails, w.sink.fails = nil, nil
		require.NoError(t, w.ops.TellTransitions(t.Context()), "another instance tells it")
		audits := w.audits()
		require.Len(t, audits, 2)
		require.Equal(t, []string{ops.FlowPaused, "kim", "it is not"},
			[]string{audits[0].Action, audits[0].By, audits[0].Why})
		require.Equal(t, []string{ops.FlowResumed, "kim", "the disk is larger"},
			[]string{audits[1].Action, audits[1].By, audits[1].Why})
		require.Contains(t, string(audits[1].Detail), `"from":"open"`)
		require.NoError(t, w.ops.TellTransitions(t.Context()))
		require.Len(t, w.audits(), 2, "once")
	}
}

// The audit log is in the database that was away. It gets the outage and its end afterwards, with their times.
func TestAnOutageIsAuditedAfterIt(t *testing.T) {
	w := newWorld(t)
	w.sink.fails = down()
	require.Error(t, w.breaker.Tick(t.Context()))
	require.Equal(t, breaker.StoppedFlow, w.flow().Flow())
	require.True(t, breaker.IsRefusal(w.ops.TellTransitions(t.Context())))
	require.Zero(t, w.audit.calls, "SQL is known to be down: it is not asked")

	w.sink.fails = nil
	w.clock = w.clock.Add(10 * time.Minute)
	require.NoError(t, w.breaker.Tick(t.Context()))
	w.applyOther()
	w.applyOther()
	w.applyOther()
	require.NoError(t, w.ops.TellTransitions(t.Context()))
	audits := w.audits()
	require.Len(t, audits, 2)
	require.Equal(t, []string{ops.FlowRunning, "a", "ended: set by the test"},
		[]string{audits[0].Action, audits[0].By, audits[0].Why})
	require.Regexp(t, `"stopped_s":6\d\d`, string(audits[0].Detail))
	require.Equal(t, []string{ops.FlowStopped, "a", "set by the test"},
		[]string{audits[1].Action, audits[1].By, audits[1].Why})
	require.Contains(t, string(audits[1].Detail), `"code":"refused"`)
}

// An entry that was written is not written again, although the next one failed.
func TestAuditingTransitionsContinuesWhereItStopped(t *testing.T) {
	w := newWorld(t)
	w.audit.fails = down()
	for _, why := range []string{"first", "second"} {
		_, err := w.ops.Pause(by(t, "kim"), flowRequest(why))
		require.NoError(t, err)
	}
	w.audit.fails, w.audit.failsAfter = nil, 1
	require.Error(t, w.ops.TellTransitions(t.Context()))
	require.Len(t, w.breaker.Unaudited(t.Context()), 1)
	w.audit.failsAfter = 0
	require.NoError(t, w.ops.TellTransitions(t.Context()))
	audits := w.audits()
	require.Equal(t, []string{"second", "first"}, []string{audits[0].Why, audits[1].Why})
	require.Len(t, audits, 2)
}

func TestAShadowAuditsNothing(t *testing.T) {
	w := newWorld(t)
	shadow := ops.New(ops.Ports{Breaker: w.newBreaker("shadow"), Stores: w.stores},
		ops.Options{SysName: "web", ReadOnly: "MODE=shadow"})
	change := must(shadow.Pause(by(t, "kim"), flowRequest("x")))(t)
	require.False(t, change.Audited)
	require.Zero(t, w.audit.calls)
}

func TestMarkCommitted(t *testing.T) {
	request := func(line int64) ops.MarkRequest { return ops.MarkRequest{ID: id(line), Why: "typed it in"} }
	w := newWorld(t, 1)
	w.put(
		result(1, "x",
			`{"status":"failed","retry_count":5,"failed_at":"2025-12-18 09:00:00.000000-06:00","error":"e","final_error":"f","last_error":"l",
			"last_error_kind":"document","last_error_code":"2628","reprocess_count":2,"theirs":{"a":1},"attempts":[{"at":"x","kind":"document","error":"l"}]}`),
		result(2, "x", scheduled(start().Add(time.Hour))),
		result(3, "x", `{"status":"pending","failed_at":"2025-12-18 09:00:00.000000-06:00"}`),
		result(4, "x", `{"status":"pending"}`), result(5, "x", `{"status":"committed","outcome":"applied"}`),
		result(6, "x", `{"status":"processing"}`),
		documentOf("elsewhere", "dev", 7, "x", failed(1, fault.Document, "1")),
	)
	for line, from := range map[int64]invoice.Status{1: invoice.Failed, 2: invoice.RetryScheduled, 3: invoice.Pending} {
		res := must(w.ops.MarkCommitted(by(t, "kim"), request(line)))(t)
		require.Equal(t, ops.Marked{ID: id(line), From: from}, res)
		s := w.state(line)
		require.Equal(t, []any{invoice.Committed, invoice.OutcomeManual, "2025-12-18 10:00:00.000000-06:00"},
			[]any{s.Status, s.Outcome, s.CommittedAt})
		require.Equal(t, []any{"", "", "", "", "", int64(0), false},
			[]any{s.FailedAt, s.Error, s.FinalError, s.LastError, s.LastErrorKind, s.RetryAfter, s.Postponed})
	}
	s := w.state(1)
	require.Equal(t, []any{5, 2, 1, `{"a":1}`},
		[]any{s.RetryCount, s.ReprocessCount, len(s.Attempts), string(s.Extra["theirs"])},
		"the history stays, and what is not ours")
	require.Len(t, w.audits(), 3)
	require.Zero(t, w.sink.applies, "neither lines nor ledger")
	e := must(w.ops.Why(t.Context(), ops.WhyQuery{ID: id(1)}))(t)
	require.Equal(t, "committed by hand 2025-12-18T10:00:00-06:00 by kim: typed it in", e.Summary)
	require.Equal(t, &ops.Mark{By: "kim", Why: "typed it in", At: e.Marked.At}, e.Marked)
	require.Equal(t, "2025-12-18T10:00:00-06:00", e.Marked.At.Format(time.RFC3339))

	for name, c := range map[string]struct {
		r    ops.MarkRequest
		want ops.Refusal
	}{
		"never failed": {request(4), ops.Conflict}, "committed": {request(5), ops.Conflict},
		"processing": {request(6), ops.Conflict},
		"elsewhere":  {ops.MarkRequest{ID: "elsewhere", Why: "w"}, ops.Conflict}, "nobody": {request(99), ops.NotFound},
		"no reason": {ops.MarkRequest{ID: id(1)}, ops.Usage},
		"no id":     {ops.MarkRequest{Why: "w"}, ops.Usage},
	} {
		_, err := w.ops.MarkCommitted(by(t, "kim"), c.r)
		require.Equal(t, c.want, refusal(err), "%s: %v", name, err)
	}
	require.Len(t, w.audits(), 3)
}

// A restored database lost the entry: the document says who did it to nobody, until a person says it again.
func TestAMarkIsSaidAgainAfterARestore(t *testing.T) {
	w := newWorld(t, 1)
	w.put(result(1, "x", `{"status":"committed","outcome":"manual","committed_at":"2025-12-17 09:00:00.000000-06:00"}`))
	why := func() ops.Explanation {
		e := must(w.ops.Why(t.Context(), ops.WhyQuery{ID: id(1)}))(t)
		return e
	}
	require.Nil(t, why().Marked)
	require.Contains(t, why().Summary, "the audit log has no entry of it")
	res := must(w.ops.MarkCommitted(by(t, "kim"), ops.MarkRequest{ID: id(1), Why: "typed it in"}))(t)
	require.Equal(t, invoice.Committed, res.From)
	require.Equal(t, "kim", why().Marked.By)
	w.audit.fails = down()
	require.Equal(t,
		"it says: committed by hand 2025-12-18T10:00:00-06:00; the audit log, which says who did it, cannot be read now",
		why().Summary)
	require.Nil(t, why().Marked)
}

func TestMarkCommittedIsAuditedFirst(t *testing.T) {
	w := newWorld(t)
	w.fill(1)
	w.audit.fails = down()
	_, err := w.ops.MarkCommitted(by(t, "b"), ops.MarkRequest{ID: id(1), Why: "w"})
	require.ErrorContains(t, err, "no audit row can be written")
	require.Empty(t, w.docs.states)
}

func TestMarkCommittedLosesToAConcurrentWrite(t *testing.T) {
	w := newWorld(t)
	w.fill(1)
	races := 0
	w.docs.before = func(string) error {
		if races++; races == 1 { // another error was noted meanwhile: still failed
			w.put(result(1, "ok", failed(2, fault.Document, "547")))
		}
		return nil
	}
	_, err := w.ops.MarkCommitted(by(t, "b"), ops.MarkRequest{ID: id(1), Why: "w"})
	require.NoError(t, err)
	require.Len(t, w.audits(), 1, "audited once")

	w.put(result(1, "ok", failed(2, fault.Document, "547")))
	w.docs.before = func(string) error {
		w.put(result(1, "ok", `{"status":"committed","outcome":"applied"}`))
		return nil
	}
	_, err = w.ops.MarkCommitted(by(t, "b"), ops.MarkRequest{ID: id(1), Why: "w"})
	require.Equal(t, ops.Conflict, refusal(err))
	require.Equal(t, invoice.OutcomeApplied, w.state(1).Outcome)

	w.docs.before = func(string) error { return down() }
	w.put(result(1, "ok", failed(2, fault.Document, "547")))
	_, err = w.ops.MarkCommitted(by(t, "b"), ops.MarkRequest{ID: id(1), Why: "w"})
	require.True(t, fault.IsDependency(err))
	var r *ops.RequestError
	require.False(t, errors.As(err, &r))
}

func TestCancelAndListsCheckWhatIsAsked(t *testing.T) {
	w := newWorld(t)
	for _, r := range []ops.RunRequest{{Why: "w"}, {Run: "a b", Why: "w"}, {Run: "r"}} {
		_, err := w.ops.RunCancel(by(t, "kim"), r)
		require.Equal(t, ops.Usage, refusal(err))
	}
	_, err := w.ops.RunCancel(by(t, "b"), ops.RunRequest{Run: "r", Why: "w"})
	require.Equal(t, ops.NotFound, refusal(err))
	require.Empty(t, w.audits())
	for _, limit := range []int{-1, 1001} {
		_, err := w.ops.RunList(t.Context(), ops.RunQuery{Limit: limit})
		require.Equal(t, ops.Usage, refusal(err))
		_, err = w.ops.Audits(t.Context(), ops.AuditQuery{Limit: limit})
		require.Equal(t, ops.Usage, refusal(err))
	}
}

func TestTheStoresAreNotUsedWhileTheFlowIsStopped(t *testing.T) {
	for _, kind := range []fault.Kind{fault.Infrastructure, fault.Throttled, fault.Quota} {
		w := newWorld(t)
		w.fill(3)
		w.open(kind, "x1")
		for name, ask := range map[string]func() error{
			"start":  func() error { _, err := w.ops.StartRun(by(t, "kim"), replayAll()); return err },
			"runs":   func() error { _, err := w.ops.RunList(t.Context(), ops.RunQuery{Limit: 1}); return err },
			"cancel": func() error { return errOf(w.ops.RunCancel(by(t, "b"), ops.RunRequest{Run: "r", Why: "w"})) },
			"mark": func() error {
				_, err := w.ops.MarkCommitted(by(t, "b"), ops.MarkRequest{ID: id(1), Why: "w"})
				return err
			},
		} {
			err := ask()
			require.True(t, breaker.IsRefusal(err), "%s: %v", name, err)
			require.True(t, fault.IsDependency(err), name)
		}
		require.Zero(t, w.audit.calls)
		require.Zero(t, w.sink.heartbeats)
		require.Empty(t, w.docs.states)

		w.clock = w.clock.Add(2 * time.Minute)
		_, err := w.ops.RunList(t.Context(), ops.RunQuery{Limit: 1})
		require.NoError(t, err, "a request sends the due probe")
		require.Equal(t, 1, w.sink.heartbeats)
		require.False(t, w.flow().Stopped())
	}
}

// Questions about documents, a pause and a resume need no SQL. Other requests return the error of opening it.
func TestSomeRequestsNeedNoSQL(t *testing.T) {
	w := newWorld(t)
	w.fill(1)
	away := fault.New(fault.Infrastructure, "app: open sql", "refused", "nothing listens there")
	early := ops.New(ops.Ports{
		Documents: w.docs, Finder: w.docs, Breaker: w.breaker, Counts: w.counts, Evidence: w.evidence,
		Stores: func(context.Context) (ops.Stores, error) { return ops.Stores{}, away },
	}, ops.Options{SysName: "web", Now: func() time.Time { return w.clock }})
	s := must(early.Status(t.Context(), ops.StatusQuery{}))(t)
	require.Contains(t, s.RunsUnknown, "refused: nothing listens there")
	_, err := early.Why(t.Context(), ops.WhyQuery{ID: id(1)})
	require.NoError(t, err)
	for name, act := range map[string]func() error{
		"mark":   func() error { return errOf(early.MarkCommitted(by(t, "b"), ops.MarkRequest{ID: id(1), Why: "w"})) },
		"runs":   func() error { _, err := early.RunList(t.Context(), ops.RunQuery{}); return err },
		"cancel": func() error { return errOf(early.RunCancel(by(t, "b"), ops.RunRequest{Run: "r", Why: "w"})) },
	} {
		err := act()
		require.Equal(t, "refused", fault.CodeOf(err), "%s: %v", name, err)
	}
	require.Empty(t, w.docs.states)
	change := must(early.Pause(by(t, "kim"), flowRequest("x")))(t)
	require.Equal(t, []any{breaker.PausedFlow, false}, []any{change.Is.State, change.Audited})
	change = must(early.Resume(by(t, "kim"), ops.ResumeFlow{Why: "x"}))(t)
	require.Equal(t, []any{breaker.RampingUp, false}, []any{change.Is.State, change.Audited})
}

// Only a forced resume accepts a restored older database. It states the risk and audits both numbers.
func TestOnlyForceResumesOverADatabaseThatWentBack(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, w.breaker.Tick(t.Context()))
	known, _ := w.sink.Heartbeats("web")
	w.sink.SetHeartbeat("web", inmem.HeartbeatRow{DatabaseID: known.DatabaseID, Number: known.Number - 60_000})
	require.Error(t, w.breaker.Tick(t.Context()))

	_, err := w.ops.Resume(by(t, "kim"), ops.ResumeFlow{Why: "it looks well"})
	require.Equal(t, ops.Conflict, refusal(err))
	require.ErrorContains(t, err, "is missing here")
	require.ErrorContains(t, err, strconv.FormatInt(known.Number, 10))
	require.ErrorContains(t, err, strconv.FormatInt(known.Number-60_000, 10))
	require.Equal(t, breaker.StoppedFlow, w.flow().Flow())

	change := must(w.ops.Resume(by(t, "kim"), ops.ResumeFlow{Why: "we lost a minute", Force: true}))(t)
	require.Equal(t, []any{breaker.StoppedFlow, breaker.RampingUp, breaker.Risk, true},
		[]any{change.Was.State, change.Is.State, change.Risk, change.Audited})
	audits := w.audits()
	require.Equal(t, []string{ops.FlowForced, "kim", "we lost a minute"},
		[]string{audits[0].Action, audits[0].By, audits[0].Why})
	is, _ := w.sink.Heartbeats("web")
	for _, part := range []string{is.DatabaseID, known.DatabaseID, strconv.FormatInt(known.Number-60_000, 10)} {
		require.Contains(t, string(audits[0].Detail), part)
	}

	change = must(w.ops.Resume(by(t, "kim"), ops.ResumeFlow{Why: "again", Force: true}))(t)
	require.Empty(t, change.Risk, "there was nothing to accept")
	again, _ := w.sink.Heartbeats("web")
	require.Equal(t, is.DatabaseID, again.DatabaseID)
}
