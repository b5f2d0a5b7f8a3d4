// Package sqlite implements commit.Sink and the stores of runs, audits and adoptions on one SQLite file. The rules
// are those of SQL Server.
//
// The statements are templates in sql/, filled from the column table with the names of Options.Layout. For the
// default names testdata/statements.sql shows the result. Every Apply is one BEGIN IMMEDIATE transaction on the only
// connection that writes.
//
// SQLite therefore does not prove everything. No second writer runs between two statements, so tests here do not
// cover lock waits, deadlocks, escalation and isolation levels. For the guard and the evidence rule, tests run an
// older request inside the transaction of a newer one.
//
// Our tables have the prefix sqlwriter_ and come from migrations/. IVCE_DTL and IVCE_TRKG_MSTR belong to the user;
// CreateSampleSchema makes samples of them. SQLite has no types for decimals, dates and nvarchar. Decimals and times
// are stored as their canonical text, which is exact, and times sort by it. The sample's checks of lengths count
// characters, where nvarchar counts UTF-16 units; validation has counted those before.
package sqlite
