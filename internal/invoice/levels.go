package invoice

// CodeTooDeep is the code of a document at which the change feed stops. It is not a failure: the document can be
// written.
const CodeTooDeep = "document.too_deep"

// mostLevels is the most levels of a document that the change feed brings, the document itself counted (docs/facts.md
// F45).
const mostLevels = 63

// TooDeep reports whether the change feed stops at a document, and brings neither it nor those behind it in its range.
// Cosmos DB stores up to 128 levels. raw must be valid JSON.
func TooDeep(raw []byte) bool {
	level := 0
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '"':
			i = textEnd(raw, i) - 1
		case '{', '[':
			if level++; level > mostLevels {
				return true
			}
		case '}', ']':
			level--
		}
	}
	return false
}
