package servicebus

import (
	"context"
	"errors"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"

	"sqlwriter/internal/azure"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/neterr"
)

// codeTooLarge is the code of a message or batch that exceeds the service's limit.
const codeTooLarge = "too_large"

// senderState is the state of a Sender after an error.
type senderState int

const (
	// usable: the Sender stays usable.
	usable senderState = iota
	// broken: a new Sender is needed.
	broken
	// lost: a new Sender is needed, and a new Client when the new Sender fails likewise.
	lost
)

// rule maps an error of the SDK to a fault.
type rule struct {
	code string
	// about selects the errors: an amqp.ErrCond, an azservicebus.Code, an error, or a func(error) bool.
	about  any
	kind   fault.Kind
	reason string
	source string
	// state applies to a rejection; a detach breaks the Sender whatever its condition.
	state senderState
}

// The conditions of Service Bus that go-amqp has no name for.
const (
	condServerBusy     amqp.ErrCond = "com.microsoft:server-busy"
	condEntityDisabled amqp.ErrCond = "com.microsoft:entity-disabled"
	condCancelled      amqp.ErrCond = "com.microsoft:operation-cancelled"
)

// rules lists the rules; the first match decides. Conditions come before the SDK's codes, because one code covers
// several conditions. The source "amqp" is the vendor's page "AMQP errors in Azure Service Bus"; "sdk" is the SDK's
// documentation of its codes.
func rules() []rule {
	const (
		infra   = fault.Infrastructure
		perhaps = "; a message that was being sent may have arrived"
	)
	return []rule{
		{
			code: codeTooLarge, about: azservicebus.ErrMessageTooLarge, kind: fault.Document,
			source: "docs/facts.md F57",
			reason: "the message is larger than the service takes",
		},
		{
			code: codeTooLarge, about: amqp.ErrCondMessageSizeExceeded, kind: fault.Document, source: "amqp",
			reason: "the message is larger than the service takes",
		},
		{
			code: "amqp:resource-limit-exceeded", about: amqp.ErrCondResourceLimitExceeded,
			kind: fault.Quota, source: "amqp",
			reason: "the queue is full, or the namespace is over another of its limits",
		},
		{
			code: "com.microsoft:server-busy", about: condServerBusy, kind: fault.Throttled, source: "amqp",
			reason: "the service asks to slow down, after two retries",
		},
		{
			code: "amqp:not-found", about: amqp.ErrCondNotFound, kind: infra, reason: "there is no such queue",
			source: "amqp", state: broken,
		},
		{
			code: "amqp:not-allowed", about: amqp.ErrCondNotAllowed, kind: infra, source: "amqp", state: broken,
			reason: "the queue does not allow this: it may want sessions",
		},
		{
			code: "com.microsoft:entity-disabled", about: condEntityDisabled, kind: infra,
			source: "amqp", state: broken,
			reason: "the queue is disabled, or disabled for sending",
		},
		{
			code: "com.microsoft:operation-cancelled", about: condCancelled, kind: infra,
			reason: "the service cancelled the call" + perhaps, source: "amqp",
		},
		{
			code: "unauthorized", about: azservicebus.CodeUnauthorizedAccess, kind: infra, source: "sdk", state: broken,
			reason: "not allowed: key or signature, or the identity lacks the role Azure Service Bus Data Sender, or this machine's clock is off",
		},
		{
			code: "notfound", about: azservicebus.CodeNotFound, kind: infra, reason: "there is no such queue",
			source: "sdk", state: broken,
		},
		{
			code: "timeout", about: azservicebus.CodeTimeout, kind: infra,
			reason: "the service took too long, after two retries" + perhaps, source: "sdk",
		},
		{
			code: "connlost", about: azservicebus.CodeConnectionLost, kind: infra, source: "sdk", state: lost,
			reason: "no connection, after two retries" + perhaps,
		},
		{
			code: "closed", about: azservicebus.CodeClosed, kind: infra, source: "sdk", state: lost,
			reason: "the connection was closed while it was in use" + perhaps,
		},
		{
			code: "cancelled", about: context.Canceled, kind: infra,
			reason: "the caller gave up" + perhaps, source: "ours",
		},
		{
			code: "deadline", about: context.DeadlineExceeded, kind: infra,
			reason: "no answer within the deadline" + perhaps, source: "ours", state: lost,
		},
		{
			code: "identity", about: azure.IsIdentity, kind: infra, reason: "the identity got no token",
			source: "ours", state: broken,
		},
		// The type of any other error does not tell it from a network failure. No message is blamed in doubt.
		{
			code: "unknown", about: func(error) bool { return true }, kind: infra,
			source: "docs/requirements.md R34", state: lost,
			reason: "the call failed for an unknown reason" + perhaps,
		},
	}
}

func (r rule) matches(err error) bool {
	switch about := r.about.(type) {
	case amqp.ErrCond:
		var e *amqp.Error
		return errors.As(err, &e) && e.Condition == about
	case azservicebus.Code:
		var e *azservicebus.Error
		return errors.As(err, &e) && e.Code == about
	case error:
		return errors.Is(err, about)
	case func(error) bool:
		return about(err)
	}
	return false
}

// translate turns an error of the SDK into a fault, and reports the state of the Sender. No error of the SDK leaves
// this package without it.
func translate(op string, err error) (*fault.Error, senderState) {
	for _, r := range rules() {
		if !r.matches(err) {
			continue
		}
		state := r.state
		if detached(err) {
			state = max(state, broken)
		}
		return fault.Wrap(r.kind, op, r.code, r.reason, neterr.Redact(err, describe(err))), state
	}
	return fault.Wrap(fault.Internal, op, "unclassified", "no rule matches the error",
		neterr.Redact(err, describe(err))), lost
}

// detached reports whether the link, its session or its connection ended.
func detached(err error) bool {
	var link *amqp.LinkError
	var session *amqp.SessionError
	var conn *amqp.ConnError
	return errors.As(err, &link) || errors.As(err, &session) || errors.As(err, &conn)
}

// describe gives the service's text of an AMQP error, which has the tracking id for the vendor's support. For a lost
// connection it gives the system's text, which has no more than an address. Other texts may repeat a token.
func describe(err error) string {
	var answer *amqp.Error
	if errors.As(err, &answer) {
		return fault.Truncate(answer.Description, fault.MaxForeign)
	}
	var coded *azservicebus.Error
	if errors.As(err, &coded) && coded.Code == azservicebus.CodeConnectionLost {
		return fault.Truncate(coded.Error(), fault.MaxForeign)
	}
	return neterr.RootType(err)
}
