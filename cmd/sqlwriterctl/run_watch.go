package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"sqlwriter/internal/ops"
	"sqlwriter/internal/opsapi"
	"sqlwriter/internal/run"
)

const (
	// redrawEvery is the time between two requests on a terminal, lineEvery the time otherwise, with a line for each.
	redrawEvery = 2 * time.Second
	lineEvery   = 5 * time.Second
	// waitFactor times the duration of a request is the shortest wait before the next one, so that watching stays cheap.
	waitFactor = 10
	// maxWait bounds that wait.
	maxWait = 30 * time.Second
	// rateWindow is the period over which the speed is measured.
	rateWindow = 30 * time.Second
	// lineWidth is the width of a terminal's line. The bar has shortestBar to longestBar characters of it, or none.
	lineWidth   = 79
	shortestBar = 5
	longestBar  = 20
)

// watcher requests the state of a run until it has ended, and shows the progress.
type watcher struct {
	run  string
	ask  func(ctx context.Context, id string) (ops.RunProgress, error)
	now  func() time.Time
	wait func(ctx context.Context, d time.Duration) error
	out  io.Writer
	// redraw redraws one line; otherwise each state is a line of its own.
	redraw bool
	// quiet shows no progress. shown formats a time.
	quiet bool
	shown func(time.Time) string
	// exists means that the run is known to exist: from then on a lost reply does not end the watching.
	exists bool

	samples []progressAt
}

type progressAt struct {
	at   time.Time
	done int
}

// watch shows the run until it has ended. It retries when the app does not answer. The end of the context ends the watching
// but not the run; the error says so.
func (w *watcher) watch(ctx context.Context) (p ops.RunProgress, err error) {
	defer w.endLine()
	for {
		took := time.Duration(0)
		err := w.retry(ctx, func(ctx context.Context) (err error) {
			begin := w.now()
			p, err = w.ask(ctx, w.run)
			took = w.now().Sub(begin)
			return err
		})
		if err != nil {
			return p, err
		}
		w.show(p)
		if p.Status != run.RunRunning {
			return p, nil
		}
		if w.wait(ctx, min(maxWait, max(w.every(), waitFactor*took))) != nil {
			return p, w.stopped()
		}
	}
}

func (w *watcher) every() time.Duration {
	if w.redraw {
		return redrawEvery
	}
	return lineEvery
}

// stopped is the error when the operator stops watching.
func (w *watcher) stopped() error {
	return &advisedError{
		errors.New("watching stopped, the run continues"),
		fmt.Sprintf("`sqlwriterctl run watch %s` watches it again, `sqlwriterctl run cancel %s --why TEXT` ends it", w.run, w.run),
	}
}

// retry repeats a request until there is a reply. A refusal is a reply.
func (w *watcher) retry(ctx context.Context, ask func(context.Context) error) error {
	silent := w.now()
	for {
		err := ask(ctx)
		switch {
		case err == nil:
			w.exists = true
			return nil
		case ctx.Err() != nil:
			return w.stopped()
		case !w.exists || final(err):
			return err
		}
		w.line(fmt.Sprintf("no answer for %s, trying again: %v", w.now().Sub(silent).Round(time.Second), err))
		if w.wait(ctx, lineEvery) != nil {
			return w.stopped()
		}
	}
}

// final reports whether a retry cannot help.
func final(err error) bool {
	var request *ops.RequestError
	var denied *opsapi.DeniedError
	return errors.As(err, &request) || errors.As(err, &denied)
}

// show prints the progress of the run.
func (w *watcher) show(p ops.RunProgress) {
	rate, left := w.speed(p)
	if !w.redraw {
		w.line(fmt.Sprintf("%s: %s", p.ID, plainProgress(p, rate, left)))
		return
	}
	w.line(barProgress(p, rate, left))
}

// line prints a line, or redraws the last one on a terminal.
func (w *watcher) line(text string) {
	text = oneLine(text)
	switch {
	case w.quiet:
		return
	case w.redraw:
		_, _ = fmt.Fprintf(w.out, "\r\x1b[K%s", ops.Truncate(text, lineWidth)) // a closed output is ignored
		return
	}
	_, _ = fmt.Fprintf(w.out, "%s %s\n", w.shown(w.now()), text)
}

// endLine ends the redrawn line.
func (w *watcher) endLine() {
	if w.redraw && !w.quiet {
		_, _ = fmt.Fprintln(w.out)
	}
}

// speed returns the documents per second in the last rateWindow, else the run's own rate, and the time for the known rest.
// Zero means unknown.
func (w *watcher) speed(p ops.RunProgress) (rate float64, left time.Duration) {
	now := w.now()
	for len(w.samples) > 1 && now.Sub(w.samples[1].at) >= rateWindow {
		w.samples = w.samples[1:]
	}
	rate = p.PerSecond
	if len(w.samples) > 0 {
		first := w.samples[0]
		if span := now.Sub(first.at).Seconds(); span > 0 {
			rate = max(0, float64(p.Done-first.done)/span)
		}
	}
	w.samples = append(w.samples, progressAt{now, p.Done})
	return rate, p.Left(rate).Round(time.Second)
}

