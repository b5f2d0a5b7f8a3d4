package sqlserver

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/microsoft/go-mssqldb/msdsn"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/store/migration"
	"sqlwriter/internal/store/shared"
	"sqlwriter/test/mapping"
)

func ApplySteps() []string { return applySteps() }

func OwnerDifference(procedure, owner, name, other string) string {
	return ownerDifference(procedure, owner, name, other)
}
func BrokenOwnershipChain(err error) (string, error) { return brokenOwnershipChain(err) }

func NormalizeLineEnds(text string) string { return normalizeLineEnds(text) }

// StepFiles lists the templates.
func StepFiles() ([]string, error) { return fs.Glob(sqlFiles, "sql/*.sql") }

// Step is a rendered part of a procedure.
type Step struct{ Name, Text string }

// Procedure is the text that creates a procedure, with its steps.
type Procedure struct {
	Name, Text string
	Steps      []Step
}

// Produced returns the procedures of a mapping by name without the hash, and the hash.
func Produced(m *invoice.Mapping) (map[string]Procedure, string, error) {
	t, err := tablesOf(Options{Mapping: m})
	if err != nil {
		return nil, "", err
	}
	set, err := t.procedures()
	if err != nil {
		return nil, "", err
	}
	list := map[string]Procedure{}
	for _, p := range set.list {
		made := Procedure{Name: p.qualified(set.hash), Text: p.text("hash")}
		for _, s := range p.steps {
			made.Steps = append(made.Steps, Step{s.name, s.text})
		}
		list[p.name] = made
	}
	return list, set.hash, nil
}

func SampleText() (string, error) {
	t, err := tablesOf(Options{})
	if err != nil {
		return "", err
	}
	schema, err := t.sampleText(sampleSchema)
	if err != nil {
		return "", err
	}
	rows, err := t.sampleText(sampleRows)
	return schema + "GO\n" + rows, err
}

// UserTexts are the texts that make the app's user.
func UserTexts(u SetUp) ([]string, error) {
	t, err := tablesOf(Options{})
	if err != nil {
		return nil, err
	}
	return u.texts(t)
}

// KnowColumns reads the columns, as the first request does.
func (s *Store) KnowColumns(ctx context.Context) error {
	_, _, err := s.limits.current(ctx)
	return err
}

// KnowColumnsAnew reads the columns again, which a request does every five minutes.
func (s *Store) KnowColumnsAnew(ctx context.Context) error {
	_, err := s.limits.refresh(ctx)
	return err
}

// With is the store with text run after one step of a write and a rewrite. Its procedures are installed; the
// connections are shared.
func (s *Store) With(ctx context.Context, after, text string) (*Store, error) {
	add := func(steps []step) error {
		for i := range steps {
			if steps[i].name == after {
				steps[i].text += "\n" + text + "\n"
				return nil
			}
		}
		return fmt.Errorf("no step %q", after)
	}
	other, err := s.changed(ctx, procApply, add)
	if err != nil {
		return nil, err
	}
	return other.changed(ctx, procRewrite, add)
}

// Without is the store without some texts of one procedure. Each text must occur once; white space does not count.
func (s *Store) Without(ctx context.Context, procedure string, rules map[string]string) (*Store, error) {
	return s.changed(ctx, procedure, func(steps []step) error {
		const between = "\n-- between two steps\n"
		var all []string
		for _, one := range steps {
			all = append(all, one.text)
		}
		text := strings.Join(all, between)
		for rule, instead := range rules {
			words := strings.Fields(rule)
			for i := range words {
				words[i] = regexp.QuoteMeta(words[i])
			}
			form := regexp.MustCompile(strings.Join(words, `\s+`))
			if n := len(form.FindAllString(text, -1)); n != 1 {
				return fmt.Errorf("%q is in the procedure %d times", rule, n)
			}
			text = form.ReplaceAllLiteralString(text, instead)
		}
		for i, one := range strings.Split(text, between) {
			steps[i].text = one
		}
		return nil
	})
}

// changed is the store with one procedure changed, and so another hash of the set.
func (s *Store) changed(ctx context.Context, procedure string, change func(steps []step) error) (*Store, error) {
	other := *s
	other.procedures.list = slices.Clone(s.procedures.list)
	for i, p := range other.procedures.list {
		if p.name != procedure {
			continue
		}
		p.steps = slices.Clone(p.steps)
		if err := change(p.steps); err != nil {
			return nil, err
		}
		other.procedures.list[i] = p
	}
	other.procedures = other.procedures.hashed(s.tables.mapping.Version())
	return &other, other.Install(ctx)
}

// Install installs the procedures without migrations.
func (s *Store) Install(ctx context.Context) error {
	return s.migrate(ctx, nil, s.procedures, func(*sql.Tx) error { return nil })
}

// UserColumn is a user's column in a test.
type UserColumn struct {
	Kind                               string
	Length, Precision, Scale, CodePage int
	NotNull, Computed, Identity        bool
}

