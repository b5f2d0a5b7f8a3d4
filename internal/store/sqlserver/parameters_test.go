package sqlserver_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/store/shared"
	"sqlwriter/internal/store/sqlserver"
	"sqlwriter/test/columntypes"
)

// A parameter of another type than its column makes the server convert the column, and so read the whole table.
func TestEachParameterHasTheTypeOfItsColumn(t *testing.T) {
	script, err := os.ReadFile("migrations/0001_schema.sql")
	require.NoError(t, err)
	tables := columntypes.Of(string(script))
	pairs := map[string]int{}
	check := func(of, name, text string, parameter func(string) string) {
		n, differ := tables.Check(text, parameter)
		require.Empty(t, differ, name)
		pairs[of] += n
	}
	texts, err := sqlserver.Texts(sqlserver.Options{}, shared.OfRuns, shared.OfFindings,
		shared.OfAuditLog, shared.OfReports)
	require.NoError(t, err)
	for name, text := range texts {
		check("statements", name, text, func(parameter string) string { return declaration(t, parameter) })
	}
	set, _, err := sqlserver.Produced(nil)
	require.NoError(t, err)
	for name, p := range set {
		check("procedures", name, p.Text, columntypes.Declared(p.Text))
	}
	sent := map[string]string{
		"phase": "varchar", "run": "varchar", "who": "nvarchar", "from": "bigint", "key": "varbinary",
	}
	for _, name := range []string{"state", "empty", "begin", "finish", "rows", "rows_of"} {
		check("adoption", name, sqlserver.AdoptionText(name), func(parameter string) string { return sent[parameter] })
	}
	require.Greater(t, pairs["statements"], 250, "nearly all pairs are known")
	require.Greater(t, pairs["procedures"], 100)
	require.Greater(t, pairs["adoption"], 8)
}

// declaration is a parameter's type as the driver declares it, with the greatest length.
func declaration(t *testing.T, parameter string) string {
	t.Helper()
	declared, ok := map[shared.ParameterType]string{
		shared.Code: "varchar(64)", shared.Text: "nvarchar(2000)", shared.LongText: "nvarchar(max)",
		shared.Bytes: "varbinary(max)", shared.Number: "bigint",
	}[shared.TypeOf(parameter)]
	require.True(t, ok, parameter)
	return declared
}
