package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/stretchr/testify/require"

	"sqlwriter/handlers"
	"sqlwriter/internal/invoice"
	"sqlwriter/test/emulators/azurite"
	"sqlwriter/test/sample"
)

// poisoned is how many documents are to become poison messages.
const poisoned = 6

// spent is a result that no column takes, with six failures that count and the last try due.
func spent(t *testing.T, line int64) (id string, doc json.RawMessage) {
	t.Helper()
	id = fmt.Sprintf("2025-12-17 09:30:00.%06d-06:00-0001-%d", line%1_000_000, line)
	raw, err := json.Marshal(map[string]any{
		"id": id, "request_details": map[string]any{"sys_name": "web"},
		"invoice_details_from_rpa": map[string]any{"IVCE_DTL_UID": line},
		"process_output": map[string]any{
			"manufacturer_name": "ACME", "part_number": strings.Repeat("0123456789", 10) + "X", "unspsc": "39131711",
			"invoice_line_status": "RC-AI",
		},
		"sql_writer": map[string]any{
			"status": "retry_scheduled", "retry_count": 5, "postponed": true, "retry_after": 1,
			"last_error_at": invoice.Stamp(time.Now().Add(-time.Hour), time.UTC),
			"last_error":    "too long", "last_error_kind": "document", "last_error_code": "validation.too_long",
		},
	})
	require.NoError(t, err)
	return id, raw
}

// Must show: the store of evidence is cut by a proxy while poison messages are made, with the real SDK and the real
// binary. The documents stay retry_scheduled, nothing is counted and no line is marked; when it is back, all of them
// are kept and failed.
func TestWithoutEvidenceNothingIsPoisonAndWithItEverythingIs(t *testing.T) {
	t.Parallel()
	blobs := azurite.Start(t)
	proxy := blobs.Proxy(t)
	others := sample.Generate(sample.Options{Seed: 40, Count: 5, Clean: true})
	lines := sample.Lines(others)
	var ids []string
	stored := map[string]json.RawMessage{}
	for n := range int64(poisoned) {
		id, doc := spent(t, 3_000_001+n)
		ids, stored[id], lines = append(ids, id), doc, append(lines, 3_000_001+n)
	}
	s := newStack(t, lines...)
	s.blobs = proxy.ConnectionString()
	s.recover = "*/2 * * * * *" // more often than deployed: retries are the recovery timer's
	s.startHost()

	proxy.Refuse()
	s.submit(jsons(others)...) // others are written since those last failed: that is proof
	for _, d := range others {
		require.Eventually(t, func() bool {
			return s.state(d.ID)["status"] == "committed"
		}, patience, 20*time.Millisecond)
	}
	for _, id := range ids {
		s.submit(stored[id])
	}
	seen := s.requirePutOff(ids, nil)
	s.handler.waitHealth("that evidence cannot be kept", func(h handlers.HealthReport) bool {
		return h.Dependencies["blob"].State == "failing" && h.Dependencies["blob"].Kind == "infrastructure" &&
			h.Dependencies["blob"].Code == "refused"
	})

	for _, way := range []struct {
		how  azurite.Fault
		code string
	}{{azurite.CutBefore, "eof"}, {azurite.CutAfter, "eof"}, {azurite.CutMidway, "reset"}} {
		if way.how == azurite.CutBefore {
			proxy.Listen(t)
		}
		proxy.Always(way.how)
		s.makeDue(ids...)
		seen = s.requirePutOff(ids, seen)
		require.Equal(t, way.code, s.handler.health().Dependencies["blob"].Code)
	}
	statuses, slowest := s.handler.refused()
	require.Empty(t, statuses, "the feed goes on")
	require.Less(t, slowest, 10*time.Second+busy,
		"a file has ten seconds, and one that fails speaks for the others of its batch")

	proxy.Always(azurite.Pass)
	s.makeDue(ids...)
	for _, id := range ids {
		require.Eventually(t, func() bool {
			return s.state(id)["status"] == "failed"
		}, patience, 20*time.Millisecond, "%s: %v", id, s.state(id))
	}
	kept := evidence(t, blobs)
	for n, id := range ids {
		state := s.state(id)
		require.Equal(t, 5.0, state["retry_count"])
		require.NotEmpty(t, state["failed_at"])
		require.Equal(t, "AI-ERROR", s.lineStatus(3_000_001+int64(n)))
		folder := fmt.Sprintf("web/failed/%d/", 3_000_001+n)
		var names []string
		for name, content := range kept {
			if !strings.HasPrefix(name, folder) {
				continue
			}
			names = append(names, path.Base(name))
			if path.Base(name) == "original.json" {
				require.Equal(t, id, idOf(t, content))
				require.Contains(t, string(content), strings.Repeat("0123456789", 10)+"X", "the document as it was")
			}
		}
		slices.Sort(names)
		require.Equal(t, []string{"error.json", "metadata.json", "original.json"}, names,
			"one episode, whatever was cut")
	}
	for _, d := range others {
		require.Equal(t, "committed", s.state(d.ID)["status"])
	}
	t.Logf(
		"%d documents, each put off %d times while the store was cut in 4 ways, then failed with evidence; the slowest invocation took %s",
		poisoned, 5, slowest.Round(time.Millisecond))
}

