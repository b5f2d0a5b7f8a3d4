// Package comparison plants corruption into an environment of thousands of documents and lets whole nights compare it:
// runs of kind reconcile, and the runs that mend, by run.Executor. Documents are written by the real commit.Commit. The
// database is a SQLite file or a T-SQL server (docs/testing.md); the container is in memory or the emulator. It has
// tests only.
package comparison
