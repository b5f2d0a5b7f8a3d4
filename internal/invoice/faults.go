package invoice

import "sqlwriter/internal/fault"

// Faults is the table of validation codes, for people: what Invalid and Read answer. Cases of each stand in docs/rules.md.
func Faults() []fault.Row {
	const (
		whole  = "the document as a whole"
		noID   = "a document without an id"
		member = "a value"
	)
	unrecorded := fault.Consequence{Spends: fault.Nothing, Next: "an error line and nothing else: there is no id to record anything by"}
	rows := []fault.Row{
		{Code: "not_json", Condition: fault.Unreadable, About: noID, Reason: "the document is not JSON", Own: unrecorded},
		{Code: "not_an_object", Condition: fault.Unreadable, About: noID, Reason: "the document is JSON, and no object", Own: unrecorded},
		{Code: "no_id", Condition: fault.Unreadable, About: noID, Reason: "the document has no id that can be used", Own: unrecorded},
		{Code: "id_characters", Condition: fault.Unreadable, About: noID, Reason: "the service cannot address a document with such an id", Own: unrecorded},
		{Code: "not_an_object", Condition: fault.Unreadable, About: whole, Reason: "process_output or what holds the line ids is no object"},
		{Code: "not_a_list", Condition: fault.Unreadable, About: whole, Reason: "the ids of the duplicates are no list"},
		{Code: "id", Condition: fault.Unreadable, About: whole, Reason: "a line's id is no whole number above 0"},
		{Code: "inexact_id", Condition: fault.Unreadable, About: whole, Reason: "a line's id is a number that JSON writers round: it must be sent as text"},
		{Code: "future", Reason: "the document's time is more than an hour ahead"},
		{Code: "not_an_object", About: member, Reason: "what should hold the value is no object"},
		{Code: "required", Reason: "a value that must be there is not"},
		{Code: "wrong_type", Reason: "the value has another JSON type than its column wants"},
		{Code: "too_long", Reason: "the text is longer than its column"},
		{Code: "nul", Reason: "the text holds U+0000"},
		{Code: "unicode", Reason: "the text is not valid Unicode"},
		{Code: "not_allowed", Reason: "the value is none of those that its column lists"},
		{Code: "not_a_number", Reason: "the value is no number"},
		{Code: "out_of_range", Reason: "the number does not fit its column"},
		{Code: "not_whole", Reason: "the number is not whole"},
		{Code: "inexact", Reason: "the number has more digits than JSON writers keep: it must be sent as text"},
		{Code: "flag", Reason: "the value is neither yes nor no"},
		{Code: flawTime, Reason: "the value is no time"},
		{Code: flawDate, Reason: "there is no such day or hour"},
		{Code: flawOffset, Reason: "the time has no offset"},
		{Code: "kind", Reason: "a column has a kind that this build does not know"},
	}
	for i := range rows {
		rows[i].Code = codePrefix + rows[i].Code
		rows[i].Kind, rows[i].Source = fault.Document, "docs/rules.md"
	}
	return fault.Of("writer", rows)
}

// codePrefix stands in front of every code of a refused member.
const codePrefix = "validation."
