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
	"sqlwriter/internal/reconcile"
)

// ReconcileEvidence is everything that reconciliation and operators do with evidence.
type ReconcileEvidence interface {
	commit.Evidence
	reconcile.Evidence
	ops.EvidenceStore
}

// ReconcileEvidenceHarness has the ports under test and the functions that TestReconcileEvidence needs around them.
type ReconcileEvidenceHarness struct {
	// Evidence is the store under test, with no files.
	Evidence ReconcileEvidence
	// Read looks at a file as it is stored, not through Evidence; ok is false when there is none.
	Read func(t testing.TB, name string) (content []byte, ok bool)
	// Report looks at a report.
	Report func(t testing.TB, name string) (content []byte, contentType string, ok bool)
}

// TestReconcileEvidence checks an implementation of reconcile.Evidence against the port's contract. open makes a new one per test.
func TestReconcileEvidence(t *testing.T, open func(t *testing.T) ReconcileEvidenceHarness) {
	for _, c := range []struct {
		name string
		run  func(*testing.T, ReconcileEvidenceHarness)
	}{
		{"without files there is no episode", episodesNone},
		{"350 episodes, each once, whatever folder a page divides", episodesPages},
		{"evidence without its metadata.json is not complete", episodesIncomplete},
		{"names that no evidence has are left out", episodesOtherNames},
		{"an episode names its document, whatever the id", episodesIDs},
		{"the newest episode of a document, and of no other", newestEpisode},
		{"the newest episode of a document whose main line could not be read", newestUnknown},
		{"a report is kept, and a later one in its place", keepsReports},
		{"a report's name that is none is refused", impossibleReports},
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
	return invoice.Document{ID: id, Main: main, Version: invoice.Version{Key: invoice.Key(id)}, Hash: invoice.Key("content of " + id)}
}

// fails keeps the evidence of a failure of a document, and gives its folder.
func (h ReconcileEvidenceHarness) fails(t testing.TB, d invoice.Document, resets int) string {
	t.Helper()
	folder := commit.EvidenceFolder(d, resets)
	for _, file := range []struct{ name, content string }{
		{"original.json", "{}"}, {"error.json", "{}"}, {commit.EvidenceMetadata, fmt.Sprintf(`{"container": "c", "document_id": %q}`, d.ID)},
	} {
		require.NoError(t, h.Evidence.Keep(t.Context(), folder+"/"+file.name, []byte(file.content)))
	}
	return folder
}

// episodes turns the pages of episodes.
func (h ReconcileEvidenceHarness) episodes(t testing.TB) []reconcile.Episode {
	t.Helper()
	var all []reconcile.Episode
	for at := ""; ; {
		page, next, err := h.Evidence.Episodes(t.Context(), at)
		require.NoError(t, err)
		require.LessOrEqual(t, len(page), 1000)
		all = append(all, page...)
		if next == "" {
			return all
		}
		require.NotEqual(t, at, next, "pages that do not get on never end")
		at = next
	}
}

func folders(episodes []reconcile.Episode) []string {
	out := make([]string, len(episodes))
	for i, e := range episodes {
		out[i] = e.Folder
	}
	return out
}

func episodesNone(t *testing.T, h ReconcileEvidenceHarness) {
	require.Empty(t, h.episodes(t))
	_, ok, err := h.Evidence.Newest(t.Context(), evidenceOf("a", 1))
	require.NoError(t, err)
	require.False(t, ok)
}

func episodesPages(t *testing.T, h ReconcileEvidenceHarness) {
	const n = 350 // three files each: more than the largest page
	before := time.Now().Add(-time.Minute)
	var want []string
	for i := range n {
		want = append(want, h.fails(t, evidenceOf(fmt.Sprintf("document %d", i/2), int64(i/2+1)), i%2))
	}
	slices.Sort(want)
	found := h.episodes(t)
	require.Equal(t, want, folders(found), "in the order of their names")
	for _, e := range found {
		require.WithinRange(t, e.At, before, time.Now().Add(time.Minute))
		require.Equal(t, time.UTC, e.At.Location())
	}
}

func episodesIncomplete(t *testing.T, h ReconcileEvidenceHarness) {
	d := evidenceOf("a", 1)
	for _, file := range []string{"original.json", "error.json"} {
		require.NoError(t, h.Evidence.Keep(t.Context(), commit.EvidenceFolder(d, 0)+"/"+file, []byte("{}")))
	}
	require.Empty(t, h.episodes(t))
	_, ok, err := h.Evidence.Newest(t.Context(), d)
	require.NoError(t, err)
	require.False(t, ok)
	folder := h.fails(t, d, 0)
	require.Equal(t, []string{folder}, folders(h.episodes(t)))
}

func episodesOtherNames(t *testing.T, h ReconcileEvidenceHarness) {
	folder := h.fails(t, evidenceOf("a", 1), 0)
	for _, name := range []string{
		"metadata.json", "failed/metadata.json", "failed/1/metadata.json", "failed/1/a/metadata.json", "failed/1/a/0-b/c/metadata.json",
		"failed/1/a/without/metadata.json", "failed/1/%zz/0-b/metadata.json", "failed2/1/a/0-b/metadata.json", "messages/1/a/0-b/metadata.json",
		"failed/1/" + strings.Repeat("a", 700) + "/0-b/metadata.json", // its metadata names no document
	} {
		require.NoError(t, h.Evidence.Keep(t.Context(), name, []byte("[]")), name)
	}
	require.Equal(t, []string{folder}, folders(h.episodes(t)))
}

func episodesIDs(t *testing.T, h ReconcileEvidenceHarness) {
	long := "2025-12-17 10:30:00.000000-06:00-" + strings.Repeat("é ", 200)
	want := map[string]string{}
	for i, id := range []string{
		"2025-12-17 10:30:00.000000-06:00-0001-1421549", "a", "a+b", "a%2Fb", "~", "~" + invoice.Key("a"), "é\U0001f600", "a.", "..a", "\x01\"<&>",
		long + "1", long + "2", strings.Repeat("x", 600), strings.Repeat("x", 601),
	} {
		want[h.fails(t, evidenceOf(id, int64(i)), 0)] = id
	}
	found := map[string]string{}
	for _, e := range h.episodes(t) {
		found[e.Folder] = e.DocumentID
	}
	require.Equal(t, want, found)
}

func newestEpisode(t *testing.T, h ReconcileEvidenceHarness) {
	a := evidenceOf("a", 1)
	h.fails(t, a, 0)
	h.fails(t, a, 2)
	last := h.fails(t, a, 10) // in the same second, perhaps
	for _, other := range []invoice.Document{evidenceOf("ab", 1), evidenceOf("a", 12), evidenceOf("a", 0), evidenceOf("b", 1)} {
		h.fails(t, other, 20)
	}
	e, ok, err := h.Evidence.Newest(t.Context(), a)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, last, e.Folder)
	require.Equal(t, "a", e.DocumentID)
	require.WithinRange(t, e.At, time.Now().Add(-time.Minute), time.Now().Add(time.Minute))

	_, ok, err = h.Evidence.Newest(t.Context(), evidenceOf("c", 1))
	require.NoError(t, err)
	require.False(t, ok)
	long := evidenceOf(strings.Repeat("/", 300), 1)
	folder := h.fails(t, long, 1)
	e, ok, err = h.Evidence.Newest(t.Context(), long)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, reconcile.Episode{DocumentID: long.ID, Folder: folder, At: e.At}, e)
}

