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
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/store/sqlserver"
	"sqlwriter/test/conformance"
	"sqlwriter/test/sqlservertest"
	"sqlwriter/test/sqltest"
)

// hooked is the sink with hooks between the statements of a request.
type hooked struct {
	d     *database
	store *sqlserver.Store

	mu   sync.Mutex
	next *hook
}

// hook makes the next request. made reports whether the request reached the hook's place.
type hook func(ctx context.Context, items []commit.Item, mode commit.Mode,
	known breaker.Heartbeat) (out []commit.DocumentOutcome, err error, made bool)

// Apply makes a request with the waiting hook, if there is one. A hook that was not reached waits for the next request.
func (s *hooked) Apply(
	ctx context.Context, items []commit.Item, mode commit.Mode, known breaker.Heartbeat,
) ([]commit.DocumentOutcome, error) {
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

// with is the store with text run after a step of a write.
func (s *hooked) with(step, text string) (*sqlserver.Store, error) {
	return s.d.store.With(context.Background(), step, text)
}

// injected is the error number of failAfter.
const injected = 52999

func (s *hooked) failAfter(t testing.TB, step string) {
	store, err := s.with(step, fmt.Sprintf("THROW %d, N'injected', 1;", injected))
	require.NoError(t, err)
	s.arm(
		func(ctx context.Context, items []commit.Item, mode commit.Mode,
			known breaker.Heartbeat,
		) ([]commit.DocumentOutcome, error, bool) {
			out, err := store.Apply(ctx, items, mode, known)
			return out, err, err != nil && strings.Contains(err.Error(), "injected")
		})
}

// makeMeeting creates the two tables by which a request and a test wait for each other. The request takes an identity
// value of dbo.met, which is visible at once and survives a rollback. It continues when dbo.go_on has a row.
// Application locks would do on SQL Server, but fail on other engines.
const makeMeeting = `DROP TABLE IF EXISTS dbo.met, dbo.go_on;
CREATE TABLE dbo.met (number int IDENTITY(1, 1) NOT NULL PRIMARY KEY, nothing int NULL);
CREATE TABLE dbo.go_on (number int NOT NULL PRIMARY KEY);
INSERT INTO dbo.met (nothing) VALUES (0);`

// pause makes a request wait in a bounded loop, because T-SQL servers other than SQL Server have no WAITFOR.
const pause = `DECLARE @looks int = 0;
INSERT INTO dbo.met (nothing) VALUES (0);
WHILE NOT EXISTS (SELECT 1 FROM dbo.go_on) AND @looks < 10000000
    SET @looks = @looks + 1;`

// during runs f while the next request waits after a step.
func (s *hooked) during(t testing.TB, step string, f func(conformance.Inside)) {
	store, err := s.with(step, pause)
	require.NoError(t, err)
	s.arm(
		func(ctx context.Context, items []commit.Item, mode commit.Mode,
			known breaker.Heartbeat,
		) ([]commit.DocumentOutcome, error, bool) {
			return s.paused(t, func() ([]commit.DocumentOutcome, error) {
				return store.Apply(ctx, items, mode, known)
			}, func() {
				f(conformance.Inside{
					Sink: s.store,
					AddTracking: func(line int64) error {
						_, err := s.d.db.Exec(`INSERT INTO dbo.IVCE_TRKG_MSTR (`+sqltest.Key(invoice.Tracking)+`) VALUES (@p1)`, line)
						return err
					},
					DropDetail: func(line int64) error {
						_, err := s.d.db.Exec(`DELETE FROM dbo.IVCE_DTL WHERE `+sqltest.Key(invoice.Detail)+` = @p1`, line)
						return err
					},
				})
			})
		})
}

// loseReply loses the answer of the next request after the server has carried it out.
func (s *hooked) loseReply(t testing.TB) {
	s.arm(
		func(ctx context.Context, items []commit.Item, mode commit.Mode,
			known breaker.Heartbeat,
		) ([]commit.DocumentOutcome, error, bool) {
			proxy := sqlservertest.NewProxy(t, sqlservertest.Address(t, s.d.dsn))
			store := openStore(t, sqlservertest.WithAddress(t, s.d.dsn, proxy.Address()))
			require.NoError(t, store.KnowColumns(ctx), "or that answer were the next one")
			proxy.SwallowReply()
			out, err := store.Apply(ctx, items, mode, known)
			return out, err, true
		})
}

// paused runs a request, and calls there while it waits at its place.
func (s *hooked) paused(
	t testing.TB, request func() ([]commit.DocumentOutcome, error), there func(),
) (out []commit.DocumentOutcome, err error, made bool) {
	s.d.spy.Exec(t, makeMeeting)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		out, err = request()
	}()
	made = s.arrived(t, ended)
	if made {
		there()
	}
	s.d.spy.Exec(t, `INSERT INTO dbo.go_on (number) VALUES (1)`)
	<-ended
	return out, err, made
}

// arrived waits until the request reaches its place or ends.
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
