package ops_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"sqlwriter/handlers"
	"sqlwriter/internal/app"
	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/condition"
	"sqlwriter/internal/events"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/reconcile"
	"sqlwriter/internal/run"
)

var update = flag.Bool("update", false, "rewrite testdata/lines.jsonl")

// tells is what a tick of the timer tells, without its other work.
func (r *runs) tells() {
	r.t.Helper()
	require.NoError(r.t, r.ops.TellAttention(r.t.Context(), events.For(r.t.Context(), zerolog.New(&r.log))))
}

// ticks are the parts of a tick; err is that of the recovery.
type ticks struct {
	*runs
	err error
}

func (t ticks) SaveCounts(ctx context.Context) error { return t.ops.SaveCounts(ctx) }
func (t ticks) Recover(context.Context, string) (commit.RecoveredDocuments, error) {
	return commit.RecoveredDocuments{}, t.err
}

func (t ticks) RecoverRuns(context.Context) (run.RecoveredRuns, error) {
	return run.RecoveredRuns{}, nil
}
func (t ticks) PurgeRows(context.Context) (int, error) { return 0, nil }

func (t ticks) CarryOnRuns(context.Context) (run.Carried, error) { return run.Carried{}, nil }

func (t ticks) Compare(context.Context) (int, error)  { return 0, nil }
func (t ticks) TellTransitions(context.Context) error { return nil }

// post posts a tick as the host does.
func (r *runs) post(function string, err error) {
	r.t.Helper()
	h := handlers.Mount([]handlers.Mounted{handlers.RecoverRetries(ticks{r, err})},
		handlers.Options{Log: zerolog.New(&r.log)})
	body := strings.NewReader(`{"Data":{"timer":{"IsPastDue":false}},"Metadata":{}}`)
	h.ServeHTTP(httptest.NewRecorder(),
		httptest.NewRequestWithContext(r.t.Context(), http.MethodPost, "http://127.0.0.1/"+function, body))
}

// process runs the handler's process with one setting until it ends.
func (r *runs) process(name, value string) {
	ctx, cancel := context.WithCancel(r.t.Context())
	cancel()
	app.Main(ctx, app.Options{Stdout: &r.log, Stderr: &r.log, Lookup: func(asked string) (string, bool) {
		if asked != name {
			return "", false
		}
		return value, true
	}})
}

