// Package cosmos stores and reads the documents of the SQL Writer in Azure Cosmos DB, on azcosmos v1.5.0.
//
// Container implements commit.Documents, commit.Finder and ops.DocumentCreator, and has the calls of start-up and
// sqlwriterctl. Control implements breaker.ControlStore over a container of its own.
//
// # Retries
//
// This package decides every retry, because a durable queue must know which of its writes may have happened twice. The
// sources are docs/facts.md F70 and F71, and the SDK's source where these are silent:
//
//	failure                         reads and queries             writes (patch, create, replace)
//	429                             azcore: 3 times, each wait    the same: a 429 was not executed
//	                                at most 2 s, and only while
//	                                the deadline allows it
//	449                             here: 3 times, 10-80 ms       the same: a 449 was not executed
//	refused, DNS, TLS               SDK: 3 times, 1 s apart       SDK: the same, nothing was sent
//	cut, reset, EOF                 SDK: 4 times, 1 s apart       never: it may have been applied
//	500, 502, 504                   SDK: once, at once            never
//	408                             SDK: once, after 1 s          never
//	503, 401, 403, 410, 412, 413    never                         never
//	403/3, 403/1008 (failover)      SDK: each second              SDK: each second
//	404/1002 (read session)         SDK: once                     SDK: once
//
// The SDK's own retries cannot be configured; the deadlines of this package cut them short. By default azcore also
// retries every error that is not marked as final, such as a truncated reply to a write. Its ShouldRetry is therefore
// replaced by one that accepts 429 only.
//
// # Lost acknowledgements
//
// After a lost acknowledgement Record answers infrastructure and does not retry. With If-Match a second try of an
// applied patch would cause a 412 by itself. The host offers the batch again, and the document is read again. The rule
// for a 412 (docs/requirements.md R18) then recognises the recorded state. The control document works likewise: Store
// answers infrastructure, and the caller loads the document again.
//
// # The first request
//
// An azcosmos client whose first request fails caches that failure for five minutes. It then fails every later request
// without asking the service, because its endpoint manager limits attempts and not successes. It also makes that
// request without the caller's deadline.
//
// Container therefore uses a client only after it reached the account once. It discards any other client, and the next
// call makes a new one. This happens in a goroutine of its own, so that callers wait no longer than their own deadline.
//
// # Consistency
//
// Requests carry no session tokens, because other programs write the documents and their tokens are unknown here. On an
// account with session consistency a read may thus be slightly old. That is safe for these reasons:
//
//   - The use case accepts no read that is older than what the change feed showed (ADR 0008). Every write carries the
//     etag
//     of what was read, and the ledger orders the contents.
//   - A decision from an old control document is stored only if that document is still the newest.
//   - What a list says of a document is only a hint: the document itself is read before anything is decided.
package cosmos
