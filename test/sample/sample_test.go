package sample_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/store/sqlite"
	"sqlwriter/test/sample"
)

// golden is the SHA-256 of the 500 documents of `make run`. It changes only on purpose.
const golden = "210675310b29dd75ab9a900c0dd7f756e507d0b583f207a2df82272262d42540"

func TestGeneratedDocumentsAreTheSameEverywhere(t *testing.T) {
	h := sha256.New()
	for _, d := range sample.Generate(sample.Options{Seed: sample.DefaultSeed, Count: sample.DefaultCount}) {
		h.Write(d.JSON)
	}
	require.Equal(t, golden, hex.EncodeToString(h.Sum(nil)))
}

func TestAnotherSeedGivesOtherDocuments(t *testing.T) {
	a := sample.Generate(sample.Options{Seed: 1, Count: 3})
	b := sample.Generate(sample.Options{Seed: 2, Count: 3})
	require.NotEqual(t, a[0].JSON, b[0].JSON)
}

func TestGeneratedDocumentsCoverWhatTheyPromise(t *testing.T) {
	docs := sample.Generate(sample.Options{Seed: sample.DefaultSeed, Count: sample.DefaultCount})
	require.Len(t, docs, sample.DefaultCount)
	ids, mains := map[string]bool{}, map[int64]int{}
	exceptions, duplicates, either, withoutList := 0, 0, 0, 0
	most := 0
	for _, d := range docs {
		require.False(t, ids[d.ID], "%s is there twice", d.ID)
		ids[d.ID] = true
		require.True(t, json.Valid(d.JSON), d.Name)
		mains[d.Lines[0]]++
		if d.Want.Exception() {
			exceptions++
			require.NotEmpty(t, d.Want.Why)
			require.NotEmpty(t, d.Want.Kind)
		}
		if len(d.Lines) > 1 {
			duplicates++
		}
		most = max(most, len(d.Lines)-1)
		if len(d.Want.Outcomes) == 2 {
			either++
		}
		var doc struct {
			Post map[string]any `json:"post-processing"`
		}
		require.NoError(t, json.Unmarshal(d.JSON, &doc))
		if _, ok := doc.Post["duplicate_detail_uids"]; !ok {
			withoutList++
		}
	}
	require.Equal(t, 3, exceptions)
	require.Greater(t, duplicates, 100)
	require.Equal(t, 5, most)
	require.Greater(t, either, 10)
	require.Greater(t, withoutList, 50)
	twice := 0
	for _, n := range mains {
		require.LessOrEqual(t, n, 2)
		if n == 2 {
			twice++
		}
	}
	require.Greater(t, twice, 15, "lines with two results")
}

func TestSizeAndCleanAreKept(t *testing.T) {
	for _, d := range sample.Generate(sample.Options{Seed: 7, Count: 200, Size: 4096, Clean: true}) {
		require.InDelta(t, 4096, len(d.JSON), 64, d.Name)
		require.False(t, d.Want.Exception(), d.Name)
	}
}

func TestExamplesKnowTheirLines(t *testing.T) {
	docs, err := sample.Examples()
	require.NoError(t, err)
	byName := map[string]sample.Document{}
	for _, d := range docs {
		byName[d.Name] = d
	}
	require.Equal(t, []int64{1421549, 1421550, 1421551, 1421552}, byName["02-duplicates.json"].Lines)
	require.Equal(t, []int64{1421576}, byName["10-missing-detail-row.json"].Lines, "the missing one is not made")
	require.Empty(t, byName["08-unreadable.json"].Lines)
	require.NotContains(t, sample.Lines(docs), int64(9999901))
}

func TestTenThousandDocuments(t *testing.T) {
	require.Len(t, sample.Generate(sample.Options{Seed: 1, Count: 10_000}), 10_000)
}

func TestOfTwoDocumentsWithOneIdTheLastOneCounts(t *testing.T) {
	docs := []sample.Document{
		{Name: "first", ID: "1", JSON: json.RawMessage(`{"id":"1"}`)},
		{Name: "again", ID: "1"},
		{Name: "lost", ID: "2"},
	}
	in := sample.Input(docs, map[string]json.RawMessage{"1": docs[0].JSON, "9": json.RawMessage(`{"id":"9"}`)})
	require.Len(t, in.Documents, 3)
	require.Equal(t, "again", in.Documents[0].Name)
	require.Nil(t, in.Documents[1].Stored)
	require.Nil(t, in.Documents[2].Want, "nobody here knows what must become of a document that somebody else put in")
}

func TestSeededLinesAreMadeOnceAndKept(t *testing.T) {
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "x.db"), sqlite.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	require.NoError(t, sqlite.CreateSampleSchema(t.Context(), store.Writer()))
	made, err := sample.SeedLines(t.Context(), store.Writer(), []int64{7, 8})
	require.NoError(t, err)
	require.EqualValues(t, 2, made)
	_, err = store.Writer().ExecContext(t.Context(), `UPDATE IVCE_DTL SET UPC_CD = '1' WHERE IVCE_DTL_UID = 8`)
	require.NoError(t, err)
	made, err = sample.SeedLines(t.Context(), store.Writer(), []int64{7, 8, 9})
	require.NoError(t, err)
	require.EqualValues(t, 1, made)
	var kept, tracked int
	require.NoError(t,
		store.Reader().QueryRowContext(t.Context(),
			`SELECT (SELECT count(*) FROM IVCE_DTL WHERE UPC_CD = '1'), (SELECT count(*) FROM IVCE_TRKG_MSTR)`).Scan(&kept, &tracked))
	require.Equal(t, 1, kept)
	require.Equal(t, 1, tracked, "line 7 alone has an old tracking row")
}
