//go:build race

package crashtest

// With the race detector everything takes several times as long: see share_test.go.
const (
	shareOfPairs = 397
	histories    = 100
	// Runs: one in so many kinds of faults at each step, others at the next; pairs; seeds.
	shareOfRunKinds = 3
	shareOfRunPairs = 4001
	runHistories    = 25
	// shareOfShortages is every how many-th of those calls that are no request for documents meets a shortage.
	shareOfShortages = 2
)
