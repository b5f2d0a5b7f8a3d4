// Package sqlite is the embedded database: commit.Sink on one SQLite file, with the same rules as on SQL Server.
//
// The statements are templates in sql/, filled from the column table with the names of Options.Layout;
// testdata/statements.sql shows what results for the names as they stand. Every Apply is one BEGIN IMMEDIATE
// transaction on the one writer connection. That is also what SQLite cannot show: there is never a second writer
// between two statements, so lock waits, deadlocks, escalation and isolation levels are not proven here. The guard and
// the evidence rule are exercised all the same, by tests that run an older request inside the transaction of a newer
// one.
//
// Our tables carry the prefix sqlwriter_ and come from migrations/. IVCE_DTL and IVCE_TRKG_MSTR are the user's;
// CreateSampleSchema makes stand-ins for them. SQLite has no decimal, date or nvarchar type: decimals and times are kept
// as their canonical text (exact, and times sort by it), and the sample's length checks count characters where
// nvarchar counts UTF-16 units (the domain has counted those before).
package sqlite
