package e2e_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"sqlwriter/internal/events"
	"sqlwriter/internal/store/sqlite"
	"sqlwriter/internal/store/sqlserver"
	"sqlwriter/test/emulators/funchost"
	"sqlwriter/test/expect"
	"sqlwriter/test/sqlservertest"
)

// engine is a database with the sample of the user's tables and nothing of ours.
type engine struct {
	// connection is SQL_CONNECTION; db is another program's pool.
	connection string
	db         *sql.DB
	read       func(ctx context.Context, db *sql.DB) (expect.Tables, error)
	ledger     string
}

// eachEngine runs a test on SQLite, and on the T-SQL server that is named.
func eachEngine(t *testing.T, run func(t *testing.T, e *engine)) {
	t.Run("sqlite", func(t *testing.T) { run(t, sqliteEngine(t)) })
	t.Run("sqlserver", func(t *testing.T) { run(t, serverEngine(t)) })
}

func sqliteEngine(t *testing.T) *engine {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sqlwriter.db")
	store, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	require.NoError(t, sqlite.CreateSampleSchema(t.Context(), store.Writer()))
	return &engine{connection: "sqlite:" + path, db: store.Writer(), read: expect.Read, ledger: "sqlwriter_ledger"}
}

func serverEngine(t *testing.T) *engine {
	t.Helper()
	dsn := sqlservertest.NewDatabase(t)
	store, err := sqlserver.Open(t.Context(), dsn, sqlserver.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	require.NoError(t, sqlserver.CreateSampleSchema(t.Context(), store.DB(), sqlserver.Options{}))
	t.Logf("engine: %s", sqlservertest.Version(t, store.DB()))
	return &engine{connection: dsn, db: store.DB(), read: expect.ReadServer, ledger: "sqlwriter.ledger"}
}

// execer is a pool or a transaction.
type execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// exec runs a statement with the parameters @p1, @p2 ... and answers how many rows it changed.
func (e *engine) exec(t *testing.T, db execer, query string, args ...any) int64 {
	t.Helper()
	for i := range args {
		args[i] = sql.Named(fmt.Sprint("p", i+1), args[i])
	}
	r, err := db.ExecContext(t.Context(), query, args...)
	require.NoError(t, err, query)
	n, err := r.RowsAffected()
	require.NoError(t, err)
	return n
}

func (e *engine) inTx(t *testing.T, f func(db execer)) {
	t.Helper()
	tx, err := e.db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	f(tx)
	require.NoError(t, tx.Commit())
}

// tables reads everything; before our own tables are there, the user's.
func (r *rehearsal) tables() expect.Tables {
	r.t.Helper()
	all, err := r.read(r.t.Context(), r.db)
	if err == nil {
		return all
	}
	// expect reads the ledger too, which is not there before step 1: a table of that name stands in for it meanwhile.
	create, drop := "CREATE TABLE sqlwriter_ledger (detail_id INTEGER PRIMARY KEY)", "DROP TABLE sqlwriter_ledger"
	if r.ledger != "sqlwriter_ledger" {
		create = "CREATE TABLE sqlwriter.ledger (detail_id bigint NOT NULL PRIMARY KEY)"
		r.exec(r.t, r.db, "CREATE SCHEMA sqlwriter")
		drop = "DROP TABLE sqlwriter.ledger"
	}
	r.exec(r.t, r.db, create)
	all, err = r.read(r.t.Context(), r.db)
	require.NoError(r.t, err)
	r.exec(r.t, r.db, drop)
	if r.ledger != "sqlwriter_ledger" {
		r.exec(r.t, r.db, "DROP SCHEMA sqlwriter")
	}
	return all
}

// ledgerRows counts the rows of the ledger.
func (r *rehearsal) ledgerRows() int {
	var n int
	require.NoError(r.t, r.db.QueryRowContext(r.t.Context(), "SELECT COUNT(*) FROM "+r.ledger).Scan(&n))
	return n
}

// oldWriter is the program that was there before: row by row, without an order of results,
// and its own layout of sql_writer. Its mapping is that of test/expect, which shares nothing with the product.
type oldWriter struct {
	r       *rehearsal
	running bool
	// work is what it takes up when it is started.
	work []json.RawMessage
}

func (o *oldWriter) start() {
	o.r.t.Helper()
	o.running = true
	for _, doc := range o.work {
		o.r.put(doc)
		o.commit(o.r.db, doc)
		for _, line := range o.r.linesOf(idOf(o.r.t, doc)) {
			o.r.expectRows(idOf(o.r.t, doc), line)
			delete(o.r.edited, line) // the original overwrites every value
		}
	}
	o.work = nil
}

// commit writes the main line, then the duplicates one by one, and marks the document.
func (o *oldWriter) commit(db execer, doc json.RawMessage) {
	r := o.r
	r.t.Helper()
	rows, err := expect.RowsOf(doc)
	require.NoError(r.t, err)
	id := idOf(r.t, doc)
	for _, row := range rows {
		require.EqualValues(r.t, 1, o.update(db, expect.Detail, row.Line, row.Detail), "line %d", row.Line)
		if o.update(db, expect.Tracking, row.Line, row.Tracking) == 0 {
			o.insert(db, expect.Tracking, row.Line, row.Tracking)
		}
		if newest, known := r.newest[row.Line]; !known || requestTime(r.t, newest).Before(requestTime(r.t, id)) {
			r.newest[row.Line] = id
		}
	}
	r.put(o.mark(doc, map[string]any{"status": "committed", "retry_count": 0, "committed_at": o.stamp()}))
}

// fail marks the lines of a poison message, and the document.
func (o *oldWriter) fail(db execer, doc json.RawMessage) {
	r := o.r
	r.t.Helper()
	rows, err := expect.RowsOf(doc)
	require.NoError(r.t, err)
	text := "AI-ERROR"
	for _, row := range rows {
		o.update(db, expect.Detail, row.Line, expect.Row{"IVCE_LNE_STAT": &text})
		r.newest[row.Line] = idOf(r.t, doc)
	}
	r.put(o.mark(doc, map[string]any{
		"status": "failed", "retry_count": 5, "failed_at": o.stamp(),
		"error": "SQL Writer: Failed to process document after 5 retries: Data validation error",
	}))
}

// stamp is the layout that readers know, in the zone of the requirements' examples.
func (o *oldWriter) stamp() string {
	return o.r.now().In(time.FixedZone("", -6*3600)).Format("2006-01-02 15:04:05.000000-07:00")
}

// mark puts the old writer's sql_writer into a document.
func (o *oldWriter) mark(doc json.RawMessage, state map[string]any) json.RawMessage {
	o.r.t.Helper()
	var members map[string]json.RawMessage
	require.NoError(o.r.t, json.Unmarshal(doc, &members))
	text, err := json.Marshal(state)
	require.NoError(o.r.t, err)
	members["sql_writer"] = text
	marked, err := json.Marshal(members)
	require.NoError(o.r.t, err)
	return marked
}

func (o *oldWriter) update(db execer, table string, line int64, row expect.Row) int64 {
	o.r.t.Helper()
	var sets []string
	var args []any
	for _, column := range slices.Sorted(maps.Keys(row)) {
		args = append(args, nullable(row[column]))
		sets = append(sets, fmt.Sprintf("%s = @p%d", column, len(args)))
	}
	args = append(args, line)
	return o.r.exec(o.r.t, db,
		fmt.Sprintf("UPDATE %s SET %s WHERE IVCE_DTL_UID = @p%d", table, strings.Join(sets, ", "), len(args)), args...)
}

func (o *oldWriter) insert(db execer, table string, line int64, row expect.Row) {
	o.r.t.Helper()
	columns, places, args := []string{"IVCE_DTL_UID"}, []string{"@p1"}, []any{line}
	for _, column := range slices.Sorted(maps.Keys(row)) {
		args = append(args, nullable(row[column]))
		columns, places = append(columns, column), append(places, fmt.Sprintf("@p%d", len(args)))
	}
	o.r.exec(o.r.t, db,
		fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s)", table, strings.Join(columns, ", "), strings.Join(places, ", ")),
		args...)
}