// requirePutOff waits until every document was tried and put off: still retry_scheduled, not counted, its line not
// marked. seen are the tries that were seen before; the new ones are answered.
func (s *stack) requirePutOff(ids []string, seen map[string]string) map[string]string {
	s.t.Helper()
	now := map[string]string{}
	for _, id := range ids {
		require.Eventually(s.t, func() bool {
			state := s.state(id)
			at, _ := state["last_error_at"].(string)
			after, _ := state["retry_after"].(float64)
			now[id] = at
			return at != "" && at != seen[id] && after > float64(time.Now().Unix())
		}, patience, 20*time.Millisecond, "%s was not tried: %v", id, s.state(id))
		state := s.state(id)
		require.Equal(s.t, []any{"retry_scheduled", 5.0},
			[]any{state["status"], state["retry_count"]}, "%s: %v", id, state)
		require.NotContains(s.t, state, "failed_at")
	}
	for n := range int64(poisoned) {
		require.Empty(s.t, s.lineStatus(3_000_001+n), "no line is marked before the evidence is kept")
	}
	return now
}

// lineStatus is IVCE_LNE_STAT of a line, empty while it has none.
func (s *stack) lineStatus(line int64) string {
	s.t.Helper()
	var status string
	require.NoError(s.t,
		s.db.QueryRowContext(s.t.Context(),
			"SELECT coalesce(IVCE_LNE_STAT, '') FROM IVCE_DTL WHERE IVCE_DTL_UID = ?", line).Scan(&status))
	return status
}

// evidence reads all files of the container of evidence by the vendor's client.
func evidence(t *testing.T, server *azurite.Server) map[string]json.RawMessage {
	t.Helper()
	client, err := azblob.NewClientFromConnectionString(server.ConnectionString(), nil)
	require.NoError(t, err)
	files := map[string]json.RawMessage{}
	for pager := client.NewListBlobsFlatPager("sqlwriter", nil); pager.More(); {
		page, err := pager.NextPage(t.Context())
		require.NoError(t, err)
		for _, item := range page.Segment.BlobItems {
			files[*item.Name] = download(t, client, *item.Name)
		}
	}
	return files
}

// download reads a file of the container of evidence.
func download(t *testing.T, client *azblob.Client, name string) []byte {
	t.Helper()
	blob, err := client.DownloadStream(t.Context(), "sqlwriter", name, nil)
	require.NoError(t, err)
	content, err := io.ReadAll(blob.Body)
	require.NoError(t, err)
	require.NoError(t, blob.Body.Close())
	return content
}
