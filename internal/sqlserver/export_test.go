package sqlserver

import (
	"context"
	"fmt"
	"time"

	"github.com/microsoft/go-mssqldb/msdsn"

	"sqlwriter/internal/adopt"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/migration"
	"sqlwriter/internal/sqlstore"
	"sqlwriter/internal/writer"
)

// WriteSteps, PreviewSteps and HeartbeatSteps are the names of a request's parts.
func WriteSteps() []string     { return writeSteps() }
func PreviewSteps() []string   { return previewSteps() }
func HeartbeatSteps() []string { return heartbeatSteps() }

// StepFiles lists the templates.
func StepFiles() ([]string, error) { return stepFiles() }

// Step is a part of a request, produced.
type Step struct{ Name, Text string }

// Produced are the parts of a write, of a preview and of a heartbeat for a layout.
func Produced(l invoice.Layout) (write, preview, heartbeat []Step, err error) {
	t, err := tablesOf(Options{Layout: l})
	if err != nil {
		return nil, nil, nil, err
	}
	for _, p := range []struct {
		ledger string
		names  []string
		to     *[]Step
	}{{ledgerTable, writeSteps(), &write}, {ledgerCopy, previewSteps(), &preview}, {ledgerTable, heartbeatSteps(), &heartbeat}} {
		steps, err := t.produce(p.ledger, p.names)
		if err != nil {
			return nil, nil, nil, err
		}
		for _, s := range steps {
			*p.to = append(*p.to, Step{s.name, s.text})
		}
	}
	return write, preview, heartbeat, nil
}

// SampleText is the sample schema.
func SampleText() (string, error) {
	t, err := tablesOf(Options{})
	if err != nil {
		return "", err
	}
	return t.sampleText()
}

// WriteText and PreviewText are the requests as they are sent.
func (s *Store) WriteText() string   { return s.texts.write }
func (s *Store) PreviewText() string { return s.texts.preview }

// KnowCodePages makes the question that a store's first request makes before the request itself.
func (s *Store) KnowCodePages(ctx context.Context) error {
	_, _, err := s.pages.current(ctx)
	return err
}

// With is the store with something run after one step of a write; it shares the connections.
func (s *Store) With(after, text string) (*Store, error) {
	steps, err := s.tables.produce(ledgerTable, writeSteps())
	if err != nil {
		return nil, err
	}
	for i := range steps {
		if steps[i].name == after {
			steps[i].text += "\n" + text + "\n"
			return s.WithText(func(string) string { return join(steps) }), nil
		}
	}
	return nil, fmt.Errorf("no step %q", after)
}

// WithText is the store with another text of a write.
func (s *Store) WithText(change func(text string) string) *Store {
	other := *s
	other.texts.write = change(s.texts.write)
	return &other
}

// CodePages are the columns' code pages as a test gives them.
type CodePages struct{ pages *codePages }

// NewCodePages reads the code pages from the test.
func NewCodePages(read func(context.Context) ([]int, error), now func() time.Time) CodePages {
	return CodePages{&codePages{columns: invoice.Columns(), read: read, now: now}}
}

// Apply is what Apply does before and after a request.
func (c CodePages) Apply(ctx context.Context, items []writer.Item, apply func([]writer.Item) ([]writer.Outcome, error)) ([]writer.Outcome, error) {
	refused, err := c.pages.refused(ctx, items)
	if err != nil {
		return nil, err
	}
	return apart(items, refused, apply)
}

// Lacks gives the first character of a text that a code page has not; known is false for a number that is none.
func Lacks(number int, text string) (r rune, lacks, known bool) {
	page := newCodePage(number)
	if page == nil {
		return 0, false, false
	}
	r, lacks = page.lacks(text)
	return r, lacks, true
}

// Characters counts the characters of a code page.
func Characters(number int) int { return len(newCodePage(number).has) }

// NoteOn is what the check notes of a column of a type and code page.
func NoteOn(kind string, codePage int) []string {
	f := &Findings{}
	c := invoice.Columns()[0]
	checkColumn("dbo.T", c, found{name: c.Name, kind: kind, length: -1, nullable: true, codePage: codePage}, f)
	return append(f.Differences, f.Notes...)
}

// Classify is what Apply makes of a driver's error.
func Classify(err error) error { return classify("sqlserver: test", err) }

// Outside is what connecting, checking and migrating make of a driver's error.
func Outside(err error) error { return outside("sqlserver: test", err) }

// Rule is one row of the table of errors.
type Rule struct {
	Numbers        []int32
	Kind           fault.Kind
	Condition      fault.Condition
	Reason, Source string
}

// Rules is the table of errors.
func Rules() []Rule {
	var out []Rule
	for _, r := range rules() {
		out = append(out, Rule{r.numbers, r.kind, r.condition, r.reason, r.source})
	}
	return out
}

// Parameters are what the driver is given for a connection string.
func Parameters(dsn string) (map[string]string, error) {
	safe, _, err := withDefaults(dsn)
	if err != nil {
		return nil, err
	}
	config, err := msdsn.Parse(safe)
	return config.Parameters, err
}

// MigrateWith runs migrations that no file has.
func (s *Store) MigrateWith(ctx context.Context, files ...migration.File) error {
	return s.migrate(ctx, files)
}

// AdoptionText is a statement of the adoption.
func AdoptionText(name string) string { return adoptionText(name) }

// PageWith is Page with another text.
func (s *Store) PageWith(ctx context.Context, p adopt.Page, change func(text string) string) (adopt.Written, error) {
	return s.page(ctx, change(adoptionText("page")), p)
}

// Refused is what Heartbeat makes of a driver's error.
func Refused(err error) error { return refused(err) }

// JournalTexts are the statements of the journal.
func JournalTexts() (map[string]string, error) {
	t, err := tablesOf(Options{})
	if err != nil {
		return nil, err
	}
	return sqlstore.JournalTexts(t.journalWords())
}

// ReportTexts are the statements of the reports.
func ReportTexts() (map[string]string, error) { return sqlstore.ReportTexts(reportWords()) }

// RunTexts are the statements about runs.
func RunTexts() (map[string]string, error) {
	t, err := tablesOf(Options{})
	if err != nil {
		return nil, err
	}
	return sqlstore.RunTexts(t.runWords())
}
