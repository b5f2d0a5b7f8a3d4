// Package crashtest breaks every step of every path of the writer and looks at what is left. It has tests only.
//
// A path (commit, recover, poison, blame, reprocess, breaker; of runs: a hand-off by each pattern, a batch, a take-over, a deferral,
// dead letters, what the timer finds, cancel and resume) is run once without faults, and every call of a port is numbered: those are
// its steps. Then it is run again for every fault at every step, and for every pair of them:
//
//	fail before    the call does nothing and fails
//	fail after     the call is done, and its answer is lost
//	timeout before, timeout after: the same, half a minute later
//	late           the call is done, and five minutes pass before it answers: snapshots age, claims expire
//	outage         from the call on, nothing of this dependency answers for two and a half minutes
//	crash before, crash after: the process dies at the call; nothing of it is left but containers, database and blobs
//	denied         for six minutes every request for documents fails like an outage, and heartbeats are committed
//	full, throttling: for six minutes nothing can be written; SQL asks for less of everything
//
// After the faults another instance starts, as the host would start it: the feed offers again what it did not checkpoint, the
// timer ticks while the clock goes on. When all is quiet the promises of the README are asserted; some are asserted at every
// single call (observer_test.go; blame and the breaker in observer_blame_test.go). The clock is fake, nothing is drawn but from a seed, so one line of a failure replays it.
//
// Runs (runs_world_test.go) have books, queues with locks and dead letters, heartbeats, the timer and an operator besides; a message of
// a process that died comes again when its lock is over. With -short, as in make test, each step of theirs meets a third of the
// faults, the next step another third; without it all. No test here runs with the race detector: one goroutine runs at a time.
//
// Several instances at once are under a scheduler (scheduler_test.go): one goroutine runs at a time, every call of a port is
// where it may lose its turn, and a seed decides who goes on.
//
// That the machinery notices is shown by adapters that make deliberate mistakes (mistakes_test.go).
package crashtest
