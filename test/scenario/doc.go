// Package scenario tests how operators experience hours of trouble: bad documents, an outage of SQL, a wrong build.
// It has tests only, and they run on a fake clock.
//
// Each scenario is one test: TestRow01 and so on. The test plays the Functions
// host: feed ranges, instances and the recovery timer. Spies stand in front of the product's ports (spies_test.go,
// store_spy_test.go). They count requests, let each take time, and fail it where a rule of the scenario says so. The
// test then asserts what an operator would see: how long good documents waited, how many became poison, how often SQL
// was called.
//
// Run it with `go test ./test/scenario`. Every test logs one line of figures. SQLWRITER_SCENARIOS=full selects the
// large sizes. product_test.go is the only file that constructs the product.
package scenario
