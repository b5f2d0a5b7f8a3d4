package cosmos

import (
	"strconv"
	"strings"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
)

// Faults gives the table of errors for docs/errors.md: the service's statuses, then the codes of calls without an answer,
// then this package's own. Rows come in the order of the rules: the first match decides.
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

// wordRows are this package's own codes.
func wordRows() []fault.Row {
	const infra, ours = fault.Infrastructure, "ours"
	submitted := "a document that is submitted"
	return []fault.Row{
		{
			Code: "id", Kind: fault.Document, Condition: fault.Gone, About: "one document",
			Reason: "no document can have such an id", Source: `REST reference, "Resource.Id"`,
		},
		{Code: "id", Kind: fault.Document, About: submitted, Reason: "the document has no id that the service accepts", Source: `REST reference, "Resource.Id"`, Own: fault.OfACommand()},
		{Code: "json", Kind: fault.Document, About: submitted, Reason: "the text is not a JSON object with an id", Source: ours, Own: fault.OfACommand()},
		{Code: "no_etag", Kind: fault.Contention, Condition: fault.Changed, About: "an etag that is empty or *", Reason: "the etag names no version of a document", Source: ours},
		{Code: "no_etag", Kind: infra, Reason: "the service did not give the etag of the document", Source: ours, Own: offeredAgain()},
		{
			Code: CodePartitionKey, Kind: infra, Reason: "a container's partition key cannot be used; the text says why, and what mends it",
			Source: "docs/requirements.md R10", Own: offeredAgain(),
		},
		{
			Code: "not_caught_up", Kind: infra, Reason: "a query finds a document, and its address does not: a replica lags, or it is being moved",
			Source: ours, Own: offeredAgain(),
		},
		{
			Code: commit.CodeIDTwice, Kind: fault.Document, About: "a document that is read or submitted",
			Reason: "documents under several partition keys have this id", Source: "docs/requirements.md R10", Own: left(),
		},
		{Code: "projection", Kind: fault.Internal, Reason: "an outcome is to be recorded in a document that was not read whole", Source: ours, Own: left()},
		{Code: "unreadable", Kind: infra, About: "the control document", Reason: "it is not what an instance of the app writes", Source: ours, Own: ownCopy()},
		{Code: "row", Kind: infra, Reason: "the answer to a query has a malformed row", Source: ours, Own: offeredAgain()},
		{
			Code: "continuation", Kind: fault.Document, About: "a search",
			Reason: "it cannot continue: the continuation is unknown to the service, or belongs to another query",
			Source: "azure-cosmos-dotnet-v3 issue 3416",
			Own:    fault.Consequence{Spends: fault.Nothing, Next: "the search begins again; a run skips the documents that it has already"},
		},
		{Code: "marshal", Kind: fault.Internal, Reason: "what is to be recorded cannot be written as JSON", Source: ours, Own: left()},
		{Code: "window", Kind: fault.Internal, Reason: "there is no such window", Source: ours},
		{Code: "settings", Kind: infra, Reason: "the settings of the connection cannot be used", Source: ours, Own: fault.AtStart()},
		{Code: "unclassified", Kind: fault.Internal, Reason: "no rule matches the error", Source: ours},
	}
}

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

// codes names the rule's codes in docs/errors.md.
func (r statusRule) codes() string {
	switch {
	case r.from != r.to:
		return strconv.Itoa(r.from) + "-" + strconv.Itoa(r.to)
	case r.substatus == noSubstatus:
		return strconv.Itoa(r.from)
	}
	return strconv.Itoa(r.from) + "/" + r.substatus
}

// covers reports whether the rule applies to a code, which is a status or status/substatus.
func (r statusRule) covers(code string) bool {
	text, sub, found := strings.Cut(code, "/")
	if !found {
		sub = noSubstatus
	}
	status, err := strconv.Atoi(text)
	return err == nil && r.from <= status && status <= r.to && (r.substatus == anySubstatus || r.substatus == sub)
}

// sourceName gives the full name of a source.
func (r statusRule) sourceName() string {
	if r.source == "rest" {
		return `REST reference, "HTTP status codes for Azure Cosmos DB"`
	}
	return r.source
}

// own is the consequence of an answer. It overrides the table of kinds, whose consequences apply to SQL.
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
			Next:   "after the wait that the account asks for, 3 times, each at most 2 s; then the host offers the batch again every 10 s, 20 times at most, and the recovery timer takes what is left; the breaker does not count it",
		}
	}
	return offeredAgain()
}

// offeredAgain is the consequence of an error of the service. The breaker ignores it, because it protects SQL only.
func offeredAgain() fault.Consequence {
	return fault.Consequence{Spends: fault.Nothing, Next: "the host offers the batch again every 10 s, 20 times at most, and the recovery timer takes what is left; the breaker does not count it"}
}

// left is the consequence when an outcome cannot be recorded.
func left() fault.Consequence {
	return fault.Consequence{Spends: fault.Nothing, Next: "an error line; the document is left to the recovery timer"}
}

// ownCopy is the consequence when the control document cannot be read.
func ownCopy() fault.Consequence {
	return fault.Consequence{Spends: fault.Nothing, Next: "each instance uses its own copy and logs that, until the control document can be read"}
}
