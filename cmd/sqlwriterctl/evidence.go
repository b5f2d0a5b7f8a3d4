package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/opsapi"
)

type evidenceCommands struct {
	List  evidenceListCommand  `cmd:"" help:"List the evidence of poison messages, in the order of its folders' names: line, document. It is not the order of time."`
	Show  evidenceShowCommand  `cmd:"" help:"Show where a document's evidence is, and what it says of each failure."`
	Get   evidenceGetCommand   `cmd:"" help:"Print a file of a document's evidence as it is stored. It needs the role Operator."`
	Prune evidencePruneCommand `cmd:"" help:"Delete evidence of failed documents that do not exist any more."`
}

type evidencePruneCommand struct {
	whyFlag
	yesFlag

	AllGone   bool   `help:"Also when 20 documents or more have evidence, and none of them exists."`
	OlderThan string `name:"older-than" required:"" help:"Only evidence that was stored before: 90d or 2w ago, a date (2026-01-31) or a time; a day ago at least." placeholder:"TIME"`
	DryRun    bool   `help:"Count and list, and delete nothing."`
}

// Run counts the evidence, asks, and deletes it.
func (c *evidencePruneCommand) Run(ctx context.Context, a *app) error {
	before, err := a.moment("--older-than", c.OlderThan)
	if err != nil {
		return err
	}
	r := ops.PruneRequest{Before: before, AllGone: c.AllGone, DryRun: c.DryRun, Why: c.Why}
	if !c.DryRun {
		if err := a.mayConfirm(c.Yes); err != nil {
			return err
		}
	}
	return a.operate(ctx, func(o opsapi.Caller) error {
		if !c.DryRun && !c.Yes {
			counting := r
			counting.DryRun = true
			counted, err := opsapi.Do(ctx, o, opsapi.EvidencePrune, counting)
			if err != nil {
				return err
			}
			if counted.Folders == 0 {
				return emitPruned(a, counted)
			}
			if err := a.confirm(c.Yes, fmt.Sprintf("The evidence of %s of %s that %s not exist any more will be deleted.",
				folders(counted.Folders), documentsThere(counted.Documents), ops.Plural(counted.Documents, "does", "do"))); err != nil {
				return err
			}
		}
		done, err := opsapi.Do(ctx, o, opsapi.EvidencePrune, r)
		var lost *opsapi.LostError
		switch {
		case errors.As(err, &lost) && !c.DryRun:
			return &advisedError{fmt.Errorf("no answer came, and evidence may have been deleted: %w", err), "run it again: it goes on with the rest"}
		case err != nil:
			return err
		}
		return emitPruned(a, done)
	})
}

func folders(n int) string { return strconv.Itoa(n) + " " + ops.Plural(n, "failure", "failures") }

func documentsThere(n int) string {
	return strconv.Itoa(n) + " " + ops.Plural(n, "document", "documents")
}

func emitPruned(a *app, p ops.Pruned) error {
	if p.More {
		a.notef("there may be more: run it again")
	}
	if p.Folders > len(p.First) {
		a.notef("only %d of %s folders are listed", len(p.First), atLeast(p.Folders, p.More))
	}
	return a.emit(p, idsOf(p.First, func(f ops.PrunedFolder) string { return f.Folder }), func() error {
		switch {
		case p.Folders == 0:
			a.printf("no evidence is of a document that does not exist any more")
			return nil
		case p.DryRun:
			a.printf("the evidence of %s of %s would be deleted", folders(p.Folders), documentsThere(p.Documents))
		default:
			a.printf("the evidence of %s of %s was deleted: %d %s", folders(p.Folders), documentsThere(p.Documents), p.Files, ops.Plural(p.Files, "file", "files"))
		}
		rows := [][]string{{"FOLDER", "STORED", "DOCUMENT"}}
		for _, f := range p.First {
			rows = append(rows, []string{f.Folder, a.time(f.At), f.Document})
		}
		if err := a.table(rows); err != nil {
			return err
		}
		if more := p.Folders - len(p.First); more > 0 {
			a.printf("and %s more", atLeast(more, p.More))
		}
		return nil
	})
}

type evidenceListCommand struct {
	Code  string `help:"Only documents whose last error had this code." placeholder:"CODE"`
	Line  int64  `help:"Only documents with this main line." placeholder:"LINE"`
	Since string `help:"Only evidence that was stored since: 90m, 1d or 2w ago, a date (2026-01-31) or a time." placeholder:"TIME"`
	Until string `help:"Only evidence that was stored before." placeholder:"TIME"`
	Limit int    `help:"At most N, 1,000 at most." default:"50" placeholder:"N"`
	Page  string `help:"Continue where a list ended; the list before names it." placeholder:"PAGE"`
}

