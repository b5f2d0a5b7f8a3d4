package cosmos

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/neterr"
)

// target is the object of a call. The same status means different things for a document and for its container.
type target int

const (
	// onDocument: a point read or a write of one document.
	onDocument target = iota
	// onContainer: a query, metadata, or the making of a container. Its errors blame no document.
	onContainer
	// onAccount: the first request of a client.
	onAccount
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
	// substatus is x-ms-substatus. anySubstatus matches every value; noSubstatus matches 0 and an absent header.
	substatus string
	// documents restricts the rule to calls for one document.
	documents bool
	kind      fault.Kind
	condition fault.Condition
	reason    string
	source    string
}

const (
	anySubstatus = "*"
	noSubstatus  = "0"
)

// statusRules lists the rules for answers; the first match decides. The source "rest" is the page "HTTP status codes for
// Azure Cosmos DB" of the REST reference.
func statusRules() []statusRule {
	const (
		infra = fault.Infrastructure
		none  = fault.NoCondition
	)
	return []statusRule{
		{400, 400, anySubstatus, true, fault.Document, none, "the service does not accept this document or patch", "rest"},
		{400, 400, anySubstatus, false, infra, none, "the service does not accept our request; no document is to blame (1004: a query that the gateway cannot serve)", "docs/facts.md F63"},
		{401, 401, anySubstatus, false, infra, none, "the key or token is not accepted, or this machine's clock is off", "rest"},
		{403, 403, "3", false, infra, none, "writes moved to another region and the move outlasted our deadline", "docs/facts.md F70"},
		{403, 403, "1008", false, infra, none, "the region does not know the account, and this outlasted our deadline", "docs/facts.md F70"},
		{403, 403, anySubstatus, false, infra, none, "not allowed: role of the identity, firewall or network rule of the account", "rest"},
		{404, 404, noSubstatus, true, fault.Document, fault.Gone, "no such document", "rest"},
		{404, 404, "1002", false, infra, none, "the region has not caught up with the session", "docs/facts.md F70"},
		{404, 404, "1003", false, infra, none, "the database or container does not exist", "SDK constants (OwnerResourceNotFound)"},
		{404, 404, anySubstatus, false, infra, none, "the account, database or container is not there", "rest"},
		{408, 408, anySubstatus, false, infra, none, "the service took too long; a write may have been applied", "docs/facts.md F70"},
		{409, 409, anySubstatus, true, fault.Document, none, "a document with this id exists", "rest"},
		{410, 410, anySubstatus, false, infra, none, "the partition moved or is being divided", "docs/facts.md F70"},
		{412, 412, anySubstatus, true, fault.Contention, fault.Changed, "the document is not the one that was read", "docs/facts.md F67"},
		{413, 413, anySubstatus, true, fault.Document, fault.TooLarge, "the document would be larger than the service allows (2 MB)", "docs/facts.md F68"},
		{429, 429, anySubstatus, false, fault.Throttled, none, "the account asks to slow down (3200: request units used up)", "docs/facts.md F70"},
		{449, 449, anySubstatus, false, fault.Contention, none, "another write of the same document was under way", "docs/facts.md F70"},
		{500, 599, anySubstatus, false, infra, none, "the service failed; a write may have been applied", "docs/facts.md F70"},
		{400, 499, anySubstatus, true, fault.Document, none, "the service refused this document with a status we do not know", "docs/requirements.md R34"},
		{100, 999, anySubstatus, false, infra, none, "the service answered with a status we do not know", "docs/requirements.md R34"},
	}
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
		{"cancelled", neterr.IsCancelled, "the caller gave up; a write may have been applied"},
		{"dns", neterr.IsDNS, "the account's name cannot be looked up"},
		{"tls", neterr.IsTLS, "no trusted connection: certificate, or not https at the other end"},
		{"refused", neterr.IsRefused, "nothing listens at the account's address"},
		{"unreachable", neterr.IsUnreachable, "the network does not reach the account"},
		{"identity", isIdentity, "the identity got no token"},
		{"reset", neterr.IsReset, "the connection was reset; a write may have been applied"},
		{"timeout", neterr.IsTimeout, "no answer within the deadline; a write may have been applied"},
		{"eof", neterr.IsEOF, "the connection was cut; a write may have been applied"},
		// The type of any other error does not tell it from a network failure. No document is blamed in doubt.
		{"unknown", func(error) bool { return true }, "the call failed without an answer; a write may have been applied"},
	}
}

// isIdentity reports whether the identity got no token.
func isIdentity(err error) bool {
	var failed *azidentity.AuthenticationFailedError
	var required *azidentity.AuthenticationRequiredError
	return errors.As(err, &failed) || errors.As(err, &required)
}

// translate turns an error of the SDK into a fault. No error of the SDK leaves this package without it.
func translate(op operation, err error) error {
	var answer *azcore.ResponseError
	if errors.As(err, &answer) {
		return translateStatus(op, answer)
	}
	for _, r := range transportRules() {
		if r.matches(err) {
			return fault.Wrap(fault.Infrastructure, op.name, r.code, r.reason, neterr.Redact(err, neterr.Describe(err)))
		}
	}
	return fault.Wrap(fault.Internal, op.name, "unclassified", "no rule matches the error", neterr.Redact(err, ""))
}

func translateStatus(op operation, answer *azcore.ResponseError) error {
	header := http.Header{}
	if answer.RawResponse != nil {
		header = answer.RawResponse.Header
	}
	sub := header.Get("x-ms-substatus")
	if sub == "" {
		sub = noSubstatus
	}
	code := strconv.Itoa(answer.StatusCode)
	if sub != noSubstatus {
		code += "/" + fault.Truncate(sub, fault.MaxForeign)
	}
	text := "HTTP " + code
	if id := header.Get("x-ms-activity-id"); id != "" {
		text += ", activity " + fault.Truncate(id, fault.MaxForeign)
	}
	for _, r := range statusRules() {
		fits := r.from <= answer.StatusCode && answer.StatusCode <= r.to &&
			(r.substatus == anySubstatus || r.substatus == sub) && (!r.documents || op.target == onDocument)
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

// statusOf gives the service's status in an error of this package, or 0 when there was no answer.
func statusOf(err error) int {
	var answer *azcore.ResponseError
	if errors.As(err, &answer) {
		return answer.StatusCode
	}
	return 0
}
