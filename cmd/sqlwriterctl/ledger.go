package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"sqlwriter/internal/adopt"
	"sqlwriter/internal/app/open"
	"sqlwriter/internal/config"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/store/sqlite"
)

// ledgerCommand is about the ledger of a database that somebody else has written to (docs/cutover.md).
type ledgerCommand struct {
	Adopt  ledgerAdoptCommand  `cmd:"" help:"Write ledger rows for what was committed before us. Goes on where it was stopped. Never touches the user's tables."`
	Status ledgerStatusCommand `cmd:"" help:"Show how far the adoption is. Exit code 1 unless the app may commit."`
	Reopen ledgerReopenCommand `cmd:"" help:"Say that somebody else writes again: the app does not commit until the next adopt."`
}

// ledgerAdoptCommand adopts.
type ledgerAdoptCommand struct {
	DryRun bool `help:"Write nothing, and count what a whole run would do now."`
	Empty  bool `help:"Say that nothing was written before us. Refused where the container has committed documents."`
	Rate   int  `help:"Read at most so many documents a second." placeholder:"N"`
	Yes    bool `help:"Adopt once more although it is done; or say --empty although documents are committed."`
	JSON   bool `name:"json" help:"Print JSON."`
}

// mostSkipped is how many skipped documents are named.
const mostSkipped = 20

// progressEvery is the least time between two lines of progress.
const progressEvery = 2 * time.Second

// Run does what the flags say.
func (c *ledgerAdoptCommand) Run(ctx context.Context, a *app) (err error) {
	if c.Empty && (c.DryRun || c.Rate > 0) {
		return &usageError{errors.New("--empty reads nothing: it goes with --yes alone")}
	}
	if c.Rate < 0 {
		return &usageError{errors.New("--rate: expected a number of documents a second")}
	}
	documents, from, err := a.openDocuments(ctx)
	if err != nil {
		return err
	}
	defer documents.Close()
	db, err := connectSQL(ctx, from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	sysName := from.sysName()
	a.notef("environment: %s (%s)", sysName, config.SysName)
	if c.Empty {
		return c.empty(ctx, a, documents, db, sysName)
	}
	return c.adopt(ctx, a, documents, db, sysName)
}

// adopt runs the adoption, or the dry run of one.
func (c *ledgerAdoptCommand) adopt(ctx context.Context, a *app, documents adopt.Documents, db *open.Database, sysName string) error {
	before, err := db.State(ctx)
	if err != nil {
		return err
	}
	if before.Adopted() && !c.Yes && !c.DryRun {
		a.notef("adopted already: %s; --yes adopts once more", phrase(before))
		return c.print(a, before)
	}
	ledger := adopt.Ledger(db)
	if c.DryRun {
		scratch, err := newScratch(ctx)
		if err != nil {
			return err
		}
		defer scratch.remove(a)
		ledger = adopt.Preview(db, scratch)
		a.notef("dry run: nothing is written")
	} else if before.Phase == adopt.Running && before.Watermark > 0 {
		a.notef("going on with the run of %s, begun %s by %s", until(before.Watermark), stamp(before.Started), before.By)
	}
	w := watch{a: a, began: time.Now()}
	after, err := adopt.New(documents, ledger, adopt.Options{
		SysName: sysName, By: who(), Rate: c.Rate, WriterMayWork: c.DryRun, OnPage: w.page, OnSkip: w.skip,
	}).Run(ctx)
	w.end()
	if err != nil {
		if c.DryRun {
			return err
		}
		return fmt.Errorf("%w\nwhat was adopted stays; the same command goes on from there", err)
	}
	return c.print(a, after)
}

// empty says that the database has no history, unless the container shows one.
func (c *ledgerAdoptCommand) empty(ctx context.Context, a *app, documents adopt.Documents, db *open.Database, sysName string) error {
	before, err := db.State(ctx)
	if err != nil {
		return err
	}
	switch {
	case before.Adopted():
		a.notef("nothing to do: %s", phrase(before))
		return nil
	case before.Phase == adopt.Running:
		return errors.New("an adoption was begun: bring it to its end with sqlwriterctl ledger adopt")
	}
	id, err := committed(ctx, documents, sysName)
	if err != nil {
		return err
	}
	if id != "" && !c.Yes {
		return fmt.Errorf("the container has committed documents, %q among them: adopt them (sqlwriterctl ledger adopt), or say --yes "+
			"if their lines are not in this database", id)
	}
	if err := db.MarkEmpty(ctx, who()); err != nil {
		return err
	}
	a.printf("the database has no history: the app may commit")
	return nil
}

// committed answers the id of a committed document of the environment, or "".
func committed(ctx context.Context, documents adopt.Documents, sysName string) (id string, err error) {
	const always = 1 << 53
	err = documents.Window(ctx, sysName, 0, always, func(page []json.RawMessage) (bool, error) {
		for _, raw := range page {
			if d, err := invoice.Read(raw, time.Now()); err == nil && d.State.Status == invoice.Committed {
				id = d.ID
				return false, nil
			}
		}
		return true, nil
	})
	return id, err
}

// print shows the receipt.
func (c *ledgerAdoptCommand) print(a *app, s adopt.State) error {
	if c.JSON {
		return printJSON(a, receiptOf(s))
	}
	return receiptOf(s).print(a)
}

// receipt is what a run has seen and done; --json prints it as it is.
type receipt struct {
	State    adopt.Phase `json:"state"`
	By       string      `json:"who"`
	Started  *time.Time  `json:"started"`
	Finished *time.Time  `json:"finished"`
	adopt.Counts
	Older int `json:"older"`
}

func receiptOf(s adopt.State) receipt {
	r := receipt{State: s.Phase, By: s.By, Counts: s.Counts, Older: s.Counts.Older()}
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
		{"lines", strconv.Itoa(r.Lines), "that they name"},
	}
	add := func(n int, name, meaning string) {
		if n > 0 {
			rows = append(rows, []string{name, strconv.Itoa(n), meaning})
		}
	}
	if r.State == adopt.Done {
		add(r.Adopted, "  adopted", "the newest result of the line")
		add(r.Marked, "  marked", "the newest result of the line failed")
		add(r.Known, "  known", "the ledger had the document already")
		add(r.Older, "  older", "the ledger has a newer document for the line")
	}
	add(r.Unproven, "unproven", "documents changed after they were committed: a later snapshot of them is written")
	for _, reason := range slices.Sorted(maps.Keys(r.Skipped)) {
		add(r.Skipped[reason], "skipped", string(reason)+": "+reason.Meaning())
	}
	add(r.Open, "open", "documents that wait; they are written when the app is live")
	add(r.Processing, "processing", "of these are with the old writer, or were left behind by it")
	return a.table(rows)
}

