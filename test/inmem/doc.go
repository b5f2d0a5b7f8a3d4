// Package inmem implements the product's ports in memory. Tests of use cases run on it, and random histories are
// compared with it.
//
// Each type is a working implementation: it passes the same suites of test/conformance as the adapters for the servers.
// Make one with its New function. Most of them take the clock, so that a test can use a fake one. Methods beyond the
// port, such as Queue.Plan and RunStore.Workers, let a test inject faults and inspect the stored data.
package inmem
