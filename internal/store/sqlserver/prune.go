package sqlserver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	mssql "github.com/microsoft/go-mssqldb"
)

// unusedDays is for how many days no build has started with a set of procedures that Prune drops. A slot that was
// stopped for longer needs `migrate up` again.
const unusedDays = 90

// Unused is a procedure of a set that nobody uses.
type Unused struct {
	Set, Procedure string
	// UsedOn is the day, in UTC, on which a build last started with the set.
	UsedOn time.Time
	// drop is the statement that drops it.
	drop string
}

// Prune drops the procedures of the sets that are not this build's and that no build has started with for 90 days. It
// returns them. A shadow does not say that it started. Errors by kind: see Migrate.
func (s *Store) Prune(ctx context.Context) (dropped []Unused, err error) {
	err = s.locked(ctx, func(tx *sql.Tx) error {
		if dropped, err = s.unused(ctx, tx); err != nil {
			return err
		}
		for _, u := range dropped {
			_, err := tx.ExecContext(ctx, `DELETE FROM sqlwriter.procedure_set WHERE set_hash = @set`,
				sql.Named("set", mssql.VarChar(u.Set)))
			if err == nil {
				_, err = tx.ExecContext(ctx, u.drop)
			}
			if err != nil {
				return fmt.Errorf("procedure %s: %w", u.Procedure, err)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return dropped, nil
}

// unused finds the procedures by the hash that ends their names.
func (s *Store) unused(ctx context.Context, tx *sql.Tx) (list []Unused, err error) {
	rows, err := tx.QueryContext(ctx, `SELECT
    s.set_hash, SCHEMA_NAME(p.schema_id) + N'.' + p.name AS procedure_name, s.used_on,
    N'DROP PROCEDURE ' + SCHEMA_NAME(p.schema_id) + N'.' + p.name AS drop_statement
FROM sqlwriter.procedure_set AS s
INNER JOIN sys.procedures AS p ON RIGHT(p.name, 13) = N'_' + s.set_hash
WHERE
    s.set_hash <> @set AND s.used_on < DATEADD(DAY, -@days, CAST(SYSUTCDATETIME() AS date))
    AND SCHEMA_NAME(p.schema_id) IN (N'sqlwriter', N'sqlwriter_preview')
ORDER BY s.set_hash, procedure_name`, sql.Named("set", mssql.VarChar(s.procedures.hash)), sql.Named("days", int64(unusedDays)))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var u Unused
		if err := rows.Scan(&u.Set, &u.Procedure, &u.UsedOn, &u.drop); err != nil {
			return nil, fmt.Errorf("scan: %w", err)
		}
		list = append(list, u)
	}
	return list, rows.Err()
}
