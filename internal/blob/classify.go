package blob

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"

	"sqlwriter/internal/fault"
)

// target is what a call was about.
type target int

const (
	// onFile: the reading of one file, which may not be there.
	onFile target = iota
	// onContainer: everything else.
	onContainer
)

// operation names a call in errors and says what it was about.
type operation struct {
	name   string
	target target
}

// statusRule is one row: what an answer of the service means.
type statusRule struct {
	// from and to are the statuses, inclusive.
	from, to int
	// code is x-ms-error-code; anyCode matches all, an absent one too.
	code bloberror.Code
	// files says that the row is for the reading of a file only.
	files     bool
	kind      fault.Kind
	condition fault.Condition
	reason    string
	source    string
}

const anyCode bloberror.Code = "*"

// statusRules is the table of answers; the first row that fits decides. No answer blames a document: the port says that
// evidence that cannot be kept is never the document's fault. Sources: "common" and "blob" are the pages "Common REST API
// error codes" and "Blob Storage error codes" of the REST reference, "facts" is azure-facts.
func statusRules() []statusRule {
	const (
		infra = fault.Infrastructure
		none  = fault.NoCondition
	)
	return []statusRule{
		{400, 400, anyCode, false, infra, none, "the service does not accept our request; no document is to blame", "common"},
		{401, 401, anyCode, false, infra, none, "no token, or one that is not accepted", "common"},
		{403, 403, bloberror.AuthenticationFailed, false, infra, none, "the key, signature or token is not accepted, or this machine's clock is off", "common"},
		{403, 403, bloberror.AuthorizationFailure, false, infra, none, "not allowed: firewall or network rule of the account, or a signature without this right", "blob"},
		{403, 403, bloberror.AuthorizationPermissionMismatch, false, infra, none, "the identity lacks the role Storage Blob Data Contributor, or the signature this right", "facts 7"},
		{403, 403, bloberror.AccountIsDisabled, false, infra, none, "the account is disabled", "common"},
		{403, 403, anyCode, false, infra, none, "not allowed: key, role, signature, firewall or state of the account", "common"},
		{404, 404, bloberror.BlobNotFound, true, fault.Document, fault.Gone, "no such file", "blob"},
		{404, 404, bloberror.ContainerNotFound, false, infra, none, "the container does not exist", "blob"},
		{404, 404, anyCode, false, infra, none, "the account or container is not there", "common"},
		{408, 408, anyCode, false, infra, none, "the service took too long; the file may have been stored", "facts 7"},
		{409, 409, bloberror.ContainerBeingDeleted, false, infra, none, "a container of this name is being deleted, which takes half a minute or longer", "blob"},
		{409, 409, bloberror.ContainerDisabled, false, infra, none, "the container is disabled", "blob"},
		{409, 409, bloberror.AccountBeingCreated, false, infra, none, "the account is still being made", "common"},
		{409, 409, anyCode, false, infra, none, "the account, container or file is in a state that does not allow this", "common"},
		{413, 413, anyCode, false, infra, none, "larger than one request may be, which no document is: somebody between us and the service has a lower limit", "common"},
		{429, 429, anyCode, false, fault.Throttled, none, "the account asks to slow down", "facts 7"},
		{503, 503, bloberror.ServerBusy, false, fault.Throttled, none, "the account or a part of it is over its limits", "common"},
		{507, 507, anyCode, false, fault.Quota, none, "there is no room (the service itself documents no such answer)", "RFC 4918"},
		{500, 599, anyCode, false, infra, none, "the service failed; the file may have been stored", "common"},
		{100, 999, anyCode, false, infra, none, "the service answered with a status we do not know", "design 3"},
	}
}

// thereRule is one row: an answer to a PUT with If-None-Match: * that only a name with a file on it gets.
type thereRule struct {
	status int
	code   bloberror.Code
	reason string
	source string
}

// thereRules is the table of answers that mean "there is one already". Evidence is kept by rules of the owner's, too, and
// what they forbid is the changing of a file.
func thereRules() []thereRule {
	return []thereRule{
		{409, bloberror.BlobAlreadyExists, "the usual answer; after a lost answer the file may be our own", "facts 7"},
		{412, anyCode, "the condition, or a lease that somebody has on the file", "facts 7"},
		{409, bloberror.BlobImmutableDueToPolicy, "a retention policy protects the file", "blob"},
		{409, "BlobImmutableDueToLegalHold", "a legal hold protects the file", "blob"},
		{409, bloberror.BlobArchived, "a lifecycle rule has moved the file to the archive", "blob"},
		{409, bloberror.BlobBeingRehydrated, "the file is on its way back from the archive", "blob"},
		{403, bloberror.UnauthorizedBlobOverwrite, "we may add files but not replace them", "blob"},
	}
}

// isThere reports whether a PUT failed because its name has a file already.
func isThere(err error) bool {
	var answer *azcore.ResponseError
	if !errors.As(err, &answer) {
		return false
	}
	for _, r := range thereRules() {
		if r.status == answer.StatusCode && (r.code == anyCode || string(r.code) == answer.ErrorCode) {
			return true
		}
	}
	return false
}

// transportRule is one row: what it means that no answer came.
type transportRule struct {
	code    string
	matches func(error) bool
	reason  string
}