func newestUnknown(t *testing.T, h ReconcileEvidenceHarness) {
	unread := evidenceOf("a", 0)
	folder := h.fails(t, unread, 0)
	for _, main := range []int64{0, 7} {
		e, ok, err := h.Evidence.Newest(t.Context(), evidenceOf("a", main))
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, folder, e.Folder)
	}
}

func keepsReports(t *testing.T, h ReconcileEvidenceHarness) {
	const name = "2026-11-23/reconcile-r1.txt"
	for _, content := range []string{"first", "second, longer", "é\r\n\x00", ""} {
		require.NoError(t, h.Evidence.KeepReport(t.Context(), name, []byte(content), "text/plain; charset=utf-8"))
		got, contentType, ok := h.Report(t, name)
		require.True(t, ok)
		require.Equal(t, content, string(got))
		require.Equal(t, "text/plain; charset=utf-8", contentType)
	}
	require.Empty(t, h.episodes(t), "a report is no evidence")
	_, ok := h.Read(t, name)
	require.False(t, ok)
}

func impossibleReports(t *testing.T, h ReconcileEvidenceHarness) {
	for _, name := range []string{"", "/", "../a", "a//b", "a/", "a b", "a?", strings.Repeat("a", commit.MaxEvidenceName+1)} {
		err := h.Evidence.KeepReport(t.Context(), name, []byte("x"), "text/plain")
		require.Equal(t, fault.Internal, fault.KindOf(err), "%q: %v", name, err)
	}
}

