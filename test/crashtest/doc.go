// Package crashtest injects a fault at every step of every path of the writer and checks the README's promises
// afterwards. It has tests only.
//
// A path is one job of the product: commit, recovery, poison, blame, the breaker; for runs a hand-off,
// a batch, a take-over, a deferral, dead letters, the timer, cancel and resume, a replay and a reapply by one process,
// two nights of comparison. A path runs once without faults.
// Each call of a port in it is a step and gets a number. Then the path runs again with every fault at every step, and
// with pairs of faults:
//
//	fail before    the call does nothing and fails
//	fail after     the call succeeds, and its answer is lost
//	timeout before, timeout after: the same, half a minute later
//	late           the call succeeds after five minutes: snapshots age, claims expire
//	outage         from this call on, the dependency does not answer for two and a half minutes
//	crash before, crash after: the process dies at the call; only containers, database and blobs survive
//	denied         for six minutes every request for documents fails like an outage, and heartbeats are committed
//	full, throttling: for six minutes nothing can be written; SQL asks for less of everything
//
// After the faults another instance starts, as the host would start it. The feed delivers again what was not
// checkpointed, and the timer ticks while the fake clock advances. The promises are asserted when nothing is left to
// do. Some of them are asserted at every call (observer_test.go; blame and the breaker in observer_blame_test.go).
//
// Runs (runs_world_test.go) have a run store, queues with locks and dead letters, heartbeats, the timer and an operator
// as well. A message of a process that died is delivered again when its lock expires. With the race detector each step
// of a run meets one third of the faults, the next step another third. Without it, and in `make faults`, each step
// meets all of them.
//
// TestInterleaved and TestInterleavedRuns run several instances under a scheduler (scheduler_test.go). One goroutine
// runs at a time, and a seed decides at every call of a port which one continues. Deliberately wrong adapters
// (mistakes_test.go, runs_mistakes_test.go) show that the assertions fail when a promise is broken.
//
// Run it with `go test ./test/crashtest`; `make faults` runs all pairs and more seeds. Everything is deterministic. A
// failure prints the test and the flags that repeat it: TestReplay with -path and -faults, or a test with -seed or
// -runseed.
package crashtest
