package sqlite_test

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/store/sqlite"
)

// readOnly makes the writer's only connection refuse every write.
func (d db) readOnly(t testing.TB) func() {
	t.Helper()
	d.spy.Exec(t, `PRAGMA query_only = 1`)
	return func() { d.spy.Exec(t, `PRAGMA query_only = 0`) }
}

// readOnlyFile is a store over a read-only file.
func readOnlyFile(t *testing.T) *sqlite.Store {
	t.Helper()
	path := filepath.Join(t.TempDir(), "writer.db")
	openStore(t, path)
	s, err := sqlite.OpenReadOnly(path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// web is an environment without a known heartbeat.
func web() breaker.Heartbeat { return breaker.Heartbeat{SysName: "web"} }

func TestAHeartbeatSeesAReadOnlyFile(t *testing.T) {
	_, err := readOnlyFile(t).Heartbeat(t.Context(), web())
	require.Equal(t, fault.Infrastructure, fault.KindOf(err), "%v", err)
	require.Equal(t, "read_only", fault.CodeOf(err))
}

// A running request uses the only connection that writes. A heartbeat must not wait for its end.
func TestAHeartbeatWaitsForTheWritersConnectionNoLongerThanForAnotherProcess(t *testing.T) {
	s := openStoreWith(t, filepath.Join(t.TempDir(), "writer.db"), sqlite.Options{BusyTimeout: 20 * time.Millisecond})
	conn, err := s.Writer().Conn(t.Context())
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	_, err = s.Heartbeat(ctx, web())
	require.NoError(t, ctx.Err(), "the caller's time is not over")
	require.Equal(t, fault.Contention, fault.KindOf(err), "%v", err)
	require.Equal(t, "5", fault.CodeOf(err))

	ended, end := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer end()
	_, err = s.Heartbeat(ended, web())
	require.Equal(t, fault.Infrastructure, fault.KindOf(err), "the caller's time is over: %v", err)
	require.NoError(t, conn.Close())
	row, err := s.Heartbeat(ctx, web())
	require.NoError(t, err)
	found, _ := spying(s).spy.Heartbeat(t, "web")
	require.Equal(t, row.Number, found.Number)
}

// Each process that shares the file has a connection of its own.
func TestHeartbeatsOfSeveralProcessesAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "writer.db")
	var stores []*sqlite.Store
	for range 5 {
		stores = append(stores, openStore(t, path))
	}
	known, err := stores[0].Heartbeat(t.Context(), web())
	require.NoError(t, err)
	var group sync.WaitGroup
	errs, rows := make([]error, 25), make([]breaker.Heartbeat, 25)
	for i := range errs {
		group.Go(func() { rows[i], errs[i] = stores[i%len(stores)].Heartbeat(t.Context(), known) })
	}
	group.Wait()
	last, raised := int64(0), map[int64]bool{}
	for i, err := range errs {
		if err != nil {
			require.Equal(t, fault.Contention, fault.KindOf(err), "%d: %v", i, err)
			continue
		}
		require.False(t, raised[rows[i].Number], "each of them raised it")
		raised[rows[i].Number], last = true, max(last, rows[i].Number)
	}
	row, _ := spying(stores[0]).spy.Heartbeat(t, "web")
	require.Equal(t, last, row.Number)
}

// The check at the start must find a missing table before the first heartbeat.
func TestTheCheckKnowsTheHeartbeat(t *testing.T) {
	s := newStore(t)
	require.NoError(t, s.Check(t.Context()))
	spying(s).spy.Exec(t, `DROP TABLE sqlwriter_heartbeat`)
	err := s.Check(t.Context())
	require.Equal(t, "schema", fault.CodeOf(err), "%v", err)
}
