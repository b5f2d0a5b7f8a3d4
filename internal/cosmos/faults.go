package cosmos

import (
	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
)

// Faults gives the table of errors for docs/errors.md.
func Faults() []fault.Row { return service().Faults() }

// answers are the rows for the service's statuses; the first match decides. "404" is the status without a substatus
// (x-ms-substatus), "404/*" with any.
func answers() []fault.Row {
	const (
		infra = fault.Infrastructure
		rest  = `REST reference, "HTTP status codes for Azure Cosmos DB"`
		moved = "docs/facts.md F70"
	)
	rows := []fault.Row{
		{
			Code: "400/*", About: onDocument, Kind: fault.Document,
			Reason: "the service does not accept this document or patch", Source: rest,
		},
		{
			Code: "400/*", Kind: infra,
			Reason: "the service does not accept our request; no document is to blame (1004: a query that the gateway cannot serve)", Source: "docs/facts.md F63",
		},
		{
			Code: "401/*", Kind: infra,
			Reason: "the key or token is not accepted, or this machine's clock is off", Source: rest,
		},
		{
			Code: "403/3", Kind: infra,
			Reason: "writes moved to another region and the move outlasted our deadline", Source: moved,
		},
		{
			Code: "403/1008", Kind: infra,
			Reason: "the region does not know the account, and this outlasted our deadline", Source: moved,
		},
		{
			Code: codeNoRole, Kind: infra,
			Reason: "the identity has no role for documents in the database", Source: "azure-cosmos-dotnet-v3 issue 3110",
		},
		{
			Code: "403/*", Kind: infra,
			Reason: "not allowed: role of the identity, firewall or network rule of the account", Source: rest,
		},
		{
			Code: "404", About: onDocument, Kind: fault.Document, Condition: fault.Gone,
			Reason: "no such document", Source: rest,
		},
		{Code: "404/1002", Kind: infra, Reason: "the region has not caught up with the session", Source: moved},
		{
			Code: "404/1003", Kind: infra, Reason: "the database or container does not exist",
			Source: "SDK constants (OwnerResourceNotFound)",
		},
		{Code: "404/*", Kind: infra, Reason: "the account, database or container is not there", Source: rest},
		{Code: "408/*", Kind: infra, Reason: "the service took too long; a write may have been applied", Source: moved},
		{
			Code: "409/*", About: onDocument, Kind: fault.Document, Reason: "a document with this id exists",
			Source: rest, Own: fault.OfACommand(),
		},
		{Code: "410/*", Kind: infra, Reason: "the partition moved or is being divided", Source: moved},
		{
			Code: "412/*", About: onDocument, Kind: fault.Contention, Condition: fault.Changed,
			Reason: "the document is not the one that was read", Source: "docs/facts.md F67",
		},
		{
			Code: "413/*", About: onDocument, Kind: fault.Document, Condition: fault.TooLarge,
			Reason: "the document would be larger than the service allows (2 MB)", Source: "docs/facts.md F68",
		},
		{
			Code: "429/*", Kind: fault.Throttled,
			Reason: "the account asks to slow down (3200: request units used up)", Source: moved,
		},
		{
			Code: "449/*", Kind: fault.Contention,
			Reason: "another write of the same document was under way", Source: moved,
		},
		{Code: "500-599", Kind: infra, Reason: "the service failed; a write may have been applied", Source: moved},
		{
			Code: "400-499", About: onDocument, Kind: fault.Document,
			Reason: "the service refused this document with a status we do not know",
			Source: "docs/requirements.md R34",
		},
		{
			Code: "100-999", Kind: infra, Reason: "the service answered with a status we do not know",
			Source: "docs/requirements.md R34", Rest: true,
		},
	}
	for i, r := range rows {
		if r.Condition == fault.NoCondition && r.Own == (fault.Consequence{}) {
			rows[i].Own = own(r.Kind)
		}
	}
	return rows
}

