package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/user"
	"slices"
	"strconv"
	"time"

	"sqlwriter/internal/adopt"
	"sqlwriter/internal/app/open"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/config"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
)

// ledgerCommands groups the commands about the ledger of a database that another program has written to
// (docs/cutover.md).
type ledgerCommands struct {
	Adopt  ledgerAdoptCommand  `cmd:"" help:"Write ledger rows for results that other programs committed. Continues where it was stopped. Never touches the user's tables."`
	Status ledgerStatusCommand `cmd:"" help:"Show the progress of the adoption. Exit code 1 unless the app may commit."`
	Reopen ledgerReopenCommand `cmd:"" help:"Record that another program writes again: the app does not commit until the next adopt."`
}

type ledgerAdoptCommand struct {
	DryRun bool   `help:"Write nothing, and count what a full run would read now."`
	Before string `help:"For a copy from before the adoption: leave out what ended after the time of the copy. 90m, 1d or 2w ago, a date (2026-01-31) or a time." placeholder:"TIME"`
	Empty  bool   `help:"Record that no other program has written results. Refused if the container has committed documents."`
	Rate   int    `help:"Read at most N documents a second." placeholder:"N"`
	Yes    bool   `help:"Adopt again after a finished adoption; or confirm --empty although documents are committed."`
}

// maxSkipped is how many skipped documents are named.
const maxSkipped = 20

// progressEvery is the shortest time between two lines of progress.
const progressEvery = 2 * time.Second

