package run

import "sqlwriter/internal/fault"

// Faults is the table of this package's codes, for operators.
func Faults() []fault.Row {
	const own, document, source = fault.Internal, fault.Document, "docs/requirements.md R77"
	aside := fault.Consequence{
		Spends: fault.Nothing, Next: "the message is handled as a dead letter: evidence, audit log, completed",
	}
	given := fault.Consequence{
		Spends: fault.Nothing,
		Next:   "the run is failed at once and its error says why; after the cause is fixed, `run resume` continues at the watermark",
	}
	purged := fault.Consequence{
		Spends: fault.Nothing,
		Next:   "the run is failed at once and its error says why; a run without --run takes what has failed",
	}
	batch := fault.Consequence{
		Spends: fault.Nothing,
		Next:   "the batch is failed, with an error line; after the cause is fixed, `batch requeue` sends it again",
	}
	return fault.Of("run", []fault.Row{
		{
			Code: "not_json", Kind: document, Reason: "a message's body is neither JSON nor base64 of it",
			Source: source, Own: aside,
		},
		{
			Code: "version", Kind: document, Reason: "a message has a version that this build does not know, or none",
			Source: source, Own: aside,
		},
		{
			Code: "kind", Kind: document, Reason: "a message of one queue arrived on the other",
			Source: source, Own: aside,
		},
		{
			Code: "member", Kind: document, Reason: "a member of a message is missing or of another type",
			Source: source, Own: aside,
		},
		{
			Code: "too_large", Kind: document,
			Reason: "a message's body is longer than 64 KiB; our own have about 300 bytes", Source: source, Own: aside,
		},
		{
			Code: "environment", Kind: document, Reason: "a message is of another environment",
			Source: "docs/requirements.md R14", Own: aside,
		},
		{
			Code: "no_batch", Kind: document, Reason: "a message is about a batch that has no row",
			Source: "ADR 0025", Own: aside,
		},
		{
			Code: "no_run", Kind: document, Reason: "a message is about a run that has no row",
			Source: "ADR 0025", Own: aside,
		},
		{
			Code: "panic", Kind: own, Reason: "the program panicked in a batch",
			Source: "docs/requirements.md R32", Own: batch,
		},
		{
			Code: "lost_workers", Kind: own, Reason: "ten workers were lost with one batch, which may be the cause",
			Source: "ADR 0025", Own: batch,
		},
		{
			Code: "lost_managers", Kind: own,
			Reason: "ten managers of one run were lost in a row without handing off a batch; the run may be the cause",
			Source: "ADR 0025", Own: given,
		},
		{
			Code: "run_kind", Kind: own, Reason: "a run has a kind that this build does not know",
			Source: "the table of kinds (internal/run/kinds.go)", Own: given,
		},
		{
			Code: "watermark", Kind: own, Reason: "a run's watermark cannot be read",
			Source: "the contract of Store (internal/run/ports.go)", Own: given,
		},
		{
			Code: "run_purged", Kind: own, Reason: "a run takes what another run left, and retention deleted that one",
			Source: "the contract of Retention (internal/reconcile/ports.go)", Own: purged,
		},
		{
			Code: "filter", Kind: own, Reason: "a run's filter cannot be read",
			Source: "the contract of Store (internal/run/ports.go)", Own: given,
		},
		{
			Code: "run_id", Kind: own, Reason: "the id of a run is not valid",
			Source: "the contract of Store (internal/run/ports.go)", Own: fault.OfACommand(),
		},
	})
}
