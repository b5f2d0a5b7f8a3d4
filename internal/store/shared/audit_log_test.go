package shared_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/store/shared"
)

func TestEveryFileIsAStatementOfTheAuditLog(t *testing.T) {
	words := testDialect()
	texts, err := shared.Texts(words, shared.OfAuditLog)
	require.NoError(t, err)
	files, err := os.ReadDir("auditlog")
	require.NoError(t, err)
	for _, f := range files {
		name := strings.TrimSuffix(f.Name(), ".sql")
		require.Contains(t, texts, name)
		require.NotContains(t, texts[name], "LOCK_TIMEOUT", "%s: only an engine with LockTimeout sets it", name)
		require.Regexp(t, `^-- .+\n(INSERT|UPDATE|SELECT)\b`, texts[name], "a statement says what it does")
	}
	words.LockTimeout = 700
	texts, err = shared.Texts(words, shared.OfAuditLog)
	require.NoError(t, err)
	for name, text := range texts {
		writes := strings.Contains(text, "INSERT INTO") || strings.Contains(text, "UPDATE")
		require.Equal(t, writes, strings.Contains(text, "SET XACT_ABORT ON;\nSET LOCK_TIMEOUT 700;\n"), name)
	}
}

func TestMoment(t *testing.T) {
	at := time.Date(2025, 12, 18, 16, 0, 0, 123e6, time.UTC)
	for name, value := range map[string]any{
		"a time": at.In(time.FixedZone("", -6*3600)), "a text": "2025-12-18T16:00:00.123Z",
	} {
		found, err := shared.ScanMoment(value)
		require.NoError(t, err, name)
		require.Equal(t, at, found, name)
	}
	found, err := shared.ScanMoment(nil)
	require.NoError(t, err)
	require.True(t, found.IsZero())
	for _, value := range []any{"yesterday", int64(1)} {
		_, err := shared.ScanMoment(value)
		require.Error(t, err, value)
	}
}
