package main

import (
	"fmt"
	"slices"
	"strings"

	"sqlwriter/internal/blob"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/cosmos"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/run"
	"sqlwriter/internal/servicebus"
	"sqlwriter/internal/store/sqlite"
	"sqlwriter/internal/store/sqlserver"
)

// explainCommand says what an error's code means and what follows from it.
type explainCommand struct {
	JSON bool     `name:"json" help:"Print JSON."`
	Code []string `arg:"" optional:"" help:"Codes as logs and sql_writer have them (2628, 429, refused, validation.too_long), or a kind; all when none is given."`
}

// explained is one row with what follows from it; --json prints it as it is.
type explained struct {
	// Asked is the code that was asked for; empty when none was.
	Asked     string          `json:"asked,omitempty"`
	Adapter   string          `json:"adapter"`
	Code      string          `json:"code"`
	Name      string          `json:"name,omitempty"`
	Kind      fault.Kind      `json:"kind"`
	Condition fault.Condition `json:"condition,omitempty"`
	About     string          `json:"about,omitempty"`
	Scope     fault.Scope     `json:"scope"`
	Spends    string          `json:"spends"`
	Next      string          `json:"next"`
	Reason    string          `json:"reason"`
	Source    string          `json:"source"`
}

func explain(asked string, r fault.Row) explained {
	follows := r.Consequence()
	return explained{
		Asked: asked, Adapter: r.Adapter, Code: r.Code, Name: r.Name, Kind: r.Kind, Condition: r.Condition, About: r.About,
		Scope: fault.ScopeOf(r.Kind), Spends: follows.Spends, Next: follows.Next, Reason: r.Reason, Source: r.Source,
	}
}

// faults are the tables of all adapters, each in its own order. SQL Server, the product, comes first.
func faults() []fault.Row {
	return slices.Concat(sqlserver.Faults(), sqlite.Faults(), cosmos.Faults(), blob.Faults(), servicebus.Faults(), commit.Faults(), run.Faults(), invoice.Faults())
}

// Run prints it. It needs no connection.
func (c *explainCommand) Run(a *app) error {
	all := faults()
	if len(c.Code) == 0 {
		return printAll(a, all, c.JSON)
	}
	found := []explained{}
	for _, code := range c.Code {
		rows := lookUp(all, code)
		if len(rows) == 0 {
			return &usageError{unknownCode(all, code)}
		}
		if rows[0].Rest {
			a.notef("%s stands in no table: an unknown number of the server's is the document's own when it fails alone, unless its severity is 17 and up", code)
		}
		for _, r := range rows {
			found = append(found, explain(code, r))
		}
	}
	if c.JSON {
		return printJSON(a, found)
	}
	for i, e := range found {
		if i > 0 {
			a.printf("")
		}
		if err := e.print(a); err != nil {
			return err
		}
	}
	return nil
}

// lookUp finds the rows that a code may have come from: those of the adapters that name it; else those that stand for
// several codes, it among them, and for a number also those that stand for the rest. A kind stands for all its rows.
func lookUp(all []fault.Row, code string) []fault.Row {
	if slices.ContainsFunc(fault.Rules(), func(r fault.Rule) bool { return strings.EqualFold(string(r.Kind), code) }) {
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
		// The answer of one service is the answer of another, too; a number that a database names is no status.
		return fitting(all, code, func(r fault.Row) bool { return named[r.Adapter] || (status && several[r.Adapter]) })
	}
	found := fitting(all, code, func(r fault.Row) bool { return several[r.Adapter] })
	return append(found, fitting(all, code, func(r fault.Row) bool { return r.Rest && !several[r.Adapter] })...)
}

// fitting picks from the wanted adapters' rows those that name a code. Of those that stand for it among others, the first
// one decides, as it does in the adapter's classifier: for what it is about, or for whatever is left.
func fitting(all []fault.Row, code string, wanted func(fault.Row) bool) []fault.Row {
	var found []fault.Row
	decided := map[[2]string]bool{} // adapter and what about
	for _, r := range all {
		if !wanted(r) || !r.StandsFor(code) {
			continue
		}
		first := !decided[[2]string{r.Adapter, r.About}] && !decided[[2]string{r.Adapter, ""}]
		if first || r.Names(code) {
			found = append(found, r)
		}
		if r.Covers == nil || r.Covers(code) {
			decided[[2]string{r.Adapter, r.About}] = true
		}
	}
	return found
}

// unknownCode is the error for a word that stands nowhere, with the words that are near it.
func unknownCode(all []fault.Row, code string) error {
	near := nearest(all, code)
	if len(near) == 0 {
		return fmt.Errorf("no table has the code %q: `sqlwriterctl explain` lists all", code)
	}
	return fmt.Errorf("no table has the code %q: did you mean %s?", code, strings.Join(near, ", "))
}

// mostNear is how many near codes are named.
const mostNear = 5

// nearest gives the codes that a mistyped one may have been: those that hold it, then those a few letters away.
func nearest(all []fault.Row, code string) []string {
	code = strings.ToLower(code)
	var holding, close []string
	for _, r := range all {
		for _, own := range []string{r.Code, r.Name} {
			lower := strings.ToLower(own)
			_, last, _ := strings.Cut(lower, ".") // of validation.too_long the part that is its own
			switch {
			case own == "" || r.Rest || slices.Contains(holding, own) || slices.Contains(close, own):
			case len(code) >= 3 && strings.Contains(lower, code):
				holding = append(holding, own)
			case min(distance(lower, code), distance(last, code)) <= 1+len(code)/4:
				close = append(close, own)
			}
		}
	}
	near := slices.Concat(holding, close)
	return near[:min(len(near), mostNear)]
}

// distance is how many letters must be put in, left out or changed to make one word of another (Levenshtein).
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

// print writes one row for people.
func (e explained) print(a *app) error {
	title := e.Code
	if e.Name != "" {
		title += " (" + e.Name + ")"
	}
	a.printf("%s, %s: %s", e.Adapter, title, e.Kind)
	rows := [][]string{{"  means", e.Reason}}
	if e.About != "" {
		rows = append(rows, []string{"  about", e.About})
	}
	return a.table(append(rows,
		[]string{"  scope", string(e.Scope) + ": " + pays(e.Scope)},
		[]string{"  spends", e.Spends},
		[]string{"  next", e.Next},
		[]string{"  source", e.Source},
	))
}

// pays says who pays for a failure of a scope.
func pays(s fault.Scope) string {
	switch s {
	case fault.ScopeDependency:
		return "no document is blamed, all wait"
	case fault.ScopeAttempt:
		return "this try lost a race, nobody is blamed"
	case fault.ScopeDocument:
		return "this document alone"
	}
	return ""
}

// printAll lists every row.
func printAll(a *app, all []fault.Row, asJSON bool) error {
	if asJSON {
		list := make([]explained, len(all))
		for i, r := range all {
			list[i] = explain("", r)
		}
		return printJSON(a, list)
	}
	rows := [][]string{{"ADAPTER", "CODE", "KIND", "SCOPE", "SPENDS", "MEANING"}}
	for _, r := range all {
		e := explain("", r)
		meaning := e.Reason
		if e.About != "" {
			meaning += " (about " + e.About + ")"
		}
		rows = append(rows, []string{e.Adapter, e.Code, string(e.Kind), string(e.Scope), e.Spends, meaning})
	}
	return a.table(rows)
}
