package ops_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
	"sqlwriter/test/inmem"
)

// keep stores the evidence of a document that failed with a code, and returns its folder.
func (w *world) keep(id string, line int64, resets int, code string) string {
	w.t.Helper()
	folder := commit.EvidenceFolder(
		invoice.Document{
			ID: id, Main: line, Hash: strings.Repeat("a", 64), Version: invoice.Version{Key: invoice.Key(id)},
		}, time.Unix(int64(resets), 0))
	original := must(json.Marshal(map[string]any{"id": id, "resets": resets}))(w.t)
	failed, err := json.Marshal(
		commit.PoisonError{DocumentID: id, RetryCount: 6, Kind: "document", Code: code, LastError: "reason " + code})
	require.NoError(w.t, err)
	metadata, err := json.Marshal(
		commit.PoisonMetadata{DocumentID: id, Container: "AI_PROCESS_LOGS", Main: line, ReprocessCount: resets})
	require.NoError(w.t, err)
	for name, content := range map[string][]byte{
		commit.EvidenceOriginal: original, commit.EvidenceError: failed, commit.EvidenceMetadata: metadata,
	} {
		require.NoError(w.t, w.evidence.Keep(w.t.Context(), folder+"/"+name, content))
	}
	return folder
}

func (w *world) place(name, content string) {
	w.t.Helper()
	w.evidence.Put(name, []byte(content))
}

func TestBrokenAndForeignFilesOfEvidence(t *testing.T) {
	w := newWorld(t)
	good := w.keep(id(1), 1, 0, "2628")
	cut := w.keep(id(2), 2, 0, "2628")
	half := `{"document_id":"` + id(2) + `","last_error_code":"26`
	w.place(cut+"/error.json", half)
	incomplete := commit.EvidenceFolder(invoice.Document{ID: id(4), Main: 4, Hash: "h"}, time.Unix(0, 0))
	w.place(incomplete+"/error.json", `{}`)
	for _, name := range []string{
		"failed/notes.txt", "failed/1/notes.txt", good + "/more/metadata.json",
		"failed/x/" + strings.Repeat("a", 700) + "/0-b/metadata.json", "failed2/1/a/0-b/metadata.json",
		"dead-letters/1/a/0-b/metadata.json",
	} {
		w.place(name, "[]")
	}
	found, err := w.ops.EvidenceShow(t.Context(), ops.EvidenceOfDocument{ID: id(2)})
	require.NoError(t, err)
	require.Nil(t, found.Episodes[0].Failed)
	require.NotNil(t, found.Episodes[0].Metadata)
	require.Equal(t,
		[]string{
			fmt.Sprintf(
				"error.json: expected a JSON object as the app writes it, found something else (%d bytes)", len(half)),
		}, found.Episodes[0].Problems)
	found = must(w.ops.EvidenceShow(t.Context(), ops.EvidenceOfDocument{ID: id(4)}))(t)
	require.True(t, found.Episodes[0].Incomplete)
	require.Equal(t, []string{"original.json does not exist"}, found.Episodes[0].Problems)
	found = must(w.ops.EvidenceShow(t.Context(), ops.EvidenceOfDocument{ID: id(1)}))(t)
	require.Equal(t, "more/metadata.json", found.Episodes[0].Files[2].Name, "what a person put there is shown")
	w.place(good+"/metadata.json", `{"document_id":"another"}`)
	found = must(w.ops.EvidenceShow(t.Context(), ops.EvidenceOfDocument{ID: id(1)}))(t)
	require.Equal(t, []string{`metadata.json names another document: "another"`}, found.Episodes[0].Problems)
}

// evidenceNames are the names of the evidence's files in an episode.
func evidenceNames(e ops.EvidenceEpisode) (names []string) {
	for _, f := range e.Files {
		names = append(names, f.Name)
	}
	return names
}