// Run adopts the database, previews that, or records that there is nothing to adopt.
func (c *ledgerAdoptCommand) Run(ctx context.Context, a *app) (err error) {
	if c.Empty && (c.DryRun || c.Rate > 0 || c.Before != "") {
		return usagef("--empty reads nothing: it can be combined with --yes only")
	}
	if c.Rate < 0 {
		return usagef("--rate: expected a number of documents a second")
	}
	s, err := a.connections(ctx)
	if err != nil {
		return err
	}
	container, err := s.documents()
	if err != nil {
		return err
	}
	defer container.Close()
	db, err := a.database(ctx, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	of := s.config()
	a.notef("environment: %s (%s)", of.SysName, config.SysName)
	if c.Empty {
		return c.empty(ctx, a, container, db, of)
	}
	return c.adopt(ctx, a, container, db, of)
}

// adopt runs the adoption, or the dry run of one.
func (c *ledgerAdoptCommand) adopt(
	ctx context.Context, a *app, documents commit.Finder, db *open.Database, of config.Config,
) error {
	bound, err := a.moment("--before", c.Before)
	if err != nil {
		return err
	}
	before, err := db.State(ctx)
	if err != nil {
		return err
	}
	if before.Adopted() && !c.Yes && !c.DryRun {
		a.notef("adopted already: %s; --yes adopts again", a.describeAdoption(before))
		return c.print(a, before)
	}
	if c.DryRun {
		a.notef("dry run: nothing is written")
	} else if before.Phase == adopt.Running && before.Watermark > 0 {
		if found := before.Counts.Before; !bound.Equal(found) {
			return usagef("--before: expected that of the unfinished adoption (%s), found %s: finish it, then adopt again with --yes",
				a.time(found), a.time(bound))
		}
		a.notef("continuing the adoption that %s started at %s: %s", before.By, a.time(before.Started),
			a.readUpTo(before.Watermark))
	}
	w := adoptProgress{a: a, began: time.Now()}
	after, err := adopt.New(documents, db, adopt.Options{
		SysName: of.SysName, Reader: open.Reader(db.Mapping), By: operatorName(), Before: bound, Rate: c.Rate,
		DryRun: c.DryRun, OnPage: w.page, OnSkip: w.skip,
	}).Run(ctx)
	w.end()
	if err != nil {
		if c.DryRun {
			return err
		}
		return advised(err, "adopted documents stay adopted; the same command continues from there")
	}
	return c.print(a, after)
}

// empty records that the database has no history, unless the container shows one.
func (c *ledgerAdoptCommand) empty(
	ctx context.Context, a *app, documents commit.Finder, db *open.Database, of config.Config,
) error {
	before, err := db.State(ctx)
	if err != nil {
		return err
	}
	switch {
	case before.Adopted():
		a.notef("nothing to do: %s", a.describeAdoption(before))
		return nil
	case before.Phase == adopt.Running:
		return errors.New("an adoption has started: finish it with `sqlwriterctl ledger adopt`")
	}
	id, err := committed(ctx, documents, of.SysName, open.Reader(db.Mapping))
	if err != nil {
		return err
	}
	if id != "" && !c.Yes {
		return fmt.Errorf(
			"the container has committed documents, such as %q: adopt them (`sqlwriterctl ledger adopt`); only "+
				"`sqlwriterctl ledger adopt --empty --yes` says that their lines are not in this database", id)
	}
	if err := db.MarkEmpty(ctx, operatorName()); err != nil {
		return err
	}
	a.printf("the database has no history: the app may commit")
	return nil
}

// committed returns the id of a committed document of the environment, or "".
func committed(
	ctx context.Context, documents commit.Finder, sysName string, by invoice.Reader,
) (id string, err error) {
	q := commit.Query{SysName: sysName, To: 1 << 53, Members: by.Mapping.Members(), Size: commit.MaxPage}
	err = commit.Each(ctx, documents, q, func(page commit.Page) (bool, error) {
		for _, raw := range page.Documents {
			if d, err := by.Read(raw, time.Now()); err == nil && d.State.Status == invoice.Committed {
				id = d.ID
			}
		}
		return id == "", nil
	})
	return id, err
}

func (c *ledgerAdoptCommand) print(a *app, s adopt.State) error {
	return a.emit(receiptOf(s), []string{string(s.Phase)}, func() error { return receiptOf(s).print(a) })
}

// receipt is the result of an adoption, for programs.
type receipt struct {
	State    adopt.Phase `json:"state"`
	By       string      `json:"who"`
	Started  *time.Time  `json:"started"`
	Finished *time.Time  `json:"finished"`
	adopt.Counts
	Kept int `json:"kept"`
}

func receiptOf(s adopt.State) receipt {
	r := receipt{State: s.Phase, By: s.By, Counts: s.Counts, Kept: s.Counts.Kept()}
	if !s.Started.IsZero() {
		r.Started = &s.Started
	}
	if !s.Finished.IsZero() {
		r.Finished = &s.Finished
	}
	return r
}

func (r receipt) print(a *app) error {
	rows := [][]string{
		{"documents", strconv.Itoa(r.Documents), "committed or failed"},
		{"lines", strconv.Itoa(r.Lines), "named by these documents"},
	}
	add := func(n int, name, meaning string) {
		if n > 0 {
			rows = append(rows, []string{name, strconv.Itoa(n), meaning})
		}
	}
	if r.State == adopt.Done {
		add(r.Adopted, "  adopted", "the newest result of the line")
		add(r.Marked, "  marked", "the newest result of the line failed")
		add(r.Kept, "  kept", "the ledger had the document already, or has a newer one for the line")
	}
	add(r.Unproven, "unproven", "documents that changed after the commit: a later snapshot of them is written")
	for _, reason := range slices.Sorted(maps.Keys(r.Skipped)) {
		add(r.Skipped[reason], "skipped", string(reason)+": "+reason.Meaning())
	}
	add(r.Open, "open", "documents that wait; the app writes them when it is live")
	add(r.Processing, "processing", "of these are in work at the old writer, or were abandoned by it")
	return a.table(rows)
}

// adoptProgress reports the progress of an adoption.
type adoptProgress struct {
	a           *app
	began, last time.Time
	first       int
	seen        bool
	skipped     int
}

// page writes a line of progress, at most one per progressEvery.
func (w *adoptProgress) page(p adopt.Progress) {
	if !w.seen {
		w.seen, w.first, w.last = true, p.Counts.Documents, w.began
	}
	now := time.Now()
	if now.Sub(w.last) < progressEvery {
		return
	}
	w.last = now
	rate := float64(p.Counts.Documents-w.first) / now.Sub(w.began).Seconds()
	w.a.notef("adopt: %d documents, %d lines, up to %s, %.0f documents/s", p.Counts.Documents, p.Counts.Lines,
		w.a.time(p.Until), rate)
}

// skip names the first maxSkipped skipped documents.
func (w *adoptProgress) skip(id string, reason adopt.Reason) {
	if w.skipped++; w.skipped <= maxSkipped {
		w.a.notef("skipped %q: %s", id, reason.Meaning())
	}
}

func (w *adoptProgress) end() {
	if more := w.skipped - maxSkipped; more > 0 {
		w.a.notef("skipped %d more", more)
	}
}

type ledgerStatusCommand struct{}

// Run shows the state of the adoption. It changes nothing.
func (c *ledgerStatusCommand) Run(ctx context.Context, a *app) error {
	return a.withSQL(ctx, func(db *open.Database) error {
		s, err := db.State(ctx)
		if err != nil {
			return err
		}
		err = a.emitLine(receiptOf(s), string(s.Phase), "%s", a.describeAdoption(s))
		if err == nil && !s.Adopted() {
			return advised(errors.New("the app does not commit, because the database is not adopted"),
				"`sqlwriterctl ledger adopt` adopts it (docs/cutover.md)")
		}
		return err
	})
}

type ledgerReopenCommand struct{ yesFlag }

// Run starts an adoption without progress; adopt continues it. It does not stop an app that is ready.
func (c *ledgerReopenCommand) Run(ctx context.Context, a *app) error {
	if err := a.mayConfirm(c.Yes); err != nil {
		return err
	}
	return a.withSQL(ctx, func(db *open.Database) error {
		s, err := db.State(ctx)
		if err != nil {
			return err
		}
		if !s.Adopted() {
			a.printf("nothing to do: %s", a.describeAdoption(s))
			return nil
		}
		if err := a.confirm(c.Yes,
			"An app that starts from now on will not commit until the next adopt: stop the app first."); err != nil {
			return err
		}
		if _, err := db.Begin(ctx, s, operatorName()); err != nil {
			return err
		}
		a.printf("reopened: the app does not commit until the next adopt")
		return nil
	})
}

// describeAdoption says how far an adoption is.
func (a *app) describeAdoption(s adopt.State) string {
	switch s.Phase {
	case adopt.Running:
		return fmt.Sprintf("running: started %s by %s, %s", a.time(s.Started), s.By, a.readUpTo(s.Watermark))
	case adopt.Done:
		return fmt.Sprintf("done: adopted %s by %s, %d %s", a.time(s.Finished), s.By, s.Counts.Documents,
			ops.Plural(s.Counts.Documents, "document", "documents"))
	case adopt.Empty:
		return fmt.Sprintf("empty: confirmed %s by %s", a.time(s.Finished), s.By)
	}
	return "not adopted: it is unknown what other programs have written"
}

// readUpTo describes the progress of an adoption; watermark is in Unix seconds.
func (a *app) readUpTo(watermark int64) string {
	switch at := time.Unix(watermark, 0); {
	case watermark == 0:
		return "nothing read yet"
	case at.After(time.Now()):
		return "read to the end"
	default:
		return "read up to " + a.time(at)
	}
}

// operatorName returns the user and the machine, as USER@HOST.
func operatorName() string {
	name, host := "unknown", "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if h, err := os.Hostname(); err == nil {
		host = h
	}
	return name + "@" + host
}
