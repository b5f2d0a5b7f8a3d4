package handlers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/events"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/test/logcheck"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const invocationID = "11111111-2222-3333-4444-555555555555"

// host is the address at which the host calls the handler (docs/facts.md F1).
const host = "http://127.0.0.1:40001"

type committer func(ctx context.Context, b commit.Delivery) (commit.Report, error)

func (c committer) Run(ctx context.Context, b commit.Delivery) (commit.Report, error) {
	return c(ctx, b)
}

// invoke posts a body to a function and returns the response and the log.
func invoke(t *testing.T, f Mounted, o Options, body io.Reader) (*httptest.ResponseRecorder, string) {
	t.Helper()
	var log bytes.Buffer
	o.Log = zerolog.New(&log)
	r := httptest.NewRequest(http.MethodPost, host+"/"+f.Name, body)
	r.Header.Set(hostInvocation, invocationID)
	w := httptest.NewRecorder()
	if o.Wait == nil {
		o.Wait = func(context.Context, time.Duration) error { return nil }
	}
	Mount([]Mounted{f}, o).ServeHTTP(w, r)
	require.Equal(t, "application/json", w.Header().Get("Content-Type"))
	var reply map[string]any
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &reply), "a JSON object, never empty: %s", w.Body)
	require.NotEmpty(t, reply)
	require.Equal(t, 1, strings.Count(log.String(), "\n"), "one line per invocation: %s", &log)
	require.Contains(t, log.String(), invocationID)
	logcheck.Lines(t, log.Bytes())
	return w, log.String()
}

func batch() io.Reader { return strings.NewReader(cosmosBody(`[{"id":"a"}]`, sysOnly)) }

func TestErrorsBecomeStatusCodes(t *testing.T) {
	for _, c := range []struct {
		name            string
		err             error
		commit, another int
		level           string
	}{
		{"success", nil, 200, 200, "info"},
		{"infrastructure", fault.New(fault.Infrastructure, "sqlite: apply", "14", "cannot open"), 503, 503, "warn"},
		{
			"throttled",
			fmt.Errorf("x: %w", fault.New(fault.Throttled, "cosmos: patch", "429", "slow down")), 503, 503, "warn",
		},
		{"quota", fault.New(fault.Quota, "sqlite: apply", "13", "disk full"), 503, 503, "warn"},
		{"our own deadline", context.DeadlineExceeded, 503, 503, "warn"},
		{"cancelled", fmt.Errorf("x: %w", context.Canceled), 503, 503, "warn"},
		{"contention", fault.New(fault.Contention, "sqlite: apply", "1205", "deadlock"), 200, 500, "error"},
		{"document", fault.New(fault.Document, "invoice", "too_long", "too long"), 200, 500, "error"},
		{"internal", fault.New(fault.Internal, "writer", "impossible", "cannot be"), 200, 500, "error"},
		{"unclassified", errors.New("marker"), 200, 500, "error"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, log := invoke(t, CommitResults(committer(func(context.Context, commit.Delivery) (commit.Report, error) {
				return commit.Report{Documents: 1, Outcomes: map[invoice.Outcome]int{"waiting": 1}}, c.err
			})), Options{}, batch())
			require.Equal(t, c.commit, w.Code)
			require.Contains(t, log, `"level":"`+c.level+`"`)
			require.Contains(t, log, `"outcomes":{"waiting":1}`, "counts are logged with an error as well")
			if w.Code == http.StatusServiceUnavailable {
				require.Contains(t, w.Body.String(), `"reason":`)
			}
			another := Mounted{
				Name: "Web", Binding: "documents", Payload: Array, Event: events.CallAnswered,
				Run: func(context.Context, Invocation) (Reply, error) {
					return Reply{}, c.err
				},
			}
			w, log = invoke(t, another, Options{}, batch())
			require.Equal(t, c.another, w.Code)
			require.NotContains(t, log+w.Body.String(), "marker", "the text of an unknown error may be anything")
		})
	}
}

