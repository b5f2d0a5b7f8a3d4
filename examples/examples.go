// Package examples has documents by name, one for every way a result can end. Each is a file that can be submitted by
// hand (`sqlwriterctl document submit examples/01-plain-success.json`). All lists the expected results. README.md is
// the same list for people; a test compares the two.
package examples

import (
	"embed"
	"encoding/json"
	"fmt"
	"slices"
)

//go:embed *.json
var files embed.FS //nolint:gochecknoglobals // embedded files can only be a package variable; nothing writes to it

// Example is one document and its expected result.
type Example struct {
	// File is its file in this folder.
	File string
	// After is the file that must be finished before this one is submitted; may be empty.
	After string
	// Status and Outcome are the final members of sql_writer, of the last document with this id. Both are empty for a
	// document that stays unchanged.
	Status, Outcome string
	// Kind is the expected sql_writer.last_error_kind; empty for a committed document.
	Kind string
	// MissingLines are line ids in the document without a detail row.
	MissingLines []int64
	// Shows says in one line what the example shows.
	Shows string
}

// JSON is the document as its file has it.
func (e Example) JSON() (json.RawMessage, error) {
	b, err := files.ReadFile(e.File)
	if err != nil {
		return nil, fmt.Errorf("examples: %w", err)
	}
	return b, nil
}

// Lines are the ids of the document's lines that need a row of IVCE_DTL, those that are missing on purpose left out.
func (e Example) Lines() ([]int64, error) {
	raw, err := e.JSON()
	if err != nil {
		return nil, err
	}
	var d struct {
		Detail struct {
			Main *int64 `json:"IVCE_DTL_UID"`
		} `json:"invoice_details_from_rpa"`
		Post struct {
			Duplicates []int64 `json:"duplicate_detail_uids"`
		} `json:"post-processing"`
	}
	if err := json.Unmarshal(raw, &d); err != nil {
		return nil, fmt.Errorf("examples: %s: %w", e.File, err)
	}
	lines := d.Post.Duplicates
	if d.Detail.Main != nil {
		lines = append([]int64{*d.Detail.Main}, lines...)
	}
	return slices.DeleteFunc(lines, func(l int64) bool { return slices.Contains(e.MissingLines, l) }), nil
}

// Lines are the lines of all examples, each once.
func Lines() (all []int64, err error) {
	for _, e := range All() {
		lines, err := e.Lines()
		if err != nil {
			return nil, err
		}
		all = append(all, lines...)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// All returns the examples in a valid order of submission, which is that of their names.
func All() []Example {
	const committed, applied = "committed", "applied"
	return []Example{
		{File: "01-plain-success.json", Status: committed, Outcome: applied, Shows: "the ordinary case"},
		{
			File: "02-duplicates.json", After: "01-plain-success.json", Status: committed, Outcome: applied,
			Shows: "a main line and three duplicates, newer than what 01 wrote to the same line",
		},
		{
			File: "03-unicode-and-quotes.json", Status: committed, Outcome: "unchanged",
			Shows: "any character arrives as it was sent; its outcome is the one of 07, which is the same document again",
		},
		{
			File: "04-null-and-absent.json", Status: committed, Outcome: applied,
			Shows: "null and absent become NULL, over whatever the row said before; an empty text stays an empty text",
		},
		{File: "05-newer-result.json", Status: committed, Outcome: applied, Shows: "a line's newest result"},
		{
			File: "06-stale-result.json", After: "05-newer-result.json", Status: committed, Outcome: "superseded",
			Shows: "an older result for the line of 05 arrives late: nothing is written",
		},
		{
			File: "07-redelivered.json", After: "03-unicode-and-quotes.json", Status: committed, Outcome: "unchanged",
			Shows: "03 once more, same id and content: nothing is written",
		},
		{
			File: "08-unreadable.json", Status: "retry_scheduled", Kind: "document",
			Shows: "no line id and no result in it: it fails for good at its second failure, if others got through between",
		},
		{
			File: "09-value-too-long.json", Status: "retry_scheduled", Kind: "document",
			Shows: "a part number of 103 characters where 100 fit: the document's own error",
		},
		{
			File: "10-missing-detail-row.json", Status: "retry_scheduled", Kind: "document",
			MissingLines: []int64{9999901},
			Shows:        "a duplicate without a detail row: no line of the document is written, the main one neither",
		},
		{File: "11-other-environment.json", Shows: "another sys_name: another environment's document, left alone"},
		{File: "12-already-committed.json", Shows: "committed by the old writer: left alone"},
		{File: "13-no-sql-writer.json", Shows: "no sql_writer member: never offered, left alone"},
		{
			File: "14-id-without-time.json", Status: committed, Outcome: applied,
			Shows: "an id without a time: the version is taken from _ts and recorded before the write",
		},
		{
			File: "15-iso-looking-part-number.json", Status: committed, Outcome: applied,
			Shows: "the host re-prints strings that look like ISO times; the part number arrives as it was sent all the same",
		},
		{
			File: "16-confidence-rounding.json", Status: committed, Outcome: applied,
			Shows: "confidences with more digits than the column: 0.12345 is 0.1235, 0.99995 is 1.0000, 9.4994e-1 is 0.9499",
		},
		{
			File: "17-ai-error.json", Status: committed, Outcome: applied,
			Shows: "line status AI_ERROR is written as AI-ERROR, to the duplicate too",
		},
		{
			File: "18-later-instant.json", Status: committed, Outcome: applied,
			Shows: "09:00-06:00 is later than the 11:00+02:00 of 19",
		},
		{
			File: "19-earlier-instant.json", After: "18-later-instant.json", Status: committed, Outcome: "superseded",
			Shows: "an older instant with a later wall clock: instants are compared, not texts",
		},
	}
}
