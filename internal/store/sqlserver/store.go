package sqlserver

import (
	"context"
	"database/sql"
	"sync/atomic"
	"time"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// Options are what a deployment may want otherwise. The zero value is good.
type Options struct {
	// Layout is what the user's columns are called here.
	Layout invoice.Layout
	// Schema is the schema of the user's two tables; empty means dbo.
	Schema string
	// MaxOpen bounds the connections: 10. As many may stay idle, for MaxIdleTime: 30 s, because what lies between drops
	// idle ones without a word. MaxLifetime ends every connection after a while, 10 min, so that they move to where the
	// database is after a failover.
	MaxOpen                  int
	MaxIdleTime, MaxLifetime time.Duration
	// LockTimeout is how long a statement waits for a lock: 5 s, in whole milliseconds.
	LockTimeout time.Duration
	// PreviewOnly says that the login may do nothing but preview (deploy/sql/shadow_rights.sql): Check asks for no more.
	PreviewOnly bool
}

// Defaults of Options.
const (
	defaultSchema      = "dbo"
	defaultMaxOpen     = 10
	defaultMaxIdleTime = 30 * time.Second
	defaultMaxLifetime = 10 * time.Minute
	defaultLockTimeout = 5 * time.Second
)

// Store is a database on a server. It is safe for concurrent use and implements commit.Sink.
type Store struct {
	db     *sql.DB
	tables tables
	// previewOnly says that the login may do nothing but preview.
	previewOnly bool
	// maxOpen bounds the connections; as many may stay idle.
	maxOpen int
	// procedures are what is called, limits what Apply looks at before.
	procedures procedures
	limits     *columnLimits
	notes      *atomic.Pointer[[]string]
}

// Open is New and Ping.
func Open(ctx context.Context, dsn string, o Options) (*Store, error) {
	s, err := New(dsn, o)
	if err != nil {
		return nil, err
	}
	if err := s.Ping(ctx); err != nil {
		_ = s.Close() // nothing was done with it
		return nil, err
	}
	return s, nil
}

// New makes a Store that connects when it is first used, and changes nothing: see Migrate. The connection string is a
// sqlserver:// address as go-mssqldb reads it, with our defaults (see connector). Errors by kind: infrastructure, code "settings".
func New(dsn string, o Options) (*Store, error) {
	t, err := tablesOf(o)
	if err != nil {
		return nil, err
	}
	c, err := connector(dsn)
	if err != nil {
		return nil, err
	}
	s := &Store{tables: t, previewOnly: o.PreviewOnly, maxOpen: orDefault(o.MaxOpen, defaultMaxOpen), notes: &atomic.Pointer[[]string]{}}
	s.limits = &columnLimits{columns: t.layout.Columns, read: s.readColumns, now: time.Now}
	if s.procedures, err = t.procedures(); err != nil {
		return nil, fault.Wrap(fault.Internal, "sqlserver: open", "template", "the procedures cannot be produced", err)
	}
	s.db = sql.OpenDB(c)
	s.db.SetMaxOpenConns(s.maxOpen)
	s.db.SetMaxIdleConns(s.maxOpen)
	s.db.SetConnMaxIdleTime(orDefault(o.MaxIdleTime, defaultMaxIdleTime))
	s.db.SetConnMaxLifetime(orDefault(o.MaxLifetime, defaultMaxLifetime))
	return s, nil
}

// Ping connects, to tell a wrong address or password from a working one. Errors by kind: as classify.go says.
func (s *Store) Ping(ctx context.Context) error {
	return outside("sqlserver: open", s.db.PingContext(ctx))
}

// tablesOf is the part of the options that statements are made from.
func tablesOf(o Options) (tables, error) {
	t := tables{layout: o.Layout.OrDefault(), schema: orDefault(o.Schema, defaultSchema), lockTimeout: orDefault(o.LockTimeout, defaultLockTimeout)}
	if len(t.schema) > maxNameLength {
		return tables{}, fault.New(fault.Infrastructure, "sqlserver: open", codeSettings,
			"schema: expected a name of at most %d characters, found %d", maxNameLength, len(t.schema))
	}
	return t, nil
}

// maxNameLength is the most characters an identifier has.
const maxNameLength = 128

// DB is the connection pool, for set-up and tests.
func (s *Store) DB() *sql.DB { return s.db }

// Close closes every connection.
func (s *Store) Close() error { return s.db.Close() }

// orDefault is value, or the default where value is the zero value.
func orDefault[T comparable](value, otherwise T) T {
	var zero T
	if value == zero {
		return otherwise
	}
	return value
}
