// Package opsapi is the operators' API: one table of calls (table.go), and what follows from it.
//
//   - Functions Ops and Ui serve the table (handlers/ops.go): path and method find the row, parameters.go reads the
//     request.
//   - Do makes a call, through Direct in this process or through Remote over HTTP. Each row's types check the call at
//     compile time.
//   - role.go decides what a role may: it refuses calls, and empties the members of an answer that have values of
//     documents or rows.
//   - openapi_test.go describes the table for other programs.
//
// A new call costs three files: the use case in internal/ops, its row in table.go, and its command in cmd/sqlwriterctl.
package opsapi