// below turns the pages of the files below a folder.
func (h ReconcileEvidenceHarness) below(t testing.TB, folder string) (names []string) {
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

func listsBelow(t *testing.T, h ReconcileEvidenceHarness) {
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
	require.Equal(t, slices.DeleteFunc(slices.Clone(want), func(name string) bool { return !strings.HasPrefix(name, "failed/2/") }), h.below(t, "failed/2"))
	require.Empty(t, h.below(t, "failed/9"))
}

func readsFiles(t *testing.T, h ReconcileEvidenceHarness) {
	folder := h.fails(t, evidenceOf("a", 1), 0)
	const content = "é\r\n\x00{"
	require.NoError(t, h.Evidence.Keep(t.Context(), folder+"/notes.txt", []byte(content)))
	got, err := h.Evidence.Read(t.Context(), folder+"/notes.txt")
	require.NoError(t, err)
	require.Equal(t, content, string(got))
	_, err = h.Evidence.Read(t.Context(), folder+"/missing.json")
	requireFault(t, err, fault.Document, fault.Gone, "%v", err)
}

func impossibleFiles(t *testing.T, h ReconcileEvidenceHarness) {
	h.fails(t, evidenceOf("a", 1), 0)
	for _, name := range []string{"", "/", "../a", "a//b", "failed/", "a b", "a?", "failed/..", strings.Repeat("a", commit.MaxEvidenceName+1)} {
		_, _, belowErr := h.Evidence.FilesBelow(t.Context(), name, "")
		_, readErr := h.Evidence.Read(t.Context(), name)
		for i, err := range []error{belowErr, readErr} {
			require.Equal(t, fault.Internal, fault.KindOf(err), "%q, %d: %v", name, i, err)
		}
	}
}

func placeOfFiles(t *testing.T, h ReconcileEvidenceHarness) {
	place := h.Evidence.Place()
	require.Regexp(t, `^https?://[^?]+/$`, place.Account)
	require.Regexp(t, `^[a-z0-9-]+$`, place.Container)
	require.Equal(t, "web", place.Prefix)
}

func evidenceCancelled(t *testing.T, h ReconcileEvidenceHarness) {
	folder := h.fails(t, evidenceOf("a", 1), 0)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, episodesErr := h.Evidence.Episodes(ctx, "")
	_, _, newestErr := h.Evidence.Newest(ctx, evidenceOf("a", 1))
	reportErr := h.Evidence.KeepReport(ctx, "a", []byte("x"), "text/plain")
	_, _, belowErr := h.Evidence.FilesBelow(ctx, commit.EvidenceRoot, "")
	_, readErr := h.Evidence.Read(ctx, folder+"/error.json")
	for i, err := range []error{episodesErr, newestErr, reportErr, belowErr, readErr} {
		requireFault(t, err, fault.Infrastructure, fault.NoCondition, "%d", i)
		require.ErrorIs(t, err, context.Canceled)
	}
	require.Equal(t, []string{folder}, folders(h.episodes(t)))
}
