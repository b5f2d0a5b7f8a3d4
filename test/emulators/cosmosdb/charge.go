package cosmosdb

// Request charges are estimates, in request units. They fit what is published: a point read of 1 KB costs 1 and of 100
// KB 10 (the vendor's page "Optimize request cost"); a recorded account took 17.16 for a page of 1,000 small rows and
// 9.7 for one of 500. What a filter costs that no index serves is not in them.

// loaded is what the size of a document adds, in bytes: nothing up to 1 KB, 9 at 100 KB.
func loaded(size int) float64 {
	const free, perUnit = 1 << 10, 11 << 10
	return float64(max(0, size-free)) / perUnit
}

// pointReadCharge is the charge of a point read of a document of this size.
func pointReadCharge(size int) float64 { return 1 + loaded(size) }

// The charge of a page of a query: pageCharge, and for each document that it has loaded rowCharge and what its size
// adds.
const (
	pageCharge = 2.3
	rowCharge  = 0.015
)
