package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"sqlwriter/internal/app/open"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
)

type documentSubmitCommand struct {
	Replace bool     `help:"Replace a document that exists, its sql_writer included."`
	Files   []string `arg:"" name:"file" help:"JSON files with one document each; - is standard input."`
}

// Run submits every file. It reports a failed file and continues with the next.
func (c *documentSubmitCommand) Run(ctx context.Context, a *app) error {
	s, err := a.connections(ctx)
	if err != nil {
		return err
	}
	m, err := s.mapping()
	if err != nil {
		return err
	}
	documents, err := s.documents()
	if err != nil {
		return err
	}
	defer documents.Close()
	failed := 0
	submitted := []submittedDocument{}
	for _, file := range c.Files {
		one, err := c.one(ctx, a, documents, open.Reader(m), file)
		if err != nil {
			failed++
			what, _ := a.describe(err)
			a.tellf("%s: %s", file, what)
			continue
		}
		submitted = append(submitted, one)
	}
	err = a.emit(submitted, idsOf(submitted, func(s submittedDocument) string { return s.ID }), func() error {
		for _, s := range submitted {
			a.printf("%s: submitted %q", s.File, s.ID)
		}
		return nil
	})
	if failed > 0 {
		err = errors.Join(err,
			fmt.Errorf("%d of %d %s not submitted", failed, len(c.Files),
				ops.Plural(len(c.Files), "document was", "documents were")))
	}
	return err
}

// submittedDocument is a document that was stored.
type submittedDocument struct {
	File string `json:"file"`
	ID   string `json:"id"`
}

// submitter is the part of the container that this command uses.
type submitter interface {
	Submit(ctx context.Context, doc json.RawMessage, replace bool) error
}

func (c *documentSubmitCommand) one(
	ctx context.Context, a *app, to submitter, by invoice.Reader, file string,
) (done submittedDocument, err error) {
	raw, err := a.read(file)
	if err != nil {
		return done, err
	}
	doc, err := by.Read(raw, a.now())
	if err != nil {
		return done, fmt.Errorf("not a document: %w", err)
	}
	if invoice.TooDeep(raw) {
		return done,
			fmt.Errorf(
				"%s: it has 64 levels or more, and the change feed would stop at it for ever (docs/runbook.md)",
				invoice.CodeTooDeep)
	}
	err = to.Submit(ctx, raw, c.Replace)
	switch {
	case fault.CodeOf(err) == "409":
		return done, fmt.Errorf("a document with the id %q exists; --replace replaces it", doc.ID)
	case err != nil:
		return done, err
	}
	if doc.State.Status == "" {
		a.notef("%s: the app ignores it: it has no sql_writer.status (the app processes pending)", file)
	}
	var invalid *invoice.Invalid
	if errors.As(doc.Problem, &invalid) {
		a.notef("%s: it cannot commit: %s", file, invalid.Error())
	}
	return submittedDocument{File: file, ID: doc.ID}, nil
}

func (a *app) read(file string) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(a.stdin)
	}
	return os.ReadFile(file)
}
