package ops_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/writer"
)

func replace(text string, at time.Time) string {
	return strings.Replace(text, "%RETRY%", fmt.Sprint(at.Unix()), 1)
}

// note changes the control document.
func (w *world) note(f func(*writer.Control)) {
	w.t.Helper()
	c, etag, err := w.control.Load(w.t.Context())
	require.NoError(w.t, err)
	f(&c)
	_, err = w.control.Store(w.t.Context(), c, etag)
	require.NoError(w.t, err)
}

// openSince opens the gate in the past, with the next probe in the future.
func (w *world) openSince(kind fault.Kind, code string, ago, probe time.Duration) {
	w.note(func(c *writer.Control) {
		c.Gate = writer.GateState{Kind: kind, Code: code, Since: w.clock.Add(-ago), OpenUntil: w.clock.Add(probe), OpenedBy: "v1"}
	})
}

func (w *world) pausedSince(ago time.Duration) {
	w.note(func(c *writer.Control) {
		c.Gate = writer.GateState{Paused: true, Since: w.clock.Add(-ago), HeldBy: "kim", Reason: "maintenance"}
	})
}

func TestPauseAndResume(t *testing.T) {
	w := newWorld(t)
	change, err := w.ops.Pause(t.Context(), ops.GateRequest{By: "kim", Why: "index rebuild"})
	require.NoError(t, err)
	require.Equal(t, []any{ops.GateClosed, ops.GatePaused, true, ""}, []any{change.Was.State, change.Is.State, change.Audited, change.Note})
	w.put(result(1, "x", ""))
	raws, err := w.docs.ReadMany(t.Context(), []string{id(1)})
	require.NoError(t, err)
	_, err = w.commit.Run(t.Context(), writer.Batch{Documents: raws, Received: w.clock})
	require.True(t, writer.IsGate(err))

	change, err = w.ops.Resume(t.Context(), ops.GateRequest{By: "pat", Why: "it is built"})
	require.NoError(t, err)
	require.Equal(t, []any{ops.GatePaused, ops.GateClosed, true}, []any{change.Was.State, change.Is.State, change.Audited})
	audits := w.audits()
	require.Equal(t, []string{"resume", "pat", "it is built", "gate:web"}, []string{audits[0].Action, audits[0].By, audits[0].Why, audits[0].Subject})
	require.Equal(t, []string{"pause", "kim", "index rebuild"}, []string{audits[1].Action, audits[1].By, audits[1].Why})

	for _, r := range []ops.GateRequest{{By: "kim"}, {Why: "x"}} {
		_, err = w.ops.Pause(t.Context(), r)
		require.Equal(t, ops.Usage, refusal(err))
		_, err = w.ops.Resume(t.Context(), r)
		require.Equal(t, ops.Usage, refusal(err))
	}
	_, err = w.ops.Pause(t.Context(), ops.GateRequest{By: "kim", Why: "x", Force: true})
	require.Equal(t, ops.Usage, refusal(err))
	require.False(t, w.gate.Seen().State().Open())
}

func TestPauseNeedsNoAuditRow(t *testing.T) {
	w := newWorld(t)
	w.journal.fails = down()
	change, err := w.ops.Pause(t.Context(), ops.GateRequest{By: "kim", Why: "x"})
	require.NoError(t, err)
	require.Equal(t, ops.GatePaused, change.Is.State)
	require.False(t, change.Audited)
	require.Contains(t, change.Note, "no audit row was written: test: journal: infrastructure refused")

	w = newWorld(t)
	w.open(fault.Infrastructure, "refused")
	change, err = w.ops.Pause(t.Context(), ops.GateRequest{By: "kim", Why: "x"})
	require.NoError(t, err)
	require.False(t, change.Audited)
	require.Contains(t, change.Note, "gate_open")
	require.Zero(t, w.journal.calls, "SQL is known to be down: it is not asked")
}

func TestResumeNeedsItsAuditRow(t *testing.T) {
	request := ops.GateRequest{By: "kim", Why: "x"}
	for name, open := range map[string]func(*world){
		"a pause":  func(w *world) { w.pausedSince(time.Minute) },
		"systemic": func(w *world) { w.open(fault.Systemic, "2628") },
	} {
		w := newWorld(t)
		open(w)
		w.journal.fails = down()
		_, err := w.ops.Resume(t.Context(), request)
		require.ErrorContains(t, err, "nothing was done, because no audit row can be written", name)
		w.clock = w.clock.Add(6 * time.Second)
		require.True(t, w.gate.View(t.Context()).State().Open(), name)
		w.journal.fails = nil
		_, err = w.ops.Resume(t.Context(), request)
		require.NoError(t, err, name)
		require.False(t, w.gate.Seen().State().Open(), name)
	}
}

