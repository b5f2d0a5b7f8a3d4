package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// DocumentsHarness has the port under test and the functions that the suite needs around it.
type DocumentsHarness struct {
	// Documents is the port under test, over a container with nothing in it.
	Documents commit.Documents
	// Put writes a whole document, new or over an old one, as the programs that produce results do.
	Put func(t testing.TB, doc json.RawMessage)
	// MaxBytes is how large a document may be; 0 when the backend has no such limit to show.
	MaxBytes int
}

// TestDocuments checks an implementation of commit.Documents against the port's contract. open makes a new one per
// test.
func TestDocuments(t *testing.T, open func(t *testing.T) DocumentsHarness) {
	for _, c := range []struct {
		name string
		run  func(*testing.T, DocumentsHarness)
	}{
		{"read gives the document as it was written", readGivesDocument},
		{"a document that is not there is gone, and stays so", absentIsGone},
		{"an id that cannot be is gone, and addresses nothing else", impossibleIDIsGone},
		{"read many leaves out absent ids and gives repeated ones once", readManyAbsentAndRepeated},
		{"read many of none, one and 250", readManyCounts},
		{"record changes sql_writer and nothing else", recordChangesOnlyState},
		{"record answers the etag that the next record needs", recordChain},
		{"record replaces sql_writer whole, and takes members it does not know", recordReplacesWhole},
		{"record against another etag changes nothing", recordStale},
		{"record never takes an etag for any", recordNoEtag},
		{"of 20 records with one etag exactly one wins", recordRace},
		{"ids with blanks, signs and any letters are one id everywhere", oddIDs},
		{"a call whose context has ended is infrastructure", cancelled},
		{"a state that makes the document too large is refused whole", tooLarge},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, open(t)) })
	}
}

func readGivesDocument(t *testing.T, h DocumentsHarness) {
	in := `{"id":"a","request_details":{"id":"R"},"text":"<b>&\"'\u00fc\ud83d\ude00","n":1.50,"big":9007199254740991,"null":null,"list":[1,"2",{"x":[]}],"sql_writer":{"status":"pending"}}`
	h.Put(t, json.RawMessage(in))
	doc, err := h.Documents.Read(t.Context(), "a")
	require.NoError(t, err)
	got := members(t, doc)
	require.NotEmpty(t, text(t, got["_etag"]), "_etag is what Record needs")
	var ts int64
	require.NoError(t, json.Unmarshal(got["_ts"], &ts), "_ts is whole seconds")
	require.Positive(t, ts)
	for name, want := range members(t, json.RawMessage(in)) {
		require.JSONEq(t, string(want), string(got[name]), name)
	}
	many, err := h.Documents.ReadMany(t.Context(), []string{"a"})
	require.NoError(t, err)
	require.Len(t, many, 1)
	require.JSONEq(t, string(doc), string(many[0]), "both ways of reading give the same document")
}

func absentIsGone(t *testing.T, h DocumentsHarness) {
	h.Put(t, sample("other"))
	_, err := h.Documents.Read(t.Context(), "a")
	requireFault(t, err, fault.Document, fault.Gone)
	_, err = h.Documents.Record(t.Context(), absent(t, "a", etag(t, h, "other")), state("committed"))
	requireFault(t, err, fault.Document, fault.Gone)
	_, err = h.Documents.Read(t.Context(), "a")
	requireFault(t, err, fault.Document, fault.Gone)
}

func impossibleIDIsGone(t *testing.T, h DocumentsHarness) {
	h.Put(t, sample("a"))
	for _, id := range []string{"", ".", "..", "a/b", `a\b`, "a?", "a#b", "../a"} {
		_, err := h.Documents.Read(t.Context(), id)
		requireFault(t, err, fault.Document, fault.Gone, "read %q", id)
		never := whole(t, h, "a")
		never.ID = id
		_, err = h.Documents.Record(t.Context(), never, state("committed"))
		requireFault(t, err, fault.Document, fault.Gone, "record %q", id)
	}
	docs, err := h.Documents.ReadMany(t.Context(), []string{"", "a", "a/b", "..", "a?"})
	require.NoError(t, err)
	require.Len(t, docs, 1)
}

