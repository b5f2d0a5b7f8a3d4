package handlers

import (
	"encoding/json"
	"maps"
	"net/http"
	"strconv"

	"sqlwriter/internal/events"
)

// Reply is a function's reply to the host.
type Reply struct {
	// HTTP is the response of an httpTrigger function, for the output binding "res".
	HTTP *HTTPReply
	// Logs are lines for the invocation's own log, the only log that the host attaches to the invocation (docs/facts.md
	// F20). They never have content.
	Logs []string
	// Fields are added to the invocation's event.
	Fields events.Fields
}

// HTTPReply is the response of an httpTrigger function.
type HTTPReply struct {
	Status int
	// Body is a JSON object. It is sent as text, because the host parses and rewrites objects and their dates. A Text
	// is sent as it is.
	Body any
	// Headers replace and add to those that every response has.
	Headers map[string]string
}

// Text is a body that is no JSON, such as a page.
type Text string

func (r HTTPReply) text() (string, error) {
	if text, ok := r.Body.(Text); ok {
		return string(text), nil
	}
	body, err := json.Marshal(r.Body)
	return string(body), err
}

// wireReply is the host's HttpScriptInvocationResult. It always has all three members: an empty or null reply blocks
// the invocation until functionTimeout, which kills this process (docs/facts.md F17).
type wireReply struct {
	Outputs     map[string]wireHTTP
	Logs        []string
	ReturnValue any
}

// wireHTTP is the value of an http output binding.
type wireHTTP struct {
	StatusCode string            `json:"statusCode"`
	Headers    map[string]string `json:"headers"`
	Body       string            `json:"body"`
}

// wireError is the body of other statuses than 2xx. The host ignores it; it is for people.
type wireError struct {
	Error errorDetail `json:"error"`
}

type errorDetail struct {
	Reason string   `json:"reason"`
	Kind   string   `json:"kind,omitempty"`
	Code   string   `json:"code,omitempty"`
	Known  []string `json:"known_functions,omitempty"`
}

// encode returns the body of a 2xx reply.
func (r Reply) encode() ([]byte, error) {
	wire := wireReply{Outputs: map[string]wireHTTP{}, Logs: r.Logs}
	if wire.Logs == nil {
		wire.Logs = []string{}
	}
	if r.HTTP != nil {
		body, err := r.HTTP.text()
		if err != nil {
			return nil, err
		}
		headers := map[string]string{"Content-Type": jsonType, "Cache-Control": "no-store"}
		maps.Copy(headers, r.HTTP.Headers)
		wire.Outputs["res"] = wireHTTP{StatusCode: strconv.Itoa(r.HTTP.Status), Headers: headers, Body: body}
	}
	return json.Marshal(wire)
}

// jsonType is set on every response. Without it Go guesses text/plain, and the host fails the invocation after the work
// was done (docs/facts.md F16).
const jsonType = "application/json"

// send writes a response. A write error is ignored: the host will send the payload again.
func send(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", jsonType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

func sendError(w http.ResponseWriter, status int, d errorDetail) {
	body, err := json.Marshal(wireError{d})
	if err != nil { // impossible: strings only
		body = []byte(`{"error":{"reason":"unknown"}}`)
	}
	send(w, status, body)
}
