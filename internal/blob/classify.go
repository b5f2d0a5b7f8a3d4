package blob

import (
	"errors"
	"net"
	"net/http"
	"net/url"
	"strconv"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/neterr"
)

// target is the object of a call.
type target int

const (
	// onFile: a read of one file, which may not exist.
	onFile target = iota
	// onContainer: everything else.
	onContainer
)

// operation is the name of a call in errors, and its target.
type operation struct {
	name   string
	target target
}

// statusRule maps an answer of the service to a fault.
type statusRule struct {
	// from and to are the first and the last status.
	from, to int
	// code is x-ms-error-code; anyCode matches every code and an absent one.
	code bloberror.Code
	// files restricts the rule to reads of a file.
	files     bool
	kind      fault.Kind
	condition fault.Condition
	reason    string
	source    string
}

const anyCode bloberror.Code = "*"

// statusRules lists the rules for answers; the first match decides. No answer blames a document, because evidence that
// cannot be kept is never the document's fault (commit.Evidence). The sources "common" and "blob" are the pages "Common
// REST API error codes" and "Blob Storage error codes" of the REST reference.
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
		{403, 403, bloberror.AuthorizationPermissionMismatch, false, infra, none, "the identity lacks the role Storage Blob Data Contributor, or the signature this right", "docs/facts.md F88"},
		{403, 403, bloberror.AccountIsDisabled, false, infra, none, "the account is disabled", "common"},
		{403, 403, anyCode, false, infra, none, "not allowed: key, role, signature, firewall or state of the account", "common"},
		{404, 404, bloberror.BlobNotFound, true, fault.Document, fault.Gone, "no such file", "blob"},
		{404, 404, bloberror.ContainerNotFound, false, infra, none, "the container does not exist", "blob"},
		{404, 404, anyCode, false, infra, none, "the account or container is not there", "common"},
		{408, 408, anyCode, false, infra, none, "the service took too long; the file may have been stored", "docs/facts.md F85"},
		{409, 409, bloberror.ContainerBeingDeleted, false, infra, none, "a container of this name is being deleted, which takes half a minute or longer", "blob"},
		{409, 409, bloberror.ContainerDisabled, false, infra, none, "the container is disabled", "blob"},
		{409, 409, bloberror.AccountBeingCreated, false, infra, none, "the account is still being made", "common"},
		{409, 409, anyCode, false, infra, none, "the account, container or file is in a state that does not allow this", "common"},
		{413, 413, anyCode, false, infra, none, "larger than one request may be, which no document is: a proxy before the service has a lower limit", "common"},
		{429, 429, anyCode, false, fault.Throttled, none, "the account asks to slow down", "docs/facts.md F88"},
		{503, 503, bloberror.ServerBusy, false, fault.Throttled, none, "the account or a part of it is over its limits", "common"},
		{507, 507, anyCode, false, fault.Quota, none, "there is no room (the service itself documents no such answer)", "RFC 4918"},
		{500, 599, anyCode, false, infra, none, "the service failed; the file may have been stored", "common"},
		{100, 999, anyCode, false, infra, none, "the service answered with a status we do not know", "docs/requirements.md R34"},
	}
}

// existsRule is an answer to a PUT with If-None-Match: * that means "the file exists".
type existsRule struct {
	status int
	code   bloberror.Code
	reason string
	source string
}

// existsRules lists the answers that mean "the file exists". The owner's retention rules may forbid a replacement before the
// condition is checked; their answers count too.
func existsRules() []existsRule {
	return []existsRule{
		{409, bloberror.BlobAlreadyExists, "the usual answer; after a lost answer the file may be our own", "docs/facts.md F85"},
		{412, anyCode, "the condition, or another client's lease on the file", "docs/facts.md F85"},
		{409, bloberror.BlobImmutableDueToPolicy, "a retention policy protects the file", "blob"},
		{409, "BlobImmutableDueToLegalHold", "a legal hold protects the file", "blob"},
		{409, bloberror.BlobArchived, "a lifecycle rule has moved the file to the archive", "blob"},
		{409, bloberror.BlobBeingRehydrated, "the file is on its way back from the archive", "blob"},
		{403, bloberror.UnauthorizedBlobOverwrite, "we may add files but not replace them", "blob"},
	}
}

