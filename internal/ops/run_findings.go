package ops

import (
	"context"
	"maps"
	"slices"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/reconcile"
	"sqlwriter/internal/run"
)

const (
	// findingsPage is how many findings are read at once.
	findingsPage = 1000
	// mendedANight bounds the findings that a night mends (docs/requirements.md R87).
	mendedANight = 1000
)

// resolveFindings makes the documents and lines of findings those of the plan. Lines that only an operator's word lets a rewrite write
// are named in its filter too. Errors: *RequestError (usage) when there are too many; those of reconcile.Findings.List.
func (o *Ops) resolveFindings(ctx context.Context, p *plan) error {
	return o.stores(ctx, func(ctx context.Context, s Stores) error {
		var all []reconcile.Finding
		for after := (*reconcile.Key)(nil); ; {
			found, err := s.Findings.List(ctx, reconcile.Query{Classes: p.findings}, after, findingsPage)
			if err != nil {
				return err
			}
			all = append(all, found...)
			if p.take(all); len(p.filter.IDs) > maxRunIDs || len(p.lines) > maxOverwritten {
				return refuse(Usage, "findings: those of %s name more than %d documents or lines: name fewer classes, or the documents with ids", joined(p.findings), maxRunIDs)
			}
			if len(found) < findingsPage {
				return nil
			}
			after = &found[len(found)-1].Key
		}
	})
}

// take makes the documents and lines of findings those of the plan.
func (p *plan) take(found []reconcile.Finding) {
	lines, overwrite, documents := map[int64]bool{}, map[int64]bool{}, map[string]bool{}
	for _, f := range found {
		documents[f.Document], lines[f.Line] = true, true
		if f.Overwrites() {
			overwrite[f.Line] = true
		}
	}
	p.lines, p.filter.IDs, p.filter.OverwriteEdits = lines, slices.Sorted(maps.Keys(documents)), slices.Sorted(maps.Keys(overwrite))
}

// MendFindings starts the run that writes again what a comparison found and nobody edited, 1,000 findings at most: what an operator starts
// by classes of findings, but for the lines that only his word lets it overwrite. Its id is made of the comparison's, so a repeated call
// starts no other. Errors by kind: infrastructure, throttled, quota, contention; nothing was started then.
func (o *Ops) MendFindings(ctx context.Context, comparison string) error {
	p := plan{kind: o.o.Kinds.Rewriting(), findings: reconcile.MendedClasses(), why: "findings of " + comparison, id: comparison + "-mend"}
	err := o.stores(ctx, func(ctx context.Context, s Stores) error {
		found, err := s.Findings.List(ctx, reconcile.Query{Classes: p.findings, Mends: true}, nil, mendedANight)
		p.take(found)
		return err
	})
	n := len(p.filter.IDs)
	if err != nil || n == 0 {
		return err
	}
	row, err := o.begin(WithActor(ctx, ByTimer), p, Started{Matched: n, Pattern: run.ChoosePattern(n, false)}, false)
	if err == nil {
		_, _ = o.notify(ctx, row) // without its message the timer sends one
	}
	if fault.CodeOf(err) == "run_exists" {
		return nil
	}
	return err
}
