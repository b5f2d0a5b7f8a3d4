//go:build race

package crashtest

// With the race detector everything takes several times as long: see share_test.go.
const (
	shareOfPairs = 397
	histories    = 100
)