// ownRows are this package's own codes.
func ownRows() []fault.Row {
	const infra, ours = fault.Infrastructure, "ours"
	submitted := "a document that is submitted"
	return []fault.Row{
		{
			Code: "id", Kind: fault.Document, Condition: fault.Gone, About: "one document",
			Reason: "no document can have such an id", Source: `REST reference, "Resource.Id"`,
		},
		{
			Code: "id", Kind: fault.Document, About: submitted,
			Reason: "the document has no id that the service accepts", Source: `REST reference, "Resource.Id"`,
			Own: fault.OfACommand(),
		},
		{
			Code: "json", Kind: fault.Document, About: submitted, Reason: "the text is not a JSON object with an id",
			Source: ours, Own: fault.OfACommand(),
		},
		{
			Code: CodePartitionKey, Kind: fault.Document, About: "the document of `doctor --send`",
			Reason: "no document of doctor can have the partition key of the container",
			Source: "docs/requirements.md R14", Own: fault.OfACommand(),
		},
		{
			Code: "no_etag", Kind: fault.Contention, Condition: fault.Changed, About: "an etag that is empty or *",
			Reason: "the etag names no version of a document", Source: ours,
		},
		{
			Code: "no_etag", Kind: infra, Reason: "the service did not give the etag of the document",
			Source: ours, Own: offeredAgain(),
		},
		{
			Code: CodePartitionKey, Kind: infra,
			Reason: "a container's partition key cannot be used; the text says why, and what mends it",
			Source: "docs/requirements.md R10", Own: offeredAgain(),
		},
		{
			Code: "not_caught_up", Kind: infra,
			Reason: "a query finds a document, and its address does not: a replica lags, or it is being moved",
			Source: ours, Own: offeredAgain(),
		},
		{
			Code: commit.CodeIDTwice, Kind: fault.Document, About: "a document that is read or submitted",
			Reason: "documents under several partition keys have this id",
			Source: "docs/requirements.md R10", Own: left(),
		},
		{
			Code: "unreadable", Kind: infra, About: "the control document",
			Reason: "it is not what an instance of the app writes", Source: ours, Own: ownCopy(),
		},
		{
			Code: "continuation", Kind: fault.Document, About: "a search",
			Reason: "it cannot continue: the continuation is unknown to the service, or belongs to another query",
			Source: "azure-cosmos-dotnet-v3 issue 3416",
			Own: fault.Consequence{
				Spends: fault.Nothing, Next: "the search begins again; a run skips the documents that it has already",
			},
		},
		{
			Code: "settings", Kind: infra, Reason: "the settings of the connection cannot be used",
			Source: ours, Own: fault.AtStart(),
		},
	}
}

// own is the consequence of an answer of a kind. It overrides the table of kinds, whose consequences apply to SQL.
func own(kind fault.Kind) fault.Consequence {
	switch kind { //nolint:exhaustive // the service gives no others
	case fault.Document:
		return left()
	case fault.Contention:
		return fault.Consequence{
			Spends: fault.Nothing, Next: "at once, 3 times with jitter; then it is left to the recovery timer",
		}
	case fault.Throttled:
		return fault.Consequence{
			Spends: fault.Nothing,
			Next:   "after the wait that the account asks for, 3 times, each at most 2 s; then the host offers the batch again every 10 s; the 21st time leaves the rest to the recovery timer; a batch of a run is deferred; the breaker does not count it",
		}
	}
	return offeredAgain()
}

// offeredAgain is the consequence of an error of the service. The breaker ignores it, because it protects SQL only.
func offeredAgain() fault.Consequence {
	return fault.Consequence{
		Spends: fault.Nothing,
		Next:   "the host offers the batch again every 10 s; the 21st time leaves the rest to the recovery timer; a batch of a run is deferred; the breaker does not count it",
	}
}

// left is the consequence when an outcome cannot be recorded.
func left() fault.Consequence {
	return fault.Consequence{Spends: fault.Nothing, Next: "an error line; the document is left to the recovery timer"}
}

// ownCopy is the consequence when the control document cannot be read.
func ownCopy() fault.Consequence {
	return fault.Consequence{
		Spends: fault.Nothing,
		Next:   "each instance uses its own copy and logs that, until the control document can be read",
	}
}
