package conformance

import (
	"slices"
	"testing"
	"time"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/reconcile"
	"sqlwriter/test/mapping"
)

// SinkHarness has the port under test and the functions that the suites need around it. They access the same database
// by other means. Functions get the case as t; they end it with t.FailNow on an error of their own.
type SinkHarness struct {
	// Engine names the engine and its version in one line, printed once with the number of cases.
	Engine string
	// RealServer says that this is Microsoft SQL Server itself (its @@VERSION begins so). It may deviate in nothing.
	RealServer bool
	// Strict makes a lacking capability a failure. Set it whenever a server was named: nothing may be left out there.
	Strict bool
	// Deviations has, by the name of the case, what an engine that is not SQL Server does instead.
	Deviations map[string]Deviation

	// Sink is the port under test, over tables with nothing in them. Rows is that of TestRows, over the same tables.
	Sink commit.Sink
	Rows func(sysName string, keptDays int) reconcile.Rows
	// Under is the port over the same tables by another mapping, of which each column is one of the mapping in use.
	Under func(t testing.TB, m *invoice.Mapping) Store
	// AddLines makes rows in IVCE_DTL with NULL in every column of ours.
	AddLines func(t testing.TB, lines ...int64)
	// Row reads what the user's tables hold for a line.
	Row func(t testing.TB, line int64) SinkRow
	// SetRow is a person's or program's own write: it changes an existing detail row and makes, changes or deletes the
	// tracking row.
	SetRow func(t testing.TB, line int64, r SinkRow)
	// Ledger reads the ledger's row for a line; SetLedger puts one there, as adopting a database with history does.
	Ledger    func(t testing.TB, line int64) (LedgerRow, bool)
	SetLedger func(t testing.TB, line int64, l LedgerRow)

	// Heartbeat reads an environment's row of the table heartbeat, over another connection than the sink's.
	Heartbeat func(t testing.TB, sysName string) (HeartbeatRow, bool)
	// SetHeartbeat is another program's write: it sets a row, or deletes it when the given one has no number. An id is
	// a GUID's text in lower case.
	SetHeartbeat func(t testing.TB, sysName string, row HeartbeatRow)

	// What follows are capabilities that not every implementation has. Cases that need one which is nil are skipped and
	// listed, or fail when the harness is Strict.

	// Refuse makes the user's tables refuse a text value from now on, by a trigger or a check.
	Refuse func(t testing.TB, value string)
	// Constrain adds a rule of the user's own to one of the user's tables. Rows that are there satisfy it.
	Constrain func(t testing.TB, table invoice.Table, r Rule)
	// NotNull makes the user's detail table refuse NULL in NotNullColumn, which no document of the suite has, until
	// restore.
	NotNull func(t testing.TB) (restore func())
	// Narrow makes NarrowedColumn of the user's detail table hold at most so many characters, which what is there
	// satisfies, until widen.
	Narrow func(t testing.TB, to int) (widen func())
	// OddColumns gives the user's empty tables columns of other types that the app accepts: of fixed length, with less
	// precision, or with another scale. Each of edits is a person's change of one value of a line with the content
	// "blank " or longer.
	OddColumns func(t testing.TB) (edits []func(line int64))
	// BetweenReadAndWrite runs f in the next rewrite, once: after it has read the lines and before it writes. An engine
	// where nobody can write then has none.
	BetweenReadAndWrite func(t testing.TB, f func())
	// Hide takes a table away (column ""), or one column of it, until restore. The table is one of the user's or
	// LedgerTable, whatever name the ledger has.
	Hide func(t testing.TB, table invoice.Table, column string) (restore func())
	// ReadOnly makes the database refuse every write, as a replica does, until restore.
	ReadOnly func(t testing.TB) (restore func())
	// CountWrites installs counters by trigger: how often a line's row was written in each of the user's tables since.
	CountWrites func(t testing.TB) func(line int64) (detail, tracking int)

	// Lock opens another program's transaction that has changed the line's detail row; unlock rolls it back. It is
	// called once, by any goroutine. LockWait is how long a statement waits for a lock. RowLocks says that other lines
	// are free meanwhile.
	Lock     func(t testing.TB, line int64) (unlock func())
	LockWait time.Duration
	RowLocks bool
	// LockHeartbeat is Lock for an environment's row of the table heartbeat.
	LockHeartbeat func(t testing.TB, sysName string) (unlock func())

	// Steps names the statements of a write request in their order, among them the Step constants. FailAfter makes the
	// next request that comes to a step fail right after it, once, with an error that the server raises or the
	// connection gives. It may be called while requests are under way.
	Steps     []string
	FailAfter func(t testing.TB, step string)
	// During runs f in the next request, right after a statement, once.
	During func(t testing.TB, step string, f func(Inside))
	// LoseReply makes the next request that commits lose its acknowledgement: Apply answers infrastructure, and the
	// rows are there. It may be called while requests are under way.
	LoseReply func(t testing.TB)
}

