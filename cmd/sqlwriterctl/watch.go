package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sqlwriter/internal/ops"
	"sqlwriter/internal/opsapi"
	"sqlwriter/internal/run"
)

// watchEvery is the time between two requests of a watch.
const watchEvery = 5 * time.Second

// watch shows the progress of a run until it has ended, a line at each change. It goes on when the app does not answer.
// The end of the context ends the watching but not the run; the error says so.
func (a *app) watch(ctx context.Context, id string) (ops.RunProgress, error) {
	for last := ""; ; {
		p, err := a.run(ctx, id)
		switch {
		case ctx.Err() != nil:
			return p, stoppedWatching(id)
		case err != nil && (last == "" || final(err)):
			return p, err
		case err != nil:
			what, _ := a.describe(err)
			a.notef("no answer, trying again: %s", what)
		default:
			if line := progressLine(p); line != last {
				a.notef("%s  %s", a.time(a.now()), line)
				last = line
			}
			if p.Status != run.RunRunning {
				return p, nil
			}
		}
		if a.wait(ctx, watchEvery) != nil {
			return p, stoppedWatching(id)
		}
	}
}

// stoppedWatching is the error when the operator stops watching.
func stoppedWatching(id string) error {
	return advised(errors.New("watching stopped, the run continues"),
		"`sqlwriterctl run show %s --watch` watches it again, `sqlwriterctl run cancel %s --why TEXT` ends it", id, id)
}

// final reports whether a retry cannot help: a refusal is an answer.
func final(err error) bool {
	var request *ops.RequestError
	var denied *opsapi.DeniedError
	return errors.As(err, &request) || errors.As(err, &denied)
}

// progressLine formats the progress of a run.
func progressLine(p ops.RunProgress) string {
	return fmt.Sprintf("%s, %s; batches: %s", runStatus(p.Run, p.Stats.Batches), progressWords(p),
		orDash(batchCounts(p.Stats.Batches)))
}
