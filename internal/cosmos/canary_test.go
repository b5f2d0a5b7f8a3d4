package cosmos_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/cosmos"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
	"sqlwriter/test/emulators/cosmosdb/provision"
)

const canaryID = commit.CanaryPrefix + "1"

// snapshotOf reads the canary as it is now.
func snapshotOf(t *testing.T, c *cosmos.Container) invoice.Snapshot {
	t.Helper()
	raw, err := c.Read(t.Context(), canaryID)
	require.NoError(t, err)
	d, err := invoice.Reader{}.ReadSnapshot(raw, time.Now())
	require.NoError(t, err)
	return d
}

// Each member of the key that a canary lacks is its id, so that it is found under its key in each container.
func TestACanaryOnEachPartitionKey(t *testing.T) {
	const filled = `"` + canaryID + `"`
	for key, want := range map[string]string{
		"/id": "", "/request_details/sys_name": "",
		provision.ResultsKey: `,"id":` + filled,
		"/request_details/sys_name /request_details/id /a/b": `,"id":` + filled + `},"a":{"b":` + filled,
		"/invoice_details_from_rpa/IVCE_DTL_UID":             `},"invoice_details_from_rpa":{"IVCE_DTL_UID":` + filled,
	} {
		t.Run(strings.ReplaceAll(key, "/", "."), func(t *testing.T) {
			t.Parallel()
			_, c := keyed(t, strings.Fields(key)...)
			require.NoError(t, c.CreateCanary(t.Context(), canaryID, "canary:web"))
			made := snapshotOf(t, c)
			require.Zero(t, made.Main)
			stored, _, _ := strings.Cut(string(made.JSON()), `,"_`) // what the service adds
			require.JSONEq(t, `{"id":`+filled+`,"request_details":{"sys_name":"canary:web"`+want+`}}`, stored+"}")

			mark := commit.Seen{At: time.Unix(1, 0).UTC(), Build: "v1", Instance: "a"}
			require.NoError(t, c.MarkSeen(t.Context(), made, mark))
			again := c.MarkSeen(t.Context(), made, commit.Seen{})
			require.True(t, fault.Has(again, fault.Changed), "%v: once", again)
			require.Contains(t, string(snapshotOf(t, c).JSON()),
				`"seen":{"at":"1970-01-01T00:00:01Z","build":"v1","instance":"a"}`)

			require.NoError(t, c.Delete(t.Context(), canaryID))
			require.NoError(t, c.Delete(t.Context(), canaryID), "another call may delete it")
			require.True(t, fault.Has(c.MarkSeen(t.Context(), made, mark), fault.Gone))
		})
	}
	for _, key := range []string{
		"/id/of", "/request_details", "/request_details/sys_name/of", "/seen", "/seen/at", "/a /a/b", "/a/b /a",
	} {
		t.Run("none on"+strings.ReplaceAll(key, "/", "."), func(t *testing.T) {
			t.Parallel()
			_, c := keyed(t, strings.Fields(key)...)
			err := c.CreateCanary(t.Context(), canaryID, "canary:web")
			require.Equal(t, fault.Document, fault.KindOf(err), "%v", err)
			require.Contains(t, err.Error(), strings.ReplaceAll(key, " ", ", "))
		})
	}
}

