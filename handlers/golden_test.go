package handlers

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/events"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/run"
	"sqlwriter/test/logcheck"
)

var update = flag.Bool("update", false, "rewrite the goldens' seen, reply and log")

// golden is one file of testdata: the source of the case, the host's request, the function's input, the reply and the
// log line.
type golden struct {
	source, method, path, body string
}

func goldens(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	return files
}

func readGolden(t testing.TB, file string) golden {
	t.Helper()
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	source, rest, ok := strings.Cut(string(content), "-- request --\n")
	require.True(t, ok, file)
	request, _, _ := strings.Cut(rest, "\n-- seen --\n")
	head, body, _ := strings.Cut(request, "\n")
	method, path, ok := strings.Cut(head, " ")
	require.True(t, ok, "%s: METHOD PATH in the first line of the request", file)
	return golden{source: strings.TrimSpace(source), method: method, path: path, body: strings.TrimSuffix(body, "\n")}
}

// recorder is a use case that records its input.
type recorder struct{ seen strings.Builder }

func (r *recorder) Run(_ context.Context, b commit.Delivery) (commit.Report, error) {
	fmt.Fprintf(&r.seen, "retry count %d, %d elements\n", b.RetryCount, len(b.Documents))
	for _, d := range b.Documents {
		fmt.Fprintf(&r.seen, "%s\n", d)
	}
	return commit.Report{
		Documents: len(b.Documents), Outcomes: map[invoice.Outcome]int{"applied": len(b.Documents)},
		Kinds: map[string]int{},
	}, nil
}

// echo returns a function that records its object.
func (r *recorder) echo(name, binding string) Mounted {
	return Mounted{
		Name: name, Binding: binding, Payload: Object, Event: events.CallAnswered,
		Run: func(_ context.Context, in Invocation) (Reply, error) {
			fmt.Fprintf(&r.seen, "retry count %d\n%s\n", in.RetryCount, in.Object)
			return Reply{}, nil
		},
	}
}

// Receive implements Receiver.
func (r *recorder) Receive(_ context.Context, d run.Incoming) (run.Handled, error) {
	fmt.Fprintf(&r.seen, "message %q, delivery %d, enqueued at %s, invocation %s\n", d.ID, d.Count,
		d.EnqueuedAt.Format(time.RFC3339), d.Invocation)
	for _, name := range slices.Sorted(maps.Keys(d.Properties)) {
		fmt.Fprintf(&r.seen, "property %s: %q\n", name, d.Properties[name])
	}
	fmt.Fprintf(&r.seen, "body of %d bytes: %#q\n", len(d.Body), d.Body)
	return run.Handled{Did: "committed", Run: "run-1", Batch: "7", Counts: map[string]int{"applied": 2}}, nil
}

// clock is fixed, so that durations in goldens are 0.
func clock() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

func TestGoldens(t *testing.T) {
	for _, file := range goldens(t) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			g := readGolden(t, file)
			require.NotEmpty(t, g.source, "say where the case comes from")
			var r recorder
			var log bytes.Buffer
			health := func() HealthReport {
				return HealthReport{Status: StatusReady, Version: "v1", Since: clock(), Problems: []string{}}
			}
			o, _ := operated(t)
			h := Mount([]Mounted{
				CommitResults(&r), Health(health), Ops(opened(o)), r.echo("Tick", "timer"), r.echo("Web", "req"),
				BatchManager(&r), BatchWorker(&r), BatchDeadLetter(&r), RunDeadLetter(&r),
			},
				Options{Log: zerolog.New(&log), Now: clock})
			w := httptest.NewRecorder()
			request := httptest.NewRequest(g.method, host+g.path, strings.NewReader(g.body))
			request.Header.Set(hostInvocation, "11111111-2222-3333-4444-555555555555")
			h.ServeHTTP(w, request)
			logcheck.Lines(t, log.Bytes())
			require.Equal(t, jsonType, w.Header().Get("Content-Type"))
			require.True(t, json.Valid(w.Body.Bytes()), "%s", w.Body)
			require.Equal(t, byte('{'), w.Body.Bytes()[0])

			got := fmt.Sprintf("%s\n\n-- request --\n%s %s\n%s\n-- seen --\n%s-- reply --\n%d %s\n%s\n-- log --\n%s",
				g.source, g.method, g.path, g.body, r.seen.String(), w.Code,
				http.StatusText(w.Code), w.Body, log.String())
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
				require.NoError(t, os.Chmod(file, 0o644))
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, string(want), got,
				"go test ./handlers -run Golden -update rewrites it; then read the difference")
		})
	}
}
