package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sqlwriter/internal/app/open"
	"sqlwriter/internal/config"
	"sqlwriter/internal/cosmos"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/fit"
	"sqlwriter/internal/invoice"
)

type columnCheckCommand struct{}

// Run compares a sample of the documents with their rows.
func (c *columnCheckCommand) Run(ctx context.Context, a *app) error {
	s, report, err := fitted(ctx, a)
	if err != nil {
		return err
	}
	names := idsOf(report.Findings, func(f fit.Finding) string { return f.Where })
	if err := a.emit(report, names, func() error { return printFit(a, report) }); err != nil {
		return err
	}
	says := fmt.Errorf("%d wrong, %d to look at", report.Count(fit.Wrong), report.Count(fit.Look))
	switch {
	case report.Count(fit.Wrong)+report.Count(fit.Look) == 0:
		return nil
	case report.Count(fit.Wrong) == 0:
		says = &attentionError{says}
	}
	if slices.ContainsFunc(report.Findings, report.Mends) {
		file := "mapping.draft.json"
		if filepath.Base(s.get(config.Mapping)) == file { // a shell empties the file before it is read
			file = "mapping.draft2.json"
		}
		return advised(says, "`sqlwriterctl column draft > %s` mends what can be told; edit it, and check it by MAPPING=%[1]s", file)
	}
	return advised(says, "a person decides what is left (docs/cutover.md)")
}

type columnDraftCommand struct{}

// Run prints the mapping's file as the findings suggest it. What only a person knows goes to stderr.
func (c *columnDraftCommand) Run(ctx context.Context, a *app) error {
	s, report, err := fitted(ctx, a)
	if err != nil {
		return err
	}
	file := invoice.DefaultFile()
	if path := s.get(config.Mapping); path != "" {
		if file, err = os.ReadFile(s.path(path)); err != nil {
			return err
		}
	}
	draft, err := report.Draft(file)
	if err != nil {
		return err
	}
	for _, f := range report.Findings {
		switch {
		case report.Mends(f):
			a.notef("mended: %s: %s", f.Where, f.Says)
		case f.Level != fit.Note:
			a.notef("left to you: %s: %s", f.Where, f.Says)
		}
	}
	_, err = a.stdout.Write(draft)
	return err
}

// fitted makes the report of both commands.
func fitted(ctx context.Context, a *app) (s settings, report *fit.Report, err error) {
	if s, err = a.connections(ctx); err != nil {
		return s, nil, err
	}
	container, err := s.documents()
	if err != nil {
		return s, nil, err
	}
	defer container.Close()
	db, err := a.database(ctx, s)
	if err != nil {
		return s, nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	of := s.config()
	a.notef("mapping: %s", open.MappingInUse(s.get(config.Mapping), db.Mapping))
	o := fit.Options{
		SysName: of.SysName, Reader: open.Reader(db.Mapping), Zone: cmp.Or(of.Location, time.UTC), Now: a.now(),
	}
	if err := container.Ping(ctx); err != nil {
		switch code := fault.CodeOf(err); {
		case strings.HasPrefix(code, "403"):
			return s, nil, advised(err, "the right to read the container is the data-plane role Cosmos DB Built-in Data Reader")
		case code != cosmos.CodePartitionKey:
			return s, nil, err
		}
		o.KeyProblem = err.Error()
	}
	for path := range strings.SplitSeq(container.PartitionKey(), ", ") {
		o.Keys = append(o.Keys, strings.ReplaceAll(strings.Trim(path, "/"), "/", "."))
	}
	a.notef("container: %s, partition key %s", of.Cosmos.Container, cmp.Or(container.PartitionKey(), "that cannot be used"))
	report, err = fit.Check(ctx, container, db, o)
	return s, report, err
}

func printFit(a *app, r *fit.Report) error {
	a.printf("documents: %d committed, %d waiting, %.0f request units; of %d lines %d have a row in %s, %d in %s",
		r.Committed, r.Waiting, r.Charge, r.Lines, r.Rows[invoice.Detail], invoice.Detail, r.Rows[invoice.Tracking],
		invoice.Tracking)
	columns := [][]string{{"TABLE", "COLUMN", "FROM", "THERE", "FITS", "ROW SAYS THE SAME"}}
	for _, c := range r.Columns {
		columns = append(columns, []string{
			string(c.Table), c.Column, c.From, share(c.There, c.Documents), share(c.Fits, c.There),
			orDash(strings.TrimPrefix(fmt.Sprintf("%d of %d", c.Same, c.Rows), "0 of 0")),
		})
	}
	findings := [][]string{{"FINDING", "WHERE", "SAYS"}}
	for _, f := range r.Findings {
		findings = append(findings, []string{string(f.Level), f.Where, f.Says})
	}
	if err := a.table(columns); err != nil {
		return err
	}
	return a.tables(findings)
}

func share(n, of int) string {
	if of == 0 {
		return "-"
	}
	return fmt.Sprintf("%d %%", 100*n/of)
}
