package open

import (
	"slices"

	"sqlwriter/internal/blob"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/cosmos"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/reconcile"
	"sqlwriter/internal/retention"
	"sqlwriter/internal/run"
	"sqlwriter/internal/servicebus"
	"sqlwriter/internal/store/sqlite"
	"sqlwriter/internal/store/sqlserver"
)

// Faults are the tables of all adapters, each in its own order. SQL Server comes first.
func Faults() []fault.Row {
	return slices.Concat(sqlserver.Faults(), sqlite.Faults(), cosmos.Faults(), blob.Faults(), servicebus.Faults(),
		commit.Faults(), run.Faults(), reconcile.Faults(), retention.Faults(), invoice.Faults())
}
