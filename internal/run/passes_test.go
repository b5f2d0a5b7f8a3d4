package run_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/run"
)

// census is a kind of passes that only these tests know. Each pass has steps of three documents.
const census run.Kind = "census"

func withCensus() run.KindTable {
	return append(run.Kinds(), run.KindRow{
		Kind: census, Meaning: "counts in passes", Unfiltered: true, Passes: []string{"lines", "documents"},
		Outcomes: []run.Outcome{run.DocCommitted, run.DocFailed},
	})
}

// censusOf does four steps a pass and records which it did. The last of a pass counts a failure if fails.
type censusOf struct {
	w     *world
	fails bool
	delay time.Duration
	did   []string
	// during replaces the result of a step unless it answers nil. changes changes its result.
	during  func(step string) error
	changes func(step string, done *run.Stepped)
}

func (c *censusOf) step(i *instance) run.Step {
	return func(ctx context.Context, r run.Run, pass, at string) (done run.Stepped, err error) {
		err = i.use(ctx, "Step", false, func() error {
			n := 0
			if at != "" {
				if n, err = strconv.Atoi(at); err != nil {
					return err
				}
			}
			name := fmt.Sprint(pass, " ", n)
			if c.during != nil {
				if err := c.during(name); err != nil {
					return err
				}
			}
			c.w.pause(c.delay)
			c.did = append(c.did, name)
			done = run.Stepped{Next: strconv.Itoa(n + 1), Done: n == 3, Counts: map[run.Outcome]int{run.DocCommitted: 3}}
			if c.fails && done.Done {
				done.Counts = map[run.Outcome]int{run.DocCommitted: 2, run.DocFailed: 1}
			}
			if c.changes != nil {
				c.changes(name, &done)
			}
			return nil
		})
		return done, err
	}
}

func (w *world) census(fails bool) *censusOf {
	c := &censusOf{w: w, fails: fails}
	w.kinds = withCensus()
	w.passes = func(i *instance) map[run.Kind]run.Step { return map[run.Kind]run.Step{census: c.step(i)} }
	w.startHere(run.Run{Kind: census, Pattern: run.InPasses}, run.Filter{})
	return c
}

// carryOn is the last part of a tick.
func (i *instance) carryOn(queueAway bool) (done run.Carried, err error) {
	ended := make(chan struct{})
	i.w.group.Go(func() {
		defer close(ended)
		ctx, cancel := context.WithTimeout(i.w.ctx, 4*time.Minute)
		defer cancel()
		done, err = i.recovery.CarryOn(ctx, queueAway)
	})
	<-ended
	return done, err
}

func allSteps() []string {
	return []string{"lines 0", "lines 1", "lines 2", "lines 3", "documents 0", "documents 1", "documents 2", "documents 3"}
}

// The timer executes a run of passes without any message, and its counts say how it ends.
func TestTheTimerCarriesOnARunOfPasses(t *testing.T) {
	t.Parallel()
	for _, fails := range []bool{false, true} {
		simulate(t, func(t *testing.T, w *world) {
			w.queueAway()
			c := w.census(fails)
			done, err := w.instance("timer").carryOn(false)
			require.NoError(t, err)
			require.Equal(t, run.Carried{Runs: 1, Ended: 1}, done)
			require.Equal(t, allSteps(), c.did)
			want, counts := run.RunCompleted, map[run.Outcome]int{run.DocCommitted: 24}
			if fails {
				want, counts = run.RunCompletedWithFailures, map[run.Outcome]int{run.DocCommitted: 22, run.DocFailed: 2}
			}
			require.Equal(t, want, w.run("run-1").Status)
			require.Equal(t, counts, w.stats("run-1").Outcomes)
			require.Equal(t, 24, w.run("run-1").Documents)
			require.Equal(t, []string{run.CodeRunStart, run.CodeRunHandedOff, run.CodeRunDone}, w.codes("run-1", ""))
		})
	}
}

