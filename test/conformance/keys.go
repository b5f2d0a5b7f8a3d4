package conformance

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// KeyedHarness has commit.Documents over a container whose partition key is not the id.
type KeyedHarness struct {
	DocumentsHarness

	// Document makes a document with an id under one of two partition keys, 0 and 1.
	Document func(id string, key int) json.RawMessage
	// Delete deletes a document that Document made.
	Delete func(t testing.TB, doc json.RawMessage)
}

// TestKeyedDocuments checks what an implementation of commit.Documents does with ids that are unique only within a
// partition key. open makes a new container per test.
func TestKeyedDocuments(t *testing.T, open func(t *testing.T) KeyedHarness) {
	for _, c := range []struct {
		name string
		run  func(*testing.T, KeyedHarness)
	}{
		{"one id under two keys is refused by read, and both come from read many", twinsAreNamed},
		{"each twin is recorded under its own key", twinsAreRecorded},
		{"a document that was put anew under another key has changed, and is not gone", movedHasChanged},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, open(t)) })
	}
}

func twinsAreNamed(t *testing.T, h KeyedHarness) {
	h.Put(t, h.Document("a", 0))
	h.Put(t, h.Document("a", 1))
	h.Put(t, h.Document("b", 0))
	_, err := h.Documents.Read(t.Context(), "a")
	requireFault(t, err, fault.Document, fault.NoCondition)
	require.Equal(t, commit.CodeIDTwice, fault.CodeOf(err))
	docs, err := h.Documents.ReadMany(t.Context(), []string{"a", "b", "a"})
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"a", "a", "b"}, ids(t, docs))

	h.Delete(t, h.Document("a", 1))
	doc, err := h.Documents.Read(t.Context(), "a")
	require.NoError(t, err, "one is left")
	require.Equal(t, `"a"`, string(members(t, doc)["id"]))
}

func twinsAreRecorded(t *testing.T, h KeyedHarness) {
	h.Put(t, h.Document("a", 0))
	first := whole(t, h.DocumentsHarness, "a")
	h.Put(t, h.Document("a", 1))
	next, err := h.Documents.Record(t.Context(), first, state(invoice.Committed))
	require.NoError(t, err)
	require.NotEqual(t, first.ETag, next)
	docs, err := h.Documents.ReadMany(t.Context(), []string{"a"})
	require.NoError(t, err)
	require.Len(t, docs, 2)
	for _, doc := range docs {
		_, recorded := members(t, doc)["sql_writer"]
		require.Equal(t, text(t, members(t, doc)["_etag"]) == next, recorded, "%s", doc)
	}
}

func movedHasChanged(t *testing.T, h KeyedHarness) {
	h.Put(t, h.Document("a", 0))
	before := whole(t, h.DocumentsHarness, "a")
	h.Delete(t, h.Document("a", 0))
	h.Put(t, h.Document("a", 1))
	_, err := h.Documents.Record(t.Context(), before, state(invoice.Committed))
	requireFault(t, err, fault.Contention, fault.Changed)
	_, err = h.Documents.Record(t.Context(), whole(t, h.DocumentsHarness, "a"), state(invoice.Committed))
	require.NoError(t, err)
}
