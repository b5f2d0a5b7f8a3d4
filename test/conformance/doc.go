// Package conformance has one test suite per port: TestSink, TestDocuments, TestRunStore, TestQueue and so on. A suite
// checks the contract in the port's comments. Every implementation, in memory and over a server, must pass it.
//
// To use a suite, call it from a test of the adapter with a function that opens a harness. The harness is the port
// under test plus the functions that the suite needs to prepare and inspect the data.
//
// # Another implementation of commit.Sink
//
// TestSink checks the port, TestBisect the use case over the port. Both take a function that makes a SinkHarness over
// empty tables, once per case:
//
//	func TestSink(t *testing.T)   { conformance.TestSink(t, harness) }
//	func TestBisect(t *testing.T) { conformance.TestBisect(t, harness) }
//
// The harness accesses the same database by other means than the implementation under test. It makes the user's rows,
// reads them back with its own SQL, and simulates other programs and a bad network. It reads and writes values as
// invoice.Value defines them, whatever types the columns have. A capability that an implementation does not have stays
// nil: in memory, for example, there are no statements to interrupt. The cases that need it are skipped and listed at
// the end of the output.
//
// With a server, set Strict: a capability that is nil is then a failure. Set RealServer when @@VERSION begins with
// "Microsoft SQL Server".
//
// # Deviations
//
// A T-SQL engine other than SQL Server may answer some cases differently. The harness lists each of them by the name of
// the
// case:
//
//	Deviations: map[string]conformance.Deviation{
//		"a NOT NULL column ...": {Seen: "the sink's last answer: contention 3930", Because: "..."},
//	}
//
// The case still runs. It must fail, and its failure must contain Seen; every failure contains the kind and number of
// the sink's last answer. When the case passes, the test fails until the deviation is removed from the list. When it
// fails differently, the test fails too. On SQL Server itself any listed deviation fails the test. The list is printed
// with the engine's version and the number of cases.
//
// # How a case fails
//
// Cases use testify. Random histories use rapid, which prints the seed; -rapid.seed repeats it. In the concurrent
// histories (sink_storms.go) rapid draws the plan but not the interleaving, so a failure may not repeat with the same
// seed.
package conformance