// A tick works for two minutes, the next goes on where it ended, and a message of the run does no harm.
func TestATickCarriesOnForTwoMinutes(t *testing.T) {
	t.Parallel()
	simulate(t, func(t *testing.T, w *world) {
		c := w.census(false)
		c.delay = 50 * time.Second
		w.notify("run-1")
		timer := w.instance("timer").manage()
		for _, most := range []int{3, 6, 8} {
			begin := time.Now()
			_, _ = timer.once()
			_, err := timer.carryOn(false)
			require.NoError(t, err)
			require.Less(t, time.Since(begin), 3*time.Minute)
			require.Equal(t, allSteps()[:most], c.did)
			time.Sleep(10 * time.Minute)
		}
		require.Equal(t, run.RunCompleted, w.run("run-1").Status)
		require.Equal(t, 1, w.did("BatchManager")["skipped"])
		require.Len(t, w.runs.sendings(), 1, "the timer sent no message")
	})
}

// A run that loses its races does not keep the runs behind it waiting.
func TestALostRaceOfOneRunKeepsNoOtherWaiting(t *testing.T) {
	t.Parallel()
	simulate(t, func(t *testing.T, w *world) {
		c := w.census(false)
		w.startHere(run.Run{ID: "run-2", Kind: census, Pattern: run.InPasses}, run.Filter{})
		lost := true
		c.during = func(string) (err error) {
			if lost {
				err = fault.New(fault.Contention, "test", "1205", "deadlock victim")
			}
			lost = false
			return err
		}
		timer := w.instance("timer")
		done, err := timer.carryOn(false)
		require.Equal(t, fault.Contention, fault.KindOf(err))
		require.Equal(t, run.Carried{Runs: 1, Ended: 1}, done)
		_, err = timer.carryOn(false)
		require.NoError(t, err)
		require.Equal(t, []run.RunStatus{run.RunCompleted, run.RunCompleted}, []run.RunStatus{w.run("run-1").Status, w.run("run-2").Status})
	})
}

// The process dies after every use of a port. The next tick after the silence of its owner goes on; at most one step is repeated.
func TestARunOfPassesMayBeKilledAtEveryStep(t *testing.T) {
	t.Parallel()
	steps := 1
	for n := 1; n <= steps; n++ {
		simulate(t, func(t *testing.T, w *world) {
			c := w.census(true)
			x := w.instance("x")
			x.killAfter(n)
			_, _ = x.carryOn(false)
			if !x.isDead() {
				return
			}
			steps = n + 1
			time.Sleep(3 * time.Minute)
			_, err := w.instance("y").carryOn(false)
			require.NoError(t, err)
			require.Equal(t, run.RunCompletedWithFailures, w.run("run-1").Status, "killed after %v", x.ops)
			require.Equal(t, map[run.Outcome]int{run.DocCommitted: 22, run.DocFailed: 2}, w.stats("run-1").Outcomes, "no step counts twice")
			require.Equal(t, allSteps(), slices.Compact(c.did))
			require.LessOrEqual(t, len(c.did), len(allSteps())+1)
		})
	}
	require.Greater(t, steps, 20)
}

func TestAStepThatFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		during func(string) error
		status run.RunStatus
		says   string
	}{
		"a dependency": {func(string) error { return unreachable() }, run.RunRunning, ""},
		"an error":     {func(string) error { return fault.New(fault.Internal, "test: step", "x", "the step is wrong") }, run.RunFailed, "the step is wrong"},
		"a panic":      {func(string) error { panic("of ours") }, run.RunFailed, "panic"},
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, func(t *testing.T, w *world) {
				steps := w.census(false)
				steps.during = func(step string) error {
					if step == "documents 1" {
						return c.during(step)
					}
					return nil
				}
				_, err := w.instance("timer").carryOn(false)
				require.Equal(t, c.status == run.RunRunning, err != nil, "%v", err)
				require.Equal(t, c.status, w.run("run-1").Status)
				require.Contains(t, w.run("run-1").Error, c.says)
				require.Empty(t, w.run("run-1").Owner)
				steps.during = nil
				if c.status == run.RunFailed {
					ok, err := w.store.ResumeRun(t.Context(), "run-1", run.Audit{Code: run.CodeRunResume, Level: run.LevelInfo, By: "ann", Why: "mended"})
					require.NoError(t, err)
					require.True(t, ok)
				}
				_, err = w.instance("next").carryOn(false)
				require.NoError(t, err)
				require.Equal(t, run.RunCompleted, w.run("run-1").Status)
				require.Equal(t, allSteps(), steps.did, "it went on where it was")
			})
		})
	}
}

