package sqlserver_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// A server cuts a text to a parameter's length in silence. The table refuses a text that is too long.
func TestTheProcedureOfTheAuditLogCutsNothing(t *testing.T) {
	schema, err := os.ReadFile("migrations/0001_schema.sql")
	require.NoError(t, err)
	procedure := regexp.MustCompile(`(?s)CREATE PROCEDURE sqlwriter\.audit_add(.*?)\nAS\n`).FindSubmatch(schema)
	require.NotNil(t, procedure)
	parameters := regexp.MustCompile(`@\w+ n?varchar\((\w+)\)`).FindAllSubmatch(procedure[1], -1)
	require.Len(t, parameters, 9)
	for _, p := range parameters {
		require.Equal(t, "max", string(p[1]), "%s", p[0])
	}
}