func (c UserColumn) column() dbColumn {
	return dbColumn{
		kind: c.Kind, length: c.Length, precision: c.Precision, scale: c.Scale, codePage: c.CodePage,
		nullable: !c.NotNull, computed: c.Computed, identity: c.Identity,
	}
}

// tablesWith are the user's tables with the given columns, by "TABLE.COLUMN".
func tablesWith(columns map[string]UserColumn) map[invoice.Table]userTable {
	tables := map[invoice.Table]userTable{}
	for name, c := range columns {
		table, column, _ := strings.Cut(name, ".")
		t := tables[invoice.Table(table)]
		if t.byName == nil {
			t.byName = map[string]dbColumn{}
		}
		has := c.column()
		has.name = column
		t.byName[strings.ToLower(column)] = has
		tables[invoice.Table(table)] = t
	}
	return tables
}

// Limits are limits of columns that a test provides.
type Limits struct{ limits *columnLimits }

// NewLimits makes limits from read, which returns the columns by "TABLE.COLUMN".
func NewLimits(read func(context.Context) (map[string]UserColumn, error), now func() time.Time) Limits {
	return Limits{
		&columnLimits{
			mapping: mapping.InUse(), now: now, read: func(ctx context.Context) (map[invoice.Table]userTable, error) {
				columns, err := read(ctx)
				return tablesWith(columns), err
			},
		},
	}
}

// Apply compares the items and calls apply with those that fit.
func (l Limits) Apply(
	ctx context.Context, items []commit.Item, apply func([]commit.Item) ([]commit.DocumentOutcome, error),
) ([]commit.DocumentOutcome, error) {
	return l.limits.applyFitting(ctx, items, apply)
}

// Misfit describes a value that a column does not take. The code is empty if it fits.
func Misfit(c invoice.Column, has UserColumn, v invoice.Value) (code, expected, found string) {
	l := limit{dbColumn: has.column()}
	if l.singleCodePage() {
		l.page = newCodePage(l.codePage)
	}
	return l.misfit(c, v)
}

// Stored is what a column makes of a value.
func Stored(c invoice.Column, has UserColumn, text string) string {
	return (&limit{dbColumn: has.column()}).stored(c, text)
}

// Canonical is the value of what the driver gives.
func Canonical(c invoice.Column, found any) (invoice.Value, error) { return canonical(c, found) }

// Lacks returns the first character of a text that a code page lacks. known is false for an unknown code page.
func Lacks(number int, text string) (r rune, lacks, known bool) {
	page := newCodePage(number)
	if page == nil {
		return 0, false, false
	}
	_, r, has := page.measure(text)
	return r, !has, true
}

// Characters counts the characters of a code page.
func Characters(number int) int { return len(newCodePage(number).has) }

// Checked is what the check finds of a column.
func Checked(c invoice.Column, has UserColumn) (differences, notes []string) {
	f := &Findings{}
	checkColumn("dbo.T", c, has.column(), f)
	return f.Differences, f.Notes
}

func Classify(err error) error { return classify("sqlserver: test", err) }

func ClassifyDependency(err error) error { return classifyDependency("sqlserver: test", err) }

type Rule struct {
	Numbers        []int32
	Kind           fault.Kind
	Condition      fault.Condition
	Reason, Source string
}

func Rules() []Rule {
	var out []Rule
	for _, r := range rules() {
		out = append(out, Rule{r.numbers, r.kind, r.condition, r.reason, r.source})
	}
	return out
}

// Parameters are the driver's parameters for a connection string.
func Parameters(dsn string) (map[string]string, error) {
	safe, _, err := withDefaults(dsn)
	if err != nil {
		return nil, err
	}
	config, err := msdsn.Parse(safe)
	return config.Parameters, err
}

// MigrateWith runs other migrations than this build's, and installs no procedure.
func (s *Store) MigrateWith(ctx context.Context, files ...migration.File) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := migrateIn(ctx, tx, files); err != nil {
		_ = tx.Rollback() // fails after the end of the transaction
		return classifyDependency(opMigrate, err)
	}
	return tx.Commit()
}

func AdoptionText(name string) string { return adoptionText(name) }

func HeartbeatError(err error) error { return heartbeatError(err) }

// Texts are the shared statements of folders, in this engine's syntax.
func Texts(o Options, folders ...string) (map[string]string, error) {
	t, err := tablesOf(o)
	if err != nil {
		return nil, err
	}
	return shared.Texts(t.dialect(), folders...)
}

func WaitedFor(script string, err error) error { return waitedFor(script, err) }

// OpenThrough is New with a connector of the test's around the driver's.
func OpenThrough(dsn string, o Options, around func(driver.Connector) driver.Connector) (*Store, error) {
	s, err := New(dsn, o)
	if err != nil {
		return nil, err
	}
	c, err := connector(dsn, true)
	if err != nil {
		return nil, err
	}
	err = s.db.Close()
	s.db = sql.OpenDB(around(c))
	return s, err
}

// Saying says what an error of the server means in a set-up.
func (s *Store) Saying(ctx context.Context, err error, u SetUp) error { return s.saying(ctx, err, u) }
