// Package e2e holds the end-to-end tests. They run the real handler binary in a staged script root under the Functions
// host emulator, with the Cosmos DB emulator behind the real SDK and SQLite behind the real adapter.
//
// Faults come from outside: the tests kill processes and cut connections, and the product has no code for them.
//
// Install the emulators once with `make azurite servicebus`, then run `go test ./test/e2e`. Tests of SQL Server skip
// without SQLWRITER_TEST_SQLSERVER (package sqlservertest). SQLWRITER_FAULTS adds outages of real minutes (`make
// faults` sets it); SQLWRITER_DRAIN sets the number of documents of a drain.
package e2e