func TestAPanicIsAnErrorLineAndTheFeedGoesOn(t *testing.T) {
	for _, c := range []struct {
		value  any
		reason string
	}{
		{"payload-marker", "panic with a string"},
		{errors.New("payload-marker"), "panic with a *errors.errorString"},
	} {
		w, log := invoke(t,
			CommitResults(committer(func(context.Context, commit.Delivery) (commit.Report, error) { panic(c.value) })),
			Options{}, batch())
		require.Equal(t, http.StatusOK, w.Code)
		require.Contains(t, log, `"level":"error"`)
		require.Contains(t, log, c.reason)
		require.Contains(t, log, "mount_test.go", "the stack says where")
		require.NotContains(t, log, "payload-marker")
	}
	w, log := invoke(t, CommitResults(committer(func(_ context.Context, b commit.Delivery) (commit.Report, error) {
		return commit.Report{Documents: int(b.Documents[7][0])}, nil
	})), Options{}, batch())
	require.Equal(t, http.StatusOK, w.Code)
	require.Contains(t, log, "index out of range [7] with length 1", "the runtime's own words are harmless")
	w, _ = invoke(t, Health(func() HealthReport { panic("x") }), Options{}, strings.NewReader(`{"Data":{"req":{}}}`))
	require.Equal(t, http.StatusInternalServerError, w.Code)
}

// A page in a developer's browser can post to the handler's port, with identities of its own making. Nobody but the
// host is answered; what a browser adds to a request, and a name that points here, gives the others away.
func TestABrowserIsNotTheHost(t *testing.T) {
	o, store := operated(t)
	var log bytes.Buffer
	h := Mount([]Mounted{Ops(opened(o))}, Options{Log: zerolog.New(&log), Now: clock})
	pause := post("v1/flow/pause", `{"why":"w"}`).as(keyed("operator-ann")).object(t, "ops")
	send := func(address string, header ...string) int {
		r := httptest.NewRequest(http.MethodPost, address+"/Ops", strings.NewReader(pause))
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
	require.Equal(t, 403, send(host, "Origin", "https://evil.example"))
	require.Equal(t, 403, send(host, "Origin", "null"))
	require.Equal(t, 403, send(host, "Sec-Fetch-Site", "cross-site"))
	require.Equal(t, 403, send(host, "Sec-Fetch-Site", "none"))
	require.Equal(t, 403, send("http://evil.example"), "its name points to this machine")
	require.Equal(t, 403, send("http://127.0.0.1.evil.example:40001"))
	require.Equal(t, 403, send("http://192.168.1.7:40001"))
	require.Empty(t, store.Audits())
	require.Equal(t, 7, strings.Count(log.String(), `"event":"invocation_failed","function":"Ops","reason":"only the Functions host`))
	for _, address := range []string{host, "http://localhost:40001", "http://[::1]:40001"} {
		require.Equal(t, 200, send(address), address)
	}
	require.Len(t, store.Audits(), 1, "it is paused already")
}

func TestAnInvocationHasItsOwnDeadline(t *testing.T) {
	w, log := invoke(t, CommitResults(committer(func(ctx context.Context, b commit.Delivery) (commit.Report, error) {
		<-ctx.Done()
		return commit.Report{Documents: len(b.Documents)}, ctx.Err()
	})), Options{Deadline: time.Millisecond}, batch())
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.Contains(t, log, `"code":"deadline"`)
}

func TestABodyOverTheLimitDoesNotHoldTheFeed(t *testing.T) {
	ran := committer(func(context.Context, commit.Delivery) (commit.Report, error) { panic("must not run") })
	for name, body := range map[string]io.Reader{
		"announced": strings.NewReader(strings.Repeat("x", 2000)),
		"chunked":   io.MultiReader(strings.NewReader(strings.Repeat("x", 200_000))),
	} {
		w, log := invoke(t, CommitResults(ran), Options{MaxBody: 1000}, body)
		require.Equal(t, http.StatusOK, w.Code, name)
		require.Contains(t, log, "larger than the limit", name)
	}
	other := CommitResults(ran)
	other.LeaveToTimer = false
	w, _ := invoke(t, other, Options{MaxBody: 1000}, strings.NewReader(strings.Repeat("x", 2000)))
	require.Equal(t, http.StatusRequestEntityTooLarge, w.Code)
}

func TestABodyOfUnknownLengthIsReadWhole(t *testing.T) {
	for _, size := range []int{0, 1, firstSegment - 100, firstSegment, 3 * firstSegment, 5 << 20, 20 << 20} {
		text := strings.Repeat("x", size)
		r := httptest.NewRequest(http.MethodPost, "/", io.MultiReader(strings.NewReader(text)))
		require.EqualValues(t, -1, r.ContentLength)
		got, err := readBody(r, 1<<30)
		require.NoError(t, err)
		require.Equal(t, size, len(got))
		require.Equal(t, text, string(got))
	}
}

func TestABodyThatBreaksOffIsAnError(t *testing.T) {
	for _, announced := range []int64{-1, 100} {
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r.ContentLength, r.Body = announced, io.NopCloser(io.MultiReader(strings.NewReader("{"), failing{}))
		_, err := readBody(r, 1000)
		require.ErrorIs(t, err, syscall.ECONNRESET)
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, syscall.ECONNRESET }

func TestTheLogLineCountsTheBatch(t *testing.T) {
	report := commit.Report{
		Documents: 3, Outcomes: map[invoice.Outcome]int{"applied": 2, "retry_scheduled": 1},
		Kinds:       map[string]int{"document": 1},
		SQLRequests: 4, SQL: 5 * time.Millisecond, Reads: 6, Writes: 7, Cosmos: 8 * time.Millisecond,
		Lag: 9 * time.Millisecond,
	}
	retry := `{"RetryContext":{"RetryCount":2}}`
	w, log := invoke(t,
		CommitResults(committer(func(context.Context, commit.Delivery) (commit.Report, error) { return report, nil })),
		Options{Now: clock}, strings.NewReader(cosmosBody(`[]`, retry)))
	require.JSONEq(t,
		`{"level":"info","event":"batch_committed","function":"CommitResults","invocation":"`+invocationID+`",
		"documents":3,"outcomes":{"applied":2,"retry_scheduled":1},"kinds":{"document":1},"retry_count":2,"lag_ms":9,
		"sql_requests":4,"sql_ms":5,"cosmos_reads":6,"cosmos_writes":7,"cosmos_ms":8,"message":"a batch of the feed is done"}`, log)
	require.JSONEq(t,
		`{"Outputs":{},"Logs":["3 documents: 2 applied, 1 retry_scheduled"],"ReturnValue":null}`, w.Body.String())
}

func TestHealthSays503UntilReady(t *testing.T) {
	report := HealthReport{Status: "live", Version: "v1", Since: clock(), Problems: []string{"SYS_NAME: wrong"}}
	status := func() string {
		w, _ := invoke(t, Health(func() HealthReport { return report }), Options{},
			strings.NewReader(`{"Data":{"req":{}},"Metadata":{}}`))
		require.Equal(t, http.StatusOK, w.Code, "the invocation itself is a success")
		var reply struct{ Outputs struct{ Res wireHTTP } }
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &reply))
		require.Equal(t, "application/json", reply.Outputs.Res.Headers["Content-Type"])
		var body HealthReport
		require.NoError(t, json.Unmarshal([]byte(reply.Outputs.Res.Body), &body))
		require.Equal(t, report, body)
		return reply.Outputs.Res.StatusCode
	}
	require.Equal(t, "503", status())
	report.Status = StatusReady
	require.Equal(t, "200", status())
}

