package sqlserver

import (
	"embed"
	"fmt"
	"strings"
	"text/template"
	"time"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/retention"
	"sqlwriter/internal/run"
	"sqlwriter/internal/store/shared"
)

//go:embed sql/*.sql
var sqlFiles embed.FS

// The numbers of our THROWs. Users may use 50000 and up; these are reserved for the SQL Writer.
const (
	// throwNoEvidence: the ledger has neither this write, nor this content, nor anything newer.
	throwNoEvidence = 52740
	// throwRowCount: the number of written rows differs from the number of applied lines.
	throwRowCount = 52741
	// throwMoved: the state of the adoption changed after it was read (adoption/page.sql).
	throwMoved = 52742
	// throwEdited: a rewrite missed a row that was edited after it had been read.
	throwEdited = 52743
	// throwWentBack and throwOtherDatabase: the heartbeat differs from the one in the control document.
	throwWentBack      = 52745
	throwOtherDatabase = 52746
	// throwRetention: a purge was asked to keep fewer days than retention.LeastDays.
	throwRetention = 52747
	// throwWaits: the lock of the one writer was not granted in time.
	throwWaits = 52748
	// throwLockCall: the call that takes that lock is wrong.
	throwLockCall = 52750
	// throwOtherUser: the name of the app's user is that of another identity's (user.sql).
	throwOtherUser = 52749
)

// The ledger, and its copy for a preview.
const (
	ledgerTable = "[sqlwriter].[ledger]"
	ledgerCopy  = "#ledger"
)

// step is one part of a procedure, named after its file.
type step struct{ name, text string }

// applySteps and previewSteps are the steps of a request in their order.
func applySteps() []string {
	return []string{
		"begin", "variables", "database", "load", "read_existing", "prune", "transaction", "one_writer",
		"ledger_update", "ledger_insert",
		"ledger_raise", "verdict", "detail_update", "detail_mark", "tracking_update",
		"tracking_insert", "commit", "outcomes",
	}
}

func previewSteps() []string {
	return []string{
		"begin", "variables", "load", "preview_ledger", "read_existing", "prune", "ledger_update",
		"ledger_insert", "ledger_raise",
		"verdict", "outcomes", "preview_before",
	}
}

// rewriteReadSteps are the steps of the read before a rewrite.
func rewriteReadSteps() []string { return []string{"begin", "variables", "load", "rewrite_read"} }

// reconcileSteps are the steps of a procedure that compares.
func reconcileSteps(procedure string) []string { return []string{"begin_lowest", procedure} }

// purgeSteps are the steps of a purge in their order.
func purgeSteps() []string {
	return []string{"begin_lowest", "purge_days", "transaction", "purge", "commit", "purge_answer"}
}

// heartbeatSteps are the steps of a heartbeat in their order.
func heartbeatSteps() []string {
	return []string{"begin", "heartbeat_variables", "transaction", "heartbeat", "commit", "heartbeat_answer"}
}

// stagedColumn is one column of the mapping for the templates.
type stagedColumn struct {
	// Name is the quoted column of the user's table; Staged is the column of the staged line. Beside is Staged beside
	// Name in one expression: two columns of different collations give a text without one, which the server may refuse
	// (Msg 457).
	Name, Staged, Beside string
	// Label is the column's name in an answer: c0, c1, ... in the order of the column table. The names of a table and
	// a column would together be longer than a name may be.
	Label string
	// InDetail is true for IVCE_DTL and false for IVCE_TRKG_MSTR. IsStatus marks the line status.
	InDetail, IsStatus bool
	// Keep marks a column that keeps its value where the document has none.
	Keep bool
}

// stagedSlot is one value of a document or a line for the templates.
type stagedSlot struct {
	// Staged is the column. StagedType takes every value of the kind and is wider than any column of the user.
	Staged, StagedType string
	// Position is the value's place in the request's JSON array.
	Position int
}

// templateData is the data of every template.
type templateData struct {
	Ledger, RealLedger         string
	DetailTable, TrackingTable string
	DetailKey, TrackingKey     string
	Status, MarkText           string
	NoEvidence, RowCount       int
	// Unwritten is the number of a row that was not written.
	Unwritten               int
	WentBack, OtherDatabase int
	Waits, LockCall         int
	LockTimeout             int64 // milliseconds
	// MarkCode is the action of a person's mark.
	MarkCode string
	// LeastRetention is the least days of a purge, and RetentionDays the number of its refusal.
	LeastRetention, RetentionDays int

	Columns, Detail, Tracking []stagedColumn
	ItemSlots, LineSlots      []stagedSlot
	// Rewrite is true in the procedure of a rewrite. RewriteSlots are then the last members of a line.
	Rewrite      bool
	RewriteSlots []stagedSlot
}

// stagedScale is the digits after the point of a staged decimal.
const stagedScale = 12

// maxFixedText is the greatest length of nvarchar(n).
const maxFixedText = 4000

