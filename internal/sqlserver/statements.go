package sqlserver

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"
	"text/template"
	"time"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/sqlstore"
)

//go:embed sql/*.sql
var sqlFiles embed.FS

// The numbers of our own THROWs. 50000 and up are free for users; these are reserved for the SQL Writer.
const (
	// throwNoEvidence: the ledger shows neither this write, nor this content, nor anything newer.
	throwNoEvidence = 52740
	// throwRowCount: another number of rows was written than lines were applied.
	throwRowCount = 52741
	// throwMoved: the adoption does not stand where it was read (adoption/page.sql).
	throwMoved = 52742
)

// The real ledger, and the copy that a preview works on.
const (
	ledgerTable = "[sqlwriter].[ledger]"
	ledgerCopy  = "#ledger"
)

// step is one part of a request's text; its name is its file's.
type step struct{ name, text string }

// writeSteps and previewSteps are the parts of a request in their order.
func writeSteps() []string {
	return []string{
		"begin", "stage", "load", "look", "prune", "transaction", "ledger_update", "ledger_insert", "ledger_raise", "verdict",
		"detail_update", "detail_mark", "tracking_update", "tracking_insert", "commit", "outcomes",
	}
}

func previewSteps() []string {
	return []string{
		"begin", "preview_ledger", "stage", "load", "look", "prune", "ledger_update", "ledger_insert", "ledger_raise", "verdict",
		"outcomes", "preview_before",
	}
}

// heartbeatSteps are the parts of a heartbeat in their order.
func heartbeatSteps() []string { return []string{"begin", "transaction", "heartbeat", "commit"} }

// stagedColumn is one row of the column table as the templates see it.
type stagedColumn struct {
	// Name is the quoted column of the user's table, Staged that of the staged line.
	Name, Staged string
	// StagedType holds every value of the kind and is wider than the user's column may be.
	StagedType string
	// Position is the value's place in the request's JSON array.
	Position int
	// InDetail tells the two tables apart.
	InDetail bool
}

// templateData is what every template is filled with.
type templateData struct {
	Ledger, RealLedger         string
	DetailTable, TrackingTable string
	DetailKey, TrackingKey     string
	Status, MarkText           string
	NoEvidence, RowCount       int
	LockTimeout                int64 // milliseconds

	Columns, Detail, Tracking, ItemColumns, LineColumns []stagedColumn
}

// stagedType says what carries a kind to the user's column. Texts are as long as they come and decimals have room on
// both sides, because OPENJSON cuts silently what its WITH clause cannot hold (azure-facts 6.2, design.md section 4).
func stagedType(c invoice.Column) (string, error) {
	switch c.Kind {
	case invoice.Text, invoice.Flag:
		return "nvarchar(max)", nil
	case invoice.Integer:
		return "bigint", nil
	case invoice.Decimal:
		return "decimal(38, 12)", nil
	case invoice.Time:
		return "datetime2(7)", nil
	}
	return "", fmt.Errorf("column %s.%s: no SQL type for kind %q", c.Table, c.Name, c.Kind)
}

// tables is what one deployment calls things.
type tables struct {
	layout invoice.Layout
	// schema is the user's.
	schema      string
	lockTimeout time.Duration
}

// dataOf spreads the column table over the templates' lists.
func (t tables) dataOf(ledger string) (templateData, error) {
	d := templateData{
		Ledger: ledger, RealLedger: ledgerTable,
		DetailTable: t.table(invoice.Detail), TrackingTable: t.table(invoice.Tracking),
		DetailKey: quote(t.layout.Key(invoice.Detail)), TrackingKey: quote(t.layout.Key(invoice.Tracking)),
		MarkText: invoice.StatusAIError, NoEvidence: throwNoEvidence, RowCount: throwRowCount,
		LockTimeout: t.lockTimeout.Milliseconds(),
	}
	for _, c := range t.layout.Columns {
		kind, err := stagedType(c)
		if err != nil {
			return templateData{}, err
		}
		s := stagedColumn{
			Name: quote(c.Name), Staged: quote(stagedName(c)), StagedType: kind, InDetail: c.Table == invoice.Detail,
		}
		if c.PerLine() {
			s.Position = sqlstore.LineHead + len(d.LineColumns)
			d.LineColumns = append(d.LineColumns, s)
		} else {
			s.Position = sqlstore.ItemHead + len(d.ItemColumns)
			d.ItemColumns = append(d.ItemColumns, s)
		}
		if s.InDetail {
			d.Detail = append(d.Detail, s)
		} else {
			d.Tracking = append(d.Tracking, s)
		}
		if c.Name == invoice.StatusColumn && s.InDetail {
			d.Status = s.Name
		}
		d.Columns = append(d.Columns, s)
	}
	return d, nil
}

// table is a user's table, quoted and with its schema.
func (t tables) table(name invoice.Table) string { return quote(t.schema) + "." + quote(string(name)) }

// stagedName is a column's name in the staged line, where both tables' columns stand side by side.
func stagedName(c invoice.Column) string {
	if c.Table == invoice.Detail {
		return "d." + c.Name
	}
	return "t." + c.Name
}

// label is a column for people.
func label(c invoice.Column) string { return string(c.Table) + "." + c.Name }

// produce fills the templates of the named steps.
func (t tables) produce(ledger string, names []string) ([]step, error) {
	data, err := t.dataOf(ledger)
	if err != nil {
		return nil, err
	}
	parsed, err := template.New("").Option("missingkey=error").ParseFS(sqlFiles, "sql/*.sql")
	if err != nil {
		return nil, fmt.Errorf("parse: %w", err)
	}
	steps := make([]step, 0, len(names))
	for _, name := range names {
		var b strings.Builder
		if err := parsed.ExecuteTemplate(&b, name+".sql", data); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		steps = append(steps, step{name: name, text: b.String()})
	}
	return steps, nil
}

// join makes the text of a request. Comments stay in the files: the server would compare and keep them for nothing.
func join(steps []step) string {
	var b strings.Builder
	for _, s := range steps {
		for line := range strings.SplitSeq(s.text, "\n") {
			if text := strings.TrimSpace(line); text != "" && !strings.HasPrefix(text, "--") {
				b.WriteString(text)
				b.WriteByte('\n')
			}
		}
	}
	return b.String()
}

// quote makes an identifier of a name that comes from data.
func quote(name string) string { return "[" + strings.ReplaceAll(name, "]", "]]") + "]" }

// stepFiles lists the files of sql/, for the test that every one of them is used.
func stepFiles() ([]string, error) { return fs.Glob(sqlFiles, "sql/*.sql") }
