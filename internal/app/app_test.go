package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"sqlwriter/handlers"
	"sqlwriter/internal/app/open"
	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/config"
	"sqlwriter/internal/cosmos"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/test/mapping"
)

// unset has no settings.
func unset(string) (string, bool) { return "", false }

// bare is an App with valid settings and the test's dependencies.
func bare(t *testing.T, deps ...dependency) *App {
	t.Helper()
	a := New(unset, zerolog.Nop())
	a.problems, a.deps = nil, deps
	a.status.lacks("settings")
	a.useBreaker(breaker.New(nil, breaker.Options{}))
	t.Cleanup(func() {
		if a.done != nil {
			a.Close()
		}
	})
	return a
}

func TestFunctionsAndFoldersMatch(t *testing.T) {
	paths, err := filepath.Glob("../../functions/*")
	require.NoError(t, err)
	var folders, functions []string
	for _, p := range paths {
		folders = append(folders, filepath.Base(p))
	}
	for _, f := range New(unset, zerolog.Nop()).Functions() {
		functions = append(functions, f.Name)
		content, err := os.ReadFile(filepath.Join("../../functions", f.Name, "function.json"))
		require.NoError(t, err, "every function has a folder")
		require.Contains(t, string(content), `"name": "`+f.Binding+`"`,
			"the trigger's name is the binding that the handler reads")
	}
	slices.Sort(folders)
	slices.Sort(functions)
	require.Equal(t, functions, folders)
}

func TestADependencyIsOpenedAgainUntilItAnswers(t *testing.T) {
	var tries, closed int
	a := bare(t, dependency{depSQL, func(context.Context) error {
		if tries++; tries < 3 {
			return fault.New(fault.Infrastructure, "sqlite: open", "14", "the file cannot be opened")
		}
		return nil
	}, func() error { closed++; return nil }})
	a.Start(t.Context())
	<-a.ready
	require.Equal(t, 3, tries)
	require.Eventually(t, func() bool {
		return a.status.report().Status == handlers.StatusReady
	}, patience, time.Millisecond)
	require.Empty(t, a.status.report().Problems)
	a.Close()
	require.Equal(t, 1, closed)
	a.done = nil
}

func TestClosingWhileADependencyIsDownClosesTheOthers(t *testing.T) {
	opened, closed := make(chan struct{}), false
	a := bare(t,
		dependency{depSQL, fine, func() error { closed = true; return nil }},
		dependency{depCosmos, func(ctx context.Context) error {
			close(opened)
			<-ctx.Done()
			return ctx.Err()
		}, nil},
	)
	a.Start(t.Context())
	<-opened
	a.Close()
	require.True(t, closed)
	require.Equal(t, statusLive, a.status.report().Status)
	a.done = nil
}

func TestABatchWaitsForReadinessButNotForLong(t *testing.T) {
	a := bare(t)
	a.wait = time.Millisecond
	report, err := a.Run(t.Context(), commit.Delivery{Documents: []json.RawMessage{nil, nil}})
	require.True(t, fault.IsDependency(err))
	require.Equal(t, "starting", fault.CodeOf(err))
	require.Equal(t, map[invoice.Outcome]int{"waiting": 2}, report.Outcomes)
	require.Equal(t, 2, report.Documents)

	a.wait = time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = a.Run(ctx, commit.Delivery{})
	require.ErrorIs(t, err, context.Canceled)

	a.problems = config.Problems{{Setting: "SYS_NAME", Expected: "x", Found: "y"}}
	_, err = a.Run(t.Context(), commit.Delivery{})
	require.Equal(t, "settings", fault.CodeOf(err))
}

func TestAServerThatEndsByItselfExitsWith1(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close()) // accepting fails at once
	var log bytes.Buffer
	require.Equal(t, ExitFailed, serve(t.Context(), Options{Lookup: unset}, listener, zerolog.New(&log)))
	require.Contains(t, log.String(), "the server ended by itself")
}

func TestAProcessWithoutItsHostEnds(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var looks atomic.Int32
	parent := func() int {
		if looks.Add(1) == 1 {
			return 7
		}
		return 1
	}
	var log bytes.Buffer
	code := serve(t.Context(), Options{Lookup: unset, Parent: parent}, listener, zerolog.New(&log))
	require.Equal(t, ExitFailed, code, "0 would never be started again, and 200 without end (docs/facts.md F22)")
	require.Contains(t, log.String(), "the host is gone")
}

func TestAnotherParentIsNoticedWithinASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now atomic.Int32
		gone := parentGone(t.Context(), func() int { return int(now.Load()) })
		select {
		case <-gone:
			require.Fail(t, "the parent is still there")
		case <-time.After(time.Hour + time.Second/2):
		}
		now.Store(1)
		changed := time.Now()
		<-gone
		require.LessOrEqual(t, time.Since(changed), time.Second)
	})
}

