package funchost

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
)

// root is a script root under construction.
type root struct {
	dir string
	t   *testing.T
}

const hostFile = `{"version":"2.0",
  "extensionBundle":{"id":"Microsoft.Azure.Functions.ExtensionBundle","version":"[4.*, 5.0.0)"},
  "customHandler":{"description":{"defaultExecutablePath":"handler"}},
  "functionTimeout":"00:05:00","unknown":{"is":"ignored"}}`

func newRoot(t *testing.T) root {
	t.Helper()
	r := root{t.TempDir(), t}
	self, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, os.Symlink(self, filepath.Join(r.dir, "handler")))
	r.file("host.json", hostFile)
	return r
}

func (r root) file(name, text string) root {
	r.t.Helper()
	path := filepath.Join(r.dir, name)
	require.NoError(r.t, os.MkdirAll(filepath.Dir(path), 0o750))
	require.NoError(r.t, os.WriteFile(path, []byte(text), 0o600))
	return r
}

func (r root) function(name, text string) root { return r.file(name+"/function.json", text) }

const (
	httpFunction = `{"bindings":[{"type":"httpTrigger","name":"req","authLevel":"anonymous"},{"type":"http","name":"res","direction":"out"}]}`
	// cosmosFunction has a %s for what follows the last binding property and one for what follows the bindings.
	cosmosFunction = `{"bindings":[{"type":"cosmosDBTrigger","name":"documents","direction":"in","connection":"COSMOS",
		"databaseName":"db","containerName":"docs","leaseContainerName":"leases","leaseContainerPrefix":"p-",
		"startFromBeginning":true%s}]%s}`
)

// bench is a host under test with all that surrounds it.
type bench struct {
	*Host
	t       *testing.T
	control *control
	clock   *fakeClock
	console func() []ConsoleLine
}

// start runs a host on the root. Its clock stands still, its intervals that wait for the real handler are short.
func start(t *testing.T, r root, change ...func(*Host, *Options)) *bench {
	t.Helper()
	b := prepare(t, r, newControl(t), newFakeClock(), change...)
	b.run()
	return b
}

// prepare makes a host without starting it.
func prepare(t *testing.T, r root, c *control, clock *fakeClock, change ...func(*Host, *Options)) *bench {
	t.Helper()
	var mu sync.Mutex
	var lines []ConsoleLine
	options := Options{
		ScriptRoot: r.dir, Clock: clock, Log: zerolog.Nop(),
		Settings: map[string]string{
			handlerMode: "1", "CONTROL_URL": c.server.URL,
			"COSMOS":              "AccountEndpoint=http://127.0.0.1:1/;AccountKey=a2V5;",
			"AzureWebJobsStorage": "UseDevelopmentStorage=true", "SERVICEBUS": serviceBusSetting,
		},
		Tune: Tune{ReadyPoll: 5 * time.Millisecond, StopTimeout: 5 * time.Second},
		OnConsole: func(line ConsoleLine) {
			mu.Lock()
			defer mu.Unlock()
			lines = append(lines, line)
		},
	}
	var hooks []func(*Host)
	for _, f := range change {
		f(nil, &options)
		hooks = append(hooks, func(h *Host) { f(h, &Options{Settings: map[string]string{}}) })
	}
	b := &bench{Host: New(options), t: t, control: c, clock: clock, console: func() []ConsoleLine {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(lines)
	}}
	for _, hook := range hooks {
		hook(b.Host)
	}
	return b
}

// run starts the host, waits until the handler answers and stops it with the test.
func (b *bench) run() {
	b.t.Helper()
	b.t.Cleanup(func() {
		if b.address != "" {
			_ = b.Stop()
		}
	})
	require.NoError(b.t, b.Start(b.t.Context()))
	if len(b.functions) > 0 {
		b.await(HandlerReady)
	}
}

// options changes the options of a host before it is made.
func with(f func(*Options)) func(*Host, *Options) {
	return func(h *Host, o *Options) {
		if h == nil {
			f(o)
		}
	}
}

// waitsToStop lets a host that is stopped wait for what is running as long as it takes.
func waitsToStop() func(*Host, *Options) {
	return with(func(o *Options) { o.Tune.StopTimeout = patience })
}

// await returns the first event of a kind.
func (b *bench) await(kind Kind) Event {
	b.t.Helper()
	return b.awaitN(kind, 1)
}

// awaitN returns the n-th event of a kind.
func (b *bench) awaitN(kind Kind, n int) Event {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), patience)
	defer cancel()
	e, err := b.WaitEvent(ctx, 0, func(e Event) bool {
		if e.Kind == kind {
			n--
		}
		return n == 0
	})
	require.NoError(b.t, err, "no event %q; there are %v", kind, kinds(b.Events(0)))
	return e
}

func (b *bench) count(kind Kind) int {
	n := 0
	for _, e := range b.Events(0) {
		if e.Kind == kind {
			n++
		}
	}
	return n
}

func kinds(events []Event) []string {
	var out []string
	for _, e := range events {
		text := string(e.Kind)
		if e.Err != nil {
			text += " (" + e.Err.Error() + ")"
		}
		out = append(out, text)
	}
	return out
}

// request calls the host.
func (b *bench) request(method, path string, body io.Reader, header ...string) (int, string, http.Header) {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), method, "http://"+b.Address()+path, body)
	require.NoError(b.t, err)
	r.Close = true
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	response, err := http.DefaultClient.Do(r)
	require.NoError(b.t, err)
	text, err := io.ReadAll(response.Body)
	require.NoError(b.t, err)
	require.NoError(b.t, response.Body.Close())
	return response.StatusCode, string(text), response.Header
}

func reader2(s string) io.Reader { return bytes.NewReader([]byte(s)) }
