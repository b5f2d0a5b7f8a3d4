package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/opsapi"
	"sqlwriter/internal/run"
)

// watched is a watcher over prepared replies. Only its waits advance the clock.
type watched struct {
	watcher
	out     strings.Builder
	clock   time.Time
	waits   []time.Duration
	answers []func() (ops.RunProgress, error)
	// took is the duration of each request.
	took time.Duration
	// waited is called in each wait.
	waited func(n int) error
}

func newWatched(redraw bool, answers ...func() (ops.RunProgress, error)) *watched {
	w := &watched{clock: time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC), answers: answers}
	w.watcher = watcher{
		run: "r", redraw: redraw, out: &w.out, shown: func(t time.Time) string { return t.Format("15:04:05") }, now: func() time.Time { return w.clock },
		ask: func(context.Context, string) (ops.RunProgress, error) {
			answer := w.answers[0]
			w.answers = w.answers[1:]
			w.clock = w.clock.Add(w.took)
			return answer()
		},
		wait: func(_ context.Context, d time.Duration) error {
			w.waits = append(w.waits, d)
			w.clock = w.clock.Add(d)
			if w.waited != nil {
				return w.waited(len(w.waits))
			}
			return nil
		},
	}
	return w
}

// going is a running run.
func going(done, known int, change ...func(*ops.RunProgress)) func() (ops.RunProgress, error) {
	p := ops.RunProgress{Run: run.Run{ID: "r", Pattern: run.TwoPhase, Status: run.RunRunning, Documents: known, HandedOffAt: time.Unix(1, 0)}, Done: done}
	p.Stats.Batches = map[run.BatchStatus]int{run.Completed: done / 100, run.Processing: 2, run.Queued: 3, run.PendingRetry: 1}
	for _, c := range change {
		c(&p)
	}
	return func() (ops.RunProgress, error) { return p, nil }
}

func silentApp() (ops.RunProgress, error) {
	return ops.RunProgress{}, &opsapi.LostError{Err: errors.New("the app did not answer: refused")}
}

func handingOff(p *ops.RunProgress) { p.HandedOffAt = time.Time{} }

func ended(status run.RunStatus, failed int) func(*ops.RunProgress) {
	return func(p *ops.RunProgress) {
		p.Status = status
		p.Stats.Batches = map[run.BatchStatus]int{run.Completed: 10 - failed}
		if failed > 0 {
			p.Stats.Batches[run.Failed] = failed
		}
	}
}

// frames returns the lines that a terminal showed one after the other.
func frames(t *testing.T, out string) []string {
	t.Helper()
	require.True(t, strings.HasSuffix(out, "\n"), "what comes next has a line of its own")
	all := strings.Split(strings.TrimSuffix(out, "\n"), "\r\x1b[K")
	require.Empty(t, all[0])
	for _, frame := range all[1:] {
		require.LessOrEqual(t, utf8.RuneCountInString(frame), lineWidth, "a line that wraps cannot be drawn over")
		require.NotContains(t, frame, "\n")
	}
	return all[1:]
}

func TestTheBar(t *testing.T) {
	w := newWatched(true,
		going(0, 0, handingOff), going(0, 500, handingOff, func(p *ops.RunProgress) { p.Stats.Batches = map[run.BatchStatus]int{run.PendingQueue: 5} }),
		going(100, 1000), going(500, 1000), going(500, 1000, func(p *ops.RunProgress) { p.Stats.Batches[run.Failed] = 2; p.Cancel = true }),
		going(1000, 1000, ended(run.RunCompleted, 0)))
	p, err := w.watch(t.Context())
	require.NoError(t, err)
	require.Equal(t, run.RunCompleted, p.Status)
	require.Equal(t, []string{
		"[.................] | - | 0/0+ | 0/s | searching | batches 0 done 2 busy 4 wait",
		"[.................] | 0% | 0/500+ | 0/s | ? left | batches 0 done 0 busy 5 wait",
		"[#..........] | 10% | 100/1000 | 25/s | 36s left | batches 1 done 2 busy 4 wait",
		"[######......] | 50% | 500/1000 | 83/s | 6s left | batches 5 done 2 busy 4 wait",
		"2 FAILED | to be cancelled | 50% | 500/1000 | 62/s | ending | batches 5 done 2…",
		"completed | 100% | 1000/1000 | 100/s | ended | batches 10 done 0 busy 0 wait",
	}, frames(t, w.out.String()))
	require.Equal(t, []time.Duration{redrawEvery, redrawEvery, redrawEvery, redrawEvery, redrawEvery}, w.waits)
}

// The progress counts all documents of the preview, also while only some are handed off.
func TestProgressWhileTheHandOffGoesOn(t *testing.T) {
	preview := func(matched int, atLeast bool) func(*ops.RunProgress) {
		return func(p *ops.RunProgress) { p.Matched, p.AtLeast, p.Rate = matched, atLeast, 120 }
	}
	w := newWatched(true,
		going(0, 0, handingOff, preview(511, false)), going(20, 20, handingOff, preview(511, false)), going(20, 20, handingOff, preview(10_000, true)),
		going(10_050, 10_050, handingOff, preview(10_000, true)), going(500, 500, preview(511, false)), going(500, 500, preview(511, false), ended(run.RunCompleted, 0)))
	_, err := w.watch(t.Context())
	require.NoError(t, err)
	for i, says := range []string{
		"| 0% | 0/511 | 0/s | 4m16s left |", "] | 3% | 20/511 | 10/s | 4m6s left |", "] | 0% | 20/10000+ | 5.0/s | 1h23m10s left |",
		"99% | 10050/10050+ | 1675/s | no known one left |", "100% | 500/500 | 62/s | no known one left |", "completed | 100% | 500/500 |",
	} {
		require.Contains(t, frames(t, w.out.String())[i], says)
	}
}

