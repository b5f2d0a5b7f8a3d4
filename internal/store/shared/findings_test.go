package shared_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/store/shared"
)

func TestEveryFileIsAStatementAboutFindings(t *testing.T) {
	words := testDialect()
	texts, err := shared.Texts(words, shared.OfFindings)
	require.NoError(t, err)
	files, err := os.ReadDir("findings")
	require.NoError(t, err)
	require.Len(t, texts, len(files))
	code, err := os.ReadFile("findings.go")
	require.NoError(t, err)
	for name, text := range texts {
		require.Regexp(t, `^(-- .+\n)+(INSERT|UPDATE|SELECT|DELETE)\b`, text, "a statement says what it does")
		require.Contains(t, string(code), `"`+name+`"`)
		if strings.Contains(text, "UPDATE the_finding") || strings.Contains(text, "INSERT INTO the_finding") {
			require.Contains(t, text, "list(@rows", "%s: many rows make the server lock the table", name)
		}
	}
	words.LockTimeout = 700
	texts, err = shared.Texts(words, shared.OfFindings)
	require.NoError(t, err)
	for name, text := range texts {
		writes := strings.Contains(text, "INSERT INTO") || strings.Contains(text, "UPDATE") ||
			strings.Contains(text, "DELETE FROM")
		require.Equal(t, writes, strings.Contains(text, "SET XACT_ABORT ON;\nSET LOCK_TIMEOUT 700;\n"), name)
	}
}
