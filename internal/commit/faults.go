package commit

import (
	"sqlwriter/internal/breaker"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// Faults gives the table of this product's own codes for docs/errors.md: those of the use cases, of their requests, and
// of the process. Validation codes are in invoice.Faults.
func Faults() []fault.Row {
	var rows []fault.Row
	for _, part := range [][]fault.Row{breakerRows(), documentRows(), processRows(), commandRows()} {
		rows = append(rows, part...)
	}
	return fault.Of("writer", rows)
}

// breakerRows are the codes of the breaker.
func breakerRows() []fault.Row {
	const infra, section = fault.Infrastructure, "ADR 0018"
	waits := fault.Consequence{
		Spends: fault.Nothing,
		Next:   "when the breaker permits work; `status` says why it stopped and when the next probe is",
	}
	goneBack := fault.Consequence{
		Spends: fault.Nothing,
		Next: "nothing is written and no retry is spent: the breaker opens at once, Health is not ready; " +
			"it ends by itself when the database before is back (a probe a minute), or when an operator accepts this one: `sqlwriterctl flow resume --force --why TEXT`; `status` then names the run that writes again what it lacks (docs/runbook.md)",
	}
	return []fault.Row{
		{
			Code: breaker.CodeOpen, Kind: infra, Condition: fault.Waits,
			Reason: "the breaker is open: nothing is sent to SQL; its own kind and code say why",
			Source: section, Own: waits,
		},
		{
			Code: breaker.CodePaused, Kind: infra, Condition: fault.Waits, Reason: "an operator paused the flow",
			Source: section,
			Own:    fault.Consequence{Spends: fault.Nothing, Next: "after an operator's resume"},
		},
		{
			Code: breaker.CodeWentBack, Kind: infra, Source: "ADR 0029", Own: goneBack,
			Reason: "the database's heartbeat is lower than the control document knows: a copy that was restored, or a replica that had not caught up",
		},
		{
			Code: breaker.CodeOtherDatabase, Kind: infra, Source: "ADR 0029", Own: goneBack,
			Reason: "the database's heartbeat has another id than the control document knows, or is not there: another database, or one from before it was taken over",
		},
		{
			Code: breaker.CodeControl, Kind: infra,
			Reason: "the control document is not available, so other instances would not see the change",
			Source: section, Own: fault.OfACommand(),
		},
	}
}

// documentRows are the codes of single documents.
func documentRows() []fault.Row {
	const infra, race, adr18 = fault.Infrastructure, fault.Contention, "ADR 0018"
	left := fault.Consequence{Spends: fault.Nothing, Next: "an error line; the document is left to the recovery timer"}
	again := fault.Consequence{
		Spends: fault.Nothing, Next: "the host offers the batch again every 10 s; the breaker does not count it",
	}
	return []fault.Row{
		{
			Code: "missing_detail_row", Kind: fault.Document, Condition: fault.MissingRow,
			Reason: "a line has no row in IVCE_DTL: nothing of the document is written",
			Source: "docs/requirements.md R3",
		},
		{
			Code: "value", Kind: fault.Document,
			Reason: "a value does not have its column's type and did not come from a document",
			Source: "docs/requirements.md R55",
		},
		{
			Code: "412", Kind: race, About: "a document that changes all the time",
			Reason: "it changed before each try to record its outcome or version",
			Source: "docs/requirements.md R18", Own: left,
		},
		{
			Code: "412", Kind: race, About: "the control document", Reason: "it changed before each try to write it",
			Source: "docs/requirements.md R46", Own: fault.OfACommand(),
		},
		{
			Code: CodeFailsAlone, Kind: fault.Internal, Source: adr18,
			Reason: "the request failed like an outage three times when this document was sent alone, while the database answered others",
		},
		{
			Code: codeUndecided, Kind: race, Source: adr18,
			Reason: "it shared a request with documents that cannot be written, and the time for finding those was over",
			Own:    fault.Consequence{Spends: fault.Nothing, Next: "the recovery timer tries it again after 120 s"},
		},
		{
			Code: codeCutOff, Kind: infra, Source: adr18, Reason: "this instance alone cannot reach SQL",
			Own: fault.Consequence{Spends: fault.Nothing, Next: "at once, by the recovery timer of another instance"},
		},
		{
			Code: "clock_went_back", Kind: race,
			Reason: "the ledger knows a later _ts of the same document: the container's clock went back",
			Source: "ADR 0008",
		},
		{
			Code: "not_caught_up", Kind: infra,
			Reason: "a read shows less of a document than the change feed did: a replica lags",
			Source: "ADR 0008", Own: again,
		},
		{Code: "cancelled", Kind: infra, Reason: "stopped while waiting for another try", Source: "ours", Own: again},
		{
			Code: "evidence_down", Kind: infra,
			Reason: "the store of evidence failed a moment ago and is not asked for every document",
			Source: "docs/requirements.md R8",
			Own: fault.Consequence{
				Spends: fault.Nothing,
				Next:   "the poison message waits: the document stays retry_scheduled and nothing is marked; the recovery timer tries again",
			},
		},
		{
			Code: invoice.CodeTooDeep, Kind: fault.Document, Source: "docs/facts.md F45",
			Reason: "the document has 64 levels or more: the change feed stops at it, and brings nothing behind it in its range",
			Own: fault.Consequence{
				Spends: fault.Nothing,
				Next: "the recovery timer commits it, and what is behind it, 10 to 15 min late; " +
					"the feed goes on when a flat version is put or the document is deleted (docs/runbook.md)",
			},
		},
		{
			Code: CodeIDTwice, Kind: fault.Document, Source: "docs/requirements.md R10",
			Reason: "several documents have this id, each under another partition key: none of them is written until one is left",
			Own: fault.Consequence{
				Spends: fault.OneRetry,
				Next:   "after 2 to 32 min, then once an hour; it is never given up. Delete all but one: `sqlwriterctl document why ID` names the keys",
			},
		},
		{
			Code: "row", Kind: infra, Reason: "the answer to a search has a malformed document", Source: "ours",
			Own: fault.Consequence{Spends: fault.Nothing, Next: "the recovery timer or the operator searches again"},
		},
		{
			Code: "id_looks_like_time", Kind: fault.Document,
			Reason: "no document has this id, which the host may have rewritten", Source: "docs/facts.md F7", Own: left,
		},
	}
}

// processRows are the codes of the app and its host.
func processRows() []fault.Row {
	const infra, own, ours = fault.Infrastructure, fault.Internal, "ours"
	start := fault.AtStart()
	answered := fault.Consequence{
		Spends: fault.Nothing, Next: "an error line and 2xx; the documents stay as they are, for the recovery timer",
	}
	offered := fault.Consequence{Spends: fault.Nothing, Next: "the host offers the batch again every 10 s"}
	return []fault.Row{
		{
			Code: "settings", Kind: infra, Reason: "the settings cannot be used; Health lists every one",
			Source: ours, Own: start,
		},
		{
			Code: "starting", Kind: infra, Reason: "the dependencies are not open yet; Health says which",
			Source: ours, Own: start,
		},
		{
			Code: "shadow", Kind: infra, Reason: "a shadow takes no messages of runs", Source: "ADR 0025",
			Own: fault.Consequence{
				Spends: fault.Nothing, Next: "the message is put off, or held as long as its lock is renewed",
			},
		},
		{
			Code: "ledger_not_adopted", Kind: infra,
			Reason: "the ledger does not know what was written before: docs/cutover.md",
			Source: "docs/requirements.md R59", Own: start,
		},
		{
			Code: "payload", Kind: fault.Document, Reason: "the payload of the host is not a batch",
			Source: "docs/requirements.md R31", Own: answered,
		},
		{Code: "panic", Kind: own, Reason: "a bug stopped the work", Source: "docs/requirements.md R32"},
		{Code: "body", Kind: infra, Reason: "the request of the host was cut off", Source: ours, Own: offered},
		{
			Code: "deadline", Kind: infra, Reason: "the invocation's own time was over",
			Source: "docs/requirements.md R95", Own: offered,
		},
		{Code: "unclassified", Kind: own, Reason: "an error that no table names", Source: "docs/requirements.md R32"},
		{
			Code: fault.CodeBug, Kind: own,
			Reason: "the program broke one of its own contracts; the words of the error name it",
			Source: "the contracts of the ports (ports.go)",
		},
	}
}

// commandRows are the codes of operators' commands.
func commandRows() []fault.Row {
	const own, runs = fault.Internal, "the contract of Store (internal/run/ports.go)"
	command := fault.OfACommand()
	return []fault.Row{
		{
			Code: "adoption_moved", Kind: fault.Contention, Condition: fault.Changed,
			Reason: "another adoption runs at the same time", Source: "docs/cutover.md", Own: command,
		},
		{
			Code: "still_written", Kind: fault.Contention, Condition: fault.Changed,
			Source: "docs/cutover.md", Own: command,
			Reason: "documents were finished while the adoption ran: stop the old writer, and adopt again",
		},
		{Code: "run_exists", Kind: own, Reason: "a run with this id exists", Source: runs, Own: command},
		{
			Code: "counts", Kind: own,
			Reason: "the stored counts of a run are not valid: only this run cannot be shown",
			Source: runs, Own: command,
		},
		{
			Code: "changed", Kind: fault.Contention, Condition: fault.Changed, Source: runs, Own: command,
			Reason: "a change of a run or a batch came too late: another worker has it, or its status does not allow the change",
		},
		{
			Code: "no_report", Kind: own, Reason: "there is no report of this name",
			Source: "the contract of Reports (internal/run/ports.go)", Own: command,
		},
	}
}
