package main

import (
	"sqlwriter/internal/reconcile"
)

// These stand for the adapter of a class of a comparison.
const (
	ofFindings = "finding"
	ofCounted  = "counted"
)

// explainClass explains a class of a comparison; false when it is none.
func explainClass(asked string) (explained, bool) {
	m, known := reconcile.MeaningOf(asked)
	e := explained{Asked: asked, Adapter: ofCounted, Code: string(m.Class), Reason: m.Means, Do: m.Do, Mends: m.Mends, Page: "docs/findings.md#counted-only"}
	if m.Finding {
		e.Adapter, e.Page = ofFindings, "docs/findings.md#the-findings"
	}
	return e, known
}

// classes are the classes of a comparison.
func classes() []string {
	return idsOf(reconcile.Meanings(), func(m reconcile.Meaning) string { return string(m.Class) })
}