// Run lists the evidence.
func (c *evidenceListCommand) Run(ctx context.Context, a *app) error {
	if err := (limitFlag{c.Limit}).check(); err != nil {
		return err
	}
	since, until, err := a.period(c.Since, c.Until)
	if err != nil {
		return err
	}
	q := ops.EvidenceQuery{Code: c.Code, Line: c.Line, Since: since, Until: until, Limit: c.Limit, Page: c.Page}
	return a.operate(ctx, func(o opsapi.Caller) error {
		page, err := opsapi.Do(ctx, o, opsapi.EvidenceList, q)
		if err != nil {
			return err
		}
		if page.Next != "" {
			a.notef("there are more: --page %q continues", page.Next)
		}
		if page.Unreadable > 0 {
			a.notef("%s left out: %s error.json does not say the code", folders(page.Unreadable), ops.Plural(page.Unreadable, "its", "their"))
		}
		return a.emit(page, idsOf(page.Evidence, func(e ops.EvidenceRow) string { return e.Folder }), func() error { return printEvidence(a, page) })
	})
}

func printEvidence(a *app, page ops.EvidencePage) error {
	if len(page.Evidence) == 0 {
		says := "no evidence"
		if page.Next != "" {
			says = "no evidence as far as was looked"
		}
		a.printf("%s", says)
		return nil
	}
	a.notef("in the order of the folders' names (line, document), not of time")
	rows := [][]string{{"STORED", "LINE", "DOCUMENT", "KIND", "CODE", "REPLAYED BY", "FOLDER"}}
	for _, e := range page.Evidence {
		replayed := ""
		if e.Replayed != nil {
			replayed = e.Replayed.Run
		}
		rows = append(rows, []string{a.time(e.At), lineOr(e.Line), e.Document, orDash(e.Kind), orDash(e.Code), orDash(replayed), e.Folder})
		for _, p := range e.Problems {
			a.notef("%s: %s", e.Folder, p)
		}
	}
	return a.table(rows)
}

// lineOr is a main line; "unknown" as in the folder's name when it was unreadable.
func lineOr(line int64) string {
	if line == 0 {
		return "unknown"
	}
	return strconv.FormatInt(line, 10)
}

type evidenceShowCommand struct {
	ID   string `arg:"" help:"The document's id; the document may be deleted."`
	Line int64  `help:"Search only the folders of this main line, and do not ask for the document." placeholder:"LINE"`
}

// Run shows the evidence.
func (c *evidenceShowCommand) Run(ctx context.Context, a *app) error {
	return a.operate(ctx, func(o opsapi.Caller) error {
		e, err := opsapi.Do(ctx, o, opsapi.EvidenceShow, ops.EvidenceOfDocument{ID: c.ID, Line: c.Line})
		if err != nil {
			return err
		}
		if e.More {
			a.notef("not all folders were searched: --line LINE searches those of a main line")
		}
		return a.emit(e, idsOf(e.Episodes, func(e ops.EvidenceEpisode) string { return e.Folder }), func() error { return printDocumentEvidence(a, e) })
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
	rows := [][]string{{"path", e.Path}, {"stored", a.time(e.At)}, {"main line", lineOr(e.Line)}}
	if e.Incomplete {
		rows = append(rows, []string{"incomplete", "there is no " + commit.EvidenceMetadata + ": it is being stored, or what stored it was ended"})
	}
	attempts := [][]string{{"ATTEMPT", "KIND", "CODE", "REASON"}}
	if f := e.Failed; f != nil {
		rows = append(rows, []string{"failed", fmt.Sprintf("%s after %d retries: %s %s: %s", a.time(f.At), e.Retries, f.Kind, f.Code, oneLine(f.Error))})
	}
	if e.JobID != "" {
		rows = append(rows, []string{"tried by", e.JobID})
	}
	for _, t := range e.Attempts {
		attempts = append(attempts, []string{a.time(t.At), t.Kind, orDash(t.Code), oneLine(t.Error)})
	}
	if m := e.Metadata; m != nil {
		rows = append(rows, []string{"snapshot", fmt.Sprintf("%s of %s in %s, environment %s, content %s", m.ETag, a.time(time.Unix(m.TS, 0)), m.Container, m.SysName, m.ContentHash)},
			[]string{"stored by", m.AppVersion})
	}
	if r := e.Replayed; r != nil {
		rows = append(rows, []string{"replayed", fmt.Sprintf("by %s with run %s at %s, job %s", r.By, r.Run, a.time(r.At), r.JobID)})
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
	File   string `help:"original.json, error.json, metadata.json or replayed.json." default:"original.json" placeholder:"FILE"`
	Folder string `help:"A folder that the list or show names, in place of the newest complete evidence." placeholder:"FOLDER"`
	Line   int64  `help:"Search only the folders of this main line, and do not ask for the document." placeholder:"LINE"`
}

// Run prints the file, whatever -o says.
func (c *evidenceGetCommand) Run(ctx context.Context, a *app) error {
	q := ops.EvidenceFileQuery{EvidenceOfDocument: ops.EvidenceOfDocument{ID: c.ID, Line: c.Line}, File: c.File, Folder: c.Folder}
	return a.operate(ctx, func(o opsapi.Caller) error {
		content, err := opsapi.Do(ctx, o, opsapi.EvidenceGet, q)
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
	})
}
