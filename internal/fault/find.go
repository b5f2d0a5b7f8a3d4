package fault

import (
	"slices"
	"strings"
)

// Known returns a code as errors have it: a number of a dependency, also with a substatus ("429/3200"), or the code or
// vendor's name of a row in any case.
func Known(rows []Row, code string) (string, bool) {
	status, substatus, divided := strings.Cut(code, "/")
	if IsNumber(status) && (!divided || IsNumber(substatus)) {
		return code, true
	}
	for _, r := range rows {
		if !r.Rest && !strings.ContainsAny(r.Code, "*- ") &&
			(strings.EqualFold(r.Code, code) || strings.EqualFold(r.Name, code)) {
			return r.Code, true
		}
	}
	return "", false
}

// Codes returns the codes and vendors' names of rows, each once.
func Codes(rows []Row) (all []string) {
	for _, r := range rows {
		for _, own := range []string{r.Code, r.Name} {
			if own != "" && !r.Rest && !slices.Contains(all, own) {
				all = append(all, own)
			}
		}
	}
	return all
}
