package sqlite_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/porttest"
	"sqlwriter/internal/sqlstore"
)

func TestReports(t *testing.T) {
	porttest.TestReports(t, func(t *testing.T) porttest.ReportsHarness {
		d := db{newStore(t)}
		h := porttest.ReportsHarness{
			Reports: d.Reports(porttest.ReportsSysName), Insert: d.insert,
			Now: func(testing.TB) time.Time { return time.Now() }, // the database is in this process
		}
		for _, r := range sqlstore.ReportNames() {
			h.Names = append(h.Names, r.Name)
		}
		return h
	})
}

// insert puts a row into a table of ours.
func (d db) insert(t testing.TB, table string, row map[string]any) {
	t.Helper()
	var columns []string
	var values []any
	for column, value := range row {
		if value == nil {
			continue
		}
		if at, ok := value.(time.Time); ok {
			value = at.UTC().Format("2006-01-02T15:04:05.000Z")
		}
		columns, values = append(columns, column), append(values, value)
	}
	places := strings.TrimSuffix(strings.Repeat("?,", len(values)), ",")
	d.exec(t, fmt.Sprintf(`INSERT INTO sqlwriter_%s (%s) VALUES (%s)`, table, strings.Join(columns, ", "), places), values...)
}

func TestReportsOfTablesThatAreMissing(t *testing.T) {
	d := db{newStore(t)}
	d.exec(t, `DROP VIEW sqlwriter_batch`)
	_, err := d.Reports("web").Report(t.Context(), "queue-depth")
	require.ErrorContains(t, err, "sqlite: report queue-depth")
}
