package run

import (
	"cmp"
	"context"
	"time"

	"sqlwriter/internal/fault"
)

// carryOnFor bounds the time of one tick that executes runs.
const carryOnFor = 2 * time.Minute

// Carried is the result of CarryOn.
type Carried struct {
	// Runs counts the runs that it worked on, Ended those of them that ended, Failed those that failed.
	Runs, Ended, Failed int
	// Off says why it did nothing; empty otherwise.
	Off string
}

// CarryOn executes every run that no live process has, oldest first, because the queue is away: no message brings a
// manager or a worker. It takes at most two minutes, and ends before the invocation's time is nearly over. It comes
// after everything else of a tick. Errors by kind: infrastructure, throttled, quota, contention; the next tick
// continues.
func (r *Recovery) CarryOn(ctx context.Context) (done Carried, err error) {
	if err := r.p.Breaker.Permit(ctx); err != nil {
		done.Off = reasonOf(err)
		return done, nil
	}
	open, err := r.openRuns(ctx)
	if err != nil {
		return done, err
	}
	ctx, cancel := context.WithTimeout(ctx, carryOnFor+stopBefore)
	defer cancel()
	for _, row := range open {
		if r.nearDeadline(ctx) {
			break
		}
		executed, failed := newExecution(worker{r.base}, row.ID).once(ctx)
		switch {
		case fault.IsDependency(failed):
			return done, failed
		case transient(failed): // a lost race concerns this run alone
			err = cmp.Or(err, failed)
			continue
		case failed != nil: // recorded
			done.Failed++
		case executed.Busy:
			continue
		case executed.Left == "":
			done.Ended++
		}
		done.Runs++
	}
	return done, err
}
