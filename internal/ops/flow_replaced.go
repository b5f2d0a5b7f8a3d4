package ops

import (
	"context"
	"fmt"
	"time"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/run"
)

const (
	// beforeBackup is how long before the backup's time documents are written again: clocks differ, and a backup takes a while.
	// What the database has stays untouched.
	beforeBackup = 10 * time.Minute
	// comparedRate bounds the comparison afterwards, in lines a minute.
	comparedRate = 60_000
)

// resumeReplaced accepts a database that was restored or is new, and starts the runs that bring it up to date. It first counts, and looks
// whether the database can be used, so that a refusal changes nothing. It may be repeated: what was written again is unchanged.
func (o *Ops) resumeReplaced(ctx context.Context, r ResumeFlow) (FlowChange, error) {
	kind := o.o.Kinds.Reapplying()
	start := StartRequest{Kind: kind.Kind, Why: r.Why, DryRun: r.DryRun, All: r.DatabaseNew}
	if r.DatabaseRestored {
		start.From = r.Since.Add(-beforeBackup)
	}
	if !r.DryRun {
		if _, err := checkReason(ctx, r.Why); err != nil {
			return FlowChange{}, err
		}
		if o.o.ReadOnly != "" {
			return FlowChange{}, refuse(Conflict, "%s", o.o.ReadOnly)
		}
	}
	counted, err := o.previewRun(ctx, kind, start, nil)
	if err != nil {
		return FlowChange{}, err
	}
	if r.DryRun {
		is := o.flowView(o.p.Breaker.View(ctx))
		return FlowChange{Was: is, Is: is, DryRun: true, Reapply: &counted}, nil
	}
	if err := o.withStores(ctx, func(ctx context.Context, s Stores) error { return s.Check(ctx) }); err != nil {
		return FlowChange{}, err
	}
	taken := false
	change, err := o.change(ctx, r.Why, func(ctx context.Context, by, why string) (err error) {
		taken, err = o.p.Breaker.Accept(ctx, by, why)
		return err
	})
	if err != nil {
		return change, err
	}
	change.Accepted = taken
	if change.Reapply, change.Compare, err = o.bringUpToDate(ctx, start, counted); err != nil {
		return change, begun(err)
	}
	return change, nil
}

// bringUpToDate starts the run that writes again, unless there is nothing to write, and the comparison that follows it.
func (o *Ops) bringUpToDate(ctx context.Context, start StartRequest, counted Started) (reapply, compare *Started, err error) {
	if counted.Matched > 0 || counted.AtLeast {
		if counted, err = o.begin(ctx, start, counted); err != nil {
			return nil, nil, err
		}
	}
	after := StartRequest{
		Kind: o.o.Kinds.Comparing().Kind, Why: start.Why, Filter: run.Filter{Whole: true, Run: counted.Run}, Rate: comparedRate,
	}
	compared, err := o.begin(ctx, after, Started{Kind: after.Kind, Pattern: run.InPasses, Failures: []Failures{}, First: []Match{}})
	return &counted, &compared, err
}

// begun says that an action is half done.
func begun(err error) error {
	e := fault.As(err)
	if e == nil {
		return fmt.Errorf("the database was accepted, and not all runs were started: repeat the command: %w", err)
	}
	wrapped := *e
	wrapped.Reason = "the database was accepted, and not all runs were started: repeat the command: " + e.Reason
	return &wrapped
}
