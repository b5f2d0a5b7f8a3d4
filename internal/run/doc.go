// Package run executes long operations (drain, replay, reapply, reindex) over many documents, with many processes or
// with one.
//
// # Roles
//
// An operator starts a run: one row and one message. A Manager finds the documents, writes them in batches of up to
// 100, and sends a message for each batch. Workers commit the documents of a batch through commit.Commit, as every
// other caller does. Recovery runs on a timer and continues whatever a dead process or a lost message left behind.
// DeadLetters stores messages that cannot be used as evidence. Deferral defers messages until the process has opened
// SQL.
//
// An Executor does a run in its process, without any message: it is manager and worker in one, over the same rows.
// Managers and workers continue what it left, and it continues what they left (ADR 0025). The timer uses it while the
// queue is away.
//
// Kinds is the table of the kinds of runs.
//
// The database is the truth. A message only says which row to read: it may be lost, arrive twice, late, or out of
// order. Rows exist before their message is sent. Every change of a row is compare-and-set, so a late change has no
// effect.
//
// # States of a batch
//
//	pending_queue --message accepted--> queued --claim--> processing --all outcomes stored--> completed
//
//	pending_queue, queued  --message not accepted or lost-->  pending_retry
//	processing             --worker dead-->                   pending_retry
//	pending_retry          --message accepted-->              queued
//	any open state         --failure-->                       failed  --requeue-->  pending_retry
//
// A claim may overtake the confirmation of its message, so pending_queue and pending_retry may become processing
// directly. The suite TestRunStore has the complete table. A run is running until all its batches have ended.
//
// # Leases and epochs
//
// A claim sets the owner of a batch or a run and raises its epoch. Every write of the owner names both (BatchLease,
// RunLease). An owner that returns late has an old epoch and changes nothing. The owner writes a heartbeat every 30
// seconds.
//
// A second claim succeeds in two cases:
//   - Its message shows the row's epoch. The owner wrote it there when it deferred the message, so that owner is not
//     lost.
//   - The owner has been silent for 10 minutes (a worker) or 2 minutes (a manager), with the breaker closed for as
//     long. That owner counts as lost. Ten lost workers fail the batch; ten lost managers in a row fail the run (ADR
//     0025).
//
// The attempt of a batch grows with every message that is meant to be sent for it. A message with an older attempt is
// dropped.
//
// # What each crash leaves behind
//
//   - A manager dies before it stored a chunk: nothing. The next manager reads the same page, from the run's
//     watermark.
//   - A manager dies after it stored a chunk: batches in pending_queue, and a watermark in the same transaction. The
//     next manager sends their messages. The run's own message returns when its lock expires, or Recovery sends a new
//     one.
//   - A manager dies after sending and before the confirmation: the messages are sent again. The queue drops the
//     duplicate, or its claim finds the batch claimed or finished.
//   - A message is lost: the batch stays queued. Recovery sends it again when the queue has passed it, after 30
//     minutes or more.
//   - A worker dies: the batch stays processing and documents may lack an outcome. The next worker, or Recovery, takes
//     it over after 10 minutes. Writing a document again is harmless, because the ledger answers unchanged.
//   - A worker dies after the last outcome: as before. The next worker finds nothing to do and completes the batch.
//   - A process dies before it completed the run: Recovery completes it.
//   - An Executor dies: what a manager and a worker leave behind. Another Executor takes the run over after 2 minutes,
//     or Recovery sends its message after 7.
//   - SQL or Cosmos DB fails: the owner releases its lease and defers the message. No delivery and no retry is counted
//     (ADR 0025).
//
// The package knows no SDK. Its ports are in ports.go; their comments are the contract of the adapters, which
// test/conformance checks.
package run
