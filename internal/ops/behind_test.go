package ops_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/run"
	"sqlwriter/test/inmem"
)

// commitAll commits what is pending, as the feed does.
func (r *runs) commitAll(docs ...string) {
	r.t.Helper()
	r.put(docs...)
	r.execute(r.start(ops.StartRequest{Kind: run.Drain, Why: "x"}))
	require.NoError(r.t, r.breaker.Tick(r.t.Context()))
}

// execute executes a run that was started, and returns its outcomes.
func (r *runs) execute(started ops.Started) map[invoice.Outcome]int {
	r.t.Helper()
	_, err := r.executor().Execute(r.t.Context(), started.Run)
	require.NoError(r.t, err)
	stats := must(r.store.Stats(r.t.Context(), started.Run))(r.t)
	return stats.Outcomes
}

// restored is a database that was replaced by its copy of an hour ago: line 1 has a newer result since, line 2 a first
// one, line 3 is unchanged. Since has what else happened since. It returns the time of the copy.
func (r *runs) restored(since ...func()) time.Time {
	r.t.Helper()
	r.sink.AddLines(1, 2, 3)
	r.commitAll(result(1, "old", ""), result(3, "c", ""))
	r.clock = r.clock.Add(24 * time.Hour)
	copied := r.clock
	at := func() { // the heartbeat of the sink goes by the machine's clock
		row, there := r.sink.Heartbeats("web")
		require.True(r.t, there)
		row.Number = r.clock.UnixMilli()
		r.sink.SetHeartbeat("web", row)
		r.note(func(c *breaker.Control) { c.Heartbeat.Number = row.Number })
		r.clock = r.clock.Add(6 * time.Second) // a loaded state is cached for five
	}
	at()
	backup := r.sink.Backup()
	r.clock = r.clock.Add(time.Hour)
	at()
	r.put(documentOf("2025-12-17 11:00:00.000000-06:00-0001-1", "web", 1, "newer", ""), result(2, "b", ""))
	r.run("2025-12-17 11:00:00.000000-06:00-0001-1", id(2))
	for _, happened := range since {
		happened()
	}
	at()
	r.clock = r.clock.Add(time.Minute)
	r.sink.Restore(backup)
	return copied
}

// behind is what a status says of an accepted database.
func (r *runs) behind() string {
	r.t.Helper()
	r.clock = r.clock.Add(6 * time.Second)
	s := must(r.ops.Status(r.t.Context(), ops.StatusQuery{}))(r.t)
	require.Empty(r.t, s.RunsUnknown)
	asks := false
	for _, a := range s.Attention {
		asks = asks || a.Code == "database_behind" && a.Says == s.Behind
	}
	require.Equal(r.t, s.Behind != "", asks, "it asks for attention: %v", s.Attention)
	return s.Behind
}

// next is the command that a status names, as a request.
func (r *runs) next() ops.StartRequest {
	r.t.Helper()
	m := regexp.MustCompile(
		"`sqlwriterctl run start reapply (?:(--all)|--since (\\S+)) --why \"\\.\\.\\.\"`$").FindStringSubmatch(r.behind())
	require.NotNil(r.t, m, r.behind())
	request := ops.StartRequest{Kind: run.Reapply, Why: "INC-4715", All: m[1] != ""}
	if m[2] != "" {
		at, ok := ops.Moment(m[2], r.clock, time.UTC)
		require.True(r.t, ok, m[2])
		request.Since = at
	}
	return request
}

