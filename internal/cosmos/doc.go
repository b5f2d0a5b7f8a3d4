// Package cosmos keeps the documents of the SQL Writer in Azure Cosmos DB, on azcosmos v1.5.0. Container implements
// commit.Documents, commit.Backlog (what the recovery timer looks for), run.Selection (what a run takes, page by page) and
// adopt.Documents, and has what start-up and sqlwriterctl need beside them. Control implements breaker.ControlStore over a container of its own.
//
// # Who repeats what
//
// Every repetition is chosen here, because a durable queue must know which of its writes may have happened twice
// (docs/facts.md F70, F71; the SDK's own source decides where they are silent):
//
//	what fails                      reads and queries             writes (patch, create, replace)
//	429                             azcore: 3 times, each wait    the same: a 429 was not executed
//	                                at most 2 s, and only while
//	                                the deadline allows it
//	449                             us: 3 times, 10-80 ms         the same: a 449 was not executed
//	refused, DNS, TLS               SDK: 3 times, 1 s apart       SDK: the same, nothing was sent
//	cut, reset, EOF                 SDK: 4 times, 1 s apart       nobody: it may have been applied
//	500, 502, 504                   SDK: once, at once            nobody
//	408                             SDK: once, after 1 s          nobody
//	503, 401, 403, 410, 412, 413    nobody                        nobody
//	403/3, 403/1008 (failover)      SDK: each second              SDK: each second
//	404/1002 (read session)         SDK: once                     SDK: once
//
// "SDK" repetitions cannot be configured from outside; our deadlines cut them short. azcore by itself also repeats every
// error that nobody marked as final, a half-read reply to a write among them: its ShouldRetry is therefore replaced by
// one that knows 429 only.
//
// # A write whose reply is lost
//
// Record then answers infrastructure and does not try again: with If-Match a second try of an applied patch would fail
// with a 412 of our own making. The batch comes again; the document is read again, and the 412 rule of the use case
// (docs/requirements.md R18) finds its own state there. The control document is no other: Store answers infrastructure, and
// whoever wants to know loads it again.
//
// # The first request
//
// An azcosmos client whose first request fails keeps that failure for five minutes and answers it to every later request
// without asking the service (its endpoint manager throttles attempts, not successes), and it makes that request without
// the caller's deadline. So a client is taken into use only after it has reached the account once; a client that has not
// is thrown away, and the next call makes a new one. All this happens beside the callers, who wait no longer than their
// own deadline.
//
// # Consistency
//
// No session tokens are sent: the documents are written by other programs, whose tokens we do not have. On an account
// with session consistency a read may thus be a little old. The use case knows: it believes no read that is older than
// what the change feed showed (ADR 0008), every write carries the etag of what was read, and the ledger orders contents.
// An old control document is harmless for the same reason: what is decided from it is stored only if it is still the
// newest. An old row of Waiting is only a hint: the document is read and decided upon like any other.
package cosmos
