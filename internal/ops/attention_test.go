package ops_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/condition"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/run"
	"sqlwriter/test/inmem"
)

// hours lets two hours pass with a tick every five minutes, as in an app where all is well.
func (r *runs) hours() {
	r.t.Helper()
	for range 24 {
		r.clock = r.clock.Add(5 * time.Minute)
		r.tick()
	}
}

// known changes the control document, and lets the copy of this instance get old.
func (w *world) known(f func(*breaker.Control)) {
	w.t.Helper()
	w.note(f)
	w.clock = w.clock.Add(6 * time.Second)
}

// hears has an instance tell its status, and lets its copies become old.
func (w *world) hears(s breaker.Status) {
	w.t.Helper()
	s.Instance, s.At = "b", w.clock
	require.NoError(w.t, w.control.StoreStatus(w.t.Context(), s))
	w.clock = w.clock.Add(6 * time.Second)
}

// alarms are the lines of a status, by code.
func alarms(s ops.Status) map[string]string {
	all := map[string]string{}
	for _, a := range s.Attention {
		all[a.Code] += a.Says
	}
	return all
}

// unreachableControl is a control document in an account that does not answer.
type unreachableControl struct{ breaker.ControlStore }

func (unreachableControl) Load(context.Context) (breaker.Control, string, error) {
	return breaker.Control{}, "",
		fault.New(fault.Infrastructure, "test: load control", "refused", "nothing listens there")
}

// unreachableCounts are in such an account.
type unreachableCounts struct{ ops.CountsStore }

func (unreachableCounts) LoadCounts(context.Context) (ops.Saved, error) {
	return ops.Saved{}, fault.New(fault.Infrastructure, "test: load counts", "refused", "nothing listens there")
}

// firstSeen notes the first answers of a new deployment, of which one failed and recovered.
func firstSeen(at time.Time) breaker.Status {
	return breaker.Status{Dependencies: map[string]breaker.Dependency{
		"sql":    {State: breaker.DependencyOK, Since: at, SeenAt: at, By: "b"},
		"cosmos": {State: breaker.DependencyOK, Since: at.Add(5 * time.Minute), SeenAt: at, By: "b"},
	}}
}

// sqlFails says that SQL fails since a time, and was last asked at another.
func sqlFails(since, seen time.Time) breaker.Status {
	return breaker.Status{Dependencies: map[string]breaker.Dependency{"sql": {
		State: breaker.DependencyFailing, Kind: fault.Infrastructure, Code: "refused",
		Reason: "the server refuses the connection", Since: since, SeenAt: seen, By: "b",
	}}}
}