func TestOnlyHarmlessCausesAreRepeated(t *testing.T) {
	const secret = "AccountKey=key-marker"
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	for _, c := range []struct {
		err  error
		want string
	}{
		{
			fault.Wrap(fault.Infrastructure, "cosmos: read", "refused", "nobody listens", refused),
			"cosmos: read: nobody listens: dial tcp: connection refused",
		},
		{
			fault.Wrap(fault.Infrastructure, "cosmos: read", "401", "not allowed", errors.New(secret)),
			"cosmos: read: not allowed: *errors.errorString",
		},
		{fmt.Errorf("%s: %w", secret, errors.New(secret)), "*errors.errorString"},
		{fmt.Errorf("%s: %w", secret, syscall.ENOSPC), "no space left on device"},
		{fmt.Errorf("%s: %w", secret, context.DeadlineExceeded), "context deadline exceeded"},
	} {
		require.Equal(t, c.want, describe(c.err).Reason)
	}
}

// No error puts content of the payload or of a connection string into the log or the reply.
func TestNothingOfThePayloadIsLogged(t *testing.T) {
	const marker = "payload-marker"
	bodies := map[string]string{
		"good":          cosmosBody(`[{"id":"`+marker+`","x":"`+marker+`"}]`, sysOnly),
		"not JSON":      marker,
		"cut off":       `{"Data":{"documents":"` + marker,
		"wrong kind":    `{"Data":{"documents":"` + marker + `"}}`,
		"bad escape":    `{"Data":{"documents":"\q` + marker + `"}}`,
		"other binding": `{"Data":{"` + marker + `":"` + marker + `"}}`,
		"bad retry":     cosmosBody(`[]`, `{"RetryContext":"`+marker+`"}`),
	}
	for name, body := range bodies {
		for _, err := range []error{
			nil, errors.New(marker), fault.Wrap(fault.Document, "op", "code", "reason", errors.New(marker)),
		} {
			w, log := invoke(t, CommitResults(committer(func(context.Context, commit.Delivery) (commit.Report, error) {
				return commit.Report{}, err
			})), Options{}, strings.NewReader(body))
			require.NotContains(t, log, marker, name)
			require.NotContains(t, w.Body.String(), marker, name)
		}
	}
}

