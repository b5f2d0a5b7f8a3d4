package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strconv"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"sqlwriter/internal/fault"
)

// rule is one row of the table of errors.
type rule struct {
	// code is SQLite's result code: an extended one, or a primary one that stands for all its extensions.
	code int
	// name is the code's name without SQLITE_, in lower case. sqlite.org/rescode.html#name is the row's source.
	name      string
	kind      fault.Kind
	condition fault.Condition
	// reason says for an operator what the code means here.
	reason string
}

// Reasons that several codes share.
const (
	busyReason = "another connection holds the write lock"
	fileReason = "the database file cannot be worked with"
	refused    = "the database refused a value"
	uniqueness = "a row with this key appeared in between"
)

// rules is the table of errors. Codes and meanings: sqlite.org/rescode.html. An extended code comes before its primary
// code, and a code that is not here is the document's: docs/requirements.md R34.
func rules() []rule {
	return []rule{
		{sqlite3.SQLITE_BUSY, "busy", fault.Contention, "", busyReason},
		{sqlite3.SQLITE_LOCKED, "locked", fault.Contention, "", busyReason},
		{sqlite3.SQLITE_CONSTRAINT_UNIQUE, "constraint_unique", fault.Contention, fault.OwnWhenAlone, uniqueness},
		{sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, "constraint_primarykey", fault.Contention, fault.OwnWhenAlone, uniqueness},
		{sqlite3.SQLITE_CONSTRAINT_ROWID, "constraint_rowid", fault.Contention, fault.OwnWhenAlone, uniqueness},
		{sqlite3.SQLITE_CONSTRAINT, "constraint", fault.Document, "", refused}, // CHECK, NOT NULL, foreign key, a trigger's RAISE
		{sqlite3.SQLITE_TOOBIG, "toobig", fault.Document, "", refused},
		{sqlite3.SQLITE_MISMATCH, "mismatch", fault.Document, "", refused},
		{sqlite3.SQLITE_RANGE, "range", fault.Document, "", refused},
		{sqlite3.SQLITE_CANTOPEN, "cantopen", fault.Infrastructure, "", fileReason},
		{sqlite3.SQLITE_IOERR, "ioerr", fault.Infrastructure, "", fileReason},
		{sqlite3.SQLITE_READONLY, "readonly", fault.Infrastructure, "", "the database file is read-only"},
		{sqlite3.SQLITE_NOTADB, "notadb", fault.Infrastructure, "", "the file is not an SQLite database"},
		{sqlite3.SQLITE_CORRUPT, "corrupt", fault.Infrastructure, "", "the database file is damaged"},
		{sqlite3.SQLITE_AUTH, "auth", fault.Infrastructure, "", "not allowed"},
		{sqlite3.SQLITE_PERM, "perm", fault.Infrastructure, "", "not allowed"},
		{sqlite3.SQLITE_PROTOCOL, "protocol", fault.Infrastructure, "", "the file's locks do not work (a network share?)"},
		{sqlite3.SQLITE_NOLFS, "nolfs", fault.Infrastructure, "", "the file system cannot hold a file of this size"},
		{sqlite3.SQLITE_SCHEMA, "schema", fault.Infrastructure, "", "the schema changed meanwhile"},
		{sqlite3.SQLITE_INTERRUPT, "interrupt", fault.Infrastructure, "", "the statement was interrupted"},
		{sqlite3.SQLITE_NOMEM, "nomem", fault.Infrastructure, "", "out of memory"},
		{sqlite3.SQLITE_FULL, "full", fault.Quota, "", "the disk or the database is full"},
		{sqlite3.SQLITE_MISUSE, "misuse", fault.Internal, "", "the driver was used wrongly"},
		{sqlite3.SQLITE_INTERNAL, "internal", fault.Internal, "", "SQLite reports an error of its own"},
	}
}

// classify translates whatever the driver answers into a *fault.Error; an error that is one already stays as it is.
func classify(op string, err error) error {
	if err == nil || fault.As(err) != nil {
		return err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fault.Wrap(fault.Infrastructure, op, "timeout", "no answer in time", err)
	}
	if errors.Is(err, context.Canceled) {
		return fault.Wrap(fault.Infrastructure, op, "cancelled", "the caller gave up", err)
	}
	code, ok := codeOf(err)
	if !ok {
		if errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) || errors.Is(err, sql.ErrTxDone) {
			return fault.Wrap(fault.Infrastructure, op, "connection", "the connection is gone", err)
		}
		return fault.Wrap(fault.Internal, op, "driver", "the driver answered with an error of its own", err)
	}
	found := rule{code: code, kind: fault.Document, reason: otherReason}
	for _, r := range rules() {
		if r.code == code || r.code == code&primaryMask {
			found = r
			break
		}
	}
	return &fault.Error{
		Kind: found.kind, Condition: found.condition, Code: strconv.Itoa(code), Op: op, Reason: found.reason, Err: err,
	}
}

// primaryMask cuts an extended result code down to its primary code.
const primaryMask = 0xff

// codeOf is the extended result code in an error.
func codeOf(err error) (int, bool) {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return 0, false
	}
	return e.Code(), true
}

// explain classifies what ended a request. SQLite has one generic code (1) for everything from a missing table to a
// failing expression. Our statements are constant, so whether they can be compiled tells the two apart without reading
// the message: a statement that cannot names a table or column that is not there, which is the schema's fault and never
// a document's. It is called after the rollback, when the connection is free again.
func (s *Store) explain(ctx context.Context, err error) error {
	err = classify("sqlite: apply", err)
	if fault.CodeOf(err) != strconv.Itoa(sqlite3.SQLITE_ERROR) {
		return err
	}
	if schema := s.Check(ctx); schema != nil {
		return schema
	}
	return err
}

// compile has the database compile a statement, and no more.
func compile(ctx context.Context, conn *sql.Conn, text string) error {
	st, err := conn.PrepareContext(ctx, text)
	if err != nil {
		return err
	}
	defer func() { _ = st.Close() }() // it was never run
	return nil
}

// Check opens the file and compiles every statement that touches a real table against the schema as it is. Errors by kind: infrastructure,
// code "schema": a table or column is not there (the cause names the first one).
func (s *Store) Check(ctx context.Context) error {
	if err := s.Ping(ctx); err != nil {
		return err
	}
	conn, err := s.writer.Conn(ctx)
	if err != nil {
		return classify("sqlite: check", err)
	}
	defer func() { _ = conn.Close() }() // only hands the connection back
	for _, name := range []string{
		stMissing, stLedgerUpdate, stLedgerInsert, stDetailUpdate, stDetailMark, stTrackingUpdate, stTrackingInsert,
		stHeartbeat, stHeartbeatRow,
	} {
		err := compile(ctx, conn, s.write[name])
		if code, ok := codeOf(err); ok && code == sqlite3.SQLITE_ERROR {
			return fault.Wrap(fault.Infrastructure, "sqlite: check: "+name, "schema",
				"a table or column that the statement names is not there", err)
		}
		if err != nil {
			return classify("sqlite: check: "+name, err)
		}
	}
	return nil
}
