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
// error codes" and "Blob Storage error codes" of the REST reference.
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
		{413, 413, anyCode, false, infra, none, "larger than one request may be, which no document is: somebody between us and the service has a lower limit", "common"},
		{429, 429, anyCode, false, fault.Throttled, none, "the account asks to slow down", "docs/facts.md F88"},
		{503, 503, bloberror.ServerBusy, false, fault.Throttled, none, "the account or a part of it is over its limits", "common"},
		{507, 507, anyCode, false, fault.Quota, none, "there is no room (the service itself documents no such answer)", "RFC 4918"},
		{500, 599, anyCode, false, infra, none, "the service failed; the file may have been stored", "common"},
		{100, 999, anyCode, false, infra, none, "the service answered with a status we do not know", "docs/requirements.md R34"},
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
		{409, bloberror.BlobAlreadyExists, "the usual answer; after a lost answer the file may be our own", "docs/facts.md F85"},
		{412, anyCode, "the condition, or a lease that somebody has on the file", "docs/facts.md F85"},
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
		{"cancelled", neterr.IsCancelled, "the caller gave up; the file may have been stored"},
		{"dns", neterr.IsDNS, "the account's name cannot be looked up"},
		{"tls", neterr.IsTLS, "no trusted connection: certificate, or not https at the other end"},
		{"refused", neterr.IsRefused, "nothing listens at the account's address"},
		{"unreachable", neterr.IsUnreachable, "the network does not reach the account"},
		{"identity", isIdentity, "no token could be had for the identity"},
		{"reset", isReset, "the connection was reset; the file may have been stored"},
		{"timeout", neterr.IsTimeout, "no answer within the deadline; the file may have been stored"},
		{"eof", neterr.IsEOF, "the connection was cut; the file may have been stored"},
		// What is left cannot be told from network trouble by its type, and a document must not pay for a doubt.
		{"unknown", func(error) bool { return true }, "the call failed without an answer; the file may have been stored"},
	}
}

// isIdentity reports whether an identity's token could not be had.
func isIdentity(err error) bool {
	var failed *azidentity.AuthenticationFailedError
	var required *azidentity.AuthenticationRequiredError
	return errors.As(err, &failed) || errors.As(err, &required)
}

// isReset is wider than neterr's: net/http closes a connection whose reading end was reset, and may then report its writing
// end's surprise.
func isReset(err error) bool {
	return neterr.IsReset(err) || errors.Is(err, net.ErrClosed)
}

// translate is the only way an error of the SDK leaves this package: the tables say what it means.
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
	return fault.Wrap(fault.Internal, op.name, "unclassified", "the table of lost answers has no last row", neterr.Redact(withoutAddress(err), ""))
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
	return fault.Wrap(fault.Infrastructure, op.name, code, "no status at all", neterr.Redact(answer, text))
}

// withoutAddress takes off what holds the request's address, which may have a signature in it: anybody who prints the
// causes one by one would print a key.
func withoutAddress(err error) error {
	var u *url.Error
	for errors.As(err, &u) {
		err = u.Err
	}
	return err
}
