package ops

import (
	"context"
	"slices"
	"time"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/run"
)

// RetryRequest asks to try failed and waiting documents again, now.
type RetryRequest struct {
	// DocumentFilter selects those of a list with it; IDs names them.
	DocumentFilter
	IDs []string `json:"ids,omitempty"`
	// DryRun counts and lists, and changes nothing.
	DryRun bool `json:"dry_run,omitempty"`
	// Rate is documents handed off per minute; Limit bounds their number. 0 means no bound.
	Rate  int    `json:"rate_per_minute,omitempty"`
	Limit int    `json:"limit,omitempty"`
	Why   string `json:"why,omitempty"`
}

// RetryDocuments tries failed documents, and those that wait for a retry, again: a run of kind replay. Without a status
// both are taken. This process executes it for 100 documents or fewer; more are handed to the workers. Documents of
// other environments are left alone. Errors as StartRun.
func (o *Ops) RetryDocuments(ctx context.Context, r RetryRequest) (Started, error) {
	p := runPlan{
		kind: o.o.Kinds.OfRun(), dryRun: r.DryRun, rate: r.Rate, limit: r.Limit, why: r.Why, retry: true,
		filter: run.Filter{IDs: distinct(r.IDs)},
	}
	named, filtered := len(p.filter.IDs) > 0, r.DocumentFilter != (DocumentFilter{})
	if named && filtered {
		return Started{}, refuse(Usage, "ids: go with no other filter")
	}
	if !named && !filtered {
		return Started{},
			refuse(Usage, "ids: expected the ids of documents, or a filter: the status failed means all failed ones")
	}
	if err := p.checkBounds(); err != nil {
		return Started{}, err
	}
	if err := o.mayStart(ctx, p); err != nil {
		return Started{}, err
	}
	if filtered {
		statuses := p.kind.Selectable()
		if r.Status != "" {
			if !slices.Contains(statuses, r.Status) {
				return Started{},
					refuse(Usage, "status: expected one of %s, found %q", joined(statuses),
						run.Truncate(string(r.Status), run.MaxKind))
			}
			statuses = []invoice.Status{r.Status}
		}
		var none bool
		var err error
		if p.filter, none, err = o.selected(ctx, r.DocumentFilter, statuses); err != nil {
			return Started{}, err
		}
		if none {
			return nothing(p, "no document of this environment matches whose status is "+joined(statuses)), nil
		}
	}
	return o.start(ctx, p)
}

// selected is the filter of a run that takes the documents of this environment which a list with the filter f shows,
// and which have one of the statuses. Where a run cannot search by it the documents are named; none says that there are
// none. More than a run may name are refused.
func (o *Ops) selected(
	ctx context.Context, f DocumentFilter, statuses []invoice.Status,
) (filter run.Filter, none bool, err error) {
	s, err := o.search(f)
	if err != nil {
		return filter, false, err
	}
	filter = run.Filter{Statuses: statuses, ErrorKind: s.Kind, Code: s.Code, From: f.Since, To: f.Until}
	rest := f
	rest.Status, rest.Kind, rest.ErrorCode, rest.Since, rest.Until = "", "", "", time.Time{}, time.Time{}
	if rest == (DocumentFilter{}) { // what a run searches by says all
		return filter, false, nil
	}
	s.SysName, s.Statuses = o.o.SysName, statuses
	var ids []string
	err = o.each(ctx, s, func(page []found) bool {
		for _, doc := range page {
			ids = append(ids, doc.ID)
		}
		return len(ids) <= maxRunIDs
	})
	switch {
	case err != nil:
		return filter, false, err
	case len(ids) > maxRunIDs:
		return filter, false,
			refuse(Usage, "request: more than %d documents match: narrow it, for example by a code", maxRunIDs)
	}
	return run.Filter{IDs: distinct(ids)}, len(ids) == 0, nil
}