// planted are faults, and what the status and `why` of line 1, a pending document, say of each.
func planted() map[string]struct {
	plant func(r *runs)
	// attention are the lines that are demanded, by code; no other code may be there.
	attention map[string]string
	// flow and why are in the words of the flow and in what Why says; empty when nothing is demanded.
	flow, why string
} {
	return map[string]struct {
		plant     func(r *runs)
		attention map[string]string
		flow, why string
	}{
		"all is well": {plant: func(*runs) {}, flow: "running", why: "the change feed brings it"},
		"SQL fails for the first time": {
			plant: func(r *runs) {
				r.hears(sqlFails(r.clock, r.clock))
			},
			attention: map[string]string{
				"dependency_failing": "sql fails since 2025-12-18T12:00:00-06:00 (infrastructure refused): the server refuses the connection",
			},
			flow: "running; SQL fails since 2025-12-18T12:00:00-06:00 (infrastructure refused): the flow stops after five failures in a row",
			why:  "SQL fails since 2025-12-18T12:00:00-06:00 (infrastructure refused: the server refuses the connection): it is tried again when SQL answers",
		},
		"SQL off": {
			plant: func(r *runs) { r.sink.fails = down(); require.Error(r.t, r.breaker.Tick(r.t.Context())) },
			attention: map[string]string{
				"flow_stopped": "the flow is stopped since 2025-12-18T12:00:40-06:00 (infrastructure refused: set by the test)",
			},
			flow: "stopped since", why: "the flow is stopped since",
		},
		"Cosmos away": {
			plant: func(r *runs) {
				r.breaker = breaker.New(unreachableControl{}, breaker.Options{Now: func() time.Time { return r.clock }})
				r.renew()
			},
			attention: map[string]string{
				"dependency_failing": "cosmos fails since 2025-12-18T12:00:00-06:00 (infrastructure refused): nothing listens there",
			},
		},
		"Cosmos away for the counts": {
			plant: func(r *runs) { r.counts = unreachableCounts{r.counts}; r.renew() },
			attention: map[string]string{
				"dependency_failing": "cosmos fails since 2025-12-18T12:00:00-06:00 (infrastructure refused): nothing listens there",
			},
		},
		"the timer's first tick is to come": {
			plant: func(r *runs) {
				r.counts = &inmem.Counts{}
				r.renew()
				r.hears(firstSeen(r.clock))
				r.clock = r.clock.Add(10*time.Minute - 6*time.Second)
			},
		},
		"the timer is off since the beginning": {
			plant: func(r *runs) {
				r.counts = &inmem.Counts{}
				r.renew()
				r.hears(firstSeen(r.clock))
				r.clock = r.clock.Add(10*time.Minute - 5*time.Second)
			},
			attention: map[string]string{
				"timer_silent": "the timer has never counted: retries, postponed documents and what the feed missed wait for it",
			},
			why: "the timer has never counted",
		},
		"timer off": {
			plant: func(r *runs) { r.clock = r.clock.Add(10*time.Minute + time.Second) },
			attention: map[string]string{
				"timer_silent": "the timer is silent since 2025-12-18T12:00:00-06:00: retries, postponed documents and what the feed missed wait for it",
			},
			why: "the recovery timer takes it up at its next tick, but the timer is silent since 2025-12-18T12:00:00-06:00",
		},
		"stuck range": {
			plant: func(r *runs) {
				r.known(func(c *breaker.Control) {
					c.Missed = breaker.Missed{
						Documents: 26, Oldest: r.clock.Add(-time.Hour), At: r.clock, Sample: "x",
						Code: invoice.CodeTooDeep,
					}
				})
			},
			attention: map[string]string{
				"feed_missed": "the feed did not bring 26 documents that were due, the oldest of 2025-12-18T11:00:00-06:00, such as x (document.too_deep)",
			},
			why: "the change feed stands still: it did not bring 26 documents that were due; the recovery timer takes it up after 10 min",
		},
		"lag": {
			plant: func(r *runs) {
				r.known(func(c *breaker.Control) { c.Feed = breaker.FeedLag{Seconds: 400, At: r.clock} })
			},
			attention: map[string]string{"feed_lag": "the feed was 6 min behind at 2025-12-18T12:00:00-06:00"},
			why:       "(it was 6 min behind at 2025-12-18T12:00:00-06:00)",
		},
		"wrong sys_name": {
			plant: func(r *runs) {
				r.known(func(c *breaker.Control) {
					c.Skipped = []breaker.Skipped{
						{SysName: "WEB", Documents: 3, Since: r.clock.Add(-time.Hour), LastAt: r.clock, Sample: "a"},
						{
							SysName: "dev", Documents: 9, Since: r.clock.Add(-25 * time.Hour),
							LastAt: r.clock, Sample: "b",
						},
					}
				})
				r.put(documentOf(id(1), "WEB", 1, "x", ""))
			},
			attention: map[string]string{
				"skipped": `3 documents name another environment than "web": it leaves them alone since 2025-12-18T11:00:00-06:00, such as a`,
			},
			why: `it belongs to the environment "WEB", this app is "web"`,
		},
		"poison message": {
			plant: func(r *runs) {
				r.sink.AddLines(1)
				r.put(result(1, tooLong(), ""))
				r.poison(1)
				r.clock = r.clock.Add(-2 * time.Hour) // poison ends two hours after the last failure
				r.tick()
			},
			attention: map[string]string{"poison": "1 document failed for good in the last 60 minutes"},
			why:       "after 5 of 5 retries: document validation.too_long",
		},
		"missing row": {
			plant: func(r *runs) {
				var ids []string
				for line := range int64(25) {
					r.put(result(1+line, "x", ""))
					ids = append(ids, id(1+line))
				}
				r.run(ids...)
				r.clock = r.clock.Add(6 * time.Second)
				r.tick()
			},
			attention: map[string]string{
				"mass_failure": "25 documents began to fail with missing_detail_row since 2025-12-18T12:00:00-06:00; others go on",
			},
			why: "25 documents began to fail with missing_detail_row since 2025-12-18T12:00:00-06:00",
		},
		"too-long text": {
			plant: func(r *runs) {
				r.sink.AddLines(1)
				r.put(result(1, tooLong(), ""))
				r.run(id(1))
				r.tick()
			},
			why: "process_output.manufacturer_name",
		},
		"waits for a day": {
			plant: func(r *runs) {
				r.clock = r.clock.Add(4 * time.Hour)
				r.tick()
			},
			attention: map[string]string{"waits_long": "a document waits for 4 h: " + id(1)},
		},
		"dead letters": {
			plant: func(r *runs) {
				r.queue.Send(r.t.Context(), []run.Outgoing{{ID: "a"}, {ID: "b"}, {ID: "c"}})
				r.queue.DeadLetter(2)
				r.tick()
			},
			attention: map[string]string{"dead_letters": "queue runs has 2 dead letters"},
		},
		"paused": {
			plant: func(r *runs) {
				require.NoError(r.t, r.breaker.Pause(r.t.Context(), "kim", "maintenance"))
			},
			attention: map[string]string{
				"flow_paused": "the flow is paused by kim since 2025-12-18T12:00:00-06:00: maintenance",
			},
			flow: "paused by kim", why: "the flow is paused by kim",
		},
		"dead manager": {
			plant: func(r *runs) {
				r.fill(3)
				begun := r.start(replayAll()).Run
				_, ok, err := r.runStore.ClaimRun(r.t.Context(), begun, 0, -1, run.Worker{ID: "manager-1"}, time.Minute)
				require.NoError(r.t, err)
				require.True(r.t, ok)
				r.clock = r.clock.Add(95 * time.Second)
			},
			attention: map[string]string{"run_without_manager": "manager silent for 95 s, taken over at 120 s"},
		},
	}
}

