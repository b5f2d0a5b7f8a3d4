// Package scenario holds tests only: what operators suffer when documents, SQL or a build go bad, played on a fake clock.
//
// Each scenario of docs/evidence.md, Hours on a fake clock, is a test: TestRow01 and so on. It plays the host (feed ranges,
// instances, the recovery tick), lets requests take time, breaks things by rules in front of the sink, and asserts what a person
// would notice: how long good documents waited, what was poisoned, how often SQL was asked.
//
// Every test logs one line of figures. product_test.go is the only file that constructs the product.
package scenario
