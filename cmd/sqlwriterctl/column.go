package main

import (
	"context"
	"fmt"

	"sqlwriter/internal/config"
	"sqlwriter/internal/invoice"
)

type columnCommands struct {
	List columnListCommand `cmd:"" help:"List the columns, with this deployment's names. Needs no connection."`
}

type columnListCommand struct{}

// Run prints the column table.
func (c *columnListCommand) Run(ctx context.Context, a *app) error {
	s, err := a.settings(ctx)
	if err != nil {
		return err
	}
	layout, err := s.layout()
	if err != nil {
		return err
	}
	if s.get(config.ColumnNames) != "" {
		a.notef("column names: %s of %s", config.ColumnNames, s.from)
	}
	names := idsOf(layout.Columns, func(col invoice.Column) string { return string(col.Table) + "." + col.Name })
	return a.emit(layout.Columns, names, func() error {
		rows := [][]string{{"TABLE", "COLUMN", "HOLDS", "FROM", "MEANING", "ASSUMED"}}
		for _, table := range []invoice.Table{invoice.Detail, invoice.Tracking} {
			rows = append(rows,
				[]string{string(table), layout.Key(table), "key", "(line)", "line id", invoice.KeyAssumed})
		}
		for _, col := range layout.Columns {
			from := col.Path
			if col.Source != invoice.FromDocument {
				from = "(" + string(col.Source) + ")"
			}
			rows = append(rows, []string{string(col.Table), col.Name, columnType(col), from, col.Meaning, col.Assumed})
		}
		return a.table(rows)
	})
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
