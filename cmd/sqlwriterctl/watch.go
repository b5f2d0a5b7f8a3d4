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
	"sqlwriter/internal/run"
)

const (
	// redrawEvery is how often a run is looked at on a terminal, lineEvery how often otherwise: each look is a line then.
	redrawEvery = 2 * time.Second
	lineEvery   = 5 * time.Second
	// restTimes is how often the time that an answer took is left in peace before the next question.
	restTimes = 10
	// longestRest bounds that.
	longestRest = 30 * time.Second
	// rateWindow is how far back the speed is measured.
	rateWindow = 30 * time.Second
	// lineWidth is what fits on a terminal's line; the bar has a part of it between the other two, or none.
	lineWidth   = 79
	shortestBar = 5
	longestBar  = 20
)

// watcher asks for a run until it has ended, and shows how far it is.
type watcher struct {
	run  string
	ask  func(ctx context.Context, id string) (ops.RunProgress, error)
	now  func() time.Time
	wait func(ctx context.Context, d time.Duration) error
	out  io.Writer
	// redraw draws one line again and again; otherwise each look is a line of its own.
	redraw bool
	// heard says that the run is known to be there: from then on no lost answer ends the watching.
	heard bool

	samples []progressAt
	// told is the last note.
	told string
}

// progressAt is how far a run was.
type progressAt struct {
	at   time.Time
	done int
}

// watch shows the run until it has ended. An app that does not answer is asked again. The end of the context ends only the
// watching; the error says so.
func (w *watcher) watch(ctx context.Context) (p ops.RunProgress, err error) {
	defer w.endLine()
	for {
		took := time.Duration(0)
		err := w.patiently(ctx, func(ctx context.Context) (err error) {
			begin := w.now()
			p, err = w.ask(ctx, w.run)
			took = w.now().Sub(begin)
			return err
		})
		if err != nil {
			return p, err
		}
		w.tell(p.Note)
		w.show(p)
		if p.Status != run.RunRunning {
			return p, nil
		}
		if w.wait(ctx, min(longestRest, max(w.every(), restTimes*took))) != nil {
			return p, w.left()
		}
	}
}

func (w *watcher) every() time.Duration {
	if w.redraw {
		return redrawEvery
	}
	return lineEvery
}

// left is the error of a watching that was ended by whoever watched.
func (w *watcher) left() error {
	return fmt.Errorf("you watch no more, and the run goes on: `run show %s --wait` watches it again, `run cancel %s --why TEXT` ends it", w.run, w.run)
}

// patiently asks until there is an answer. What was refused is one.
func (w *watcher) patiently(ctx context.Context, ask func(context.Context) error) error {
	silent := w.now()
	for {
		err := ask(ctx)
		switch {
		case err == nil:
			w.heard = true
			return nil
		case ctx.Err() != nil:
			return w.left()
		case !w.heard || final(err):
			return err
		}
		w.line(fmt.Sprintf("no answer for %s, asking again: %v", w.now().Sub(silent).Round(time.Second), err))
		if w.wait(ctx, lineEvery) != nil {
			return w.left()
		}
	}
}

// final reports whether asking again cannot help.
func final(err error) bool {
	var request *ops.RequestError
	var denied *deniedError
	return errors.As(err, &request) || errors.As(err, &denied)
}

// show says how far the run is.
func (w *watcher) show(p ops.RunProgress) {
	rate, left := w.speed(p)
	if !w.redraw {
		w.line(fmt.Sprintf("%s: %s", p.ID, plainProgress(p, rate, left)))
		return
	}
	w.line(barProgress(p, rate, left))
}

// line writes one, over the last one where that is possible.
func (w *watcher) line(text string) {
	text = oneLine(text)
	if w.redraw {
		_, _ = fmt.Fprintf(w.out, "\r\x1b[K%s", ops.Truncate(text, lineWidth)) // whoever closed it early wants no more of it
		return
	}
	_, _ = fmt.Fprintf(w.out, "%s %s\n", w.now().Format("15:04:05"), text)
}

