package sqlite_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	driverpkg "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/store/sqlite"
)

// The test provokes each error, so the driver itself makes them.
func TestClassifyRealErrors(t *testing.T) {
	s := newStore(t)
	d := spying(s)
	d.spy.Exec(t, `CREATE TABLE parent (id INTEGER PRIMARY KEY)`)
	d.spy.Exec(t,
		`CREATE TABLE probe (id INTEGER PRIMARY KEY, u TEXT UNIQUE, n TEXT NOT NULL DEFAULT '', c TEXT CHECK (length(c) < 3),
		p INTEGER REFERENCES parent (id))`)
	d.spy.Exec(t, `INSERT INTO probe (id, u) VALUES (1, 'a')`)
	d.spy.Exec(t,
		`CREATE TRIGGER no BEFORE INSERT ON probe WHEN NEW.u = 'no' BEGIN SELECT RAISE(ABORT, 'database is locked'); END`)
	for _, c := range []struct {
		query string
		code  int
		kind  fault.Kind
		alone bool
	}{
		{`INSERT INTO probe (id) VALUES (1)`, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, fault.Contention, true},
		{`INSERT INTO probe (u) VALUES ('a')`, sqlite3.SQLITE_CONSTRAINT_UNIQUE, fault.Contention, true},
		{`INSERT INTO probe (n) VALUES (NULL)`, sqlite3.SQLITE_CONSTRAINT_NOTNULL, fault.Document, false},
		{`INSERT INTO probe (c) VALUES ('abc')`, sqlite3.SQLITE_CONSTRAINT_CHECK, fault.Document, false},
		{`INSERT INTO probe (p) VALUES (9)`, sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY, fault.Document, false},
		{`INSERT INTO probe (u) VALUES ('no')`, sqlite3.SQLITE_CONSTRAINT_TRIGGER, fault.Document, false},
		{`INSERT INTO probe (id) VALUES ('text')`, sqlite3.SQLITE_MISMATCH, fault.Document, false},
		{`INSERT INTO probe (u) VALUES (zeroblob(2000000000))`, sqlite3.SQLITE_TOOBIG, fault.Document, false},
		{`SELECT abs(-9223372036854775808)`, sqlite3.SQLITE_ERROR, fault.Document, false},
	} {
		_, err := s.Writer().Exec(c.query)
		require.Error(t, err, c.query)
		got := fault.As(sqlite.Classify(err))
		require.Equal(t, strconv.Itoa(c.code), got.Code, "%s: %v", c.query, err)
		require.Equal(t, c.kind, got.Kind, c.query)
		require.Equal(t, c.alone, fault.Has(got, fault.OwnWhenAlone), c.query)
		require.NotEmpty(t, got.Reason)
		var cause *driverpkg.Error
		require.ErrorAs(t, got, &cause)
	}
	_, err := s.Reader().Exec(`DELETE FROM probe`)
	require.Equal(t, fault.Infrastructure, fault.KindOf(sqlite.Classify(err)), "read-only")
	d.spy.Exec(t, `PRAGMA max_page_count = 1`)
	_, err = s.Writer().Exec(
		`CREATE TABLE more AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000) SELECT i FROM n`)
	require.Equal(t, fault.Quota, fault.KindOf(sqlite.Classify(err)), "full: %v", err)
}

func TestClassifyOtherErrors(t *testing.T) {
	for _, c := range []struct {
		err  error
		kind fault.Kind
		code string
	}{
		{context.DeadlineExceeded, fault.Infrastructure, "timeout"},
		{fmt.Errorf("wrapped: %w", context.Canceled), fault.Infrastructure, "cancelled"},
		{driver.ErrBadConn, fault.Infrastructure, "connection"},
		{sql.ErrConnDone, fault.Infrastructure, "connection"},
		{errors.New("missing argument with index 1"), fault.Internal, "driver"},
		{fault.New(fault.Contention, "op", "row_count", "as it was"), fault.Contention, "row_count"},
	} {
		err := sqlite.Classify(c.err)
		require.Equal(t, c.kind, fault.KindOf(err), "%v", c.err)
		require.Equal(t, c.code, fault.CodeOf(err), "%v", c.err)
		require.ErrorIs(t, err, c.err)
	}
	require.NoError(t, sqlite.Classify(nil))
}
