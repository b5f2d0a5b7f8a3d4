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
	// code is SQLite's extended result code, or a primary code that stands for all its extensions.
	code int
	// name is the code's name without SQLITE_, in lower case. Its row's source is sqlite.org/rescode.html#name.
	name      string
	kind      fault.Kind
	condition fault.Condition
	// reason explains the code to an operator.
	reason string
}

const (
	busyReason = "another connection holds the write lock"
	fileReason = "the database file cannot be worked with"
	refused    = "the database refused a value"
	uniqueness = "a row with this key appeared in between"
)

// rules is the table of errors; sqlite.org/rescode.html explains the codes. An extended code comes before its primary
// code. A code without a row is the document's (docs/requirements.md R34).
func rules() []rule {
	return []rule{
		{code: sqlite3.SQLITE_BUSY, name: "busy", kind: fault.Contention, reason: busyReason},
		{code: sqlite3.SQLITE_LOCKED, name: "locked", kind: fault.Contention, reason: busyReason},
		{
			code: sqlite3.SQLITE_CONSTRAINT_UNIQUE, name: "constraint_unique", kind: fault.Contention,
			condition: fault.OwnWhenAlone, reason: uniqueness,
		},
		{
			code: sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, name: "constraint_primarykey", kind: fault.Contention,
			condition: fault.OwnWhenAlone, reason: uniqueness,
		},
		{
			code: sqlite3.SQLITE_CONSTRAINT_ROWID, name: "constraint_rowid", kind: fault.Contention,
			condition: fault.OwnWhenAlone, reason: uniqueness,
		},
		// CHECK, NOT NULL, foreign key, a trigger's RAISE
		{code: sqlite3.SQLITE_CONSTRAINT, name: "constraint", kind: fault.Document, reason: refused},
		{code: sqlite3.SQLITE_TOOBIG, name: "toobig", kind: fault.Document, reason: refused},
		{code: sqlite3.SQLITE_MISMATCH, name: "mismatch", kind: fault.Document, reason: refused},
		{code: sqlite3.SQLITE_RANGE, name: "range", kind: fault.Document, reason: refused},
		{code: sqlite3.SQLITE_CANTOPEN, name: "cantopen", kind: fault.Infrastructure, reason: fileReason},
		{code: sqlite3.SQLITE_IOERR, name: "ioerr", kind: fault.Infrastructure, reason: fileReason},
		{
			code: sqlite3.SQLITE_READONLY, name: "readonly", kind: fault.Infrastructure,
			reason: "the database file is read-only",
		},
		{
			code: sqlite3.SQLITE_NOTADB, name: "notadb", kind: fault.Infrastructure,
			reason: "the file is not an SQLite database",
		},
		{
			code: sqlite3.SQLITE_CORRUPT, name: "corrupt", kind: fault.Infrastructure,
			reason: "the database file is damaged",
		},
		{code: sqlite3.SQLITE_AUTH, name: "auth", kind: fault.Infrastructure, reason: "not allowed"},
		{code: sqlite3.SQLITE_PERM, name: "perm", kind: fault.Infrastructure, reason: "not allowed"},
		{
			code: sqlite3.SQLITE_PROTOCOL, name: "protocol", kind: fault.Infrastructure,
			reason: "the file's locks do not work (a network share?)",
		},
		{
			code: sqlite3.SQLITE_NOLFS, name: "nolfs", kind: fault.Infrastructure,
			reason: "the file system cannot hold a file of this size",
		},
		{
			code: sqlite3.SQLITE_SCHEMA, name: "schema", kind: fault.Infrastructure,
			reason: "the schema changed meanwhile",
		},
		{
			code: sqlite3.SQLITE_INTERRUPT, name: "interrupt", kind: fault.Infrastructure,
			reason: "the statement was interrupted",
		},
		{code: sqlite3.SQLITE_NOMEM, name: "nomem", kind: fault.Infrastructure, reason: "out of memory"},
		{code: sqlite3.SQLITE_FULL, name: "full", kind: fault.Quota, reason: "the disk or the database is full"},
		{code: sqlite3.SQLITE_MISUSE, name: "misuse", kind: fault.Internal, reason: "the driver was used wrongly"},
		{
			code: sqlite3.SQLITE_INTERNAL, name: "internal", kind: fault.Internal,
			reason: "SQLite reports an error of its own",
		},
	}
}

// The reasons of errors that are not SQLite's. Faults has the same.
const (
	reasonTimeout   = "no answer in time"
	reasonCancelled = "the caller gave up"
)

// classify makes a *fault.Error of a driver's error. It returns a *fault.Error unchanged.
func classify(op string, err error) error {
	if err == nil || fault.As(err) != nil {
		return err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fault.Wrap(fault.Infrastructure, op, "timeout", reasonTimeout, err)
	}
	if errors.Is(err, context.Canceled) {
		return fault.Wrap(fault.Infrastructure, op, "cancelled", reasonCancelled, err)
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

// primaryMask reduces an extended result code to its primary code.
const primaryMask = 0xff

// codeOf returns the extended result code of an error.
func codeOf(err error) (int, bool) {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return 0, false
	}
	return e.Code(), true
}

// classifyRequest classifies an error of a request. SQLite's generic code (1) covers both a missing table and a
// failing expression. Our statements are constant, so Check tells the two apart: a statement that does not compile is
// the schema's fault, never a document's. It needs the connection, so it runs after the rollback.
func (s *Store) classifyRequest(ctx context.Context, err error) error {
	err = classify("sqlite: apply", err)
	if fault.CodeOf(err) != strconv.Itoa(sqlite3.SQLITE_ERROR) {
		return err
	}
	if schema := s.Check(ctx); schema != nil {
		return schema
	}
	return err
}

// compile compiles a statement without running it.
func compile(ctx context.Context, conn *sql.Conn, text string) error {
	st, err := conn.PrepareContext(ctx, text)
	if err != nil {
		return err
	}
	defer func() { _ = st.Close() }() // it never ran
	return nil
}

// Check compiles every statement that uses a stored table against the present schema. Errors by kind: infrastructure,
// code "schema", if a table or column is missing; the cause names the first one.
func (s *Store) Check(ctx context.Context) error {
	if err := s.Ping(ctx); err != nil {
		return err
	}
	conn, err := s.writer.Conn(ctx)
	if err != nil {
		return classify("sqlite: check", err)
	}
	defer func() { _ = conn.Close() }() // returns the connection to the pool
	for _, name := range []string{
		stMissing, stLedgerUpdate, stLedgerInsert, stDetailUpdate, stDetailMark, stTrackingUpdate, stTrackingInsert,
		stHeartbeat, stHeartbeatRow,
	} {
		err := compile(ctx, conn, s.write[name])
		if code, ok := codeOf(err); ok && code == sqlite3.SQLITE_ERROR {
			return fault.Wrap(fault.Infrastructure, "sqlite: check: "+name, "schema",
				"a table or column of the statement does not exist", err)
		}
		if err != nil {
			return classify("sqlite: check: "+name, err)
		}
	}
	return nil
}
