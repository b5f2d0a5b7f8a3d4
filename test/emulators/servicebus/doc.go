// Package servicebus emulates an Azure Service Bus namespace with queues. A Node program (server.mjs and lib), built on
// the npm package rhea, speaks AMQP 1.0 on loopback. The Go code starts it (Process) and controls it (Control).
// azservicebus v1.11.0 works with it unmodified, with UseDevelopmentEmulator=true in the connection string
// (ConnectionString gives it).
//
// # How to use it
//
// Install the Node packages once with `make servicebus`. In a test, package servicebustest starts an emulator of its
// own. Elsewhere call Start with the queues in Options. The emulator ends when the process that started it ends.
//
// # What it does
//
//   - Queues that are given at the start, each with its dead-letter sub-queue NAME/$DeadLetterQueue.
//   - Send: single messages and batches (all or none), scheduled messages, duplicate detection by message id within a
//     window. Properties, application properties and bodies come back byte for byte. Time to live.
//   - Receive: peek-lock with locks that end, renewal, complete, abandon, dead-letter with reason and description, the
//     delivery count and MaxDeliveryCountExceeded; receive-and-delete; peek.
//   - Over the links and over $management: renew, settle, schedule, cancel, peek.
//   - For tests: faults (Fault), down and up, dropped connections, counts, statistics, peek and purge without AMQP, and
//     a
//     clock that a test can advance (Advance). When that call returns, due events have happened and clients have their
//     messages.
//
// # What it refuses, as the service does
//
// A link to a queue that is not there (amqp:not-found), sending to a dead-letter queue, dead-lettering a dead letter, a
// session receiver, a message over the size limit, a message id of more than 128 characters, a full queue, settling or
// renewing after the lock is lost, cancelling what is not scheduled.
//
// # What it does not do
//
// Topics, subscriptions, rules, sessions, transactions, deferring and receiving deferred messages (refused with an
// error), the transfer dead-letter queue, auto-forwarding, partitions, auto-delete, dead-lettering of expired messages
// (they are dropped), the HTTP management API (admin.Client), TLS, WebSockets, authorization (any token will do),
// throttling, the quotas of a tier. Lock durations may be shorter than the service's five seconds.
//
// A receiver that never settles a delivery stops after 8,192 more: rhea keeps them in a ring. A send
// that was never answered (Hang) stops its sender likewise.
//
// # What is not known about the service
//
// A dead letter keeps its delivery count, as the vendor's own tests of azservicebus show (messageSettler_test.go). That
// it keeps its enqueued time and gets a sequence number of its own is a guess, and so is the number that
// ScheduleMessages answers for a duplicate (0 here). Nothing should rely on them.
//
// # Sources
//
// What azservicebus v1.11.0 sends and expects, measured (docs/facts.md F58 to F62, F92) and read in its source; the
// checks of test/sdkchecks/servicebus by the vendor's JavaScript SDK; the AMQP 1.0 specification, parts 2 and 3; the
// vendor's pages on message transfers, locks and settlement, message sequencing and timestamps, duplicate detection,
// dead-letter queues, quotas, and the AMQP request/response operations
// (learn.microsoft.com/azure/service-bus-messaging).
package servicebus
