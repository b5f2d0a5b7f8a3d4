package sqlite

import (
	"context"
	"database/sql"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/store/shared"
)

// Apply implements commit.Sink in one transaction. An error means that nothing was written.
//
// Own codes: "verdict_without_evidence" and "row_count" (contention); "value" (document); "bug" (internal);
// "timeout", "cancelled", "database_went_back" and "other_database" (infrastructure). Every other code is SQLite's
// extended result code.
func (s *Store) Apply(
	ctx context.Context, items []commit.Item, mode commit.Mode, known breaker.Heartbeat,
) ([]commit.DocumentOutcome, error) {
	if err := commit.CheckRequest(s.mapping, items, mode); err != nil {
		return nil, err
	}
	if len(items) == 0 && mode != commit.Preview {
		return []commit.DocumentOutcome{}, nil
	}
	payload, err := shared.Request(items, shared.Form{Mapping: s.mapping})
	if err != nil {
		return nil, err
	}
	var recipes shared.Recipes
	if mode == commit.Rewrite {
		if recipes, err = s.recipes(ctx); err != nil {
			return nil, err
		}
	}
	r := request{
		hook: s.afterStatement, items: items, payload: payload, mapping: s.mapping, recipes: recipes, mode: mode,
		known: known,
	}
	of := s.writes
	if mode == commit.Preview {
		r.hook, of = nil, s.previews
	}
	outcomes, err := r.send(ctx, of)
	if err != nil {
		return nil, s.classifyRequest(ctx, err) // after the rollback, because it needs the connection
	}
	return outcomes, nil
}

// send runs the request in a transaction of its own. Its end frees the only connection, after a panic too.
func (r *request) send(ctx context.Context, of *prepared) ([]commit.DocumentOutcome, error) {
	statements, err := of.ready(ctx) // before the transaction, which takes the writer's only connection
	if err != nil {
		return nil, err
	}
	tx, err := of.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: r.mode == commit.Preview})
	if err != nil {
		return nil, err
	}
	// A rollback fails after the end of the transaction. After a cancellation or on a full disk SQLite has rolled
	// back by itself.
	defer func() { _ = tx.Rollback() }()
	r.tx = tx
	r.statement = func(name string) statement { return tx.StmtContext(ctx, statements[name]) }
	outcomes, err := r.run(ctx)
	if err != nil || r.mode == commit.Preview {
		return outcomes, err
	}
	if err := tx.Commit(); err != nil {
		return nil, err
	}
	return outcomes, nil
}

type request struct {
	tx *sql.Tx
	// statement returns a prepared statement in tx.
	statement func(name string) statement
	hook      func(ctx context.Context, tx *sql.Tx, name string) error
	items     []commit.Item
	payload   shared.Payload
	mapping   *invoice.Mapping
	recipes   shared.Recipes // of a rewrite
	mode      commit.Mode
	known     breaker.Heartbeat
}

// run executes the request up to the commit. Its order is the order of locks on SQL Server: ledger, IVCE_DTL,
// IVCE_TRKG_MSTR.
func (r *request) run(ctx context.Context) ([]commit.DocumentOutcome, error) {
	if r.mode != commit.Preview {
		if err := checkHeartbeat("sqlite: apply",
			r.statement(stHeartbeatRow).QueryRowContext(ctx, r.known.SysName), r.known); err != nil {
			return nil, err
		}
	}
	if err := r.stage(ctx); err != nil {
		return nil, err
	}
	if r.mode == commit.Rewrite {
		if err := r.leaveAlone(ctx); err != nil {
			return nil, err
		}
	}
	if _, err := r.exec(ctx, stPrune); err != nil {
		return nil, err
	}
	if r.mode == commit.Preview {
		for _, name := range []string{stPreviewClear, stPreviewLedger} {
			if _, err := r.exec(ctx, name); err != nil {
				return nil, err
			}
		}
	}
	mode := r.mode
	if mode == commit.Preview {
		mode = commit.Write // a preview predicts the outcomes of a Write
	}
	if _, err := r.exec(ctx, stLedgerUpdate, append(r.releases(), sql.Named("mode", string(mode)))...); err != nil {
		return nil, err
	}
	if _, err := r.exec(ctx, stLedgerInsert); err != nil {
		return nil, err
	}
	t, err := r.verdicts(ctx)
	if err != nil {
		return nil, err
	}
	outcomes, err := t.Outcomes()
	if err != nil {
		return nil, err
	}
	if r.mode == commit.Preview {
		before, err := r.currentValues(ctx)
		if err != nil {
			return nil, err
		}
		t.Present(before, nil)
		return outcomes, nil
	}
	content, marks := t.Written()
	if err := r.writeTables(ctx, content, marks); err != nil {
		return nil, err
	}
	return outcomes, nil
}

// releases are the parameters of the items' releases.
func (r *request) releases() []any {
	return []any{sql.Named("releases", r.payload.Releases), sql.Named("hashes", r.payload.Hashes)}
}

// stage loads the request and leaves out documents with missing lines.
func (r *request) stage(ctx context.Context) error {
	for _, st := range []struct {
		name string
		args []any
	}{
		{stClearItems, nil},
		{stClearRows, nil},
		{stSend, []any{r.known.SysName}},
		{stLoadItems, []any{r.payload.JSON, r.payload.Hashes}},
		{stLoadRows, []any{r.payload.JSON, r.payload.Hashes}},
		{stMissing, nil},
		{stLeaveOut, nil},
	} {
		if _, err := r.exec(ctx, st.name, st.args...); err != nil {
			return err
		}
	}
	return nil
}

// writeTables writes the user's tables for the applied lines, those with content and those with a mark. It requires
// one written row for each line. Any other number is a race or an unexpected table, and the request is rolled back.
func (r *request) writeTables(ctx context.Context, content, marks int64) error {
	if content > 0 {
		detail, err := r.exec(ctx, stDetailUpdate)
		if err != nil {
			return err
		}
		if err := checkRowCount(invoice.Detail, detail, content); err != nil {
			return err
		}
	}
	if marks > 0 {
		marked, err := r.exec(ctx, stDetailMark, invoice.StatusAIError)
		if err != nil {
			return err
		}
		if err := checkRowCount(invoice.Detail, marked, marks); err != nil {
			return err
		}
	}
	if content == 0 {
		return nil
	}
	updated, err := r.exec(ctx, stTrackingUpdate)
	if err != nil {
		return err
	}
	inserted, err := r.exec(ctx, stTrackingInsert)
	if err != nil {
		return err
	}
	return checkRowCount(invoice.Tracking, updated+inserted, content)
}

func checkRowCount(table invoice.Table, found, expected int64) error {
	if found == expected {
		return nil
	}
	err := fault.New(fault.Contention, "sqlite: apply", "row_count",
		"%s: expected %d rows written, found %d", table, expected, found)
	err.Condition = fault.OwnWhenAlone
	return err
}

// exec runs one statement and returns the number of rows that it changed.
func (r *request) exec(ctx context.Context, name string, args ...any) (int64, error) {
	res, err := r.statement(name).ExecContext(ctx, args...)
	if err != nil {
		return 0, classify("sqlite: apply: "+name, err)
	}
	n, err := res.RowsAffected()
	if err != nil {
		return 0, classify("sqlite: apply: "+name, err)
	}
	return n, r.after(ctx, name)
}

// after calls the tests' hook between two statements.
func (r *request) after(ctx context.Context, name string) error {
	if r.hook == nil {
		return nil
	}
	return r.hook(ctx, r.tx, name)
}
