package commit

import (
	"context"
	"maps"
	"slices"

	"sqlwriter/internal/events"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// Shadow compares the work of Commit with that of the old writer, and writes nothing: no row, no ledger, no patch. It
// is for the time before the switch, and needs no adopted ledger.
//
// Its Report has the outcomes below, and those of Commit that need no work.
type Shadow struct{ c *Commit }

// The outcomes of a shadow. invoice.OutcomeMissing: the old writer committed it, and a line has no row.
const (
	// wouldBe precedes the outcome that a pending document would get: applied, unchanged, superseded, or, with an error
	// of its own, retry_scheduled or failed.
	wouldBe invoice.Outcome = "would_be_"
	// matches: the old writer committed it, and its lines have its content. differs: they have other content; the log
	// and Report.Columns name the columns. newer: they have a newer result, so there is nothing to compare.
	matches invoice.Outcome = "matches"
	differs invoice.Outcome = "differs"
	newer   invoice.Outcome = "holds_newer"
	// cannotTell: they have other content, and a request time of the hour that the clocks have twice.
	cannotTell invoice.Outcome = "cannot_tell"
	// refused: the old writer committed it, and this product's rules refuse it.
	refused invoice.Outcome = "refused"
)

// NewShadow makes a Shadow over the two ports. It uses the sink only with Preview, and never Documents.Record.
func NewShadow(docs Documents, sink Sink, o Options) *Shadow {
	return &Shadow{c: NewCommit(docs, sink, o)}
}

// mostShown bounds the documents of one batch in the log: a wrong mapping differs in every document.
const mostShown = 20

// Run previews one batch. Errors by kind: those of dependency scope; the same batch should be offered again.
func (s *Shadow) Run(ctx context.Context, in Delivery) (Report, error) {
	t := s.c.stages(ctx, in, Preview)
	p := &shadowRun{stages: t, report: &t.tally.report}
	p.report.Shadow, p.report.Columns = true, map[string]int{}
	docs, oldest := t.parser.parse(in.Documents)
	docs, err := p.reread(ctx, docs)
	if err == nil {
		err = p.previewAll(ctx, docs)
	}
	if err != nil {
		t.tally.rest(invoice.OutcomeWaiting)
	}
	return t.tally.done(oldest), err
}

// shadowRun is the state of one Shadow.Run.
type shadowRun struct {
	*stages
	report *Report
	shown  int
}

// reread reads the documents that the host may have rewritten, and those of a repeated batch. Documents that are gone
// are done.
func (p *shadowRun) reread(ctx context.Context, docs []invoice.Snapshot) ([]invoice.Snapshot, error) {
	var ids []string
	needed := func(d invoice.Snapshot) bool {
		return (d.RewrittenByHost || p.delivery.RetryCount > 0) && d.SysName == p.c.o.SysName
	}
	for _, d := range docs {
		if needed(d) {
			ids = append(ids, d.ID)
		}
	}
	if len(ids) == 0 {
		return docs, nil
	}
	fresh, err := p.refresh.readMany(ctx, ids)
	if err != nil {
		return docs, err
	}
	kept := docs[:0]
	for _, d := range docs {
		if needed(d) {
			now, found := fresh[d.Identity()]
			if !found {
				p.tally.count(d.ID, invoice.OutcomeGone, "")
				continue
			}
			d = now
		}
		kept = append(kept, d)
	}
	return kept, nil
}

// previewAll previews the documents that the old writer committed, and then the pending ones. They go into separate
// requests, because the content of pending documents is in no row yet.
func (p *shadowRun) previewAll(ctx context.Context, docs []invoice.Snapshot) error {
	var committed, pending []invoice.Snapshot
	for _, d := range docs {
		switch eligibility := d.Eligibility(p.c.o.Now(), p.c.o.SysName); {
		case eligibility == invoice.Done && d.State.Status == invoice.Committed:
			committed = append(committed, d)
		case eligibility == invoice.Eligible:
			pending = append(pending, d)
		default:
			p.tally.count(d.ID, invoice.OutcomeSkipped, "")
		}
	}
	for _, all := range [][]invoice.Snapshot{committed, pending} {
		refuseTwins(all, func(d *invoice.Snapshot) *invoice.Snapshot { return d })
	}
	if err := p.send(ctx, committed); err != nil {
		return err
	}
	return p.send(ctx, pending)
}

// send sends documents to the sink as a Preview and counts the results.
func (p *shadowRun) send(ctx context.Context, docs []invoice.Snapshot) error {
	var items []Item
	var asked []invoice.Snapshot
	for _, d := range docs {
		if d.Problem != nil {
			p.countPreview(d, result{err: d.Problem})
			continue
		}
		items, asked = append(items, ItemOf(d.Document)), append(asked, d)
	}
	if len(items) == 0 {
		return nil
	}
	results, done, err := p.writer.apply(ctx, items)
	for i, d := range asked {
		if done[i] {
			p.countPreview(d, results[i])
		}
	}
	return err
}

// countPreview counts one document, and logs a difference.
func (p *shadowRun) countPreview(d invoice.Snapshot, r result) {
	if d.State.Status == invoice.Committed {
		p.compare(d, r)
		return
	}
	if !r.failed() {
		p.tally.count(d.ID, wouldBe+r.outcome.Verdict, "")
		return
	}
	next := invoice.OutcomeRetryScheduled
	if isOwn(r.err) && usedUp(p.judge.transitions.begin(d.State), r.err) {
		next = invoice.OutcomeFailed
	}
	p.tally.count(d.ID, wouldBe+next, fault.KindOf(r.err))
}

// compare compares the lines of a committed document with its content.
func (p *shadowRun) compare(d invoice.Snapshot, r result) {
	if r.failed() {
		outcome := refused
		if fault.Has(r.err, fault.MissingRow) {
			outcome = invoice.OutcomeMissing
		}
		p.tally.count(d.ID, outcome, fault.KindOf(r.err))
		p.show(d, outcome, nil, r.err)
		return
	}
	columns, held, unsure := difference(d.Mapping, r.outcome)
	switch {
	case len(columns) > 0:
		p.tally.count(d.ID, differs, "")
		for _, name := range columns {
			p.report.Columns[name]++
		}
		p.show(d, differs, columns, nil)
	case unsure > 0:
		p.tally.count(d.ID, cannotTell, "")
	case held == 0:
		p.tally.count(d.ID, newer, "")
	default:
		p.tally.count(d.ID, matches, "")
	}
}

// show logs a document with columns and codes, never with a value.
func (p *shadowRun) show(d invoice.Snapshot, outcome invoice.Outcome, columns []string, err error) {
	if p.shown++; p.shown > mostShown {
		return
	}
	p.tally.log.Write(events.ShadowDiffers,
		events.Fields{Document: d.ID, Outcome: string(outcome), DiffersIn: columns}.Of(err))
}

// difference lists the columns in which lines differ from the document, and counts the compared lines. Lines with a
// newer result are not compared. unsure counts those that differ and whose result may be a newer one.
func difference(m *invoice.Mapping, o DocumentOutcome) (columns []string, held, unsure int) {
	all := m.Columns()
	found := map[string]bool{}
	for _, row := range o.Rows {
		if row.Verdict == invoice.OutcomeSuperseded {
			continue
		}
		newer, known := holdsNewer(all, row.Want, row.Before)
		if newer && known {
			continue
		}
		if !known && !slices.Equal(row.Want, row.Before) {
			unsure++
			continue
		}
		held++
		for i, c := range all {
			if row.Want[i] != row.Before[i] {
				found[string(c.Table)+"."+c.Name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found)), held, unsure
}

// holdsNewer reports whether a line's own request time is later than this document's, and whether that is known: a
// local time of the hour that comes twice decides no order. A mapping without a request time knows no newer line.
func holdsNewer(all []invoice.Column, says, before []invoice.Value) (newer, known bool) {
	for i, c := range all {
		if c.Source != invoice.FromRequestTime || says[i].Null || before[i].Null {
			continue
		}
		ours, oursAtLast := c.Span(says[i])
		first, last := c.Span(before[i])
		if last.After(ours) {
			return true, first.After(oursAtLast)
		}
	}
	return false, true
}
