package ops

import (
	"context"

	"sqlwriter/internal/reconcile"
)

// maxCompared bounds the documents that a comparison may name.
const maxCompared = 1000

// ByTimer is who starts what the timer starts, in the audit log: the function's name.
const ByTimer = reconcile.ByTimer

// CompareRequest asks for a comparison.
type CompareRequest struct {
	// IDs names documents, 1,000 at most: these alone are compared. All means everything. Without both it is what
	// changed since the last comparison.
	IDs []string `json:"ids,omitempty"`
	All bool     `json:"all,omitempty"`
	Why string   `json:"why"`
}

// Comparing is the result of Compare.
type Comparing struct {
	// Comparison is its id.
	Comparison string `json:"comparison"`
}

// Compare begins a comparison, which the timer's ticks carry on after those that were begun before. What they find is
// listed a quarter of an hour after it was seen first. Errors: *RequestError (usage; conflict in a shadow);
// infrastructure, throttled, quota, contention; nothing was begun then.
func (o *Ops) Compare(ctx context.Context, r CompareRequest) (begun Comparing, err error) {
	r.IDs = distinct(r.IDs)
	switch n := len(r.IDs); {
	case n > maxCompared:
		return begun, refuse(Usage, "ids: expected at most %d, found %d", maxCompared, n)
	case n > 0 && r.All:
		return begun, refuse(Usage, "all: goes without ids")
	}
	for _, id := range r.IDs {
		if err := checkDocumentID(id); err != nil {
			return begun, err
		}
	}
	by, err := o.mayAct(ctx, r.Why)
	if err != nil {
		return begun, err
	}
	c := reconcile.Comparison{ID: newRunID("compare", o.o.Now()), IDs: r.IDs, Whole: r.All, By: by, Why: r.Why}
	err = o.stores(ctx, func(ctx context.Context, s Stores) error {
		_, err := s.Findings.Begin(ctx, c)
		return err
	})
	if err != nil {
		return Comparing{}, unaudited(err)
	}
	return Comparing{c.ID}, nil
}