// The flow was stopped by the database, paused before the restore, or runs because nobody wrote since. The person stops
// after each step, and the status names the next one until the run has ended. Each step may be repeated.
func TestARestoredDatabaseIsBroughtUpToDateStepByStep(t *testing.T) {
	for name, before := range map[string]func(r *runs){
		"stopped": func(r *runs) {
			require.True(t, breaker.Refused(r.breaker.Tick(t.Context())))
			require.Equal(t, breaker.StoppedFlow, r.flow().Flow())
			_, err := r.ops.Resume(by(t, "kim"), ops.ResumeFlow{Why: "it looks well"})
			require.Equal(t, ops.Conflict, refusal(err), "not without a word about it")
			require.Equal(t, breaker.StoppedFlow, r.flow().Flow())
		},
		"paused": func(r *runs) {
			_, err := r.ops.Pause(by(t, "kim"), flowRequest("a restore"))
			require.NoError(t, err)
		},
		"running": func(*runs) {},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRuns(t)
			copied := r.restored()
			require.Empty(t, r.behind())
			before(r)

			change := must(r.ops.Resume(by(t, "kim"), ops.ResumeFlow{Force: true, Why: "the disk broke"}))(t)
			require.Equal(t, []any{breaker.Risk, breaker.RampingUp, true},
				[]any{change.Risk, change.Is.State, change.Audited})
			require.Equal(t, change.Behind, r.behind(), "the command says it at once")
			require.Contains(t, change.Behind, "that kim accepted at ")
			for range 2 { // and again tomorrow
				require.False(t, r.next().Since.After(copied.Add(-10*time.Minute)), "some minutes before the copy")
				require.True(t, r.next().Since.After(copied.Add(-12*time.Minute)))
				r.clock = r.clock.Add(24 * time.Hour)
			}
			again, err := r.ops.Resume(by(t, "kim"), ops.ResumeFlow{Force: true, Why: "again"})
			require.NoError(t, err, "it may be repeated")
			require.Empty(t, again.Risk)
			require.Equal(t, change.Behind, again.Behind)

			request := r.next()
			for says, other := range map[string]func(*ops.StartRequest){
				"a later time":   func(s *ops.StartRequest) { s.Since = copied.Add(30 * time.Minute) },
				"some documents": func(s *ops.StartRequest) { s.Since, s.IDs = time.Time{}, []string{id(2)} },
				"a limit":        func(s *ops.StartRequest) { s.Limit = 1 },
				"another kind":   func(s *ops.StartRequest) { s.Kind = run.Reindex },
			} {
				some := request
				other(&some)
				r.execute(r.start(some))
				require.Contains(t, r.behind(), "write it again by", says)
			}
			cancelled := r.start(request)
			_, err = r.ops.RunCancel(by(t, "kim"), ops.RunRequest{Run: cancelled.Run, Why: "x"})
			require.NoError(t, err)
			r.execute(cancelled)
			require.Contains(t, r.behind(), "write it again by", "a cancelled run")

			started := r.start(request)
			require.Contains(t, r.behind(),
				"run "+started.Run+" writes it again, `sqlwriterctl run show "+started.Run+"`")
			states := r.snapshot()["states"]
			r.execute(started)
			require.Equal(t, []string{"newer", "b", "c"}, []string{r.makerOf(1), r.makerOf(2), r.makerOf(3)})
			require.Equal(t, states, r.snapshot()["states"], "a committed document is not patched")
			require.Empty(t, r.behind(), "it is done")
			require.Equal(t, map[invoice.Outcome]int{invoice.OutcomeUnchanged: 2},
				r.execute(r.start(request)), "it may be repeated")
			require.Empty(t, r.behind())
		})
	}
}

