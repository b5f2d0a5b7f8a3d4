// Package sample makes the documents of the local stack and of the end-to-end tests: the examples, and generated
// documents. The same seed gives the same bytes on every machine.
package sample

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"sqlwriter/examples"
	"sqlwriter/test/expect"
)

// Document is one result and its required final state.
type Document struct {
	// Name identifies the document in messages: an example's file name, or "generated 00017".
	Name string
	// ID is the id and partition key.
	ID string
	// JSON is the document as it is submitted.
	JSON json.RawMessage
	// After names the document that must be final before this one is submitted; empty if the order does not matter.
	After string
	// Want is the required final state.
	Want expect.Want
	// Lines are the ids of the lines that need a detail row. Lines that are missing on purpose are not among them.
	Lines []int64
}

// Examples returns the documents of the folder examples/ in an order in which they can be submitted. If two of them
// have one id, the later one is the same document submitted again.
func Examples() ([]Document, error) {
	all := examples.All()
	docs := make([]Document, 0, len(all))
	for _, e := range all {
		raw, err := e.JSON()
		if err != nil {
			return nil, err
		}
		d := Document{
			Name: e.File, JSON: raw, After: e.After, Want: expect.Want{Status: e.Status, Kind: e.Kind, Why: e.Shows},
		}
		if e.Outcome != "" {
			d.Want.Outcomes = []string{e.Outcome}
		}
		var of struct {
			ID string `json:"id"`
		}
		if err := json.Unmarshal(raw, &of); err != nil {
			return nil, fmt.Errorf("sample: %s: %w", e.File, err)
		}
		d.ID = of.ID
		if d.Lines, err = e.Lines(); err != nil {
			return nil, err
		}
		docs = append(docs, d)
	}
	return docs, nil
}

// Lines lists every line that needs a detail row, each once, in the order of the documents.
func Lines(docs []Document) []int64 {
	seen := map[int64]bool{}
	var lines []int64
	for _, d := range docs {
		for _, l := range d.Lines {
			if !seen[l] {
				seen[l] = true
				lines = append(lines, l)
			}
		}
	}
	return lines
}

// Input makes the input of expect.Compare. stored are all documents of the container by id. Documents that are not in
// docs have no required state, so only their rows are checked. The caller sets Before and Redelivered.
func Input(docs []Document, stored map[string]json.RawMessage) expect.Input {
	var in expect.Input
	at := map[string]int{}
	for _, d := range docs {
		e := expect.Document{Name: d.Name, ID: d.ID, Submitted: d.JSON, Stored: stored[d.ID], Want: &d.Want}
		if i, again := at[d.ID]; again {
			in.Documents[i] = e // the last document with an id counts
			continue
		}
		at[d.ID] = len(in.Documents)
		in.Documents = append(in.Documents, e)
	}
	for _, id := range slices.Sorted(maps.Keys(stored)) {
		if _, known := at[id]; !known {
			in.Documents = append(in.Documents, expect.Document{Name: id, ID: id, Stored: stored[id]})
		}
	}
	return in
}