// leaseProperties is a lease container whose time to live is switched on after some looks.
type leaseProperties struct {
	looks, without int
	leases         []cosmos.Lease
	err            error
}

func (l *leaseProperties) Leases(context.Context, string) ([]cosmos.Lease, error) {
	return l.leases, l.err
}

func (l *leaseProperties) HasTimeToLive(context.Context) (bool, error) {
	l.looks++
	return l.looks > l.without, nil
}

func TestALeaseContainerThatWasMendedIsNoProblem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := bare(t)
		a.clients.leases = &leaseProperties{without: 3}
		a.Start(t.Context())
		synctest.Wait()
		require.Equal(t, handlers.StatusReady, a.status.report().Status)
		require.Equal(t, []string{noTimeToLive}, a.status.report().Problems)
		time.Sleep(3 * leasePoll)
		synctest.Wait()
		require.Empty(t, a.status.report().Problems)
	})
}

func TestHealthRemembersSinceWhen(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	clock := func() time.Time { return now }
	b := breaker.New(nil, breaker.Options{Now: clock})
	s := newStatus("v1", clock)
	s.flow, s.note = b.Seen, b.NoteDependency
	sql := func() handlers.DependencyHealth { return s.report().Dependencies[depSQL] }
	require.Equal(t, handlers.DependencyHealth{State: stateUnknown}, sql())
	s.seen(t.Context(), depSQL, nil)
	first := now
	require.Equal(t, handlers.DependencyHealth{State: breaker.DependencyOK, Since: first}, sql())
	now = now.Add(time.Minute)
	s.seen(t.Context(), depSQL, nil)
	s.seen(t.Context(), depSQL, fault.New(fault.Document, "op", "2628", "too long"))
	s.seen(t.Context(), depSQL, fault.New(fault.Contention, "op", "1205", "deadlock"))
	require.Equal(t, handlers.DependencyHealth{State: breaker.DependencyOK, Since: first}, sql(),
		"an answer is an answer")
	s.seen(t.Context(), depSQL, fault.New(fault.Infrastructure, "op", "14", "gone"))
	failed := now
	now = now.Add(time.Minute)
	s.seen(t.Context(), depSQL, fault.New(fault.Quota, "op", "13", "full"))
	require.Equal(t,
		handlers.DependencyHealth{State: breaker.DependencyFailing, Since: failed, Kind: "quota", Code: "13"}, sql())
	s.seen(t.Context(), depSQL, nil)
	require.Equal(t, handlers.DependencyHealth{State: breaker.DependencyOK, Since: now}, sql())
}

func TestHealthRepeatsNoCause(t *testing.T) {
	err := fault.Wrap(fault.Infrastructure, "cosmos: ping", "401", "the key is refused", errors.New("key-marker"))
	require.Equal(t, "cosmos: ping: infrastructure 401: the key is refused", whyNotOpen(err))
	require.Equal(t, "cosmos: ping: infrastructure 401: the key is refused", notOpen(depCosmos, err))
	require.Equal(t, "leases: cosmos: ping: infrastructure 401: the key is refused", notOpen(depLeases, err))
	require.Equal(t, "not open yet", whyNotOpen(errors.New("key-marker")))
	err = fault.Wrap(fault.Infrastructure, "cosmos: open", "settings", "the settings cannot be used",
		errors.Join(errors.New("A: x"), errors.New("B: y")))
	require.Equal(t, "cosmos: open: infrastructure settings: the settings cannot be used: A: x; B: y", whyNotOpen(err))
}