func TestAllEvidenceOfADocumentIsShown(t *testing.T) {
	w := newWorld(t, 1)
	w.put(result(1, tooLong(), ""), result(2, "x", ""))
	w.poison(1)
	first := slices.Sorted(maps.Keys(w.evidence.Files()))
	w.keep(id(2), 2, 0, "2628")
	w.keep(id(1)+"0", 1, 0, "2628") // its id begins alike
	w.clock = w.clock.Add(time.Hour)
	unread := w.keep(id(1), 0, 1, "2628")
	w.clock = w.clock.Add(time.Hour)
	moved := w.keep(id(1), 9, 0, "547") // content with another main line

	found, err := w.ops.EvidenceShow(t.Context(), ops.EvidenceOfDocument{ID: id(1)})
	require.NoError(t, err)
	require.Equal(t, []any{2, false, "the folders of line 1 and of unknown lines"},
		[]any{found.Found, found.More, found.Searched})
	require.Equal(t,
		ops.EvidencePlace{Account: "https://memory.example/", Container: "sqlwriter", Prefix: "web"}, found.Place)
	require.Equal(t, unread, found.Episodes[0].Folder, "the newest is first")
	e := found.Episodes[1]
	require.Equal(t, "web/"+e.Folder, e.Path)
	require.Equal(t,
		[]string{e.Folder + "/error.json", e.Folder + "/metadata.json", e.Folder + "/original.json"}, first)
	require.Equal(t, []string{"error.json", "metadata.json", "original.json"}, evidenceNames(e))
	require.Equal(t, []any{int64(1), false, "validation.too_long", 7},
		[]any{e.Line, e.Incomplete, e.Failed.Code, len(e.Attempts)})
	require.Equal(t, []string{id(1), "v1", "AI_PROCESS_LOGS"},
		[]string{e.Metadata.DocumentID, e.Metadata.AppVersion, e.Metadata.Container})
	for _, f := range e.Files {
		require.Positive(t, f.Size)
		require.NotEmpty(t, f.ETag)
	}

	w.docs.Delete(id(1))
	found = must(w.ops.EvidenceShow(t.Context(), ops.EvidenceOfDocument{ID: id(1)}))(t)
	require.Equal(t, []any{3, "any folder", moved}, []any{found.Found, found.Searched, found.Episodes[0].Folder},
		"the document is gone: all folders")
	found = must(w.ops.EvidenceShow(t.Context(), ops.EvidenceOfDocument{ID: id(1), Line: 9}))(t)
	require.Equal(t, []string{moved, unread}, []string{found.Episodes[0].Folder, found.Episodes[1].Folder})

	long := "2025-12-17 10:00:00-" + strings.Repeat("é", 200)
	kept := []string{w.keep(long+"1", 5, 0, "2628"), w.keep(long+"2", 5, 0, "2628")}
	found = must(w.ops.EvidenceShow(t.Context(), ops.EvidenceOfDocument{ID: long + "2"}))(t)
	require.Equal(t, []any{1, kept[1]}, []any{found.Found, found.Episodes[0].Folder},
		"a name that was cut ends with the document's key")
}

func TestAFileOfEvidenceIsGivenAsItIs(t *testing.T) {
	w := newWorld(t)
	old := w.keep(id(1), 1, 0, "2628")
	w.clock = w.clock.Add(time.Hour)
	newest := w.keep(id(1), 1, 1, "547")
	const odd = "\xff\x00{\"a\": 1.10}\r\n"
	w.place(newest+"/original.json", odd)
	w.clock = w.clock.Add(time.Hour)
	incomplete := commit.EvidenceFolder(invoice.Document{ID: id(1), Main: 1, Hash: "h"}, time.Unix(2, 0))
	w.place(incomplete+"/error.json", `{"half":`)
	for _, c := range []struct {
		q            ops.EvidenceFileQuery
		folder, file string
		content      string
	}{
		{ops.EvidenceFileQuery{}, newest, "original.json", odd},
		{ops.EvidenceFileQuery{Folder: old}, old, "original.json", `{"id":"` + id(1) + `","resets":0}`},
		{
			ops.EvidenceFileQuery{Folder: "web/" + old, File: "original.json"},
			old, "original.json",
			`{"id":"` + id(1) + `","resets":0}`,
		},
		{ops.EvidenceFileQuery{Folder: incomplete, File: "error.json"}, incomplete, "error.json", `{"half":`},
	} {
		c.q.ID = id(1)
		got := must(w.ops.EvidenceGet(t.Context(), c.q))(t)
		require.Equal(t,
			ops.EvidenceContent{Document: id(1), Folder: c.folder, File: c.file, Content: []byte(c.content)}, got)
	}
	w.place(old+"/original.json", strings.Repeat("x", 8<<20+1))
	_, err := w.ops.EvidenceGet(t.Context(),
		ops.EvidenceFileQuery{EvidenceOfDocument: ops.EvidenceOfDocument{ID: id(1)}, Folder: old})
	require.Equal(t, ops.Conflict, refusal(err))
	require.ErrorContains(t, err, "has 8388609 bytes")
}

