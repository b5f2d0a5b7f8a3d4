package sqlite

import (
	"strconv"
	"strings"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/store/shared"
)

// Faults lists the errors for docs/errors.md: SQLite's result codes, then the codes that are words.
func Faults() []fault.Row {
	rows := make([]fault.Row, 0, len(rules()))
	for _, r := range rules() {
		rows = append(rows, r.row())
	}
	rows = append(rows, namedCodeRows()...)
	rows = append(rows, fault.Row{
		Code: "any other number", Kind: fault.Document, Reason: otherReason, Rest: true,
		Source: "docs/requirements.md R34: any other error of the server's, when a document fails alone with it",
		Covers: fault.IsNumber,
	})
	return fault.Of("sqlite", rows)
}

// otherReason is the reason of a code without a row.
const otherReason = "the database refused the request"

func (r rule) row() fault.Row {
	return fault.Row{
		Code: strconv.Itoa(r.code), Name: "SQLITE_" + strings.ToUpper(r.name), Kind: r.kind,
		Condition: r.condition, Reason: r.reason, Source: "sqlite.org/rescode.html#" + r.name,
		Covers: r.covers,
	}
}

// covers reports whether code is an extension of the rule's primary code.
func (r rule) covers(code string) bool {
	const extended = 1 << 14 // every extended code of sqlite.org/rescode.html is smaller
	n, err := strconv.Atoi(code)
	return err == nil && n > primaryMask && n < extended && n&primaryMask == r.code
}

// namedCodeRows lists the codes that are words.
func namedCodeRows() []fault.Row {
	const (
		infra, own = fault.Infrastructure, fault.Internal
		driver     = "the type of the error: context, database/sql"
		ours       = "ours"
	)
	start, command := fault.AtStart(), fault.OfACommand()
	return []fault.Row{
		{Code: "timeout", Kind: infra, Reason: reasonTimeout, Source: driver},
		{Code: "cancelled", Kind: infra, Reason: reasonCancelled, Source: driver},
		{Code: "connection", Kind: infra, Reason: "the connection is gone", Source: driver},
		{Code: "driver", Kind: own, Reason: "the driver answered with an error of its own", Source: driver},
		{
			Code: "read_only", Kind: infra, Reason: "the database file is read-only",
			Source: "the heartbeat's answer to SQLITE_READONLY",
		},
		{
			Code: "schema", Kind: infra, Reason: "a table or column of the statement does not exist",
			Source: "docs/requirements.md R35: own schema too old",
		},
		{
			Code: "verdict_without_evidence", Kind: fault.Contention,
			Reason: shared.ReasonNoEvidence,
			Source: "docs/requirements.md R50",
		},
		{
			Code: "row_count", Kind: fault.Contention, Condition: fault.OwnWhenAlone,
			Reason: shared.ReasonRowCount, Source: "docs/requirements.md R51",
		},
		{Code: "path", Kind: infra, Reason: "SQL_CONNECTION names no file", Source: ours, Own: start},
		{Code: "dsn", Kind: infra, Reason: "the path in SQL_CONNECTION cannot be used", Source: ours, Own: start},
		{
			Code: "migration_checksum", Kind: infra, Source: ours, Own: start,
			Reason: "a migration that was run is not the file that this build has",
		},
		{Code: shared.CodeNoSample, Kind: infra, Reason: shared.NoSampleReason, Source: ours, Own: command},
		{
			Code: "counts", Kind: infra, Reason: "the stored counts of the adoption are damaged",
			Source: ours, Own: command,
		},
		{Code: "time", Kind: infra, Reason: "the stored time of the adoption is damaged", Source: ours, Own: command},
	}
}
