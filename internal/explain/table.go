package explain

import (
	"fmt"
	"slices"
	"strings"

	"sqlwriter/internal/condition"
	"sqlwriter/internal/fault"
)

// Table has the codes of errors, beside the conditions and the classes of comparisons.
type Table struct{ faults []fault.Row }

// New makes a Table of the errors of all adapters.
func New(faults []fault.Row) Table { return Table{faults} }

// Entry is one row and its consequence, a condition or a class of a comparison.
type Entry struct {
	// Asked is the code that somebody gave; empty if none.
	Asked     string          `json:"asked,omitempty"`
	Adapter   string          `json:"adapter"`
	Code      string          `json:"code"`
	Name      string          `json:"name,omitempty"`
	Kind      fault.Kind      `json:"kind,omitempty"`
	Condition fault.Condition `json:"condition,omitempty"`
	About     string          `json:"about,omitempty"`
	Scope     fault.Scope     `json:"scope,omitempty"`
	Spends    string          `json:"spends,omitempty"`
	Next      string          `json:"next,omitempty"`
	// Severity says who is told of a condition.
	Severity condition.Severity `json:"severity,omitempty"`
	// Do is what a person does about it, Page the section that says more.
	Do   string `json:"do"`
	Page string `json:"page"`
	// Mends is what the timer does about a finding by itself.
	Mends string `json:"mends,omitempty"`

	Reason string `json:"reason"`
	Source string `json:"source,omitempty"`
}

// Look explains a code: that of an error, a kind of error, a condition or a class of a comparison. Notes say what is to
// be known beside. Without an entry the code is in no table.
func (t Table) Look(code string) (found []Entry, notes []string) {
	for _, explain := range []func(string) (Entry, bool){explainCondition, explainClass} {
		if e, known := explain(code); known {
			found = append(found, e)
		}
	}
	rows := lookUp(t.faults, code)
	if of := adaptersOf(rows); len(of) > 1 && !isKind(code) {
		notes = append(notes, fmt.Sprintf("%s may come from several: %s", code, strings.Join(of, ", ")))
	}
	if len(rows) > 0 && rows[0].Rest {
		notes = append(notes,
			code+
				" is in no table: an unknown number of the server counts as the document's error if it fails alone, unless its severity is 17 or higher")
	}
	for _, r := range rows {
		found = append(found, entryOf(code, r))
	}
	return found, notes
}

// Names reports whether an error may have a code.
func (t Table) Names(code string) bool { return len(lookUp(t.faults, code)) > 0 }

// All explains the codes of all errors.
func (t Table) All() []Entry {
	list := make([]Entry, len(t.faults))
	for i, r := range t.faults {
		list[i] = entryOf("", r)
	}
	return list
}

// Codes are the codes of all errors.
func (t Table) Codes() []string { return fault.Codes(t.faults) }

func entryOf(asked string, r fault.Row) Entry {
	consequence := r.Consequence()
	do, page := adviceOn(r)
	return Entry{
		Asked: asked, Adapter: r.Adapter, Code: r.Code, Name: r.Name, Kind: r.Kind,
		Condition: r.Condition, About: r.About,
		Scope: fault.ScopeOf(r.Kind), Spends: consequence.Spends, Next: consequence.Next,
		Do: strings.ReplaceAll(do, "CODE", codeOfDocuments(asked, r)), Page: page,
		Reason: r.Reason, Source: r.Source,
	}
}

// codeOfDocuments is a row's code as documents have it. A row for several codes stands for the one that was asked for,
// else for none.
func codeOfDocuments(asked string, r fault.Row) string {
	switch {
	case !r.Several():
		return r.Code
	case r.Rest && fault.IsNumber(asked), !r.Rest && r.StandsFor(asked):
		return asked
	}
	return "CODE"
}

// lookUp finds the rows that a code may come from. Rows that name the code come first. If no row names it, rows for a
// range with the code count, and for a number also the rows for the rest. A kind matches all its rows.
func lookUp(all []fault.Row, code string) []fault.Row {
	if isKind(code) {
		return slices.DeleteFunc(slices.Clone(all), func(r fault.Row) bool {
			return !strings.EqualFold(string(r.Kind), code)
		})
	}
	named, several, status := map[string]bool{}, map[string]bool{}, false
	for _, r := range all {
		switch {
		case r.Names(code):
			named[r.Adapter] = true
			status = status || strings.Contains(r.Code, "/")
		case !r.Rest && r.StandsFor(code):
			several[r.Adapter] = true
		}
	}
	if len(named) > 0 {
		// An HTTP status may come from several services. A number that a database names is not a status.
		return fitting(all, code, func(r fault.Row) bool { return named[r.Adapter] || (status && several[r.Adapter]) })
	}
	found := fitting(all, code, func(r fault.Row) bool { return several[r.Adapter] })
	return append(found, fitting(all, code, func(r fault.Row) bool { return r.Rest && !several[r.Adapter] })...)
}

// fitting returns the wanted adapters' rows that match a code. Rows that name the code all count. Of the rows for a
// range the first one counts for each subject, as in the adapter's classifier.
func fitting(all []fault.Row, code string, wanted func(fault.Row) bool) []fault.Row {
	var found []fault.Row
	decided := map[[2]string]bool{} // adapter and subject
	for _, r := range all {
		if !wanted(r) || !r.StandsFor(code) {
			continue
		}
		first := !decided[[2]string{r.Adapter, r.About}] && !decided[[2]string{r.Adapter, ""}]
		if first || r.Names(code) {
			found = append(found, r)
		}
		if r.Is(code) || strings.EqualFold(r.Name, code) {
			decided[[2]string{r.Adapter, r.About}] = true
		}
	}
	return found
}

// adaptersOf lists where rows come from, each once, in words.
func adaptersOf(rows []fault.Row) []string {
	var all []string
	for _, r := range rows {
		words, known := map[string]string{
			"sqlserver": "SQL Server", "sqlite": "the local database SQLite", "cosmos": "Cosmos DB",
			"blob": "blob storage", "servicebus": "Service Bus",
		}[r.Adapter]
		if text := r.Adapter + " is " + words; known && !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return all
}

// isKind reports whether a text is a kind of error.
func isKind(text string) bool {
	return slices.ContainsFunc(fault.Rules(), func(r fault.Rule) bool {
		return strings.EqualFold(string(r.Kind), text)
	})
}

// ScopeMeaning tells which documents a failure of a scope concerns.
func ScopeMeaning(s fault.Scope) string {
	switch s {
	case fault.ScopeDependency:
		return "no document is to blame, all wait"
	case fault.ScopeAttempt:
		return "this attempt lost a race, no document is to blame"
	case fault.ScopeDocument:
		return "this document alone"
	}
	return ""
}
