package servicebus

import "sqlwriter/internal/fault"

// Faults gives the table of errors for docs/errors.md: AMQP conditions, the SDK's codes, and this package's own codes.
// Rows come in the order of the rules: the first match decides.
func Faults() []fault.Row {
	var rows []fault.Row
	for _, r := range rules() {
		row := fault.Row{Code: r.code, Kind: r.kind, Reason: r.reason, Source: r.sourceName(), Own: resent()}
		if r.kind == fault.Document {
			row.About, row.Own = "one message", isBug()
		}
		if len(rows) > 0 && rows[len(rows)-1].Code == row.Code {
			continue // one meaning in two types of the SDK
		}
		rows = append(rows, row)
	}
	return fault.Of("servicebus", append(rows, wordRows()...))
}

// wordRows are this package's own codes.
func wordRows() []fault.Row {
	return []fault.Row{
		{
			Code: "message_id", Kind: fault.Internal, About: "one message",
			Reason: "a message's id is empty or too long", Source: "docs/facts.md F56", Own: isBug(),
		},
		{
			Code: "settings", Kind: fault.Infrastructure, Reason: "the settings of the connection cannot be used",
			Source: "ours", Own: fault.AtStart(),
		},
		{Code: "unclassified", Kind: fault.Internal, Reason: "no rule matches the error", Source: "ours", Own: isBug()},
	}
}

// sourceName gives the full name of a source.
func (r rule) sourceName() string {
	switch r.source {
	case "amqp":
		return `the page "AMQP errors in Azure Service Bus"`
	case "sdk":
		return "azservicebus, documentation of Code"
	}
	return r.source
}

// resent is the consequence for messages that cannot be sent now. Their batches stay in the database.
func resent() fault.Consequence {
	return fault.Consequence{
		Spends: fault.Nothing, Next: "the batches become pending_retry; the recovery timer sends their messages again",
	}
}

// isBug is the consequence for a message that the service can never accept, which is a bug of this product.
func isBug() fault.Consequence {
	return fault.Consequence{
		Spends: fault.Nothing,
		Next:   "the batch is failed after 3 tries to send its message, with an error line; it is a bug of the SQL Writer",
	}
}