// conditions make each condition, and give the time of its beginning if the line has one. The timer tells them
// afterwards.
func conditions() map[string]func(r *runs) time.Time {
	faults := planted()
	planted := func(name string, after time.Duration) func(r *runs) time.Time {
		return func(r *runs) time.Time {
			began := r.clock
			faults[name].plant(r)
			r.clock = r.clock.Add(after)
			return began
		}
	}
	return map[string]func(r *runs) time.Time{
		condition.DatabaseRefused: func(r *runs) time.Time {
			began := r.clock
			r.open(fault.Infrastructure, "database_went_back")
			return began
		},
		condition.DatabaseBehind: func(r *runs) time.Time {
			r.restored()
			require.Error(r.t, r.breaker.Tick(r.t.Context()))
			began := r.clock
			_, err := r.ops.Resume(by(r.t, "kim"), ops.ResumeFlow{Force: true, Why: "restored"})
			require.NoError(r.t, err)
			r.clock = r.clock.Add(6 * time.Second)
			return began
		},
		condition.FlowStopped: func(r *runs) time.Time {
			faults["SQL off"].plant(r)
			require.Contains(r.t, r.log.String(), `"condition":"flow_stopped","severity":"wake"`,
				"it is told before the next tick")
			return r.flow().Since
		},
		condition.SettingsInvalid: func(r *runs) time.Time {
			r.process("FUNCTIONS_CUSTOMHANDLER_PORT", "0")
			return time.Time{}
		},
		condition.DependencyFailing: func(r *runs) time.Time {
			began, now := r.clock, r.clock.Add(10*time.Minute)
			r.hears(sqlFails(began, now))
			r.clock = now
			return began
		},
		condition.TimerSilent: planted("timer off", 0),
		condition.FeedMissed: func(r *runs) time.Time {
			faults["stuck range"].plant(r)
			return r.clock.Add(-time.Hour - 6*time.Second)
		},
		condition.MassFailure: planted("missing row", 0),
		condition.SecondWriter: func(r *runs) time.Time {
			r.adoptedAt = r.clock.Add(-time.Hour)
			r.put(
				result(1, "x",
					`{"status":"committed","retry_count":0,"committed_at":"`+invoice.Stamp(r.clock, time.UTC)+`"}`))
			raw := must(r.docs.Read(r.t.Context(), id(1)))(r.t)
			_, err := r.commit.Run(r.t.Context(), commit.Delivery{Documents: []json.RawMessage{raw}, Received: r.clock})
			require.NoError(r.t, err)
			return time.Time{}
		},
		condition.OtherMapping: func(r *runs) time.Time {
			r.mappings = []invoice.Recorded{{Version: 8}}
			return time.Time{}
		},
		condition.ManualReview: func(r *runs) time.Time {
			r.sink.AddLines(1)
			r.put(result(1, tooLong(), ""))
			r.sink.marks = fault.New(fault.Document, "test: mark", "547", "set by the test")
			r.poison(1)
			return time.Time{}
		},
		condition.Mistake: func(r *runs) time.Time {
			r.post("Nothing", nil)
			return time.Time{}
		},
		condition.CutOff: func(r *runs) time.Time {
			r.known(func(c *breaker.Control) {
				c.Applied = []breaker.Applied{{Build: "v2", At: r.clock.Add(20 * time.Second)}}
			})
			r.sink.fails = down()
			require.Error(r.t, r.breaker.Tick(r.t.Context()))
			return time.Time{}
		},
		condition.FlowPaused: planted("paused", 24*time.Hour),
		condition.PoisonLimit: func(r *runs) time.Time {
			r.limited = true
			r.again()
			r.sink.AddLines(1)
			r.put(result(1, tooLong(), ""))
			for range 7 {
				r.run(id(1))
				r.clock = r.clock.Add(2 * time.Hour)
				r.applyOther()
			}
			return time.Time{}
		},
		condition.Poison: func(r *runs) time.Time {
			faults["poison message"].plant(r)
			return r.clock
		},
		condition.FindingsOpen: func(r *runs) time.Time {
			r.compared(0)
			r.finds(reconcile.Key{Class: reconcile.RowMissing, Line: 7})
			r.tick()
			return r.clock
		},
		condition.ComparisonStands: func(r *runs) time.Time {
			_, err := r.ops.Compare(by(r.t, "kim"), ops.CompareRequest{Why: "x"})
			require.NoError(r.t, err)
			began := r.clock
			r.clock = r.clock.Add(26 * time.Hour)
			r.tick()
			return began
		},
		condition.DeadLetters:       planted("dead letters", 0),
		condition.RunWithoutManager: planted("dead manager", 10*time.Minute),
		condition.WorkWaits: func(r *runs) time.Time {
			began := r.clock
			r.queue.Send(r.t.Context(), []run.Outgoing{{ID: "a"}})
			r.clock = r.clock.Add(time.Hour)
			r.tick()
			return began
		},
		condition.WaitsLong: func(r *runs) time.Time {
			faults["waits for a day"].plant(r)
			return r.clock.Add(-4 * time.Hour)
		},
		condition.FeedLag: func(r *runs) time.Time {
			faults["lag"].plant(r)
			return r.clock.Add(-406 * time.Second)
		},
		condition.Skipped: func(r *runs) time.Time {
			faults["wrong sys_name"].plant(r)
			return r.clock.Add(-time.Hour - 6*time.Second)
		},
		condition.HandlerRestarts: func(r *runs) time.Time { // a query counts the starts of a process
			r.process("", "")
			r.process("FUNCTIONS_CUSTOMHANDLER_PORT", "0")
			return time.Time{}
		},
	}
}

// Each condition is made by the use cases, and a line has it with its severity and its beginning. testdata/lines.jsonl
// has these lines, and those of ticks: the alerts are compared with them.
func TestGoldenEachConditionHasItsLine(t *testing.T) {
	var recorded bytes.Buffer
	for _, c := range condition.Table() {
		t.Run(c.Code, func(t *testing.T) {
			r := newRuns(t)
			r.hours()
			r.put(result(100, "x", ""))
			r.tick()
			r.log.Reset()
			began := conditions()[c.Code](r)
			r.tells()
			if c.Code == condition.HandlerRestarts {
				keep(t, &recorded, &r.log, func(l line) bool {
					return l.Event == "handler_started" || l.Event == "handler_failed"
				})
				return
			}
			lines := keep(t, &recorded, &r.log, func(l line) bool { return l.Condition == c.Code })
			require.NotEmpty(t, lines)
			for _, l := range lines {
				require.Equal(t, c.Severity, l.Severity)
				require.Equal(t, began.Truncate(time.Second).UTC(), l.Since.Truncate(time.Second))
				require.True(t, l.Event == string(events.Attention) || slices.Contains(c.Events, l.Event), l.Event)
			}
		})
	}
	r := newRuns(t)
	r.post("RecoverRetries", nil)
	r.post("RecoverRetries", down())
	r.post("RecoverRetries", fault.New(fault.Internal, "test: recover", "bug", "set by the test"))
	require.Len(t, keep(t, &recorded, &r.log, func(l line) bool { return l.Function == "RecoverRetries" }), 3)
	const golden = "testdata/lines.jsonl"
	if *update {
		require.NoError(t, os.WriteFile(golden, recorded.Bytes(), 0o600))
	}
	want := must(os.ReadFile(golden))(t)
	require.Equal(t, string(want), recorded.String(), "make update rewrites it")
}

