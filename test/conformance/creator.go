package conformance

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/ops"
)

// Creator is a container whose whole documents can be written and read.
type Creator interface {
	ops.DocumentCreator
	commit.Documents
}

// TestCreator checks an implementation of ops.DocumentCreator against the port's contract, over a container with
// nothing in it.
func TestCreator(t *testing.T, c Creator) {
	ctx := t.Context()
	require.NoError(t, c.Submit(ctx, json.RawMessage(`{"id":"a","n":1,"sql_writer":{"status":"committed"}}`), false))
	err := c.Submit(ctx, json.RawMessage(`{"id":"a","n":2}`), false)
	require.Equal(t, fault.Document, fault.KindOf(err))
	require.Equal(t, "409", fault.CodeOf(err))
	doc, err := c.Read(ctx, "a")
	require.NoError(t, err)
	require.Contains(t, string(doc), `"committed"`, "the refused document changed nothing")
	require.NoError(t, c.Submit(ctx, json.RawMessage(`{"id":"a","n":3}`), true))
	doc, err = c.Read(ctx, "a")
	require.NoError(t, err)
	require.NotContains(t, string(doc), "sql_writer", "replaced whole")
	require.NoError(t, c.Submit(ctx, json.RawMessage(`{"id":"b"}`), true), "replace makes a missing document")
	for _, bad := range []string{
		``, `{`, `[]`, `7`, `null`, `{}`, `{"id":7}`, `{"id":null}`, `{"id":""}`, `{"id":"a/b"}`,
		`{"id":".."}`,
	} {
		err := c.Submit(ctx, json.RawMessage(bad), false)
		require.Equal(t, fault.Document, fault.KindOf(err), "%s: %v", bad, err)
		require.Regexp(t, "id|JSON", err.Error(), "what is wrong with %s", bad)
		require.NotEqual(t, "409", fault.CodeOf(err), bad)
	}
}
