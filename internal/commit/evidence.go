package commit

import (
	"strings"

	"sqlwriter/internal/fault"
)

// CheckEvidenceName validates a name for Evidence. Errors by kind: internal, code "evidence_name".
func CheckEvidenceName(name string) error {
	const op, code = "commit: name of evidence", "evidence_name"
	if name == "" || len(name) > MaxEvidenceName {
		return fault.New(fault.Internal, op, code, "a name of %d characters: want 1 to %d", len(name), MaxEvidenceName)
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || strings.HasSuffix(part, ".") {
			return fault.New(fault.Internal, op, code, "a part is empty or ends with a dot")
		}
	}
	if strings.ContainsFunc(name, func(c rune) bool {
		return (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && !strings.ContainsRune("-_.~%/", c)
	}) {
		return fault.New(fault.Internal, op, code, "characters other than letters, digits and -_.~%%/")
	}
	return nil
}
