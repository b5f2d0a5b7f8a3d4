package e2e_test

import (
	"bytes"
	"database/sql"
	"fmt"
	"math"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/store/sqlserver"
	"sqlwriter/test/emulators/cosmosdb"
	"sqlwriter/test/expect"
	"sqlwriter/test/sample"
	"sqlwriter/test/sqlservertest"
)

// newServerStack is newStackOver on the T-SQL server that is named, in a database of its own; connection leads there.
// The database says how often each line was written, by the same triggers.
func newServerStack(t *testing.T, s *stack, connection func(dsn string) string, lines ...int64) *stack {
	t.Helper()
	e := serverEngine(t)
	s.patience = 5 * time.Minute // an engine that is shared takes half a minute for a request
	s.db, s.readTables, s.connection = e.db, expect.ReadServer, connection(e.connection)
	store, err := sqlserver.Open(t.Context(), e.connection, sqlserver.Options{})
	require.NoError(t, err)
	require.NoError(t, store.Migrate(t.Context()))
	require.NoError(t, store.MarkEmpty(t.Context(), "the test"))
	require.NoError(t, store.Close())
	e.inTx(t, func(db execer) {
		for _, l := range lines {
			e.exec(t, db, "INSERT INTO IVCE_DTL (IVCE_DTL_UID) VALUES (@p1)", l)
		}
	})
	s.before, err = expect.ReadServer(t.Context(), e.db)
	require.NoError(t, err)
	e.exec(t, e.db, "CREATE TABLE dbo.counted (line bigint, what nvarchar(20))")
	for what, trigger := range map[string]string{
		"detail": "dbo.IVCE_DTL AFTER UPDATE", "tracking": "dbo.IVCE_TRKG_MSTR AFTER INSERT, UPDATE",
	} {
		e.exec(t, e.db, fmt.Sprintf(`CREATE TRIGGER dbo.count_%s ON %s AS
			INSERT INTO dbo.counted (line, what) SELECT i.IVCE_DTL_UID, N'%s' FROM inserted AS i`, what, trigger, what))
	}
	return s
}

// unencrypted is a connection string whose stream a proxy can read.
func unencrypted(t *testing.T, dsn string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	require.NoError(t, err)
	q := u.Query()
	q.Set("encrypt", "disable")
	u.RawQuery = q.Encode()
	return u.String()
}

// plainResults are results without a quotation mark: the T-SQL engine that is not SQL Server reads it otherwise (a
// listed deviation, internal/store/sqlserver/deviations_test.go).
func plainResults(seed uint64, count int) []sample.Document {
	docs := sample.Generate(sample.Options{Seed: seed, Count: count, Clean: true})
	for i := range docs {
		docs[i].JSON = bytes.ReplaceAll(docs[i].JSON, []byte(`\"`), []byte(" IN"))
	}
	return docs
}

// behindProxy is a stack on the T-SQL server with a proxy in front of it.
func behindProxy(t *testing.T, lines ...int64) (*stack, *sqlservertest.Proxy) {
	t.Helper()
	return behindProxyOf(t, func(*cosmosdb.Options) {}, lines...)
}

// behindProxyOf is behindProxy with options of the Cosmos emulator.
func behindProxyOf(t *testing.T, change func(*cosmosdb.Options), lines ...int64) (*stack, *sqlservertest.Proxy) {
	t.Helper()
	proxy := sqlservertest.NewProxy(t, sqlservertest.Address(t, sqlservertest.Server(t)))
	return newServerStack(t, newContainers(t, change), func(dsn string) string {
		return sqlservertest.WithAddress(t, unencrypted(t, dsn), proxy.Address())
	}, lines...), proxy
}

// Must show, on the T-SQL engine: cuts in the middle of a request and of a reply, by a proxy, with the real driver and
// the real binary.
func TestTheLineToTheServerIsCut(t *testing.T) {
	for name, place := range map[string]sqlservertest.Place{
		"in mid-request": sqlservertest.MidRequest, "in mid-reply": sqlservertest.MidReply,
	} {
		t.Run(name, func(t *testing.T) {
			docs := plainResults(38, 30)
			s, proxy := behindProxy(t, sample.Lines(docs)...)
			s.submitMany(docs)
			made := proxy.CutAt(docs[loneResult(docs)].ID, place, 1)
			s.startHost()
			s.waitUntilQuiet(len(docs))
			s.requireExact(docs)
			requireWrittenOnce(t, s, docs)
			s.requireUncounted()
			require.Equal(t, 1, made(), "the line was cut")
			require.Equal(t, string(breaker.Running), s.handler.health().Flow.State)
			statuses, slowest := s.handler.refused()
			require.Empty(t, statuses, "the request is made again at once")
			t.Logf("cut once; %d connections, the slowest invocation took %s", len(proxy.Came()),
				slowest.Round(time.Millisecond))
		})
	}
}

// Must show, on the T-SQL engine: one document whose request is cut each time is isolated; its neighbours commit.
func TestADocumentWhoseRequestIsCutEachTimeIsIsolated(t *testing.T) {
	for name, place := range map[string]sqlservertest.Place{
		"in mid-request": sqlservertest.MidRequest, "in mid-reply": sqlservertest.MidReply,
	} {
		t.Run(name, func(t *testing.T) {
			docs := plainResults(39, 30)
			s, proxy := behindProxy(t, sample.Lines(docs)...)
			s.submitMany(docs)
			bad := loneResult(docs)
			made := proxy.CutAt(docs[bad].ID, place, 0)
			s.startHost()
			s.waitUntilQuiet(len(docs))
			s.requireIsolated(docs, bad)
			require.Equal(t, string(breaker.Running), s.handler.health().Flow.State)
			least, most := s.writesOf(docs[bad].Lines)
			require.LessOrEqual(t, most, 1)
			if place == sqlservertest.MidRequest {
				require.Zero(t, most, "nothing of it was written")
			}
			statuses, slowest := s.handler.refused()
			require.Empty(t, statuses, "nobody else had to wait for the host")
			t.Logf(
				"cut %d times, %d connections; its lines were written %d to %d times; the slowest invocation took %s",
				made(), len(proxy.Came()), least, most,
				slowest.Round(time.Millisecond))
		})
	}
}

// writesOf answers how often these lines were written: the least and the most.
func (s *stack) writesOf(lines []int64) (least, most int) {
	s.t.Helper()
	least = math.MaxInt
	for _, l := range lines {
		var n int
		require.NoError(s.t,
			s.db.QueryRowContext(s.t.Context(), "SELECT count(*) FROM counted WHERE what = 'detail' AND line = @p1",
				sql.Named("p1", l)).Scan(&n))
		least, most = min(least, n), max(most, n)
	}
	return least, most
}
