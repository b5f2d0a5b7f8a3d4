package main

import (
	"context"

	"sqlwriter/internal/app/open"
	"sqlwriter/internal/config"
	"sqlwriter/internal/invoice"
)

type columnCommands struct {
	List  columnListCommand  `cmd:"" help:"List the columns, with this deployment's names. Needs no connection."`
	Check columnCheckCommand `cmd:"" help:"Compare a sample of the documents with their rows, before anything is deployed: reads both tables and the container, writes nothing, prints no value. Exit code 1 if a column is wrong, 3 if a person must look."`
	Draft columnDraftCommand `cmd:"" help:"Print the mapping's file as the check suggests it."`
}

type columnListCommand struct{}

// Run prints the column table.
func (c *columnListCommand) Run(ctx context.Context, a *app) error {
	s, err := a.settings(ctx)
	if err != nil {
		return err
	}
	m, err := s.mapping()
	if err != nil {
		return err
	}
	a.notef("mapping: %s (%s)", open.MappingInUse(s.get(config.Mapping), m), s.from)
	columns := m.Columns()
	names := idsOf(columns, func(col invoice.Column) string { return string(col.Table) + "." + col.Name })
	return a.emit(columns, names, func() error {
		rows := [][]string{{"TABLE", "COLUMN", "HOLDS", "FROM", "MEANING", "ASSUMED"}}
		for _, table := range []invoice.Table{invoice.Detail, invoice.Tracking} {
			rows = append(rows, []string{string(table), m.Key(table), "key", "(line)", "line id", ""})
		}
		for _, col := range columns {
			rows = append(rows, []string{string(col.Table), col.Name, col.Type(), col.From(), col.Meaning, col.Assumed})
		}
		return a.table(rows)
	})
}
