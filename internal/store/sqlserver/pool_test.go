package sqlserver

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
)

// The idle siblings of a broken connection are closed, and the pool keeps idle ones as before: without any, each
// request would log in anew.
func TestAfterABrokenConnectionThePoolKeepsIdleOnes(t *testing.T) {
	s := &Store{db: sql.OpenDB(plainConnector{}), maxOpen: 2}
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	require.NoError(t, s.db.PingContext(t.Context()))
	require.Equal(t, 1, s.db.Stats().Idle)
	require.Error(t, s.closeIdleIfBroken(fault.New(fault.Infrastructure, "test", codeConnection, "it broke")))
	require.Zero(t, s.db.Stats().Idle)
	require.NoError(t, s.db.PingContext(t.Context()))
	require.Equal(t, 1, s.db.Stats().Idle)
}

// plainConnector makes connections that can only be opened and closed.
type plainConnector struct{ driver.Conn }

func (c plainConnector) Connect(context.Context) (driver.Conn, error) { return c, nil }

func (plainConnector) Driver() driver.Driver { return nil }

func (plainConnector) Close() error { return nil }
