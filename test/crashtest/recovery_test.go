package crashtest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/invoice"
)

const (
	// hostPause is the host's pause between two offers of a batch.
	hostPause = 10 * time.Second
	// mostOffers and mostRounds are how much patience recovery has: far more than two faults can cost.
	mostOffers = 60
	mostRounds = 25
)

// drain is the trigger: it offers what changed until nothing is left, each batch again until it is taken; at most so
// many times in all.
func (w *world) drain(i *instance, offers int) (drained, crashed bool) {
	for offers > 0 {
		batch, upTo := w.feed(w.checkpoint, all)
		if len(batch) == 0 {
			w.checkpoint = upTo // what else changed is deleted
			return true, false
		}
		for retry := 0; ; retry++ {
			if offers--; offers < 0 {
				return false, false
			}
			err := w.offer(context.Background(), i, batch, retry)
			if i.dead {
				return false, true
			}
			if err == nil {
				w.checkpoint = upTo
				break
			}
			w.advance(hostPause)
		}
	}
	return false, false
}

// offer is one invocation of CommitResults.
func (w *world) offer(ctx context.Context, i *instance, batch []json.RawMessage, retry int) (err error) {
	w.do(ctx, i, func(ctx context.Context) {
		var report commit.Report
		report, err = i.commit.Run(ctx,
			commit.Delivery{
				Documents: batch, Received: i.now(), RetryCount: retry, RunID: fmt.Sprint("invocation ", len(w.steps)),
			})
		total := 0
		for _, n := range report.Outcomes {
			total += n
		}
		if !i.dead && total != len(batch) {
			w.violated("G1", "%d documents came, %d are counted: %v", len(batch), total, report.Outcomes)
		}
	})
	return err
}

// tick is one invocation of RecoverRetries. Its error is the host's to log: the next tick goes on.
func (w *world) tick(ctx context.Context, i *instance) (crashed bool) {
	return w.do(ctx, i, func(ctx context.Context) { _, _ = i.recover.Run(ctx) })
}

// run runs the path, with what the plan has for it, and then recovers until nothing is left to do.
func (w *world) run() {
	w.begin()
	w.path.act(w, w.start())
	w.settleDown()
}

// settleDown continues as the host does, with a new instance after each that dies, until nothing is left to do.
func (w *world) settleDown() {
	if w.runs != nil {
		w.runs.settle()
	}
	i := w.restart()
	ticked := time.Time{}
	for range mostRounds {
		if _, crashed := w.drain(i, mostOffers); crashed {
			i = w.restart()
			continue
		}
		next, quiet := w.next()
		if quiet {
			return
		}
		if !next.After(w.now()) && ticked.Equal(w.now()) {
			next = w.now().Add(5 * time.Minute)
		}
		w.until(next)
		if w.contrastWanted() {
			if _, crashed := w.drain(i, mostOffers); crashed {
				i = w.restart()
				continue
			}
		}
		if w.tick(context.Background(), i) {
			i = w.restart()
		}
		ticked = w.now()
	}
	w.violated("G1", "not quiet after %d rounds: %s", mostRounds, w.restless())
}

// restart makes another instance, a minute later.
func (w *world) restart() *instance {
	w.advance(time.Minute)
	return w.start()
}

// next is when a document that must go on is to be taken up by the timer; quiet reports that there is none and the feed
// is done.
func (w *world) next() (next time.Time, quiet bool) {
	quiet = w.checkpoint == len(w.changes)
	for _, id := range w.there() {
		d, _ := w.document(id)
		if w.given[id].rests(d) {
			continue
		}
		due := time.Unix(d.TS, 0).Add(10*time.Minute + 2*time.Second)
		if d.State.Status == invoice.RetryScheduled {
			due = time.Unix(d.State.RetryAfter, 0)
		}
		if next.IsZero() || due.Before(next) {
			next = due
		}
	}
	return next, quiet && next.IsZero()
}

// rests reports whether a document needs nothing more: it ended, or it may wait for an error of its own or a time that
// was set before.
func (g *given) rests(d invoice.Document) bool {
	switch {
	case g.untouched, d.State.Status == invoice.Committed, d.State.Status == invoice.Failed:
		return true
	case g.end == "":
		return d.State.Status == invoice.RetryScheduled
	}
	return false
}

func (w *world) restless() string {
	var found []string
	for _, id := range w.there() {
		if d, _ := w.document(id); !w.given[id].rests(d) {
			found = append(found, fmt.Sprintf("%s is %s", id, d.State.Status))
		}
	}
	if n := len(w.changes) - w.checkpoint; n > 0 {
		found = append(found, fmt.Sprintf("%d changes not taken from the feed", n))
	}
	return strings.Join(found, ", ")
}

// contrastWanted puts another good document when one waits to become a poison message: in a container that is in use
// there is always one, and without it nothing is blamed.
func (w *world) contrastWanted() bool {
	for _, id := range w.there() {
		g := w.given[id]
		d, _ := w.document(id)
		if g.rests(d) || g.code == "" {
			continue
		}
		w.contrasts++
		line := 9000 + int64(w.contrasts)
		w.sink.AddLines(line)
		name := fmt.Sprintf("2025-12-17 11:%02d:00.000000-06:00-0001-contrast", w.contrasts)
		w.put(want{id: name, json: doc(name, line, "contrast", ""), end: invoice.Committed})
		return true
	}
	return false
}