// transportRules is the table of lost answers; all are infrastructure, and the first row that fits decides. The types
// are net/http's and azidentity's, reached through the SDK's wrappers.
func transportRules() []transportRule {
	return []transportRule{
		{"cancelled", is(context.Canceled), "the caller gave up; the file may have been stored"},
		{"dns", as[*net.DNSError], "the account's name cannot be looked up"},
		{"tls", func(err error) bool {
			return as[*tls.CertificateVerificationError](err) || as[tls.RecordHeaderError](err) || as[tls.AlertError](err)
		}, "no trusted connection: certificate, or not https at the other end"},
		{"refused", is(syscall.ECONNREFUSED), "nothing listens at the account's address"},
		{"unreachable", is(syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.ENETDOWN), "the network does not reach the account"},
		{"identity", func(err error) bool {
			return as[*azidentity.AuthenticationFailedError](err) || as[*azidentity.AuthenticationRequiredError](err)
		}, "no token could be had for the identity"},
		// net/http closes a connection whose reading end was reset, and may then report its writing end's surprise.
		{"reset", is(syscall.ECONNRESET, syscall.EPIPE, net.ErrClosed), "the connection was reset; the file may have been stored"},
		{"timeout", func(err error) bool {
			var t interface{ Timeout() bool }
			return is(context.DeadlineExceeded, os.ErrDeadlineExceeded, syscall.ETIMEDOUT)(err) || (errors.As(err, &t) && t.Timeout())
		}, "no answer within the deadline; the file may have been stored"},
		{"eof", is(io.EOF, io.ErrUnexpectedEOF), "the connection was cut; the file may have been stored"},
		// What is left cannot be told from network trouble by its type, and a document must not pay for a doubt.
		{"unknown", func(error) bool { return true }, "the call failed without an answer; the file may have been stored"},
	}
}

// is makes a matcher of errors.Is.
func is(targets ...error) func(error) bool {
	return func(err error) bool {
		for _, t := range targets {
			if errors.Is(err, t) {
				return true
			}
		}
		return false
	}
}

// as is a matcher of errors.As.
func as[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}

// translate is the only way an error of the SDK leaves this package: the tables say what it means.
func translate(op operation, err error) error {
	var answer *azcore.ResponseError
	if errors.As(err, &answer) {
		return translateStatus(op, answer)
	}
	for _, r := range transportRules() {
		if r.matches(err) {
			return fault.Wrap(fault.Infrastructure, op.name, r.code, r.reason, &cause{text: innermost(err), err: withoutAddress(err)})
		}
	}
	return fault.Wrap(fault.Internal, op.name, "unclassified", "the table of lost answers has no last row", &cause{err: withoutAddress(err)})
}

func translateStatus(op operation, answer *azcore.ResponseError) error {
	header := http.Header{}
	if answer.RawResponse != nil {
		header = answer.RawResponse.Header
	}
	code := strconv.Itoa(answer.StatusCode)
	if answer.ErrorCode != "" {
		code += "/" + clip(answer.ErrorCode)
	}
	text := "HTTP " + code
	if id := header.Get("x-ms-request-id"); id != "" {
		text += ", request " + clip(id)
	}
	for _, r := range statusRules() {
		fits := r.from <= answer.StatusCode && answer.StatusCode <= r.to &&
			(r.code == anyCode || string(r.code) == answer.ErrorCode) && (!r.files || op.target == onFile)
		if !fits {
			continue
		}
		return &fault.Error{
			Kind: r.kind, Condition: r.condition, Code: code, Op: op.name, Reason: r.reason,
			RetryAfter: retryAfter(header), Err: &cause{text: text, err: answer},
		}
	}
	return fault.Wrap(fault.Infrastructure, op.name, code, "no status at all", &cause{text: text, err: answer})
}

// retryAfter is the wait that the service asks for; 0 when it asks for none. The headers and their order are azcore's,
// which waits by them.
func retryAfter(h http.Header) time.Duration {
	for _, f := range []struct {
		header string
		unit   time.Duration
	}{{"retry-after-ms", time.Millisecond}, {"x-ms-retry-after-ms", time.Millisecond}, {"Retry-After", time.Second}} {
		if n, err := strconv.Atoi(h.Get(f.header)); err == nil && n > 0 {
			return time.Duration(n) * f.unit
		}
	}
	return 0
}

// cause keeps the SDK's error reachable without repeating its text: that is many lines with the service's whole reply.
type cause struct {
	text string
	err  error
}

func (c *cause) Error() string { return c.text }
func (c *cause) Unwrap() error { return c.err }

// withoutAddress takes off what holds the request's address, which may have a signature in it: anybody who prints the
// causes one by one would print a key.
func withoutAddress(err error) error {
	var u *url.Error
	for errors.As(err, &u) {
		err = u.Err
	}
	return err
}

// innermost gives the part of a transport error that helps an operator: the host and what the system said. Addresses,
// which hold names of files and may hold a signature, and the layers of the SDK are left out.
func innermost(err error) string {
	var dns *net.DNSError
	if errors.As(err, &dns) {
		return dns.Error()
	}
	var cert *tls.CertificateVerificationError
	if errors.As(err, &cert) {
		return cert.Error()
	}
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Error()
	}
	return fmt.Sprintf("%T", root(err))
}

// root follows the first causes down to the last.
func root(err error) error {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err
		}
		err = next
	}
}

// clip bounds a text that the other end chose.
func clip(s string) string {
	const most = 64
	if len(s) > most {
		return s[:most]
	}
	return s
}
