package funchost

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// patience is how long a test waits for an event that must happen, on an overloaded machine.
const patience = time.Minute

// The test binary plays the handler when the host starts it with this variable.
const handlerMode = "FUNCHOST_TEST_HANDLER"

func TestMain(m *testing.M) {
	if os.Getenv(handlerMode) != "" {
		os.Exit(runHandler())
	}
	goleak.VerifyTestMain(m)
}

// runHandler is a handler without a mind: it asks the test what to answer, over HTTP.
func runHandler() int {
	fmt.Println("handler says hello")
	for _, line := range strings.Split(os.Getenv("HANDLER_STDERR"), "|") {
		fmt.Fprintln(os.Stderr, line)
	}
	if code := os.Getenv("HANDLER_EXIT"); code != "" {
		n, _ := strconv.Atoi(code)
		return n
	}
	control := os.Getenv("CONTROL_URL")
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM, os.Interrupt)
	go func() {
		<-asked
		os.Exit(7) // the host must never ask
	}()
	asking := &http.Client{
		Transport:     &http.Transport{DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	server := &http.Server{
		Addr: "127.0.0.1:" + os.Getenv("FUNCTIONS_CUSTOMHANDLER_PORT"),
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/" && r.Method == http.MethodGet && r.Header.Get("X-Azure-Functions-InvocationId") == "" {
				http.NotFound(w, r) // any answer is a sign of life
				fmt.Println("pinged")
				return
			}
			ask, _ := http.NewRequestWithContext(r.Context(), r.Method, control+r.URL.RequestURI(), r.Body)
			ask.Header = r.Header.Clone()
			ask.Header.Set("X-Handler-Pid", strconv.Itoa(os.Getpid()))
			ask.Header.Set("X-Was-Host", r.Host)
			ask.Header.Set("X-Was-Encoding", strings.Join(r.TransferEncoding, ","))
			answer, err := asking.Do(ask)
			if err != nil {
				panic(http.ErrAbortHandler)
			}
			body, _ := io.ReadAll(answer.Body)
			if code := answer.Header.Get("X-Exit"); code != "" {
				n, _ := strconv.Atoi(code)
				os.Exit(n)
			}
			maps.Copy(w.Header(), answer.Header)
			for _, own := range []string{"Date", "Content-Length"} {
				w.Header().Del(own)
			}
			if answer.Header.Get("Content-Type") == "" {
				w.Header()["Content-Type"] = nil // no sniffing
			}
			w.WriteHeader(answer.StatusCode)
			_, _ = w.Write(body)
		}),
	}
	if err := server.ListenAndServe(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return 1
}

// call is an invocation as the handler saw it.
type call struct {
	Function string // the path without the slash
	Method   string
	URI      string
	Header   http.Header
	Body     []byte
	Pid      string
}

// metadata parses Metadata.
func (c call) metadata(t *testing.T) map[string]any {
	t.Helper()
	var body struct{ Metadata map[string]any }
	require.NoError(t, json.Unmarshal(c.Body, &body))
	return body.Metadata
}

// documents decodes the three layers of a Cosmos batch.
func (c call) documents(t *testing.T) string {
	t.Helper()
	var body struct{ Data map[string]string }
	require.NoError(t, json.Unmarshal(c.Body, &body))
	var inner string
	require.NoError(t, json.Unmarshal([]byte(body.Data["documents"]), &inner))
	return inner
}

// answer is what the handler shall say.
type answer struct {
	status      int // 0 = 200
	contentType string
	header      http.Header
	body        string
	exit        int // not 0: end the process; -1 = exit code 0
}

var ok = answer{contentType: "application/json", body: "{}"}

func failure(status int) answer { return answer{status: status} }

// control answers for the handler and remembers what it was asked.
type control struct {
	server *httptest.Server
	mu     sync.Mutex
	calls  []call
	answer func(ctx context.Context, n int, c call) answer // n counts from 1
}

func newControl(t *testing.T) *control {
	c := &control{answer: func(context.Context, int, call) answer { return ok }}
	c.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		seen := call{
			strings.TrimPrefix(r.URL.Path, "/"), r.Method, r.URL.RequestURI(), r.Header, body,
			r.Header.Get("X-Handler-Pid"),
		}
		c.mu.Lock()
		c.calls = append(c.calls, seen)
		n, say := len(c.calls), c.answer
		c.mu.Unlock()
		a := say(r.Context(), n, seen)
		if a.exit != 0 {
			w.Header().Set("X-Exit", strconv.Itoa(max(a.exit, 0)))
		}
		maps.Copy(w.Header(), a.header)
		w.Header()["Content-Type"] = nil
		if a.contentType != "" {
			w.Header().Set("Content-Type", a.contentType)
		}
		if a.status != 0 {
			w.WriteHeader(a.status)
		}
		_, _ = io.WriteString(w, a.body)
	}))
	t.Cleanup(func() {
		c.server.CloseClientConnections()
		c.server.Close()
	})
	return c
}

func (c *control) say(f func(ctx context.Context, n int, c call) answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answer = f
}

// inOrder answers the n-th call with the n-th answer and all later ones with the last.
func (c *control) inOrder(answers ...answer) {
	c.say(func(_ context.Context, n int, _ call) answer { return answers[min(n, len(answers))-1] })
}

func (c *control) seen() []call {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.calls)
}

// wait returns the calls once there are n of them.
func (c *control) wait(t *testing.T, n int) []call {
	t.Helper()
	require.Eventually(t, func() bool { return len(c.seen()) >= n }, patience, time.Millisecond, "%d invocations", n)
	return c.seen()
}

// hold never answers until the handler is gone.
func hold(ctx context.Context, _ int, _ call) answer {
	<-ctx.Done()
	return ok
}

func itoa(n int) string { return strconv.Itoa(n) }
