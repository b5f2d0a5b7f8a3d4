package cosmos

import (
	"strconv"
	"strings"

	"sqlwriter/internal/fault"
)

// Faults is the table of errors, for people: the service's statuses, the words for answers that never came, and those of
// our own. Rows come in the order in which they are tried: the first one that fits decides.
func Faults() []fault.Row {
	var rows []fault.Row
	for _, r := range statusRules() {
		rows = append(rows, r.row())
	}
	for _, r := range transportRules() {
		rows = append(rows, fault.Row{
			Code: r.code, Kind: fault.Infrastructure, Reason: r.reason, Own: offeredAgain(),
			Source: "the type of the error: net, syscall, crypto/tls, azidentity",
		})
	}
	return fault.Of("cosmos", append(rows, wordRows()...))
}

// wordRows are the codes of our own.
func wordRows() []fault.Row {
	const infra, ours = fault.Infrastructure, "ours"
	submitted := "a document that is submitted"
	return []fault.Row{
		{
			Code: "id", Kind: fault.Document, Condition: fault.Gone, About: "one document",
			Reason: "no document can have such an id", Source: `REST reference, "Resource.Id"`,
		},
		{Code: "id", Kind: fault.Document, About: submitted, Reason: "the document has no id that the service takes", Source: `REST reference, "Resource.Id"`, Own: fault.OfACommand()},
		{Code: "json", Kind: fault.Document, About: submitted, Reason: "the text is no JSON object with an id", Source: ours, Own: fault.OfACommand()},
		{Code: "no_etag", Kind: fault.Contention, Condition: fault.Changed, About: "a version that is none", Reason: "the etag names no version of a document", Source: ours},
		{Code: "no_etag", Kind: infra, Reason: "the service did not say under which etag it keeps the document", Source: ours, Own: offeredAgain()},
		{Code: "unreadable", Kind: infra, About: "the control document", Reason: "it is not what an instance of the app writes", Source: ours, Own: ownCopy()},
		{Code: "row", Kind: infra, Reason: "a query was answered with a row that is none", Source: ours, Own: offeredAgain()},
		{
			Code: "continuation", Kind: fault.Document, About: "a search",
			Reason: "it cannot go on where it stopped: the service, or another query, does not know the place",
			Source: "azure-cosmos-dotnet-v3 issue 3416",
			Own:    fault.Consequence{Spends: fault.Nothing, Next: "the search begins again; a run passes over the documents that it has already"},
		},
		{Code: "marshal", Kind: fault.Internal, Reason: "what is to be recorded cannot be written as JSON", Source: ours, Own: left()},
		{Code: "window", Kind: fault.Internal, Reason: "there is no such window", Source: ours},
		{Code: "settings", Kind: infra, Reason: "the settings of the connection cannot be used", Source: ours, Own: fault.AtStart()},
		{Code: "unclassified", Kind: fault.Internal, Reason: "the table of lost answers has no last row", Source: ours},
	}
}

// row is a rule for people.
func (r statusRule) row() fault.Row {
	row := fault.Row{
		Code: r.codes(), Kind: r.kind, Condition: r.condition, Reason: r.reason, Source: r.sourceName(),
		Own: r.own(), Rest: r.from == 100, Covers: r.covers,
	}
	if r.documents {
		row.About = "one document"
	}
	return row
}

// codes says which codes the rule is for.
func (r statusRule) codes() string {
	switch {
	case r.from != r.to:
		return strconv.Itoa(r.from) + "-" + strconv.Itoa(r.to)
	case r.substatus == noSubstatus:
		return strconv.Itoa(r.from)
	}
	return strconv.Itoa(r.from) + "/" + r.substatus
}

// covers reports whether a code, a status or status/substatus, is one of the rule's.
func (r statusRule) covers(code string) bool {
	text, sub, found := strings.Cut(code, "/")
	if !found {
		sub = noSubstatus
	}
	status, err := strconv.Atoi(text)
	return err == nil && r.from <= status && status <= r.to && (r.substatus == anySubstatus || r.substatus == sub)
}

// sourceName writes a source of the table out.
func (r statusRule) sourceName() string {
	switch {
	case r.source == "rest":
		return `REST reference, "HTTP status codes for Azure Cosmos DB"`
	case strings.HasPrefix(r.source, "facts"):
		return r.source
	case strings.HasPrefix(r.source, "design"):
		return r.source
	}
	return r.source
}

// own is what follows from an answer of this service; the table of kinds speaks of SQL.
func (r statusRule) own() fault.Consequence {
	switch {
	case r.condition != fault.NoCondition:
		return fault.Consequence{} // the condition says it
	case r.from == 409:
		return fault.OfACommand() // only a document that is submitted can meet it
	case r.kind == fault.Document:
		return left()
	case r.kind == fault.Contention:
		return fault.Consequence{Spends: fault.Nothing, Next: "at once, 3 times with jitter; then it is left to the recovery timer"}
	case r.kind == fault.Throttled:
		return fault.Consequence{
			Spends: fault.Nothing,
			Next:   "after the wait that the account asks for, 3 times, each at most 2 s; then the host offers the batch again every 10 s",
		}
	}
	return offeredAgain()
}

// offeredAgain follows from an error of the service: the breaker stands in front of SQL alone.
func offeredAgain() fault.Consequence {
	return fault.Consequence{Spends: fault.Nothing, Next: "the host offers the batch again every 10 s, until the service answers; the breaker does not mind"}
}

// left follows when an outcome cannot be recorded.
func left() fault.Consequence {
	return fault.Consequence{Spends: fault.Nothing, Next: "an error line; the document is left to the recovery timer"}
}

// ownCopy follows when the control document cannot be read.
func ownCopy() fault.Consequence {
	return fault.Consequence{Spends: fault.Nothing, Next: "each instance goes by its own copy and says so, until the control document can be read"}
}