// Each query of the product gives the same with canaries beside the documents, seen and unseen. A member of
// commit.Query that no case here has fails the test.
func TestEveryQueryPassesCanariesOver(t *testing.T) {
	_, c := keyed(t, "/invoice_details_from_rpa/IVCE_DTL_UID") // a canary then has something in the place of a line
	var ids []string
	for id, state := range map[string]string{
		"pending": `{"status":"pending"}`, "processing": `{"status":"processing"}`, "committed": `{"status":"committed"}`,
		"failed":   `{"status":"failed","last_error_kind":"document","last_error_code":"547"}`,
		"retry":    `{"status":"retry_scheduled","retry_after":1,"last_error_kind":"document"}`,
		"put off":  `{"status":"retry_scheduled","retry_after":1,"last_error_kind":"contention"}`,
		"no state": `{}`,
	} {
		ids = append(ids, id)
		require.NoError(t, c.Submit(t.Context(), json.RawMessage(`{"id":"`+id+`","sql_writer":`+state+
			`,"request_details":{"id":"R1","sys_name":"web"},"invoice_details_from_rpa":{"IVCE_DTL_UID":7}}`), false))
	}
	times := commit.WindowTimes{Now: 1 << 40, AppliedBefore: 1 << 40, LeftBefore: 1 << 40, OldWriterBefore: 1 << 40}
	queries := []commit.Query{
		{SysName: "web", IDs: ids},
		{IDs: ids, Members: []string{"id", "_rid"}},
		{Line: 7, To: 1 << 40},
		{SysName: "web", Line: 7, To: 1 << 40},
		{Request: "R1", To: 1 << 40},
		{SysName: "web", From: 1, To: 1 << 40, Members: commit.PendingMembers()},
		{SysName: "web", To: 1 << 40, Kind: "document"},
		{SysName: "web", To: 1 << 40, Code: "547"},
	}
	for _, window := range commit.Windows() {
		queries = append(queries, commit.Query{SysName: "web", Window: window, Times: times})
	}
	for _, status := range ops.DocumentStatuses() {
		queries = append(queries, commit.Query{SysName: "web", Statuses: []invoice.Status{status}, To: 1 << 40})
	}
	used := map[string]bool{}
	ask := func() (answers [][]string) {
		for _, q := range queries {
			q.Size = commit.MaxPage
			v := reflect.ValueOf(q)
			for i := range v.NumField() {
				used[v.Type().Field(i).Name] = used[v.Type().Field(i).Name] || !v.Field(i).IsZero()
			}
			var found []string
			require.NoError(t, commit.Each(t.Context(), c, q, func(p commit.Page) (bool, error) {
				for _, doc := range p.Documents {
					found = append(found, string(doc))
				}
				return true, nil
			}))
			require.NotEmpty(t, found, "%+v", q)
			slices.Sort(found)
			answers = append(answers, found)
		}
		return answers
	}
	without := ask()
	for _, id := range []string{canaryID, canaryID + "-unseen"} {
		require.NoError(t, c.CreateCanary(t.Context(), id, "canary:web"))
	}
	require.NoError(t, c.MarkSeen(t.Context(), snapshotOf(t, c), commit.Seen{At: time.Now()}))
	require.Equal(t, without, ask())
	for name, is := range used {
		require.True(t, is, "no case has %s", name)
	}
}

// A new query must be looked at: does it pass canaries over? Those of commit.Query name the environment, or ids, a line
// or a request, of which a canary has none. The others are of this package.
func TestEveryQueryIsKnown(t *testing.T) {
	literal := regexp.MustCompile(`(?s)\bcommit\.Query\{(.*?)\}`)
	sent := regexp.MustCompile(`\.(pages|page|Query|NewQueryItemsPager)\(`)
	nameless, sends := map[string]int{}, map[string]int{}
	require.NoError(t, filepath.WalkDir("../..", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
			!strings.HasPrefix(path, "../../internal/") && !strings.HasPrefix(path, "../../cmd/") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range literal.FindAllSubmatch(text, -1) {
			if len(m[1]) > 0 && !strings.Contains(string(m[1]), "SysName:") {
				nameless[strings.TrimPrefix(path, "../../")]++
			}
		}
		if strings.HasPrefix(path, "../../internal/cosmos/") {
			if n := len(sent.FindAll(text, -1)); n > 0 {
				sends[filepath.Base(path)] = n
			}
		}
		return err
	}))
	require.Equal(t, map[string]int{
		"internal/cosmos/documents.go": 1, "internal/fit/sample.go": 1, "internal/reconcile/look.go": 1,
		"internal/ops/documents.go": 1, "internal/ops/why_line.go": 1,
	}, nameless, "ids: ReadMany, the sample, a look; a request; a line")
	require.Equal(t, map[string]int{
		"find.go": 1, "documents.go": 1, "key.go": 1, "query.go": 3, "control.go": 1, "doctor.go": 2,
	}, sends, "results: Find, ReadMany, keys of an id, Query; the app's containers: three")
}
