package servicebus

import (
	"strings"

	"sqlwriter/internal/fault"
)

// Faults is the table of errors, for people: AMQP conditions, the SDK's codes, and the words of our own. Rows come in the
// order in which they are tried: the first one that fits decides.
func Faults() []fault.Row {
	var rows []fault.Row
	for _, r := range rules() {
		row := fault.Row{Code: r.code, Kind: r.kind, Reason: r.reason, Source: r.sourceName(), Own: sentAgain()}
		if r.kind == fault.Document {
			row.About, row.Own = "one message", isOurs()
		}
		if len(rows) > 0 && rows[len(rows)-1].Code == row.Code {
			continue // one meaning in two types of the SDK
		}
		rows = append(rows, row)
	}
	return fault.Of("servicebus", append(rows, wordRows()...))
}

// wordRows are the codes of our own.
func wordRows() []fault.Row {
	return []fault.Row{
		{Code: "message_id", Kind: fault.Internal, About: "one message", Reason: "a message's id is empty or too long", Source: "docs/facts.md F56", Own: isOurs()},
		{Code: "settings", Kind: fault.Infrastructure, Reason: "the settings of the connection cannot be used", Source: "ours", Own: fault.AtStart()},
		{Code: "unclassified", Kind: fault.Internal, Reason: "the table of errors has no last row", Source: "ours", Own: isOurs()},
	}
}

// sourceName writes a source of the table out.
func (r rule) sourceName() string {
	switch {
	case r.source == "amqp":
		return `the page "AMQP errors in Azure Service Bus"`
	case r.source == "sdk":
		return "azservicebus, documentation of Code"
	case strings.HasPrefix(r.source, "facts"):
		return r.source
	case strings.HasPrefix(r.source, "design"):
		return r.source
	}
	return r.source
}

// sentAgain follows when messages cannot be sent: their batches are in the database.
func sentAgain() fault.Consequence {
	return fault.Consequence{Spends: fault.Nothing, Next: "the batches become pending_retry; the recovery timer sends their messages again"}
}

// isOurs follows when a message cannot be sent as it is, which no message of ours should meet.
func isOurs() fault.Consequence {
	return fault.Consequence{Spends: fault.Nothing, Next: "the batch is failed after 3 tries to send its message, with an error line; it is ours to mend"}
}
