package main

import (
	"fmt"
	"slices"
	"strings"

	"sqlwriter/internal/app/open"
	"sqlwriter/internal/fault"
)

type explainCommand struct {
	Code []string `arg:"" optional:"" help:"Codes as in logs and sql_writer (2628, 429, refused, validation.too_long), a kind, what needs attention in status (timer_silent), or a class of a comparison (stale). Without one, all codes of errors." suggest:"explained"`
}

// explained is one row and its consequence, a code of attention or a class of a comparison, the result for programs.
type explained struct {
	// Asked is the code that the operator gave; empty if none.
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
	// Do is what a person does about it, Page the section that says more.
	Do   string `json:"do"`
	Page string `json:"page"`
	// Mends is what the timer does about a finding by itself.
	Mends string `json:"mends,omitempty"`

	Reason string `json:"reason"`
	Source string `json:"source,omitempty"`
}

func explain(asked string, r fault.Row) explained {
	consequence, advice := r.Consequence(), adviceOn(r)
	return explained{
		Asked: asked, Adapter: r.Adapter, Code: r.Code, Name: r.Name, Kind: r.Kind, Condition: r.Condition, About: r.About,
		Scope: fault.ScopeOf(r.Kind), Spends: consequence.Spends, Next: consequence.Next, Do: strings.ReplaceAll(advice.do, "CODE", codeOfDocuments(asked, r)), Page: advice.page,
		Reason: r.Reason, Source: r.Source,
	}
}

// codeOfDocuments is a row's code as documents have it. A row for several codes stands for the one that was asked for, else for none.
func codeOfDocuments(asked string, r fault.Row) string {
	switch {
	case r.Covers == nil && !r.Rest:
		return r.Code
	case r.Rest && fault.IsNumber(asked), !r.Rest && r.StandsFor(asked):
		return asked
	}
	return "CODE"
}

// faults are the tables of all adapters.
func faults() []fault.Row { return open.Faults() }

// Run prints the rows. It needs no connection.
func (c *explainCommand) Run(a *app) error {
	all := faults()
	if len(c.Code) == 0 {
		return printAll(a, all)
	}
	found := []explained{}
	for _, code := range c.Code {
		rows := lookUp(all, code)
		before := len(found)
		for _, explain := range []func(string) (explained, bool){explainAlarm, explainClass} {
			if e, known := explain(code); known {
				found = append(found, e)
			}
		}
		if len(rows) == 0 && len(found) == before {
			return &usageError{unknownCode(all, code)}
		}
		if of := adaptersOf(rows); len(of) > 1 && !isKind(code) {
			a.notef("%s may come from several: %s", code, strings.Join(of, ", "))
		}
		if len(rows) > 0 && rows[0].Rest {
			a.notef("%s is in no table: an unknown number of the server counts as the document's error if it fails alone, unless its severity is 17 or higher", code)
		}
		for _, r := range rows {
			found = append(found, explain(code, r))
		}
	}
	return a.emit(found, idsOf(found, func(e explained) string { return e.Code }), func() error {
		for i, e := range found {
			if i > 0 {
				a.printf("")
			}
			if err := e.print(a); err != nil {
				return err
			}
		}
		return nil
	})
}

// lookUp finds the rows that a code may come from. Rows that name the code come first. If no row names it, rows for a range
// with the code count, and for a number also the rows for the rest. A kind matches all its rows.
func lookUp(all []fault.Row, code string) []fault.Row {
	if isKind(code) {
		return slices.DeleteFunc(slices.Clone(all), func(r fault.Row) bool { return !strings.EqualFold(string(r.Kind), code) })
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

// fitting returns the wanted adapters' rows that match a code. Rows that name the code all count. Of the rows for a range
// the first one counts for each subject, as in the adapter's classifier.
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
		if r.Covers == nil || r.Covers(code) || strings.EqualFold(r.Code, code) || strings.EqualFold(r.Name, code) {
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
			"sqlserver": "SQL Server", "sqlite": "the local database SQLite", "cosmos": "Cosmos DB", "blob": "blob storage", "servicebus": "Service Bus",
		}[r.Adapter]
		if text := r.Adapter + " is " + words; known && !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return all
}

// isKind reports whether a text is a kind of error.
func isKind(text string) bool {
	return slices.ContainsFunc(fault.Rules(), func(r fault.Rule) bool { return strings.EqualFold(string(r.Kind), text) })
}

// unknownCode is the error for an unknown code, with similar codes.
func unknownCode(all []fault.Row, code string) error {
	near := fault.Near(slices.Concat(fault.Codes(all), alarmCodes(), classes()), code)
	if len(near) == 0 {
		return fmt.Errorf("no table has the code %q: `sqlwriterctl explain` lists all", code)
	}
	return fmt.Errorf("no table has the code %q: did you mean %s?", code, strings.Join(near, ", "))
}

func (e explained) print(a *app) error {
	title := e.Code
	if e.Name != "" {
		title += " (" + e.Name + ")"
	}
	rows := [][]string{{"  means", e.Reason}}
	if e.Kind == "" { // no error
		a.printf("%s, %s", e.Adapter, title)
		if e.Mends != "" {
			rows = append(rows, []string{"  by itself", e.Mends})
		}
		return a.facts(append(rows, []string{"  do", e.Do}, []string{"  page", e.Page}))
	}
	a.printf("%s, %s: %s", e.Adapter, title, e.Kind)
	if e.About != "" {
		rows = append(rows, []string{"  about", e.About})
	}
	return a.facts(append(rows,
		[]string{"  scope", string(e.Scope) + ": " + scopeMeaning(e.Scope)},
		[]string{"  spends", e.Spends},
		[]string{"  next", e.Next},
		[]string{"  do", e.Do},
		[]string{"  page", e.Page},
		[]string{"  source", e.Source},
	))
}

// scopeMeaning tells which documents a failure of a scope concerns.
func scopeMeaning(s fault.Scope) string {
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

func printAll(a *app, all []fault.Row) error {
	list := make([]explained, len(all))
	for i, r := range all {
		list[i] = explain("", r)
	}
	return a.emit(list, fault.Codes(all), func() error {
		rows := [][]string{{"ADAPTER", "CODE", "KIND", "SCOPE", "SPENDS", "MEANING"}}
		for _, e := range list {
			meaning := e.Reason
			if e.About != "" {
				meaning += " (about " + e.About + ")"
			}
			rows = append(rows, []string{e.Adapter, e.Code, string(e.Kind), string(e.Scope), e.Spends, meaning})
		}
		return a.table(rows)
	})
}
