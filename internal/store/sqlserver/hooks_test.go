package sqlserver_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/store/sqlserver"
	"sqlwriter/test/conformance"
	"sqlwriter/test/sqlservertest"
)

// hooked is the sink with something between two of a request's statements.
type hooked struct {
	d     *database
	store *sqlserver.Store

	mu   sync.Mutex
	next *hook
}

// hook is what the next request is made with. made reports whether it came to its place.
type hook func(ctx context.Context, items []commit.Item, mode commit.Mode, known breaker.Heartbeat) (out []commit.Outcome, err error, made bool)

// Apply makes a request, with the hook if one is waiting. A hook that was not reached waits for the next request.
func (s *hooked) Apply(ctx context.Context, items []commit.Item, mode commit.Mode, known breaker.Heartbeat) ([]commit.Outcome, error) {
	s.mu.Lock()
	h := s.next
	if mode == commit.Preview || len(items) == 0 {
		h = nil
	} else {
		s.next = nil
	}
	s.mu.Unlock()
	if h == nil {
		return s.store.Apply(ctx, items, mode, known)
	}
	out, err, made := (*h)(ctx, items, mode, known)
	if !made {
		s.mu.Lock()
		if s.next == nil {
			s.next = h
		}
		s.mu.Unlock()
	}
	return out, err
}

// Heartbeat implements commit.Sink.
func (s *hooked) Heartbeat(ctx context.Context, known breaker.Heartbeat) (breaker.Heartbeat, error) {
	return s.store.Heartbeat(ctx, known)
}

// TakeOver implements commit.Sink.
func (s *hooked) TakeOver(ctx context.Context, known breaker.Heartbeat) (breaker.Heartbeat, error) {
	return s.store.TakeOver(ctx, known)
}

func (s *hooked) arm(h hook) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next = &h
}

// with is the store with something run after a step of a write.
func (s *hooked) with(step, text string) (*sqlserver.Store, error) {
	return s.d.store.With(context.Background(), step, text)
}

// injected is the number that failAfter throws.
const injected = 52999

func (s *hooked) failAfter(t testing.TB, step string) {
	store, err := s.with(step, fmt.Sprintf("THROW %d, N'injected', 1;", injected))
	require.NoError(t, err)
	s.arm(func(ctx context.Context, items []commit.Item, mode commit.Mode, known breaker.Heartbeat) ([]commit.Outcome, error, bool) {
		out, err := store.Apply(ctx, items, mode, known)
		return out, err, err != nil && strings.Contains(err.Error(), "injected")
	})
}

// makeMeeting makes the two tables by which a request and a test wait for each other. The request takes a number of
// dbo.met, which is taken for everybody at once, whatever becomes of the request; it goes on when dbo.go_on has a row.
// (Application locks would do on SQL Server; other engines fall over them.)
const makeMeeting = `DROP TABLE IF EXISTS dbo.met, dbo.go_on;
CREATE TABLE dbo.met (number int IDENTITY(1, 1) NOT NULL PRIMARY KEY, nothing int NULL);
CREATE TABLE dbo.go_on (number int NOT NULL PRIMARY KEY);
INSERT INTO dbo.met (nothing) VALUES (0);`

// pause is what a request runs to wait at its place. It looks again and again because T-SQL servers that are not SQL
// Server have no WAITFOR; it gives up after a while.
const pause = `DECLARE @looks int = 0;
INSERT INTO dbo.met (nothing) VALUES (0);
WHILE NOT EXISTS (SELECT 1 FROM dbo.go_on) AND @looks < 10000000
    SET @looks = @looks + 1;`

// during runs f while the next request waits after a step.
func (s *hooked) during(t testing.TB, step string, f func(conformance.Inside)) {
	store, err := s.with(step, pause)
	require.NoError(t, err)
	s.arm(func(ctx context.Context, items []commit.Item, mode commit.Mode, known breaker.Heartbeat) ([]commit.Outcome, error, bool) {
		return s.paused(t, func() ([]commit.Outcome, error) { return store.Apply(ctx, items, mode, known) }, func() {
			f(conformance.Inside{
				Sink: s.store,
				AddTracking: func(line int64) error {
					_, err := s.d.db.Exec(`INSERT INTO dbo.IVCE_TRKG_MSTR (IVCE_DTL_UID) VALUES (@p1)`, line)
					return err
				},
				DropDetail: func(line int64) error {
					_, err := s.d.db.Exec(`DELETE FROM dbo.IVCE_DTL WHERE IVCE_DTL_UID = @p1`, line)
					return err
				},
			})
		})
	})
}

// loseReply loses the answer of the next request on its way: the server has done what it was told by then.
func (s *hooked) loseReply(t testing.TB) {
	s.arm(func(ctx context.Context, items []commit.Item, mode commit.Mode, known breaker.Heartbeat) ([]commit.Outcome, error, bool) {
		proxy := sqlservertest.NewProxy(t, sqlservertest.Address(t, s.d.dsn))
		store := openStore(t, sqlservertest.WithAddress(t, s.d.dsn, proxy.Address()))
		require.NoError(t, store.KnowColumns(ctx), "or that answer were the next one")
		proxy.SwallowReply()
		out, err := store.Apply(ctx, items, mode, known)
		return out, err, true
	})
}

// paused runs a request, and there when it waits at its place.
func (s *hooked) paused(t testing.TB, request func() ([]commit.Outcome, error), there func()) (out []commit.Outcome, err error, made bool) {
	s.d.exec(t, makeMeeting)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		out, err = request()
	}()
	made = s.arrived(t, ended)
	if made {
		there()
	}
	s.d.exec(t, `INSERT INTO dbo.go_on (number) VALUES (1)`)
	<-ended
	return out, err, made
}

// arrived waits until the request is at its place, or has ended without coming there.
func (s *hooked) arrived(t testing.TB, ended <-chan struct{}) bool {
	for {
		var last int
		require.NoError(t, s.d.db.QueryRow(`SELECT IDENT_CURRENT('dbo.met')`).Scan(&last))
		if last > 1 {
			return true
		}
		select {
		case <-ended:
			return false
		default:
		}
	}
}
