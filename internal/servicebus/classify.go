package servicebus

import (
	"context"
	"errors"

	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"

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

// rules lists the rules; the first match decides. Conditions come before the SDK's codes, because one code covers several
// conditions. The source "amqp" is the vendor's page "AMQP errors in Azure Service Bus"; "sdk" is the SDK's documentation
// of its codes.
func rules() []rule {
	const (
		infra   = fault.Infrastructure
		perhaps = "; a message that was being sent may have arrived"
	)
	return []rule{
		{codeTooLarge, azservicebus.ErrMessageTooLarge, fault.Document, "the message is larger than the service takes", "docs/facts.md F57", usable},
		{codeTooLarge, amqp.ErrCondMessageSizeExceeded, fault.Document, "the message is larger than the service takes", "amqp", usable},
		{
			"amqp:resource-limit-exceeded", amqp.ErrCondResourceLimitExceeded, fault.Quota,
			"the queue is full, or the namespace is over another of its limits", "amqp", usable,
		},
		{"com.microsoft:server-busy", condServerBusy, fault.Throttled, "the service asks to slow down, after two retries", "amqp", usable},
		{"amqp:not-found", amqp.ErrCondNotFound, infra, "there is no such queue", "amqp", broken},
		{"amqp:not-allowed", amqp.ErrCondNotAllowed, infra, "the queue does not allow this: it may want sessions", "amqp", broken},
		{"com.microsoft:entity-disabled", condEntityDisabled, infra, "the queue is disabled, or disabled for sending", "amqp", broken},
		{"com.microsoft:operation-cancelled", condCancelled, infra, "the service cancelled the call" + perhaps, "amqp", usable},
		{
			"unauthorized", azservicebus.CodeUnauthorizedAccess, infra,
			"not allowed: key or signature, or the identity lacks the role Azure Service Bus Data Sender, or this machine's clock is off", "sdk", broken,
		},
		{"notfound", azservicebus.CodeNotFound, infra, "there is no such queue", "sdk", broken},
		{"timeout", azservicebus.CodeTimeout, infra, "the service took too long, after two retries" + perhaps, "sdk", usable},
		{"connlost", azservicebus.CodeConnectionLost, infra, "no connection, after two retries" + perhaps, "sdk", lost},
		{"closed", azservicebus.CodeClosed, infra, "the connection was closed while it was in use" + perhaps, "sdk", lost},
		{"cancelled", context.Canceled, infra, "the caller gave up" + perhaps, "ours", usable},
		{"deadline", context.DeadlineExceeded, infra, "no answer within the deadline" + perhaps, "ours", lost},
		{"identity", isIdentity, infra, "the identity got no token", "ours", broken},
		// The type of any other error does not tell it from a network failure. No message is blamed in doubt.
		{"unknown", func(error) bool { return true }, infra, "the call failed for an unknown reason" + perhaps, "docs/requirements.md R34", lost},
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

// isIdentity reports whether the identity got no token.
func isIdentity(err error) bool {
	var failed *azidentity.AuthenticationFailedError
	var required *azidentity.AuthenticationRequiredError
	return errors.As(err, &failed) || errors.As(err, &required)
}

// translate turns an error of the SDK into a fault, and reports the state of the Sender. No error of the SDK leaves this
// package without it.
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
	return fault.Wrap(fault.Internal, op, "unclassified", "no rule matches the error", neterr.Redact(err, describe(err))), lost
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
