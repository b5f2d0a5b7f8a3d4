package cosmos

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// These tests check the table of doc.go by the number of requests that reach the service.

func TestRepetitionsAreTheOnesChosen(t *testing.T) {
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("x-ms-retry-after-ms", "1")
			w.WriteHeader(code)
		}
	}
	for name, c := range map[string]struct {
		answer       http.HandlerFunc
		reads, write int64
		code         string
	}{
		"429":                          {status(429), 4, 4, "429"},
		"449":                          {status(449), 4, 4, "449"},
		"500":                          {status(500), 2, 1, "500"},
		"502":                          {status(502), 2, 1, "502"},
		"503":                          {status(503), 1, 1, "503"},
		"504":                          {status(504), 2, 1, "504"},
		"408":                          {status(408), 2, 1, "408"},
		"410":                          {status(410), 1, 1, "410"},
		"412":                          {status(412), 1, 1, "412"},
		"401":                          {status(401), 1, 1, "401"},
		"cut before a reply":           {cut, 0, 1, "eof"},
		"cut in the middle of a reply": {cutInBody, 0, 1, "eof"},
		// azcore alone would send such a patch four times, whether applied or not.
		"a reply that is not HTTP": {garbage, 1, 1, "unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, container := startFake(t, c.answer)
			_, err := container.Record(t.Context(), at("a", `"1"`), invoice.State{})
			require.Equal(t, c.code, fault.CodeOf(err), "%v", err)
			require.Equal(t, c.write, f.hits.Load(), "patches")
			if c.reads > 0 {
				f.hits.Store(0)
				_, err = container.Read(t.Context(), "a")
				require.Equal(t, c.code, fault.CodeOf(err), "%v", err)
				require.Equal(t, c.reads, f.hits.Load(), "reads")
			}
		})
	}
}

func TestAThrottledOrContendedWriteSucceedsInTheEnd(t *testing.T) {
	for _, status := range []int{429, 449} {
		var n atomic.Int64
		f, c := startFake(t, func(w http.ResponseWriter, _ *http.Request) {
			if n.Add(1) <= 3 {
				w.Header().Set("x-ms-retry-after-ms", "1")
				w.WriteHeader(status)
				return
			}
			w.Header().Set("Etag", `"2"`)
		})
		next, err := c.Record(t.Context(), at("a", `"1"`), invoice.State{})
		require.NoError(t, err)
		require.Equal(t, `"2"`, next)
		require.EqualValues(t, 4, f.hits.Load())
	}
}

func TestAWaitThatOutlastsTheDeadlineIsNotBegun(t *testing.T) {
	f, c := startFake(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("x-ms-retry-after-ms", "1900")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	require.NoError(t, c.Ping(t.Context()))
	var e *fault.Error
	// a busy machine may take longer than the deadline, but not each time
	for n := 0; n < 10 && (e == nil || e.Code == "timeout"); n++ {
		f.hits.Store(0)
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		_, err := c.Record(ctx, at("a", `"1"`), invoice.State{})
		cancel()
		e = fault.As(err)
		require.NotNil(t, e)
	}
	require.Equal(t, fault.Throttled, e.Kind, "not a timeout: the account gave the reason at once")
	require.Equal(t, 1900*time.Millisecond, e.RetryAfter)
	require.EqualValues(t, 1, f.hits.Load())
}

func TestEveryCallHasItsOwnDeadline(t *testing.T) {
	release := make(chan struct{})
	_, c := startFake(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	t.Cleanup(func() { close(release) })
	require.NoError(t, c.Ping(t.Context()))
	const bound = 50 * time.Millisecond
	c.options.Timeouts = Timeouts{Read: bound, Record: bound, Page: bound, Submit: bound, Control: bound, Ping: bound}
	control := NewControl(c, "web")
	for name, call := range map[string]func(context.Context) error{
		"read":      func(ctx context.Context) error { _, err := c.Read(ctx, "a"); return err },
		"read many": func(ctx context.Context) error { _, err := c.ReadMany(ctx, []string{"a"}); return err },
		"record": func(ctx context.Context) error {
			_, err := c.Record(ctx, at("a", `"1"`), invoice.State{})
			return err
		},
		"query":        func(ctx context.Context) error { return c.Query(ctx, "SELECT c.id FROM c", nil, nil) },
		"submit":       func(ctx context.Context) error { return c.Submit(ctx, json.RawMessage(`{"id":"a"}`), true) },
		"find":         func(ctx context.Context) error { _, err := c.Find(ctx, commit.Query{}, ""); return err },
		"load control": func(ctx context.Context) error { _, _, err := control.Load(ctx); return err },
		"make control": func(ctx context.Context) error {
			_, err := control.Store(ctx, breaker.Control{}, "")
			return err
		},
		"store control": func(ctx context.Context) error {
			_, err := control.Store(ctx, breaker.Control{}, `"1"`)
			return err
		},
	} {
		began := time.Now()
		err := call(t.Context())
		require.Equal(t, "timeout", fault.CodeOf(err), "%s: %v", name, err)
		require.Equal(t, fault.Infrastructure, fault.KindOf(err))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Less(t, time.Since(began), patience, name)
	}
}

func TestRecordIsOneConditionalPatchOfOneMember(t *testing.T) {
	f, c := startFake(t, nil)
	f.documents = func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPatch || r.Header.Get("If-Match") != `"0000-1"` ||
			r.Header.Get("Prefer") != "return=minimal" ||
			r.Header.Get("x-ms-documentdb-partitionkey") != `["a b"]` || r.URL.Path != "/dbs/db/colls/c/docs/a b" {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		w.Header().Set("Etag", `"0000-2"`)
	}
	next, err := c.Record(t.Context(), at("a b", `"0000-1"`), invoice.State{Status: invoice.Committed})
	require.NoError(t, err)
	require.Equal(t, `"0000-2"`, next)
	require.EqualValues(t, 1, f.hits.Load(), "one write and no read")
}

func TestARecordWithoutAnEtagInTheReplyIsNotTrusted(t *testing.T) {
	_, c := startFake(t, func(http.ResponseWriter, *http.Request) {})
	_, err := c.Record(t.Context(), at("a", `"1"`), invoice.State{})
	require.Equal(t, fault.Infrastructure, fault.KindOf(err))
}

func TestAClientThatNeverReachedItsAccountIsThrownAway(t *testing.T) {
	f, c := startFake(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"id":"a"}`) })
	for _, fail := range []http.HandlerFunc{
		func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) },
		cut,
	} {
		f.account = func(w http.ResponseWriter, r *http.Request) bool { fail(w, r); return true }
		_, err := c.Read(t.Context(), "a")
		require.Equal(t, fault.Infrastructure, fault.KindOf(err), "%v", err)
		require.Zero(t, f.hits.Load())
	}
	f.account = nil
	_, err := c.Read(t.Context(), "a")
	require.NoError(t, err, "the SDK alone would return the cached error for five minutes")
}

func TestManyFirstCallsMakeOneClient(t *testing.T) {
	f, c := startFake(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"id":"a"}`) })
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			_, err := c.Read(t.Context(), "a")
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, 1, f.accounts.Load())
	require.EqualValues(t, 20, f.hits.Load())
}

