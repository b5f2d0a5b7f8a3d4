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

// maxSuggestions is how many similar codes are named.
const maxSuggestions = 5

// Near returns codes similar to a mistyped one: first those that contain it, then those that differ by a few letters.
func Near(rows []Row, code string) []string {
	code = strings.ToLower(code)
	var containing, close []string
	for _, r := range rows {
		for _, own := range []string{r.Code, r.Name} {
			lower := strings.ToLower(own)
			_, last, _ := strings.Cut(lower, ".") // too_long of validation.too_long
			switch {
			case own == "" || r.Rest || slices.Contains(containing, own) || slices.Contains(close, own):
			case len(code) >= 3 && strings.Contains(lower, code):
				containing = append(containing, own)
			case min(distance(lower, code), distance(last, code)) <= 1+len(code)/4:
				close = append(close, own)
			}
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
