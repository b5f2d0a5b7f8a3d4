package crashtest

import "testing"

// sizes are what one go test runs of what is too much for it. All pairs are in make faults.
type sizes struct {
	// pairs is every how many-th pair, histories how many seeds.
	pairs, histories int
	// kinds is every how many-th kind of fault at a step, others at the next step; runKinds the same on a path of runs,
	// runPairs every how many-th pair on these paths, runHistories how many seeds of runs.
	kinds, runKinds, runPairs, runHistories int
}

// shareOfShortages is every how many-th of those calls that are no request for documents meets a shortage.
const shareOfShortages = 2

// size is the daily size, or that of go test -short: make test.
func size() sizes {
	if testing.Short() {
		return sizes{pairs: 1490, histories: 100, kinds: 2, runKinds: 3, runPairs: 9970, runHistories: 25}
	}
	return sizes{pairs: 149, histories: 300, kinds: 1, runKinds: 1, runPairs: 997, runHistories: 60}
}
