package ops

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/reconcile"
)

// LineReleaseRequest asks to release a line.
type LineReleaseRequest struct {
	// Line is the id of a detail row.
	Line int64 `json:"line"`
	// OverwriteEdits writes over a person's edit, and over what cannot be compared with what was written.
	OverwriteEdits bool `json:"overwrite_edits,omitempty"`
	// DryRun shows the columns before and after, and changes nothing.
	DryRun bool   `json:"dry_run,omitempty"`
	Why    string `json:"why,omitempty"`
}

// ReleaseLine writes the newest committed document that names a line to it, although the line has content of a newer
// document: one that is gone, or does not name the line any more. It is a run of the rewriting kind for this document,
// which this process executes. A line that was written meanwhile is left alone. Errors as StartRun; conflict also when
// the line is not such a one, or needs OverwriteEdits.
func (o *Ops) ReleaseLine(ctx context.Context, r LineReleaseRequest) (Started, error) {
	p := runPlan{kind: o.o.Kinds.Rewriting(), dryRun: r.DryRun, why: r.Why, retry: true}
	if r.Line < 1 {
		return Started{}, refuse(Usage, "line: expected the id of a line, found %d", r.Line)
	}
	if r.OverwriteEdits {
		p.filter.OverwriteEdits = []int64{r.Line}
	}
	if err := o.mayStart(ctx, p); err != nil {
		return Started{}, err
	}
	var refused error
	err := o.release(ctx, &p, []int64{r.Line}, func(l reconcile.Left) bool {
		refused = releasable(l, r)
		return refused == nil
	})
	if err = cmp.Or(err, refused); err != nil {
		return Started{}, err
	}
	started, err := o.start(ctx, p)
	if err != nil || r.DryRun {
		return started, err
	}
	left, err := o.left(ctx, []int64{r.Line})
	if err == nil && left[0].Rule.Class == reconcile.NotNamed {
		started.Note = joinNotes(started.Note,
			fmt.Sprintf("line %d is not released: `run items %s` has the outcome", r.Line, started.Run))
	}
	return started, nil
}

// releasable returns why a line is not released; nil when it is.
func releasable(l reconcile.Left, r LineReleaseRequest) error {
	switch newest := l.Newest; {
	case l.Rule.Class == reconcile.NoDocument:
		return refuse(Conflict, "no committed document names line %d: there is nothing to write to it", r.Line)
	case l.Rule.Class != reconcile.NotNamed:
		return refuse(Conflict,
			"line %d needs no release: no document has it, or the one that has it names it, waits or failed", r.Line)
	case l.NeedsWord() && !r.OverwriteEdits:
		return refuse(Conflict,
			"line %d was edited by a person, or nobody can tell: --overwrite-edits writes over it, and with --dry-run shows the columns",
			r.Line)
	case newest.State.Outcome == invoice.OutcomeManual && len(newest.Duplicates) > 0:
		return refuse(Conflict,
			"a person repaired the lines of %q by hand, and a rewrite takes all of them: repair line %d by hand, too",
			newest.ID, r.Line)
	}
	return nil
}

// release adds releases to a plan: of those lines that may be released, with the documents that get them.
func (o *Ops) release(ctx context.Context, p *runPlan, lines []int64, may func(reconcile.Left) bool) error {
	left, err := o.left(ctx, lines)
	if err != nil {
		return err
	}
	for _, l := range left {
		if !may(l) || l.Rule.Class != reconcile.NotNamed {
			continue
		}
		if p.lines == nil {
			p.lines = map[int64]bool{}
		}
		p.lines[l.Line.ID] = true
		p.filter.Releases = append(p.filter.Releases, l.Release())
		p.filter.IDs = append(p.filter.IDs, l.Newest.ID)
	}
	p.filter.IDs = slices.Compact(slices.Sorted(slices.Values(p.filter.IDs)))
	return nil
}

// left looks at lines as a comparison does, each with the document that its ledger row names. The lines are read first,
// so a release loses to whatever is written since. Errors by kind: infrastructure, throttled, quota, contention.
func (o *Ops) left(ctx context.Context, ids []int64) (all []reconcile.Left, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	c := reconcile.Circumstances{SysName: o.o.SysName, Reader: o.o.Reader, Now: o.o.Now()}
	var lines []reconcile.Line
	err = o.stores(ctx, func(ctx context.Context, s Stores) error {
		if c.AdoptedAt, err = s.Findings.AdoptedAt(ctx); err == nil {
			lines, err = s.Rows.Lines(ctx, ids)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	for some := range slices.Chunk(lines, maxRead) {
		docs, err := o.holders(ctx, some)
		if err != nil {
			return nil, err
		}
		for _, line := range some {
			l, _, err := c.Left(ctx, o.p.Finder, line, docs[line.Ledger.DocumentID])
			if err != nil {
				return nil, err
			}
			all = append(all, l)
		}
	}
	return all, nil
}

// holders reads the documents that the ledger names for lines, by id. One that is gone is missing.
func (o *Ops) holders(ctx context.Context, lines []reconcile.Line) (map[string]invoice.Document, error) {
	var ids []string
	for _, line := range lines {
		if id := line.Ledger.DocumentID; id != "" {
			ids = append(ids, id)
		}
	}
	raws, err := o.p.Documents.ReadMany(ctx, ids)
	if err != nil {
		return nil, err
	}
	docs := map[string]invoice.Document{}
	for _, raw := range raws {
		doc, err := o.o.Reader.Read(raw, o.o.Now())
		if err != nil {
			return nil, err
		}
		docs[doc.ID] = doc
	}
	return docs, nil
}
