package sqlserver

import (
	"context"
	"database/sql"

	"sqlwriter/internal/fault"
)

const opProbe = "sqlserver: probe"

// codeReadOnly says that the database answers reads only: a secondary replica, or one that was set so.
const codeReadOnly = "read_only"

// probeText asks whether the database that the connection came to can be written to.
const probeText = "SELECT CONVERT(nvarchar(20), DATABASEPROPERTYEX(DB_NAME(), N'Updateability'))"

// Probe implements writer.Sink. It touches no table, so nobody's lock is in its way. Codes of our own: "read_only"
// (infrastructure); every other code is as for Apply.
func (s *Store) Probe(ctx context.Context) error {
	var updateability sql.NullString
	if err := s.db.QueryRowContext(ctx, probeText).Scan(&updateability); err != nil {
		return s.failed(outside(opProbe, err))
	}
	return probed(updateability.String)
}

// probed is what the database's property means. A server that does not know it is believed until a write fails.
func probed(updateability string) error {
	if updateability == "READ_ONLY" {
		return fault.New(fault.Infrastructure, opProbe, codeReadOnly, "the database is read-only: a failover, or a replica")
	}
	return nil
}
