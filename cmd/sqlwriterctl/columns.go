package main

import (
	"context"
	"encoding/json"
	"fmt"

	"sqlwriter/internal/invoice"
)

type columnsCommand struct {
	JSON bool `name:"json" help:"Print JSON."`
}

// Run prints the column table with this deployment's names. It needs no connection.
func (c *columnsCommand) Run(ctx context.Context, a *app) error {
	layout, err := a.effectiveLayout(ctx)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(a, layout.Columns)
	}
	rows := [][]string{{"TABLE", "COLUMN", "HOLDS", "FROM", "MEANING", "ASSUMED"}}
	for _, table := range []invoice.Table{invoice.Detail, invoice.Tracking} {
		rows = append(rows, []string{string(table), layout.Key(table), "key", "(line)", "line id", invoice.KeyAssumed})
	}
	for _, col := range layout.Columns {
		from := col.Path
		if col.Source != invoice.FromDocument {
			from = "(" + string(col.Source) + ")"
		}
		rows = append(rows, []string{string(col.Table), col.Name, columnType(col), from, col.Meaning, col.Assumed})
	}
	return a.table(rows)
}

// columnType describes a column's type and limits.
func columnType(c invoice.Column) string {
	s := string(c.Kind)
	switch {
	case c.Kind == invoice.Decimal:
		s += fmt.Sprintf("(%d,%d)", c.Precision, c.Scale)
	case c.Max > 0:
		s += fmt.Sprintf("(%d)", c.Max)
	}
	if c.Min != "" || c.Limit != "" {
		s += fmt.Sprintf(" %s..%s", c.Min, c.Limit)
	}
	if c.Required {
		s += " required"
	}
	return s
}

func printJSON(a *app, v any) error {
	enc := json.NewEncoder(a.stdout)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
