package reconcile

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/run"
)

// Comparison is a row of the table comparison: what is compared, how far it is, and what it counted.
type Comparison struct {
	// ID is a night's date, or a name that nobody had: 1 to 64 visible ASCII characters, unique in the environment.
	ID string `json:"id"`
	// IDs are the documents to compare, and nothing else; none means what changed since the last comparison began.
	// Whole means everything. It may name 1,000 documents, so only Next returns it.
	IDs   []string `json:"-"`
	Whole bool     `json:"whole,omitempty"`
	// Night: the timer began it, so it mends.
	Night bool   `json:"night,omitempty"`
	By    string `json:"by"`
	Why   string `json:"why"`
	// Step counts its steps. A step is saved only by whoever read the number before.
	Step int `json:"step"`
	// Position is where it goes on, opaque to the store.
	Position string `json:"-"`
	// Counts are what it compared, by class.
	Counts map[Class]int `json:"counts"`
	// Error is why it failed; empty if it did not.
	Error string `json:"error,omitempty"`
	// Ended: it is over. A save with Ended sets EndedAt.
	Ended bool `json:"-"`
	// The times are by the database's clock, in UTC; MovedAt is that of its last step.
	BegunAt time.Time `json:"begun_at"`
	MovedAt time.Time `json:"moved_at"`
	EndedAt time.Time `json:"ended_at,omitzero"`
	// ReadAt is when Next or Last read it.
	ReadAt time.Time `json:"-"`
}

// Audit is the entry of the audit log about its begin.
func (c Comparison) Audit() run.Audit {
	// texts and numbers
	detail, _ := json.Marshal(map[string]any{"comparison": c.ID, "whole": c.Whole, "documents": len(c.IDs)})
	return run.Audit{Action: run.CodeCompare, Level: run.LevelInfo, By: c.By, Why: c.Why, Detail: detail}
}

// Unkept counts n findings of a class that have no row, because the class has MaxFindings of them. Those that ask for
// nobody may stay many; of others, the comparison must not be the last.
func (c *Comparison) Unkept(class Class, n int) {
	if n == 0 {
		return
	}
	c.Counts = maps.Collect(maps.All(c.Counts))
	if c.Counts[class] += n; class.Asks() {
		c.Counts[Unlisted] += n
	}
}

// Progress says how far it is, for people: what it compares, and how much it has compared.
func (c Comparison) Progress() string {
	at, err := readPosition(c.Position)
	if err != nil {
		return "its position cannot be read"
	}
	n := 0
	for class, counted := range c.Counts {
		if !class.again() {
			n += counted
		}
	}
	says := fmt.Sprintf("%s, %d lines and documents compared", cmp.Or(at.Pass, passes()[0].name), n)
	if at.After != 0 {
		says += fmt.Sprintf(", the ledger up to line %d", at.After)
	}
	return says
}

// Versions counts the lines that are NotComparable because of their HashVersion, by it.
func (c Comparison) Versions() map[int]int {
	lines := map[int]int{}
	for class, n := range c.Counts {
		_, text, _ := strings.Cut(string(class), string(NotComparable)+"/")
		if version, err := strconv.Atoi(text); err == nil {
			lines[version] = n
		}
	}
	return lines
}

// names reports whether it compares the documents that it names, and nothing else.
func (c Comparison) names() bool { return len(c.IDs) > 0 }

// position is where a comparison goes on, as JSON, a few kilobytes at most. Each pass uses some of its members.
type position struct {
	Pass string `json:"pass,omitempty"`
	// After is the last id of the ledger that was read.
	After int64 `json:"after,omitempty"`
	// Continuation is the next page of documents, Index the next of the documents that the comparison names.
	Continuation string `json:"continuation,omitempty"`
	Index        int    `json:"index,omitempty"`
	// From and To bound _ts. They stay the same, because a continuation belongs to its query.
	From int64 `json:"from,omitempty"`
	To   int64 `json:"to,omitempty"`
	// Counted is what the pass counted so far, to take it back when the continuation is lost; Again is how often that
	// was.
	Counted map[Class]int `json:"counted,omitempty"`
	Again   int           `json:"again,omitempty"`
	// Key is the last finding that was looked at again. Looked is when the first look was over, by the database's
	// clock, in seconds since 1970.
	Key    *Key  `json:"key,omitempty"`
	Looked int64 `json:"looked,omitempty"`
}

func readPosition(text string) (position, error) {
	var p position
	if text == "" {
		return p, nil
	}
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return p,
			fault.Wrap(fault.Internal, "reconcile: position", "position",
				"the position of the comparison is not valid JSON", err)
	}
	return p, nil
}

func (p position) String() string {
	text, err := json.Marshal(p) //nolint:gosec // a pass is not a secret
	if err != nil {
		// cannot happen: it is texts and numbers
		panic("reconcile: a position cannot be written as JSON: " + err.Error())
	}
	return string(text)
}