func readManyAbsentAndRepeated(t *testing.T, h DocumentsHarness) {
	for _, id := range []string{"a", "b", "c"} {
		h.Put(t, sample(id))
	}
	docs, err := h.Documents.ReadMany(t.Context(), []string{"c", "nobody", "a", "c", "c", "a", "nothing"})
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"a", "c"}, ids(t, docs))
}

func readManyCounts(t *testing.T, h DocumentsHarness) {
	docs, err := h.Documents.ReadMany(t.Context(), nil)
	require.NoError(t, err)
	require.Empty(t, docs)
	const n = 250
	want := make([]string, n)
	for i := range want {
		want[i] = fmt.Sprintf("2025-12-17 10:30:15.%06d-06:00", i)
		h.Put(t, sample(want[i]))
	}
	docs, err = h.Documents.ReadMany(t.Context(), want[7:8])
	require.NoError(t, err)
	require.Equal(t, want[7:8], ids(t, docs))
	docs, err = h.Documents.ReadMany(t.Context(), want)
	require.NoError(t, err)
	require.ElementsMatch(t, want, ids(t, docs))
}

func recordChangesOnlyState(t *testing.T, h DocumentsHarness) {
	for _, before := range []string{``, `,"sql_writer":null`, `,"sql_writer":{"status":"pending","old":1}`} {
		id := fmt.Sprintf("a%d", len(before))
		h.Put(t, document(id, `,"n":1421549.0,"s":"<&>","deep":{"sql_writer":{"status":"mine"}}`+before))
		was := read(t, h, id)
		next, err := h.Documents.Record(t.Context(), whole(t, h, id), state("committed"))
		require.NoError(t, err)
		is := read(t, h, id)
		require.Equal(t, next, text(t, is["_etag"]), "the etag that Record answered is the document's")
		require.NotEqual(t, text(t, was["_etag"]), next)
		require.JSONEq(t, encoded(t, state("committed")), string(is["sql_writer"]))
		for _, m := range []map[string]json.RawMessage{was, is} {
			for _, own := range []string{"sql_writer", "_etag", "_ts", "_lsn"} {
				delete(m, own)
			}
		}
		require.Equal(t, was, is, "all else is as it was")
	}
}

func recordChain(t *testing.T, h DocumentsHarness) {
	h.Put(t, sample("a"))
	doc := whole(t, h, "a")
	seen := map[string]bool{doc.ETag: true}
	for i := range 5 {
		s := state("retry_scheduled")
		s.RetryCount = i
		next, err := h.Documents.Record(t.Context(), doc, s)
		require.NoError(t, err)
		require.False(t, seen[next], "every write has an etag of its own, also one that changes nothing")
		require.JSONEq(t, encoded(t, s), string(read(t, h, "a")["sql_writer"]))
		seen[next], doc.ETag = true, next
	}
	// The very same state again is a write too: a caller with the older etag must get a conflict.
	var err error
	before := doc.ETag
	for range 2 {
		before = doc.ETag
		doc.ETag, err = h.Documents.Record(t.Context(), doc, state("committed"))
		require.NoError(t, err)
	}
	require.NotEqual(t, before, doc.ETag)
}

func recordReplacesWhole(t *testing.T, h DocumentsHarness) {
	h.Put(t, document("a", `,"sql_writer":{"status":"pending","theirs":{"x":[1,2]},"gone":true}`))
	s := state("committed")
	s.Extra = map[string]json.RawMessage{
		"theirs": json.RawMessage(`{"x":[1,2]}`), "<odd & name>": json.RawMessage(`9007199254740991`),
	}
	_, err := h.Documents.Record(t.Context(), whole(t, h, "a"), s)
	require.NoError(t, err)
	got := read(t, h, "a")["sql_writer"]
	require.JSONEq(t, encoded(t, s), string(got))
	require.NotContains(t, members(t, got), "gone", "a member that the state does not carry is not there")
}

