// Package servicebus sends messages to queues of an Azure Service Bus namespace, on azservicebus v1.11.0. It implements
// run.Queue. Messages come in through the host's triggers, not through here.
//
// # Who repeats what
//
// The SDK repeats a call twice, after 0.2 s and 0.6 s (each times 0.8 to 1.3). It must be allowed one repetition at least:
// it mends a broken connection only when it repeats, and with none every later call of the Client fails for ever
// (docs/facts.md F58). It bounds no single try, so every call has a deadline of ours
// (Timeouts.Call) that covers the repetitions and a rebuilt Sender as well. A namespace that refuses connections is known
// after 1 s, or 2 s when it was there before; one that never answers after Timeouts.Call; and the first failure of a Send
// that concerns all its messages is its last call.
//
// # What an error says
//
// A repetition may send what has arrived already, and an answer that is lost does not say whether the message has. An
// error therefore means "perhaps"; the message's ID tells repetitions apart where the queue looks for duplicates.
//
// # Traps of the SDK
//
//   - A detach with a condition that the SDK holds for fatal (queue full, server busy, queue disabled, no right) leaves a
//     Sender that gives the same error for ever, even when the fault is over. Namespace makes a new one, and repeats the
//     call with it once: the error may be as old as the Sender's last use.
//   - When a new Sender finds no connection either, the Client is made anew for the next call. All Senders go with it.
//   - azservicebus.Error has no Unwrap: of what it wraps only the code is known.
//   - A batch that the service finds too large gives a bare *amqp.Error, not ErrMessageTooLarge, and AddMessage may be
//     wrong about the size: such a batch is divided. A message that fits into no empty batch is too large alone.
//   - Message.MessageID stays nil unless it is set, and duplicates are then never found.
//   - Closing waits for locks that another call holds while it dials. It is done in the background, and Namespace.Close
//     waits for it.
package servicebus
