package sqlserver_test

import (
	"strings"
	"testing"
	"time"

	mssql "github.com/microsoft/go-mssqldb"
	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/store/sqlserver"
	"sqlwriter/test/sqltest"
)

// readOnly makes the database refuse every write. The change ends all other sessions, so the pool has no idle
// connection.
func (h *spies) readOnly(t testing.TB) func() {
	t.Helper()
	set := func(text string) {
		for _, db := range []interface{ SetMaxIdleConns(n int) }{h.db, h.store.DB()} {
			db.SetMaxIdleConns(0)
			db.SetMaxIdleConns(2)
		}
		h.spy.Exec(t, text)
	}
	set(`ALTER DATABASE CURRENT SET READ_ONLY WITH ROLLBACK IMMEDIATE`)
	return func() { set(`ALTER DATABASE CURRENT SET READ_WRITE WITH ROLLBACK IMMEDIATE`) }
}

// The server's numbers for a read-only database share one code here. A document's error has no condition, because a
// heartbeat has no document.
func TestWhatAHeartbeatIsToldByTheServer(t *testing.T) {
	for number, want := range map[int32]struct {
		kind fault.Kind
		code string
	}{
		3906: {fault.Infrastructure, "read_only"}, 3908: {fault.Infrastructure, "read_only"},
		229: {fault.Infrastructure, "229"}, 208: {fault.Infrastructure, "208"}, 8114: {fault.Infrastructure, "8114"},
		1222: {fault.Contention, "1222"}, 2627: {fault.Contention, "2627"},
		40501: {fault.Throttled, "40501"}, 9002: {fault.Quota, "9002"}, 0: {fault.Infrastructure, "0"},
	} {
		err := sqlserver.HeartbeatError(mssql.Error{Number: number})
		require.Equal(t, want.kind, fault.KindOf(err), "%d", number)
		require.Equal(t, want.code, fault.CodeOf(err))
		require.Equal(t, fault.NoCondition, fault.As(err).Condition, "%d: it is no document's", number)
		require.ErrorAs(t, err, new(mssql.Error))
	}
	require.NoError(t, sqlserver.HeartbeatError(nil))
}

// An id in another engine's form means another database, and no document is at fault. The refusal names both
// heartbeats and their times, and an operator can take over.
func TestAnIDOfAnotherEngineIsAnotherDatabase(t *testing.T) {
	ctx := t.Context()
	d := newDatabase(t)
	d.harness(t).AddLines(t, 1)
	row, err := d.store.Heartbeat(ctx, breaker.Heartbeat{SysName: "web"})
	require.NoError(t, err)
	for _, id := range []string{"", "nonsense", strings.ReplaceAll(row.DatabaseID, "-", "")} {
		known := breaker.Heartbeat{SysName: "web", DatabaseID: id, Number: row.Number}
		_, err := d.store.Apply(ctx, []commit.Item{sqltest.Item("a", 10, 1)}, commit.Write, known)
		require.Equal(t, breaker.CodeOtherDatabase, fault.CodeOf(err), "%q: %v", id, err)
		require.Equal(t, fault.Infrastructure, fault.KindOf(err), id)
		at := time.UnixMilli(row.Number).UTC().Format(time.RFC3339)
		require.Equal(t, 2, strings.Count(fault.As(err).Reason, at), "%s", fault.As(err).Reason)
		_, err = d.store.Heartbeat(ctx, known)
		require.Equal(t, breaker.CodeOtherDatabase, fault.CodeOf(err), "%q: %v", id, err)
	}
	taken, err := d.store.TakeOver(ctx, breaker.Heartbeat{SysName: "web", DatabaseID: "nonsense", Number: row.Number})
	require.NoError(t, err)
	_, err = d.store.Apply(ctx, []commit.Item{sqltest.Item("a", 10, 1)}, commit.Write, taken)
	require.NoError(t, err)
	d.spy.Exec(t, `DELETE FROM sqlwriter.heartbeat`)
	_, err = d.store.Apply(ctx, []commit.Item{sqltest.Item("b", 11, 1)}, commit.Write, taken)
	require.ErrorContains(t, err, "the database's heartbeat is none")
}
