package reconcile

import (
	"encoding/json"

	"sqlwriter/internal/fault"
)

// position is where a pass goes on: run.Stepped.Next as JSON, a few kilobytes at most. Each pass uses some of its members.
type position struct {
	// After is the last id of the ledger that was read.
	After int64 `json:"after,omitempty"`
	// Continuation is the next page of documents or evidence, Index the next of the documents that the run names.
	Continuation string `json:"continuation,omitempty"`
	Index        int    `json:"index,omitempty"`
	// From and To bound _ts. They stay the same, because a continuation belongs to its query.
	From int64 `json:"from,omitempty"`
	To   int64 `json:"to,omitempty"`
	// Counted is what the pass counted so far, to take it back when the continuation is lost; Again is how often that was.
	Counted map[Class]int `json:"counted,omitempty"`
	Again   int           `json:"again,omitempty"`
	// State and Key are the last finding that was looked at.
	State State `json:"state,omitempty"`
	Key   *Key  `json:"key,omitempty"`
	// Mending is one of the ways to mend, UpTo its last finding, Queued how many findings were queued before.
	Mending int  `json:"mending,omitempty"`
	UpTo    *Key `json:"up_to,omitempty"`
	Queued  int  `json:"queued,omitempty"`
}

func readPosition(text string) (position, error) {
	var p position
	if text == "" {
		return p, nil
	}
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return p, fault.Wrap(fault.Internal, "reconcile: position", "position", "the position of the pass is not valid JSON", err)
	}
	return p, nil
}

func (p position) String() string {
	text, err := json.Marshal(p)
	if err != nil {
		panic("reconcile: a position cannot be written as JSON: " + err.Error()) // cannot happen: it is texts and numbers
	}
	return string(text)
}