func recordStale(t *testing.T, h DocumentsHarness) {
	h.Put(t, sample("a"))
	stale := etag(t, h, "a")
	h.Put(t, document("a", `,"corrected":true`))
	before, doc := read(t, h, "a"), whole(t, h, "a")
	for _, tag := range []string{stale, `"never-was"`, strings.Trim(text(t, before["_etag"]), `"`) + "x"} {
		old := doc
		old.ETag = tag
		_, err := h.Documents.Record(t.Context(), old, state("failed"))
		requireFault(t, err, fault.Contention, fault.Changed)
		require.Equal(t, before, read(t, h, "a"), "nothing was done")
	}
	_, err := h.Documents.Record(t.Context(), doc, state("committed"))
	require.NoError(t, err, "the etag that a new read gives is good")
}

func recordNoEtag(t *testing.T, h DocumentsHarness) {
	h.Put(t, sample("a"))
	before, doc := read(t, h, "a"), whole(t, h, "a")
	for _, tag := range []string{"", "*"} {
		doc.ETag = tag
		_, err := h.Documents.Record(t.Context(), doc, state("failed"))
		requireFault(t, err, fault.Contention, fault.Changed, "etag %q", tag)
		require.Equal(t, before, read(t, h, "a"))
	}
}

func recordRace(t *testing.T, h DocumentsHarness) {
	h.Put(t, sample("a"))
	doc := whole(t, h, "a")
	const n = 20
	next, errs := atOnce(n, func(i int) (string, error) {
		s := state("retry_scheduled")
		s.RetryCount = i
		return h.Documents.Record(t.Context(), doc, s)
	})
	winner := oneWins(t, errs, fault.Changed)
	want := state("retry_scheduled")
	want.RetryCount = winner
	got := read(t, h, "a")
	require.JSONEq(t, encoded(t, want), string(got["sql_writer"]))
	require.Equal(t, next[winner], text(t, got["_etag"]))
}

func oddIDs(t *testing.T, h DocumentsHarness) {
	odd := []string{
		"2025-12-17 10:30:15.123456-06:00_a", "2025-12-17T10:30:15+05:30", "a+b", "a b", "a%20b",
		"a%2Bb", "100%", "a%", "%41",
		`say "a"`, "it's", "<a&b>", "ünï-日本-😀", "a;b=c,d", "$a@b:c", "~a|b^{c}", "A", "a", "a.", "tab\there",
		"del\u007f", strings.Repeat("x", 255),
	}
	for _, id := range odd {
		h.Put(t, sample(id))
	}
	for i, id := range odd {
		require.Equal(t, id, text(t, read(t, h, id)["id"]))
		s := state("retry_scheduled")
		s.RetryCount = i
		_, err := h.Documents.Record(t.Context(), whole(t, h, id), s)
		require.NoError(t, err, id)
	}
	docs, err := h.Documents.ReadMany(t.Context(), odd)
	require.NoError(t, err)
	require.ElementsMatch(t, odd, ids(t, docs))
	for i, id := range odd {
		s := state("retry_scheduled")
		s.RetryCount = i
		require.JSONEq(t, encoded(t, s), string(read(t, h, id)["sql_writer"]), "each id has its own document: %s", id)
	}
}

func cancelled(t *testing.T, h DocumentsHarness) {
	h.Put(t, sample("a"))
	before, doc := read(t, h, "a"), whole(t, h, "a")
	ctx := lateContext(t)
	_, err := h.Documents.Read(ctx, "a")
	requireFault(t, err, fault.Infrastructure, fault.NoCondition)
	require.ErrorIs(t, err, context.Canceled)
	_, err = h.Documents.ReadMany(ctx, []string{"a"})
	requireFault(t, err, fault.Infrastructure, fault.NoCondition)
	_, err = h.Documents.Record(ctx, doc, state("committed"))
	requireFault(t, err, fault.Infrastructure, fault.NoCondition)
	require.Equal(t, before, read(t, h, "a"))
}

