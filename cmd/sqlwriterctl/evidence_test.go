package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
	"sqlwriter/test/inmem"
)

// withEvidence is a bench with an app that has the evidence of one deleted document: complete, replayed, and incomplete.
func withEvidence(t *testing.T) (b *bench, app, id string, folders []string) {
	t.Helper()
	id = "2025-12-17 10:00:00.000000-06:00-0001-7"
	clock := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	store := inmem.NewEvidenceOn(func() time.Time { return clock })
	put := func(resets int, files ...string) {
		folder := commit.EvidenceFolder(invoice.Document{ID: id, Main: 7, Hash: "h"}, resets)
		for i := 0; i < len(files); i += 2 {
			require.NoError(t, store.Put(t.Context(), folder+"/"+files[i], []byte(files[i+1])))
		}
		folders = append(folders, folder)
		clock = clock.Add(time.Hour)
	}
	put(0, "original.json", "{\"id\": 1.10}\r\n\xff", "error.json", `{"last_error_kind":"document","last_error_code":"2628","last_error":"too\nlong","retry_count":6,
		"failed_at":"2026-11-20 04:00:00-06:00","attempts":[{"at":"2026-11-20 03:00:00-06:00","kind":"document","code":"2628","error":"first"}]}`,
		"metadata.json", `{"document_id":"`+id+`","container":"AI_PROCESS_LOGS","app_version":"v7","sys_name":"web"}`,
		"replayed.json", `{"job_id":"j1","run":"replay-1","at":"2026-11-20T16:00:00Z","by":"kim"}`)
	put(1, "original.json", "{}", "error.json", `{"last_error_code":"26`, "metadata.json", `{"document_id":"`+id+`"}`)
	put(2, "original.json", "{}")
	server := host(t, ops.New(ops.Ports{Documents: inmem.NewDocuments(time.Now), Evidence: store}, ops.Options{SysName: "web"}), "key-marker")
	b = newBench(t)
	b.env["SQLWRITER_KEY"] = "key-marker"
	return b, "--app=" + server.URL, id, folders
}

func TestEvidenceIsListedShownAndPrinted(t *testing.T) {
	b, app, id, folders := withEvidence(t)
	require.Equal(t, exitOK, b.run(t, "evidence", "list", app, "--utc"), b.errors)
	lines := strings.Split(strings.TrimSpace(b.out), "\n")
	require.Len(t, lines, 3, "two are complete")
	require.Regexp(t, `^2026-11-20 10:00:00Z  7 +`+id+`  document  2628  replay-1 +`+folders[0]+`$`, lines[1])
	require.Regexp(t, `^2026-11-20 11:00:00Z  7 +`+id+`  -         -     - +`+folders[1]+`$`, lines[2])
	require.Contains(t, b.errors, "in the order of the folders' names (line, document), not of time")
	require.Contains(t, b.errors, folders[1]+": error.json: expected a JSON object")
	require.Equal(t, exitOK, b.run(t, "evidence", "list", app, "--code", "2628", "-q"), b.errors)
	require.Equal(t, folders[0]+"\n", b.out)
	require.Equal(t, exitOK, b.run(t, "evidence", "list", app, "--code", "2628"), b.errors)
	require.Contains(t, b.errors, "1 failure left out: its error.json does not say the code")
	require.Equal(t, exitOK, b.run(t, "evidence", "list", app, "--limit", "1"), b.errors)
	require.Contains(t, b.errors, "there are more: --page")
	require.Equal(t, exitOK, b.run(t, "evidence", "list", app, "--since", "2026-11-21"), b.errors)
	require.Equal(t, "no evidence\n", b.out)

	require.Equal(t, exitOK, b.run(t, "evidence", "show", id, app, "--utc"), b.errors)
	for _, says := range []string{
		`^document +` + id + `\n`, `account +https://memory.example/\n`, `container +sqlwriter\n`, `found +3 in any folder, the newest first\n`,
		`path +web/` + folders[2] + `\n(?s:.*)incomplete +there is no metadata.json(?s:.*)problem +error.json does not exist\n`,
		`path +web/` + folders[0] + `\nstored +2026-11-20 10:00:00Z\nmain line +7\n`,
		`failed +2026-11-20 10:00:00Z after 6 retries: document 2628: too long\n`,
		`replayed +by kim with run replay-1 at 2026-11-20 16:00:00Z, job j1\n`,
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
		{exitFailed, `no evidence of document "` + id + `" is in the folders of line 8`, []string{"get", id, "--line=8"}},
		{exitFailed, folders[0] + "x has no original.json", []string{"get", id, "--folder", folders[0] + "x"}},
		{exitUsage, "--folder: expected a folder of document \"nobody\", found one of another document", []string{"get", "nobody", "--folder", folders[0]}},
		{exitUsage, "--folder: expected a folder of evidence", []string{"get", id, "--folder=x"}},
		{exitUsage, `--file: expected one of original.json, error.json, metadata.json`, []string{"get", id, "--file=x.json"}},
		{exitUsage, "--page: expected the next page of a list with the same filters", []string{"list", "--page=x"}},
		{exitUsage, "--limit: expected 1 or more, found 0", []string{"list", "--limit=0"}},
		{exitUsage, "--code: expected a number or ", []string{"list", "--code=nonsense"}},
		{exitUsage, "--until: expected a time after --since", []string{"list", "--since=1d", "--until=2d"}},
	} {
		require.Equal(t, c.code, b.run(t, append(append([]string{"evidence"}, c.args...), app)...), c.says)
		require.Contains(t, b.errors, c.says)
		require.Empty(t, b.out)
	}
}

func TestPruneSaysWhatItDoesNotList(t *testing.T) {
	docs, store := inmem.NewDocuments(time.Now), inmem.NewEvidenceOn(func() time.Time { return time.Now().Add(-100 * 24 * time.Hour) })
	for line := range int64(25) {
		folder := commit.EvidenceFolder(invoice.Document{ID: fmt.Sprintf("document %d", line), Main: line + 1, Hash: "h"}, 0)
		require.NoError(t, store.Put(t.Context(), folder+"/metadata.json", []byte("{}")))
	}
	server := host(t, ops.New(ops.Ports{Documents: docs, Evidence: store, Heads: docs.Reconcile("web")}, ops.Options{SysName: "web"}), "key-marker")
	b := newBench(t)
	b.env["SQLWRITER_KEY"] = "key-marker"
	prune := []string{"evidence", "prune", "--app=" + server.URL, "--older-than=90d", "--dry-run"}
	require.Equal(t, exitFailed, b.run(t, prune...))
	require.Contains(t, b.errors, "at least 20 documents have evidence, and none of them exists")
	require.Equal(t, exitOK, b.run(t, append(prune, "--all-gone")...), b.errors)
	require.Contains(t, b.out, "the evidence of 25 failures of 25 documents would be deleted")
	require.Contains(t, b.out, "and 5 more")
	require.Contains(t, b.errors, "only 20 of 25 folders are listed")
}
