package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

type submitCommand struct {
	Replace bool     `help:"Replace a document that exists, its sql_writer included."`
	Files   []string `arg:"" name:"file" help:"JSON files with one document each; - is standard input."`
}

// Run submits every file. It reports a failed file and continues with the next.
func (c *submitCommand) Run(ctx context.Context, a *app) error {
	documents, _, err := a.openDocuments(ctx)
	if err != nil {
		return err
	}
	defer documents.Close()
	failed := 0
	for _, file := range c.Files {
		if err := c.one(ctx, a, documents, file); err != nil {
			failed++
			a.notef("%s: %v", file, err)
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d documents were not submitted", failed, len(c.Files))
	}
	return nil
}

// submitter is the part of the container that this command uses.
type submitter interface {
	Submit(ctx context.Context, doc json.RawMessage, replace bool) error
}

func (c *submitCommand) one(ctx context.Context, a *app, to submitter, file string) error {
	raw, err := a.read(file)
	if err != nil {
		return err
	}
	doc, err := invoice.Read(raw, time.Now())
	if err != nil {
		return fmt.Errorf("not a document: %w", err)
	}
	if invoice.TooDeep(raw) {
		return fmt.Errorf("%s: it has 64 levels or more, and the change feed would stop at it for ever (docs/runbook.md)", invoice.CodeTooDeep)
	}
	err = to.Submit(ctx, raw, c.Replace)
	switch {
	case fault.CodeOf(err) == "409":
		return fmt.Errorf("a document with the id %q exists; --replace replaces it", doc.ID)
	case err != nil:
		return err
	}
	a.printf("%s: submitted %q", file, doc.ID)
	if doc.State.Status == "" {
		a.printf("  the app ignores it: it has no sql_writer.status (the app processes pending)")
	}
	var invalid *invoice.Invalid
	if errors.As(doc.Problem, &invalid) {
		a.printf("  it cannot commit: %s", invalid.Error())
	}
	return nil
}

func (a *app) read(file string) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(a.stdin)
	}
	return os.ReadFile(file)
}
