// Package cosmosdb emulates a Cosmos DB account (SQL API, gateway mode) in one process, for local runs and for tests.
// azcosmos v1.5.0 works with it unmodified over plain HTTP on loopback. test/sdkchecks lists what the vendor's
// JavaScript SDK does with it. The emulator is strict: it refuses what the service refuses, because code that passes
// against a lenient emulator may fail in Azure.
//
// # How to use it
//
// In a test, package cosmosdbtest starts an account and gives a real azcosmos client. Elsewhere call New, and serve the
// Server over HTTP; its data is in memory. Fault rules are set by Server's methods (see Rule).
//
// # What it serves
//
//   - Account, databases, containers (partition key paths and kind, defaultTtl), pkranges, throughput to read;
//     filters over databases, containers and offers. Signatures with the account key are checked, dates within
//     15 minutes.
//   - Addresses by name, and by resource id (/dbs/{rid}/colls/{rid}/docs/{rid}), which are signed over their last
//     id in lower case. A database whose name has the form of a resource id (eight characters that end with ==)
//     cannot be addressed by it.
//   - Documents: create, upsert, replace, read, delete, patch, transactional batch; quoted _etag that is new
//     with every write, _ts in whole seconds, _rid, _self; If-Match, If-None-Match on reads, Prefer:
//     return=minimal; ids, partition key header against content, 2 MB, ttl; 400/401/403/404/409/410/412/413
//     with x-ms-substatus where the service sends one.
//   - Patch: add, set, replace, remove, incr and a condition, one to ten operations, all or none; a missing
//     parent is 400.
//   - Queries: the language of package cosmossql. What the gateway cannot serve across partitions is refused
//     with 400 and substatus 1004, on a container of one range too. Pages end at the limit, at 4 MB and at the
//     end of a range, so empty pages with a continuation are normal; continuations are checked. Query plans are
//     made for TOP alone and for queries that need none: filters, and what is limited to one partition key. ORDER BY
//     two paths needs a composite index.
//   - ReadManyItems, feed ranges, change feed in latest version mode: per range in LSN order, continuation by
//     etag, 304 when nothing is new.
//   - Range splits, on demand (Split, or the control endpoint): the parent answers 410 with substatus 1002, the
//     children
//     name it in parents, continuations of its feed and of queries go on in them. Pkranges is a feed, too.
//   - Fault rules from Go; request counters and splits over HTTP, too (control.go).
//
// # What it refuses although the service has it
//
// The patch operation move, unique keys, plans of queries that a client has to merge (ORDER BY, OFFSET,
// DISTINCT, GROUP BY, aggregates), batches that are not atomic or in HybridRow (the .NET SDK's), the change
// feed mode with all versions, changing throughput, and what package cosmossql lists. There are no stored
// procedures, triggers, user-defined functions, users, permissions, conflicts, attachments, and no deletion of a
// whole partition key.
//
// # Where it is stricter than the service
//
// An id with / \ ? # is refused when it is written. The vendor's reference forbids the four, but the service
// has been seen to store them and then fail on point operations (azure-cosmos-dotnet-v3 issues 2573, 2606). A query
// parameter without a value in the list is 400 (a recorded account takes it as undefined). A page without a requested
// size is 100 rows (a recorded account gave 1,000). Queries over several ranges never fill a page across ranges. A
// replace that changes the id is refused.
//
// # Where it is looser, or different
//
// Numbers come back exactly as they were written, digit by digit, as 64-bit integers do in the service;
// the service turns longer numbers and fractions into doubles (1.0 comes back as 1, 0.1000000000000000055
// as 0.1). Nothing is throttled unless a fault rule says so; request charges are estimates (charge.go). There is
// one region, no replication lag, and session tokens are not read. A division by zero in a query is
// undefined instead of 400. Ranges split only when told to, at once and at the middle of their hashes; they never
// merge.
//
// # Sources
//
// The vendor's REST reference (learn.microsoft.com/rest/api/cosmos-db: access control, common headers,
// documents, querying, HTTP status codes) and its pages on service quotas, partial document update, change
// feed modes, time to live, transactional batch and request cost; what azcosmos v1.5.0 sends and expects; what a real
// account answered in the recordings of the public repository xo/dbimp (COSMOS.md, testdata/cosmos); facts
// F63 to F73, F90 and F93 to F103 of docs/facts.md.
package cosmosdb
