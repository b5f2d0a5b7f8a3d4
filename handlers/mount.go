package handlers

import (
	"cmp"
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

	"sqlwriter/internal/events"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/run"
	"sqlwriter/internal/timer"
)

// DefaultDeadline bounds one invocation. It is well under host.json's functionTimeout of 10 minutes. An invocation that
// reaches functionTimeout makes the host kill this process with all its invocations (docs/facts.md F24).
const DefaultDeadline = 4 * time.Minute

// DefaultMaxBody is the longest accepted body in bytes: 100 documents of the largest size, escaped twice.
const DefaultMaxBody = 512 << 20

// hostInvocation is the header with the invocation's id (docs/facts.md F1).
const hostInvocation = "X-Azure-Functions-InvocationId"

// Invocation is one decoded call of a function.
type Invocation struct {
	// ID is the host's id of the invocation; may be empty.
	ID string
	// Elements are the elements of an Array, each unchecked. Object is the value of an Object. Both are valid only
	// until the function returns.
	Elements []json.RawMessage
	Object   json.RawMessage
	// Message is a Message, without Invocation.
	Message run.Incoming
	// RetryCount is how often the host has sent this Array before; 0 for other types.
	RetryCount int
	Received   time.Time
}

// Function handles one invocation. An error of scope dependency, or of the context, gives 503, so that the host sends
// the payload again. Other errors are logged, and Mounted.LeaveToTimer decides their status. The reply's Fields are
// logged in any case.
type Function func(ctx context.Context, in Invocation) (Reply, error)

// Mounted is a function of the host and its handler.
type Mounted struct {
	// Name is the folder of its function.json; Binding is the name of the trigger there.
	Name, Binding string
	// Payload is the type of the trigger's value.
	Payload Kind
	// LeaveToTimer answers 2xx to an invalid payload, to a panic and to every error that is not of scope dependency.
	// The host would otherwise repeat the payload for ever and block the feed. The recovery timer finds the documents
	// (docs/requirements.md R31). Without it these cases answer 4xx and 500.
	LeaveToTimer bool
	// Slow delays the response to a failure until slowFailure has passed. A dead-letter queue has no delivery limit and
	// delivers a failed message again at once (docs/facts.md F50).
	Slow bool
	// MaxBody is the longest accepted body in bytes; 0 means that of Options. An HTTP function sets it (postOf): its
	// caller chooses the size, and a longer body is not held. The caller gets 413.
	MaxBody int64
	// Event is the event of an invocation that succeeds.
	Event events.Name
	Run   Function
}

// Options configure Mount. Each zero value means the default that its comment names.
type Options struct {
	// Log gets one event per invocation.
	Log zerolog.Logger
	// Deadline bounds one invocation: DefaultDeadline.
	Deadline time.Duration
	// MaxBody is the longest accepted body in bytes: DefaultMaxBody.
	MaxBody int64
	// Now is the clock. Wait sleeps until d has passed or the context ends.
	Now  func() time.Time
	Wait func(ctx context.Context, d time.Duration) error
}

// slowFailure is the shortest duration of a failed invocation of a Slow function.
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
	case !isHost(r):
		const reason = "only the Functions host is answered, which is no browser and calls 127.0.0.1"
		events.For(r.Context(), m.o.Log).Write(events.InvocationFailed,
			events.Fields{Function: f.Name, Reason: reason, HTTPStatus: http.StatusForbidden})
		sendError(w, http.StatusForbidden, errorDetail{Reason: reason})
	case name != "" && !known:
		events.For(r.Context(), m.o.Log).Write(events.FunctionUnknown,
			events.Fields{Invocation: r.Header.Get(hostInvocation), HTTPStatus: http.StatusNotFound})
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

// isHost reports whether a request can be the host's. A page in a browser of this machine can post to our port, also by
// a name of its own that points here, with identities of its own making. The host calls 127.0.0.1 (docs/facts.md F1)
// and sends none of a browser's headers: those of its callers stand in the body.
func isHost(r *http.Request) bool {
	return isLoopback("http://"+r.Host) && r.Header.Get("Origin") == "" && r.Header.Get("Sec-Fetch-Site") == ""
}

