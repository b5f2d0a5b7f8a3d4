// Package bench compares the speed of the product's write with its alternatives, in one run and on the same rows. The
// alternatives are the row-by-row write of the original and bare set-based statements. It has tests only.
//
// `make bench` measures and writes its section of docs/figures.md. `go test ./test/bench` makes a small run and asserts
// only what can be counted, such as round trips.
package bench
