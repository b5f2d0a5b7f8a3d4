package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
	"sqlwriter/test/inmem"
)

// withEvidence is a bench with an app that has the evidence of one deleted document: complete, replayed, and
// incomplete.
func withEvidence(t *testing.T) (b *bench, app, id string, folders []string) {
	t.Helper()
	id = "2025-12-17 10:00:00.000000-06:00-0001-7"
	clock := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	store := inmem.NewEvidenceOn(func() time.Time { return clock })
	put := func(resets int, files ...string) {
		folder := commit.EvidenceFolder(invoice.Document{ID: id, Main: 7, Hash: "h"}, time.Unix(int64(resets), 0))
		for i := 0; i < len(files); i += 2 {
			store.Put(folder+"/"+files[i], []byte(files[i+1]))
		}
		folders = append(folders, folder)
		clock = clock.Add(time.Hour)
	}
	put(0, "original.json", "{\"id\": 1.10}\r\n\xff", "error.json",
		`{"last_error_kind":"document","last_error_code":"2628","last_error":"too\nlong","retry_count":6,
		"failed_at":"2026-11-20 04:00:00-06:00","attempts":[{"at":"2026-11-20 03:00:00-06:00","kind":"document","code":"2628","error":"first"}]}`,
		"metadata.json", `{"document_id":"`+id+`","container":"AI_PROCESS_LOGS","app_version":"v7","sys_name":"web"}`)
	put(1, "original.json", "{}", "error.json", `{"last_error_code":"26`, "metadata.json", `{"document_id":"`+id+`"}`)
	put(2, "original.json", "{}")
	server := host(t,
		ops.New(ops.Ports{Documents: inmem.NewDocuments(time.Now), Evidence: store}, ops.Options{SysName: "web"}),
		"key-marker")
	b = newBench(t)
	b.env["SQLWRITER_KEY"] = "key-marker"
	return b, "--app=" + server.URL, id, folders
}

func TestEvidenceIsShownAndPrinted(t *testing.T) {
	b, app, id, folders := withEvidence(t)
	require.Equal(t, exitOK, b.run(t, "evidence", "show", id, app, "--utc"), b.errors)
	for _, says := range []string{
		`^document +` + id + `\n`, `account +https://memory.example/\n`, `container +sqlwriter\n`,
		`found +3 in any folder, the newest first\n`,
		`path +web/` + folders[2] +
			`\n(?s:.*)incomplete +there is no metadata.json(?s:.*)problem +error.json does not exist\n`,
		`path +web/` + folders[0] + `\nstored +2026-11-20 10:00:00Z\nmain line +7\n`,
		`failed +2026-11-20 10:00:00Z after 6 retries: document 2628: too long\n`,
		`2026-11-20 09:00:00Z +document +2628 +first\n`, `original.json +15 +[0-9a-f]{16} +2026-11-20 10:00:00Z\n`,
	} {
		require.Regexp(t, says, b.out)
	}

	require.Equal(t, exitOK, b.run(t, "evidence", "get", id, app, "--folder", folders[0], "-o", "json"), b.errors)
	require.Equal(t, "{\"id\": 1.10}\r\n\xff", b.out, "byte by byte")
	require.Equal(t, exitOK, b.run(t, "evidence", "get", id, app), b.errors)
	require.Equal(t, "{}", b.out)
	require.Contains(t, b.errors, folders[1]+"/original.json", "the newest complete one")
	require.Equal(t, exitOK, b.run(t, "evidence", "get", id, app, "--file=error.json", "--line=7"), b.errors)
	require.Equal(t, `{"last_error_code":"26`, b.out)
}

func TestWrongRequestsForEvidence(t *testing.T) {
	b, app, id, folders := withEvidence(t)
	for _, c := range []struct {
		code int
		says string
		args []string
	}{
		{exitFailed, `no evidence of document "nobody" is in any folder`, []string{"show", "nobody"}},
		{
			exitFailed, `no evidence of document "` + id + `" is in the folders of line 8`,
			[]string{"get", id, "--line=8"},
		},
		{exitFailed, folders[0] + "x has no original.json", []string{"get", id, "--folder", folders[0] + "x"}},
		{
			exitUsage, "--folder: expected a folder of document \"nobody\", found one of another document",
			[]string{"get", "nobody", "--folder", folders[0]},
		},
		{exitUsage, "--folder: expected a folder of evidence", []string{"get", id, "--folder=x"}},
		{
			exitUsage, `--file: expected one of original.json, error.json, metadata.json`,
			[]string{"get", id, "--file=x.json"},
		},
	} {
		require.Equal(t, c.code, b.run(t, append(append([]string{"evidence"}, c.args...), app)...), c.says)
		require.Contains(t, b.errors, c.says)
		require.Empty(t, b.out)
	}
}

// A deleted document is put back by its id. The command says what it did, and the next one.
func TestADeletedDocumentIsPutBackByItsID(t *testing.T) {
	w := newWorking(t, 1)
	const id = "2025-12-17 10:00:00.000000-06:00-0001-0"
	original, err := w.docs.Read(t.Context(), id)
	require.NoError(t, err)
	doc, err := invoice.Reader{}.Read(original, time.Now())
	require.NoError(t, err)
	folder := commit.EvidenceFolder(doc, time.Unix(0, 0))
	for name, content := range map[string]string{
		commit.EvidenceOriginal: string(original),
		commit.EvidenceError:    `{"last_error_kind":"document","last_error_code":"2628"}`,
		commit.EvidenceMetadata: fmt.Sprintf(`{"document_id":%q,"hash_version":%d}`, id, invoice.HashVersion),
	} {
		require.NoError(t, w.evidence.Keep(t.Context(), folder+"/"+name, []byte(content)))
	}
	require.Equal(t, exitFailed, w.run(t, "evidence", "restore", id, "--why", "x"))
	require.Contains(t, w.errors, "exists: `document retry` tries it again")
	w.docs.Delete(id)
	require.Equal(t, exitUsage, w.run(t, "evidence", "restore", id))
	require.Contains(t, w.errors, "--why: expected the reason")
	require.Equal(t, exitOK, w.run(t, "evidence", "restore", id, "--dry-run"), w.errors)
	require.Regexp(t, `^`+id+` would be put back as failed \(document 2628\), from `+folder+` of `, w.out)
	require.Equal(t, exitOK, w.run(t, "evidence", "restore", id, "--why", "x"), w.errors)
	require.Regexp(t, `^`+id+` was put back as failed \(document 2628\), from `, w.out)
	require.Equal(t, exitOK, w.run(t, "audit", "list", "--action", ops.DocumentRestore), w.errors)
	require.Regexp(t, `DOCUMENT_RESTORE\s+function key operator\s+`+id+`\s+x\n`, w.out)
}
