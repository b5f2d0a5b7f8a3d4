// Package breaker is the circuit breaker in front of SQL, shared by all instances of an app.
//
//	          5 infrastructure failures in a row over 15 s, or 1 throttled or quota
//	closed ------------------------------------------------------------> open
//	   ^                                                                  | due: one instance claims the probe,
//	   | answers of documents: limit 1, 5, 25, then closed                | and its heartbeat commits
//	   | or two heartbeats, 2 min apart, with no request between              v
//	   +------------------------------------------------------------- half-open
//	                                                                      | one dependency failure: open again
//
// A database whose heartbeat row is not the one that the control document knows, or a later one, opens it at the first refusal
// (heartbeat.go): nothing is written to a database that went back.
//
// Only two things feed it: requests for documents (Do) and the heartbeat (Tick, and the probe). Every answer that is not
// of dependency scope is a success: a refused document says that the database works. Bookkeeping asks (Permit) and
// reports nothing.
//
// The state is one member of the control document, changed by compare-and-set. State.next is pure; the time is an
// argument. An instance that cannot read the control document goes on with its own copy, and says so.
//
// What a crash leaves behind: a claimed probe, which expires by itself; failures that were counted in this process only.
package breaker
