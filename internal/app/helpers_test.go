package app

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	"sqlwriter/cmd/stage/staging"
	"sqlwriter/internal/store/sqlite"
	"sqlwriter/test/emulators/cosmosdb/cosmosdbtest"
	"sqlwriter/test/emulators/cosmosdb/provision"
	"sqlwriter/test/emulators/loopback"
	"sqlwriter/test/emulators/servicebus"
	"sqlwriter/test/logcheck"
	"sqlwriter/test/sqlitetest"
)

// patience is how long a test waits for an event, on an overloaded machine.
const patience = time.Minute

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(buildDir())
		os.Exit(code)
	}))
}

// buildDir is the folder of the binary of this test process.
func buildDir() string {
	return filepath.Join(os.TempDir(), "sqlwriter-app-test-"+strconv.Itoa(os.Getpid()))
}

// stampedVersion is the version of the binary of these tests.
const stampedVersion = "v1.4.0-2-g0123456789ab"

var building sync.Mutex

// binary builds the real handler, once for all tests, as `make stage` does.
func binary(t *testing.T) string { return built(t, "handler") }

// built builds a program below cmd/, once for all tests.
func built(t *testing.T, name string) string {
	t.Helper()
	building.Lock()
	defer building.Unlock()
	path := filepath.Join(buildDir(), name)
	if _, err := os.Stat(path); err == nil {
		return path
	}
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false",
		"-ldflags=-X "+staging.Stamp+"="+stampedVersion, "-o", path, "../../cmd/"+name)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return path
}

// process is a running handler.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	port   int
	client *http.Client
	stdout *lines
	done   chan struct{}
}

// lines collects what a process prints.
type lines struct {
	mu           sync.Mutex
	text, stderr bytes.Buffer
}

// errorLines takes the lines on stderr.
type errorLines struct{ *lines }

func (l errorLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stderr.Write(p)
}

// requireEvents: each line is an event of the table, on the stream of its level (docs/facts.md F26).
func (l *lines) requireEvents(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	logcheck.Lines(t, l.text.Bytes())
	logcheck.Lines(t, l.stderr.Bytes())
	require.NotRegexp(t, `"level":"(warn|error)"`, l.text.String())
	require.NotRegexp(t, `"level":"(debug|info)"`, l.stderr.String())
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String() + l.stderr.String()
}

// start runs the binary with only these settings, as the host does, and waits until it answers.
func start(t *testing.T, settings map[string]string) *process {
	t.Helper()
	port := loopback.Port(t)
	p := &process{
		t: t, port: port, stdout: &lines{}, done: make(chan struct{}),
		client: &http.Client{Transport: &http.Transport{}},
	}
	p.cmd = exec.Command(binary(t))
	p.cmd.Env = []string{"FUNCTIONS_CUSTOMHANDLER_PORT=" + strconv.Itoa(port), "HOME=" + t.TempDir()}
	for name, value := range settings {
		p.cmd.Env = append(p.cmd.Env, name+"="+value)
	}
	p.cmd.Stdout, p.cmd.Stderr = p.stdout, errorLines{p.stdout}
	require.NoError(t, p.cmd.Start())
	go func() { defer close(p.done); _ = p.cmd.Wait() }()
	t.Cleanup(func() {
		p.client.CloseIdleConnections()
		_ = p.cmd.Process.Kill() // the process may have ended
		<-p.done
		p.stdout.requireEvents(t)
		if t.Failed() {
			t.Logf("the handler printed:\n%s", p.stdout)
		}
	})
	for deadline := time.Now().Add(patience); ; {
		conn, err := net.DialTimeout("tcp", p.address(), time.Second)
		if err == nil {
			require.NoError(t, conn.Close())
			break
		}
		require.True(t, time.Now().Before(deadline), "it does not listen")
	}
	status, _ := p.send(http.MethodGet, "/", nil)
	require.Equal(t, http.StatusOK, status)
	return p
}

func (p *process) address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(p.port)) }

