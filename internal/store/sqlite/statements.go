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

// statements are the produced texts by name (the file's name without .sql).
type statements map[string]string

// The statements, by name. stTemp is a script for a new connection; the others are one statement each, prepared once.
const (
	stTemp = "temp"

	stClearItems     = "clear_items"
	stClearRows      = "clear_rows"
	stSend           = "send"
	stLoadItems      = "load_items"
	stLoadRows       = "load_rows"
	stMissing        = "missing"
	stLeaveOut       = "leave_out"
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

// writeSteps and previewSteps are the statements of a request in their order.
func writeSteps() []string {
	return append(stagedSteps(),
		stLedgerUpdate, stLedgerInsert, stStamped, stLedgerRaise, stVerdict, stOutcomes, stDetailUpdate, stDetailMark, stTrackingUpdate, stTrackingInsert)
}

func previewSteps() []string {
	return append(stagedSteps(),
		stPreviewClear, stPreviewLedger, stLedgerUpdate, stLedgerInsert, stStamped, stLedgerRaise, stVerdict, stOutcomes, stPreviewBefore)
}

// stagedSteps load a request and decide what of it can be written.
func stagedSteps() []string {
	return []string{stClearItems, stClearRows, stSend, stLoadItems, stLoadRows, stMissing, stLeaveOut, stPrune}
}

// names are the tables that the statements are produced for: a preview works on a copy of the ledger.
type names struct{ Item, Row, Send, Copy, Ledger string }

// tablesOf names the temp tables with a prefix and the ledger.
func tablesOf(prefix, ledger string) names {
	return names{Item: prefix + "item", Row: prefix + "row", Send: prefix + "send", Copy: prefix + "ledger_copy", Ledger: ledger}
}

// ledgerTable is the real ledger; ledgerCopy is the temp table that a preview works on.
const (
	ledgerTable = "sqlwriter_ledger"
	ledgerCopy  = "sqlwriter_ledger_copy"
)

// stagedColumn is one row of the column table as the templates see it.
type stagedColumn struct {
	// Name is the quoted column of the user's table, Staged that of the temp table.
	Name, Staged string
	// InDetail tells the two tables apart.
	InDetail bool
}

// stagedSlot is one value of a request as the templates see it.
type stagedSlot struct {
	// Staged is the quoted column of the temp table; Position is the value's place in the request's JSON array.
	Staged   string
	Position int
}

// templateData is what every template is filled with.
type templateData struct {
	names
	DetailTable, TrackingTable, DetailKey, TrackingKey, Status string
	Columns, Detail, Tracking                                  []stagedColumn
	ItemColumns, LineColumns                                   []stagedSlot
}

// dataOf spreads the column table over the templates' lists.
func dataOf(l invoice.Layout, n names) templateData {
	d := templateData{
		names: n, DetailTable: quote(string(invoice.Detail)), TrackingTable: quote(string(invoice.Tracking)),
		DetailKey: quote(l.Key(invoice.Detail)), TrackingKey: quote(l.Key(invoice.Tracking)), Status: quote(invoice.StatusColumn),
	}
	document, line, of := shared.Slots(l.Columns)
	d.ItemColumns, d.LineColumns = staged(document), staged(line)
	for i, c := range l.Columns {
		s := stagedColumn{Name: quote(c.Name), Staged: quote(of[i]), InDetail: c.Table == invoice.Detail}
		if s.InDetail {
			d.Detail = append(d.Detail, s)
		} else {
			d.Tracking = append(d.Tracking, s)
		}
		d.Columns = append(d.Columns, s)
	}
	return d
}

func staged(slots []shared.Slot) []stagedSlot {
	all := make([]stagedSlot, len(slots))
	for i, s := range slots {
		all[i] = stagedSlot{Staged: quote(s.Name), Position: s.Position}
	}
	return all
}

// produce makes the statements of a write and of a preview from the column table.
func produce(l invoice.Layout) (write, preview statements, err error) {
	if write, err = produceFor(l, tablesOf("sqlwriter_", ledgerTable)); err != nil {
		return nil, nil, err
	}
	preview, err = produceFor(l, tablesOf("sqlwriter_", ledgerCopy))
	return write, preview, err
}

// produceFor fills every template for one set of tables.
func produceFor(l invoice.Layout, n names) (statements, error) {
	t, err := template.New("").Option("missingkey=error").ParseFS(sqlFiles, "sql/*.sql")
	if err != nil {
		return nil, fmt.Errorf("parse: %w", err)
	}
	files, err := fs.Glob(sqlFiles, "sql/*.sql")
	if err != nil {
		return nil, fmt.Errorf("list: %w", err)
	}
	data, out := dataOf(l, n), statements{}
	for _, f := range files {
		name := strings.TrimSuffix(strings.TrimPrefix(f, "sql/"), ".sql")
		var b strings.Builder
		if err := t.ExecuteTemplate(&b, name+".sql", data); err != nil {
			return nil, fmt.Errorf("%s: %w", f, err)
		}
		out[name] = strings.TrimSpace(b.String()) // the driver keeps a statement only if nothing stands behind it
	}
	return out, nil
}

// quote makes an identifier of a name that comes from data.
func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
