// Package sqlserver implements commit.Sink on SQL Server and Azure SQL, through go-mssqldb.
//
// An Apply is one call of a stored procedure, with one JSON parameter, in one round trip and one transaction. The
// procedures come from templates in sql/, filled from the column table; testdata/apply.sql shows the result. The
// steps are in the order of their locks (ledger, IVCE_DTL, IVCE_TRKG_MSTR):
//
//	load            stages the lines of the request in a temp table
//	read_existing   counts missing detail rows before any lock
//	prune           leaves out documents with a missing line, chooses one winner for each line
//	ledger_*        the guarded UPDATE and INSERT, stamped with a write id that is new for every call
//	verdict         the verdict on each line from the ledger's present rows, or THROW
//	detail_*        all applied lines of IVCE_DTL, or THROW
//	tracking_*      all applied lines of IVCE_TRKG_MSTR, or THROW
//	outcomes        sent after COMMIT; they count only if the stream ended without an error
//
// Correctness needs no lock hints, because the guard is part of the writing statement. Another request's change
// between two statements shows as a missing stamp or a wrong count. Both undo the whole request (kind contention).
//
// Before a call, each value is compared with the limits of its column (limits.go), and a document that does not fit
// is refused alone. The server would refuse the whole request without naming the document, or change the value
// silently.
//
// Our tables are in schema sqlwriter and come from migrations/. A DBA or sqlwriterctl runs those; the app has no
// right to. IVCE_DTL and IVCE_TRKG_MSTR belong to the user; CreateSampleSchema makes samples of them.
package sqlserver
