package run_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/run"
	"sqlwriter/internal/writer"
)

// cause is what opens a gate: what SQL answers, and to which uses of it.
type cause struct {
	err error
	hit func(op string) bool
	// limit is how long after the cause was mended the gate is closed by the next who looks, if its waits grew for half an hour.
	limit time.Duration
}

// reads are the uses of the books that write nothing.
func reads(op string) bool {
	return slices.Contains([]string{"Run", "ListRuns", "JobCounts", "Stats", "Known", "Job", "ListJobs", "Items", "Unsent", "ToSend", "OpenRuns", "Heartbeat"}, op)
}

func causes() map[fault.Kind]cause {
	everything := func(string) bool { return true }
	return map[fault.Kind]cause{
		fault.Infrastructure: {unreachable(), everything, time.Minute},
		fault.Throttled:      {fault.New(fault.Throttled, "test: sql", "40501", "the service is busy"), everything, 5 * time.Minute},
		fault.Quota: {
			fault.New(fault.Quota, "test: sql", "9002", "the log is full"), func(op string) bool { return !reads(op) },
			50 * time.Minute, // the waits are 5, 15 and 60 minutes
		},
		fault.Systemic: {
			fault.New(fault.Document, "test: sql", "2628", "a text is too long for its column"), func(op string) bool { return op == "Apply" },
			50 * time.Minute,
		},
	}
}

// breaks has SQL answer a cause until it is mended. asked counts the requests for documents.
func (w *world) breaks(c cause) (mend func(), asked *atomic.Int64) {
	var mended atomic.Bool
	asked = &atomic.Int64{}
	w.onUse(func(_ context.Context, _ *instance, op string) error {
		if op == "Apply" {
			asked.Add(1)
		}
		_, book := usesOfBooks[op]
		if sql := book || op == "Apply" || op == "Heartbeat"; sql && !mended.Load() && c.hit(op) {
			return c.err
		}
		return nil
	})
	return func() { mended.Store(true) }, asked
}

// usesOfBooks are those that go to the database.
var usesOfBooks = func() map[string]struct{} {
	all := map[string]struct{}{}
	for op := range strings.FieldsSeq(`StartRun Run ListRuns JobCounts Stats ClaimRun BeatRun Known AddChunk EndHandOff ReleaseRun CompleteRun
		CancelRun FailRun ResumeRun ClaimJob BeatJob SaveOutcomes FinishJob ReleaseJob FailJob Job ListJobs Items RequeueJob DeadLetter Write
		Unsent MarkQueued MarkUnsent ToSend Silence Bury OpenRuns`) {
		all[op] = struct{}{}
	}
	return all
}()

// gateOpens has a gate open for a cause, as others see it: what they did is none of the runs'.
func (w *world) gateOpens(c cause) {
	w.t.Helper()
	other := w.instance("other")
	err := c.err
	if fault.CodeOf(err) == "2628" { // twenty documents later
		err = fault.New(fault.Systemic, "test: sql", "2628", "every document fails")
	}
	for range 5 {
		_ = other.gate.Guard(w.ctx, true, func(context.Context) error { return err })
	}
	require.True(w.t, other.gate.View(w.ctx).State().Open())
}

// open is the shared gate.
func (w *world) open() bool {
	c, _, err := w.control.Load(context.Background())
	require.NoError(w.t, err)
	return c.Gate.Open()
}

// A build or schema that refuses every document for half an hour: the books answer all the time. Whoever uses them must leave the
// probe to those who have a document.
func TestARunGoesOnByItselfWhenASystemicGateIsMended(t *testing.T) {
	t.Parallel()
	simulate(t, func(t *testing.T, w *world) {
		w.fill(300)
		mend, asked := w.breaks(causes()[fault.Systemic])
		w.instance("m").manage()
		w.instance("w1").work()
		w.instance("w2").work()
		w.instance("timer").tick()
		w.start(run.Run{}, run.Filter{})
		time.Sleep(30 * time.Minute)
		require.True(t, w.open())
		require.Less(t, asked.Load(), int64(150), "nobody knocks")
		for n := range 3 {
			require.Empty(t, w.job(n+1).Owner, "let go of for a later message")
		}
		mend()
		w.over("run-1", 50*time.Minute+11*time.Minute) // the third wait's end; the message; a batch of which all failed before
		require.False(t, w.open())
		w.addsUp("run-1", map[run.Outcome]int{run.DocCommitted: 300})
		w.nothingCounted()
		for _, j := range w.store.AllJobs() {
			require.Zero(t, j.LostWorkers)
		}
	})
}

