package sqlserver

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/microsoft/go-mssqldb/msdsn"

	"sqlwriter/internal/adopt"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/migration"
	"sqlwriter/internal/sqlstore"
)

// WriteSteps and PreviewSteps are the names of a request's parts.
func WriteSteps() []string   { return writeSteps() }
func PreviewSteps() []string { return previewSteps() }

// StepFiles lists the templates.
func StepFiles() ([]string, error) { return stepFiles() }

// Step is a part of a request, produced.
type Step struct{ Name, Text string }

// Produced are the parts of a write and of a preview for a layout.
func Produced(l invoice.Layout) (write, preview []Step, err error) {
	t, err := tablesOf(Options{Layout: l})
	if err != nil {
		return nil, nil, err
	}
	for _, p := range []struct {
		ledger string
		names  []string
		to     *[]Step
	}{{ledgerTable, writeSteps(), &write}, {ledgerCopy, previewSteps(), &preview}} {
		steps, err := t.produce(p.ledger, p.names)
		if err != nil {
			return nil, nil, err
		}
		for _, s := range steps {
			*p.to = append(*p.to, Step{s.name, s.text})
		}
	}
	return write, preview, nil
}

// Kept is the step that a write has where the user's texts are of one code page: all of them.
func Kept() (string, error) {
	t, err := tablesOf(Options{})
	if err != nil {
		return "", err
	}
	t.lossy = map[string]bool{}
	for _, c := range t.layout.Columns {
		t.lossy[label(c)] = c.Kind == invoice.Text
	}
	steps, err := t.produce(ledgerTable, []string{"kept"})
	if err != nil {
		return "", err
	}
	return steps[0].text, nil
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
func (s *Store) WriteText() string   { return s.texts.Load().write }
func (s *Store) PreviewText() string { return s.texts.Load().preview }

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
	was := s.texts.Load()
	other := *s
	other.texts = &atomic.Pointer[texts]{}
	other.texts.Store(&texts{write: change(was.write), preview: was.preview})
	return &other
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

// Probed is what Probe makes of the server's answer.
func Probed(updateability string) error { return probed(updateability) }

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
