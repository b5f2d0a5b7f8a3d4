// Package invoice understands one finished AI result: the document in the Cosmos container, its version, the values
// that go to SQL Server and the state that we keep in it. It is pure: no clock, no network, no SQL, no SDK.
//
// Its rules are data where they can be: columns.go holds the one table that gives validation, both SQL adapters'
// statements, the documentation and the start-up check. docs/rules.md is produced from the test table in rules_test.go.
package invoice
