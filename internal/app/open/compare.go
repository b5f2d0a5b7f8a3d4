package open

import (
	"context"

	"github.com/rs/zerolog"

	"sqlwriter/internal/config"
	"sqlwriter/internal/cosmos"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/reconcile"
	"sqlwriter/internal/run"
)

// Comparison is what a comparison needs beside the database.
type Comparison struct {
	// Results is the container of that name, and Reader reads its documents.
	Results *cosmos.Container
	Reader  invoice.Reader
	// Mend starts the run that mends. Breaker guards the database.
	Mend    func(ctx context.Context, comparison string) error
	Breaker run.Breaker
	Log     zerolog.Logger
}

// Reconcile makes what compares the environment. It makes no request.
func (d *Database) Reconcile(c config.Config, p Comparison) *reconcile.Reconcile {
	return reconcile.New(reconcile.Ports{
		Rows: d.ReconcileRows(c.SysName, c.Reconcile.LinesKeptDays), Findings: d.Findings(c.SysName), Finder: p.Results,
		Mend: p.Mend, Breaker: p.Breaker,
	}, reconcile.Options{
		SysName: c.SysName, Reader: p.Reader, At: c.Reconcile.At, Location: c.Location, RequestUnits: c.Reconcile.RU,
		Lines: c.Reconcile.Lines, Log: p.Log,
	})
}
