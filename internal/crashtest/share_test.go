//go:build !race

package crashtest

// What a plain go test runs of what is too much for it. All pairs are in make faults.
const (
	// shareOfPairs is every how many-th pair.
	shareOfPairs = 97
	// histories is how many seeds.
	histories = 300
)
