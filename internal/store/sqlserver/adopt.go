package sqlserver

import (
	"context"
	"database/sql"
	"embed"
	"encoding/json"

	mssql "github.com/microsoft/go-mssqldb"

	"sqlwriter/internal/adopt"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/store/shared"
)

//go:embed adoption/*.sql
var adoptionFiles embed.FS

// Operations of errors.
const (
	opAdopt    = "sqlserver: adopt"
	opAdoption = "sqlserver: adoption"
)

// adoptionStep is a statement of the adoption, by its file's name. It is constant, because it names no column of the
// user.
func adoptionStep(name string) step {
	text, err := adoptionFiles.ReadFile("adoption/" + name + ".sql")
	if err != nil {
		panic("sqlserver: " + err.Error()) // the names are constants of this package
	}
	return step{name: name, text: normalizeLineEnds(string(text))}
}

// adoptionText is a statement that is sent as text and not as a procedure.
func adoptionText(name string) string { return join([]step{adoptionStep(name)}) }

// State implements adopt.Ledger.
func (s *Store) State(ctx context.Context) (adopt.State, error) {
	state, err := shared.AdoptionState(opAdoption, s.db.QueryRowContext(ctx, adoptionText("state")))
	if err != nil {
		return adopt.State{}, s.closeIdleIfBroken(classifyDependency(opAdoption, err))
	}
	return state, nil
}

// MarkEmpty records that the user's tables have no rows from before this product. It changes nothing after an earlier
// record or a started adoption. Errors by kind: infrastructure, throttled, quota, contention.
func (s *Store) MarkEmpty(ctx context.Context, who string) error {
	_, err := s.db.ExecContext(ctx, adoptionText("empty"), sql.Named("who", who))
	if err = classifyDependency("sqlserver: mark empty", err); fault.Has(err, fault.OwnWhenAlone) {
		return nil // another caller made a record at the same time
	}
	return s.closeIdleIfBroken(err)
}

// Begin implements adopt.Ledger.
func (s *Store) Begin(ctx context.Context, was adopt.State, who string) (adopt.State, error) {
	return s.changeState(ctx, "sqlserver: begin adoption", "begin",
		sql.Named("phase", mssql.VarChar(was.Phase)),
		sql.Named("run", mssql.VarChar(uuidForm(was.Run))), sql.Named("who", who))
}

// Finish implements adopt.Ledger.
func (s *Store) Finish(ctx context.Context, run string, watermark int64) (adopt.State, error) {
	const op = "sqlserver: finish adoption"
	if len(run) != runLength {
		return adopt.State{}, shared.AdoptionMoved(op)
	}
	return s.changeState(ctx, op, "finish", sql.Named("run", mssql.VarChar(uuidForm(run))),
		sql.Named("from", watermark))
}

// changeState runs a request that changes the row of the state, if the row is as the request expects.
func (s *Store) changeState(ctx context.Context, op, name string, args ...any) (adopt.State, error) {
	var changed int
	err := classifyDependency(op, s.db.QueryRowContext(ctx, adoptionText(name), args...).Scan(&changed))
	switch {
	case fault.Has(err, fault.OwnWhenAlone): // another adoption began at the same time
		return adopt.State{}, shared.AdoptionMoved(op)
	case err != nil:
		return adopt.State{}, s.closeIdleIfBroken(err)
	case changed != 1:
		return adopt.State{}, shared.AdoptionMoved(op)
	}
	return s.State(ctx)
}

// Page implements adopt.Ledger in one request and one transaction. With an infrastructure error it may have been
// carried out; the same page again then changes nothing.
func (s *Store) Page(ctx context.Context, p adopt.Page) error {
	if len(p.Run) != runLength {
		return shared.AdoptionMoved(opAdopt)
	}
	rows, err := shared.AdoptionRows(p.Rows)
	if err != nil {
		return err
	}
	advance := adopt.Advance{}
	moves := int64(0)
	if p.Advance != nil {
		advance, moves = *p.Advance, 1
	}
	counts, err := json.Marshal(advance.Counts)
	if err != nil {
		return fault.Wrap(fault.Internal, opAdopt, fault.CodeBug, "the counts cannot be written as JSON", err)
	}
	_, err = s.db.ExecContext(ctx, s.procedures.name(procAdopt),
		sql.Named("rows", mssql.NVarCharMax(rows.JSON)), sql.Named("hashes", rows.Hashes),
		sql.Named("run", mssql.VarChar(uuidForm(p.Run))), sql.Named("from", p.From),
		sql.Named("advance", moves), sql.Named("to", advance.Watermark), sql.Named("counts", mssql.NVarCharMax(counts)))
	return s.closeIdleIfBroken(classifyDependency(opAdopt, err))
}

// readOne reads the one row of a procedure's answer. It reads the stream to its end, because an error may follow the
// row.
func (s *Store) readOne(ctx context.Context, op, procedure string, to []any, args ...any) error {
	rows, err := s.db.QueryContext(ctx, procedure, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // drain checks the end of the stream
	if !rows.Next() {
		if err := drain(rows); err != nil {
			return err
		}
		return fault.New(fault.Internal, op, "no_answer", "the request ended without an answer")
	}
	if err := rows.Scan(to...); err != nil {
		return err
	}
	return drain(rows)
}

// Rows implements adopt.Reader.
func (s *Store) Rows(ctx context.Context, lines []int64) ([]adopt.Row, error) {
	const op = "sqlserver: read ledger"
	wanted, err := json.Marshal(lines)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, op, fault.CodeBug, "the lines cannot be sent", err)
	}
	if len(lines) == 0 {
		return nil, nil
	}
	return s.ledgerRows(ctx, op, adoptionText("rows"), sql.Named("lines", mssql.NVarCharMax(wanted)))
}

// RowsOf implements adopt.Reader.
func (s *Store) RowsOf(ctx context.Context, document string) ([]adopt.Row, error) {
	return s.ledgerRows(ctx, "sqlserver: read ledger", adoptionText("rows_of"),
		shared.HashArg("key", invoice.Key(document)))
}

// ledgerRows reads rows of the ledger.
func (s *Store) ledgerRows(ctx context.Context, op, text string, arg any) ([]adopt.Row, error) {
	found, err := s.db.QueryContext(ctx, text, arg)
	if err != nil {
		return nil, s.closeIdleIfBroken(classifyDependency(op, err))
	}
	defer func() { _ = found.Close() }() // drain checks the end of the stream
	var rows []adopt.Row
	for found.Next() {
		r, err := shared.LedgerRow(found)
		if err != nil {
			return nil, classifyDependency(op, err)
		}
		rows = append(rows, r)
	}
	return rows, s.closeIdleIfBroken(classifyDependency(op, drain(found)))
}

// runLength is the length of a run's name in hex digits.
const runLength = 32

// uuidForm is a run's name in the server's form of a uniqueidentifier, in lower case.
func uuidForm(run string) string {
	if len(run) != runLength {
		return run
	}
	return run[:8] + "-" + run[8:12] + "-" + run[12:16] + "-" + run[16:20] + "-" + run[20:]
}