func TestEachPlantedFaultIsNamed(t *testing.T) {
	for name, c := range planted() {
		t.Run(name, func(t *testing.T) {
			r := newRuns(t)
			r.hours()
			r.put(result(1, "x", ""))
			r.tick()
			c.plant(r)
			s := must(r.ops.Status(t.Context(), ops.StatusQuery{}))(t)
			require.Len(t, s.Attention, len(c.attention), "%v", s.Attention)
			found := alarms(s)
			for code, says := range c.attention {
				require.Contains(t, found[code], says)
				delete(found, code)
			}
			require.Empty(t, found, "nothing else is to look at")
			require.Contains(t, s.Flow.Says, c.flow)
			e := must(r.ops.Why(t.Context(), ops.WhyQuery{ID: id(1)}))(t)
			require.Contains(t, strings.Join([]string{e.Summary, e.Next, e.Problem}, "\n"), c.why)
		})
	}
}

// The runbook has a section for each thing that asks for attention.
func TestEachAlarmHasItsPage(t *testing.T) {
	runbook := must(os.ReadFile("../../docs/runbook.md"))(t)
	for _, c := range condition.Table() {
		require.Regexp(t, "(?m)^##+ "+c.Page+"$", string(runbook), c.Code)
	}
}

// A run that does not go on says why, in the list, in its page and in the status.
func TestWhyARunDoesNotGoOn(t *testing.T) {
	for says, c := range map[string]struct {
		state string
		plant func(r *runs, id string)
	}{
		"no manager has it for 10 s: a message brings one": {
			ops.RunDeferred, func(r *runs, _ string) { r.clock = r.clock.Add(10 * time.Second) },
		},
		"no manager has it for 10 min: the recovery timer sends for one at its next tick": {
			ops.RunSilent, func(r *runs, _ string) { r.clock = r.clock.Add(10 * time.Minute) },
		},
		"the flow is paused by kim since 2025-12-18T10:00:00-06:00: maintenance": {
			ops.RunPaused, func(r *runs, _ string) {
				require.NoError(r.t, r.breaker.Pause(r.t.Context(), "kim", "maintenance"))
			},
		},
		"waits for SQL: the flow is ramping up, at most 1 in one request; it was stopped since 2025-12-18T10:00:00-06:00 (quota 9002: x)": {ops.RunWaits, func(r *runs, _ string) {
			r.set(
				breaker.State{
					Name: breaker.HalfOpen, Limit: 1, Kind: fault.Quota, Code: "9002", Reason: "x", Since: start(),
				})
			r.clock = r.clock.Add(6 * time.Second)
		}},
		"cancelled: the recovery timer ends it at its next tick": {ops.RunCancelled, func(r *runs, id string) {
			r.cancel(id)
		}},
		"cancelled: 1 batch still under way": {ops.RunCancelled, func(r *runs, id string) {
			r.claim(id)
			r.begin(id, 1)
			r.cancel(id)
		}},
		"its manager works: 0 documents handed off": {
			ops.RunWorks, func(r *runs, id string) { r.claim(id) },
		},
		"manager silent for 95 s, taken over at 120 s": {
			ops.RunSilent, func(r *runs, id string) { r.claim(id); r.clock = r.clock.Add(95 * time.Second) },
		},
		"manager silent for 300 s: another takes it over with the next message": {
			ops.RunSilent, func(r *runs, id string) { r.claim(id); r.clock = r.clock.Add(5 * time.Minute) },
		},
		"deferred until 2025-12-18T10:05:00-06:00 by its rate, 2 documents handed off": {
			ops.RunDeferred, func(r *runs, id string) {
				lease := r.claim(id)
				require.NoError(r.t,
					r.runStore.AddChunk(r.t.Context(), lease,
						run.Chunk{First: 1, Batches: [][]string{{"a", "b"}}, Wait: 5 * time.Minute}))
				require.NoError(r.t, r.runStore.ReleaseRun(r.t.Context(), lease))
			},
		},
		"workers have 1 batch, 1 waits": {ops.RunWorks, func(r *runs, id string) {
			lease := r.claim(id)
			r.begin(id, 2)
			require.NoError(r.t, r.runStore.EndHandOff(r.t.Context(), lease, run.Audit{Action: run.CodeRunHandedOff}))
		}},
	} {
		t.Run(says, func(t *testing.T) {
			r := newRuns(t)
			r.fill(3)
			begun := r.start(replayAll()).Run
			r.clock = start()
			c.plant(r, begun)
			s := must(r.ops.Status(t.Context(), ops.StatusQuery{}))(t)
			require.Empty(t, s.RunsUnknown)
			require.Len(t, s.Runs, 1)
			require.Equal(t, []string{begun, c.state, says}, []string{s.Runs[0].ID, s.Runs[0].State, s.Runs[0].Says})
			shown := must(r.ops.RunShow(t.Context(), begun))(t)
			list := must(r.ops.RunList(t.Context(), ops.RunQuery{Limit: 1}))(t)
			require.Equal(t, []string{says, says}, []string{shown.Says, list.Runs[0].Says})
			require.Equal(t, []string{c.state, c.state}, []string{shown.State, list.Runs[0].State})
		})
	}
}