func TestAnAccountThatHangsDoesNotHoldTheCaller(t *testing.T) {
	f, c := startFake(t, nil)
	release := make(chan struct{})
	f.account = func(http.ResponseWriter, *http.Request) bool { <-release; return false }
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, err := c.Read(ctx, "a")
	require.Equal(t, "timeout", fault.CodeOf(err))
	require.Less(t, time.Since(began), patience, "the SDK alone waits a minute")
	close(release)
	require.NoError(t, c.Ping(t.Context()), "the client in the making is used")
	require.EqualValues(t, 1, f.accounts.Load())
}

func TestQueryPassesOverEmptyPagesAndFollowsTokens(t *testing.T) {
	pages := []string{`[]`, `[{"n":1},{"n":2}]`, `[]`, `[]`, `[{"n":3}]`, `[]`}
	f, c := startFake(t, nil)
	f.documents = func(w http.ResponseWriter, r *http.Request) {
		i := 0
		if token := r.Header.Get("x-ms-continuation"); token != "" {
			i = len(token)
		}
		if i < len(pages)-1 {
			w.Header().Set("x-ms-continuation", strings.Repeat("t", i+1))
		}
		_, _ = io.WriteString(w, `{"Documents":`+pages[i]+`}`)
	}
	var sizes []int
	collect := func(rows []json.RawMessage) (bool, error) { sizes = append(sizes, len(rows)); return true, nil }
	require.NoError(t, c.Query(t.Context(), "SELECT c.n FROM c WHERE c.n > @n", []Param{{"@n", 0}}, collect))
	require.Equal(t, []int{2, 1}, sizes)
	require.EqualValues(t, len(pages), f.hits.Load())

	f.hits.Store(0)
	stop := func([]json.RawMessage) (bool, error) { return false, nil }
	require.NoError(t, c.Query(t.Context(), "SELECT c.n FROM c", nil, stop))
	require.EqualValues(t, 2, f.hits.Load(), "no page is read after the last wanted one")

	mine := errors.New("mine")
	fail := func([]json.RawMessage) (bool, error) { return true, mine }
	require.Equal(t, mine, c.Query(t.Context(), "SELECT c.n FROM c", nil, fail))
}

func TestReadManyIsAllOrAnError(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	f, c := startFake(t, nil)
	f.documents = func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("x-ms-continuation") == "" {
			w.Header().Set("x-ms-continuation", "more")
			_, _ = io.WriteString(w, `{"Documents":[{"id":"a"}]}`)
			return
		}
		cancel()
		<-r.Context().Done()
	}
	docs, err := c.ReadMany(ctx, []string{"a", "b"})
	require.Equal(t, "cancelled", fault.CodeOf(err))
	require.Empty(t, docs, "half of the documents would look as if the others were gone")
}

func TestReadManyAsksInChunks(t *testing.T) {
	f, c := startFake(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"Documents":[]}`) })
	ids := make([]string, 0, 500)
	for i := range 250 {
		id := strings.Repeat("i", i+1)
		ids = append(ids, id, id)
	}
	_, err := c.ReadMany(t.Context(), ids)
	require.NoError(t, err)
	require.EqualValues(t, 3, f.hits.Load(), "250 different ids, at most 100 a query")
}

// cut closes the connection after the request, without a reply.
func cut(w http.ResponseWriter, r *http.Request) { hijack(w, r, "") }

// cutInBody closes the connection in the middle of a valid reply.
func cutInBody(w http.ResponseWriter, r *http.Request) {
	hijack(w, r, "HTTP/1.1 200 OK\r\nEtag: \"2\"\r\nContent-Length: 100\r\n\r\n{")
}

// garbage answers bytes that are not HTTP.
func garbage(w http.ResponseWriter, r *http.Request) {
	hijack(w, r, "220 mail.example.com ready\r\n\r\n")
}

func hijack(w http.ResponseWriter, r *http.Request, text string) {
	_, _ = io.Copy(io.Discard, r.Body)
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err) // reported by the test server
	}
	_, _ = io.WriteString(conn, text)
	_ = conn.Close()
}
