package sqlserver

import (
	"context"
	"database/sql"

	mssql "github.com/microsoft/go-mssqldb"

	"sqlwriter/internal/retention"
)

const opPurge = "sqlserver: purge"

// Retention returns the retention of an environment. Each purge is one procedure, which refuses too few days itself.
// Codes are those of classify, or of retention.Check.
func (s *Store) Retention(sysName string) retention.Store { return purger{s, sysName} }

type purger struct {
	s       *Store
	sysName string
}

// Purge implements retention.Store.
func (r purger) Purge(ctx context.Context, part retention.Part, days, limit int) (rows int, err error) {
	if err := retention.Check(opPurge, part, limit); err != nil {
		return 0, err
	}
	err = r.s.readOne(ctx, opPurge, r.s.procedures.name(procPurge), []any{&rows},
		sql.Named("part", mssql.VarChar(part)),
		sql.Named("days", int64(days)), sql.Named("limit", int64(limit)), sql.Named("sys_name", r.sysName))
	if err != nil {
		return 0, r.s.closeIdleIfBroken(classifyDependency(opPurge, err))
	}
	return rows, nil
}