func (r *runs) cancel(id string) {
	r.t.Helper()
	_, err := r.ops.RunCancel(by(r.t, "kim"), ops.RunRequest{Run: id, Why: "wrong filter"})
	require.NoError(r.t, err)
}

// claim gives a run to a manager.
func (r *runs) claim(id string) run.RunLease {
	r.t.Helper()
	row, ok, err := r.runStore.ClaimRun(r.t.Context(), id, 0, -1, run.Worker{ID: "manager-1"}, time.Minute)
	require.NoError(r.t, err)
	require.True(r.t, ok)
	return run.RunLease{Run: id, Owner: "manager-1", Epoch: row.Epoch}
}

// begin adds n batches to a claimed run and gives the first to a worker.
func (r *runs) begin(id string, n int) {
	r.t.Helper()
	chunk := run.Chunk{First: 1}
	for b := range n {
		chunk.Batches = append(chunk.Batches, []string{fmt.Sprint("doc-", b)})
	}
	require.NoError(r.t, r.runStore.AddChunk(r.t.Context(), run.RunLease{Run: id, Owner: "manager-1", Epoch: 1}, chunk))
	_, err := r.runStore.ClaimBatch(r.t.Context(), run.BatchID("web", id, 1), run.Ticket{}, run.Worker{ID: "worker-1"},
		time.Minute, run.Audit{})
	require.NoError(r.t, err)
}

// Another mapping than the chosen one is told in the status, with both versions and the command for "on purpose".
func TestAnotherMappingThanTheChosenOneIsTold(t *testing.T) {
	r := newRuns(t)
	own := invoice.DefaultMapping().Version()
	for _, c := range []struct {
		chosen int
		told   bool
	}{{0, false}, {own, false}, {own + 1, true}} {
		r.mappings = []invoice.Recorded{{Version: c.chosen}, {Version: own}}[:min(c.chosen, 2)]
		s := r.tick()
		require.Equal(t, "mapping.json, version 7", s.Mapping)
		says, told := alarms(s)[condition.OtherMapping]
		require.Equal(t, c.told, told, c.chosen)
		if told {
			require.Contains(t, says, "the app's mapping is mapping.json, version 7, and the last")
			require.Contains(t, says, fmt.Sprintf("chose version %d", c.chosen))
			require.Contains(t, says, "`sqlwriterctl migrate up --new-mapping`")
			require.Contains(t, says, "not_comparable")
		}
	}
}