func TestAMappingIsReadOrReported(t *testing.T) {
	of := func(path string) config.Config { return config.Config{SQL: config.SQL{Mapping: path}} }
	m, problems := readMapping(of(""))
	require.Empty(t, problems)
	require.Same(t, invoice.DefaultMapping(), m)

	dir := t.TempDir()
	write := func(text string) string {
		path := filepath.Join(dir, "marker.json")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	m, problems = readMapping(of(write(string(mapping.File(func(tables map[invoice.Table]*mapping.Table) {
		tables[invoice.Detail].Key = "ID"
	})))))
	require.Empty(t, problems)
	require.Equal(t, "ID", m.Key(invoice.Detail))

	for path, want := range map[string]string{
		filepath.Join(dir, "marker"): "no such file", dir: "a file that cannot be read",
		write(`{"IVCE_DTL": {"key": "ID"}}`): "IVCE_TRKG_MSTR: expected a key and a list of columns",
	} {
		_, problems = readMapping(of(path))
		require.Len(t, problems, 1)
		require.Equal(t, config.Mapping, problems[0].Setting)
		require.Contains(t, problems[0].String(), want)
		require.NotContains(t, problems[0].String(), dir)
	}
}

func TestTheAdapterReadsTheConnectionOnlyIfNothingElseIsWrongWithIt(t *testing.T) {
	c := config.Config{SQL: config.SQL{Engine: config.SQLServer, Connection: "sqlserver://sa:password-marker@db"}}
	problems := sqlProblems(c, nil)
	require.Len(t, problems, 1)
	require.Equal(t, config.SQLConnection, problems[0].Setting)
	require.Contains(t, problems[0].String(), "no database")
	require.NotContains(t, problems[0].String(), "password-marker")
	require.Empty(t, sqlProblems(c, config.Problems{{Setting: config.SQLConnection}}))

	c.SQL.Connection += "?database=d"
	require.Empty(t, sqlProblems(c, nil))
	require.Empty(t, sqlProblems(config.Config{SQL: config.SQL{Engine: config.SQLite}}, nil))
}

// onSQL is an App on the database that the settings name. It is closed after the test.
func onSQL(t *testing.T, c config.Config) *App {
	t.Helper()
	a := bare(t)
	a.config = c
	db, err := open.SQL(c.SQL, invoice.DefaultMapping(), false)
	require.NoError(t, err)
	a.useSQL(db, a.checkSQL)
	t.Cleanup(func() { require.NoError(t, a.sql.Close()) })
	return a
}

func TestAMissingServerIsInfrastructureAndNoErrorRepeatsTheConnection(t *testing.T) {
	c := config.Config{SQL: config.SQL{
		Engine: config.SQLServer, Connection: "sqlserver://sa:password-marker@127.0.0.1:1?database=d&encrypt=disable",
		Schema: "dbo", MaxOpen: 2,
	}}
	a := onSQL(t, c)
	err := a.sql.Ready(t.Context())
	require.Equal(t, fault.Infrastructure, fault.KindOf(err), "%v", err)
	report := a.status.report()
	require.Equal(t, breaker.DependencyFailing, report.Dependencies[depSQL].State)
	require.Len(t, report.Problems, 1)
	require.Contains(t, report.Problems[0], "sqlserver: open: infrastructure connection")
	require.NotContains(t, report.Problems[0], "password-marker")
}

func TestAFailureToOpenIsInfrastructure(t *testing.T) {
	a := bare(t)
	for _, cause := range []error{
		errors.New("x"), fault.New(fault.Internal, "sqlite: open", fault.CodeBug, "cannot be produced"),
	} {
		err := a.tryOpening(t.Context(), dependency{depSQL, func(context.Context) error { return cause }, nil})
		require.True(t, fault.IsDependency(err))
		require.Equal(t, breaker.DependencyFailing, a.status.report().Dependencies[depSQL].State)
	}
}

func TestTheLogLevelIsTheSettings(t *testing.T) {
	for value, want := range map[string]zerolog.Level{
		"": zerolog.InfoLevel, "debug": zerolog.DebugLevel, "loud": zerolog.InfoLevel,
	} {
		a := New(func(name string) (string, bool) { return value, name == config.LogLevel }, zerolog.New(io.Discard))
		require.Equal(t, want, a.log.GetLevel(), value)
	}
}

func TestThePortHasTwoNames(t *testing.T) {
	get := func(env map[string]string) func(string) (string, bool) {
		return func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	}
	address, err := listenAddress(
		get(map[string]string{"FUNCTIONS_CUSTOMHANDLER_PORT": "7000", "FUNCTIONS_HTTPWORKER_PORT": "7001"}))
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1:7000", address)
	address, err = listenAddress(get(map[string]string{"FUNCTIONS_HTTPWORKER_PORT": "7001"}))
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1:7001", address)
	_, err = listenAddress(unset)
	require.ErrorContains(t, err, "FUNCTIONS_CUSTOMHANDLER_PORT")
}

func TestTheServerHasNoTimeoutThatCutsAnInvocation(t *testing.T) {
	server := newServer(http.NotFoundHandler())
	require.Zero(t, server.ReadTimeout)
	require.Zero(t, server.WriteTimeout)
	require.Zero(t, server.IdleTimeout, "the host keeps connections: closing one under a POST would fail it")
}

// What a setting refuses is refused by all that read documents.
func TestAllThatReadShareOneReader(t *testing.T) {
	a := bare(t)
	a.reader.Limits = make([]invoice.Limit, 1)
	for what, given := range map[string]invoice.Reader{
		"commit": a.commitOptions().Reader, "run": a.runOptions().Reader, "ops": a.opsOptions().Reader,
		"reconcile": a.comparison().Reader,
	} {
		require.Len(t, given.Limits, 1, what)
	}
}
