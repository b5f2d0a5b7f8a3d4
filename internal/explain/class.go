package explain

import (
	"sqlwriter/internal/condition"
	"sqlwriter/internal/reconcile"
)

// These stand for the adapter of a condition, and of a class of a comparison.
const (
	ofAttention = "attention"
	ofFindings  = "finding"
	ofCounted   = "counted"
)

// explainCondition explains a condition; false when it is none.
func explainCondition(asked string) (Entry, bool) {
	c, known := condition.Of(asked)
	return Entry{
		Asked: asked, Adapter: ofAttention, Code: c.Code, Severity: c.Severity, Reason: c.Means,
		Do: c.Do, Page: c.Link(),
	}, known
}

// explainClass explains a class of a comparison; false when it is none.
func explainClass(asked string) (Entry, bool) {
	m, known := reconcile.MeaningOf(asked)
	e := Entry{
		Asked: asked, Adapter: ofCounted, Code: string(m.Class), Reason: m.Means, Do: m.Do, Mends: m.Mends,
		Page: "docs/findings.md#counted-only",
	}
	if m.Finding {
		e.Adapter, e.Page = ofFindings, "docs/findings.md#the-findings"
	}
	return e, known
}
