package conformance

import (
	"context"
	"fmt"
	"path"
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

// ReconcileEvidence is everything that reconciliation and operators do with evidence. Remove deletes metadata.json last.
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
		{"a folder is removed whole, alone, and twice", removesFolder},
		{"what is no folder of evidence is not removed", removesNothingElse},
		{"a folder's files are listed, and no other's", listsFolder},
		{"350 folders' files are listed below theirs, each once", listsBelow},
		{"a file is read as it is stored, and a missing one is gone", readsFiles},
		{"a file is put over an earlier one, and its ETag changes", putsFiles},
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
	files, err := h.Evidence.Remove(t.Context(), commit.EvidenceFolder(evidenceOf("a", 1), 0))
	require.NoError(t, err)
	require.Zero(t, files)
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

func removesFolder(t *testing.T, h ReconcileEvidenceHarness) {
	a := evidenceOf("a", 1)
	gone := h.fails(t, a, 1)
	stays := []string{h.fails(t, a, 0), h.fails(t, a, 10), h.fails(t, evidenceOf("ab", 1), 1)}
	require.NoError(t, h.Evidence.Keep(t.Context(), gone+"/more/notes.txt", []byte("x")))
	require.NoError(t, h.Evidence.Keep(t.Context(), gone+"x/notes.txt", []byte("x")))
	files, err := h.Evidence.Remove(t.Context(), gone)
	require.NoError(t, err)
	require.Equal(t, 4, files)
	slices.Sort(stays)
	require.Equal(t, stays, folders(h.episodes(t)))
	_, ok := h.Read(t, gone+"x/notes.txt")
	require.True(t, ok, "another folder, whose name begins alike")
	files, err = h.Evidence.Remove(t.Context(), gone)
	require.NoError(t, err)
	require.Zero(t, files)
}

func removesNothingElse(t *testing.T, h ReconcileEvidenceHarness) {
	folder := h.fails(t, evidenceOf("a", 1), 0)
	require.NoError(t, h.Evidence.KeepReport(t.Context(), "a", []byte("x"), "text/plain"))
	for _, name := range []string{"", "/", "failed", "failed/", "failed/1", path.Dir(folder), folder + "/", folder + "/x", "messages/1/a/0-b", "reports/web/a/0-b", "failed/../a/0-b/x"} {
		files, err := h.Evidence.Remove(t.Context(), name)
		require.Equal(t, fault.Internal, fault.KindOf(err), "%q: %v", name, err)
		require.Zero(t, files)
	}
	require.Len(t, h.episodes(t), 1)
	_, _, ok := h.Report(t, "a")
	require.True(t, ok)
}

func listsFolder(t *testing.T, h ReconcileEvidenceHarness) {
	before := time.Now().Add(-time.Minute)
	folder := h.fails(t, evidenceOf("a", 1), 1)
	for _, other := range []string{h.fails(t, evidenceOf("a", 1), 10), folder + "x"} {
		require.NoError(t, h.Evidence.Keep(t.Context(), other+"/notes.txt", []byte("x")))
	}
	require.NoError(t, h.Evidence.Keep(t.Context(), folder+"/more/notes.txt", []byte("12345")))
	files, err := h.Evidence.List(t.Context(), folder)
	require.NoError(t, err)
	etags := map[string]bool{}
	for i, want := range []ops.EvidenceFile{
		{Name: "error.json", Size: 2},
		{Name: commit.EvidenceMetadata, Size: int64(len(`{"container": "c", "document_id": "a"}`))},
		{Name: "more/notes.txt", Size: 5},
		{Name: "original.json", Size: 2},
	} {
		require.Less(t, i, len(files))
		got := files[i]
		require.WithinRange(t, got.At, before, time.Now().Add(time.Minute))
		require.Equal(t, time.UTC, got.At.Location())
		require.NotEmpty(t, got.ETag)
		require.NotContains(t, got.ETag, `"`)
		etags[got.Name] = true
		want.ETag, want.At = got.ETag, got.At
		require.Equal(t, want, got)
	}
	require.Len(t, files, len(etags))
	again, err := h.Evidence.List(t.Context(), folder)
	require.NoError(t, err)
	require.Equal(t, files, again, "the ETags of unchanged files are the same")
	none, err := h.Evidence.List(t.Context(), commit.EvidenceFolder(evidenceOf("b", 1), 0))
	require.NoError(t, err)
	require.Empty(t, none)
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
	_, err = h.Evidence.Read(t.Context(), folder+"/replayed.json")
	requireFault(t, err, fault.Document, fault.Gone, "%v", err)
}

func putsFiles(t *testing.T, h ReconcileEvidenceHarness) {
	folder := h.fails(t, evidenceOf("a", 1), 0)
	name := folder + "/replayed.json"
	etags := map[string]bool{}
	for _, content := range []string{"first", "other", "longer, and \x00", ""} {
		require.NoError(t, h.Evidence.Put(t.Context(), name, []byte(content)))
		got, ok := h.Read(t, name)
		require.True(t, ok)
		require.Equal(t, content, string(got))
		files, err := h.Evidence.List(t.Context(), folder)
		require.NoError(t, err)
		require.Len(t, files, 4)
		require.Equal(t, []any{"replayed.json", int64(len(content))}, []any{files[3].Name, files[3].Size})
		etags[files[3].ETag] = true
	}
	require.Len(t, etags, 4)
	require.NoError(t, h.Evidence.Keep(t.Context(), name, []byte("kept")))
	got, _ := h.Read(t, name)
	require.Empty(t, string(got), "Keep stores no file over another one")
	require.Equal(t, []string{folder}, folders(h.episodes(t)))
}

func impossibleFiles(t *testing.T, h ReconcileEvidenceHarness) {
	folder := h.fails(t, evidenceOf("a", 1), 0)
	for _, name := range []string{"", "/", "../a", "a//b", "failed/", "a b", "a?", "failed/..", strings.Repeat("a", commit.MaxEvidenceName+1)} {
		_, listErr := h.Evidence.List(t.Context(), name)
		_, _, belowErr := h.Evidence.FilesBelow(t.Context(), name, "")
		_, readErr := h.Evidence.Read(t.Context(), name)
		putErr := h.Evidence.Put(t.Context(), name, []byte("x"))
		for i, err := range []error{listErr, belowErr, readErr, putErr} {
			require.Equal(t, fault.Internal, fault.KindOf(err), "%q, %d: %v", name, i, err)
		}
	}
	for _, name := range []string{"failed", path.Dir(folder), folder + "/x", "messages/1/a/0-b", "failed/1/a/without"} {
		_, err := h.Evidence.List(t.Context(), name)
		require.Equal(t, fault.Internal, fault.KindOf(err), "%q is no folder of evidence: %v", name, err)
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
	_, removeErr := h.Evidence.Remove(ctx, folder)
	reportErr := h.Evidence.KeepReport(ctx, "a", []byte("x"), "text/plain")
	_, listErr := h.Evidence.List(ctx, folder)
	_, _, belowErr := h.Evidence.FilesBelow(ctx, commit.EvidenceRoot, "")
	_, readErr := h.Evidence.Read(ctx, folder+"/error.json")
	putErr := h.Evidence.Put(ctx, folder+"/replayed.json", []byte("{}"))
	for i, err := range []error{episodesErr, newestErr, removeErr, reportErr, listErr, belowErr, readErr, putErr} {
		requireFault(t, err, fault.Infrastructure, fault.NoCondition, "%d", i)
		require.ErrorIs(t, err, context.Canceled)
	}
	require.Equal(t, []string{folder}, folders(h.episodes(t)))
}
