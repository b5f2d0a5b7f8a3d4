package e2e_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"sqlwriter/cmd/stage/staging"
	// the binaries are built by go build: without this, go test would answer (cached) after a change of the product
	_ "sqlwriter/internal/app"
	"sqlwriter/internal/store/sqlite"
	"sqlwriter/test/emulators/cosmosdb"
	"sqlwriter/test/emulators/cosmosdb/cosmosdbtest"
	"sqlwriter/test/emulators/cosmosdb/provision"
	"sqlwriter/test/emulators/funchost"
	"sqlwriter/test/emulators/servicebus"
	"sqlwriter/test/expect"
	"sqlwriter/test/sample"
)

const (
	database  = "invoices"
	container = "AI_PROCESS_LOGS"
	patience  = 60 * time.Second // how long a test waits for what must happen
)

// scriptRoot is staged once for all tests: the binary is the one that would be deployed.
var scriptRoot string

func TestMain(m *testing.M) {
	if file := os.Getenv(asHost); file != "" {
		if err := hostFrom(file); err != nil {
			fmt.Fprintln(os.Stderr, "e2e:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	// Tests that say Parallel spend their time waiting for deadlines, not for a processor. -parallel still wins.
	if err := flag.Set("test.parallel", "32"); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		os.Exit(1)
	}
	dir, err := os.MkdirTemp("", "sqlwriter-e2e-")
	if err == nil {
		scriptRoot = filepath.Join(dir, "root")
		if err = staging.Build(context.Background(), staging.Options{Source: "../..", Dir: scriptRoot}); err == nil {
			err = shortenRetry(filepath.Join(scriptRoot, "CommitResults", "function.json"))
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e: staging:", err)
		os.Exit(1)
	}
	code := m.Run()
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
	}
	os.Exit(code)
}

// shortenRetry makes the host wait 0.2 s instead of 10 s between two offers of a batch; everything else is as deployed.
func shortenRetry(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	short := strings.Replace(string(text), `"00:00:10"`, `"00:00:00.200"`, 1)
	if short == string(text) {
		return errors.New("function.json has no delayInterval of 00:00:10 any more")
	}
	return os.WriteFile(path, []byte(short), 0o600)
}

// stack is everything a result goes through.
type stack struct {
	// blobs is the connection string of the store of evidence; empty where a test makes no poison messages.
	blobs string
	// bus is the connection string of Service Bus; empty where a test has no runs.
	bus string
	// recover is the schedule of RecoverRetries; that of function.json when empty.
	recover string
	t       *testing.T
	cosmos  *cosmosdbtest.Running
	docs    provision.Documents
	// store is the SQLite file, nil on a server; db reads the database that the results go to, readTables all of it,
	// and connection is its SQL_CONNECTION.
	store      *sqlite.Store
	db         *sql.DB
	readTables func(context.Context, *sql.DB) (expect.Tables, error)
	connection string
	dir        string
	host       *funchost.Host
	// handler is the host's handler as the log and Health show it.
	handler *process
	// patience is how long the documents may take to come to an end.
	patience time.Duration
	// poll is the pause between two looks at the feed; function.json's 1 s when zero.
	poll   time.Duration
	before expect.Tables

	pages int // query pages that the test itself asked for
}

// newStack starts the servers and makes containers and tables with a row for each line. The host starts with startHost.
func newStack(t *testing.T, lines ...int64) *stack {
	t.Helper()
	return newStackOver(t, newContainers(t), lines...)
}

// newStackOver is newStack over containers that are there.
func newStackOver(t *testing.T, s *stack, lines ...int64) *stack {
	t.Helper()
	store, err := sqlite.Open(t.Context(), filepath.Join(s.dir, "sqlwriter.db"), sqlite.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	require.NoError(t, sqlite.CreateSampleSchema(t.Context(), store.Writer()))
	require.NoError(t, store.Migrate(t.Context()))
	require.NoError(t, store.MarkEmpty(t.Context(), "the test"))
	s.store, s.db, s.readTables = store, store.Reader(), expect.Read
	s.connection = "sqlite:" + filepath.Join(s.dir, "sqlwriter.db")
	s.addLines(lines...)
	s.countWrites()
	return s
}

// newContainers starts the Cosmos emulator and makes the containers.
func newContainers(t *testing.T, change ...func(*cosmosdb.Options)) *stack {
	t.Helper()
	s := &stack{
		t: t, cosmos: cosmosdbtest.Start(t, change...), dir: t.TempDir(),
		poll: 50 * time.Millisecond, patience: patience,
	}
	s.docs = s.cosmos.Results(t, database, container)
	s.cosmos.Leases(t, database, "leases")
	s.cosmos.Container(t, database, "sqlwriter-control", "/id")
	return s
}

// patiently bounds a wait: what does not happen fails the test instead of hanging it.
func (s *stack) patiently() context.Context {
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	s.t.Cleanup(cancel)
	return ctx
}

func (s *stack) addLines(lines ...int64) {
	s.t.Helper()
	tx, err := s.store.Writer().BeginTx(s.t.Context(), nil)
	require.NoError(s.t, err)
	for _, l := range lines {
		_, err := tx.ExecContext(s.t.Context(),
			"INSERT INTO IVCE_DTL (IVCE_DTL_UID) VALUES (?) ON CONFLICT DO NOTHING", l)
		require.NoError(s.t, err)
	}
	require.NoError(s.t, tx.Commit())
	s.before, err = expect.Read(s.t.Context(), s.store.Reader())
	if err != nil { // the ledger is the handler's to make
		s.before = nil
	}
}

// countWrites counts what really happens to the user's tables, by triggers: the ledger is not asked.
func (s *stack) countWrites() {
	s.t.Helper()
	for _, stmt := range []string{
		"CREATE TABLE counted (line INTEGER, what TEXT)",
		"CREATE TRIGGER count_detail AFTER UPDATE ON IVCE_DTL BEGIN INSERT INTO counted VALUES (new.IVCE_DTL_UID, 'detail'); END",
		"CREATE TRIGGER count_insert AFTER INSERT ON IVCE_TRKG_MSTR BEGIN INSERT INTO counted VALUES (new.IVCE_DTL_UID, 'tracking'); END",
		"CREATE TRIGGER count_update AFTER UPDATE ON IVCE_TRKG_MSTR BEGIN INSERT INTO counted VALUES (new.IVCE_DTL_UID, 'tracking'); END",
	} {
		_, err := s.store.Writer().ExecContext(s.t.Context(), stmt)
		require.NoError(s.t, err)
	}
}

// writes answers how often each line of the user's tables was written, the most and the least over all lines.
func (s *stack) writes(what string) (least, most int) {
	s.t.Helper()
	var lo, hi sql.NullInt64
	row := s.store.Reader().QueryRowContext(s.t.Context(), `SELECT min(n), max(n) FROM (
		SELECT d.IVCE_DTL_UID, count(c.line) AS n FROM IVCE_DTL d
		LEFT JOIN counted c ON c.line = d.IVCE_DTL_UID AND c.what = ?
		GROUP BY d.IVCE_DTL_UID)`, what)
	require.NoError(s.t, row.Scan(&lo, &hi))
	return int(lo.Int64), int(hi.Int64)
}

func (s *stack) settings() map[string]string {
	settings := map[string]string{
		"FUNCTIONS_WORKER_RUNTIME": "custom", "AzureWebJobsStorage": "UseDevelopmentStorage=true",
		"SYS_NAME": "web", "LEASE_PREFIX": "web-", "TIME_ZONE": "America/Chicago", "LOG_LEVEL": "info",
		"COSMOS_CONNECTION": s.cosmos.ConnectionString, "COSMOS_DATABASE": database, "COSMOS_CONTAINER": container,
		"LEASE_CONTAINER": "leases",
		"UI_AUTH":         "none", "AZURE_FUNCTIONS_ENVIRONMENT": "Development",
		"SQL_CONNECTION":        s.connection,
		"BLOB_CONNECTION":       s.blobs,
		"SERVICEBUS_CONNECTION": s.bus, "RUNS_QUEUE": runsQueue, "BATCHES_QUEUE": batchesQueue,
	}
	if s.bus == "" { // nothing listens there, and nothing connects
		settings["SERVICEBUS_CONNECTION"] = servicebus.ConnectionString("127.0.0.1:9")
		maps.Copy(settings, off("BatchManager", "BatchWorker", "BatchDeadLetter", "RunDeadLetter"))
	}
	return settings
}

// tune makes the host faster than the deployed one.
func (s *stack) tune() funchost.Tune {
	t := funchost.Tune{FeedPoll: s.poll, LeaseAcquire: 100 * time.Millisecond}
	if s.recover != "" {
		t.Schedules = map[string]string{"RecoverRetries": s.recover}
	}
	return t
}

// startHost starts the host, and with it the handler binary.
func (s *stack) startHost() *funchost.Host {
	s.t.Helper()
	s.handler = s.launch("e2e", nil)
	s.host = s.handler.Host
	return s.host
}

func kinds(host *funchost.Host) []funchost.Kind {
	var all []funchost.Kind
	for _, e := range host.Events(0) {
		all = append(all, e.Kind)
	}
	return all
}

// submit puts documents into the container as the API does.
func (s *stack) submit(docs ...json.RawMessage) {
	s.t.Helper()
	for _, d := range docs {
		d, err := provision.InRequest(d)
		require.NoError(s.t, err)
		require.NoError(s.t, s.docs.Put(s.t.Context(), d))
	}
}

// document reads a document as it stands.
func (s *stack) document(id string) json.RawMessage {
	s.t.Helper()
	doc, err := s.docs.Get(s.t.Context(), id)
	require.NoError(s.t, err)
	return doc
}

func (s *stack) state(id string) map[string]any {
	s.t.Helper()
	var d struct {
		State map[string]any `json:"sql_writer"`
	}
	require.NoError(s.t, json.Unmarshal(s.document(id), &d))
	return d.State
}

// all reads every document of the container.
func (s *stack) all() map[string]json.RawMessage {
	s.t.Helper()
	docs := map[string]json.RawMessage{}
	pager := s.docs.NewQueryItemsPager("SELECT * FROM c", azcosmos.NewPartitionKey(), nil)
	for pager.More() {
		page, err := pager.NextPage(s.t.Context())
		require.NoError(s.t, err)
		for _, raw := range page.Items {
			docs[idOf(s.t, raw)] = raw
		}
	}
	return docs
}

// waitUntilQuiet waits until no document of ours is pending any more.
func (s *stack) waitUntilQuiet(expected int) {
	s.t.Helper()
	const sql = "SELECT VALUE 1 FROM c WHERE IS_DEFINED(c.sql_writer.status) AND c.sql_writer.status != 'pending'"
	require.Eventually(s.t, func() bool {
		n := 0
		pager := s.docs.NewQueryItemsPager(sql, azcosmos.NewPartitionKey(), &azcosmos.QueryOptions{PageSizeHint: 1000})
		for pager.More() {
			s.pages++
			page, err := pager.NextPage(s.t.Context())
			if err != nil {
				return false
			}
			n += len(page.Items)
		}
		return n >= expected
	}, s.patience, 50*time.Millisecond, "not all of %d documents came to an end", expected)
}

// requireExact checks every document and every row by the second mapping, which shares nothing with the product.
func (s *stack) requireExact(docs []sample.Document) {
	s.t.Helper()
	stored := s.all()
	in := expect.Input{Redelivered: true, Before: s.before}
	for _, d := range docs {
		want := d.Want
		in.Documents = append(in.Documents,
			expect.Document{Name: d.Name, ID: d.ID, Submitted: d.JSON, Stored: stored[d.ID], Want: &want})
	}
	now, err := s.readTables(s.t.Context(), s.db)
	require.NoError(s.t, err)
	result := expect.Compare(now, in)
	for i, diff := range result.Differences {
		if i < 10 {
			s.t.Error(diff)
		}
	}
	require.Empty(s.t, result.Differences)
	s.t.Logf("%d documents, %d rows, %d values checked", result.Documents, result.Rows, result.Values)
}

func idOf(t *testing.T, doc json.RawMessage) string {
	t.Helper()
	var d struct {
		ID string `json:"id"`
	}
	require.NoError(t, json.Unmarshal(doc, &d))
	return d.ID
}

func jsons(docs []sample.Document) []json.RawMessage {
	out := make([]json.RawMessage, len(docs))
	for i, d := range docs {
		out[i] = d.JSON
	}
	return out
}

// holdRequests makes the Cosmos emulator hold requests of one kind until they are released.
func (s *stack) holdRequests(op cosmosdb.Op, when cosmosdb.When, times int) string {
	s.t.Helper()
	id, err := s.cosmos.Server.AddFault(cosmosdb.Rule{Op: op, Container: container, Hold: when, Times: times})
	require.NoError(s.t, err)
	return id
}