// plainProgress formats the progress as text.
func plainProgress(p ops.RunProgress, rate float64, left time.Duration) string {
	if p.Pattern == run.InPasses {
		return passProgress(p, rate)
	}
	return fmt.Sprintf("%s, %s of %s documents (%s), %s/s, %s; batches: %s",
		runStatus(p.Run, p.Stats.Batches), strconv.Itoa(p.Done), known(p.Run), percent(p), decimal(rate), leftWords(p, left),
		orDash(batchCounts(p.Stats.Batches)))
}

// passProgress formats the progress of a run without batches, whose end is not known.
func passProgress(p ops.RunProgress, rate float64) string {
	return fmt.Sprintf("%s, %d compared, %s/s", runStatus(p.Run, nil), p.Documents, decimal(rate))
}

// barProgress formats the progress as one line with a bar. Failures come first, where they are not cut off.
func barProgress(p ops.RunProgress, rate float64, left time.Duration) string {
	if p.Pattern == run.InPasses {
		return passProgress(p, rate)
	}
	var front, parts []string
	if n := p.Stats.Batches[run.Failed]; n > 0 {
		front = append(front, fmt.Sprintf("%d FAILED", n))
	}
	switch {
	case p.Status != run.RunRunning:
		parts = append(parts, string(p.Status))
	case p.Cancel:
		parts = append(parts, "to be cancelled")
	}
	parts = append(parts, percent(p), strconv.Itoa(p.Done)+"/"+known(p.Run), decimal(rate)+"/s", leftWords(p, left), busyWords(p.Stats.Batches))
	const between, frame = " | ", "[]"
	text := strings.Join(append(slices.Clone(front), parts...), between)
	if width := min(longestBar, lineWidth-len(text)-len(between)-len(frame)); width >= shortestBar {
		full := 0
		if total, _ := p.Known(); total > 0 {
			full = min(width, width*p.Done/total)
		}
		front = append(front, "["+strings.Repeat("#", full)+strings.Repeat(".", width-full)+"]")
		text = strings.Join(append(front, parts...), between)
	}
	return text
}

// busyWords are the numbers of done, running and waiting batches.
func busyWords(counts map[run.BatchStatus]int) string {
	waiting := counts[run.PendingQueue] + counts[run.PendingRetry] + counts[run.Queued]
	return fmt.Sprintf("batches %d done %d busy %d wait", counts[run.Completed], counts[run.Processing], waiting)
}

// runStatus is a run's status, with failed batches first.
func runStatus(r run.Run, counts map[run.BatchStatus]int) string {
	status := strings.ReplaceAll(string(r.Status), "_", " ")
	if r.Status == run.RunRunning && r.Cancel {
		status += ", to be cancelled"
	}
	if n := counts[run.Failed]; n > 0 {
		status = strings.ToUpper(batches(n)) + " FAILED, " + status
	}
	return status
}

// known is the known number of documents of a run, with a plus if there may be more.
func known(r run.Run) string {
	total, more := r.Known()
	if more {
		return strconv.Itoa(total) + "+"
	}
	return strconv.Itoa(total)
}

// percent is the done share of the known documents. It stays below 100 % while there may be more.
func percent(p ops.RunProgress) string {
	const all = 100
	total, more := p.Known()
	if total == 0 {
		return "-"
	}
	done := all * p.Done / total
	if more {
		done = min(done, all-1)
	}
	return strconv.Itoa(done) + "%"
}

func leftWords(p ops.RunProgress, left time.Duration) string {
	total, _ := p.Known()
	switch {
	case p.Status != run.RunRunning:
		return "ended"
	case p.Cancel:
		return "ending"
	case total == 0:
		return "searching"
	case p.Done >= total:
		return "no known one left"
	case left == 0:
		return "? left"
	}
	return left.String() + " left"
}

// decimal formats a speed.
func decimal(n float64) string {
	const exact = 10
	if n >= exact || n == 0 {
		return strconv.FormatFloat(n, 'f', 0, 64)
	}
	return strconv.FormatFloat(n, 'f', 1, 64)
}

// batchCounts formats the numbers of batches by status: failed ones first, then in the order of a batch's life cycle.
func batchCounts(counts map[run.BatchStatus]int) string {
	var parts []string
	for _, s := range append([]run.BatchStatus{run.Failed}, slices.DeleteFunc(run.BatchStatuses(), func(s run.BatchStatus) bool { return s == run.Failed })...) {
		if n := counts[s]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, s))
		}
	}
	return strings.Join(parts, ", ")
}

// noOutcome is the outcome of a document that is not processed yet.
const noOutcome = "none"

// outcomeName is the name of an outcome in output and receipts.
func outcomeName(o run.Outcome) string {
	if o == "" {
		return noOutcome
	}
	return string(o)
}

// outcomeCounts counts documents by outcome.
func outcomeCounts(outcomes map[run.Outcome]int) map[string]int {
	counts := map[string]int{}
	for o, n := range maps.All(outcomes) {
		if n > 0 {
			counts[outcomeName(o)] = n
		}
	}
	return counts
}
