package main

import (
	"context"
	"fmt"
	"strconv"

	"sqlwriter/internal/opsapi"
)

type reportCommands struct {
	Show reportShowCommand `cmd:"" help:"Run a monitoring query; without a name list them."`
}

type reportShowCommand struct {
	Name string `arg:"" optional:"" name:"name" help:"The report's name."`
}

// Run runs the report, or lists all with their meaning.
func (c *reportShowCommand) Run(ctx context.Context, a *app) error {
	t, err := ask(ctx, a, opsapi.ReportShow, opsapi.Report{Name: c.Name})
	if err != nil {
		return err
	}
	if len(t.Rows) == 0 {
		a.notef("no rows")
	}
	rows := [][]string{t.Columns}
	for _, values := range t.Rows {
		rows = append(rows, idsOf(values, a.reportCell))
	}
	return a.emit(t, idsOf(rows[1:], func(row []string) string { return row[0] }), func() error {
		return a.table(rows)
	})
}

// reportCell formats a value of a report: a text, a number or nil.
func (a *app) reportCell(value any) string {
	switch v := value.(type) {
	case nil:
		return "-"
	case string:
		return orDash(a.says(v))
	case float64: // JSON gives whole numbers as float64, too
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return fmt.Sprint(value)
}
