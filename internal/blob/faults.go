package blob

import (
	"strconv"
	"strings"

	"sqlwriter/internal/fault"
)

// Faults gives the table of errors for docs/errors.md: the service's answers, then the codes of calls without an answer,
// then this package's own. Rows come in the order of the rules: the first match decides. Answers that mean "the file
// exists" are not errors and have no row.
func Faults() []fault.Row {
	var rows []fault.Row
	for _, r := range statusRules() {
		rows = append(rows, r.row())
	}
	for _, r := range transportRules() {
		rows = append(rows, fault.Row{
			Code: r.code, Kind: fault.Infrastructure, Reason: r.reason, Own: evidenceWaits(),
			Source: "the type of the error: net, syscall, crypto/tls, azidentity",
		})
	}
	return fault.Of("blob", append(rows, wordRows()...))
}

// wordRows are this package's own codes.
func wordRows() []fault.Row {
	return []fault.Row{
		{Code: "settings", Kind: fault.Infrastructure, Reason: "the settings of the connection cannot be used", Source: "ours", Own: fault.AtStart()},
		{Code: "unclassified", Kind: fault.Internal, Reason: "no rule matches the error", Source: "ours"},
	}
}

func (r statusRule) row() fault.Row {
	row := fault.Row{
		Code: r.codes(), Kind: r.kind, Condition: r.condition, Reason: r.reason, Source: r.sourceName(),
		Rest: r.from == 100, Covers: r.covers,
	}
	if r.condition == fault.NoCondition {
		row.Own = evidenceWaits()
	}
	if r.files {
		row.About = "the reading of a file"
	}
	return row
}

// codes names the rule's codes in docs/errors.md.
func (r statusRule) codes() string {
	if r.from != r.to {
		return strconv.Itoa(r.from) + "-" + strconv.Itoa(r.to)
	}
	return strconv.Itoa(r.from) + "/" + string(r.code)
}

// covers reports whether the rule applies to a code, which is a status or status/error code.
func (r statusRule) covers(code string) bool {
	text, word, _ := strings.Cut(code, "/")
	status, err := strconv.Atoi(text)
	return err == nil && r.from <= status && status <= r.to && (r.code == anyCode || strings.EqualFold(string(r.code), word))
}

// sourceName gives the full name of a source.
func (r statusRule) sourceName() string {
	switch r.source {
	case "common":
		return `REST reference, "Common REST API error codes"`
	case "blob":
		return `REST reference, "Blob Storage error codes"`
	}
	return r.source
}

// evidenceWaits is the consequence when evidence cannot be kept: no line may be marked before it is kept (promise G7).
func evidenceWaits() fault.Consequence {
	return fault.Consequence{
		Spends: fault.Nothing,
		Next:   "the poison pill waits: the document stays retry_scheduled and nothing is marked; the recovery timer tries again",
	}
}
