package ops

import (
	"context"
	"maps"
	"slices"

	"sqlwriter/internal/reconcile"
)

// findingsPage is how many findings are read at once.
const findingsPage = 1000

// resolveFindings makes the documents and lines of open findings those of the plan. Lines that only an operator's word lets a rewrite write
// are named in its filter too. Errors: *RequestError (usage) when there are too many; those of reconcile.Findings.List.
func (o *Ops) resolveFindings(ctx context.Context, p *plan) error {
	lines, overwrite, documents := map[int64]bool{}, map[int64]bool{}, map[string]bool{}
	err := o.stores(ctx, func(ctx context.Context, s Stores) error {
		q := reconcile.Query{Classes: p.findings, State: reconcile.Open}
		for after := (*reconcile.Key)(nil); ; {
			found, err := s.Findings.List(ctx, q, after, findingsPage)
			if err != nil {
				return err
			}
			for _, f := range found {
				documents[f.Document], lines[f.Line] = true, true
				overwrite[f.Line] = overwrite[f.Line] || f.Overwrites()
			}
			if len(documents) > maxRunIDs || len(lines) > maxOverwritten {
				return refuse(Usage, "findings: the open ones of %s name more than %d documents or lines: name fewer classes, or the documents with ids", joined(p.findings), maxRunIDs)
			}
			if len(found) < findingsPage {
				return nil
			}
			after = &found[len(found)-1].Key
		}
	})
	maps.DeleteFunc(overwrite, func(_ int64, named bool) bool { return !named })
	p.lines, p.filter.IDs, p.filter.OverwriteEdits = lines, slices.Sorted(maps.Keys(documents)), slices.Sorted(maps.Keys(overwrite))
	return err
}