// invoke runs one invocation, writes its log line and responds.
func (m *mount) invoke(w http.ResponseWriter, r *http.Request, f Mounted) {
	begin := m.o.Now()
	ctx := events.With(r.Context(), events.Fields{Function: f.Name, Invocation: r.Header.Get(hostInvocation)})
	ctx, cancel := context.WithTimeout(ctx, m.o.Deadline)
	defer cancel()
	reply, err := m.run(ctx, r, f, begin)
	status, detail := statusOf(err, f.LeaveToTimer)
	var body []byte
	if status == http.StatusOK {
		var encodeErr error
		if body, encodeErr = reply.encode(); encodeErr != nil {
			err, status, detail = encodeErr, http.StatusInternalServerError,
				errorDetail{Reason: "the reply could not be encoded"}
		}
	}
	m.tell(ctx, f, status, err, reply, begin)
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

// run decodes the payload and calls the function. A panic becomes a *panicError.
func (m *mount) run(ctx context.Context, r *http.Request, f Mounted, begin time.Time) (reply Reply, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &panicError{value: value, stack: debug.Stack()}
		}
	}()
	body, err := readBody(r, cmp.Or(f.MaxBody, m.o.MaxBody))
	switch {
	case errors.Is(err, errTooLarge) && f.MaxBody > 0: // the caller's mistake, so no failed invocation
		p := problem(refused(http.StatusRequestEntityTooLarge, fmt.Sprintf("the body: expected at most %d KiB, found more: "+
			"name fewer documents in one request, or select them by a filter (docs/api.md)", callOf(f.MaxBody)>>10)))
		return Reply{HTTP: answer(p), Fields: events.Fields{HTTPStatus: p.Status}}, nil
	case errors.Is(err, errTooLarge):
		return Reply{}, fmt.Errorf("read the body: %w", err)
	case err != nil: // the host stops or the connection broke: the payload comes again
		return Reply{}, fault.Wrap(fault.Infrastructure, "handlers: read the body", "body", "the body broke off", err)
	}
	e, err := decode(body, f.Binding, f.Payload)
	if err != nil {
		return Reply{}, err
	}
	return f.Run(ctx, Invocation{
		ID: r.Header.Get(hostInvocation), Elements: e.elements, Object: e.object, Message: e.message,
		RetryCount: e.retryCount, Received: begin,
	})
}

// statusOf maps an error to a status code. No other code does this.
func statusOf(err error, leaveToTimer bool) (int, errorDetail) {
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

// tell writes the invocation's event.
func (m *mount) tell(ctx context.Context, mounted Mounted, status int, err error, reply Reply, begin time.Time) {
	is, f := mounted.Event, reply.Fields
	f.MS = m.o.Now().Sub(begin).Milliseconds()
	// an operator's call: the caller has the answer, and the alert needs the line
	if f.HTTPStatus == http.StatusInternalServerError {
		is = events.InvocationFailed
	}
	if err != nil {
		d := describe(err)
		f.HTTPStatus, f.Kind, f.Code, f.Reason = status, fault.Kind(d.Kind), d.Code, d.Reason
		is = events.InvocationFailed
	}
	switch {
	case err == nil:
	case status == http.StatusServiceUnavailable:
		is = events.InvocationPostponed
	case status == http.StatusOK:
		is = events.InvocationLeft
	}
	if p := (*panicError)(nil); errors.As(err, &p) {
		f.Stack = string(p.stack)
	}
	events.For(ctx, m.o.Log).Write(is, f)
}

// panicError is a recovered panic.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string {
	if err, ok := e.value.(runtime.Error); ok {
		return "panic: " + err.Error()
	}
	return fmt.Sprintf("panic with a %T", e.value) // the value's text may have content
}

// describe returns an error without text that may have content or a secret. Our own reasons are safe. Of other causes
// it gives the type, or the text if the type guarantees harmless text (a network error has host and port).
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

// cause returns the text of a foreign error if its type guarantees harmless text, else its type.
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

// innermost returns the last error of a chain.
func innermost(err error) error {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err
		}
		err = next
	}
}
