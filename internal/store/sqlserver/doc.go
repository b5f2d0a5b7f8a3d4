// Package sqlserver is the product's database: commit.Sink on SQL Server and Azure SQL, through go-mssqldb.
//
// An Apply is one request, one round trip and one transaction: one constant text and one JSON parameter. The statements
// are templates in sql/, filled from invoice.Columns(); testdata/write.sql shows what results. The steps, in the order of their locks (ledger, IVCE_DTL, IVCE_TRKG_MSTR):
//
//	stage, load     the lines of the request in a temp table
//	look            what is there for them, before anything is locked: it only chooses statements
//	prune           documents with a missing line out, one winner for each line
//	ledger_*        the guarded UPDATE and INSERT, stamped with a write id made new for every send
//	verdict         what became of each line, from what the ledger holds now, or THROW
//	detail_*        IVCE_DTL, all applied lines or THROW
//	tracking_*      IVCE_TRKG_MSTR, all applied lines or THROW
//	outcomes        after COMMIT; they count only if the stream ended cleanly
//
// Correctness needs no lock hint: the guard is part of the writing statement, and whatever another request did between
// two of ours shows as a missing stamp or a wrong count, which undoes the whole request (kind contention).
//
// Before anything is sent, each value is compared with what its column holds, as the database has it (limits.go). A document
// that does not fit is refused by itself. The server would refuse the request without saying whose the value is, or write another
// value without a word.
//
// Our own table lives in the schema sqlwriter and comes from migrations/, which a DBA or sqlwriterctl runs; the app has no
// right to. IVCE_DTL and IVCE_TRKG_MSTR are the user's; CreateSampleSchema makes stand-ins for them.
package sqlserver
