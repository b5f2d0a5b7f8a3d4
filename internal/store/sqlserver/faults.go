package sqlserver

import (
	"strconv"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/store/shared"
)

// Faults lists the errors for docs/errors.md: the server's numbers, then the codes that are words.
func Faults() []fault.Row {
	var rows []fault.Row
	for _, r := range rules() {
		for _, n := range r.numbers {
			rows = append(rows, r.row(n))
		}
	}
	rows = append(rows, namedCodeRows()...)
	rows = append(rows, fault.Row{
		Code: otherNumber, About: "severity 17 and up", Kind: fault.Infrastructure, Reason: severeReason, Rest: true,
		Source: "docs/requirements.md R34; Database Engine error severities: 17 is out of resources, 18 and up is the server's own failure",
		Covers: fault.IsNumber,
	}, fault.Row{
		Code: otherNumber, Kind: fault.Document, Reason: otherReason, Rest: true,
		Source: "docs/requirements.md R34: any other error of the server's, when a document fails alone with it",
		Covers: fault.IsNumber,
	})
	return fault.Of("sqlserver", rows)
}

// otherNumber is the code of numbers without a row. The reason depends on the severity.
const (
	otherNumber  = "any other number"
	severeReason = "the server is out of something or failed itself"
	otherReason  = "the server refused the request"
)

// row is a rule for one of its numbers.
func (r rule) row(number int32) fault.Row {
	row := fault.Row{Code: r.codeOf(number), Kind: r.kind, Condition: r.condition, Reason: r.reason, Source: r.source}
	if r.code != "" {
		row.Name = strconv.Itoa(int(number))
	}
	if r.condition == fault.Changed {
		row.Own = fault.OfACommand() // only the adoption has it
	}
	return row
}

// namedCodeRows lists the codes that are words.
func namedCodeRows() []fault.Row {
	const (
		infra, own   = fault.Infrastructure, fault.Internal
		limitsSource = "ADR 0016; the columns as the database has them"
		byType       = "the type of the error: context, crypto/x509, go-mssqldb (docs/facts.md F79)"
	)
	start, command := fault.AtStart(), fault.OfACommand()
	return []fault.Row{
		{
			Code: codeConnection, Kind: infra,
			Reason: reasonConnection, Source: byType,
		},
		{
			Code: codeTimeout, Kind: infra,
			Reason: reasonTimeout, Source: byType,
		},
		{
			Code: codeCancelled, Kind: infra,
			Reason: reasonCancelled, Source: byType,
		},
		{
			Code: codeCertificate, Kind: infra, Source: byType,
			Reason: reasonCertificate,
		},
		{
			Code: codeCodePage, Kind: fault.Document, Source: "ADR 0016; the tables of golang.org/x/text/encoding",
			Reason: "the code page of the user's varchar column lacks a character, and the server would store a similar one",
		},
		{
			Code: codeTooLong, Kind: fault.Document,
			Reason: "a text is longer than the user's column, in UTF-16 units (nvarchar) or bytes (varchar)",
			Source: limitsSource,
		},
		{
			Code: codeOutOfRange, Kind: fault.Document,
			Reason: "a number or a time does not fit the user's column, or would be rounded there",
			Source: limitsSource,
		},
		{
			Code: codeNotNull, Kind: fault.Document,
			Reason: "the user's column is NOT NULL, and the document has no value for it", Source: limitsSource,
		},
		{
			Code: codeReadOnly, Kind: infra, Reason: "the database is read-only: a failover, or a replica",
			Source: "the heartbeat's answer to 3906, 3908 and 3924",
		},
		{
			Code: codeSchema, Kind: infra,
			Reason: "the database differs from the needs of the statements; Health lists every difference",
			Source: "docs/requirements.md R35: own schema too old",
		},
		{
			Code: codeSettings, Kind: infra, Reason: "SQL_CONNECTION or SQL_SCHEMA cannot be used",
			Source: ours, Own: start,
		},
		{
			Code: "migration_lock", Kind: fault.Contention, Reason: "another migration is running",
			Source: ours, Own: command,
		},
		{
			Code: "migration_checksum", Kind: infra,
			Reason: "a migration that was run is not the file that this build has", Source: ours, Own: command,
		},
		{
			Code: "other_user", Kind: infra, Reason: "the database's user of that name is another identity's",
			Source: ours, Own: command,
		},
		{Code: shared.CodeNoSample, Kind: infra, Reason: shared.NoSampleReason, Source: ours, Own: command},
		{
			Code: "counts", Kind: infra, Reason: "the stored counts of the adoption are damaged",
			Source: ours, Own: command,
		},
		{Code: "time", Kind: infra, Reason: "the stored time of the adoption is damaged", Source: ours, Own: command},
		{Code: "no_answer", Kind: own, Reason: "a procedure ended without its answer", Source: ours, Own: command},
	}
}
