package run

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"sqlwriter/internal/fault"
)

// carryOnFor bounds the time of one tick that executes runs.
const carryOnFor = 2 * time.Minute

// pass does the next step of a run without documents, and stores its progress.
func (h *handOff) pass(ctx context.Context) error {
	kind, mark := h.source.kind, h.source.watermark
	step := h.p.Passes[kind.Kind]
	if mark.Pass == "" {
		mark.Pass = kind.Passes[0]
	}
	number := slices.Index(kind.Passes, mark.Pass)
	if step == nil || number < 0 {
		return fault.New(fault.Internal, "run: pass", "run_kind", "expected a step for pass %q of a %s, found none", fault.Truncate(mark.Pass, fault.MaxForeign), kind.Kind)
	}
	done, err := step(ctx, h.run, mark.Pass, mark.Continuation)
	if err != nil {
		return err
	}
	mark.Continuation = done.Next
	if done.Done {
		mark.Continuation = ""
		if number++; number < len(kind.Passes) {
			mark.Pass = kind.Passes[number]
		} else {
			mark.Done = true
		}
	}
	counts, documents := maps.Clone(h.run.Counts), 0
	if counts == nil {
		counts = map[string]int{}
	}
	for o, n := range done.Counts {
		counts[string(o)] += n
		documents += n
	}
	p := Progress{Watermark: mark.String(), Counts: counts, Documents: h.run.Documents + documents, Wait: done.Wait}
	if h.run.Rate > 0 {
		p.Wait = max(p.Wait, time.Duration(documents)*time.Minute/time.Duration(h.run.Rate))
	}
	if err := h.withStore(ctx, func(ctx context.Context) error { return h.p.Store.SavePass(ctx, h.lease, p) }); err != nil {
		return err
	}
	h.source.watermark, h.run.Counts, h.run.Documents, h.run.NextIn = mark, p.Counts, p.Documents, p.Wait
	return nil
}

// hasPasses reports whether a run has no documents of its own.
func (b base) hasPasses(r Run) bool {
	kind, _ := b.o.Kinds.Find(r.Kind)
	return len(kind.Passes) > 0
}

// Carried is the result of CarryOn.
type Carried struct {
	// Runs counts the runs that it worked on, Ended those of them that ended, Failed those that failed.
	Runs, Ended, Failed int
	// Off says why it did nothing; empty otherwise.
	Off string
}

// CarryOn executes the runs without documents, oldest first, for at most two minutes and until the invocation's time is nearly over. While
// the queue is away it executes every run that no live process has, because no message brings a manager or a worker. It comes after
// everything else of a tick. Errors by kind: infrastructure, throttled, quota, contention; the next tick continues.
func (r *Recovery) CarryOn(ctx context.Context, queueAway bool) (done Carried, err error) {
	if err := r.p.Breaker.Permit(ctx); err != nil {
		done.Off = reasonOf(err)
		return done, nil
	}
	var open []Run
	err = r.withStore(ctx, func(ctx context.Context) (err error) {
		open, err = r.p.Store.OpenRuns(ctx, r.o.SysName, maxOpenRuns)
		return err
	})
	if err != nil {
		return done, err
	}
	ctx, cancel := context.WithTimeout(ctx, carryOnFor+stopBefore)
	defer cancel()
	for _, row := range open {
		if r.nearDeadline(ctx) {
			break
		}
		if !r.hasPasses(row) && !queueAway {
			continue
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
