package ui

import (
	"slices"

	"sqlwriter/internal/explain"
)

// meaning is what a code means and what a person does about it: `sqlwriterctl explain CODE` on a page that is about the code. A code may come
// from several adapters.
type meaning struct {
	Code    string
	Entries []explain.Entry
	// Do and Mends are what a person does and what the timer does by itself, each once.
	Do, Mends []string
}

// meaning explains a code; nil for one that no table has.
func (v *visit) meaning(code string) *meaning {
	found, _ := v.site.o.Codes.Look(code)
	if len(found) == 0 {
		return nil
	}
	m := &meaning{Code: code, Entries: found}
	for _, e := range found {
		m.Do, m.Mends = append(m.Do, e.Do), append(m.Mends, e.Mends)
	}
	slices.Sort(m.Do)
	slices.Sort(m.Mends)
	m.Do, m.Mends = slices.Compact(m.Do), slices.DeleteFunc(slices.Compact(m.Mends), func(s string) bool { return s == "" })
	return m
}

// advice is what a person does about a code; empty for one that no table has.
func (s *Site) advice(code string) string {
	if found, _ := s.o.Codes.Look(code); len(found) > 0 {
		return found[0].Do
	}
	return ""
}