// watch tells of a run while it is under way.
type watch struct {
	a           *app
	began, last time.Time
	first       int
	seen        bool
	skipped     int
}

// page writes a line of progress, not too often.
func (w *watch) page(p adopt.Progress) {
	if !w.seen {
		w.seen, w.first, w.last = true, p.Counts.Documents, w.began
	}
	now := time.Now()
	if now.Sub(w.last) < progressEvery {
		return
	}
	w.last = now
	rate := float64(p.Counts.Documents-w.first) / now.Sub(w.began).Seconds()
	w.a.notef("adopt: %d documents, %d lines, up to %s, %.0f documents/s", p.Counts.Documents, p.Counts.Lines, stamp(p.Until), rate)
}

// skip names the first few documents that say nothing for the ledger.
func (w *watch) skip(id string, reason adopt.Reason) {
	if w.skipped++; w.skipped <= mostSkipped {
		w.a.notef("skipped %q: %s", id, reason.Meaning())
	}
}

func (w *watch) end() {
	if more := w.skipped - mostSkipped; more > 0 {
		w.a.notef("skipped %d more", more)
	}
}

// ledgerStatusCommand shows how far the adoption is.
type ledgerStatusCommand struct {
	JSON bool `name:"json" help:"Print JSON."`
}

// Run shows it. It changes nothing.
func (c *ledgerStatusCommand) Run(ctx context.Context, a *app) error {
	return a.withSQL(ctx, func(db *open.Database) error {
		s, err := db.State(ctx)
		if err != nil {
			return err
		}
		if c.JSON {
			err = printJSON(a, receiptOf(s))
		} else {
			a.printf("%s", phrase(s))
		}
		if err == nil && !s.Adopted() {
			return errors.New("the app does not commit: sqlwriterctl ledger adopt")
		}
		return err
	})
}

// ledgerReopenCommand takes back that the ledger can be relied on.
type ledgerReopenCommand struct {
	Yes bool `help:"Do it: an app that starts from now on does not commit until the next adopt."`
}

// Run does so by beginning a run that has seen nothing yet; adopt goes on with it. An app that is ready already is not
// stopped by it.
func (c *ledgerReopenCommand) Run(ctx context.Context, a *app) error {
	if !c.Yes {
		return &usageError{errors.New("an app that starts from now on will not commit until the next adopt: say --yes, with the app stopped")}
	}
	return a.withSQL(ctx, func(db *open.Database) error {
		s, err := db.State(ctx)
		if err != nil {
			return err
		}
		if !s.Adopted() {
			a.printf("nothing to do: %s", phrase(s))
			return nil
		}
		if _, err := db.Begin(ctx, s, who()); err != nil {
			return err
		}
		a.printf("reopened: the app does not commit until the next adopt")
		return nil
	})
}

// phrase says a state in words.
func phrase(s adopt.State) string {
	switch s.Phase {
	case adopt.Running:
		return fmt.Sprintf("running: begun %s by %s, %s", stamp(s.Started), s.By, until(s.Watermark))
	case adopt.Done:
		return fmt.Sprintf("done: adopted %s by %s, %d documents", stamp(s.Finished), s.By, s.Counts.Documents)
	case adopt.Empty:
		return fmt.Sprintf("empty: said %s by %s", stamp(s.Finished), s.By)
	}
	return "nothing was said yet about what was written before"
}

// until says how far a run is.
func until(watermark int64) string {
	switch at := time.Unix(watermark, 0); {
	case watermark == 0:
		return "nothing read yet"
	case at.After(time.Now()):
		return "read to the end"
	default:
		return "read up to " + stamp(at)
	}
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }

// who is the user and the machine.
func who() string {
	name, host := "unknown", "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if h, err := os.Hostname(); err == nil {
		host = h
	}
	return name + "@" + host
}

// sysName is the environment of the source.
func (s source) sysName() string { return s.config().SysName }

// scratch is a ledger in a temporary file, for a dry run.
type scratch struct {
	*sqlite.Store
	dir string
}

func newScratch(ctx context.Context) (*scratch, error) {
	dir, err := os.MkdirTemp("", "sqlwriterctl-")
	if err != nil {
		return nil, fmt.Errorf("dry run: %w", err)
	}
	store, err := sqlite.Open(ctx, filepath.Join(dir, "scratch.db"), sqlite.Options{})
	if err == nil {
		err = store.Migrate(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("dry run: %w", err), os.RemoveAll(dir))
	}
	return &scratch{Store: store, dir: dir}, nil
}

func (s *scratch) remove(a *app) {
	if err := errors.Join(s.Close(), os.RemoveAll(s.dir)); err != nil {
		a.notef("dry run: %v", err)
	}
}
