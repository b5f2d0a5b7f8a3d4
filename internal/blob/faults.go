package blob

import (
	"strconv"
	"strings"

	"sqlwriter/internal/fault"
)

// Faults is the table of errors, for people: the service's answers, then the words for answers that never came. Rows come
// in the order in which they are tried: the first one that fits decides. Answers that mean "there is one already" are no
// errors and not in it.
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

// wordRows are the codes of our own.
func wordRows() []fault.Row {
	return []fault.Row{
		{Code: "settings", Kind: fault.Infrastructure, Reason: "the settings of the connection cannot be used", Source: "ours", Own: fault.AtStart()},
		{Code: "unclassified", Kind: fault.Internal, Reason: "the table of lost answers has no last row", Source: "ours"},
	}
}

// row is a rule for people.
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

// codes says which codes the rule is for.
func (r statusRule) codes() string {
	if r.from != r.to {
		return strconv.Itoa(r.from) + "-" + strconv.Itoa(r.to)
	}
	return strconv.Itoa(r.from) + "/" + string(r.code)
}

// covers reports whether a code, a status or status/error code, is one of the rule's.
func (r statusRule) covers(code string) bool {
	text, word, _ := strings.Cut(code, "/")
	status, err := strconv.Atoi(text)
	return err == nil && r.from <= status && status <= r.to && (r.code == anyCode || strings.EqualFold(string(r.code), word))
}

// sourceName writes a source of the table out.
func (r statusRule) sourceName() string {
	switch {
	case r.source == "common":
		return `REST reference, "Common REST API error codes"`
	case r.source == "blob":
		return `REST reference, "Blob Storage error codes"`
	case strings.HasPrefix(r.source, "facts"):
		return r.source
	case strings.HasPrefix(r.source, "design"):
		return r.source
	}
	return r.source
}

// evidenceWaits follows when evidence cannot be kept: nothing may be marked before it is (promise G7).
func evidenceWaits() fault.Consequence {
	return fault.Consequence{
		Spends: fault.Nothing,
		Next:   "the poison pill waits: the document stays retry_scheduled and nothing is marked; the recovery timer tries again",
	}
}