// fileExists reports whether a PUT failed because the file exists.
func fileExists(err error) bool {
	var answer *azcore.ResponseError
	if !errors.As(err, &answer) {
		return false
	}
	for _, r := range existsRules() {
		if r.status == answer.StatusCode && (r.code == anyCode || string(r.code) == answer.ErrorCode) {
			return true
		}
	}
	return false
}

// transportRule maps a call without an answer to a code.
type transportRule struct {
	code    string
	matches func(error) bool
	reason  string
}

// transportRules lists the rules for calls without an answer; the first match decides, and all are infrastructure. The
// types of the errors are those of net/http and azidentity, inside the SDK's wrappers.
func transportRules() []transportRule {
	return []transportRule{
		{"cancelled", neterr.IsCancelled, "the caller gave up; the file may have been stored"},
		{"dns", neterr.IsDNS, "the account's name cannot be looked up"},
		{"tls", neterr.IsTLS, "no trusted connection: certificate, or not https at the other end"},
		{"refused", neterr.IsRefused, "nothing listens at the account's address"},
		{"unreachable", neterr.IsUnreachable, "the network does not reach the account"},
		{"identity", isIdentity, "the identity got no token"},
		{"reset", isReset, "the connection was reset; the file may have been stored"},
		{"timeout", neterr.IsTimeout, "no answer within the deadline; the file may have been stored"},
		{"eof", neterr.IsEOF, "the connection was cut; the file may have been stored"},
		// The type of any other error does not tell it from a network failure. No document is blamed in doubt.
		{"unknown", func(error) bool { return true }, "the call failed without an answer; the file may have been stored"},
	}
}

// isIdentity reports whether the identity got no token.
func isIdentity(err error) bool {
	var failed *azidentity.AuthenticationFailedError
	var required *azidentity.AuthenticationRequiredError
	return errors.As(err, &failed) || errors.As(err, &required)
}

// isReset reports a reset connection. It is wider than neterr.IsReset: after a reset while it reads, net/http closes the
// connection, and may then report the failed write.
func isReset(err error) bool {
	return neterr.IsReset(err) || errors.Is(err, net.ErrClosed)
}

// translate turns an error of the SDK into a fault. No error of the SDK leaves this package without it.
func translate(op operation, err error) error {
	var answer *azcore.ResponseError
	if errors.As(err, &answer) {
		return translateStatus(op, answer)
	}
	for _, r := range transportRules() {
		if r.matches(err) {
			return fault.Wrap(fault.Infrastructure, op.name, r.code, r.reason, neterr.Redact(withoutAddress(err), neterr.Describe(err)))
		}
	}
	return fault.Wrap(fault.Internal, op.name, "unclassified", "no rule matches the error", neterr.Redact(withoutAddress(err), ""))
}

func translateStatus(op operation, answer *azcore.ResponseError) error {
	header := http.Header{}
	if answer.RawResponse != nil {
		header = answer.RawResponse.Header
	}
	code := strconv.Itoa(answer.StatusCode)
	if answer.ErrorCode != "" {
		code += "/" + fault.Truncate(answer.ErrorCode, fault.MaxForeign)
	}
	text := "HTTP " + code
	if id := header.Get("x-ms-request-id"); id != "" {
		text += ", request " + fault.Truncate(id, fault.MaxForeign)
	}
	for _, r := range statusRules() {
		fits := r.from <= answer.StatusCode && answer.StatusCode <= r.to &&
			(r.code == anyCode || string(r.code) == answer.ErrorCode) && (!r.files || op.target == onFile)
		if !fits {
			continue
		}
		return &fault.Error{
			Kind: r.kind, Condition: r.condition, Code: code, Op: op.name, Reason: r.reason,
			RetryAfter: neterr.RetryAfter(header), Err: neterr.Redact(answer, text),
		}
	}
	return fault.Wrap(fault.Infrastructure, op.name, code, "not an HTTP status", neterr.Redact(answer, text))
}

// withoutAddress removes the wrappers that contain the request's address. The address may contain a signature, which a log
// of the causes would print.
func withoutAddress(err error) error {
	var u *url.Error
	for errors.As(err, &u) {
		err = u.Err
	}
	return err
}