func TestResumeOfAnOutageIsForcedOrRefused(t *testing.T) {
	for _, kind := range []fault.Kind{fault.Infrastructure, fault.Throttled, fault.Quota} {
		w := newWorld(t)
		w.open(kind, "x1")
		w.clock = w.clock.Add(2 * time.Minute) // not even when a probe is due
		_, err := w.ops.Resume(t.Context(), ops.GateRequest{By: "kim", Why: "x"})
		require.Equal(t, "gate_open", fault.CodeOf(err))
		require.True(t, fault.IsDependency(err))
		require.ErrorContains(t, err, "With force")
		require.Zero(t, w.journal.calls)

		w.journal.fails = down()
		_, err = w.ops.Resume(t.Context(), ops.GateRequest{By: "kim", Why: "x", Force: true})
		require.Equal(t, "refused", fault.CodeOf(err))
		require.Equal(t, 1, w.journal.calls, "one attempt")
		require.True(t, w.gate.Seen().State().Open())
		w.journal.fails = nil
		change, err := w.ops.Resume(t.Context(), ops.GateRequest{By: "kim", Why: "x", Force: true})
		require.NoError(t, err)
		require.Equal(t, []any{ops.GateOpen, ops.GateClosed}, []any{change.Was.State, change.Is.State})
		require.Contains(t, string(w.audits()[0].Detail), `"force":true`)
	}
}

func TestMarkCommitted(t *testing.T) {
	request := func(line int64) ops.MarkRequest { return ops.MarkRequest{ID: id(line), By: "kim", Why: "typed it in"} }
	w := newWorld(t, 1)
	w.put(
		result(1, "x", `{"status":"failed","retry_count":5,"failed_at":"2025-12-18 09:00:00.000000-06:00","error":"e","final_error":"f","last_error":"l",
			"last_error_kind":"document","last_error_code":"2628","reprocess_count":2,"theirs":{"a":1},"attempts":[{"at":"x","kind":"document","error":"l"}]}`),
		result(2, "x", scheduled(start().Add(time.Hour))),
		result(3, "x", `{"status":"pending","failed_at":"2025-12-18 09:00:00.000000-06:00"}`),
		result(4, "x", `{"status":"pending"}`), result(5, "x", `{"status":"committed","outcome":"applied"}`),
		result(6, "x", `{"status":"processing"}`), documentOf("elsewhere", "dev", 7, "x", failed(1, fault.Document, "1")),
	)
	for line, from := range map[int64]invoice.Status{1: invoice.Failed, 2: invoice.RetryScheduled, 3: invoice.Pending} {
		res, err := w.ops.MarkCommitted(t.Context(), request(line))
		require.NoError(t, err)
		require.Equal(t, ops.Marked{ID: id(line), From: from}, res)
		s := w.state(line)
		require.Equal(t, []any{invoice.Committed, "manual", "2025-12-18 10:00:00.000000-06:00"}, []any{s.Status, s.Outcome, s.CommittedAt})
		require.Equal(t, []any{"", "", "", "", "", int64(0), false}, []any{s.FailedAt, s.Error, s.FinalError, s.LastError, s.LastErrorKind, s.RetryAfter, s.Postponed})
		require.JSONEq(t, `"kim"`, string(s.Extra["marked_by"]))
		require.JSONEq(t, `"typed it in"`, string(s.Extra["marked_why"]))
	}
	s := w.state(1)
	require.Equal(t, []any{5, 2, 1, `{"a":1}`}, []any{s.RetryCount, s.ReprocessCount, len(s.Attempts), string(s.Extra["theirs"])}, "the history stays, and what is not ours")
	require.Len(t, w.audits(), 3)
	require.Zero(t, w.sink.applies, "neither lines nor ledger")
	e, err := w.ops.Why(t.Context(), id(1))
	require.NoError(t, err)
	require.Equal(t, "committed by hand 10:00 by kim: typed it in", e.Summary)

	for name, c := range map[string]struct {
		r    ops.MarkRequest
		want ops.Refusal
	}{
		"never failed": {request(4), ops.Conflict}, "committed": {request(5), ops.Conflict}, "processing": {request(6), ops.Conflict},
		"elsewhere": {ops.MarkRequest{ID: "elsewhere", By: "b", Why: "w"}, ops.Conflict}, "nobody": {request(99), ops.NotFound},
		"twice": {request(1), ops.Conflict}, "no reason": {ops.MarkRequest{ID: id(1), By: "b"}, ops.Usage}, "no id": {ops.MarkRequest{By: "b", Why: "w"}, ops.Usage},
	} {
		_, err := w.ops.MarkCommitted(t.Context(), c.r)
		require.Equal(t, c.want, refusal(err), "%s: %v", name, err)
	}
	require.Len(t, w.audits(), 3)
}