func TestALayerIsReadAsEncodingJSONDoes(t *testing.T) {
	for _, inner := range []string{
		``, `abc`, `\"`, `\\`, `\\\\\"`, `a\nb\tc\rd\be\ff\/g`, `ä€😀`, `\u00e4\u20ac\ud83d\ude00`, `\ud83d`,
		`\ud83dx`, `\ud83d\u0041`, `\ude00\ud83d`, `\ud83d\ud83d\ude00`, `\u0000`, `\uFFFF\uabCD`, `\u0041\u0042`,
		`\ud83d\\u`, `\ud83d\"u`, `\ud83d\u` + `ffff`, "\xff",
	} {
		lit := `"[` + inner + `]"`
		var want string
		require.NoError(t, json.Unmarshal([]byte(lit), &want), lit)
		got, err := unwrap([]byte(lit), Array, "x")
		require.NoError(t, err, lit)
		require.Equal(t, want, string(got), lit)
	}
	for _, inner := range []string{`\x`, `\u12`, `\u12g4`, `\u`, `"`, `\ud83d\x`, `\ud83d"`} {
		_, err := unwrap([]byte(`"[`+inner+`]"`), Array, "x")
		require.ErrorContains(t, err, "a string that is not valid JSON", inner)
	}
}

func TestOfANameThatOccursTwiceTheLastCounts(t *testing.T) {
	for body, want := range map[string]string{
		`{"Data":{"documents":[1],"documents":[2]}}`:                       `[2]`,
		`{"Data":{"documents":[1]},"Data":{"documents":[2]}}`:              `[2]`,
		`{"Data":7,"Data":{"documents":[1]}}`:                              `[1]`,
		`{"Data":{"documents":"\"[{\\\"a\\\":1,\\\"a\\\":2}]\""}}`:         `[{"a":1,"a":2}]`,
		`{"Data":{"documents":[1]},"Metadata":{},"Metadata":{"sys":{}}}`:   `[1]`,
		`{"Data":{"documents":[1],"\u0064ocuments":" [ 2 ,{} ] ","x":[]}}`: `[2,{}]`,
	} {
		e, err := decode([]byte(body), "documents", Array)
		require.NoError(t, err, body)
		got, err := json.Marshal(e.elements)
		require.NoError(t, err, body)
		require.Equal(t, want, string(got), body)
	}
	for body, want := range map[string]string{
		`{"Data":{"documents":[1]},"Data":[]}`:              "payload: Data: expected an object, found an array",
		`{"Data":{"documents":[1]},"Data":{}}`:              "payload: Data.documents: expected the trigger's value, found 0 other bindings",
		`{"Data":{"documents":[1]},"Data":{"documents":7}}`: "payload: Data.documents: expected an array, found a number",
	} {
		_, err := decode([]byte(body), "documents", Array)
		require.EqualError(t, err, want, body)
	}
}

func TestTextBehindAValueIsRefused(t *testing.T) {
	for _, body := range []string{
		`{"Data":{"documents":[]}} x`, `{"Data":{"documents":[]}}{}`, `{"Data":{"documents":[]}}}`,
		`{"Data":{"documents":[]}},`,
		`{"Data":{"documents":"[] x"}}`, `{"Data":{"documents":"[][]"}}`, `{"Data":{"documents":"[]]"}}`,
		`{"Data":{"documents":"\"[]\" x"}}`,
	} {
		_, err := decode([]byte(body), "documents", Array)
		var p *PayloadError
		require.ErrorAs(t, err, &p, body)
	}
	_, err := decode([]byte(" \n{\"Data\" : {\"documents\" :\" \\\" [] \\\" \"} }\t\r\n"), "documents", Array)
	require.NoError(t, err, "white space is no text")
}

func TestNestingIsBounded(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	_, err := decode([]byte(cosmosBody(deep(maxDepth), sysOnly)), "documents", Array)
	require.NoError(t, err)
	_, err = decode([]byte(cosmosBody("["+deep(maxDepth+1)+"]", sysOnly)), "documents", Array)
	require.ErrorContains(t, err, "nested deeper than 1000 levels")
	_, err = decode([]byte(cosmosBody("[]", deep(maxDepth))), "documents", Array)
	require.NoError(t, err)
	_, err = decode([]byte(cosmosBody("[]", deep(maxDepth+1))), "documents", Array)
	require.ErrorContains(t, err, "nested deeper than 1000 levels")
}