// tell writes what is to be known about the run, once.
func (w *watcher) tell(note string) {
	if note == "" || note == w.told {
		return
	}
	w.told = note
	if w.redraw { // it stays, and the line that is drawn again comes below
		_, _ = fmt.Fprintf(w.out, "\r\x1b[K%s\n", oneLine(note))
		return
	}
	w.line(note)
}

// endLine lets what is written next begin on a line of its own.
func (w *watcher) endLine() {
	if w.redraw {
		_, _ = fmt.Fprintln(w.out)
	}
}

// speed is how many documents a second ended lately, and how long the known rest takes at that, or at the run's own rate; 0 when
// neither says.
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

// plainProgress is the progress in words.
func plainProgress(p ops.RunProgress, rate float64, left time.Duration) string {
	numbers := "batches: " + orDash(batchCounts(p.Stats.Batches))
	if p.Pattern == "" {
		numbers = "outcomes: " + orDash(counted(p.Counts))
	}
	return fmt.Sprintf("%s, %s of %s documents (%s), %s/s, %s; %s",
		runStatus(p.Run, p.Stats.Batches), strconv.Itoa(p.Done), known(p.Run), percent(p), decimal(rate), leftWords(p, left), numbers)
}

// barProgress is the progress as a bar that leaves room for the rest. What failed stands in front of it, where nothing cuts
// it off.
func barProgress(p ops.RunProgress, rate float64, left time.Duration) string {
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
	parts = append(parts, percent(p), strconv.Itoa(p.Done)+"/"+known(p.Run), decimal(rate)+"/s", leftWords(p, left))
	if p.Pattern != "" {
		parts = append(parts, busyWords(p.Stats.Batches))
	}
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

// busyWords are how many batches are done, under way and to come.
func busyWords(jobs map[run.BatchStatus]int) string {
	waiting := jobs[run.PendingQueue] + jobs[run.PendingRetry] + jobs[run.Queued]
	return fmt.Sprintf("batches %d done %d busy %d wait", jobs[run.Completed], jobs[run.Processing], waiting)
}

// runStatus is a run's status, and first of all what went wrong.
func runStatus(r run.Run, jobs map[run.BatchStatus]int) string {
	status := strings.ReplaceAll(string(r.Status), "_", " ")
	if r.Status == run.RunRunning && r.Cancel {
		status += ", to be cancelled"
	}
	if n := jobs[run.Failed]; n > 0 {
		status = strings.ToUpper(batches(n)) + " FAILED, " + status
	}
	return status
}

// known is how many documents a run has as far as that is known; with a plus when there may be more.
func known(r run.Run) string {
	total, more := r.Known()
	if more {
		return strconv.Itoa(total) + "+"
	}
	return strconv.Itoa(total)
}

// percent is how much of the known is done. While there may be more, that is not all.
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
	case total == 0 && p.Pattern == "":
		return "? left"
	case total == 0:
		return "searching"
	case p.Done >= total:
		return "no known one left"
	case left == 0:
		return "? left"
	}
	return left.String() + " left"
}

// decimal is a speed for people.
func decimal(n float64) string {
	const exact = 10
	if n >= exact || n == 0 {
		return strconv.FormatFloat(n, 'f', 0, 64)
	}
	return strconv.FormatFloat(n, 'f', 1, 64)
}

// batchCounts counts batches by status: those that failed come first, then in the order of a batch's life.
func batchCounts(jobs map[run.BatchStatus]int) string {
	var parts []string
	for _, s := range append([]run.BatchStatus{run.Failed}, slices.DeleteFunc(run.BatchStatuses(), func(s run.BatchStatus) bool { return s == run.Failed })...) {
		if n := jobs[s]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, s))
		}
	}
	return strings.Join(parts, ", ")
}

// noOutcome is what a document has that nobody has come to.
const noOutcome = "none"

// outcomeName is an outcome for people and receipts.
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
