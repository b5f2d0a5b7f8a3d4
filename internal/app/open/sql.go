package open

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"sqlwriter/internal/adopt"
	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/config"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/fit"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/reconcile"
	"sqlwriter/internal/retention"
	"sqlwriter/internal/run"
	"sqlwriter/internal/store/migration"
	"sqlwriter/internal/store/shared"
	"sqlwriter/internal/store/sqlite"
	"sqlwriter/internal/store/sqlserver"
)

// Store is the interface of both engines, SQL Server and SQLite.
type Store interface {
	commit.Sink
	adopt.Ledger
	adopt.Reader
	fit.Database
	// MarkEmpty records that no other program has written results before.
	MarkEmpty(ctx context.Context, by string) error
	// Migrate also chooses the store's mapping. Mappings are those that were chosen, the last one first.
	Migrate(ctx context.Context) error
	Mappings(ctx context.Context) ([]invoice.Recorded, error)
	MigrationStatus(ctx context.Context) ([]migration.State, error)
	// Ping connects. Check connects and verifies that the tables fit the statements.
	Ping(ctx context.Context) error
	Check(ctx context.Context) error
	// AuditLog, RunStore, Reports, Findings and Retention return the stores of one environment.
	AuditLog(sysName string) ops.AuditLog
	RunStore(sysName string) run.Store
	Reports(sysName string) run.Reports
	Findings(sysName string) *shared.Findings
	Retention(sysName string) retention.Store
	// ReconcileRows compares the rows of one environment's ledger. The user keeps a line's row for keptDays after a
	// write, by the database's clock; 0 means for ever.
	ReconcileRows(sysName string, keptDays int) reconcile.Rows
	Close() error
}

// Database is a SQL database of either engine.
type Database struct {
	Store
	Engine  config.Engine
	Mapping *invoice.Mapping
	// Writer and Reader are connection pools. On a server both are the same pool.
	Writer, Reader *sql.DB
}

// SQL makes the database that the settings name, without connecting. previewOnly means that the login may only preview.
// Errors by kind: infrastructure.
func SQL(c config.SQL, m *invoice.Mapping, previewOnly bool) (*Database, error) {
	d := &Database{Engine: c.Engine, Mapping: m}
	if c.Engine == config.SQLServer {
		s, err := sqlserver.New(c.Connection.Reveal(), sqlserver.Options{
			Mapping: m, Schema: c.Schema, MaxOpen: c.MaxOpen, PreviewOnly: previewOnly,
			AnyCertificate: c.AnyCertificate, OneWriter: c.OneWriter,
		})
		if err != nil {
			return nil, err
		}
		d.Store, d.Writer, d.Reader = s, s.DB(), s.DB()
		return d, nil
	}
	s, err := sqlite.New(c.Connection.Reveal(), sqlite.Options{Mapping: m})
	if err != nil {
		return nil, err
	}
	d.Store, d.Writer, d.Reader = s, s.Writer(), s.Reader()
	return d, nil
}

// PartsAtOnce is how many parts of a refused request are sent at once. Other batches and the heartbeat have half of the
// connections.
func (d *Database) PartsAtOnce() int {
	const most = 4
	if d == nil {
		return 1
	}
	return max(1, min(most, d.Writer.Stats().MaxOpenConnections/2))
}

// Connect connects. It closes the database if that fails.
func (d *Database) Connect(ctx context.Context) error {
	if err := d.Ping(ctx); err != nil {
		return errors.Join(err, d.Close())
	}
	return nil
}

// Stores returns the stores of the environment that o names. p are the ports of runs; p.Store is set here.
func (d *Database) Stores(p run.Ports, o run.Options) ops.Stores {
	p.Store = d.RunStore(o.SysName)
	return ops.Stores{
		Audit: d.AuditLog(o.SysName), Runs: p.Store, Reports: d.Reports(o.SysName), Ledger: ledger{d},
		Executor: run.NewExecutor(p, o),
		Findings: d.Findings(o.SysName), Rows: d.ReconcileRows(o.SysName, 0), Mapping: d.Mapping,
		Mappings: d.Mappings,
		Check: func(ctx context.Context) error {
			if err := d.Check(ctx); err != nil {
				return err
			}
			_, err := d.CheckAdopted(ctx, "ops: check the database")
			return err
		},
		Preview: func(ctx context.Context, items []commit.Item) ([]commit.DocumentOutcome, error) {
			return d.Apply(ctx, items, commit.Preview, breaker.Heartbeat{})
		},
	}
}

