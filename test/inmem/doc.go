// Package inmem implements the ports in memory, for tests and as the oracle that random histories are compared with.
// What is here is real: it passes the same suites (test/conformance) as the adapters for the servers.
package inmem