func TestMarkCommittedIsAuditedFirst(t *testing.T) {
	w := newWorld(t)
	w.fill(1)
	w.journal.fails = down()
	_, err := w.ops.MarkCommitted(t.Context(), ops.MarkRequest{ID: id(1), By: "b", Why: "w"})
	require.ErrorContains(t, err, "no audit row can be written")
	require.Empty(t, w.docs.states)
}

func TestMarkCommittedLosesToWhoeverWasFaster(t *testing.T) {
	w := newWorld(t)
	w.fill(1)
	races := 0
	w.docs.before = func(string) error {
		if races++; races == 1 { // another error was noted meanwhile: still failed
			w.put(result(1, "ok", failed(2, fault.Document, "547")))
		}
		return nil
	}
	_, err := w.ops.MarkCommitted(t.Context(), ops.MarkRequest{ID: id(1), By: "b", Why: "w"})
	require.NoError(t, err)
	require.Len(t, w.audits(), 1, "audited once")

	w.put(result(1, "ok", failed(2, fault.Document, "547")))
	w.docs.before = func(string) error {
		w.put(result(1, "ok", `{"status":"committed","outcome":"applied"}`))
		return nil
	}
	_, err = w.ops.MarkCommitted(t.Context(), ops.MarkRequest{ID: id(1), By: "b", Why: "w"})
	require.Equal(t, ops.Conflict, refusal(err))
	require.Equal(t, "applied", w.state(1).Outcome)

	w.docs.before = func(string) error { return down() }
	w.put(result(1, "ok", failed(2, fault.Document, "547")))
	_, err = w.ops.MarkCommitted(t.Context(), ops.MarkRequest{ID: id(1), By: "b", Why: "w"})
	require.True(t, fault.IsDependency(err))
	var r *ops.RequestError
	require.False(t, errors.As(err, &r))
}

func TestCancelAndListsCheckWhatIsAsked(t *testing.T) {
	w := newWorld(t)
	for _, r := range []ops.CancelRequest{{By: "b", Why: "w"}, {Run: "a b", By: "b", Why: "w"}, {Run: "r", By: "b"}, {Run: "r", Why: "w"}} {
		_, err := w.ops.RunCancel(t.Context(), r)
		require.Equal(t, ops.Usage, refusal(err))
	}
	_, err := w.ops.RunCancel(t.Context(), ops.CancelRequest{Run: "r", By: "b", Why: "w"})
	require.Equal(t, ops.NotFound, refusal(err))
	require.Empty(t, w.audits())
	for _, limit := range []int{-1, 1001} {
		_, err := w.ops.RunList(t.Context(), limit)
		require.Equal(t, ops.Usage, refusal(err))
		_, err = w.ops.Audits(t.Context(), ops.AuditQuery{Limit: limit})
		require.Equal(t, ops.Usage, refusal(err))
	}
}

func TestBeforeSQLIsOpenThereAreQuestionsAndThePause(t *testing.T) {
	w := newWorld(t)
	w.fill(1)
	early := ops.New(ops.Ports{Documents: w.docs, Backlog: w.docs, Gate: w.gate}, ops.Options{SysName: "web", Now: func() time.Time { return w.clock }})
	_, err := early.Status(t.Context())
	require.NoError(t, err)
	_, err = early.Why(t.Context(), id(1))
	require.NoError(t, err)
	for name, act := range map[string]func() error{
		"reprocess": func() error { _, err := early.Reprocess(t.Context(), all()); return err },
		"resume":    func() error { _, err := early.Resume(t.Context(), ops.GateRequest{By: "b", Why: "w"}); return err },
		"mark": func() error {
			_, err := early.MarkCommitted(t.Context(), ops.MarkRequest{ID: id(1), By: "b", Why: "w"})
			return err
		},
		"runs": func() error { _, err := early.RunList(t.Context(), 0); return err },
		"cancel": func() error {
			_, err := early.RunCancel(t.Context(), ops.CancelRequest{Run: "r", By: "b", Why: "w"})
			return err
		},
	} {
		err := act()
		require.Equal(t, "starting", fault.CodeOf(err), "%s: %v", name, err)
	}
	require.Empty(t, w.docs.states)
	change, err := early.Pause(t.Context(), ops.GateRequest{By: "b", Why: "w"})
	require.NoError(t, err)
	require.Equal(t, []any{ops.GatePaused, false}, []any{change.Is.State, change.Audited})
}
