package open_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/app/open"
	"sqlwriter/internal/breaker"
	"sqlwriter/internal/config"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// beaten counts heartbeats.
type beaten struct {
	open.Store
	n int
}

func (b *beaten) Heartbeat(context.Context, breaker.Heartbeat) (breaker.Heartbeat, error) {
	b.n++
	return breaker.Heartbeat{}, nil
}

func TestADatabaseIsCheckedUntilThatSucceedsAndThenNoMore(t *testing.T) {
	b, checks, wrong := &beaten{}, 0, errors.New("wrong")
	c := open.NewChecked(&open.Database{Store: b}, func(context.Context) error {
		if checks++; checks == 1 {
			return wrong
		}
		return nil
	})
	for i, want := range []error{wrong, nil, nil} {
		_, err := c.Heartbeat(t.Context(), breaker.Heartbeat{})
		require.Equal(t, want, err, i)
	}
	require.Equal(t, []int{2, 2}, []int{checks, b.n}, "nothing is sent to a database that is not checked")
}

// A request waits for another request's check until its own deadline.
func TestAWaitForACheckEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := make(chan struct{})
		c := open.NewChecked(nil, func(context.Context) error { <-end; return nil })
		first := make(chan error, 1)
		go func() { first <- c.Ready(t.Context()) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.Equal(t, "starting", fault.CodeOf(c.Ready(ctx)))
		close(end)
		require.NoError(t, <-first)
	})
}

// Opening a database makes no request, so that the handler can open it during an outage.
func TestADatabaseIsOpenedWithoutItsServer(t *testing.T) {
	dsn := "sqlserver://u:p@127.0.0.1:1?database=d&encrypt=disable"
	db, err := open.SQL(config.SQL{Engine: config.SQLServer, Connection: config.Secret(dsn)},
		invoice.DefaultMapping(), false)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	require.Equal(t, "connection", fault.CodeOf(db.Ping(t.Context())))
	require.Equal(t, "connection", fault.CodeOf(db.Check(t.Context())))
}

// Half of the connections stay for others. SQLite has one writer.
func TestPartsOfARequestUseHalfOfTheConnections(t *testing.T) {
	require.Equal(t, 1, (*open.Database)(nil).PartsAtOnce(), "it could not be opened")
	for maxOpen, want := range map[int]int{1: 1, 2: 1, 3: 1, 4: 2, 7: 3, 8: 4, 10: 4, 100: 4} {
		d, err := open.SQL(
			config.SQL{
				Engine: config.SQLServer, Connection: "sqlserver://sa:x@127.0.0.1:1?database=d",
				Schema: "dbo", MaxOpen: maxOpen,
			}, invoice.DefaultMapping(), false)
		require.NoError(t, err)
		require.Equal(t, want, d.PartsAtOnce(), maxOpen)
		require.NoError(t, d.Close())
	}
	d, err := open.SQL(
		config.SQL{
			Engine: config.SQLite, Connection: config.Secret(filepath.Join(t.TempDir(), "test.db")), MaxOpen: 10,
		}, invoice.DefaultMapping(), false)
	require.NoError(t, err)
	require.Equal(t, 1, d.PartsAtOnce())
	require.NoError(t, d.Close())
}