// Store is a sink with its reconcile.Rows.
type Store interface {
	commit.Sink
	ReconcileRows(sysName string, keptDays int) reconcile.Rows
}

// The statements between which something may happen, as every SQL adapter names them.
const (
	StepLedgerUpdate   = "ledger_update"
	StepDetailUpdate   = "detail_update"
	StepTrackingUpdate = "tracking_update"
)

// NarrowedColumn is the column of IVCE_DTL that Narrow is about: a text that the name of the manufacturer goes to.
func NarrowedColumn() invoice.Column { return mapping.Of(invoice.Detail, "CLN_MFR_AI_NM") }

// NotNullColumn is the column that NotNull is about.
func NotNullColumn() invoice.Column { return mapping.Of(invoice.Detail, "UPC_CD") }

// RuledColumn is the column of a table that rules of value are about.
func RuledColumn(table invoice.Table) invoice.Column { return mapping.Of(table, "UNSPSC_CD") }

// LedgerTable stands for the ledger where a table is named to a harness.
const LedgerTable invoice.Table = "ledger"

// Rule is something that the user's schema may ask of the user's rows. Rules of value are about RuledColumn, which both
// tables have, and a non-NULL value.
type Rule string

// The rules.
const (
	// TriggerThrows: a trigger after the write raises an error when the value is RefusedCode.
	TriggerThrows Rule = "trigger throws"
	// TriggerRollsBack: the same, and the trigger itself rolls the transaction back.
	TriggerRollsBack Rule = "trigger rolls back"
	// CheckRefuses: CHECK (value <> RefusedCode).
	CheckRefuses Rule = "check"
	// ForeignKey: the value refers to a table in which AllowedCode is the only one.
	ForeignKey Rule = "foreign key"
	// Unique: no two rows have one value.
	Unique Rule = "unique"
	// UnwrittenNotNull: the table has one more column, NOT NULL and without a default, that we know nothing of.
	UnwrittenNotNull Rule = "not null"
)

// The values of RuledColumn.
const (
	AllowedCode = "39131711"
	RefusedCode = "00000000"
)

// Inside is another program's access while a request is between two of its statements. An engine with one writer runs
// it in the request's own transaction; what the request rolls back is then rolled back too.
type Inside struct {
	// Sink makes whole requests.
	Sink commit.Sink
	// AddTracking makes a tracking row with nothing but its key.
	AddTracking func(line int64) error
	// DropDetail deletes a detail row.
	DropDetail func(line int64) error
}

// SinkRow is one line in the user's tables.
type SinkRow struct {
	// Detail and Tracking say which of the two rows exist.
	Detail, Tracking bool
	// Values are aligned with Mapping.Columns; NULL where the row does not exist.
	Values []invoice.Value
}

// LedgerRow is one line in the ledger. The hashes are "" and HashVersion is 0 where the ledger has NULL.
type LedgerRow struct {
	Version                        invoice.Version
	DocumentID, SysName            string
	SourceTS                       int64
	Hash, DetailHash, TrackingHash string
	HashVersion                    int
	Outcome                        string
	// DaysAgo is how long ago SetLedger says that it was written. Ledger does not give it.
	DaysAgo int
}

// HeartbeatRow is an environment's row of the table heartbeat. The harness has looked at the time in it.
type HeartbeatRow struct {
	DatabaseID string
	Number     int64
}

// TestSink checks an implementation of commit.Sink against the port's contract (docs/requirements.md R50). open makes a
// new harness over empty tables; it is called once per case.
func TestSink(t *testing.T, open func(t testing.TB) SinkHarness) {
	runCases(t, open, sinkCases())
}

// sinkCases are all of them, by theme.
func sinkCases() []sinkCase {
	return slices.Concat(verdictCases(), versionCases(), markCases(), lineCases(), valueCases(), widthCases(),
		previewCases(), faultCases(), replyCases(), schemaCases(), lockCases(), raceCases(), parallelCases(),
		historyCases(), heartbeatCases(), rewriteCases(), releaseCases(), keepCases())
}

// TestBisect runs the real use case (commit.Commit) over an implementation of commit.Sink and documents in memory: bad
// documents are found and blamed alone, their neighbours are written (docs/requirements.md R37, promise G6). open is
// called once per case, as for TestSink.
func TestBisect(t *testing.T, open func(t testing.TB) SinkHarness) {
	runCases(t, open, bisectCases())
}
