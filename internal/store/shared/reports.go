package shared

import (
	"context"
	"database/sql"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/run"
)

const (
	// reportRows is the most rows of a report.
	reportRows = 100
	// reportTimeout bounds one report, because other work needs the connection.
	reportTimeout = 30 * time.Second
)

// ReportNames lists all reports in the order in which an operator reads them. A name is the file's name without .sql.
func ReportNames() []run.ReportName {
	return []run.ReportName{
		{Name: "runs", Meaning: "the latest runs and their progress"},
		{
			Name:    "batch-progress",
			Meaning: "batches of runs and their documents by status, the stuck ones and the queue: open ones, and ended ones of the last 7 days",
		},
		{
			Name:    "performance",
			Meaning: "runs: batch time, documents per second and success of the last hour, day and week",
		},
		{
			Name:    "workers",
			Meaning: "runs: managers and workers that are active or dead, and idle, completed and failed ones of the last 7 days",
		},
		{Name: "pending-retries", Meaning: "batches of runs whose message will be sent again, by run"},
		{Name: "queue-lag", Meaning: "batches of the last hour by run and status, and their waiting times"},
		{Name: "batch-success", Meaning: "results of the batches of runs by day, of the last 7 days"},
		{
			Name:    "error-codes",
			Meaning: "failures of documents by code and type, of the feed, the timer and runs: the latest 10,000, of the last 7 days",
		},
		{
			Name:    "same-key",
			Meaning: "one manufacturer and part number with several UNSPSC codes, among the newest 100,000 lines",
		},
	}
}

// TopOf is Top for another number of rows.
func (d Dialect) TopOf(rows int) string { return bounded(d.Top, rows) }

// LimitOf is Limit for another number of rows.
func (d Dialect) LimitOf(rows int) string { return bounded(d.Limit, rows) }

func bounded(limit string, rows int) string {
	return strings.Replace(limit, "@limit", strconv.Itoa(rows), 1)
}

// Column is the column of IVCE_DTL that the write fills from a member of the document.
func (d Dialect) Column(path string) (string, error) {
	columns := d.Mapping.Columns()
	i := slices.IndexFunc(columns, func(c invoice.Column) bool {
		return c.Table == invoice.Detail && c.Reads(path)
	})
	if i < 0 {
		return "", noColumn{path}
	}
	return d.Quote(columns[i].Name), nil
}

// noColumn is a member that a statement needs and the mapping gives to no column.
type noColumn struct{ member string }

// Error implements error.
func (n noColumn) Error() string {
	return "no column of " + string(invoice.Detail) + " has the member " + n.member + " (MAPPING)"
}

// unavailable begins the text of a statement that cannot be made.
const unavailable = "-- not available: "

// DetailKey is the key of IVCE_DTL.
func (d Dialect) DetailKey() string { return d.Quote(d.Mapping.Key(invoice.Detail)) }

// OwnRuns excludes rows of other environments' runs, because environments may share the tables. Rows without a run
// pass.
func (d Dialect) OwnRuns(runID string) string {
	return "NOT EXISTS (SELECT 1 FROM " + d.Prefix + "run AS x WHERE x.run_id = " + runID +
		" AND x.sys_name <> @sys_name)"
}

// Percent is a share in percent, with fractions. The cast avoids a division of integers. It is NULL if the whole is 0.
func (Dialect) Percent(part, whole string) string {
	return "CAST(" + part + " AS float) * 100 / NULLIF(" + whole + ", 0)"
}

// Reports implements run.Reports on a database. It is safe for concurrent use.
type Reports struct{ statements }

// NewReports makes the reports of an engine without using the database.
func NewReports(e Engine) *Reports { return &Reports{e.statements(OfReports)} }

// Names implements run.Reports.
func (*Reports) Names() []run.ReportName { return ReportNames() }

// Report implements run.Reports. It returns at most 100 rows and takes at most 30 seconds. Fractions are rounded to
// hundredths. Times are texts of RFC 3339 in UTC with milliseconds, and booleans are 0 or 1. A report of a member that
// the mapping gives to no column says so in one row.
func (r *Reports) Report(ctx context.Context, name string) (run.Table, error) {
	text, ok := r.texts[name]
	if !ok {
		return run.Table{}, noReport(r.op("report"), name)
	}
	if why, is := strings.CutPrefix(text, unavailable); is {
		return run.Table{Columns: []string{"not_available"}, Rows: [][]any{{why}}}, nil
	}
	op := r.op("report " + name)
	ctx, cancel := context.WithTimeout(ctx, reportTimeout)
	defer cancel()
	rows, err := r.engine.Read.QueryContext(ctx, text, sql.Named("limit", int64(reportRows)), r.environment())
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
	return fault.New(fault.Internal, op, "no_report", "there is no report %q; there are %s", name,
		strings.Join(known, ", "))
}
