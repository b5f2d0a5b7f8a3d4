package ui

import (
	"slices"

	"sqlwriter/internal/explain"
)

// meaning is what a code means and what a person does about it: `sqlwriterctl explain CODE` on a page that is about the
// code. A code may come from several adapters.
type meaning struct {
	Code    string
	Entries []explain.Entry
	// Do is what a person does, each advice once.
	Do []string
}

// meaning explains a code; nil for one that no table has.
func (v *visit) meaning(code string) *meaning {
	found, _ := v.site.o.Codes.Look(code)
	if len(found) == 0 {
		return nil
	}
	m := &meaning{Code: code, Entries: found}
	for _, e := range found {
		if !slices.Contains(m.Do, e.Do) {
			m.Do = append(m.Do, e.Do)
		}
	}
	return m
}

// advice is what a person does about a code; empty for one that no table has.
func (s *Site) advice(code string) string {
	if found, _ := s.o.Codes.Look(code); len(found) > 0 {
		return found[0].Do
	}
	return ""
}
