package shared

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"math"
	"strings"
	"text/template"
	"time"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/run"
)

//go:embed reports/*.sql
var reportFiles embed.FS

const (
	// reportRows is how many rows a report has at most.
	reportRows = 100
	// reportTimeout bounds one: somebody looks at it, and others want the connection.
	reportTimeout = 30 * time.Second
	// deadSeconds is for how long a worker that lives may say nothing (docs/requirements.md R75).
	deadSeconds = 600
)

// ReportNames are all reports, in the order in which an operator reads them. A name is that of the file, without .sql.
func ReportNames() []run.ReportName {
	return []run.ReportName{
		{Name: "runs", Meaning: "the latest runs and how far they are"},
		{Name: "batch-progress", Meaning: "batches and documents by status, completed and failed ones of the last 30 days"},
		{Name: "performance", Meaning: "batch time, documents per second and success of the last hour, day and week"},
		{Name: "workers", Meaning: "managers and workers: active, dead, and of the last 7 days idle, completed, failed"},
		{Name: "dead-workers", Meaning: "who is running and has said nothing for ten minutes"},
		{Name: "stuck-batches", Meaning: "batches in processing that nobody has worked on for ten minutes"},
		{Name: "failed-batches", Meaning: "batches that were given up, and why"},
		{Name: "pending-retries", Meaning: "batches whose message is to be sent again, by run"},
		{Name: "queue-depth", Meaning: "batches and documents that wait for a worker"},
		{Name: "queue-lag", Meaning: "the batches of the last hour by status and run, and how long they waited"},
		{Name: "batch-success", Meaning: "what became of the batches of each of the last 30 days"},
		{Name: "error-codes", Meaning: "failures of documents in the last 7 days by code"},
		{Name: "error-types", Meaning: "failures of documents in the last 7 days by type"},
		{Name: "audit-errors", Meaning: "the latest errors and warnings of the audit log"},
	}
}

// ReportWords are what the reports say differently from engine to engine.
type ReportWords struct {
	// Batch and ProcessingBatch are the views of table job; the others are tables.
	Run, Batch, ProcessingBatch, Worker, ErrorDetail, AuditLog string
	// Now is the database's clock, UTC.
	Now string
	// Top and Limit bound a query to @limit rows, where the dialect wants it: one of them is empty.
	Top, Limit string
	// AgoFormat is the time some whole seconds before Now, for fmt. SecondsFormat is the time from one moment to another in
	// seconds, a float. DayFormat is the day of a moment as text, 2025-12-18.
	AgoFormat, SecondsFormat, DayFormat string
	// Late is as RunWords'.
	Late string
}

// reportData fills the templates: the words, and what is made of them.
type reportData struct {
	ReportWords
	DeadSeconds int
}

// Ago is the moment some seconds ago.
func (d reportData) Ago(seconds int) string { return fmt.Sprintf(d.AgoFormat, seconds) }

// Ours keeps what belongs to runs of other environments out: the tables may be shared. What belongs to no run is everybody's.
func (d reportData) Ours(runID string) string {
	return "NOT EXISTS (SELECT 1 FROM " + d.Run + " AS x WHERE x.run_id = " + runID + " AND x.sys_name <> @sys_name)"
}

// Day is the day of a moment.
func (d reportData) Day(at string) string { return fmt.Sprintf(d.DayFormat, at) }

// Seconds is the time from one moment to another, a fraction; NULL if either is.
func (d reportData) Seconds(from, to string) string { return fmt.Sprintf(d.SecondsFormat, from, to) }

// Percent is how many of a hundred, a fraction: whole numbers alone would be divided as whole numbers. NULL if there are
// none to count.
func (d reportData) Percent(part, whole string) string {
	return "CAST(" + part + " AS float) * 100 / NULLIF(" + whole + ", 0)"
}

// ReportDialect is an engine.
type ReportDialect struct {
	ReportWords
	// Name begins the operation of every error: "sqlite".
	Name string
	// SysName is the environment whose runs are reported.
	SysName string
	// Read sees what was committed.
	Read *sql.DB
	// Classify is as Dialect's.
	Classify func(op string, err error) error
}

// Reports is run.Reports on a database. It is safe for concurrent use.
type Reports struct {
	d     ReportDialect
	texts map[string]string
}

// NewReports makes the reports of an engine. It asks the database nothing.
func NewReports(d ReportDialect) *Reports {
	texts, err := ReportTexts(d.ReportWords)
	if err != nil {
		panic("sqlstore: " + err.Error()) // the templates and what they name are constant
	}
	return &Reports{d: d, texts: texts}
}

// ReportTexts are the statements by name.
func ReportTexts(w ReportWords) (map[string]string, error) {
	t, err := template.New("").Option("missingkey=error").ParseFS(reportFiles, "reports/*.sql")
	if err != nil {
		return nil, fmt.Errorf("parse: %w", err)
	}
	texts := map[string]string{}
	for _, r := range ReportNames() {
		var b strings.Builder
		if err := t.ExecuteTemplate(&b, r.Name+".sql", reportData{w, deadSeconds}); err != nil {
			return nil, fmt.Errorf("%s: %w", r.Name, err)
		}
		texts[r.Name] = b.String()
	}
	return texts, nil
}

// Names implements run.Reports.
func (*Reports) Names() []run.ReportName { return ReportNames() }

// Report implements run.Reports: at most 100 rows. Fractions are rounded to hundredths, moments are texts of RFC 3339 in
// UTC with milliseconds, truths 0 or 1. It has 30 seconds.
func (r *Reports) Report(ctx context.Context, name string) (run.Table, error) {
	text, ok := r.texts[name]
	if !ok {
		return run.Table{}, noReport(r.d.Name+": report", name)
	}
	op := r.d.Name + ": report " + name
	ctx, cancel := context.WithTimeout(ctx, reportTimeout)
	defer cancel()
	rows, err := r.d.Read.QueryContext(ctx, text, sql.Named("limit", int64(reportRows)), sql.Named("sys_name", r.d.SysName))
	if err != nil {
		return run.Table{}, r.d.Classify(op, err)
	}
	defer func() { _ = rows.Close() }() // a failure is in rows.Err
	table, err := tableOf(rows)
	return table, r.d.Classify(op, err)
}

// tableOf reads all rows.
func tableOf(rows *sql.Rows) (run.Table, error) {
	columns, err := rows.Columns()
	if err != nil {
		return run.Table{}, err
	}
	t := run.Table{Columns: columns, Rows: [][]any{}}
	for rows.Next() {
		row, places := make([]any, len(columns)), make([]any, len(columns))
		for i := range row {
			places[i] = &row[i]
		}
		if err := rows.Scan(places...); err != nil {
			return run.Table{}, err
		}
		for i, v := range row {
			row[i] = plain(v)
		}
		t.Rows = append(t.Rows, row)
	}
	if err := rows.Err(); err != nil { // half a table must not look like a whole one
		return run.Table{}, err
	}
	return t, nil
}

// plain makes a text, a number or nil of what a driver gives.
func plain(value any) any {
	switch v := value.(type) {
	case time.Time:
		return v.UTC().Format("2006-01-02T15:04:05.000Z")
	case float64:
		return math.Round(v*100) / 100
	case bool:
		if v {
			return int64(1)
		}
		return int64(0)
	}
	return value
}

func noReport(op, name string) error {
	known := make([]string, 0, len(ReportNames()))
	for _, r := range ReportNames() {
		known = append(known, r.Name)
	}
	return fault.New(fault.Internal, op, "no_report", "there is no report %q; there are %s", name, strings.Join(known, ", "))
}
