package fault

import (
	"slices"
	"strings"
)

// Known returns a code as errors have it: a number of a dependency, also with a substatus ("429/3200"), or the code or vendor's name of
// a row in any case.
func Known(rows []Row, code string) (string, bool) {
	status, substatus, divided := strings.Cut(code, "/")
	if IsNumber(status) && (!divided || IsNumber(substatus)) {
		return code, true
	}
	for _, r := range rows {
		if !r.Rest && !strings.ContainsAny(r.Code, "*- ") && (strings.EqualFold(r.Code, code) || strings.EqualFold(r.Name, code)) {
			return r.Code, true
		}
	}
	return "", false
}

// maxSuggestions is how many similar words are named.
const maxSuggestions = 5

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

// Near returns words similar to a mistyped one: first those that contain it, then those that differ by a few letters.
func Near(words []string, typed string) []string {
	typed = strings.ToLower(typed)
	var containing, close []string
	for _, own := range words {
		lower := strings.ToLower(own)
		last := lower[strings.Index(lower, ".")+1:] // too_long of validation.too_long
		switch {
		case len(typed) >= 3 && strings.Contains(lower, typed):
			containing = append(containing, own)
		case min(distance(lower, typed), distance(last, typed)) <= 1+len(typed)/4:
			close = append(close, own)
		}
	}
	near := slices.Concat(containing, close)
	return near[:min(len(near), maxSuggestions)]
}

// distance is the Levenshtein distance of two words.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			changed := diagonal
			if a[i] != b[j] {
				changed++
			}
			diagonal = row[j+1]
			row[j+1] = min(changed, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