// A full log for half an hour, and then a manager that reads before it writes.
func TestARunGoesOnByItselfWhenAFullDatabaseHasRoom(t *testing.T) {
	t.Parallel()
	simulate(t, func(t *testing.T, w *world) {
		w.fill(100)
		mend, _ := w.breaks(causes()[fault.Quota])
		w.instance("m").manage()
		w.instance("w").work()
		w.start(run.Run{}, run.Filter{})
		time.Sleep(30 * time.Minute)
		require.True(t, w.open())
		require.Zero(t, w.run("run-1").Batches)
		mend()
		w.over("run-1", 50*time.Minute+7*time.Minute)
		w.addsUp("run-1", map[run.Outcome]int{run.DocCommitted: 100})
		w.nothingCounted()
	})
}

// Where no document and no message comes, nobody but the timer asks whether a throttled or a full database is back.
func TestTheTimerProbesEveryGateThatADocumentNeedNotAnswer(t *testing.T) {
	t.Parallel()
	for _, kind := range []fault.Kind{fault.Infrastructure, fault.Throttled, fault.Quota} {
		t.Run(string(kind), func(t *testing.T) {
			simulate(t, func(t *testing.T, w *world) {
				c := causes()[kind]
				w.gateOpens(c)
				mend, _ := w.breaks(c)
				timer := w.instance("timer").tick()
				time.Sleep(30 * time.Minute)
				require.True(t, w.open())
				require.Empty(t, w.store.Audits(), "an entry is there only when it was written")
				mend()
				// a tick every five minutes, and who made the last probe leaves the next to others for ten seconds
				w.until(c.limit+11*time.Minute, "the gate is closed", func() bool { return !w.open() })
				done, err := timer.once()
				require.NoError(t, err)
				require.Empty(t, done.Off)
				var codes []string
				for _, a := range w.store.Audits() {
					codes = append(codes, a.Code)
				}
				if kind == fault.Quota {
					require.Equal(t, []string{run.CodeGateProbe}, codes)
				} else {
					require.Empty(t, codes)
				}
				w.lawful()
			})
		})
	}
}

// An operator's pause and a gate whose probe is not due let nothing of runs pass.
func TestNothingOfRunsPassesAGateThatIsNotDue(t *testing.T) {
	t.Parallel()
	kinds := append(sortedKinds(), "paused")
	for _, kind := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			simulate(t, func(t *testing.T, w *world) {
				w.fill(10)
				w.handedOff()
				timer := w.instance("timer")
				if kind == "paused" {
					require.NoError(t, timer.gate.Pause(t.Context(), "ann", "maintenance"))
					time.Sleep(48 * time.Hour)
				} else {
					w.gateOpens(causes()[kind])
					time.Sleep(6 * time.Second)
				}
				before := w.asks()
				done, err := timer.once()
				require.NoError(t, err)
				require.NotEmpty(t, done.Off)
				handled, err := w.instance("w").workers.Receive(t.Context(), w.batch(1, run.FirstAttempt))
				require.NoError(t, err)
				require.Equal(t, "deferred", handled.Did)
				require.Equal(t, before, w.asks(), "SQL is not asked")
			})
		})
	}
}