// Across a new recipe of hashes, a run that brings a restored database up to date writes each document that it lacks:
// whole where the ledger has none of its lines, and also one whose line it has as it was before the commit. A line that
// is there stays as a person corrected it.
func TestARestoredDatabaseKeepsWhatPeopleCorrected(t *testing.T) {
	r := newRuns(t)
	r.sink.AddLines(4, 5, 6, 7)
	r.sink.applied = func() { r.clock = r.clock.Add(3 * time.Second) } // the record makes a later snapshot
	r.commitAll(result(6, "before", ""))
	r.restored(func() {
		r.put(twoLines(id(4), 4, 5, "both"), result(6, "after", ""),
			result(7, tooLong(), failed(1, fault.Document, "2628")))
		r.run(id(4), id(6))
	})
	for _, line := range []int64{3, 6} { // an earlier build wrote them
		e, there := r.sink.Entry(line)
		require.True(t, there)
		e.HashVersion, e.Hash = e.HashVersion-1, invoice.Key("another recipe")
		r.sink.SetEntry(line, e)
	}
	r.meddle(3, invoice.Detail, "CLN_MFR_AI_NM", "CORRECTED")
	diff := must(r.ops.Diff(t.Context(), ops.DiffQuery{IDs: []string{id(3), id(6)}}))(t)
	require.Equal(t, []invoice.Outcome{invoice.OutcomeNotComparable, invoice.OutcomeApplied},
		[]invoice.Outcome{diff.Documents[0].Outcome, diff.Documents[1].Outcome})
	require.Contains(t, diff.Documents[0].Lines[0].Says, "only `reindex --not-comparable` writes it")
	require.Error(t, r.breaker.Tick(t.Context()))
	_, err := r.ops.Resume(by(t, "kim"), ops.ResumeFlow{Force: true, Why: "the disk broke"})
	require.NoError(t, err)
	r.clock = r.clock.Add(6 * time.Second)

	require.Equal(t, map[invoice.Outcome]int{
		invoice.OutcomeApplied: 4, invoice.OutcomeNotComparable: 1, invoice.OutcomeUnchanged: 1,
		invoice.OutcomeRetryScheduled: 1,
	}, r.execute(r.start(ops.StartRequest{Kind: run.Reapply, Why: "x", All: true})))
	require.Equal(t, []string{"newer", "b", "CORRECTED", "both", "both", "after"}, []string{
		r.makerOf(1), r.makerOf(2), r.makerOf(3), r.makerOf(4), r.makerOf(5), r.makerOf(6),
	})
	require.Empty(t, r.behind())
}

// Of another database nobody knows what it lacks: all documents are looked at. What was adopted is not written.
func TestANewDatabaseIsFilled(t *testing.T) {
	r := newRuns(t)
	r.sink.AddLines(1, 2)
	r.commitAll(result(1, "a", ""), result(2, "b", ""))
	r.clock = r.clock.Add(24 * time.Hour)
	other := inmem.NewSink()
	other.AddLines(1, 2)
	adopted, _ := r.sink.Entry(2)
	adopted.Outcome, adopted.DetailHash, adopted.TrackingHash = inmem.OutcomeAdopted, "", ""
	other.SetEntry(2, adopted)
	r.sink.Restore(other)
	require.Equal(t, breaker.CodeOtherDatabase, fault.CodeOf(r.breaker.Tick(t.Context())))

	r.unfit = fault.New(fault.Infrastructure, "test", "ledger_not_adopted", "run ledger adopt")
	all := r.snapshot()
	_, err := r.ops.Resume(by(t, "kim"), ops.ResumeFlow{Force: true, Why: "moved"})
	require.Equal(t, "ledger_not_adopted", fault.CodeOf(err))
	require.Equal(t, all, r.snapshot(), "nothing was changed")
	r.unfit = nil
	_, err = r.ops.Resume(by(t, "kim"), ops.ResumeFlow{Why: "x"})
	require.Equal(t, ops.Conflict, refusal(err))
	change := must(r.ops.Resume(by(t, "kim"), ops.ResumeFlow{Force: true, Why: "moved"}))(t)
	require.Contains(t, change.Behind, "may lack everything")
	some := r.next()
	require.True(t, some.All)
	some.All, some.Since = false, r.clock.Add(-365*24*time.Hour)
	r.execute(r.start(some))
	require.True(t, r.next().All, "a time is not enough")
	started := r.start(r.next())
	require.Equal(t, map[invoice.Outcome]int{invoice.OutcomeUnchanged: 2}, r.execute(started))
	require.Equal(t, []string{"a", ""}, []string{r.makerOf(1), r.makerOf(2)}, "what was adopted is not written")
	require.Empty(t, r.behind())
	for n := range 100 { // a page of later runs
		require.NoError(t, r.store.StartRun(t.Context(),
			run.Run{ID: fmt.Sprint("later-", n), SysName: "web", Kind: run.Drain},
			run.Audit{Action: run.CodeRunStart, By: "kim", Why: "x"}))
	}
	require.Empty(t, r.behind(), "nor later")
}

