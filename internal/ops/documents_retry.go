package ops

import (
	"context"
	"slices"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/run"
)

// RetryRequest asks to try failed and waiting documents again, now.
type RetryRequest struct {
	// DocumentFilter selects them as in a list; IDs names them. Since and Until bound the time of the failure of a failed document.
	DocumentFilter
	IDs []string `json:"ids,omitempty"`
	// DryRun counts and lists, and changes nothing.
	DryRun bool `json:"dry_run,omitempty"`
	// Limit bounds their number; 0 means no bound.
	Limit int    `json:"limit,omitempty"`
	Why   string `json:"why,omitempty"`
}

// RetryDocuments tries failed documents, and those that wait for a retry, again: a run of kind replay that is executed in this process.
// Without a status both are taken. Documents of a request or of a line are searched first, at most 10,000. Documents of other environments
// are left alone. Errors as StartRun.
func (o *Ops) RetryDocuments(ctx context.Context, r RetryRequest) (Started, error) {
	kind := o.o.Kinds.OfRun()
	statuses := kind.Selectable()
	if r.Status != "" {
		if !slices.Contains(statuses, r.Status) {
			return Started{}, refuse(Usage, "status: expected one of %s, found %q", joined(statuses), Truncate(string(r.Status), MaxKind))
		}
		statuses = []invoice.Status{r.Status}
	}
	start := StartRequest{
		Kind: kind.Kind, Here: true, DryRun: r.DryRun, Limit: r.Limit, Why: r.Why,
		Filter: run.Filter{Statuses: statuses, ErrorKind: r.Kind, Code: r.Code, From: r.Since, To: r.Until},
	}
	switch named := len(r.IDs) > 0; {
	case named && r.DocumentFilter != (DocumentFilter{}):
		return Started{}, refuse(Usage, "ids: go with no other filter")
	case named:
		start.Filter = run.Filter{IDs: r.IDs}
	case r.DocumentFilter == (DocumentFilter{}):
		return Started{}, refuse(Usage, "ids: expected the ids of documents, or a filter: the status failed means all failed ones")
	case r.Request != "" || r.Line != 0:
		ids, err := o.idsOf(ctx, r.DocumentFilter, statuses)
		if err != nil {
			return Started{}, err
		}
		if len(ids) == 0 {
			return Started{
				DryRun: r.DryRun, Kind: kind.Kind, Failures: []Failures{}, First: []Match{},
				Note: "no document of this environment matches whose status is " + joined(statuses),
			}, nil
		}
		start.Filter = run.Filter{IDs: ids}
	}
	return o.StartRun(ctx, start)
}

// idsOf returns the documents of this environment that match and have one of the statuses. More than a run may name are refused.
func (o *Ops) idsOf(ctx context.Context, f DocumentFilter, statuses []invoice.Status) (ids []string, err error) {
	s, err := o.search(f)
	if err != nil {
		return nil, err
	}
	s.SysName = o.o.SysName
	for _, s.Status = range statuses {
		err := o.each(ctx, s, func(page []found) bool {
			for _, doc := range page {
				ids = append(ids, doc.ID)
			}
			return len(ids) <= maxRunIDs
		})
		switch {
		case err != nil:
			return nil, err
		case len(ids) > maxRunIDs:
			return nil, refuse(Usage, "request: it has more than %d documents to try again: narrow it, for example by a code", maxRunIDs)
		}
	}
	return distinct(ids), nil
}
