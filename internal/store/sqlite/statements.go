package sqlite

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"
	"text/template"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/store/shared"
)

//go:embed sql/*.sql
var sqlFiles embed.FS

// statements are the rendered statements by name (the file's name without .sql).
type statements map[string]string

// The names of the statements. stTemp is a script for a new connection; each other name is one statement that is
// prepared once.
const (
	stTemp = "temp"

	stClearItems     = "clear_items"
	stClearRows      = "clear_rows"
	stSend           = "send"
	stLoadItems      = "load_items"
	stLoadRows       = "load_rows"
	stMissing        = "missing"
	stLeaveOut       = "leave_out"
	stRewriteRead    = "rewrite_read"
	stRewriteLine    = "rewrite_line"
	stPrune          = "prune"
	stLedgerUpdate   = "ledger_update"
	stLedgerInsert   = "ledger_insert"
	stStamped        = "stamped"
	stLedgerRaise    = "ledger_raise"
	stVerdict        = "verdict"
	stOutcomes       = "outcomes"
	stDetailUpdate   = "detail_update"
	stDetailMark     = "detail_mark"
	stTrackingUpdate = "tracking_update"
	stTrackingInsert = "tracking_insert"

	stHeartbeat    = "heartbeat"
	stHeartbeatRow = "heartbeat_row"

	stPreviewClear  = "preview_clear"
	stPreviewLedger = "preview_ledger"
	stPreviewBefore = "preview_before"
)

// writeSteps and previewSteps list the statements of a request in their order.
func writeSteps() []string {
	return append(stagedSteps(),
		stLedgerUpdate, stLedgerInsert, stStamped, stLedgerRaise, stVerdict, stOutcomes, stDetailUpdate, stDetailMark,
		stTrackingUpdate, stTrackingInsert)
}

// rewriteSteps list what a rewrite does more, before it prunes.
func rewriteSteps() []string { return []string{stRewriteRead, stRewriteLine} }

func previewSteps() []string {
	return append(stagedSteps(),
		stPreviewClear, stPreviewLedger, stLedgerUpdate, stLedgerInsert, stStamped, stLedgerRaise, stVerdict,
		stOutcomes, stPreviewBefore)
}

// stagedSteps load a request and choose the lines that can be written.
func stagedSteps() []string {
	return []string{stClearItems, stClearRows, stSend, stLoadItems, stLoadRows, stMissing, stLeaveOut, stPrune}
}

// names are the tables of the statements. A preview uses a copy of the ledger.
type names struct{ Item, Row, Send, Copy, Ledger string }

// tablesOf returns the names of the temp tables, with a prefix, and the ledger.
func tablesOf(prefix, ledger string) names {
	return names{
		Item: prefix + "item", Row: prefix + "row", Send: prefix + "send", Copy: prefix + "ledger_copy", Ledger: ledger,
	}
}

// ledgerTable is the ledger; ledgerCopy is the temp table of a preview.
const (
	ledgerTable = "sqlwriter_ledger"
	ledgerCopy  = "sqlwriter_ledger_copy"
)

// stagedColumn is one column of the mapping for the templates.
type stagedColumn struct {
	// Name is the quoted column of the user's table; Staged is the column of the temp table.
	Name, Staged string
	// InDetail is true for IVCE_DTL and false for IVCE_TRKG_MSTR. IsStatus marks the line status.
	InDetail, IsStatus bool
	// Keep marks a column that keeps its value where the document has none.
	Keep bool
}

// stagedSlot is one value of a request for the templates.
type stagedSlot struct {
	// Staged is the column of the temp table. Position is the value's place in the request's JSON array.
	Staged   string
	Position int
}

// templateData is the data of every template.
type templateData struct {
	names
	DetailTable, TrackingTable, DetailKey, TrackingKey, Status string
	Columns, Detail, Tracking                                  []stagedColumn
	ItemColumns, LineColumns                                   []stagedSlot
}

// dataOf makes the templates' data from a mapping.
func dataOf(m *invoice.Mapping, n names) templateData {
	d := templateData{
		names: n, DetailTable: quote(string(invoice.Detail)), TrackingTable: quote(string(invoice.Tracking)),
		DetailKey: quote(m.Key(invoice.Detail)), TrackingKey: quote(m.Key(invoice.Tracking)),
	}
	document, line, of := shared.Slots(m.Columns())
	d.ItemColumns, d.LineColumns = staged(document), staged(line)
	for i, c := range m.Columns() {
		s := stagedColumn{
			Name: quote(c.Name), Staged: of[i], InDetail: c.Table == invoice.Detail,
			IsStatus: c.Status, Keep: c.Keep,
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
	return d
}

func staged(slots []shared.Slot) []stagedSlot {
	all := make([]stagedSlot, len(slots))
	for i, s := range slots {
		all[i] = stagedSlot{Staged: s.Name, Position: s.Position}
	}
	return all
}

// renderAll renders the statements of a write and of a preview.
func renderAll(m *invoice.Mapping) (write, preview statements, err error) {
	if write, err = renderFor(m, tablesOf("sqlwriter_", ledgerTable)); err != nil {
		return nil, nil, err
	}
	preview, err = renderFor(m, tablesOf("sqlwriter_", ledgerCopy))
	return write, preview, err
}

// renderFor renders every template for one set of tables.
func renderFor(m *invoice.Mapping, n names) (statements, error) {
	t, err := template.New("").Option("missingkey=error").ParseFS(sqlFiles, "sql/*.sql")
	if err != nil {
		return nil, fmt.Errorf("parse: %w", err)
	}
	files, err := fs.Glob(sqlFiles, "sql/*.sql")
	if err != nil {
		return nil, fmt.Errorf("list: %w", err)
	}
	data, out := dataOf(m, n), statements{}
	for _, f := range files {
		name := strings.TrimSuffix(strings.TrimPrefix(f, "sql/"), ".sql")
		var b strings.Builder
		if err := t.ExecuteTemplate(&b, name+".sql", data); err != nil {
			return nil, fmt.Errorf("%s: %w", f, err)
		}
		out[name] = strings.TrimSpace(b.String()) // the driver caches only statements without trailing text
	}
	return out, nil
}

// quote makes an identifier of a name.
func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