// stagedType is the SQL type that carries a value to the user's columns. Texts have one character more than the
// column, and decimals more digits on both sides. OPENJSON silently cuts values that are wider than the type of its
// WITH clause (docs/facts.md F75, ADR 0016).
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
		return fmt.Sprintf("decimal(38, %d)", stagedScale), nil
	case invoice.Time:
		return "datetime2(7)", nil
	}
	return "", fmt.Errorf("column %s.%s: no SQL type for kind %q", s.Column.Table, s.Column.Name, s.Column.Kind)
}

// tables are the names and limits of one deployment.
type tables struct {
	mapping *invoice.Mapping
	// schema is the schema of the user's tables.
	schema      string
	lockTimeout time.Duration
}

// dataOf makes the templates' data from the mapping.
func (t tables) dataOf(ledger string, rewrite bool) (templateData, error) {
	d := templateData{
		Ledger: ledger, RealLedger: ledgerTable,
		DetailTable: t.table(invoice.Detail), TrackingTable: t.table(invoice.Tracking),
		DetailKey: quote(t.mapping.Key(invoice.Detail)), TrackingKey: quote(t.mapping.Key(invoice.Tracking)),
		MarkText: invoice.StatusAIError, NoEvidence: throwNoEvidence, RowCount: throwRowCount, Unwritten: throwRowCount,
		WentBack: throwWentBack, OtherDatabase: throwOtherDatabase, Waits: throwWaits, LockCall: throwLockCall,
		LockTimeout: t.lockTimeout.Milliseconds(),
		MarkCode:    run.CodeMarkCommitted, LeastRetention: retention.LeastDays, RetentionDays: throwRetention,
	}
	document, line, of := shared.Slots(t.mapping.Columns())
	var err error
	if d.ItemSlots, err = staged(document); err != nil {
		return templateData{}, err
	}
	if d.LineSlots, err = staged(line); err != nil {
		return templateData{}, err
	}
	for i, c := range t.mapping.Columns() {
		s := stagedColumn{
			Name: quote(c.Name), Staged: of[i], Label: fmt.Sprintf("c%d", i),
			InDetail: c.Table == invoice.Detail, IsStatus: c.Status, Keep: c.Keep,
		}
		s.Beside = "s." + s.Staged
		if c.Kind == invoice.Text || c.Kind == invoice.Flag {
			s.Beside += " COLLATE DATABASE_DEFAULT"
		}
		if s.InDetail {
			d.Detail = append(d.Detail, s)
		} else {
			d.Tracking = append(d.Tracking, s)
		}
		if s.IsStatus && s.InDetail {
			d.Status = s.Name
		}
		d.Columns = append(d.Columns, s)
	}
	if rewrite {
		d.Rewrite, d.Unwritten = true, throwEdited
		for i, s := range []stagedSlot{
			{Staged: "verdict", StagedType: "varchar(14)"},
			{Staged: "keep_status", StagedType: "int"},
			{Staged: "detail_seen", StagedType: "bigint"},
			{Staged: "tracking_seen", StagedType: "bigint"},
		} {
			s.Position = shared.LineHead + len(line) + i
			d.RewriteSlots = append(d.RewriteSlots, s)
		}
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
		all[i] = stagedSlot{Staged: s.Name, StagedType: kind, Position: s.Position}
	}
	return all, nil
}

// table is the quoted name of a user's table with its schema.
func (t tables) table(name invoice.Table) string { return quote(t.schema) + "." + quote(string(name)) }

// label is a column's name with its table, for messages.
func label(c invoice.Column) string { return string(c.Table) + "." + c.Name }

// render renders the templates of the named steps.
func (t tables) render(ledger string, rewrite bool, names []string) ([]step, error) {
	data, err := t.dataOf(ledger, rewrite)
	if err != nil {
		return nil, err
	}
	parsed, err := template.New("").Option("missingkey=error").Funcs(
		template.FuncMap{"fingerprint": fingerprint}).ParseFS(sqlFiles, "sql/*.sql")
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

// fingerprint is the expression for the fingerprint of a row over all of our columns. Case and trailing blanks count,
// whatever the collation. The text begins in a line with an indent.
func fingerprint(row string, columns []stagedColumn, indent int) string {
	begin := "\n" + strings.Repeat(" ", indent)
	var b strings.Builder
	b.WriteString("CAST(SUBSTRING(HASHBYTES('SHA2_256', (" + begin + "    SELECT")
	for i, c := range columns {
		if i > 0 {
			b.WriteString(",")
		}
		fmt.Fprintf(&b, "%s        %s.%s AS c%d", begin, row, c.Name, i)
	}
	b.WriteString(begin + "    FOR JSON PATH, INCLUDE_NULL_VALUES" + begin + ")), 1, 8) AS bigint)")
	return b.String()
}

// normalizeLineEnds makes all line ends \n. They are part of the procedures' hash, and a checkout may change them.
func normalizeLineEnds(text string) string { return strings.ReplaceAll(text, "\r\n", "\n") }

// join makes the text of a request without comments, which the server would store with its plan.
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

// quote makes an identifier of a name.
func quote(name string) string { return "[" + strings.ReplaceAll(name, "]", "]]") + "]" }
