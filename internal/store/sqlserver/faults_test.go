package sqlserver_test

import (
	"cmp"
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"strconv"
	"testing"

	mssql "github.com/microsoft/go-mssqldb"
	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/store/sqlserver"
)

// Each row must match the error of the driver.
func TestClassifyEveryRow(t *testing.T) {
	native := map[string]error{
		"connection": io.EOF, "timeout": context.DeadlineExceeded, "cancelled": context.Canceled,
		"certificate": x509.UnknownAuthorityError{},
	}
	// The product makes these errors itself; cmd/sqlwriterctl tests that their kinds match the table.
	given := map[string]bool{
		"validation.code_page": true, "validation.too_long": true, "validation.out_of_range": true,
		"validation.not_null": true, "read_only": true, "schema": true, "settings": true,
		"migration_lock": true, "migration_checksum": true, "counts": true, "time": true, "no_answer": true,
		"other_user": true, "no_sample": true,
	}
	numbers := 0
	for _, row := range sqlserver.Faults() {
		require.Equal(t, "sqlserver", row.Adapter)
		require.NotEmpty(t, row.Source, row.Code)
		code, err := row.Code, native[row.Code]
		if n, notNumber := strconv.Atoi(cmp.Or(row.Name, row.Code)); notNumber == nil {
			numbers++
			err = mssql.Error{Number: int32(n)}
		}
		if row.Rest {
			unlisted := mssql.Error{Number: 987654, Class: 16}
			if row.About != "" {
				unlisted.Class = 17
			}
			code, err = "987654", unlisted
		}
		if err == nil {
			require.True(t, given[row.Code], "%s: say what error it comes from", row.Code)
			continue
		}
		got := fault.As(sqlserver.Classify(fmt.Errorf("wrapped: %w", err)))
		require.Equal(t, row.Kind, got.Kind, row.Code)
		require.Equal(t, row.Condition, got.Condition, row.Code)
		require.Equal(t, code, got.Code)
		require.Equal(t, row.Reason, got.Reason, row.Code)
		require.True(t, row.StandsFor(got.Code), row.Code)
	}
	table := 0
	for _, r := range sqlserver.Rules() {
		table += len(r.Numbers)
	}
	require.Equal(t, table, numbers, "every number of the table is a row")
}
