package commit

import (
	"slices"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

const opSink = "commit: sink"

// Line is the line at a position: 0 is the main line, the duplicates follow in their order.
func (i Item) Line(position int) int64 {
	if position == 0 {
		return i.Main
	}
	return i.Duplicates[position-1]
}

// Overwrites reports whether an operator named the line.
func (i Item) Overwrites(line int64) bool { return slices.Contains(i.Overwrite, line) }

// Released reports whether the item has a release of the line.
func (i Item) Released(line int64) bool {
	return slices.ContainsFunc(i.Releases, func(r Release) bool {
		return r.Line == line && r.Document == i.DocumentID
	})
}

// CheckRequest validates a request against the contract of Sink before anything is sent. A violation is a bug of the
// caller. m is the mapping of the statements. Errors by kind: internal, code "bug".
func CheckRequest(m *invoice.Mapping, items []Item, mode Mode) error {
	switch mode {
	case Write, Rewrite, Preview:
	default:
		return fault.New(fault.Internal, opSink, fault.CodeBug, "expected write, rewrite or preview, found %q", mode)
	}
	columns := len(m.Columns())
	lines := map[int64]struct{}{}
	for _, it := range items {
		if !it.FailureMark && len(it.Values) != columns {
			return fault.New(fault.Internal, opSink, fault.CodeBug,
				"document %s: expected %d values, one for each column of the mapping, found %d", it.DocumentID,
				columns, len(it.Values))
		}
		clear(lines)
		for position := range it.Rows() {
			line := it.Line(position)
			if _, ok := lines[line]; ok {
				return fault.New(fault.Internal, opSink, fault.CodeBug,
					"document %s: expected every line once, found %d twice", it.DocumentID, line)
			}
			lines[line] = struct{}{}
		}
	}
	return nil
}

// LineVerdict is a database's verdict on one line of one item.
type LineVerdict struct {
	// Item is the index in the request, and Position the line's position in the item.
	Item, Position int
	Verdict        invoice.Outcome
	// Winner is true when this item has the line's newest content.
	Winner bool
	// By and Version name the document whose content a superseded line has; By is empty otherwise.
	By      string
	Version invoice.Version
}

// OutcomeBuilder makes the outcomes of a request from the verdicts on its lines, for sinks that are databases.
type OutcomeBuilder struct {
	mapping  *invoice.Mapping
	items    []Item
	outcomes []DocumentOutcome
	// newest is the version of each outcome's SupersededBy.
	newest []invoice.Version
	// wins maps each written line to the item that wrote it.
	wins map[int64]int
}

// NewOutcomeBuilder makes an OutcomeBuilder without verdicts. m is the mapping of the statements.
func NewOutcomeBuilder(m *invoice.Mapping, items []Item) *OutcomeBuilder {
	b := &OutcomeBuilder{
		mapping: m, items: items, outcomes: make([]DocumentOutcome, len(items)),
		newest: make([]invoice.Version, len(items)), wins: map[int64]int{},
	}
	for i, it := range items {
		b.outcomes[i].Rows = make([]RowOutcome, 0, it.Rows())
	}
	return b
}

// Add adds one verdict. The lines of an item must come in their order.
func (b *OutcomeBuilder) Add(v LineVerdict) {
	o, line := &b.outcomes[v.Item], b.items[v.Item].Line(v.Position)
	if v.Winner && v.Verdict == invoice.OutcomeApplied {
		b.wins[line] = v.Item
	}
	o.Rows = append(o.Rows, RowOutcome{DetailID: line, Verdict: v.Verdict, By: v.By})
	if v.By != "" && (o.SupersededBy == "" || b.newest[v.Item].Compare(v.Version) < 0) {
		o.SupersededBy, b.newest[v.Item] = v.By, v.Version
	}
}

// AllApplied adds the verdict Applied for every line of the request.
func (b *OutcomeBuilder) AllApplied() {
	for i, it := range b.items {
		for position := range it.Rows() {
			b.Add(LineVerdict{Item: i, Position: position, Verdict: invoice.OutcomeApplied, Winner: true})
		}
	}
}

// Written counts the lines that the request writes: those with content, and failure marks.
func (b *OutcomeBuilder) Written() (content, marks int64) {
	for _, i := range b.wins {
		if b.items[i].FailureMark {
			marks++
		} else {
			content++
		}
	}
	return content, marks
}

// Outcomes gives one outcome per item. Errors by kind: internal, code "bug", when a line has no verdict.
func (b *OutcomeBuilder) Outcomes() ([]DocumentOutcome, error) {
	for i, it := range b.items {
		o := &b.outcomes[i]
		if len(o.Rows) != it.Rows() {
			return nil, fault.New(fault.Internal, opSink, fault.CodeBug,
				"document %s: expected %d verdicts, found %d", it.DocumentID, it.Rows(), len(o.Rows))
		}
		o.DocumentID, o.Verdict = it.DocumentID, draw(it, o.Rows)
	}
	return b.outcomes, nil
}

// Present sets the values of a preview. Those of before are of the lines now, aligned with the mapping's columns; a
// line without a detail row is absent. stored is what the user's columns make of a row's values; nil changes nothing.
func (b *OutcomeBuilder) Present(before map[int64][]invoice.Value, stored func(row []invoice.Value) []invoice.Value) {
	if stored == nil {
		stored = func(row []invoice.Value) []invoice.Value { return row }
	}
	for i := range b.outcomes {
		for j := range b.outcomes[i].Rows {
			row := &b.outcomes[i].Rows[j]
			now, ok := before[row.DetailID]
			if !ok {
				continue
			}
			row.Before = stored(now)
			row.After, row.Want = row.Before, b.leaves(b.items[i], row.DetailID, row.Before, stored)
			if winner, ok := b.wins[row.DetailID]; ok {
				row.After = b.leaves(b.items[winner], row.DetailID, row.Before, stored)
			}
		}
	}
}

// leaves gives the values of a line after a write of the item.
func (b *OutcomeBuilder) leaves(
	it Item, line int64, before []invoice.Value, stored func([]invoice.Value) []invoice.Value,
) []invoice.Value {
	columns, after := b.mapping.Columns(), slices.Clone(before)
	if !it.FailureMark {
		after = slices.Clone(stored(b.mapping.RowValues(it.Values, it.Main, line)))
	}
	for i, c := range columns {
		switch {
		case !it.FailureMark && c.Keep && after[i].Null:
			after[i] = before[i]
		case it.FailureMark && c.Status && c.Table == invoice.Detail:
			after[i] = invoice.Of(invoice.StatusAIError)
		}
	}
	return after
}

// draw derives a document's verdict from those on its lines, as Outcome defines. A mark is missing when all its lines
// are.
func draw(it Item, rows []RowOutcome) invoice.Outcome {
	n := map[invoice.Outcome]int{}
	for _, r := range rows {
		n[r.Verdict]++
	}
	switch {
	case n[invoice.OutcomeMissing] > 0 && (!it.FailureMark || n[invoice.OutcomeMissing] == len(rows)):
		return invoice.OutcomeMissing
	case n[invoice.OutcomeEdited] > 0:
		return invoice.OutcomeEdited
	case n[invoice.OutcomeNotComparable] > 0:
		return invoice.OutcomeNotComparable
	case n[invoice.OutcomeApplied] > 0:
		return invoice.OutcomeApplied
	case n[invoice.OutcomeUnchanged] > 0:
		return invoice.OutcomeUnchanged
	default:
		return invoice.OutcomeSuperseded
	}
}
