package sqlserver

import (
	"context"
	"database/sql"
	"sync/atomic"
	"time"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// Options are the settings of a deployment. Zero values mean the defaults.
type Options struct {
	// Mapping has the user's columns; nil means the default.
	Mapping *invoice.Mapping
	// Schema is the schema of the user's two tables; empty means dbo.
	Schema string
	// MaxOpen bounds the connections; 0 means 10. As many may be idle.
	//
	// MaxIdleTime bounds the idle time; 0 means 30 s, because network devices drop idle connections silently.
	// MaxLifetime bounds the age; 0 means 10 min, so that connections move to the new server after a failover.
	MaxOpen                  int
	MaxIdleTime, MaxLifetime time.Duration
	// LockTimeout is how long a statement waits for a lock, in whole milliseconds; 0 means 5 s.
	LockTimeout time.Duration
	// AnyCertificate accepts TrustServerCertificate for a server on another machine. Nobody checks then whose server
	// gets the password.
	AnyCertificate bool
	// OneWriter lets one transaction of all stores write the user's tables at a time. Another one waits for
	// LockTimeout.
	OneWriter bool
	// PreviewOnly means that the login may only preview (deploy/sql/shadow_rights.sql). Check then requires no other
	// rights.
	PreviewOnly bool
}

const (
	defaultSchema      = "dbo"
	defaultMaxOpen     = 10
	defaultMaxIdleTime = 30 * time.Second
	defaultMaxLifetime = 10 * time.Minute
	defaultLockTimeout = 5 * time.Second
)

// Store is a database on a server and implements commit.Sink. It is safe for concurrent use.
type Store struct {
	db          *sql.DB
	tables      tables
	previewOnly bool
	oneWriter   bool
	maxOpen     int
	// procedures are those that the store calls. limits are those of the user's columns.
	procedures procedures
	limits     *columnLimits
	notes      *atomic.Pointer[[]string]
}

// Open connects once to check the address and the login. It changes nothing; Migrate does. The connection string is a
// sqlserver:// address of go-mssqldb with our defaults (see connector). Errors by kind: infrastructure, code
// "settings" for a connection string that cannot be used; others as in classify.
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
// sqlserver:// address as go-mssqldb reads it, with our defaults (see connector). Errors by kind: infrastructure, code
// "settings".
func New(dsn string, o Options) (*Store, error) {
	t, err := tablesOf(o)
	if err != nil {
		return nil, err
	}
	c, err := connector(dsn, o.AnyCertificate)
	if err != nil {
		return nil, err
	}
	s := &Store{
		tables: t, previewOnly: o.PreviewOnly, oneWriter: o.OneWriter, maxOpen: orDefault(o.MaxOpen, defaultMaxOpen),
		notes: &atomic.Pointer[[]string]{},
	}
	s.limits = &columnLimits{mapping: o.Mapping, read: s.readColumns, now: time.Now}
	if s.procedures, err = t.procedures(); err != nil {
		return nil,
			fault.Wrap(fault.Internal, "sqlserver: open", fault.CodeBug, "the procedures cannot be produced", err)
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
	return classifyDependency("sqlserver: open", s.db.PingContext(ctx))
}

// tablesOf is the part of the options that statements are made from.
func tablesOf(o Options) (tables, error) {
	t := tables{
		mapping: o.Mapping, schema: orDefault(o.Schema, defaultSchema),
		lockTimeout: orDefault(o.LockTimeout, defaultLockTimeout),
	}
	if len(t.schema) > maxNameLength {
		return tables{}, fault.New(fault.Infrastructure, "sqlserver: open", codeSettings,
			"schema: expected a name of at most %d characters, found %d", maxNameLength, len(t.schema))
	}
	return t, nil
}

// maxNameLength is the most characters of an identifier.
const maxNameLength = 128

// DB is the connection pool, for set-up and tests.
func (s *Store) DB() *sql.DB { return s.db }

// Close closes all connections.
func (s *Store) Close() error { return s.db.Close() }

func orDefault[T comparable](value, otherwise T) T {
	var zero T
	if value == zero {
		return otherwise
	}
	return value
}
