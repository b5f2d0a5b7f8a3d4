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
	"sqlwriter/test/mapping"
)

func TestReports(t *testing.T) {
	d := newDatabase(t)
	conformance.TestReports(t, func(t *testing.T) conformance.ReportsHarness {
		for _, table := range []string{"run", "batch", "batch_item", "worker", "error_detail", "audit_log"} {
			d.spy.Exec(t, `DELETE FROM sqlwriter.`+table)
		}
		lines := d.harness(t)
		h := conformance.ReportsHarness{
			Reports: d.store.Reports(conformance.ReportsSysName), Store: d.store.RunStore, Insert: d.spy.Insert,
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
	renamed := mapping.Edited(func(tables map[invoice.Table]*mapping.Table) {
		tables[invoice.Detail].Key = "LINE]ID"
		tables[invoice.Detail].Column("UNSPSC_CNFDC_SCR")["name"] = "CODE_SURE"
	})
	texts, err := sqlserver.Texts(sqlserver.Options{Mapping: renamed, Schema: "theirs"}, shared.OfReports)
	require.NoError(t, err)
	require.Contains(t, texts["same-key"], "INNER JOIN [theirs].[IVCE_DTL] AS d ON d.[LINE]]ID] = n.detail_id")
	require.Contains(t, texts["same-key"], "CAST(d.[CODE_SURE] AS float) >= 0.8")
}
