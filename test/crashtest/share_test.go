//go:build !race

package crashtest

// What a plain go test runs of what is too much for it. All pairs are in make faults.
const (
	// shareOfPairs is every how many-th pair.
	shareOfPairs = 149
	// histories is how many seeds.
	histories = 300
	// shareOfRunKinds is every how many-th kind of fault at a step of a path of runs: all of them.
	shareOfRunKinds = 1
	// shareOfRunPairs is every how many-th pair on these paths, runHistories how many seeds of runs.
	shareOfRunPairs = 997
	runHistories    = 60
	// shareOfShortages is every how many-th of those calls that are no request for documents meets a shortage.
	shareOfShortages = 2
)
