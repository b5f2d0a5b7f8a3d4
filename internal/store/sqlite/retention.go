package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"sqlwriter/internal/retention"
)

const opPurge = "sqlite: purge"

// Retention returns the retention of an environment. Codes are those of AuditLog, or of retention.Check.
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
	if err := retention.CheckDays(opPurge, days); err != nil {
		return 0, err
	}
	tx, err := r.s.writer.BeginTx(ctx, nil)
	if err != nil {
		return 0, classifyDependency(opPurge, err)
	}
	defer func() { _ = tx.Rollback() }() // fails after the commit
	p := purge{
		tx: tx, text: r.s.write, args: []any{sql.Named("sys_name", r.sysName), sql.Named("days", days)}, left: limit,
	}
	if part == retention.EndedRuns {
		err = p.run(ctx)
	} else {
		err = p.delete(ctx, "purge_"+string(part))
	}
	if err == nil {
		err = tx.Commit()
	}
	if err != nil {
		return 0, classifyDependency(opPurge, err)
	}
	return limit - p.left, nil
}

// purge is one purge in its transaction.
type purge struct {
	tx   *sql.Tx
	text statements
	args []any
	// left is how many rows it may still delete.
	left int
}

// run deletes what it may of the run that ended first. Its own row goes last.
func (p *purge) run(ctx context.Context) error {
	var id string
	err := p.tx.QueryRowContext(ctx, p.text["purge_run"], p.args...).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	p.args = []any{sql.Named("run", id)}
	if _, err := p.tx.ExecContext(ctx, p.text["purge_run_begin"], p.args...); err != nil {
		return err
	}
	for _, statement := range []string{"purge_batches", "purge_items", "purge_workers", "purge_run_end"} {
		if p.left == 0 {
			break
		}
		if err := p.delete(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

func (p *purge) delete(ctx context.Context, statement string) error {
	done, err := p.tx.ExecContext(ctx, p.text[statement], append(p.args, sql.Named("limit", p.left))...)
	if err != nil {
		return err
	}
	n, err := done.RowsAffected()
	p.left -= int(n)
	return err
}
