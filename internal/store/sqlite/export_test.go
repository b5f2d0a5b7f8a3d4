package sqlite

import (
	"context"
	"database/sql"
	"time"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/store/migration"
	"sqlwriter/internal/store/shared"
	"sqlwriter/test/mapping"
)

// Statements returns the rendered statements of a write and of a preview by name.
func Statements() (write, preview map[string]string, err error) {
	return renderAll(nil)
}

// StatementsFor renders the statements of a write for another mapping.
func StatementsFor(m *invoice.Mapping) (map[string]string, error) {
	return renderFor(m, tablesOf("sqlwriter_", ledgerTable))
}

// WriteSteps are the names of a write's statements, in their order.
func WriteSteps() []string { return writeSteps() }

// SetAfterStatement sets the hook that runs after every statement of a write.
func (s *Store) SetAfterStatement(f func(ctx context.Context, tx *sql.Tx, name string) error) {
	s.afterStatement = f
}

// SetStatement replaces one statement of a write.
func (s *Store) SetStatement(name, text string) { s.write[name] = text }

// MigrateWith runs other migrations than this build's.
func (s *Store) MigrateWith(ctx context.Context, files ...migration.File) error {
	return s.migrate(ctx, files)
}

func MigrationFiles() ([]migration.File, error) { return migrationList() }

// Texts are the shared statements of folders, in this engine's syntax.
func Texts(folders ...string) (map[string]string, error) {
	return shared.Texts(dialect(nil), folders...)
}

func AdoptionText(name string) string { return adoptionText(name) }

func Classify(err error) error { return classify("sqlite: test", err) }

// InTx is a sink whose requests run inside tx, on temp tables of their own.
type InTx struct{ Tx *sql.Tx }

// unprepared is a statement that is prepared when it runs.
type unprepared struct {
	tx   *sql.Tx
	text string
}

func (u unprepared) ExecContext(ctx context.Context, args ...any) (sql.Result, error) {
	return u.tx.ExecContext(ctx, u.text, args...)
}

func (u unprepared) QueryContext(ctx context.Context, args ...any) (*sql.Rows, error) {
	return u.tx.QueryContext(ctx, u.text, args...)
}

func (u unprepared) QueryRowContext(ctx context.Context, args ...any) *sql.Row {
	return u.tx.QueryRowContext(ctx, u.text, args...)
}

// Heartbeat is not supported inside another transaction.
func (i InTx) Heartbeat(context.Context, breaker.Heartbeat) (breaker.Heartbeat, error) {
	return breaker.Heartbeat{}, nil
}

// TakeOver is not supported inside another transaction.
func (i InTx) TakeOver(context.Context, breaker.Heartbeat) (breaker.Heartbeat, error) {
	return breaker.Heartbeat{}, nil
}

// Apply runs a whole request in tx.
func (i InTx) Apply(
	ctx context.Context, items []commit.Item, mode commit.Mode, known breaker.Heartbeat,
) ([]commit.DocumentOutcome, error) {
	text, err := renderFor(mapping.InUse(), tablesOf("sqlwriter_inner_", ledgerTable))
	if err != nil {
		return nil, err
	}
	payload, err := shared.Request(items, shared.Form{Mapping: mapping.InUse()})
	if err != nil {
		return nil, err
	}
	if _, err := i.Tx.ExecContext(ctx, text[stTemp]); err != nil {
		return nil, err
	}
	r := request{tx: i.Tx, statement: func(name string) statement {
		return unprepared{i.Tx, text[name]}
	}, items: items, mapping: mapping.InUse(), payload: payload, mode: mode, known: known}
	return r.run(ctx)
}

// OpenReadOnly opens a file whose writer cannot write, as on a read-only disk.
func OpenReadOnly(path string) (*Store, error) {
	write, _, err := renderAll(nil)
	if err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", dsn(path, Options{}, true)+"&_txlock=immediate")
	return &Store{writer: db, write: write, busyTimeout: time.Second}, err
}