func sortedKinds() []fault.Kind {
	var kinds []fault.Kind
	for kind := range causes() {
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	return kinds
}

// situations are what a run may be left with when the gate opens, and what must go on with it: how long that takes once the gate can be
// closed by whoever looks. before takes the run there; then the gate opens, and with is what happens while it is open.
func situations() map[string]struct {
	before, with func(w *world)
	within       time.Duration
} {
	const (
		message = 6 * time.Minute // as long as one is put off, and its jitter
		tick    = 5 * time.Minute
		ramp    = 2 * time.Minute // the limit grows: others are put off meanwhile
	)
	return map[string]struct {
		before, with func(w *world)
		within       time.Duration
	}{
		"a worker's batch is put off": {
			func(w *world) { w.instance("m").manage(); w.start(run.Run{}, run.Filter{}); w.settled() },
			func(w *world) { w.instance("w").work() },
			message + ramp,
		},
		"a manager's message is put off": {
			func(w *world) { w.start(run.Run{}, run.Filter{}) },
			func(w *world) { w.instance("m").manage(); w.instance("w").work() },
			message + ramp,
		},
		"nothing but a lost message of a batch": {
			func(w *world) { w.handedOff() },
			func(w *world) { w.instance("w").work() },
			tick + 30*time.Minute + 2*tick, // of silence with the gate closed
		},
		"a batch whose message Service Bus did not take": { // and the manager is done: the timer sends it
			func(w *world) {
				w.handedOff()
				_, _, err := w.store.MarkUnsent(w.ctx, []run.Job{w.job(1)}, "the queue is away", false, nil)
				require.NoError(w.t, err)
				require.Equal(w.t, run.PendingRetry, w.job(1).Status)
			},
			func(w *world) { w.instance("w").work() },
			message + 2*tick + ramp,
		},
	}
}

// Every kind of gate, whatever it leaves behind: when the cause is mended the run completes, without an operator and without a document
// of anybody else's. The one exception is a run that has nothing left but a lost message, behind a systemic gate: that is found lost by
// time with the gate closed, and nothing closes it but a document (docs/adr/0028).
func TestEveryGateThatIsMendedLetsARunGoOn(t *testing.T) {
	t.Parallel()
	for _, kind := range sortedKinds() {
		for name, s := range situations() {
			t.Run(fmt.Sprintf("%s, %s", kind, name), func(t *testing.T) {
				simulate(t, func(t *testing.T, w *world) {
					c := causes()[kind]
					w.fill(100)
					s.before(w)
					w.gateOpens(c)
					mend, _ := w.breaks(c)
					s.with(w)
					w.instance("timer").tick()
					time.Sleep(30 * time.Minute)
					require.True(t, w.open())
					mend()
					if kind == fault.Systemic && strings.HasPrefix(name, "nothing but") {
						time.Sleep(48 * time.Hour)
						require.True(t, w.open())
						require.Equal(t, run.RunRunning, w.run("run-1").Status)
						w.feed(t)
						w.over("run-1", s.within)
						w.addsUp("run-1", map[run.Outcome]int{run.DocCommitted: 100})
						return
					}
					took := w.over("run-1", c.limit+s.within)
					t.Logf("%s after the cause was mended", took)
					require.False(t, w.open())
					w.addsUp("run-1", map[run.Outcome]int{run.DocCommitted: 100})
					for _, j := range w.store.AllJobs() {
						require.Zero(t, j.QueueAttempts)
						require.Zero(t, j.LostWorkers)
					}
				})
			})
		}
	}
}

// settled waits until a run is handed off.
func (w *world) settled() {
	w.until(time.Minute, "handed off", func() bool { return !w.run("run-1").HandedOffAt.IsZero() })
}

// feed brings one document of the feed.
func (w *world) feed(t *testing.T) {
	t.Helper()
	id := w.put(9001, "of the feed", `{"status":"pending","retry_count":0}`)
	raw, err := w.docs.Read(t.Context(), id)
	require.NoError(t, err)
	_, err = w.instance("feed").commit.Run(t.Context(), writer.Batch{Documents: []json.RawMessage{raw}, Received: time.Now()})
	require.NoError(t, err)
	require.False(t, w.open())
}
