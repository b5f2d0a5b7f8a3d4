package commit

import (
	"context"
	"errors"
	"maps"
	"slices"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// Shadow looks at what Commit would do, and at what the old writer did, and writes nothing anywhere: no row, no ledger, no
// patch. It is for comparing the two before one takes the other's place, and needs no adopted ledger.
//
// Outcomes of its Report, beside those of Commit that lead to no work:
//
//	would_be_applied, _unchanged, _superseded   a document that waits would be committed so
//	would_be_retry_scheduled, _failed           it has an error of its own
//	matches                                     the old writer committed it, and its lines hold what we would write
//	differs                                     they do not; the log and Report.Columns say in which columns
//	holds_newer                                 its lines hold a newer result: nothing to compare
//	missing                                     the old writer committed it, and a line has no row
//	refused                                     the old writer committed it, and our rules refuse it
type Shadow struct{ c *Commit }

// NewShadow makes a Shadow over the two ports. Documents.Record and every mode of the sink but Preview stay unused.
func NewShadow(docs Documents, sink Sink, o Options) *Shadow {
	return &Shadow{c: NewCommit(docs, sink, o)}
}

// mostShown is how many documents of one batch the log names: a mapping that differs, differs in every document.
const mostShown = 20

// Run looks at one batch. The error is of dependency scope: the same batch should be offered again.
func (s *Shadow) Run(ctx context.Context, b Batch) (Report, error) {
	p := &shadowPass{pass: s.c.begin(ctx, b, Preview)}
	p.report.Shadow, p.report.Columns = true, map[string]int{}
	docs, err := p.reread(ctx, p.read(b.Documents))
	if err == nil {
		err = p.lookAt(ctx, docs)
	}
	if err != nil {
		p.countRest("waiting")
	}
	p.report.Lag = p.lag()
	return p.report, err
}

// shadowPass is one Run of a Shadow under way.
type shadowPass struct {
	*pass
	shown int
}

// reread reads what the host may have re-printed, and everything of a batch that is offered again. What is gone is done.
func (p *shadowPass) reread(ctx context.Context, docs []invoice.Document) ([]invoice.Document, error) {
	var ids []string
	needed := func(d invoice.Document) bool {
		return (d.RewrittenByHost || p.batch.RetryCount > 0) && d.SysName == p.c.o.SysName
	}
	for _, d := range docs {
		if needed(d) {
			ids = append(ids, d.ID)
		}
	}
	if len(ids) == 0 {
		return docs, nil
	}
	fresh, err := p.readMany(ctx, ids)
	if err != nil {
		return docs, err
	}
	kept := docs[:0]
	for _, d := range docs {
		if needed(d) {
			now, found := fresh[d.ID]
			if !found {
				p.count(d.ID, "gone", "")
				continue
			}
			d = now
		}
		kept = append(kept, d)
	}
	return kept, nil
}

// lookAt previews the documents that the old writer has committed, and then those that wait, in requests of bounded size:
// apart, because what waits is in no row yet.
func (p *shadowPass) lookAt(ctx context.Context, docs []invoice.Document) error {
	var committed, waiting []invoice.Document
	for _, d := range docs {
		switch turn := d.Eligibility(p.c.o.Now(), p.c.o.SysName); {
		case turn == invoice.Done && d.State.Status == invoice.Committed:
			committed = append(committed, d)
		case turn == invoice.Eligible:
			waiting = append(waiting, d)
		default:
			p.count(d.ID, "skipped", "")
		}
	}
	if err := p.preview(ctx, committed); err != nil {
		return err
	}
	return p.preview(ctx, waiting)
}

// preview asks the sink about documents and tells what it answers.
func (p *shadowPass) preview(ctx context.Context, docs []invoice.Document) error {
	var items []Item
	var asked []invoice.Document
	for _, d := range docs {
		if d.Problem != nil {
			p.tell(d, result{err: d.Problem})
			continue
		}
		items, asked = append(items, ItemOf(d)), append(asked, d)
	}
	if len(items) == 0 {
		return nil
	}
	results, done, err := p.apply(ctx, items)
	for i, d := range asked {
		if done[i] {
			p.tell(d, results[i])
		}
	}
	return err
}

// tell counts one document, and names it where somebody should look at it.
func (p *shadowPass) tell(d invoice.Document, r result) {
	if d.State.Status == invoice.Committed {
		p.compare(d, r)
		return
	}
	if !r.failed() {
		p.count(d.ID, "would_be_"+string(r.outcome.Verdict), "")
		return
	}
	next := invoice.RetryScheduled
	if p.t.exhausted(d.State, r.err, true) {
		next = invoice.Failed
	}
	p.count(d.ID, "would_be_"+string(next), fault.KindOf(r.err))
}

// compare puts what the lines of a committed document hold beside what we would write.
func (p *shadowPass) compare(d invoice.Document, r result) {
	if r.failed() {
		outcome := "refused"
		if fault.Has(r.err, fault.MissingRow) {
			outcome = "missing"
		}
		p.count(d.ID, outcome, fault.KindOf(r.err))
		p.show(d, outcome, nil, r.err)
		return
	}
	columns, held := difference(d, r.outcome)
	switch {
	case len(columns) > 0:
		p.count(d.ID, "differs", "")
		for _, name := range columns {
			p.report.Columns[name]++
		}
		p.show(d, "differs", columns, nil)
	case held == 0:
		p.count(d.ID, "holds_newer", "")
	default:
		p.count(d.ID, "matches", "")
	}
}

// show names a document in the log, with columns and codes and never with a value.
func (p *shadowPass) show(d invoice.Document, outcome string, columns []string, err error) {
	if p.shown++; p.shown > mostShown {
		return
	}
	event := p.c.o.Log.Warn().Str("document", d.ID).Str("outcome", outcome)
	if columns != nil {
		event.Strs("columns", columns)
	}
	if err != nil {
		event.Str("code", fault.CodeOf(err))
		var invalid *invoice.Invalid
		if errors.As(err, &invalid) {
			event.Str("reason", invalid.Safe())
		}
	}
	event.Msg("shadow: the old writer's rows are not what this product would write")
}

// difference lists the columns in which lines hold something else than the document says, and counts the lines that hold
// it: those that hold a newer result do not.
func difference(d invoice.Document, o Outcome) (columns []string, held int) {
	all := invoice.Columns()
	found := map[string]bool{}
	for _, row := range o.Rows {
		says := invoice.RowValues(d.Values, d.Main, row.DetailID)
		if row.Verdict == Superseded || holdsNewer(all, says, row.Before) {
			continue
		}
		held++
		for i, c := range all {
			if says[i] != row.Before[i] {
				found[string(c.Table)+"."+c.Name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found)), held
}

// holdsNewer reports whether a line says itself that its result was asked for later than this one. The canonical texts of
// times sort by time.
func holdsNewer(all []invoice.Column, says, before []invoice.Value) bool {
	for i, c := range all {
		if c.Source == invoice.FromRequestTime && !says[i].Null && !before[i].Null && before[i].Text > says[i].Text {
			return true
		}
	}
	return false
}
