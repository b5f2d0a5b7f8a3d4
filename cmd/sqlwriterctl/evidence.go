package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/opsapi"
)

type evidenceCommands struct {
	Show    evidenceShowCommand    `cmd:"" help:"Show where a document's evidence is, and what it says of each failure."`
	Get     evidenceGetCommand     `cmd:"" help:"Print a file of a document's evidence as it is stored. It needs the role Operator."`
	Restore evidenceRestoreCommand `cmd:"" help:"Put a deleted document back from its newest evidence, as it failed. document retry tries it again."`
}

type evidenceRestoreCommand struct {
	whyFlag

	ID     string `arg:"" help:"The id of the deleted document."`
	Line   int64  `help:"Search only the folders of this main line." placeholder:"LINE"`
	DryRun bool   `help:"Say what would be put back, and change nothing."`
}

// Run puts the document back.
func (c *evidenceRestoreCommand) Run(ctx context.Context, a *app) error {
	r := ops.RestoreRequest{
		EvidenceOfDocument: ops.EvidenceOfDocument{ID: c.ID, Line: c.Line}, DryRun: c.DryRun, Why: c.Why,
	}
	done, err := ask(ctx, a, opsapi.EvidenceRestore, r)
	if err != nil {
		return err
	}
	did := "was put back"
	if done.DryRun {
		did = "would be put back"
	}
	return a.emitLine(done, done.Document, "%s %s as %s (%s %s), from %s of %s", done.Document, did, done.Status,
		done.Kind, orDash(done.Code), done.Folder, a.time(done.At))
}

// lineOr is a line; none stands for one that is not known.
func lineOr(line int64, none string) string {
	if line == 0 {
		return none
	}
	return strconv.FormatInt(line, 10)
}

type evidenceShowCommand struct {
	ID   string `arg:"" help:"The document's id; the document may be deleted."`
	Line int64  `help:"Search only the folders of this main line, and do not ask for the document." placeholder:"LINE"`
}

// Run shows the evidence.
func (c *evidenceShowCommand) Run(ctx context.Context, a *app) error {
	e, err := ask(ctx, a, opsapi.EvidenceShow, ops.EvidenceOfDocument{ID: c.ID, Line: c.Line})
	if err != nil {
		return err
	}
	if e.More {
		a.notef("not all folders were searched: --line LINE searches those of a main line")
	}
	return a.emit(e, idsOf(e.Episodes, func(e ops.EvidenceEpisode) string { return e.Folder }), func() error {
		return printDocumentEvidence(a, e)
	})
}

func printDocumentEvidence(a *app, d ops.DocumentEvidence) error {
	if err := a.table([][]string{
		{"document", d.Document},
		{"account", d.Place.Account},
		{"container", d.Place.Container},
		{"found", atLeast(d.Found, d.More) + " in " + d.Searched + ", the newest first"},
	}); err != nil {
		return err
	}
	for _, e := range d.Episodes {
		a.printf("")
		if err := printEpisode(a, e); err != nil {
			return err
		}
	}
	if more := d.Found - len(d.Episodes); more > 0 {
		a.printf("\nand %s more", atLeast(more, d.More))
	}
	return nil
}

func printEpisode(a *app, e ops.EvidenceEpisode) error {
	rows := [][]string{{"path", e.Path}, {"stored", a.time(e.At)}, {"main line", lineOr(e.Line, "unknown")}}
	if e.Incomplete {
		rows = append(rows, []string{
			"incomplete", "there is no " + commit.EvidenceMetadata + ": it is being stored, or what stored it was ended",
		})
	}
	attempts := [][]string{{"ATTEMPT", "KIND", "CODE", "REASON"}}
	if f := e.Failed; f != nil {
		rows = append(rows, []string{
			"failed",
			fmt.Sprintf("%s after %d retries: %s %s: %s", a.time(f.At), e.Retries, f.Kind, f.Code, oneLine(f.Error)),
		})
	}
	rows = append(rows, told([][]string{{"run", e.RunID}, {"invocation", e.InvocationID}})...)
	for _, t := range e.Attempts {
		attempts = append(attempts, []string{a.time(t.At), t.Kind, orDash(t.Code), oneLine(t.Error)})
	}
	if m := e.Metadata; m != nil {
		snapshot := fmt.Sprintf("%s of %s in %s, environment %s, content %s", m.ETag, a.time(time.Unix(m.TS, 0)),
			m.Container, m.SysName, m.ContentHash)
		rows = append(rows, []string{"snapshot", snapshot}, []string{"stored by", m.AppVersion})
	}
	for _, p := range e.Problems {
		rows = append(rows, []string{"problem", p})
	}
	if err := a.table(rows); err != nil {
		return err
	}
	files := [][]string{{"FILE", "BYTES", "ETAG", "STORED"}}
	for _, f := range e.Files {
		files = append(files, []string{f.Name, strconv.FormatInt(f.Size, 10), f.ETag, a.time(f.At)})
	}
	return a.tables(attempts, files)
}

type evidenceGetCommand struct {
	ID     string `arg:"" help:"The document's id; the document may be deleted."`
	File   string `help:"original.json, error.json or metadata.json." default:"original.json" placeholder:"FILE"`
	Folder string `help:"A folder that show names, in place of the newest complete evidence." placeholder:"FOLDER"`
	Line   int64  `help:"Search only the folders of this main line, and do not ask for the document." placeholder:"LINE"`
}

// Run prints the file, whatever -o says.
func (c *evidenceGetCommand) Run(ctx context.Context, a *app) error {
	q := ops.EvidenceFileQuery{
		EvidenceOfDocument: ops.EvidenceOfDocument{ID: c.ID, Line: c.Line}, File: c.File, Folder: c.Folder,
	}
	content, err := ask(ctx, a, opsapi.EvidenceGet, q)
	if err != nil {
		return err
	}
	a.notef("%s/%s", content.Folder, content.File)
	if text := string(content.Content); !a.shows {
		a.print(text) // byte by byte, for a file
	} else {
		for line := range strings.Lines(text) {
			a.printf("%s", strings.TrimSuffix(line, "\n"))
		}
	}
	return nil
}