func TestTheSpeedIsThatOfTheLastHalfMinute(t *testing.T) {
	var answers []func() (ops.RunProgress, error)
	for i := range 20 { // fast at first, then no progress
		answers = append(answers, going(min(i, 10)*1000, 100_000))
	}
	answers = append(answers, going(100_000, 100_000, ended(run.RunCompleted, 0)))
	w := newWatched(false, answers...)
	_, err := w.watch(t.Context())
	require.NoError(t, err)
	lines := strings.Split(w.out.String(), "\n")
	require.Contains(t, lines[5], "03:00:25 r: running, 5000 of 100000 documents (5%), 200/s, 7m55s left")
	require.Contains(t, lines[19], "10000 of 100000 documents (10%), 0/s, ? left")
}

func TestPlainLinesWithoutATerminal(t *testing.T) {
	w := newWatched(false, going(10, 100, handingOff), going(40, 100), going(90, 100, ended(run.RunCompleted, 1)))
	_, err := w.watch(t.Context())
	require.NoError(t, err)
	require.Equal(t, `03:00:00 r: running, 10 of 100+ documents (10%), 0/s, ? left; batches: 1 pending_retry, 3 queued, 2 processing
03:00:05 r: running, 40 of 100 documents (40%), 6.0/s, 10s left; batches: 1 pending_retry, 3 queued, 2 processing
03:00:10 r: 1 BATCH FAILED, completed, 90 of 100 documents (90%), 8.0/s, ended; batches: 1 failed, 9 completed
`, w.out.String())
	require.NotContains(t, w.out.String(), "\x1b")
}

func TestARequestIsRetriedWhenTheAppDoesNotAnswer(t *testing.T) {
	outage := func() (ops.RunProgress, error) {
		return ops.RunProgress{}, fault.New(fault.Infrastructure, "breaker", "breaker_open", "stopped since then")
	}
	w := newWatched(false, going(10, 100), silentApp, silentApp, outage, going(100, 100, ended(run.RunCompleted, 0)))
	p, err := w.watch(t.Context())
	require.NoError(t, err)
	require.Equal(t, run.RunCompleted, p.Status)
	require.Contains(t, w.out.String(), "03:00:05 no answer for 0s, trying again: the app did not answer: refused\n")
	require.Contains(t, w.out.String(), "03:00:10 no answer for 5s, trying again: the app did not answer: refused\n")
	require.Contains(t, w.out.String(), "no answer for 10s, trying again: breaker: infrastructure breaker_open: stopped since then\n")
}

func TestFinalErrorsAreNotRetried(t *testing.T) {
	gone := func() (ops.RunProgress, error) {
		return ops.RunProgress{}, &ops.RequestError{Refusal: ops.NotFound, Message: "no run"}
	}
	denied := func() (ops.RunProgress, error) { return ops.RunProgress{}, &opsapi.DeniedError{Err: errors.New("401")} }
	for name, answers := range map[string][]func() (ops.RunProgress, error){
		"nobody answers the first question": {silentApp}, "no such run": {gone}, "gone meanwhile": {going(1, 2), gone}, "another key": {going(1, 2), denied},
	} {
		w := newWatched(true, answers...)
		_, err := w.watch(t.Context())
		require.Error(t, err, name)
		require.Empty(t, w.answers, name)
	}
	w := newWatched(true, silentApp, going(2, 2, ended(run.RunCompleted, 0)))
	w.exists = true // the run has just started
	_, err := w.watch(t.Context())
	require.NoError(t, err)
}

func TestTheEndOfWatchingDoesNotEndTheRun(t *testing.T) {
	for name, answers := range map[string][]func() (ops.RunProgress, error){"while it waits": {going(1, 2)}, "while nobody answers": {going(1, 2), silentApp}} {
		w := newWatched(true, answers...)
		w.waited = func(n int) error {
			if n == len(answers) {
				return context.Canceled
			}
			return nil
		}
		_, err := w.watch(t.Context())
		require.ErrorContains(t, err, "the run continues", name)
		var advised *advisedError
		require.ErrorAs(t, err, &advised)
		require.Contains(t, advised.advice, "`sqlwriterctl run cancel r --why TEXT` ends it", name)
	}
	ctx, cancel := context.WithCancel(t.Context())
	w := newWatched(true, going(1, 2), func() (ops.RunProgress, error) { cancel(); return ops.RunProgress{}, &opsapi.LostError{Err: ctx.Err()} })
	_, err := w.watch(ctx)
	require.ErrorContains(t, err, "the run continues")
}

func TestSlowRequestsAreSentLessOften(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{0: redrawEvery, time.Second: 10 * time.Second, time.Minute: maxWait} {
		w := newWatched(true, going(1, 2), going(2, 2, ended(run.RunCompleted, 0)))
		w.took = took
		_, err := w.watch(t.Context())
		require.NoError(t, err)
		require.Equal(t, []time.Duration{want}, w.waits)
	}
}

func TestTheVerdictOnARun(t *testing.T) {
	for name, c := range map[string]struct {
		status run.RunStatus
		failed int
		want   string
	}{
		"all is well":     {run.RunCompleted, 0, ""},
		"it goes on":      {run.RunRunning, 0, ""},
		"batches failed":  {run.RunCompletedWithFailures, 2, "2 batches failed"},
		"and it goes on":  {run.RunRunning, 1, "1 batch failed"},
		"it failed":       {run.RunFailed, 0, "run r is failed"},
		"it is cancelled": {run.RunCancelled, 3, "run r is cancelled"},
	} {
		p, _ := going(1, 2, ended(c.status, c.failed))()
		err := verdict(p)
		if c.want == "" {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorContains(t, err, c.want, name)
	}
}
