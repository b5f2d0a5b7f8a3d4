package reconcile

import (
	"context"
	"fmt"
	"slices"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// A document may stop naming a line: its duplicates shrink, its key is corrected, or it is deleted. The line keeps its
// content, and the guard lets no older document write over that. Such a line is left, and is looked at with the newest
// committed document that names it.
//
// No index of the ledger has the document, because it would cost each write (docs/adr/0021-poison-messages.md). So the
// pass over the ledger looks at lines whose document changed since the last comparison, and the pass over documents
// looks at lines that a newer document has. A deleted document changed in no list: the second way alone finds it.

// Left is a line that the document in its ledger row does not name, or whose document is gone.
type Left struct {
	Line Line
	// Newest is the newest committed document that names the line; the zero document if there is none.
	Newest invoice.Document
	// Rule is the row of the table. Its class is Consistent where nothing is left.
	Rule Rule
}

// Left judges a line with the document that its ledger row names; the zero document stands for one that is gone. Both
// must be read after the line: a release that is made of it then loses to whatever is written since. charge is in
// request units. Errors as commit.Finder; internal, code "impossible_cell".
func (c Circumstances) Left(
	ctx context.Context, finder commit.Finder, line Line, doc invoice.Document,
) (left Left, charge float64, err error) {
	left = Left{Line: line, Rule: Rule{Class: Consistent}}
	state := c.leftState(line, doc)
	if state == LedgerNone {
		return left, 0, nil
	}
	q := commit.Query{
		SysName: c.SysName, Line: line.ID, To: c.Now.Add(invoice.ClockSkew).Unix(),
		Members: c.Reader.Mapping.Members(), Size: commit.MaxPage,
	}
	err = find(ctx, finder, q, func(page commit.Page) (bool, error) {
		charge += page.Charge
		for _, raw := range page.Documents {
			d, err := c.Reader.Read(raw, c.Now)
			if err == nil && slices.Contains(append(sent(), byHand()...), c.DocState(d)) && names(d, line.ID) &&
				(left.Newest.ID == "" || d.Version.Compare(left.Newest.Version) > 0) {
				left.Newest = d
			}
		}
		return true, nil
	})
	if err != nil || left.Newest.Version.Compare(line.Ledger.Version) > 0 { // a newer one is Stale
		return left, charge, err
	}
	left.Rule, err = Judge(SubjectLeft, Cell{Document: c.DocState(left.Newest), Ledger: state, Rows: line.Rows})
	return left, charge, err
}

// find calls visit with the pages of a query. A lost continuation is infrastructure: the next tick begins again.
func find(ctx context.Context, f commit.Finder, q commit.Query, visit func(commit.Page) (bool, error)) error {
	err := commit.Each(ctx, f, q, visit)
	if code := fault.CodeOf(err); code == "continuation" {
		return fault.Wrap(fault.Infrastructure, "reconcile: find", code, "the container dropped the search", err)
	}
	return err
}

// leftState is LedgerDropped or LedgerLost for a line that is left, otherwise LedgerNone.
func (c Circumstances) leftState(line Line, doc invoice.Document) LedgerState {
	if line.Ledger.Outcome == "" || line.Ledger.SysName != c.SysName {
		return LedgerNone
	}
	switch state := c.DocState(doc); {
	case doc.ID == "":
		return LedgerLost
	case state == DocOther || names(doc, line.ID):
		return LedgerNone
	case slices.Contains(sent(), state):
		return LedgerDropped
	}
	return LedgerLost
}

// names reports whether a line is one of a document.
func names(doc invoice.Document, line int64) bool {
	return doc.Main == line || slices.Contains(doc.Duplicates, line)
}

// NeedsWord reports whether a release must write over a person's work, so only an operator's word allows it: an edited
// line, one that cannot be compared, or a document whose lines a person repaired.
func (l Left) NeedsWord() bool {
	return l.Newest.State.Outcome == invoice.OutcomeManual ||
		!slices.Contains([]RowState{RowsSame, RowsReviewed, RowsNoTracking}, l.Line.Rows)
}

// Release lets the newest document take the line from the ledger row that was looked at.
func (l Left) Release() commit.Release {
	ledger := l.Line.Ledger
	return commit.Release{
		Line: l.Line.ID, Document: l.Newest.ID,
		Key: ledger.Version.Key, WriteID: ledger.WriteID, SourceTS: ledger.SourceTS,
	}
}

// judgeLeft judges a line with the document that its ledger row names.
func (l *look) judgeLeft(ctx context.Context, line Line, doc invoice.Document) (verdict, error) {
	left, charge, err := l.Left(ctx, l.p.Finder, line, doc)
	if err == nil {
		err = l.pace.Spend(ctx, charge)
	}
	if err != nil && fault.CodeOf(err) != codeImpossible {
		return verdict{}, err
	}
	key := Key{Line: line.ID, Document: line.Ledger.DocumentID}
	v := verdictOf(left.Rule, err, key, markOf(line, doc, left.Newest), func() string {
		switch why := "the ledger names a document that does not name the line"; {
		case left.Newest.ID == "":
			return why + ", and no committed document does"
		case doc.ID == "":
			return "the ledger names a document that is gone; the newest that names the line is " + left.Newest.ID
		default:
			return fmt.Sprintf("%s; the newest that does is %s, rows: %s", why, left.Newest.ID, line.Rows)
		}
	})
	v.newest = left.Newest
	return v, nil
}

// judgeAllLeft judges those lines that are left, each with the document that its ledger row names. Those whose document
// is gone are among them only if gone is true.
func (l *look) judgeAllLeft(ctx context.Context, ids []int64, gone bool) (all []verdict, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	lines, err := l.lines(ctx, ids)
	if err != nil {
		return nil, err
	}
	var documents []string
	for _, line := range lines {
		documents = append(documents, line.Ledger.DocumentID)
	}
	docs, err := l.read(ctx, slices.DeleteFunc(documents, func(id string) bool { return id == "" }))
	if err != nil {
		return nil, err
	}
	for _, line := range lines {
		doc := docs[line.Ledger.DocumentID]
		if l.leftState(line, doc) == LedgerNone || (doc.ID == "" && !gone) {
			continue
		}
		v, err := l.judgeLeft(ctx, line, doc)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}

// maxChanged bounds the documents that are remembered. With more changes each document of the ledger counts as
// changed.
const maxChanged = 100_000

// changes remembers which lines the documents name that changed since the comparison before.
type changes struct {
	comparison string
	// lines is nil where there are more documents than maxChanged.
	lines map[string][]int64
}

// droppedLines are those of the lines that their document may not name: it changed since the comparison before.
func (w *oneStep) droppedLines(ctx context.Context, documents map[string][]int64) (ids []int64, err error) {
	if w.changes.comparison != w.ID {
		if err := w.readChanges(ctx); err != nil {
			return nil, err
		}
	}
	for document, lines := range documents {
		named, changed := w.changes.lines[document]
		for _, line := range lines {
			if w.changes.lines == nil || (changed && !slices.Contains(named, line)) {
				ids = append(ids, line)
			}
		}
	}
	return ids, nil
}

func (w *oneStep) readChanges(ctx context.Context) error {
	from, err := w.since(ctx)
	if err != nil {
		return err
	}
	lines := map[string][]int64{}
	q := commit.Query{
		SysName: w.o.SysName, From: from, To: w.BegunAt.Unix(), Statuses: []invoice.Status{invoice.Committed},
		// whole, because no alias has a hyphen
		Members: []string{"id", "invoice_details_from_rpa.IVCE_DTL_UID", "post-processing"},
		Size:    commit.MaxPage,
	}
	err = find(ctx, w.p.Finder, q, func(page commit.Page) (bool, error) {
		for _, raw := range page.Documents {
			if doc, ok := w.document(raw); ok {
				lines[doc.ID] = linesOf([]invoice.Document{doc})
			}
		}
		return len(lines) <= maxChanged, w.pace.Spend(ctx, page.Charge)
	})
	if err != nil {
		return err
	}
	if len(lines) > maxChanged {
		lines = nil
	}
	*w.changes = changes{w.ID, lines}
	return nil
}
