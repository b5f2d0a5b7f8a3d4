package main

import (
	"sqlwriter/internal/app/open"
	"sqlwriter/internal/explain"
)

type explainCommand struct {
	Code []string `arg:"" optional:"" help:"Codes as in logs and sql_writer (2628, 429, refused, validation.too_long), a kind, what needs attention in status (timer_silent), or a class of a comparison (stale). Without one, all codes of errors."`
}

// codes are all codes with their meanings.
func codes() explain.Table { return explain.New(open.Faults()) }

// Run prints the rows. It needs no connection.
func (c *explainCommand) Run(a *app) error {
	table := codes()
	if len(c.Code) == 0 {
		return printAll(a, table)
	}
	found := []explain.Entry{}
	for _, code := range c.Code {
		entries, notes := table.Look(code)
		if len(entries) == 0 {
			return usagef("no table has the code %q: `sqlwriterctl explain` lists all", code)
		}
		for _, note := range notes {
			a.notef("%s", note)
		}
		found = append(found, entries...)
	}
	return a.emit(found, idsOf(found, func(e explain.Entry) string { return e.Code }), func() error {
		for i, e := range found {
			if i > 0 {
				a.printf("")
			}
			if err := printEntry(a, e); err != nil {
				return err
			}
		}
		return nil
	})
}

func printEntry(a *app, e explain.Entry) error {
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
		return a.table(append(rows, []string{"  do", e.Do}, []string{"  page", e.Page}))
	}
	a.printf("%s, %s: %s", e.Adapter, title, e.Kind)
	if e.About != "" {
		rows = append(rows, []string{"  about", e.About})
	}
	return a.table(append(rows,
		[]string{"  scope", string(e.Scope) + ": " + explain.ScopeMeaning(e.Scope)},
		[]string{"  spends", e.Spends},
		[]string{"  next", e.Next},
		[]string{"  do", e.Do},
		[]string{"  page", e.Page},
		[]string{"  source", e.Source},
	))
}

func printAll(a *app, table explain.Table) error {
	list := table.All()
	return a.emit(list, table.Codes(), func() error {
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
