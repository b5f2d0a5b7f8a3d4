package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"encoding/json"
	"strconv"

	sqlite3 "modernc.org/sqlite/lib"

	"sqlwriter/internal/adopt"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/store/shared"
)

//go:embed adoption/*.sql
var adoptionFiles embed.FS

const opAdoption = "sqlite: adoption"

// The statements of the adoption, named after their files. A page runs the first group in this order.
const (
	adStage   = "stage"
	adLoad    = "load"
	adUpdate  = "update"
	adInsert  = "insert"
	adAdvance = "advance"

	adState  = "state"
	adBegin  = "begin"
	adFinish = "finish"
	adEmpty  = "empty"
	adRows   = "rows"
	adRowsOf = "rows_of"
)

// adoptionText is a statement of the adoption. It is constant, because it names no column of the user.
func adoptionText(name string) string {
	text, err := adoptionFiles.ReadFile("adoption/" + name + ".sql")
	if err != nil {
		panic("sqlite: " + err.Error()) // the name is one of the constants above
	}
	return string(text)
}

// State implements adopt.Ledger.
func (s *Store) State(ctx context.Context) (adopt.State, error) {
	state, err := shared.AdoptionState(opAdoption, s.reader.QueryRowContext(ctx, adoptionText(adState)))
	return state, s.classifyAdoption(ctx, opAdoption, err)
}

// MarkEmpty records that the user's tables have no rows from before this product. It changes nothing after an earlier
// record or a started adoption. Errors by kind: infrastructure, quota, contention.
func (s *Store) MarkEmpty(ctx context.Context, who string) error {
	_, err := s.writer.ExecContext(ctx, adoptionText(adEmpty), who)
	return s.classifyAdoption(ctx, "sqlite: mark empty", err)
}

// Begin implements adopt.Ledger.
func (s *Store) Begin(ctx context.Context, was adopt.State, who string) (adopt.State, error) {
	const op = "sqlite: begin adoption"
	return s.changeState(ctx, op, adBegin, string(was.Phase), was.Run, who)
}

// Finish implements adopt.Ledger.
func (s *Store) Finish(ctx context.Context, run string, watermark int64) (adopt.State, error) {
	return s.changeState(ctx, "sqlite: finish adoption", adFinish, run, watermark)
}

// changeState runs a statement that changes the row of the state, if the row is as the statement expects.
func (s *Store) changeState(ctx context.Context, op, name string, args ...any) (state adopt.State, err error) {
	err = s.inTx(ctx, op, func(tx *sql.Tx) error {
		if err := changeOne(ctx, tx, op, name, args...); err != nil {
			return err
		}
		state, err = shared.AdoptionState(opAdoption, tx.QueryRowContext(ctx, adoptionText(adState)))
		return err
	})
	if err != nil {
		return adopt.State{}, err
	}
	return state, nil
}

// Page implements adopt.Ledger in one transaction. The ledger is written first, the watermark last.
func (s *Store) Page(ctx context.Context, p adopt.Page) error {
	const op = "sqlite: adopt"
	rows, err := shared.AdoptionRows(p.Rows)
	if err != nil {
		return err
	}
	watermark, counts := sql.NullInt64{}, []byte("{}")
	if p.Advance != nil {
		watermark = sql.NullInt64{Int64: p.Advance.Watermark, Valid: true}
		if counts, err = json.Marshal(p.Advance.Counts); err != nil {
			return fault.Wrap(fault.Internal, op, fault.CodeBug, "the counts cannot be written as JSON", err)
		}
	}
	return s.inTx(ctx, op, func(tx *sql.Tx) error {
		for _, st := range []struct {
			name string
			args []any
		}{{adStage, nil}, {adLoad, []any{rows.JSON, rows.Hashes}}, {adUpdate, []any{p.Run}}, {adInsert, []any{p.Run}}} {
			if err := s.execAdoption(ctx, tx, st.name, st.args...); err != nil {
				return err
			}
		}
		return changeOne(ctx, tx, op, adAdvance, p.Run, p.From, watermark, string(counts))
	})
}

// Rows implements adopt.Reader.
func (s *Store) Rows(ctx context.Context, lines []int64) ([]adopt.Row, error) {
	const op = "sqlite: read ledger"
	wanted, err := json.Marshal(lines)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, op, fault.CodeBug, "the lines cannot be sent", err)
	}
	return s.ledgerRows(ctx, op, adoptionText(adRows), string(wanted))
}

// RowsOf implements adopt.Reader.
func (s *Store) RowsOf(ctx context.Context, document string) ([]adopt.Row, error) {
	return s.ledgerRows(ctx, "sqlite: read ledger", adoptionText(adRowsOf),
		shared.HashArg("key", invoice.Key(document)))
}

// ledgerRows reads rows of the ledger.
func (s *Store) ledgerRows(ctx context.Context, op, text string, arg any) ([]adopt.Row, error) {
	found, err := s.reader.QueryContext(ctx, text, arg)
	if err != nil {
		return nil, s.classifyAdoption(ctx, op, err)
	}
	defer func() { _ = found.Close() }() // a failure is in found.Err
	var rows []adopt.Row
	for found.Next() {
		r, err := shared.LedgerRow(found)
		if err != nil {
			return nil, classify(op, err)
		}
		rows = append(rows, r)
	}
	return rows, classify(op, found.Err())
}

// inTx runs f in one transaction on the writer's connection. Its end frees the connection, after a panic too.
func (s *Store) inTx(ctx context.Context, op string, f func(tx *sql.Tx) error) error {
	err := func() error {
		tx, err := s.writer.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // fails after the end of the transaction
		if err := f(tx); err != nil {
			return err
		}
		return tx.Commit()
	}()
	return s.classifyAdoption(ctx, op, err) // after the rollback, because it needs the connection
}

// execAdoption runs one statement.
func (s *Store) execAdoption(ctx context.Context, tx *sql.Tx, name string, args ...any) error {
	if _, err := tx.ExecContext(ctx, adoptionText(name), args...); err != nil {
		return err
	}
	if s.afterStatement != nil {
		return s.afterStatement(ctx, tx, "adopt_"+name)
	}
	return nil
}

// changeOne runs a statement that changes the row of the state. It returns AdoptionMoved if no row was as expected.
func changeOne(ctx context.Context, tx *sql.Tx, op, name string, args ...any) error {
	res, err := tx.ExecContext(ctx, adoptionText(name), args...)
	if err != nil {
		return err
	}
	switch n, err := res.RowsAffected(); {
	case err != nil:
		return err
	case n == 1:
		return nil
	}
	return shared.AdoptionMoved(op)
}

// classifyAdoption classifies an error of the adoption. SQLite's generic code can only mean a missing table, because
// these statements are constant and take no value that could fail.
func (s *Store) classifyAdoption(ctx context.Context, op string, err error) error {
	err = classify(op, err)
	if fault.CodeOf(err) == strconv.Itoa(sqlite3.SQLITE_ERROR) {
		if schema := s.Check(ctx); schema != nil {
			return schema
		}
		return fault.Wrap(fault.Infrastructure, op, "schema", "a table or column of the statement does not exist", err)
	}
	return err
}
