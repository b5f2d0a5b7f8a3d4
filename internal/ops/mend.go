package ops

import (
	"context"
	"encoding/json"
	"fmt"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/reconcile"
	"sqlwriter/internal/run"
)

// Mend implements reconcile.Mender. If the message cannot be sent, the timer sends one. Errors by kind: infrastructure, throttled, quota,
// contention; internal for an unknown way to mend. After an error no run was started.
func (o *Ops) Mend(ctx context.Context, id string, mend reconcile.Mend, documents []string, why string) error {
	kinds := map[reconcile.Mend]run.KindRow{reconcile.WithRewrite: o.o.Kinds.Rewriting(), reconcile.WithWrite: o.o.Kinds.Reapplying()}
	kind, known := kinds[mend]
	if !known {
		return fault.New(fault.Internal, "ops: mend", "mend", "there is no way %q to mend", fault.Truncate(string(mend), fault.MaxForeign))
	}
	filter, err := json.Marshal(run.Filter{IDs: documents})
	if err != nil {
		return fault.Wrap(fault.Internal, "ops: mend", "encode", "the filter cannot be written as JSON", err)
	}
	row := run.Run{
		ID: id, SysName: o.o.SysName, Kind: kind.Kind, Filter: filter, Pattern: run.ChoosePattern(len(documents), false), Matched: len(documents),
		RequestedBy: ByTimer, Why: why,
	}
	exists := false
	err = o.stores(ctx, func(ctx context.Context, s Stores) error {
		err := s.Runs.StartRun(ctx, row, run.Audit{
			Code: run.CodeRunStart, Level: run.LevelInfo, By: ByTimer, Why: why, Run: id,
			Detail: json.RawMessage(fmt.Sprintf(`{"kind":%q,"matched":%d,"pattern":%q}`, row.Kind, row.Matched, row.Pattern)),
		})
		if exists = fault.CodeOf(err) == "run_exists"; exists {
			return nil
		}
		return err
	})
	if err == nil && !exists {
		_, _ = o.notify(ctx, row)
	}
	return err
}
