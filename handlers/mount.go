package handlers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/run"
	"sqlwriter/internal/timer"
)

// DefaultDeadline bounds one invocation. It stays well under host.json's functionTimeout of 10 minutes, because an
// invocation that reaches that one makes the host kill this process and every other invocation in it (docs/facts.md F24).
const DefaultDeadline = 4 * time.Minute

// DefaultMaxBody is the longest body that is taken, in bytes: 100 documents of the largest size, escaped twice, fit.
const DefaultMaxBody = 512 << 20

// hostInvocation is the header in which the host names the invocation (docs/facts.md F1).
const hostInvocation = "X-Azure-Functions-InvocationId"

// Invocation is one call of a function, decoded.
type Invocation struct {
	// ID is the host's name of the invocation. It is empty when the host gave none.
	ID string
	// Elements are the parts of an Array, each as it stands in the payload (it may be no object, or broken inside);
	// Object is the value of an Object. Both are valid only until the function returns.
	Elements []json.RawMessage
	Object   json.RawMessage
	// Message is a Message, without the invocation's name.
	Message run.Incoming
	// RetryCount is how often the host has offered this very payload before.
	RetryCount int
	// Received is when the invocation began.
	Received time.Time
}

// Function does one invocation. Errors by kind: of dependency scope (or the end of the context) answer 503, so that the
// host offers the payload again; every other error is logged as one and answers as Mounted.LeaveToTimer says. With an
// error the reply's Note is still logged.
type Function func(ctx context.Context, in Invocation) (Reply, error)

// Mounted says how a function hangs on the host.
type Mounted struct {
	// Name is the folder that holds its function.json; Binding is the name of the trigger in there.
	Name, Binding string
	// Payload is what the trigger's value is.
	Payload Kind
	// LeaveToTimer answers 2xx to a payload that cannot be decoded, to a panic and to every error that is not of
	// dependency scope: the host would offer the same payload for ever and hold the feed, while the documents in it
	// are found by the recovery timer (docs/requirements.md R31). Otherwise these answer 4xx and 500.
	LeaveToTimer bool
	// Slow answers a failure not before slowFailure has passed: who fails on a dead-letter queue gets the same message again at
	// once, and for ever, because that queue has no limit of deliveries (docs/facts.md F50).
	Slow bool
	// Run does the work.
	Run Function
}

// Options configure Mount. Zero values mean the defaults that are named.
type Options struct {
	// Log gets one line per invocation.
	Log zerolog.Logger
	// Deadline bounds one invocation: DefaultDeadline.
	Deadline time.Duration
	// MaxBody is the longest body that is taken, in bytes: DefaultMaxBody.
	MaxBody int64
	// Now is the clock, Wait sleeps unless the context ends first.
	Now  func() time.Time
	Wait func(ctx context.Context, d time.Duration) error
}

// slowFailure is how long the failure of a Slow function is held back.
const slowFailure = time.Minute

// Mount makes the server's handler of all functions. It recognises a function by its path, "/<Name>", and takes POST
// only; "/" answers the host's readiness and health pings. Every reply is a JSON object with its content type.
func Mount(functions []Mounted, o Options) http.Handler {
	if o.Deadline == 0 {
		o.Deadline = DefaultDeadline
	}
	if o.MaxBody == 0 {
		o.MaxBody = DefaultMaxBody
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Wait == nil {
		o.Wait = timer.Wait
	}
	m := &mount{o: o, byName: make(map[string]Mounted, len(functions))}
	for _, f := range functions {
		m.byName[f.Name] = f
		m.names = append(m.names, f.Name)
	}
	slices.Sort(m.names)
	return m
}

type mount struct {
	o      Options
	byName map[string]Mounted
	names  []string
}

// ServeHTTP finds the function and runs the invocation.
func (m *mount) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, "/")
	want := http.MethodPost
	if name == "" {
		want = http.MethodGet
	}
	f, known := m.byName[name]
	switch {
	case name != "" && !known:
		m.o.Log.Error().Str("invocation", r.Header.Get(hostInvocation)).Int("status", http.StatusNotFound).
			Msg("the host asks for a function that this build does not have: its folder has no handler")
		sendError(w, http.StatusNotFound, errorDetail{Reason: "no such function", Known: m.names})
	case r.Method != want:
		w.Header().Set("Allow", want)
		sendError(w, http.StatusMethodNotAllowed, errorDetail{Reason: "this path takes " + want + " only"})
	case name == "":
		send(w, http.StatusOK, []byte(`{"status":"live"}`))
	default:
		m.invoke(w, r, f)
	}
}

// invoke runs one invocation and writes its log line.
func (m *mount) invoke(w http.ResponseWriter, r *http.Request, f Mounted) {
	begin := m.o.Now()
	ctx, cancel := context.WithTimeout(r.Context(), m.o.Deadline)
	defer cancel()
	reply, err := m.run(ctx, r, f, begin)
	status, detail := judge(err, f.LeaveToTimer)
	var body []byte
	if status == http.StatusOK {
		var encodeErr error
		if body, encodeErr = reply.encode(); encodeErr != nil {
			err, status, detail = encodeErr, http.StatusInternalServerError, errorDetail{Reason: "the reply could not be encoded"}
		}
	}
	m.line(f, r, status, err, reply, begin)
	if status != http.StatusOK && f.Slow {
		if left := slowFailure - m.o.Now().Sub(begin); left > 0 {
			_ = m.o.Wait(ctx, left) // the failure is answered in either case
		}
	}
	if status == http.StatusOK {
		send(w, status, body)
		return
	}
	sendError(w, status, detail)
}

