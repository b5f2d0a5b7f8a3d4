// Package outage simulates an outage of a local stack's database.
//
// A SQLite file has no server to stop, and the stack must not stop a server that the user named. So Off renames the app's
// ledger and heartbeat tables. To the app a missing table of its own is an infrastructure error, like a server that does not
// answer. Both tables are renamed: with the heartbeat in place, the error would count as each document's own.
package outage

import (
	"context"
	"database/sql"
	"fmt"

	"sqlwriter/internal/config"
)

// Off starts the outage. The caller must call on, which ends it, with a context that has not ended.
func Off(ctx context.Context, db *sql.DB, engine config.Engine) (on func(context.Context) error, err error) {
	t := textsOf(engine)
	if _, err := db.ExecContext(ctx, t.off); err != nil {
		return nil, fmt.Errorf("switch SQL off: %w", err)
	}
	return func(ctx context.Context) error { return t.switchOn(ctx, db) }, nil
}

// Mend ends an outage that a killed process left behind. Without one it does nothing.
func Mend(ctx context.Context, db *sql.DB, engine config.Engine) error {
	t := textsOf(engine)
	var left int
	if err := db.QueryRowContext(ctx, t.left).Scan(&left); err != nil {
		return fmt.Errorf("check whether SQL is off: %w", err)
	}
	if left == 0 {
		return nil
	}
	return t.switchOn(ctx, db)
}

// texts are the statements of one engine. left counts the renamed ledger tables.
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
