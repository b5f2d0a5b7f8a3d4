package explain

import (
	"sqlwriter/internal/reconcile"
)

// These stand for the adapter of a class of a comparison.
const (
	ofFindings = "finding"
	ofCounted  = "counted"
)

// explainClass explains a class of a comparison; false when it is none.
func explainClass(asked string) (Entry, bool) {
	m, known := reconcile.MeaningOf(asked)
	e := Entry{Asked: asked, Adapter: ofCounted, Code: string(m.Class), Reason: m.Means, Do: m.Do, Mends: m.Mends, Page: "docs/findings.md#counted-only"}
	if m.Finding {
		e.Adapter, e.Page = ofFindings, "docs/findings.md#the-findings"
	}
	return e, known
}
