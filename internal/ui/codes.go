package ui

import (
	"net/http"
	"slices"
	"strings"

	"sqlwriter/internal/explain"
)

// codesPage is what the page of codes shows.
type codesPage struct {
	// Of is the code that was asked for; without one all are listed.
	Of      string
	Entries []explain.Entry
	// OfDocuments says that documents may have the code.
	OfDocuments bool
	Notes       []string
	Near        []string
	// Groups are all codes, by where they come from.
	Groups []codeGroup
}

type codeGroup struct {
	Name    string
	Entries []explain.Entry
}

// codes explains a code, or lists all.
func (v *visit) codes() (content, error) {
	table := v.site.o.Codes
	of := strings.TrimSpace(v.Query.Get("of"))
	c := content{Title: "Codes", Command: "sqlwriterctl explain"}
	if of == "" {
		p := codesPage{}
		for _, e := range append(table.Others(), table.All()...) {
			i := slices.IndexFunc(p.Groups, func(g codeGroup) bool { return g.Name == e.Adapter })
			if i < 0 {
				i = len(p.Groups)
				p.Groups = append(p.Groups, codeGroup{Name: e.Adapter})
			}
			p.Groups[i].Entries = append(p.Groups[i].Entries, e)
		}
		c.Main = p
		return c, nil
	}
	p := codesPage{Of: of}
	if p.Entries, p.Notes = table.Look(of); len(p.Entries) == 0 {
		p.Near, c.Status = table.Near(of), http.StatusNotFound
	}
	p.OfDocuments = table.Names(of)
	c.Title, c.Main = of, p
	c.Command = "sqlwriterctl explain " + shellWord(of)
	return c, nil
}
