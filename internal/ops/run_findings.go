package ops

import (
	"context"
	"maps"
	"slices"

	"sqlwriter/internal/reconcile"
)

// findingsPage is how many findings are read at once.
const findingsPage = 1000

// checkFindings checks the classes of a request. Their documents and lines are its whole filter.
func (r StartRequest) checkFindings(rewrites, filtered bool) error {
	switch unknown := slices.IndexFunc(r.Findings, func(c reconcile.Class) bool { return !slices.Contains(reconcile.Rewritable(), c) }); {
	case len(r.Findings) == 0:
		return nil
	case !rewrites:
		return refuse(Usage, "findings: go with a kind that writes lines again, found %q", string(r.Kind))
	case filtered || r.All || len(r.OverwriteEdits) > 0 || r.NotComparable:
		return refuse(Usage, "findings: go with no other filter")
	case unknown >= 0:
		return refuse(Usage, "findings: expected %s, found %q", joined(reconcile.Rewritable()), Truncate(string(r.Findings[unknown]), MaxKind))
	}
	return nil
}

// resolveFindings makes the documents of open findings the request's filter, and returns their lines. Lines that only an operator's word
// lets a rewrite write are named in the filter too. Errors: *RequestError (usage) when there are too many; those of
// reconcile.Findings.List.
func (o *Ops) resolveFindings(ctx context.Context, r *StartRequest) (map[int64]bool, error) {
	lines, overwrite, documents := map[int64]bool{}, map[int64]bool{}, map[string]bool{}
	err := o.stores(ctx, func(ctx context.Context, s Stores) error {
		q := reconcile.Query{Classes: r.Findings, State: reconcile.Open}
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
				return refuse(Usage, "findings: the open ones of %s name more than %d documents or lines: name fewer classes, or the documents with ids", joined(r.Findings), maxRunIDs)
			}
			if len(found) < findingsPage {
				return nil
			}
			after = &found[len(found)-1].Key
		}
	})
	r.IDs = slices.Sorted(maps.Keys(documents))
	maps.DeleteFunc(overwrite, func(_ int64, named bool) bool { return !named })
	r.OverwriteEdits = slices.Sorted(maps.Keys(overwrite))
	return lines, err
}
