package sqlite_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/store/sqlite"
	"sqlwriter/test/mapping"
	"sqlwriter/test/sqltest"
)

// renamed is the default mapping with other names for both keys and some columns.
func renamed() *invoice.Mapping {
	return mapping.Edited(func(tables map[invoice.Table]*mapping.Table) {
		detail, tracking := tables[invoice.Detail], tables[invoice.Tracking]
		detail.Key, tracking.Key = `DTL "ID`, "TRKG_ID"
		detail.Column("AI_STG_NM")["name"], detail.Column("UNSPSC_CNFDC_SCR")["name"] = "STAGE", "CODE_SURE"
		tracking.Column("IVCE_LNE_STAT")["name"], tracking.Column("DUP_IND")["name"] = "STATUS", "DUPLICATE"
		tracking.Column("RQST_TS")["name"] = "REQUEST_TIME"
	})
}

// named is a store of a mapping with a detail row for each line.
func named(t *testing.T, m *invoice.Mapping, lines ...int64) (s *sqlite.Store, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "named.db")
	s = openNamed(t, path, m)
	require.NoError(t, sqlite.CreateSampleSchemaAs(t.Context(), s.Writer(), m))
	require.NoError(t, s.Migrate(t.Context()))
	key := strings.ReplaceAll(m.Key(invoice.Detail), `"`, `""`)
	for _, line := range lines {
		_, err := s.Writer().ExecContext(t.Context(), `INSERT INTO IVCE_DTL ("`+key+`") VALUES (?)`, line)
		require.NoError(t, err)
	}
	return s, path
}

func openNamed(t *testing.T, path string, m *invoice.Mapping) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{Mapping: m})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func TestADeploymentMayRenameItsColumns(t *testing.T) {
	m := renamed()
	s, _ := named(t, m, 1, 2, 3)
	require.NoError(t, s.Check(t.Context()))
	it := sqltest.Item("a", 1, 1, 2)
	require.Equal(t, invoice.OutcomeApplied, apply(t, s, it)[0].Verdict)
	require.Equal(t, invoice.OutcomeUnchanged, apply(t, s, it)[0].Verdict)

	var stage, status, duplicate string
	require.NoError(t, s.Reader().QueryRowContext(t.Context(), `SELECT d.STAGE, t.STATUS, t.DUPLICATE
		FROM IVCE_DTL d JOIN IVCE_TRKG_MSTR t ON t.TRKG_ID = d."DTL ""ID" WHERE d."DTL ""ID" = 2`).Scan(&stage, &status, &duplicate))
	require.Contains(t, stage, "a, process_output")
	require.Equal(t, "RC-AI", status)
	require.Equal(t, "Y", duplicate)

	again := sqltest.Item("b", 2, 1)
	require.Equal(t, invoice.OutcomeApplied, apply(t, s, again)[0].Verdict,
		"tracking rows that exist are found by their key")
	mark := sqltest.Item("c", 3, 3)
	mark.FailureMark, mark.Values = true, mapping.InUse().MarkValues()
	require.Equal(t, invoice.OutcomeApplied, apply(t, s, mark)[0].Verdict)
	out, err := s.Apply(t.Context(), []commit.Item{sqltest.Item("d", 4, 2, 3)}, commit.Preview, breaker.Heartbeat{})
	require.NoError(t, err)
	require.Equal(t, mapping.InUse().RowValues(it.Values, 1, 2), out[0].Rows[0].Before,
		"values stand in the order of the column table")
	require.Equal(t, invoice.OutcomeMissing, apply(t, s, sqltest.Item("e", 5, 9))[0].Verdict)
}

func TestAColumnThatTheMappingNamesAndTheTableLacksIsAFaultOfTheSchema(t *testing.T) {
	s, path := named(t, nil, 1)
	require.NoError(t, s.Check(t.Context()))
	err := openNamed(t, path, renamed()).Check(t.Context())
	require.Equal(t, fault.Infrastructure, fault.KindOf(err))
	require.Equal(t, "schema", fault.CodeOf(err))
}

func TestAReportHasTheNamesOfTheDeployment(t *testing.T) {
	s, _ := named(t, renamed(), 1, 2)
	for line, code := range map[int64]string{1: "1", 2: "2"} {
		it := sqltest.Item("same", line, line)
		for i, c := range mapping.InUse().Columns() {
			switch {
			case c.Reads("process_output.unspsc"):
				it.Values[i] = invoice.Of(code)
			case c.Kind == invoice.Decimal:
				it.Values[i] = invoice.Of("0.8000")
			}
		}
		out, err := s.Apply(t.Context(), []commit.Item{it}, commit.Write, breaker.Heartbeat{SysName: "web"})
		require.NoError(t, err)
		require.Equal(t, invoice.OutcomeApplied, out[0].Verdict)
	}
	table, err := s.Reports("web").Report(t.Context(), "same-key")
	require.NoError(t, err)
	require.Len(t, table.Rows, 1)
	require.Equal(t, []any{int64(2), int64(2), int64(2), int64(2), int64(1), int64(2)},
		table.Rows[0], "%v", table.Columns)
}

// Every suite of the engine that writes or reads the user's columns.
func TestTheStrangersHouse(t *testing.T) {
	t.Parallel()
	mapping.InTheStrangersHouse(t, "^(TestSink|TestBisect|TestRows|TestReports)$")
}
