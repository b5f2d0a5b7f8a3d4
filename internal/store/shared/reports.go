package shared

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/run"
)

//go:embed reports/*.sql
var reportFiles embed.FS

const (
	// reportRows is the most rows of a report.
	reportRows = 100
	// reportErrors is the most failures of documents that a report reads. A report of all of a mass failure would take
	// seconds.
	reportErrors = 10_000
	// reportLines is the most lines that a report reads. IVCE_DTL has no index of ours, and all of it would take too long.
	reportLines = 100_000
	// reportTimeout bounds one report, because other work needs the connection.
	reportTimeout = 30 * time.Second
	// deadSeconds is the longest silence of a live worker (docs/requirements.md R75).
	deadSeconds = 600
)

// ReportNames lists all reports in the order in which an operator reads them. A name is the file's name without .sql.
func ReportNames() []run.ReportName {
	return []run.ReportName{
		{Name: "runs", Meaning: "the latest runs and their progress"},
		{Name: "batch-progress", Meaning: "batches of runs and their documents by status, the stuck ones and the queue: open ones, and ended ones of the last 7 days"},
		{Name: "performance", Meaning: "runs: batch time, documents per second and success of the last hour, day and week"},
		{Name: "workers", Meaning: "runs: managers and workers that are active or dead, and idle, completed and failed ones of the last 7 days"},
		{Name: "pending-retries", Meaning: "batches of runs whose message will be sent again, by run"},
		{Name: "queue-lag", Meaning: "batches of the last hour by run and status, and their waiting times"},
		{Name: "batch-success", Meaning: "results of the batches of runs by day, of the last 7 days"},
		{Name: "error-codes", Meaning: "failures of documents by code and type, of the feed, the timer and runs: the latest 10,000, of the last 7 days"},
		{Name: "same-key", Meaning: "one manufacturer and part number with several UNSPSC codes, among the newest 100,000 lines"},
	}
}

// ReportDialect is the SQL syntax of the reports in which the engines differ.
type ReportDialect struct {
	// Batch is the view processing_job of table batch; the others are tables.
	Run, Batch, Worker, ErrorDetail, AuditLog string
	// Now is the time of the database's clock, in UTC.
	Now string
	// Top and Limit are as in Dialect.
	Top, Limit string
	// The formats are for fmt. AgoFormat makes the time a whole number of seconds before Now. SecondsFormat makes the
	// seconds between two times, a float. DayFormat makes the day of a time as text, such as 2025-12-18.
	AgoFormat, SecondsFormat, DayFormat string
	// NoIndex is as in Dialect.
	NoIndex string
	// Ledger, DetailTable and DetailKey are the ledger, IVCE_DTL and its key.
	Ledger, DetailTable, DetailKey string
	// Columns is the layout's column table. Quote makes an identifier of a column's name.
	Columns []invoice.Column
	Quote   func(name string) string
}

// reportData is the data of the templates.
type reportData struct {
	ReportDialect
	DeadSeconds int
}

// TopErrors and LimitErrors are Top and Limit for the failures that a report reads, TopLines and LimitLines for lines.
func (d reportData) TopErrors() string   { return bounded(d.Top, reportErrors) }
func (d reportData) LimitErrors() string { return bounded(d.Limit, reportErrors) }
func (d reportData) TopLines() string    { return bounded(d.Top, reportLines) }
func (d reportData) LimitLines() string  { return bounded(d.Limit, reportLines) }

func bounded(limit string, most int) string {
	return strings.Replace(limit, "@limit", strconv.Itoa(most), 1)
}

// Column is the column of IVCE_DTL that the write fills from a member of the document.
func (d reportData) Column(path string) (string, error) {
	i := slices.IndexFunc(d.Columns, func(c invoice.Column) bool { return c.Table == invoice.Detail && c.Path == path })
	if i < 0 {
		return "", fmt.Errorf("no column of %s has the member %s", invoice.Detail, path)
	}
	return d.Quote(d.Columns[i].Name), nil
}