// nullable is a text that may be NULL, and is one for the driver even then.
func nullable(s *string) sql.NullString {
	if s == nil {
		return sql.NullString{}
	}
	return sql.NullString{String: *s, Valid: true}
}

// application is the function app: the host with the real handler.
type application struct {
	t    *testing.T
	host *funchost.Host

	mu      sync.Mutex
	console []string
}

func startApplication(t *testing.T, settings map[string]string) *application {
	t.Helper()
	a := &application{t: t}
	a.host = funchost.New(funchost.Options{
		ScriptRoot: scriptRoot, Settings: settings, Log: zerolog.Nop(), Instance: "cutover", Env: funchost.PlainEnv(),
		OnConsole: func(l funchost.ConsoleLine) {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.console = append(a.console, l.Text)
		},
		Tune: funchost.Tune{
			FeedPoll: 50 * time.Millisecond, StopTimeout: time.Second, LeaseAcquire: 100 * time.Millisecond,
			Schedules: map[string]string{"RecoverRetries": "*/2 * * * * *"},
		},
	})
	require.NoError(t, a.host.Start(t.Context()))
	t.Cleanup(func() {
		a.stop()
		if t.Failed() {
			for _, l := range a.lines()[max(0, len(a.lines())-30):] {
				t.Log(l)
			}
		}
	})
	select {
	case <-a.host.Ready():
	case <-time.After(patience):
		require.Fail(t, "the host did not become ready")
	}
	return a
}

func (a *application) stop() { require.NoError(a.t, a.host.Stop()) }

func (a *application) lines() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.console)
}

// health is what GET /api/health says.
func (a *application) health() map[string]any {
	a.t.Helper()
	address := a.host.Address()
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	r, err := http.NewRequestWithContext(a.t.Context(), http.MethodGet, address+"/api/health", nil)
	require.NoError(a.t, err)
	reply, err := http.DefaultClient.Do(r)
	require.NoError(a.t, err)
	defer func() { require.NoError(a.t, reply.Body.Close()) }()
	text, err := io.ReadAll(reply.Body)
	require.NoError(a.t, err)
	var body map[string]any
	require.NoError(a.t, json.Unmarshal(text, &body), "%s", text)
	return body
}

// batches are the lines that CommitResults has logged.
func (a *application) batches() []batchLine {
	var all []batchLine
	for _, text := range a.lines() {
		var l batchLine
		if json.Unmarshal([]byte(text), &l) == nil && l.Event == string(events.BatchCommitted) {
			all = append(all, l)
		}
	}
	return all
}

type batchLine struct {
	Event             string
	Documents         int
	Outcomes, Columns map[string]int
}

// seen is how many documents were offered and taken.
func (a *application) seen() int {
	n := 0
	for _, b := range a.batches() {
		n += b.Documents
	}
	return n
}

// outcomes adds up what became of them, and the columns of a shadow.
func (a *application) outcomes() (outcomes, columns map[string]int) {
	outcomes, columns = map[string]int{}, map[string]int{}
	for _, b := range a.batches() {
		for outcome, n := range b.Outcomes {
			outcomes[outcome] += n
		}
		for column, n := range b.Columns {
			columns[column] += n
		}
	}
	return outcomes, columns
}
