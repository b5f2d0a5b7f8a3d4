package sqlserver

import (
	"embed"
	"fmt"
	"strings"
	"text/template"
	"time"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/store/shared"
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
	// throwWentBack and throwOtherDatabase: the heartbeat is not the one that the control document knows.
	throwWentBack      = 52745
	throwOtherDatabase = 52746
)

// The real ledger, and the copy that a preview works on.
const (
	ledgerTable = "[sqlwriter].[ledger]"
	ledgerCopy  = "#ledger"
)

// step is one part of a procedure; its name is its file's.
type step struct{ name, text string }

// applySteps and previewSteps are the parts of a request for documents in their order.
func applySteps() []string {
	return []string{
		"begin", "variables", "database", "load", "read_existing", "prune", "transaction", "ledger_update", "ledger_insert",
		"ledger_raise", "verdict", "detail_update", "detail_mark", "tracking_update", "tracking_insert", "commit", "outcomes",
	}
}

func previewSteps() []string {
	return []string{
		"begin", "variables", "load", "preview_ledger", "read_existing", "prune", "ledger_update", "ledger_insert", "ledger_raise",
		"verdict", "outcomes", "preview_before",
	}
}

// heartbeatSteps are the parts of a heartbeat in their order.
func heartbeatSteps() []string {
	return []string{"begin", "heartbeat_variables", "transaction", "heartbeat", "commit", "heartbeat_answer"}
}

// stagedColumn is one row of the column table as the templates see it.
type stagedColumn struct {
	// Name is the quoted column of the user's table, Staged that of the staged line.
	Name, Staged string
	// Label tells the columns of both tables apart.
	Label string
	// InDetail tells the two tables apart.
	InDetail bool
}

// stagedSlot is one value of a document or of a line.
type stagedSlot struct {
	// Staged is its quoted column. StagedType holds every value of the kind and is wider than the user's column may be.
	Staged, StagedType string
	// Position is the value's place in the request's JSON array.
	Position int
}

// templateData is what every template is filled with.
type templateData struct {
	Ledger, RealLedger         string
	DetailTable, TrackingTable string
	DetailKey, TrackingKey     string
	Status, MarkText           string
	NoEvidence, RowCount       int
	WentBack, OtherDatabase    int
	LockTimeout                int64 // milliseconds

	Columns, Detail, Tracking []stagedColumn
	ItemSlots, LineSlots      []stagedSlot
}

// widest is the longest text that a column of a fixed length takes.
const maxFixedText = 4000

// stagedType says what carries a value to the user's columns. Texts have room for one character too many and decimals on both
// sides, because OPENJSON cuts silently what its WITH clause cannot hold (docs/facts.md F75, ADR 0016).
func stagedType(s shared.Slot) (string, error) {
	switch s.Column.Kind {
	case invoice.Text, invoice.Flag:
		if s.Max >= maxFixedText {
			return "nvarchar(max)", nil
		}
		return fmt.Sprintf("nvarchar(%d)", s.Max+1), nil
	case invoice.Integer:
		return "bigint", nil
	case invoice.Decimal:
		return "decimal(38, 12)", nil
	case invoice.Time:
		return "datetime2(7)", nil
	}
	return "", fmt.Errorf("column %s.%s: no SQL type for kind %q", s.Column.Table, s.Column.Name, s.Column.Kind)
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
		WentBack: throwWentBack, OtherDatabase: throwOtherDatabase, LockTimeout: t.lockTimeout.Milliseconds(),
	}
	document, line, of := shared.Slots(t.layout.Columns)
	var err error
	if d.ItemSlots, err = staged(document); err != nil {
		return templateData{}, err
	}
	if d.LineSlots, err = staged(line); err != nil {
		return templateData{}, err
	}
	for i, c := range t.layout.Columns {
		s := stagedColumn{Name: quote(c.Name), Staged: quote(of[i]), Label: quote(label(c)), InDetail: c.Table == invoice.Detail}
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

func staged(slots []shared.Slot) ([]stagedSlot, error) {
	all := make([]stagedSlot, len(slots))
	for i, s := range slots {
		kind, err := stagedType(s)
		if err != nil {
			return nil, err
		}
		all[i] = stagedSlot{Staged: quote(s.Name), StagedType: kind, Position: s.Position}
	}
	return all, nil
}

// table is a user's table, quoted and with its schema.
func (t tables) table(name invoice.Table) string { return quote(t.schema) + "." + quote(string(name)) }

// label is a column for people.
func label(c invoice.Column) string { return string(c.Table) + "." + c.Name }

// produce fills the templates of the named steps.
func (t tables) render(ledger string, names []string) ([]step, error) {
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
		steps = append(steps, step{name: name, text: normalizeLineEnds(b.String())})
	}
	return steps, nil
}

// unixEnds is a text with line ends as \n, whatever a checkout made of them: they are part of the procedures' hash.
func normalizeLineEnds(text string) string { return strings.ReplaceAll(text, "\r\n", "\n") }

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