// Ago is the time a number of seconds before now.
func (d reportData) Ago(seconds int) string { return fmt.Sprintf(d.AgoFormat, seconds) }

// OwnRuns excludes rows of other environments' runs, because environments may share the tables. Rows without a run pass.
func (d reportData) OwnRuns(runID string) string {
	return "NOT EXISTS (SELECT 1 FROM " + d.Run + " AS x WHERE x.run_id = " + runID + " AND x.sys_name <> @sys_name)"
}

func (d reportData) Day(at string) string { return fmt.Sprintf(d.DayFormat, at) }

// Seconds is the time between two times, with fractions; NULL if either is NULL.
func (d reportData) Seconds(from, to string) string { return fmt.Sprintf(d.SecondsFormat, from, to) }

// Percent is a share in percent, with fractions. The cast avoids a division of integers. It is NULL if the whole is 0.
func (d reportData) Percent(part, whole string) string {
	return "CAST(" + part + " AS float) * 100 / NULLIF(" + whole + ", 0)"
}

// ReportEngine is a database as the reports use it.
type ReportEngine struct {
	ReportDialect
	// Name begins the operation of every error, for example "sqlite".
	Name string
	// SysName is the environment of the reported runs.
	SysName string
	// Read sees committed rows only.
	Read *sql.DB
	// Classify is as in Engine.
	Classify func(op string, err error) error
}

// Reports implements run.Reports on a database. It is safe for concurrent use.
type Reports struct {
	engine ReportEngine
	texts  map[string]string
}

// NewReports makes the reports of an engine without using the database.
func NewReports(e ReportEngine) *Reports {
	texts, err := ReportTexts(e.ReportDialect)
	if err != nil {
		panic("shared: " + err.Error()) // the templates and their data are constant
	}
	return &Reports{engine: e, texts: texts}
}

// ReportTexts returns the statements by name (the file's name without .sql).
func ReportTexts(d ReportDialect) (map[string]string, error) {
	t, err := template.New("").Option("missingkey=error").ParseFS(reportFiles, "reports/*.sql")
	if err != nil {
		return nil, fmt.Errorf("parse: %w", err)
	}
	texts := map[string]string{}
	for _, r := range ReportNames() {
		var b strings.Builder
		if err := t.ExecuteTemplate(&b, r.Name+".sql", reportData{d, deadSeconds}); err != nil {
			return nil, fmt.Errorf("%s: %w", r.Name, err)
		}
		texts[r.Name] = b.String()
	}
	return texts, nil
}

// Names implements run.Reports.
func (*Reports) Names() []run.ReportName { return ReportNames() }

// Report implements run.Reports. It returns at most 100 rows and takes at most 30 seconds. Fractions are rounded to
// hundredths. Times are texts of RFC 3339 in UTC with milliseconds, and booleans are 0 or 1.
func (r *Reports) Report(ctx context.Context, name string) (run.Table, error) {
	text, ok := r.texts[name]
	if !ok {
		return run.Table{}, noReport(r.engine.Name+": report", name)
	}
	op := r.engine.Name + ": report " + name
	ctx, cancel := context.WithTimeout(ctx, reportTimeout)
	defer cancel()
	rows, err := r.engine.Read.QueryContext(ctx, text, sql.Named("limit", int64(reportRows)), sql.Named("sys_name", r.engine.SysName))
	if err != nil {
		return run.Table{}, r.engine.Classify(op, err)
	}
	defer func() { _ = rows.Close() }() // a failure is in rows.Err
	table, err := tableOf(rows)
	return table, r.engine.Classify(op, err)
}

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
			row[i] = plainValue(v)
		}
		t.Rows = append(t.Rows, row)
	}
	if err := rows.Err(); err != nil { // a partial table must not look complete
		return run.Table{}, err
	}
	return t, nil
}

// plainValue converts a driver's value to a text, a number or nil.
func plainValue(value any) any {
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
