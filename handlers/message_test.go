package handlers

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/run"
)

type receiver func(ctx context.Context, d run.Incoming) (run.Handled, error)

func (r receiver) Receive(ctx context.Context, d run.Incoming) (run.Handled, error) { return r(ctx, d) }

func queueFunctions(r Receiver) []Mounted {
	return []Mounted{BatchManager(r), BatchWorker(r), BatchDeadLetter(r), RunDeadLetter(r)}
}

// messageText is the POST for a message: its text as a string literal in a member of a JSON object.
func messageText(text, metadata string) string {
	return `{"Data":{"message":` + newtonsoft(newtonsoft(text)) + `},"Metadata":` + metadata + `}`
}

func bodyOf(t *testing.T, post string) string {
	t.Helper()
	e, err := decode([]byte(post), "message", Message)
	require.NoError(t, err)
	return string(e.message.Body)
}

// Every text of a message arrives unchanged.
func FuzzMessage(f *testing.F) {
	for _, s := range []string{
		"", `{"batch_id":"7"}`, `"a JSON string"`, `"\"twice\""`, `"`, `""`, " \"x\" ", "null", "17", "eyJhIjoxfQ==",
		"\ufeff{}", "\u2028\x00\\",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) {
			return // the host replaced it by U+FFFD
		}
		require.Equal(t, text, bodyOf(t, messageText(text, sysOnly)))
	})
}

// A missing layer is tolerated unless the text is a string literal itself.
func TestFewerLayersThanTheHostsAreTolerated(t *testing.T) {
	for value, want := range map[string]string{
		newtonsoft(`{"a":1}`): `{"a":1}`, newtonsoft(`plain`): `plain`, newtonsoft(` "x" `): ` "x" `,
		newtonsoft(`"x" `): `"x" `, newtonsoft(`"x`): `"x`, newtonsoft(`"\q"`): `"\q"`,
		`{"a": 1}`: `{"a": 1}`, `[1]`: `[1]`, `17`: `17`, `null`: ``, `""`: ``, newtonsoft(`"x"`): `x`,
	} {
		require.Equal(t, want, bodyOf(t, `{"Data":{"message":`+value+`}}`), value)
	}
	_, err := decode([]byte(`{"Data":{"other":"x"}}`), "message", Message)
	var p *PayloadError
	require.ErrorAs(t, err, &p, "a binding of another name is a mistake in function.json")
}

func TestAMessageBelongsToItsReceiver(t *testing.T) {
	for text, post := range map[string]string{
		"text": messageText("text", sysOnly), `{"a":1}`: `{"Data":{"message":{"a":1}}}`,
	} {
		body := []byte(post)
		e, err := decode(body, "message", Message)
		require.NoError(t, err)
		for i := range body {
			body[i] = 'x'
		}
		require.Equal(t, text, string(e.message.Body))
	}
}

func TestMetadataOfAMessage(t *testing.T) {
	at := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	for metadata, want := range map[string]run.Incoming{
		``:                          {},
		`null`:                      {},
		`[1]`:                       {},
		`{"DeliveryCount":"3"}`:     {Count: 3},
		`{"DeliveryCount":3}`:       {Count: 3},
		`{"DeliveryCount":"\"3\""}`: {Count: 3},
		`{"DeliveryCount":"0"}`:     {},
		`{"DeliveryCount":"3.5"}`:   {},
		`{"DeliveryCount":{}}`:      {},
		`{"MessageId":"plain"}`:     {ID: "plain"},
		`{"MessageId":null}`:        {},
		`{"MessageId":["x"]}`:       {},
		`{"EnqueuedTimeUtc":"2026-03-04T05:06:07"}`: {EnqueuedAt: at},
		`{"EnqueuedTimeUtc":"2026-03-04T05:06:07.25Z"}`: {
			EnqueuedAt: at.Add(250 * time.Millisecond),
		},
		`{"EnqueuedTimeUtc":"x","EnqueuedTime":"2026-03-03T23:06:07-06:00"}`: {EnqueuedAt: at},
		`{"ApplicationProperties":{},"UserProperties":{"a":"b"}}`: {
			Properties: map[string]string{},
		},
		`{"ApplicationProperties":"{\"a\":\"b\"}"}`: {
			Properties: map[string]string{"a": "b"},
		},
		`{"ApplicationProperties":"x","UserProperties":{"a":"\"quoted\"","b":1.50,"c":[1],"d":null}}`: {
			Properties: map[string]string{"a": `"quoted"`, "b": "1.50", "c": "[1]", "d": ""},
		},
	} {
		got := messageOf([]byte(`"\"\""`), []byte(metadata))
		require.Empty(t, got.Body, metadata)
		got.Body = nil
		require.Equal(t, want, got, metadata)
	}
}