// send makes one request; a body is sent in chunks without a length, as the host does.
func (p *process) send(method, path string, body []byte) (int, string) {
	p.t.Helper()
	var reader io.Reader
	if body != nil {
		reader = io.MultiReader(bytes.NewReader(body))
	}
	r, err := http.NewRequestWithContext(context.Background(), method, "http://"+p.address()+path, reader)
	require.NoError(p.t, err)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Azure-Functions-InvocationId", "invocation-of-"+strings.ReplaceAll(p.t.Name(), "/", "-"))
	reply, err := p.client.Do(r)
	require.NoError(p.t, err)
	defer func() { require.NoError(p.t, reply.Body.Close()) }()
	text, err := io.ReadAll(reply.Body)
	require.NoError(p.t, err)
	require.Equal(p.t, "application/json", reply.Header.Get("Content-Type"))
	return reply.StatusCode, string(text)
}

// post makes one request from another goroutine than the test's, so it returns its error.
func (p *process) post(path string, body []byte) (string, error) {
	return p.postFrom(path, bytes.NewReader(body))
}

func (p *process) postFrom(path string, body io.Reader) (string, error) {
	r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "http://"+p.address()+path, body)
	if err != nil {
		return "", err
	}
	reply, err := p.client.Do(r)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(reply.Body)
	return string(text), errors.Join(err, reply.Body.Close())
}

// health calls the Health function over HTTP.
func (p *process) health() (status string, body map[string]any) {
	p.t.Helper()
	code, text := p.send(http.MethodPost, "/Health", []byte(`{"Data":{"req":{"Method":"GET"}},"Metadata":{}}`))
	require.Equal(p.t, http.StatusOK, code)
	var reply struct {
		Outputs struct {
			Res struct{ StatusCode, Body string }
		}
	}
	require.NoError(p.t, json.Unmarshal([]byte(text), &reply))
	require.NoError(p.t, json.Unmarshal([]byte(reply.Outputs.Res.Body), &body))
	return reply.Outputs.Res.StatusCode, body
}

func (p *process) waitReady() {
	p.t.Helper()
	require.Eventually(p.t, func() bool {
		status, _ := p.health()
		return status == "200"
	}, patience, 20*time.Millisecond)
}

// exitCode waits for the end.
func (p *process) exitCode() int {
	p.t.Helper()
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(patience):
		p.t.Fatal("it does not end")
		return 0
	}
}

// peak returns the peak resident memory of the process, in bytes (VmHWM).
func (p *process) peak() int {
	p.t.Helper()
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		p.t.Skip("memory is measured on Linux only: there is no /proc here")
	}
	defer func() { require.NoError(p.t, f.Close()) }()
	for scan := bufio.NewScanner(f); scan.Scan(); {
		if rest, ok := strings.CutPrefix(scan.Text(), "VmHWM:"); ok {
			kb, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(rest), " kB"))
			require.NoError(p.t, err)
			return kb << 10
		}
	}
	p.t.Fatal("no VmHWM")
	return 0
}

// stack is the surroundings of a handler: documents in the Cosmos DB emulator, lines in a database file.
type stack struct {
	t        *testing.T
	cosmos   *cosmosdbtest.Running
	results  provision.Documents
	path     string
	settings map[string]string
}

func newStack(t *testing.T) *stack {
	t.Helper()
	s := &stack{t: t, cosmos: cosmosdbtest.Start(t), path: filepath.Join(t.TempDir(), "test.db")}
	s.results = s.cosmos.Results(t, "invoices", "AI_PROCESS_LOGS")
	s.cosmos.Container(t, "invoices", "sqlwriter-control", "/id")
	s.cosmos.Leases(t, "invoices", "leases")
	sqlitetest.Make(t, s.path)
	store, err := sqlite.Open(t.Context(), s.path, sqlite.Options{})
	require.NoError(t, err)
	require.NoError(t, store.MarkEmpty(t.Context(), "the test"))
	_, err = store.Writer().ExecContext(t.Context(),
		`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 20000)
		INSERT INTO IVCE_DTL (IVCE_DTL_UID) SELECT i FROM n`)
	require.NoError(t, err)
	require.NoError(t, store.Close())
	s.settings = map[string]string{
		"COSMOS_CONNECTION": s.cosmos.ConnectionString, "COSMOS_DATABASE": "invoices",
		"COSMOS_CONTAINER": "AI_PROCESS_LOGS",
		"LEASE_CONTAINER":  "leases", "LEASE_PREFIX": "web-", "SQL_CONNECTION": "sqlite:" + s.path,
		"AzureWebJobsStorage":   "UseDevelopmentStorage=true",
		"SERVICEBUS_CONNECTION": servicebus.ConnectionString("127.0.0.1:9"), // no server listens there
		"RUNS_QUEUE":            "sqlwriter-web-runs", "BATCHES_QUEUE": "sqlwriter-web-batches",
	}
	return s
}