// What a condition waits for before the log tells it, the status says at once.
func TestTheLogTellsWhatLasts(t *testing.T) {
	for _, c := range condition.Table() {
		if c.After == 0 {
			continue
		}
		r := newRuns(t)
		r.hours()
		r.clock = conditions()[c.Code](r).Add(c.After - time.Second)
		s := must(r.ops.Status(t.Context(), ops.StatusQuery{}))(t)
		require.Contains(t, alarms(s), c.Code)
		r.log.Reset()
		r.tells()
		require.NotContains(t, r.log.String(), c.Code)
	}
}

// A new poison message begins anew, so it is an alert of its own.
func TestEachNewPoisonMessageHasABeginning(t *testing.T) {
	r := newRuns(t)
	since := func() time.Time {
		s := r.tick()
		require.Contains(t, alarms(s), condition.Poison)
		return s.Attention[0].Since
	}
	r.put(result(1, "x", failed(10, fault.Document, "2628")))
	first := since()
	require.Equal(t, first, since())
	r.put(result(2, "x", failed(50, fault.Document, "547")))
	require.Equal(t, first.Add(40*time.Minute), since())
}

// Batches that no worker takes ask for attention, and those sent again do so an hour later.
func TestBatchesThatNoWorkerHas(t *testing.T) {
	r := newRuns(t)
	r.fill(3)
	id := r.start(replayAll()).Run
	r.queue.Lose()
	r.claim(id)
	chunk := run.Chunk{First: 1, Batches: [][]string{{"a"}, {"b"}}}
	lease := run.RunLease{Run: id, Owner: "manager-1", Epoch: 1}
	require.NoError(t, r.runStore.AddChunk(t.Context(), lease, chunk))
	require.NoError(t, r.runStore.EndHandOff(t.Context(), lease, run.Audit{Action: run.CodeRunHandedOff}))
	r.clock = r.clock.Add(time.Hour - time.Second)
	require.NotContains(t, alarms(r.tick()), condition.WorkWaits)
	r.clock = r.clock.Add(time.Second)
	require.Contains(t, alarms(r.tick())[condition.WorkWaits],
		"run "+id+": a batch waits since 2025-12-18T10:00:00-06:00, and no worker has it")
	require.NoError(t, r.breaker.Pause(t.Context(), "kim", "maintenance"))
	require.NotContains(t, alarms(r.tick()), condition.WorkWaits, "the pause says why")
}

// line is what the test asks of a line of the log.
type line struct {
	Event, Function, Condition string
	Severity                   condition.Severity
	Since                      time.Time
}

// keep adds the lines that are wanted, without the times and the build of this process.
func keep(t *testing.T, to, log *bytes.Buffer, wanted func(line) bool) (found []line) {
	t.Helper()
	for raw := range bytes.Lines(log.Bytes()) {
		var l line
		var members map[string]any
		require.NoError(t, json.Unmarshal(raw, &l), string(raw))
		require.NoError(t, json.Unmarshal(raw, &members))
		if !wanted(l) {
			continue
		}
		for _, name := range []string{"time", "version", "ms", "evidence"} {
			delete(members, name)
		}
		kept := must(json.Marshal(members))(t)
		kept = regexp.MustCompile(`-[0-9a-f]{8}\b`).ReplaceAll(kept, []byte("-random")) // of a run's id
		if !bytes.Contains(to.Bytes(), kept) {
			to.Write(append(kept, '\n'))
		}
		found = append(found, l)
	}
	return found
}

// again makes the breaker and the commit anew.
func (r *runs) again() {
	r.breaker = r.newBreaker("a")
	r.commit = r.newCommit()
	r.renew()
}

var _ handlers.Recoverer = ticks{}

// The time of a queue's messages is that of the oldest, in whatever order they come.
func TestTheOldestMessageCounts(t *testing.T) {
	var c ops.Count
	for _, minutes := range []time.Duration{3, 1, 2} {
		c.Add(start().Add(minutes * time.Minute))
	}
	require.Equal(t, ops.Count{Documents: 3, Since: start().Add(time.Minute)}, c)
}
