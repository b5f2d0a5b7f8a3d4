// Package shared holds the parts that the SQL adapters have in common. These are the JSON form of a request and the
// statements of the audit log, the run store and the reports.
//
// The package imports no driver. An adapter passes its SQL syntax (Dialect) and its connections (Engine).
package shared
