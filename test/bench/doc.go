// Package bench measures the write beside the ways it is compared with, in one run and on the same rows: row at a time as
// the original does it, the bare set-based statements, the Azure SQL output binding's MERGE, and ours. `make bench` writes
// docs/bench.md; `go test` makes a small run that asserts what can be counted. It has tests only.
package bench