// The entry of a forced resume may wait for the audit log, and is not asked for for ever.
func TestWhatIsBehindIsFoundWhereItIs(t *testing.T) {
	r := newRuns(t)
	at := r.clock
	forced := breaker.Transition{At: at, By: "kim", To: breaker.HalfOpen, Forced: "x", Copied: at.Add(-time.Hour)}
	r.note(func(c *breaker.Control) { c.Transitions = append(c.Transitions, forced) })
	require.Contains(t, r.behind(), "lacks what was written since 2025-12-18T09:00:00-06:00")
	require.NoError(t, r.ops.TellTransitions(t.Context()))
	require.Contains(t, r.behind(), "lacks what was written since 2025-12-18T09:00:00-06:00", "from the audit log")
	_, err := r.ops.Pause(by(t, "kim"), flowRequest("x"))
	require.NoError(t, err)
	require.NotEmpty(t, r.behind(), "a pause says nothing of it")
	r.open(fault.Infrastructure, "refused")
	s := must(r.ops.Status(t.Context(), ops.StatusQuery{}))(t)
	require.Empty(t, s.Behind, "SQL is not asked")
	_, err = r.ops.Resume(by(t, "kim"), ops.ResumeFlow{Why: "x"})
	require.NoError(t, err)
	require.NotEmpty(t, r.behind())
	r.clock = at.Add(30*24*time.Hour + time.Minute)
	require.Empty(t, r.behind(), "runs of that time may be deleted")

	var filter run.Filter
	for text, want := range map[string]bool{
		`{}`: true, `{"from":"2026-01-01T00:00:00Z"}`: true, `{"code":"2628"}`: false, `{"statuses":["failed"]}`: false,
		`{"run":"r"}`: false, `no`: false,
	} {
		_, all := run.Run{Filter: json.RawMessage(text)}.TakesAllSince()
		require.Equal(t, want, all, text)
		if strings.HasPrefix(text, "{") {
			require.NoError(t, json.Unmarshal([]byte(text), &filter))
		}
	}
}

// A database that may lack everything was replaced by its copy: what the first one lacked is not forgotten.
func TestTheWidestNeedOfTwoAcceptedDatabasesIsSaid(t *testing.T) {
	r := newRuns(t)
	r.sink.AddLines(1)
	r.commitAll(result(1, "a", ""))
	at := r.clock
	r.note(func(c *breaker.Control) {
		c.Transitions = append(c.Transitions,
			breaker.Transition{At: at, By: "kim", To: breaker.HalfOpen, Forced: "another database"},
			breaker.Transition{
				At: at.Add(2 * time.Hour), By: "kim", To: breaker.HalfOpen, Forced: "a copy", Copied: at.Add(time.Hour),
			})
	})
	r.clock = at.Add(3 * time.Hour)
	require.True(t, r.next().All)
	require.NoError(t, r.ops.TellTransitions(t.Context()))
	require.True(t, r.next().All, "from the audit log")
	since := ops.StartRequest{Kind: run.Reapply, Why: "x", Since: at.Add(-time.Minute)}
	r.execute(r.start(since))
	require.True(t, r.next().All, "what was written before that time is still missing")
	r.execute(r.start(r.next()))
	require.Empty(t, r.behind())
}

// What was marked since the copy is tried again and fails anew, and its mark comes back with its status.
func TestAFailureSinceTheCopyIsTriedAgain(t *testing.T) {
	r := newRuns(t)
	r.sink.AddLines(1)
	r.put(result(1, tooLong(), failed(1, fault.Document, "2628")))
	require.Equal(t, map[invoice.Outcome]int{invoice.OutcomeRetryScheduled: 1},
		r.execute(r.start(ops.StartRequest{Kind: run.Reapply, Why: "x", Since: r.clock.Add(-time.Hour)})))
	require.Equal(t, []any{invoice.RetryScheduled, 1}, []any{r.state(1).Status, r.state(1).RetryCount})
}

func TestAShadowForcesNothing(t *testing.T) {
	r := newRuns(t)
	r.readOnly = "MODE=shadow"
	r.renew()
	_, err := r.ops.Resume(by(t, "kim"), ops.ResumeFlow{Force: true, Why: "x"})
	require.Equal(t, ops.Conflict, refusal(err))
	r.readOnly = ""
	r.renew()
	_, err = r.ops.Resume(by(t, "kim"), ops.ResumeFlow{Force: true})
	require.Equal(t, ops.Usage, refusal(err))
}