func TestWrongRequestsForEvidence(t *testing.T) {
	w := newWorld(t)
	mine, others := w.keep(id(1), 1, 0, "2628"), w.keep(id(2), 1, 0, "2628")
	of := func(id string, line int64) ops.EvidenceOfDocument { return ops.EvidenceOfDocument{ID: id, Line: line} }
	for says, ask := range map[string]func() error{
		`not_found: no evidence of document "nobody" is in any folder`: func() error {
			_, err := w.ops.EvidenceShow(t.Context(), of("nobody", 0))
			return err
		},
		"not_found: no evidence of document \"" + id(1) +
			"\" is in the folders of line 2 and of unknown lines": func() error {
			_, err := w.ops.EvidenceShow(t.Context(), of(id(1), 2))
			return err
		},
		"usage: id: expected the id of a document, found nothing": func() error {
			_, err := w.ops.EvidenceShow(t.Context(), of("", 0))
			return err
		},
		"usage: id: expected the id of a document, which has": func() error {
			_, err := w.ops.EvidenceShow(t.Context(), of("../x", 0))
			return err
		},
		"usage: line: expected the id of a line, found -1": func() error {
			_, err := w.ops.EvidenceShow(t.Context(), of(id(1), -1))
			return err
		},
	} {
		requireRefusal(t, says, ask())
	}
	for says, q := range map[string]ops.EvidenceFileQuery{
		"usage: file: expected one of original.json, error.json, metadata.json, found \"../x\"": {
			File: "../x",
		},
		"not_found: " + mine +
			"x has no error.json": {Folder: mine + "x", File: "error.json"},
		"usage: folder: expected a folder of evidence, as `evidence show` lists it, found \"failed/1\"": {
			Folder: "failed/1",
		},
		"usage: folder: expected a folder of evidence, as `evidence show` lists it, found \"failed/../": {
			Folder: "failed/../a/0-b",
		},
		"usage: folder: expected a folder of evidence, as `evidence show` lists it, found \"" + mine +
			"/x\"": {Folder: mine + "/x"},
		"usage: folder: expected a folder of evidence, as `evidence show` lists it, found \"dev/" +
			mine: {Folder: "dev/" + mine},
		"usage: folder: expected a folder of evidence, as `evidence show` lists it, found \"failed/1/a b/0-b": {
			Folder: "failed/1/a b/0-b",
		},
		"usage: folder: expected a folder of document \"" + id(1) +
			"\", found one of another document: \"": {Folder: others},
		"not_found: " + mine +
			"x has no original.json": {Folder: mine + "x"},
	} {
		q.ID = id(1)
		_, err := w.ops.EvidenceGet(t.Context(), q)
		requireRefusal(t, says, err)
	}
	_, err := w.ops.EvidenceGet(t.Context(), ops.EvidenceFileQuery{EvidenceOfDocument: of("nobody", 0)})
	requireRefusal(t, `not_found: no evidence of document "nobody" is in any folder`, err)
}

// requireRefusal checks an error by "refusal: the begin of its text".
func requireRefusal(t *testing.T, says string, err error) {
	t.Helper()
	require.Error(t, err, says)
	require.True(t, strings.HasPrefix(string(refusal(err))+": "+err.Error(), says), "expected %q, found %q: %v",
		says, refusal(err), err)
}

// slowEvidence lets time pass with each page, and counts the reads that are under way.
type slowEvidence struct {
	*inmem.Evidence
	clock *time.Time
	fails error
	// opened holds every read, if it is not nil.
	opened  chan struct{}
	reading atomic.Int64
}

