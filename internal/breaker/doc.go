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
// Failures of one instance within 10 s count once, but for those of single documents.
//
// A heartbeat row that is not the one in the control document, or is older, opens the breaker at the first refusal
// (heartbeat.go). A database that went back in time is never written to.
//
// Only requests for documents (Ask, Do) and heartbeats (Tick and the probe) change the state. Every answer that is not
// of dependency scope is a success: a refused document proves that the database works. Other uses of SQL ask for
// permission (Permit) and report nothing.
//
// The state is one member of the control document, changed by compare-and-set. State.next is pure; the time is an
// argument. An instance that cannot read the control document continues with its own copy and logs it.
//
// What operators read beside it is in the statuses of the instances (status.go): how each dependency last answered
// (dependencies.go), mass failures, stops and what was committed. None of it decides anything.
//
// A crash leaves behind a claimed probe, which expires, and loses the failures that only this process has counted.
package breaker
