package run

import (
	"context"

	"sqlwriter/internal/events"
)

// completeRun ends the run if this was its last batch. If it fails, Recovery ends the run.
func (b base) completeRun(ctx context.Context, id string) bool {
	done, status := false, RunStatus("")
	err := b.withStoreAlways(context.WithoutCancel(ctx), func(ctx context.Context) (err error) {
		done, err = b.p.Store.CompleteRun(ctx, id, b.staleAfter(ctx, workerStale), func(s RunStatus, n Stats) Audit {
			status = s
			a := Audit{
				Action: CodeRunDone, Level: LevelInfo, By: b.o.Instance, Why: "all its batches ended", Run: id,
				Detail: detail(map[string]any{"status": s, "batches": n.Batches, "documents": n.Outcomes}),
			}
			switch s { //nolint:exhaustive // the others do not end a run
			case RunCompletedWithFailures:
				a.Level, a.Why = LevelWarn, "all its batches ended, and something is left to do"
			case RunCancelled:
				a.Action, a.Why = CodeRunCancelled, "an operator cancelled it"
			}
			return a
		})
		return err
	})
	if err != nil {
		b.log(ctx).Write(events.RunEndUnchecked, events.Fields{Run: id}.Of(err))
	}
	if done && err == nil {
		b.log(ctx).Write(events.RunEnded, events.Fields{Run: id, Status: string(status)})
	}
	return done && err == nil
}
