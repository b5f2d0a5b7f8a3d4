package explain

import "sqlwriter/internal/condition"

// ofAttention stands for the adapter of a condition.
const ofAttention = "attention"

// explainCondition explains a condition; false when it is none.
func explainCondition(asked string) (Entry, bool) {
	c, known := condition.Of(asked)
	return Entry{Asked: asked, Adapter: ofAttention, Code: c.Code, Severity: c.Severity, Reason: c.Means, Do: c.Do, Page: c.Link()}, known
}
