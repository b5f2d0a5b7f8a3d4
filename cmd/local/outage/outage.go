// Package outage switches the database of a local stack off, for showing what an outage costs. A SQLite file has no server
// that could be stopped, and a server that somebody named is not ours to stop; so our own ledger and heartbeat are taken out of
// reach by other names. To the writer these are objects that are not there: infrastructure, like a server that does not answer.
// Without the ledger alone the heartbeat would be committed, and each document would look like the trouble.
package outage

import (
	"context"
	"database/sql"
	"fmt"

	"sqlwriter/internal/config"
)

// Off takes the database away and answers how it comes back. on must be called, with a context that has not ended.
func Off(ctx context.Context, db *sql.DB, engine config.Engine) (on func(context.Context) error, err error) {
	t := textsOf(engine)
	if _, err := db.ExecContext(ctx, t.off); err != nil {
		return nil, fmt.Errorf("switch SQL off: %w", err)
	}
	return func(ctx context.Context) error { return t.switchOn(ctx, db) }, nil
}

// Mend switches on what a killed process left switched off.
func Mend(ctx context.Context, db *sql.DB, engine config.Engine) error {
	t := textsOf(engine)
	var left int
	if err := db.QueryRowContext(ctx, t.left).Scan(&left); err != nil {
		return fmt.Errorf("look whether SQL was left off: %w", err)
	}
	if left == 0 {
		return nil
	}
	return t.switchOn(ctx, db)
}

// texts are the statements of one engine: left counts the ledgers that are out of reach.
type texts struct{ off, on, left string }

func textsOf(engine config.Engine) texts {
	if engine == config.SQLServer {
		return texts{
			off: `BEGIN TRAN; EXEC sp_rename 'sqlwriter.ledger', 'ledger_off', 'OBJECT';
				EXEC sp_rename 'sqlwriter.heartbeat', 'heartbeat_off', 'OBJECT'; COMMIT`,
			on: `BEGIN TRAN; EXEC sp_rename 'sqlwriter.ledger_off', 'ledger', 'OBJECT';
				EXEC sp_rename 'sqlwriter.heartbeat_off', 'heartbeat', 'OBJECT'; COMMIT`,
			left: `SELECT COUNT(*) FROM sys.tables AS t JOIN sys.schemas AS s ON s.schema_id = t.schema_id WHERE s.name = 'sqlwriter' AND t.name = 'ledger_off'`,
		}
	}
	return texts{
		off: `BEGIN; ALTER TABLE sqlwriter_ledger RENAME TO sqlwriter_ledger_off;
			ALTER TABLE sqlwriter_heartbeat RENAME TO sqlwriter_heartbeat_off; COMMIT`,
		on: `BEGIN; ALTER TABLE sqlwriter_ledger_off RENAME TO sqlwriter_ledger;
			ALTER TABLE sqlwriter_heartbeat_off RENAME TO sqlwriter_heartbeat; COMMIT`,
		left: `SELECT count(*) FROM sqlite_master WHERE name = 'sqlwriter_ledger_off'`,
	}
}

func (t texts) switchOn(ctx context.Context, db *sql.DB) error {
	if _, err := db.ExecContext(ctx, t.on); err != nil {
		return fmt.Errorf("switch SQL on again (by hand: %s): %w", t.on, err)
	}
	return nil
}
