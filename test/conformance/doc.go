// Package conformance has one suite per port. Every implementation passes it, so that what the use cases rely on is what
// the comments in the ports promise.
//
// # Another implementation of commit.Sink
//
// TestSink holds the port itself to its contract, TestBisect the use case over the port. Both want a function that
// makes a SinkHarness over empty tables, once per case:
//
//	func TestSink(t *testing.T)   { conformance.TestSink(t, harness) }
//	func TestBisect(t *testing.T) { conformance.TestBisect(t, harness) }
//
// The harness is somebody else's hands and eyes on the same database: it makes the user's rows, reads them back by its
// own SQL, and does what other programs and a bad network do. It must not go through the implementation under test.
// Values are read and written as invoice.Value says, whatever types the columns have. What an implementation cannot show
// (in memory there are no statements to come between) is left nil; the cases that need it are skipped and listed at the
// end of the output.
//
// Against a server nothing may be left out: set Strict, and a capability that is nil is a failure. Set RealServer when
// @@VERSION begins with "Microsoft SQL Server".
//
// # Deviations
//
// An engine that speaks T-SQL and is not SQL Server may answer some cases otherwise. Each of those is listed by the
// name of the case:
//
//	Deviations: map[string]conformance.Deviation{
//		"a NOT NULL column ...": {Seen: "the sink's last answer: contention 3930", Because: "..."},
//	}
//
// The case is run all the same. It must fail, and its failure must show what was seen: the sink's last answer, by kind
// and number, stands in each. When the case passes, the test fails until the deviation is taken off the list; when it
// fails otherwise, the test fails too. On SQL Server itself any listed deviation fails the test. The list is printed
// with the engine's version and the number of cases.
//
// # How a case fails
//
// Cases use testify; random histories use rapid, which prints the seed and repeats it with -rapid.seed. The storms' plan
// is drawn by rapid too, their interleaving is not: a storm that fails once may pass with the same seed.
package conformance
