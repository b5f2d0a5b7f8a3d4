package azure

import (
	"errors"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/neterr"
)

// Service is the table of the errors of a service over HTTP, as azcore gives them. One table of rows decides, and
// docs/errors.md is made of it.
type Service struct {
	// Adapter is the name of the adapter in the rows.
	Adapter string
	// Answers are the rows for answers; the first that fits decides. A row with About is for calls about that only.
	Answers []fault.Row
	// Applied says what may have happened although no answer came: "a write may have been applied".
	Applied string
	// NoAnswer is the consequence of a call without an answer.
	NoAnswer fault.Consequence
	// Own are the rows of the adapter's own codes.
	Own []fault.Row
	// Word gives the service's word beside the status, which is a part of the code; empty if there is none.
	Word func(*azcore.ResponseError, http.Header) string
	// RequestID is the header with the id of the request in the service's log.
	RequestID string
}

// Faults gives all rows, in the order in which they decide.
func (s Service) Faults() []fault.Row {
	rows := s.Answers
	for _, c := range s.calls() {
		rows = append(rows, c.Row)
	}
	return fault.Of(s.Adapter, append(rows, s.Own...))
}

// call is the row of a call without an answer.
type call struct {
	fault.Row
	matches func(error) bool
}

// calls are the rows of calls without an answer; the first match decides, and all are infrastructure. The types of the
// errors are those of net/http and azidentity, inside the SDK's wrappers.
func (s Service) calls() []call {
	applied := "; " + s.Applied
	calls := []call{
		{fault.Row{Code: "cancelled", Reason: "the caller gave up" + applied}, neterr.IsCancelled},
		{fault.Row{Code: "dns", Reason: "the account's name cannot be looked up"}, neterr.IsDNS},
		{
			fault.Row{
				Code: "tls", Reason: "no trusted connection: certificate, or not https at the other end",
			}, neterr.IsTLS,
		},
		{fault.Row{Code: "refused", Reason: "nothing listens at the account's address"}, neterr.IsRefused},
		{fault.Row{Code: "unreachable", Reason: "the network does not reach the account"}, neterr.IsUnreachable},
		{fault.Row{Code: "identity", Reason: "the identity got no token"}, IsIdentity},
		{fault.Row{Code: "reset", Reason: "the connection was reset" + applied}, isReset},
		{fault.Row{Code: "timeout", Reason: "no answer within the deadline" + applied}, neterr.IsTimeout},
		{fault.Row{Code: "eof", Reason: "the connection was cut" + applied}, neterr.IsEOF},
		// The type of any other error does not tell it from a network failure. No document is blamed in doubt.
		{
			fault.Row{Code: "unknown", Reason: "the call failed without an answer" + applied},
			func(error) bool { return true },
		},
	}
	for i := range calls {
		calls[i].Kind, calls[i].Own = fault.Infrastructure, s.NoAnswer
		calls[i].Source = "the type of the error: net, syscall, crypto/tls, azidentity"
	}
	return calls
}

// isReset reports a reset connection. After a reset while it reads, net/http closes the connection, and may then report
// the failed write.
func isReset(err error) bool { return neterr.IsReset(err) || errors.Is(err, net.ErrClosed) }

// Translate turns an error of the SDK into a fault; op and about are the call's.
func (s Service) Translate(op, about string, err error) error {
	var answer *azcore.ResponseError
	if errors.As(err, &answer) {
		return s.status(op, about, answer)
	}
	// The wrappers contain the request's address, in which a signature may be, and a log of the causes would print
	// them.
	for u := (*url.Error)(nil); errors.As(err, &u); {
		err = u.Err
	}
	calls := s.calls()
	c := calls[slices.IndexFunc(calls, func(c call) bool { return c.matches(err) })] // the last one always does
	return fault.Wrap(c.Kind, op, c.Code, c.Reason, neterr.Redact(err, neterr.Describe(err)))
}

func (s Service) status(op, about string, answer *azcore.ResponseError) error {
	header := http.Header{}
	if answer.RawResponse != nil {
		header = answer.RawResponse.Header
	}
	code := strconv.Itoa(answer.StatusCode)
	if word := s.Word(answer, header); word != "" {
		code += "/" + fault.Truncate(word, fault.MaxForeign)
	}
	text := "HTTP " + code
	if id := header.Get(s.RequestID); id != "" {
		text += ", request " + fault.Truncate(id, fault.MaxForeign)
	}
	for _, r := range s.Answers {
		if (r.About == "" || r.About == about) && r.Is(code) {
			return &fault.Error{
				Kind: r.Kind, Condition: r.Condition, Code: code, Op: op, Reason: r.Reason,
				RetryAfter: neterr.RetryAfter(header), Err: neterr.Redact(answer, text),
			}
		}
	}
	return fault.Wrap(fault.Infrastructure, op, code, "not an HTTP status", neterr.Redact(answer, text))
}
