package ops

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/run"
)

// ByTimer is who starts the nightly comparison, in its run and in the audit log: the function's name.
const ByTimer = "Reconcile"

const (
	// nightlyRate bounds the nightly comparison, in lines a minute: a drain beside it keeps most of SQL.
	nightlyRate = 60_000
	// maxSysNameInRun is the longest environment's name in the id of a run; a longer one is hashed. The ids of the runs that mend are
	// longer than the nightly run's.
	maxSysNameInRun = 32
)

// Nightly is what a tick of the timer Reconcile did.
type Nightly struct {
	// Run is today's run, and Did what became of it; both empty with Off.
	Run string
	Did string
	// Off says why there is none; empty otherwise.
	Off string
}

// StartNightly starts the comparison of the day in the deployment's time zone, which also mends. If it was started before, or the one of
// an earlier day still runs, nothing changes. Errors by kind: infrastructure, throttled, quota, contention; nothing was started then.
func (o *Ops) StartNightly(ctx context.Context) (Nightly, error) {
	if o.o.ReadOnly != "" {
		return Nightly{Off: o.o.ReadOnly}, nil
	}
	kind := o.o.Kinds.Comparing()
	filter, err := json.Marshal(run.Filter{Mend: true})
	if err != nil {
		return Nightly{}, fault.Wrap(fault.Internal, "ops: reconcile", "encode", "the filter cannot be written as JSON", err)
	}
	row := run.Run{
		ID: nightlyID(kind.Kind, o.o.SysName, o.o.Now().In(o.o.Location)), SysName: o.o.SysName, Kind: kind.Kind, Filter: filter,
		Pattern: run.InPasses, Rate: nightlyRate, RequestedBy: ByTimer, Why: "the nightly comparison",
	}
	done := Nightly{Run: row.ID, Did: "started"}
	err = o.stores(ctx, func(ctx context.Context, s Stores) error {
		if _, there, err := s.Runs.Run(ctx, row.ID); err != nil || there {
			done.Did = "was started before"
			return err
		}
		open, err := s.Runs.OpenRuns(ctx, o.o.SysName, maxRunsCounted)
		if err != nil {
			return err
		}
		// A store that is away must not leave a run for each night, all waiting for the first.
		if i := slices.IndexFunc(open, func(r run.Run) bool { return r.Kind == kind.Kind && r.RequestedBy == ByTimer }); i >= 0 {
			done = Nightly{Run: open[i].ID, Did: "still runs"}
			return nil
		}
		err = s.Runs.StartRun(ctx, row, run.Audit{Code: run.CodeRunStart, Level: run.LevelInfo, By: ByTimer, Why: row.Why, Run: row.ID})
		if fault.CodeOf(err) == "run_exists" {
			done.Did, err = "was started before", nil
		}
		return err
	})
	if err != nil {
		return Nightly{}, err
	}
	return done, nil
}

// nightlyID is the id of a day's comparison. Environments may share a database, where ids of runs are unique.
func nightlyID(kind run.Kind, sysName string, day time.Time) string {
	const digits = 8
	if len(sysName) > maxSysNameInRun {
		sum := sha256.Sum256([]byte(sysName))
		sysName = hex.EncodeToString(sum[:])[:digits]
	}
	return string(kind) + "-" + day.Format(time.DateOnly) + "-" + sysName
}
