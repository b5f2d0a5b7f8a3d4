// Package servicebus sends messages to queues of an Azure Service Bus namespace, on azservicebus v1.11.0. It implements
// run.Queue. The host's triggers receive messages; this package only sends.
//
// # Retries
//
// The SDK makes two retries, after 0.2 s and 0.6 s (each times 0.8 to 1.3). At least one retry must stay allowed,
// because the SDK reconnects only on a retry; without one a broken Client fails for ever (docs/facts.md F58).
//
// The SDK bounds no single try. Timeouts.Call therefore bounds every call, with its retries and a replaced Sender. A
// namespace that refuses connections fails after 1 s, or after 2 s when it answered before. One that never answers
// fails after Timeouts.Call. A Send stops at the first failure that concerns all its messages.
//
// # Ambiguous errors
//
// A lost acknowledgement does not tell whether the message arrived, and a retry may send it twice. After an error the
// message may therefore be in the queue. A queue with duplicate detection drops the second one by the message's ID.
//
// # Pitfalls of the SDK
//
//   - A Sender that was detached for a fatal condition (queue full, server busy, queue disabled, no right) gives the
//     same
//     error for ever, even after the cause has gone. Namespace replaces it and makes the call once more, because the
//     error
//     may be as old as the Sender's last use.
//   - When the new Sender finds no connection either, the next call makes a new Client. All Senders go with the old
//     one.
//   - azservicebus.Error has no Unwrap: only its code is known, not the error that it wraps.
//   - For a batch that is too large the service gives a bare *amqp.Error, not ErrMessageTooLarge. AddMessage may count
//     otherwise than the service. Such a batch is divided, and a message that fits into no empty batch is too large.
//   - Message.MessageID stays nil unless it is set, and then duplicate detection never finds a duplicate.
//   - Close waits for locks that another call holds while it dials. Namespace closes in the background, and
//     Namespace.Close waits for that.
package servicebus
