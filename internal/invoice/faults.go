package invoice

import "sqlwriter/internal/fault"

// Faults is the table of validation codes, of Invalid and Reader. docs/rules.md has cases of each.
func Faults() []fault.Row {
	const (
		whole  = "the document as a whole"
		noID   = "a document without an id"
		member = "a value"
	)
	unrecorded := fault.Consequence{
		Spends: fault.Nothing, Next: "an error line only: without an id nothing can be recorded",
	}
	rows := []fault.Row{
		{
			Code: "not_json", Condition: fault.Unreadable, About: noID,
			Reason: "the document is not JSON", Own: unrecorded,
		},
		{
			Code: "not_an_object", Condition: fault.Unreadable, About: noID,
			Reason: "the document is JSON, but not an object", Own: unrecorded,
		},
		{
			Code: "no_id", Condition: fault.Unreadable, About: noID,
			Reason: "the document has no usable id", Own: unrecorded,
		},
		{
			Code: "id_characters", Condition: fault.Unreadable, About: noID,
			Reason: "the service cannot address a document with such an id", Own: unrecorded,
		},
		{
			Code: "not_an_object", Condition: fault.Unreadable, About: whole,
			Reason: "process_output or what holds the line ids is not an object",
		},
		{
			Code: "not_a_list", Condition: fault.Unreadable, About: whole,
			Reason: "the ids of the duplicates are not a list",
		},
		{Code: "id", Condition: fault.Unreadable, About: whole, Reason: "a line's id is not a whole number above 0"},
		{
			Code: "inexact_id", Condition: fault.Unreadable, About: whole,
			Reason: "a line's id is a number that JSON writers round: it must be sent as text",
		},
		{Code: "future", Reason: "the document's time is more than an hour ahead"},
		{Code: "not_an_object", About: member, Reason: "what should hold the value is not an object"},
		{Code: "required", Reason: "a required value is missing"},
		{Code: "wrong_type", Reason: "the value has the wrong JSON type for its column"},
		{Code: "too_long", Reason: "the text is longer than its column"},
		{Code: "nul", Reason: "the text holds U+0000"},
		{Code: "unicode", Reason: "the text is not valid Unicode"},
		{Code: "not_allowed", Reason: "the value is not one of the column's allowed values"},
		{Code: "not_a_number", Reason: "the value is not a number"},
		{Code: "out_of_range", Reason: "the number does not fit its column"},
		{Code: "not_whole", Reason: "the number is not whole"},
		{Code: "inexact", Reason: "the number has more digits than JSON writers keep: it must be sent as text"},
		{Code: "flag", Reason: "the value is not a flag"},
		{Code: flawTime, Reason: "the value is not a time"},
		{Code: flawDate, Reason: "the day or hour does not exist"},
		{Code: flawOffset, Reason: "the time has no offset"},
		{Code: "kind", Reason: "the column's kind is unknown to this build"},
	}
	for i := range rows {
		rows[i].Code = codePrefix + rows[i].Code
		rows[i].Kind, rows[i].Source = fault.Document, "docs/rules.md"
	}
	return fault.Of("writer", rows)
}

// codePrefix is the prefix of every code of a refused member.
const codePrefix = "validation."
