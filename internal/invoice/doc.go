// Package invoice reads one AI result from the Cosmos container: its version, its values for SQL Server and the state
// that we keep in it. It has no clock, no network, no SQL and no SDK.
//
// columns.go is the one table behind validation, the statements of both SQL adapters, the documentation and the check
// at the start. docs/rules.md is generated from the test table in rules_test.go.
package invoice
