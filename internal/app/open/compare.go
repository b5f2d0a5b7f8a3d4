package open

import (
	"github.com/rs/zerolog"

	"sqlwriter/internal/config"
	"sqlwriter/internal/cosmos"
	"sqlwriter/internal/reconcile"
	"sqlwriter/internal/run"
)

// Comparison is what a comparison needs beside the database.
type Comparison struct {
	// Results is the container of that name.
	Results  *cosmos.Container
	Leases   reconcile.Leases
	Evidence reconcile.Evidence
	// Mender starts the runs that mend. Breaker guards the database.
	Mender  reconcile.Mender
	Breaker run.Breaker
	Log     zerolog.Logger
}

// Passes returns the steps of the kinds of runs without documents. It makes no request.
func (d *Database) Passes(c config.Config, p Comparison) map[run.Kind]run.Step {
	o := reconcile.Options{
		SysName: c.SysName, Location: c.Location, RequestUnits: c.Reconcile.RU, Log: p.Log,
	}
	compares := reconcile.New(reconcile.Ports{
		Rows: d.ReconcileRows(c.SysName), Findings: d.Findings(c.SysName), Documents: p.Results.Reconcile(c.SysName), Evidence: p.Evidence, Leases: p.Leases,
		Mender: p.Mender, Breaker: p.Breaker,
	}, o)
	return map[run.Kind]run.Step{run.Kinds().Comparing().Kind: compares.Step}
}
