package cosmosdb

import (
	"net/http"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/test/emulators/cosmosdb/jsonval"
)

// TestJournalHasNoWriteBehindTheDeletionOfItsContainer: a request may have found its container just before
// it is deleted. A record it wrote afterwards could not be read back.
func TestJournalHasNoWriteBehindTheDeletionOfItsContainer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	s, err := New(Options{JournalPath: path})
	require.NoError(t, err)
	body := func(text string) jsonval.Value {
		v, err := jsonval.Parse(text)
		require.NoError(t, err)
		return v
	}
	serve := func(r request) {
		_, apiErr := s.serve(&r)
		require.Nil(t, apiErr)
	}
	serve(request{op: OpDatabase, method: http.MethodPost, body: body(`{"id":"db"}`)})
	serve(
		request{
			op: OpContainer, method: http.MethodPost, databaseID: "db",
			body: body(`{"id":"logs","partitionKey":{"paths":["/id"]}}`),
		})
	c, apiErr := s.container("db", "logs")
	require.Nil(t, apiErr)
	serve(request{op: OpContainer, method: http.MethodDelete, databaseID: "db", containerID: "logs"})

	header := http.Header{}
	header.Set(headerPartitionKey, `["1"]`)
	for _, op := range []Op{OpCreate, OpBatch, OpRead} {
		req := &request{op: op, documentID: "1", header: header, body: body(`{"id":"1"}`)}
		answer := c.writeDocument
		switch op {
		case OpBatch:
			req.body, answer = body(`[{"operationType":"Create","resourceBody":{"id":"1"}}]`), c.batch
		case OpRead:
			answer = c.readDocument
		default:
		}
		_, apiErr = answer(req)
		require.NotNil(t, apiErr, op)
		require.Equal(t, http.StatusNotFound, apiErr.status)
	}
	again, err := New(Options{JournalPath: path})
	require.NoError(t, err)
	require.NoError(t, again.Close())
	require.NoError(t, s.Close())
}