func tooLarge(t *testing.T, h DocumentsHarness) {
	if h.MaxBytes == 0 {
		t.Skip("this backend has no limit to show")
	}
	h.Put(t, document("a", `,"filler":"`+strings.Repeat("x", h.MaxBytes-4096)+`"`))
	before, doc := read(t, h, "a"), whole(t, h, "a")
	s := state("retry_scheduled")
	s.Extra = map[string]json.RawMessage{"large": json.RawMessage(`"` + strings.Repeat("y", 8192) + `"`)}
	_, err := h.Documents.Record(t.Context(), doc, s)
	requireFault(t, err, fault.Document, fault.TooLarge)
	require.Equal(t, before["_etag"], read(t, h, "a")["_etag"])
	_, err = h.Documents.Record(t.Context(), doc, state("failed"))
	require.NoError(t, err, "a small state still fits")
}

// state makes a state with a status.
func state(status invoice.Status) invoice.State {
	return invoice.State{
		Present: true, Status: status, StatusFound: string(status), LastError: `<a & "b">`, RetryAfter: 1766000000,
	}
}

// sample makes a document with an id.
func sample(id string) json.RawMessage { return document(id, "") }

// document makes a document with an id, in a request of its own, and with more members: text such as `,"n":1`.
func document(id, more string) json.RawMessage {
	head, err := json.Marshal(
		map[string]any{"id": id, "request_details": map[string]any{"sys_name": "web", "id": "R-" + id}})
	if err != nil {
		panic(err) // strings always marshal
	}
	return append(head[:len(head)-1], more+"}"...)
}

// whole reads a document whole.
func whole(t testing.TB, h DocumentsHarness, id string) invoice.Snapshot {
	t.Helper()
	doc, err := h.Documents.Read(t.Context(), id)
	require.NoError(t, err, id)
	s, err := invoice.Reader{}.ReadSnapshot(doc, time.Now())
	require.NoError(t, err, id)
	return s
}

// absent is a snapshot of a document that is not there any more.
func absent(t testing.TB, id, etag string) invoice.Snapshot {
	t.Helper()
	s, err := invoice.Reader{}.ReadSnapshot(sample(id), time.Now())
	require.NoError(t, err)
	s.ETag = etag
	return s
}

func encoded(t testing.TB, s invoice.State) string {
	t.Helper()
	b, err := json.Marshal(s)
	require.NoError(t, err)
	return string(b)
}

func read(t testing.TB, h DocumentsHarness, id string) map[string]json.RawMessage {
	t.Helper()
	doc, err := h.Documents.Read(t.Context(), id)
	require.NoError(t, err, id)
	return members(t, doc)
}

func etag(t testing.TB, h DocumentsHarness, id string) string {
	t.Helper()
	return text(t, read(t, h, id)["_etag"])
}

func ids[T ~[]byte](t testing.TB, docs []T) []string {
	t.Helper()
	out := make([]string, len(docs))
	for i, doc := range docs {
		out[i] = text(t, members(t, json.RawMessage(doc))["id"])
	}
	return out
}

// members takes an object apart, each member without blanks and with its characters unescaped alike.
func members(t testing.TB, doc json.RawMessage) map[string]json.RawMessage {
	t.Helper()
	var m map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(doc, &m))
	for name, v := range m {
		var value any
		d := json.NewDecoder(bytes.NewReader(v))
		d.UseNumber()
		require.NoError(t, d.Decode(&value))
		plain, err := json.Marshal(value)
		require.NoError(t, err)
		m[name] = plain
	}
	return m
}

func text(t testing.TB, v json.RawMessage) string {
	t.Helper()
	var s string
	require.NoError(t, json.Unmarshal(v, &s), "a text is wanted, found %s", v)
	return s
}

func requireFault(t testing.TB, err error, kind fault.Kind, condition fault.Condition, about ...any) {
	t.Helper()
	e := fault.As(err)
	require.NotNil(t, e, "an error of kind %s is wanted, found %v", kind, err)
	require.Equal(t, kind, e.Kind, about...)
	require.Equal(t, condition, e.Condition, about...)
	require.NotEmpty(t, e.Op)
	require.NotEmpty(t, e.Code)
}