// A step may ask for a pause, and take back what earlier steps counted.
func TestAStepWaitsAndTakesCountsBack(t *testing.T) {
	t.Parallel()
	simulate(t, func(t *testing.T, w *world) {
		c := w.census(false)
		begin := time.Now()
		c.changes = func(step string, done *run.Stepped) {
			if step == "lines 1" {
				done.Wait, done.Counts = 5*time.Minute, map[run.Outcome]int{run.DocCommitted: -2}
			}
		}
		_, err := w.instance("timer").carryOn(false)
		require.NoError(t, err)
		require.Equal(t, allSteps()[:2], c.did)
		require.Equal(t, run.RunRunning, w.run("run-1").Status)
		require.Equal(t, map[run.Outcome]int{run.DocCommitted: 1}, w.stats("run-1").Outcomes)
		_, err = w.instance("timer").carryOn(false)
		require.NoError(t, err)
		require.Equal(t, allSteps()[:2], c.did, "it waits")
		waits := time.Now()
		done, err := w.instance("x").executor.Execute(w.ctx, "run-1")
		require.NoError(t, err)
		require.Equal(t, run.Executed{Left: "it waits for another run"}, done)
		require.Less(t, time.Since(waits), time.Minute, "an operator at a terminal is told at once")
		time.Sleep(5*time.Minute - 10*time.Second - time.Since(begin)) // the next tick comes a little early
		_, err = w.instance("timer").carryOn(false)
		require.NoError(t, err)
		require.Equal(t, allSteps(), c.did)
		require.Equal(t, run.RunCompleted, w.run("run-1").Status)
		require.Equal(t, 19, w.run("run-1").Documents)
	})
}

// Cancel, rate and the execution in a process are as for the others.
func TestARunOfPassesIsExecutedHereAtItsRate(t *testing.T) {
	t.Parallel()
	simulate(t, func(t *testing.T, w *world) {
		c := w.census(false)
		require.NoError(t, w.store.StartRun(t.Context(), run.Run{ID: "slow", SysName: sysName, Kind: census, Pattern: run.InPasses, Rate: 6},
			run.Audit{Code: run.CodeRunStart, Level: run.LevelInfo, By: "ann", Why: "x", Run: "slow"}))
		begin := time.Now()
		done, err := w.instance("x").executor.Execute(w.ctx, "slow")
		require.NoError(t, err)
		require.Equal(t, run.Executed{}, done)
		require.InDelta(t, 7*30*time.Second, time.Since(begin), float64(time.Minute), "three documents in half a minute")
		require.Equal(t, run.RunCompleted, w.run("slow").Status)

		c.did = nil
		c.during = func(step string) error {
			if step == "lines 2" {
				_, err := w.store.CancelRun(w.ctx, "run-1", run.Audit{Code: run.CodeRunCancel, Level: run.LevelWarn, By: "ann", Why: "x"})
				return err
			}
			return nil
		}
		_, err = w.instance("timer").carryOn(false)
		require.NoError(t, err)
		require.Equal(t, run.RunCancelled, w.run("run-1").Status)
		require.Equal(t, map[run.Outcome]int{run.DocCommitted: 6}, w.stats("run-1").Outcomes, "a step that was under way does not count")
	})
}