// ledger implements ops.Ledger.
type ledger struct{ rows adopt.Reader }

// LedgerLines implements ops.Ledger.
func (l ledger) LedgerLines(ctx context.Context, lines []int64) ([]ops.LedgerLine, error) {
	rows, err := l.rows.Rows(ctx, lines)
	return ledgerLines(rows), err
}

// LedgerOf implements ops.Ledger.
func (l ledger) LedgerOf(ctx context.Context, document string) ([]ops.LedgerLine, error) {
	rows, err := l.rows.RowsOf(ctx, document)
	return ledgerLines(rows), err
}

func ledgerLines(rows []adopt.Row) (all []ops.LedgerLine) {
	for _, r := range rows {
		all = append(all,
			ops.LedgerLine{
				Line: r.Line, Document: r.DocumentID, SysName: r.SysName,
				Outcome: string(r.Outcome), SourceTS: r.SourceTS,
			})
	}
	return all
}

// CheckAdopted returns when the ledger was adopted, or an error unless it is. Without it an older result could
// overwrite a newer one (docs/requirements.md R59). Errors by kind: infrastructure, code "ledger_not_adopted"; those of
// adopt.Ledger.
func (d *Database) CheckAdopted(ctx context.Context, op string) (time.Time, error) {
	s, err := d.State(ctx)
	if err == nil && !s.Adopted() {
		err = fault.New(fault.Infrastructure, op, "ledger_not_adopted",
			"the ledger does not cover earlier results: run `sqlwriterctl ledger adopt` to its end, or with --empty if no earlier results exist (docs/cutover.md)")
	}
	return s.Finished, err
}

// Checked is a database that is checked before its first request. That request is the breaker's heartbeat, so a server
// that is down gets no more requests than probes. Checked implements commit.Sink.
type Checked struct {
	db    *Database
	check func(ctx context.Context) error
	// lock guards checked. It is a channel, so that waiting for it ends with the context.
	lock    chan struct{}
	checked bool
}

// NewChecked makes a Checked. check is called until it succeeds; db may be nil if check never succeeds.
func NewChecked(db *Database, check func(ctx context.Context) error) *Checked {
	return &Checked{db: db, check: check, lock: make(chan struct{}, 1)}
}

// Ready checks the database, unless an earlier check has succeeded. Errors: those of the check; infrastructure, code
// "starting", when ctx ends during the check of another request.
func (c *Checked) Ready(ctx context.Context) error {
	select {
	case c.lock <- struct{}{}:
		defer func() { <-c.lock }()
	case <-ctx.Done():
		return fault.Wrap(fault.Infrastructure, "app: open sql", "starting",
			"the deadline passed while SQL was being opened", ctx.Err())
	}
	if c.checked {
		return nil
	}
	err := c.check(ctx)
	c.checked = err == nil
	return err
}

// Close closes the database.
func (c *Checked) Close() error {
	if c.db == nil {
		return nil
	}
	return c.db.Close()
}

// Apply implements commit.Sink.
func (c *Checked) Apply(
	ctx context.Context, items []commit.Item, mode commit.Mode, known breaker.Heartbeat,
) ([]commit.DocumentOutcome, error) {
	if err := c.Ready(ctx); err != nil {
		return nil, err
	}
	return c.db.Apply(ctx, items, mode, known)
}

// Heartbeat implements commit.Sink.
func (c *Checked) Heartbeat(ctx context.Context, known breaker.Heartbeat) (breaker.Heartbeat, error) {
	if err := c.Ready(ctx); err != nil {
		return breaker.Heartbeat{}, err
	}
	return c.db.Heartbeat(ctx, known)
}

// TakeOver implements commit.Sink.
func (c *Checked) TakeOver(ctx context.Context, known breaker.Heartbeat) (breaker.Heartbeat, error) {
	if err := c.Ready(ctx); err != nil {
		return breaker.Heartbeat{}, err
	}
	return c.db.TakeOver(ctx, known)
}
