package sqlserver_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/store/shared"
	"sqlwriter/internal/store/sqlserver"
	"sqlwriter/test/conformance"
)

func TestReports(t *testing.T) {
	d := newDatabase(t)
	conformance.TestReports(t, func(t *testing.T) conformance.ReportsHarness {
		for _, table := range []string{"run", "batch", "batch_item", "worker", "error_detail", "audit_log"} {
			d.exec(t, `DELETE FROM sqlwriter.`+table)
		}
		lines := d.harness(t)
		h := conformance.ReportsHarness{
			Reports: d.store.Reports(conformance.ReportsSysName), Store: d.store.RunStore, Insert: d.insert,
			Now: d.clock, Sink: lines.Sink, AddLines: lines.AddLines,
		}
		for _, r := range shared.ReportNames() {
			h.Names = append(h.Names, r.Name)
		}
		return h
	})
}

// clock is the database's time.
func (d *database) clock(t testing.TB) time.Time {
	t.Helper()
	var now time.Time
	require.NoError(t, d.db.QueryRowContext(t.Context(), `SELECT SYSUTCDATETIME()`).Scan(&now))
	return now
}

// insert adds a row to one of our tables.
func (d *database) insert(t testing.TB, table string, row map[string]any) {
	t.Helper()
	var columns, places []string
	var values []any
	for column, value := range row {
		if value == nil {
			continue
		}
		if at, ok := value.(time.Time); ok {
			value = at.UTC().Format("2006-01-02T15:04:05.000")
		}
		columns, values = append(columns, column), append(values, value)
		places = append(places, fmt.Sprintf("@p%d", len(values)))
	}
	d.exec(t,
		fmt.Sprintf(`INSERT INTO sqlwriter.%s (%s) VALUES (%s)`, table, strings.Join(columns, ", "),
			strings.Join(places, ", ")), values...)
}

// The golden has the reports in this engine's syntax, with the parameters that the driver declares.
func TestReportsGolden(t *testing.T) {
	texts, err := sqlserver.Texts(sqlserver.Options{}, shared.OfReports)
	require.NoError(t, err)
	var b strings.Builder
	for _, r := range shared.ReportNames() {
		fmt.Fprintf(&b, "-- %s\nDECLARE @limit bigint, @sys_name nvarchar(256);\n%sGO\n", r.Name, texts[r.Name])
	}
	golden(t, "reports.sql", b.String())
}

func TestAReportHasTheNamesOfTheDeployment(t *testing.T) {
	layout, err := invoice.ReadLayout(
		[]byte(`{"IVCE_DTL": {"IVCE_DTL_UID": "LINE]ID", "UNSPSC_CNFDC_SCR": "CODE_SURE"}}`))
	require.NoError(t, err)
	texts, err := sqlserver.Texts(sqlserver.Options{Layout: layout, Schema: "theirs"}, shared.OfReports)
	require.NoError(t, err)
	require.Contains(t, texts["same-key"], "INNER JOIN [theirs].[IVCE_DTL] AS d ON d.[LINE]]ID] = n.detail_id")
	require.Contains(t, texts["same-key"], "CAST(d.[CODE_SURE] AS float) >= 0.8")
}