// Every error fails the invocation: a 2xx would complete the message.
func TestAnErrorAbandonsTheMessage(t *testing.T) {
	for _, f := range queueFunctions(receiver(nil)) {
		require.False(t, f.LeaveToTimer, f.Name)
		require.Equal(t, Message, f.Payload, f.Name)
	}
	handled := run.Handled{
		Did: "deferred", Run: "r", Batch: "7", Reason: "the flow is stopped", Counts: map[string]int{"documents": 3},
	}
	for _, c := range []struct {
		err    error
		status int
		level  string
	}{
		{nil, http.StatusOK, "info"},
		{fault.New(fault.Infrastructure, "sqlite: claim", "14", "cannot open"), http.StatusServiceUnavailable, "warn"},
		{fault.New(fault.Quota, "sqlite: claim", "13", "disk full"), http.StatusServiceUnavailable, "warn"},
		{context.DeadlineExceeded, http.StatusServiceUnavailable, "warn"},
		{fault.New(fault.Contention, "sqlite: claim", "5", "locked"), http.StatusInternalServerError, "error"},
		{fault.New(fault.Document, "run: read", "not_json", "no JSON"), http.StatusInternalServerError, "error"},
		{errors.New("marker"), http.StatusInternalServerError, "error"},
	} {
		r := receiver(func(context.Context, run.Incoming) (run.Handled, error) { return handled, c.err })
		for _, f := range queueFunctions(r) {
			w, log := invoke(t, f, Options{Now: clock}, strings.NewReader(messageText("{}", `{"DeliveryCount":"4"}`)))
			require.Equal(t, c.status, w.Code, "%s: %v", f.Name, c.err)
			require.Contains(t, log, `"level":"`+c.level+`"`)
			require.Contains(t, log, `"run":"r","batch":"7",`)
			require.Contains(t, log, `"did":"deferred","counts":{"documents":3},"delivery_count":4`)
			require.NotContains(t, log, "marker")
			require.True(t, json.Valid([]byte(log)))
			if c.err == nil {
				require.JSONEq(t,
					`{"Outputs":{},"Logs":["message, run r, batch 7: deferred (the flow is stopped); 3 documents"],"ReturnValue":null}`, w.Body.String())
			}
		}
	}
	w, log := invoke(t,
		BatchWorker(receiver(func(context.Context, run.Incoming) (run.Handled, error) { panic("marker") })), Options{},
		strings.NewReader(messageText("{}", sysOnly)))
	require.Equal(t, http.StatusInternalServerError, w.Code)
	require.NotContains(t, log, "marker")
}

func TestTheReceiverIsToldTheInvocation(t *testing.T) {
	for _, f := range queueFunctions(receiver(func(_ context.Context, d run.Incoming) (run.Handled, error) {
		require.Equal(t, run.Incoming{Body: []byte("x"), ID: "a", Count: 1, Invocation: invocationID}, d)
		return run.Handled{}, nil
	})) {
		w, _ := invoke(t, f, Options{},
			strings.NewReader(messageText("x", `{"MessageId":"\"a\"","DeliveryCount":"1"}`)))
		require.Equal(t, http.StatusOK, w.Code)
		require.Contains(t, w.Body.String(), "message: nothing done")
	}
}

// Neither the body nor its properties are logged.
func TestNothingOfAMessageIsLogged(t *testing.T) {
	const marker = "payload-marker"
	metadata := `{"MessageId":"\"` + marker + `\"","DeliveryCount":"` + marker + `","ApplicationProperties":{"` +
		marker + `":"` + marker + `"}}`
	for _, err := range []error{nil, fault.New(fault.Document, "op", "code", "reason")} {
		w, log := invoke(t,
			BatchDeadLetter(receiver(func(context.Context, run.Incoming) (run.Handled, error) {
				return run.Handled{}, err
			})), Options{},
			strings.NewReader(messageText(marker, metadata)))
		require.NotContains(t, log+w.Body.String(), marker)
	}
	w, log := invoke(t, BatchDeadLetter(receiver(nil)), Options{},
		strings.NewReader(`{"Data":{"`+marker+`":"`+marker+`"}}`))
	require.Equal(t, http.StatusBadRequest, w.Code)
	require.NotContains(t, log+w.Body.String(), marker)
}

// A dead letter that cannot be handled comes back at once and for ever; only a late response slows that down.
func TestAFailureOnADeadLetterQueueIsAnsweredSlowly(t *testing.T) {
	for name, r := range map[string]receiver{
		"an error": func(context.Context, run.Incoming) (run.Handled, error) {
			return run.Handled{}, fault.New(fault.Infrastructure, "op", "code", "reason")
		},
		"a panic": func(context.Context, run.Incoming) (run.Handled, error) { panic("marker") },
		"success": func(context.Context, run.Incoming) (run.Handled, error) { return run.Handled{}, nil },
	} {
		for _, f := range queueFunctions(r) {
			var waited []time.Duration
			invoke(t, f,
				Options{Now: clock, Wait: func(_ context.Context, d time.Duration) error {
					waited = append(waited, d)
					return nil
				}},
				strings.NewReader(messageText("{}", sysOnly)))
			if name != "success" && strings.HasSuffix(f.Name, "DeadLetter") {
				require.Equal(t, []time.Duration{time.Minute}, waited, "%s: %s", f.Name, name)
			} else {
				require.Empty(t, waited, "%s: %s", f.Name, name)
			}
		}
	}
}
