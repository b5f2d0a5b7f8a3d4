package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// readers is the number of connections that read. One connection writes.
const readers = 4

// Scheme begins the connection string of this engine: "sqlite:PATH".
const Scheme = "sqlite:"

// Options are the settings of a deployment. Zero values mean the defaults.
type Options struct {
	// BusyTimeout is how long a request waits for another process that writes to the file; 0 means 5 s.
	BusyTimeout time.Duration
	// Mapping has the user's columns; nil means the default.
	Mapping *invoice.Mapping
}

// Store is an open database file and implements commit.Sink. It is safe for concurrent use.
type Store struct {
	writer *sql.DB
	reader *sql.DB
	// write has the statements of a write and a heartbeat. writes and previews have those of Apply, prepared.
	write            statements
	writes, previews *prepared
	busyTimeout      time.Duration
	mapping          *invoice.Mapping

	// afterStatement, if set, is called after each statement of a write; its error fails the request. Only tests set
	// it (export_test.go).
	afterStatement func(ctx context.Context, tx *sql.Tx, name string) error
}

// Open opens the database file in WAL mode with full synchronisation, and creates it if it is absent. A commit
// survives a power cut, because the document is marked as committed right after it. The path may have the prefix
// "sqlite:". Open creates no tables; Migrate and CreateSampleSchema do. Errors by kind: infrastructure.
func Open(ctx context.Context, path string, o Options) (*Store, error) {
	s, err := New(path, o)
	if err != nil {
		return nil, err
	}
	if err := s.Ping(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// New makes a Store that opens its file when it is first used. A write creates an absent file; a read does
// not. The file is in WAL mode with full synchronisation: an acknowledged write survives a power cut. It must, because
// its document is recorded as committed right after. The path may carry the prefix "sqlite:". New makes no table: see
// Migrate and CreateSampleSchema. Errors by kind: infrastructure.
func New(path string, o Options) (*Store, error) {
	path = strings.TrimPrefix(path, Scheme)
	if path == "" || strings.HasPrefix(path, ":") {
		return nil, fault.New(fault.Infrastructure, "sqlite: open", "path",
			"expected the path of a file (it is shared by several connections), found %q", path)
	}
	if o.BusyTimeout == 0 {
		o.BusyTimeout = 5 * time.Second
	}
	write, preview, err := renderAll(o.Mapping)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, "sqlite: open", fault.CodeBug, "the statements cannot be produced", err)
	}
	s := &Store{write: write, busyTimeout: o.BusyTimeout, mapping: o.Mapping}
	if s.writer, err = open(dsn(path, o, false), write[stTemp]); err != nil {
		return nil, fault.Wrap(fault.Infrastructure, "sqlite: open", "dsn", "the path cannot be used", err)
	}
	if s.reader, err = open(dsn(path, o, true), write[stTemp]); err != nil {
		return nil,
			errors.Join(
				fault.Wrap(fault.Infrastructure, "sqlite: open", "dsn", "the path cannot be used", err),
				s.writer.Close())
	}
	s.writes = &prepared{
		db: s.writer, text: write, steps: slices.Concat(writeSteps(), rewriteSteps(), []string{stHeartbeatRow}),
	}
	s.previews = &prepared{db: s.reader, text: preview, steps: previewSteps()}
	s.writer.SetMaxOpenConns(1)
	s.reader.SetMaxOpenConns(readers)
	return s, nil
}

// Ping opens the file, creating it when absent. Errors by kind: infrastructure.
func (s *Store) Ping(ctx context.Context) error {
	for _, db := range []*sql.DB{s.writer, s.reader} { // the writer first: readers cannot create the file
		if err := db.PingContext(ctx); err != nil {
			return classify("sqlite: open", err)
		}
	}
	return nil
}

// dsn is the driver's connection string. Readers open the file read-only, so that no query can write. Temp tables
// stay in memory. Double quotes never mean text (_dqs), so a missing column is an error.
func dsn(path string, o Options, readOnly bool) string {
	q := url.Values{}
	q.Set("_busy_timeout", fmt.Sprint(o.BusyTimeout.Milliseconds()))
	q.Set("_foreign_keys", "1")
	q.Set("_dqs", "0")
	q.Add("_pragma", "temp_store(MEMORY)")
	if readOnly {
		q.Set("mode", "ro")
	} else {
		q.Set("_journal_mode", "WAL")
		q.Set("_synchronous", "FULL")
		q.Set("_txlock", "immediate")
	}
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + q.Encode()
}

// Writer is the pool of the one connection that writes, for set-up and tests. Its transactions begin immediate. Apply
// waits while a caller uses the connection.
func (s *Store) Writer() *sql.DB { return s.writer }

// Reader is the pool of the read-only connections.
func (s *Store) Reader() *sql.DB { return s.reader }

// Close closes all connections.
func (s *Store) Close() error {
	var errs []error
	for _, db := range []*sql.DB{s.reader, s.writer} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	return errors.Join(errs...)
}