func (s *slowEvidence) FilesBelow(
	ctx context.Context, folder, at string,
) (page []ops.EvidenceFile, next string, err error) {
	*s.clock = s.clock.Add(8 * time.Second)
	page, next, err = s.Evidence.FilesBelow(ctx, folder, at)
	for s.opened != nil && next != "" && err == nil { // a page of blob storage is larger
		var more []ops.EvidenceFile
		more, next, err = s.Evidence.FilesBelow(ctx, folder, next)
		page = append(page, more...)
	}
	return page, next, err
}

func (s *slowEvidence) Read(ctx context.Context, name string) ([]byte, error) {
	if s.fails != nil {
		return nil, s.fails
	}
	if s.opened != nil {
		s.reading.Add(1)
		<-s.opened
		s.reading.Add(-1)
	}
	return s.Evidence.Read(ctx, name)
}

func (w *world) slow() *slowEvidence {
	s := &slowEvidence{Evidence: w.evidence, clock: &w.clock}
	w.ops = ops.New(ops.Ports{Documents: w.docs, Evidence: s},
		ops.Options{SysName: "web", Now: func() time.Time { return w.clock }})
	return s
}

func TestEvidenceIsSearchedForABoundedTime(t *testing.T) {
	w := newWorld(t)
	for line := range int64(40) { // twelve pages of the store, of 8 s each
		w.keep(id(line+1), line+1, 0, []string{"547", "2628"}[line/39])
	}
	w.slow()
	began := w.clock
	_, err := w.ops.EvidenceShow(t.Context(), ops.EvidenceOfDocument{ID: "nobody"})
	require.Equal(t, 32*time.Second, w.clock.Sub(began))
	requireRefusal(t,
		`conflict: line: expected the main line of document "nobody": not all folders can be searched in 30 s`, err)
	_, err = w.ops.EvidenceGet(t.Context(),
		ops.EvidenceFileQuery{EvidenceOfDocument: ops.EvidenceOfDocument{ID: id(1)}})
	requireRefusal(t, "conflict: line: expected", err)
	_, err = w.ops.EvidenceRestore(by(t, "pat"), restore(1))
	requireRefusal(t, "conflict: line: expected", err)
	shown := must(w.ops.EvidenceShow(t.Context(), ops.EvidenceOfDocument{ID: id(1)}))(t)
	require.Equal(t, []any{1, true}, []any{shown.Found, shown.More}, "there may be a newer one")
	content, err := w.ops.EvidenceGet(t.Context(),
		ops.EvidenceFileQuery{EvidenceOfDocument: ops.EvidenceOfDocument{ID: id(39), Line: 39}})
	require.NoError(t, err)
	require.Contains(t, string(content.Content), id(39))
}

func TestEvidenceIsReadSixteenAtATime(t *testing.T) {
	w := newWorld(t)
	for resets := range 40 {
		w.keep(id(1), 1, resets, "2628")
	}
	s := w.slow()
	for name, ask := range map[string]func(context.Context) error{
		"show": func(ctx context.Context) error {
			_, err := w.ops.EvidenceShow(ctx, ops.EvidenceOfDocument{ID: id(1), Line: 1})
			return err
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			s.opened = make(chan struct{})
			ended := make(chan error)
			go func() { ended <- ask(t.Context()) }()
			synctest.Wait()
			require.Equal(t, int64(16), s.reading.Load(), name)
			close(s.opened)
			require.NoError(t, <-ended, name)
		})
	}
}

func TestAFailureToReadEvidenceIsAnError(t *testing.T) {
	w := newWorld(t)
	w.keep(id(1), 1, 0, "2628")
	s := w.slow()
	s.fails = fault.New(fault.Throttled, "test: read", "503", "set by the test")
	w.docs.Delete(id(1))
	_, restoreErr := w.ops.EvidenceRestore(by(t, "pat"), restore(1))
	_, showErr := w.ops.EvidenceShow(t.Context(), ops.EvidenceOfDocument{ID: id(1)})
	_, getErr := w.ops.EvidenceGet(t.Context(),
		ops.EvidenceFileQuery{EvidenceOfDocument: ops.EvidenceOfDocument{ID: id(1)}})
	for _, err := range []error{restoreErr, showErr, getErr} {
		require.Equal(t, fault.Throttled, fault.KindOf(err))
	}
}
