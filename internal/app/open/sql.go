package open

import (
	"context"
	"database/sql"
	"errors"

	"sqlwriter/internal/adopt"
	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/config"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/run"
	"sqlwriter/internal/store/migration"
	"sqlwriter/internal/store/sqlite"
	"sqlwriter/internal/store/sqlserver"
)

// Store is what both engines do.
type Store interface {
	commit.Sink
	adopt.Ledger
	adopt.Reader
	// MarkEmpty says that nothing was written before us.
	MarkEmpty(ctx context.Context, who string) error
	// Adopted tells whether the ledger knows what was written before us.
	Adopted(ctx context.Context) (bool, error)
	Migrate(ctx context.Context) error
	MigrationStatus(ctx context.Context) ([]migration.State, error)
	// Ping connects; Check connects and tells whether the tables are what the statements need.
	Ping(ctx context.Context) error
	Check(ctx context.Context) error
	// AuditLog, RunStore and Reports are an environment's.
	AuditLog(sysName string) ops.AuditLog
	RunStore(sysName string) run.Store
	Reports(sysName string) run.Reports
	Close() error
}

// Database is a SQL database, whichever its engine is.
type Database struct {
	Store
	Engine config.Engine
	Layout invoice.Layout
	// Writer and Reader are its pools of connections: one and the same on a server.
	Writer, Reader *sql.DB
}

// SQL makes the database that the settings name. previewOnly says that the login may do nothing but preview. Errors by kind:
// infrastructure.
func SQL(c config.SQL, layout invoice.Layout, previewOnly bool) (*Database, error) {
	d := &Database{Engine: c.Engine, Layout: layout.OrDefault()}
	if c.Engine == config.SQLServer {
		s, err := sqlserver.New(c.Connection.Reveal(), sqlserver.Options{
			Layout: layout, Schema: c.Schema, MaxOpen: c.MaxOpen, PreviewOnly: previewOnly,
		})
		if err != nil {
			return nil, err
		}
		d.Store, d.Writer, d.Reader = s, s.DB(), s.DB()
		return d, nil
	}
	s, err := sqlite.New(c.Connection.Reveal(), sqlite.Options{Layout: layout})
	if err != nil {
		return nil, err
	}
	d.Store, d.Writer, d.Reader = s, s.Writer(), s.Reader()
	return d, nil
}

// Connect connects, and closes a database that does not answer.
func (d *Database) Connect(ctx context.Context) error {
	if err := d.Ping(ctx); err != nil {
		return errors.Join(err, d.Close())
	}
	return nil
}

// Stores are those of an environment.
func (d *Database) Stores(sysName string) ops.Stores {
	return ops.Stores{Audit: d.AuditLog(sysName), Runs: d.RunStore(sysName), Reports: d.Reports(sysName)}
}

// CheckAdopted is an error of op while nobody has said what was written before us: an older result could then overwrite what a
// line holds (docs/requirements.md R59).
func (d *Database) CheckAdopted(ctx context.Context, op string) error {
	switch yes, err := d.Adopted(ctx); {
	case err != nil:
		return err
	case !yes:
		return fault.New(fault.Infrastructure, op, "ledger_not_adopted",
			"the ledger does not know what was written before: run `sqlwriterctl ledger adopt` to its end, or with --empty where nothing was (docs/cutover.md)")
	}
	return nil
}

// Checked is a database that is checked before its first request. The breaker's heartbeat is that request, so a server that is
// down is asked no more often than it is probed. It implements commit.Sink.
type Checked struct {
	db    *Database
	check func(ctx context.Context) error
	// turn is held by the goroutine that checks or reads checked.
	turn    chan struct{}
	checked bool
}

// NewChecked makes one. check is called until it succeeds; db may be nil if it never does.
func NewChecked(db *Database, check func(ctx context.Context) error) *Checked {
	return &Checked{db: db, check: check, turn: make(chan struct{}, 1)}
}

// Ready checks the database unless that has succeeded. Errors: those of the check; infrastructure, code "starting", when ctx
// ends while another request checks.
func (c *Checked) Ready(ctx context.Context) error {
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return fault.Wrap(fault.Infrastructure, "app: open sql", "starting", "the time was over while SQL was being opened", ctx.Err())
	}
	if c.checked {
		return nil
	}
	err := c.check(ctx)
	c.checked = err == nil
	return err
}

// Close closes every connection.
func (c *Checked) Close() error {
	if c.db == nil {
		return nil
	}
	return c.db.Close()
}

// Apply implements commit.Sink.
func (c *Checked) Apply(ctx context.Context, items []commit.Item, mode commit.Mode, known breaker.Heartbeat) ([]commit.Outcome, error) {
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