// run reads, decodes and calls the function; a panic in any of it becomes a *panicError.
func (m *mount) run(ctx context.Context, r *http.Request, f Mounted, begin time.Time) (reply Reply, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &panicError{value: value, stack: debug.Stack()}
		}
	}()
	body, err := readBody(r, m.o.MaxBody)
	switch {
	case errors.Is(err, errTooLarge):
		return Reply{}, fmt.Errorf("read the body: %w", err)
	case err != nil: // the host is going, or the connection broke: nobody's payload is at fault, and it comes again
		return Reply{}, fault.Wrap(fault.Infrastructure, "handlers: read the body", "body", "the body broke off", err)
	}
	e, err := decode(body, f.Binding, f.Payload)
	if err != nil {
		return Reply{}, err
	}
	return f.Run(ctx, Invocation{
		ID: r.Header.Get(hostInvocation), Elements: e.elements, Object: e.object, Message: e.message, RetryCount: e.retryCount, Received: begin,
	})
}

// judge maps an error to a status code: the one place where the two meet.
func judge(err error, leaveToTimer bool) (int, errorDetail) {
	detail := describe(err)
	var payload *PayloadError
	switch {
	case err == nil:
		return http.StatusOK, detail
	case fault.IsDependency(err) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled):
		return http.StatusServiceUnavailable, detail
	case leaveToTimer:
		return http.StatusOK, detail
	case errors.As(err, &payload):
		return http.StatusBadRequest, detail
	case errors.Is(err, errTooLarge):
		return http.StatusRequestEntityTooLarge, detail
	default:
		return http.StatusInternalServerError, detail
	}
}

// line writes the invocation's log line.
func (m *mount) line(f Mounted, r *http.Request, status int, err error, reply Reply, begin time.Time) {
	event, text := m.o.Log.Info(), "done"
	var p *panicError
	switch {
	case err == nil:
	case status == http.StatusServiceUnavailable:
		event, text = m.o.Log.Warn(), "not now: the host will offer this payload again"
	case status == http.StatusOK:
		event, text = m.o.Log.Error(), "failed, and left to the recovery timer so that the feed goes on"
	default:
		event, text = m.o.Log.Error(), "failed"
	}
	event.Str("function", f.Name).Str("invocation", r.Header.Get(hostInvocation)).Int("status", status).
		Int64("duration_ms", m.o.Now().Sub(begin).Milliseconds())
	if err != nil {
		d := describe(err)
		event.Str("kind", d.Kind).Str("code", d.Code).Str("reason", d.Reason)
	}
	if errors.As(err, &p) {
		event.Bytes("stack", p.stack)
	}
	if reply.Note != nil {
		event.EmbedObject(reply.Note)
	}
	event.Msg(text)
}

// panicError is a panic that was caught.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string {
	if err, ok := e.value.(runtime.Error); ok {
		return "panic: " + err.Error()
	}
	return fmt.Sprintf("panic with a %T", e.value) // its text may hold content
}

// describe says what an error is without repeating text that may hold content or a secret: our own reasons, and of
// foreign causes the type, or the text where the type guarantees that it is harmless (of a network error that is the
// host and port, no more).
func describe(err error) errorDetail {
	var payload *PayloadError
	var caught *panicError
	switch e := fault.As(err); {
	case err == nil:
		return errorDetail{}
	case e != nil:
		reason := e.Reason
		if e.Op != "" {
			reason = e.Op + ": " + reason
		}
		if e.Err != nil {
			reason += ": " + cause(e.Err)
		}
		return errorDetail{Reason: reason, Kind: string(e.Kind), Code: e.Code}
	case errors.As(err, &payload):
		return errorDetail{Reason: payload.Error(), Kind: string(fault.Document), Code: "payload"}
	case errors.As(err, &caught):
		return errorDetail{Reason: caught.Error(), Kind: string(fault.Internal), Code: "panic"}
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return errorDetail{Reason: cause(err), Kind: string(fault.Infrastructure), Code: "deadline"}
	default:
		return errorDetail{Reason: cause(err), Kind: string(fault.Internal), Code: "unclassified"}
	}
}

// cause names a foreign error: its text when it is known to hold neither content nor secrets, else its type.
func cause(err error) string {
	var network *net.OpError
	var errno syscall.Errno
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return context.DeadlineExceeded.Error()
	case errors.Is(err, context.Canceled):
		return context.Canceled.Error()
	case errors.Is(err, errTooLarge):
		return errTooLarge.Error()
	case errors.As(err, &network):
		return network.Error()
	case errors.As(err, &errno):
		return errno.Error()
	}
	return fmt.Sprintf("%T", innermost(err))
}

// innermost follows a chain to its end.
func innermost(err error) error {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err
		}
		err = next
	}
}
