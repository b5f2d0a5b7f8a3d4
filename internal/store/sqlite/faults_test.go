package sqlite_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	driverpkg "modernc.org/sqlite"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/store/sqlite"
)

// withCode makes an error of the driver with a code. The driver has no way to make one.
func withCode(t *testing.T, code int) error {
	t.Helper()
	e := &driverpkg.Error{}
	field := reflect.ValueOf(e).Elem().FieldByName("code")
	require.True(t, field.IsValid(), "the driver keeps the code elsewhere")
	*(*int)(unsafe.Pointer(field.UnsafeAddr())) = code //nolint:gosec // see above
	require.Equal(t, code, e.Code())
	return e
}

// kindsByCode repeats rows of the table independently of the product, from sqlite.org/rescode.html.
func kindsByCode() map[int]struct {
	name string
	kind fault.Kind
	own  bool
} {
	type entry = struct {
		name string
		kind fault.Kind
		own  bool
	}
	return map[int]entry{
		2: {"SQLITE_INTERNAL", fault.Internal, false}, 3: {"SQLITE_PERM", fault.Infrastructure, false},
		5: {"SQLITE_BUSY", fault.Contention, false}, 6: {"SQLITE_LOCKED", fault.Contention, false},
		7: {"SQLITE_NOMEM", fault.Infrastructure, false}, 8: {"SQLITE_READONLY", fault.Infrastructure, false},
		9: {"SQLITE_INTERRUPT", fault.Infrastructure, false}, 10: {"SQLITE_IOERR", fault.Infrastructure, false},
		11: {"SQLITE_CORRUPT", fault.Infrastructure, false}, 13: {"SQLITE_FULL", fault.Quota, false},
		14: {"SQLITE_CANTOPEN", fault.Infrastructure, false}, 15: {"SQLITE_PROTOCOL", fault.Infrastructure, false},
		17: {"SQLITE_SCHEMA", fault.Infrastructure, false}, 18: {"SQLITE_TOOBIG", fault.Document, false},
		19: {"SQLITE_CONSTRAINT", fault.Document, false}, 20: {"SQLITE_MISMATCH", fault.Document, false},
		21: {"SQLITE_MISUSE", fault.Internal, false}, 22: {"SQLITE_NOLFS", fault.Infrastructure, false},
		23: {"SQLITE_AUTH", fault.Infrastructure, false}, 25: {"SQLITE_RANGE", fault.Document, false},
		26:   {"SQLITE_NOTADB", fault.Infrastructure, false},
		1555: {"SQLITE_CONSTRAINT_PRIMARYKEY", fault.Contention, true},
		2067: {"SQLITE_CONSTRAINT_UNIQUE", fault.Contention, true},
		2579: {"SQLITE_CONSTRAINT_ROWID", fault.Contention, true},
	}
}

// Each row must match the error of the driver and its extended codes.
func TestClassifyEveryRow(t *testing.T) {
	native := map[string]error{
		"timeout": context.DeadlineExceeded, "cancelled": context.Canceled, "connection": driver.ErrBadConn,
		"driver": errors.New("missing argument with index 1"), "any other number": withCode(t, 1),
	}
	// The product makes these errors itself; cmd/sqlwriterctl tests that their kinds match the table.
	given := map[string]bool{
		"read_only": true, "schema": true, "verdict_without_evidence": true, "row_count": true,
		"path": true, "dsn": true,
		"migration_checksum": true, "counts": true, "time": true, "no_sample": true,
	}
	codes := 0
	for _, row := range sqlite.Faults() {
		require.Equal(t, "sqlite", row.Adapter)
		require.NotEmpty(t, row.Source, row.Code)
		code, err := row.Code, native[row.Code]
		n, notNumber := strconv.Atoi(row.Code)
		if notNumber == nil {
			err = withCode(t, n)
			require.Contains(t, driverpkg.ErrorCodeString[n&0xff], "(SQLITE_"+strings.Split(row.Name, "_")[1],
				"the driver's name of a code, or of its primary code")
			if want, repeated := kindsByCode()[n]; repeated {
				codes++
				require.Equal(t, want.name, row.Name)
				require.Equal(t, want.kind, row.Kind, row.Name)
				require.Equal(t, want.own, row.Condition == fault.OwnWhenAlone, row.Name)
			}
		}
		if row.Rest {
			code = "1"
		}
		if err == nil {
			require.True(t, given[row.Code], "%s: say what error it comes from", row.Code)
			continue
		}
		got := fault.As(sqlite.Classify(fmt.Errorf("wrapped: %w", err)))
		require.Equal(t, row.Kind, got.Kind, row.Code)
		require.Equal(t, row.Condition, got.Condition, row.Code)
		require.Equal(t, code, got.Code)
		require.Equal(t, row.Reason, got.Reason, row.Code)
		if notNumber == nil && n < 256 {
			extended := n | 99<<8 // an extended code without a name
			got = fault.As(sqlite.Classify(withCode(t, extended)))
			require.Equal(t, row.Kind, got.Kind, "an extension of %s", row.Name)
			require.Equal(t, strconv.Itoa(extended), got.Code)
			require.False(t, row.Covers(row.Code), "it is named, not covered")
		}
	}
	require.Len(t, kindsByCode(), codes)
	for _, row := range sqlite.Faults() {
		if row.Name == "SQLITE_CONSTRAINT" {
			require.True(t, row.StandsFor("787"), "SQLITE_CONSTRAINT_FOREIGNKEY")
			require.False(t, row.StandsFor("788"))
			require.False(t, row.StandsFor("word"))
		}
	}
}
