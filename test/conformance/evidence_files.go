package conformance

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
)

// EvidenceFiles is everything that a store of evidence does.
type EvidenceFiles interface {
	commit.Evidence
	ops.EvidenceStore
}

// EvidenceFilesHarness has the ports under test and the functions that TestEvidenceFiles needs around them.
type EvidenceFilesHarness struct {
	// Evidence is the store under test, with no files.
	Evidence EvidenceFiles
	// Read looks at a file as it is stored, not through Evidence; ok is false when there is none.
	Read func(t testing.TB, name string) (content []byte, ok bool)
}

// TestEvidenceFiles checks commit.Evidence and ops.EvidenceStore against their contracts. open makes a new one per
// test.
func TestEvidenceFiles(t *testing.T, open func(t *testing.T) EvidenceFilesHarness) {
	for _, c := range []struct {
		name string
		run  func(*testing.T, EvidenceFilesHarness)
	}{
		{"350 folders' files are listed below theirs, each once", listsBelow},
		{"a file is read as it is stored, and a missing one is gone", readsFiles},
		{"impossible names are refused", impossibleFiles},
		{"the place has no signature", placeOfFiles},
		{"a call whose context has ended is infrastructure", evidenceCancelled},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, open(t)) })
	}
}

// evidenceOf is the document that evidence is of.
func evidenceOf(id string, main int64) invoice.Document {
	return invoice.Document{
		ID: id, Main: main, Version: invoice.Version{Key: invoice.Key(id)}, Hash: invoice.Key("content of " + id),
	}
}

// fails keeps the evidence of a failure of a document, and gives its folder.
func (h EvidenceFilesHarness) fails(t testing.TB, d invoice.Document, resets int) string {
	t.Helper()
	folder := commit.EvidenceFolder(d, time.Unix(int64(resets), 0))
	for _, file := range []struct{ name, content string }{
		{"original.json", "{}"},
		{"error.json", "{}"},
		{commit.EvidenceMetadata, fmt.Sprintf(`{"container": "c", "document_id": %q}`, d.ID)},
	} {
		require.NoError(t, h.Evidence.Keep(t.Context(), folder+"/"+file.name, []byte(file.content)))
	}
	return folder
}

// below turns the pages of the files below a folder.
func (h EvidenceFilesHarness) below(t testing.TB, folder string) (names []string) {
	t.Helper()
	for at := ""; ; {
		page, next, err := h.Evidence.FilesBelow(t.Context(), folder, at)
		require.NoError(t, err)
		require.LessOrEqual(t, len(page), 1000)
		for _, f := range page {
			require.NotEmpty(t, f.ETag)
			require.NotContains(t, f.ETag, `"`)
			if strings.HasSuffix(f.Name, "/original.json") {
				require.Equal(t, int64(2), f.Size)
			}
			require.Positive(t, f.Size)
			require.Equal(t, time.UTC, f.At.Location())
			names = append(names, f.Name)
		}
		if next == "" {
			return names
		}
		require.NotEqual(t, at, next, "pages that do not get on never end")
		at = next
	}
}

func listsBelow(t *testing.T, h EvidenceFilesHarness) {
	require.Empty(t, h.below(t, commit.EvidenceRoot), "a container that is missing, or empty")
	var want []string
	for i := range 350 { // three files each: more than the largest page
		folder := h.fails(t, evidenceOf(fmt.Sprintf("document %d", i), int64(i%3+1)), 0)
		for _, file := range []string{"original.json", "error.json", commit.EvidenceMetadata} {
			want = append(want, folder+"/"+file)
		}
	}
	const foreign, other = "failed/2/foreign", "failed2/notes.txt"
	for _, name := range []string{foreign, other} {
		require.NoError(t, h.Evidence.Keep(t.Context(), name, []byte("x")))
	}
	want = append(want, foreign)
	slices.Sort(want)
	require.Equal(t, want, h.below(t, commit.EvidenceRoot))
	require.Equal(t,
		slices.DeleteFunc(slices.Clone(want), func(name string) bool {
			return !strings.HasPrefix(name, "failed/2/")
		}), h.below(t, "failed/2"))
	require.Empty(t, h.below(t, "failed/9"))
}

func readsFiles(t *testing.T, h EvidenceFilesHarness) {
	folder := h.fails(t, evidenceOf("a", 1), 0)
	const content = "é\r\n\x00{"
	require.NoError(t, h.Evidence.Keep(t.Context(), folder+"/notes.txt", []byte(content)))
	got, err := h.Evidence.Read(t.Context(), folder+"/notes.txt")
	require.NoError(t, err)
	require.Equal(t, content, string(got))
	_, err = h.Evidence.Read(t.Context(), folder+"/missing.json")
	requireFault(t, err, fault.Document, fault.Gone, "%v", err)
}

func impossibleFiles(t *testing.T, h EvidenceFilesHarness) {
	h.fails(t, evidenceOf("a", 1), 0)
	for _, name := range []string{
		"", "/", "../a", "a//b", "failed/", "a b", "a?", "failed/..", strings.Repeat("a", commit.MaxEvidenceName+1),
	} {
		_, _, belowErr := h.Evidence.FilesBelow(t.Context(), name, "")
		_, readErr := h.Evidence.Read(t.Context(), name)
		for i, err := range []error{belowErr, readErr} {
			require.Equal(t, fault.Internal, fault.KindOf(err), "%q, %d: %v", name, i, err)
		}
	}
}

func placeOfFiles(t *testing.T, h EvidenceFilesHarness) {
	place := h.Evidence.Place()
	require.Regexp(t, `^https?://[^?]+/$`, place.Account)
	require.Regexp(t, `^[a-z0-9-]+$`, place.Container)
	require.Equal(t, "web", place.Prefix)
}

func evidenceCancelled(t *testing.T, h EvidenceFilesHarness) {
	folder := h.fails(t, evidenceOf("a", 1), 0)
	ctx := lateContext(t)
	_, _, belowErr := h.Evidence.FilesBelow(ctx, commit.EvidenceRoot, "")
	_, readErr := h.Evidence.Read(ctx, folder+"/error.json")
	for i, err := range []error{belowErr, readErr} {
		requireFault(t, err, fault.Infrastructure, fault.NoCondition, "%d", i)
		require.ErrorIs(t, err, context.Canceled)
	}
	require.Len(t, h.below(t, folder), 3)
}