// submit stores documents for the lines [from, to) and returns them as the change feed does. filler is a text without a
// rule.
func (s *stack) submit(from, to int, filler string) []json.RawMessage {
	s.t.Helper()
	out := make([]json.RawMessage, to-from)
	var group errgroup.Group
	group.SetLimit(16)
	for i := range out {
		group.Go(func() error {
			line := from + i
			id := fmt.Sprintf("2025-12-17 10:30:15.%06d-06:00", line)
			body, err := json.Marshal(map[string]any{
				"id": id, "request_details": map[string]any{"id": "request " + id, "sys_name": "web"},
				"invoice_details_from_rpa": map[string]any{"IVCE_DTL_UID": line},
				"process_output": map[string]any{
					"part_number": "AB-" + strconv.Itoa(line), "manufacturer_name": "ACME", "unspsc": "39131711",
					"invoice_line_status": "RC-AI",
				},
				"sql_writer": map[string]any{"status": "pending", "retry_count": 0}, "raw": filler,
			})
			if err != nil {
				return err
			}
			if err := s.results.Put(s.t.Context(), body); err != nil {
				return err
			}
			out[i], err = s.results.Get(s.t.Context(), id)
			return err
		})
	}
	require.NoError(s.t, group.Wait())
	return out
}

// patchAll gives every stored document a sql_writer.
func (s *stack) patchAll(state string) {
	s.t.Helper()
	pager := s.results.NewQueryItemsPager("SELECT VALUE c.id FROM c", azcosmos.NewPartitionKey(), nil)
	for pager.More() {
		page, err := pager.NextPage(s.t.Context())
		require.NoError(s.t, err)
		for _, item := range page.Items {
			var id string
			require.NoError(s.t, json.Unmarshal(item, &id))
			var patch azcosmos.PatchOperations
			patch.AppendSet("/sql_writer", json.RawMessage(state))
			require.NoError(s.t, s.results.Patch(s.t.Context(), id, patch))
		}
	}
}

// statuses counts the stored documents by sql_writer.status.
func (s *stack) statuses() map[string]int {
	s.t.Helper()
	counts := map[string]int{}
	pager := s.results.NewQueryItemsPager("SELECT VALUE c.sql_writer.status FROM c", azcosmos.NewPartitionKey(), nil)
	for pager.More() {
		page, err := pager.NextPage(s.t.Context())
		require.NoError(s.t, err)
		for _, status := range page.Items {
			counts[string(status)]++
		}
	}
	return counts
}

// envelope is the body that the host posts for documents: an array, as text in a string, as a literal in a string.
func envelope(t *testing.T, documents []json.RawMessage) []byte {
	t.Helper()
	quote := func(text string) string {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		require.NoError(t, e.Encode(text))
		return strings.TrimSuffix(b.String(), "\n")
	}
	parts := make([]string, len(documents))
	for i, d := range documents {
		parts[i] = string(d)
	}
	array := quote(quote("[" + strings.Join(parts, ",") + "]"))
	return []byte(`{"Data":{"documents":` + array + `},"Metadata":{"sys":{"MethodName":"CommitResults"},` +
		`"RetryContext":{"RetryCount":0,"MaxRetryCount":-1,"Exception":null,"Instance":null,"State":{}}}}`)
}

// count runs a counting query.
func (s *stack) count(query string) int {
	s.t.Helper()
	store, err := sqlite.Open(s.t.Context(), s.path, sqlite.Options{})
	require.NoError(s.t, err)
	defer func() { require.NoError(s.t, store.Close()) }()
	var n int
	require.NoError(s.t, store.Reader().QueryRowContext(s.t.Context(), query).Scan(&n))
	return n
}

// exec runs a statement.
func (s *stack) exec(statement string) {
	s.t.Helper()
	store, err := sqlite.Open(s.t.Context(), s.path, sqlite.Options{})
	require.NoError(s.t, err)
	defer func() { require.NoError(s.t, store.Close()) }()
	_, err = store.Writer().ExecContext(s.t.Context(), statement)
	require.NoError(s.t, err)
}
