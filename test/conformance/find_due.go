package conformance

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
)

// asked is the Now of the windows here. It is no real time: what is compared with _ts is asked for separately.
const asked = 1_766_000_000

func inWindow(w commit.Window) commit.Query {
	return commit.Query{
		SysName: "web", Window: w, Times: commit.WindowTimes{Now: asked}, Members: []string{"id"}, Size: 100,
	}
}

// retries are the cases of a document that is retry_scheduled: sql_writer without its status, and the window that has
// it, none when no window has.
func retries() map[string]struct {
	state  string
	window commit.Window
} {
	type retry = struct {
		state  string
		window commit.Window
	}
	cases := map[string]retry{
		"now":                {fmt.Sprintf(`"retry_after":%d`, asked), commit.Blamed},
		"a second ago":       {fmt.Sprintf(`"retry_after":%d`, asked-1), commit.Blamed},
		"in a second":        {fmt.Sprintf(`"retry_after":%d`, asked+1), ""},
		"in half a second":   {fmt.Sprintf(`"retry_after":%d.5`, asked), ""},
		"in a day":           {fmt.Sprintf(`"retry_after":%d`, asked+86400), ""},
		"in more than a day": {fmt.Sprintf(`"retry_after":%d`, asked+86401), commit.Blamed},
		"in milliseconds":    {fmt.Sprintf(`"retry_after":%d000`, asked), commit.Blamed},
		"never":              {`"retry_after":1e300`, commit.Blamed},
		"negative":           {`"retry_after":-5`, commit.Blamed},
		"missing":            {`"retry_count":1`, commit.Blamed},
		"null":               {`"retry_after":null`, commit.Blamed},
		"text":               {fmt.Sprintf(`"retry_after":"%d"`, asked+60), commit.Blamed},
		"list":               {fmt.Sprintf(`"retry_after":[%d]`, asked+60), commit.Blamed},
		"true":               {`"retry_after":true`, commit.Blamed},

		"put off, in a second": {fmt.Sprintf(`"retry_after":%d,"last_error_kind":"contention"`, asked+1), ""},
		"put off, missing":     {`"last_error_kind":"contention"`, commit.PutOff},
		"put off, text":        {`"retry_after":"soon","last_error_kind":"contention"`, commit.PutOff},
		"put off, in milliseconds": {
			fmt.Sprintf(`"retry_after":%d000,"last_error_kind":"throttled"`, asked), commit.PutOff,
		},
		"put off and postponed": {
			`"retry_after":1,"last_error_kind":"contention","postponed":true`, commit.PutOff,
		},
		"put off, postponed, waiting": {
			fmt.Sprintf(`"retry_after":%d,"last_error_kind":"contention","postponed":true`, asked+1), "",
		},

		"postponed":                {`"retry_after":1,"postponed":true,"last_error_kind":"document"`, commit.Blamed},
		"postponed without a kind": {`"retry_after":1,"postponed":true`, commit.Blamed},
		"postponed, kind a list": {
			`"retry_after":1,"postponed":true,"last_error_kind":["contention"]`, commit.Blamed,
		},
		"postponed, now":             {fmt.Sprintf(`"retry_after":%d,"postponed":true`, asked), commit.Blamed},
		"postponed, in a second":     {fmt.Sprintf(`"retry_after":%d,"postponed":true`, asked+1), ""},
		"postponed, missing":         {`"postponed":true`, commit.Blamed},
		"postponed, text":            {`"postponed":true,"retry_after":"soon"`, commit.Blamed},
		"postponed, in milliseconds": {fmt.Sprintf(`"retry_after":%d000,"postponed":true`, asked), commit.Blamed},
	}
	for _, kind := range []string{"contention", "infrastructure", "throttled"} {
		cases["put off: "+kind] = retry{`"retry_after":1,"last_error_kind":"` + kind + `"`, commit.PutOff}
	}
	for _, kind := range []string{
		`"document"`, `"internal"`, `"quota"`, `"Contention"`, `"contention "`, `""`, `null`, `5`, `true`,
		`["contention"]`, `{"contention":1}`,
	} {
		cases["judged: "+kind] = retry{`"retry_after":1,"last_error_kind":` + kind, commit.Blamed}
	}
	for _, value := range []string{`false`, `"true"`, `1`, `null`, `[true]`, `{}`} {
		cases["not postponed: "+value] = retry{`"retry_after":1,"postponed":` + value, commit.Blamed}
	}
	return cases
}

func findRetries(t *testing.T, h FinderHarness) {
	want := map[commit.Window][]string{}
	for name, c := range retries() {
		for _, status := range []string{"retry_scheduled", "RETRY_SCHEDULED", "Retry_scheduled"} {
			id := status + " " + name
			h.Put(t, stateDocument(id, "web", status, c.state))
			want[c.window] = append(want[c.window], id)
		}
		for _, status := range []string{
			"Retry_Scheduled", " retry_scheduled", "retry_scheduled ", "pending", "processing", "committed", "failed",
		} {
			h.Put(t, stateDocument("not, "+status+" "+name, "web", status, c.state))
		}
	}
	for _, w := range []commit.Window{commit.PutOff, commit.Blamed} {
		require.ElementsMatch(t, want[w], foundIDs(t, h.Finder, inWindow(w)), w)
	}
	require.Empty(t, foundIDs(t, h.Finder, inWindow(commit.Orphans)), "by a time that is 0 nothing qualifies")
}

func findPostponed(t *testing.T, h FinderHarness) {
	later := fmt.Sprintf(`"retry_after":%d`, asked+600)
	h.Put(t, stateDocument("waiting", "web", "retry_scheduled", later+`,"postponed":true,"last_error_kind":"document"`))
	h.Put(t, stateDocument("upper", "web", "RETRY_SCHEDULED", later+`,"postponed":true`))
	h.Put(t,
		stateDocument("put off", "web", "retry_scheduled",
			later+`,"postponed":true,"last_error_kind":"infrastructure"`))
	h.Put(t, stateDocument("plain", "web", "retry_scheduled", later+`,"last_error_kind":"document"`))
	h.Put(t, stateDocument("pending", "web", "pending", later+`,"postponed":true`))
	h.Put(t, stateDocument("theirs", "dev", "retry_scheduled", later+`,"postponed":true`))
	h.Put(t, stateDocument("due", "web", "retry_scheduled", `"retry_after":1,"postponed":true`))
	early := func(before int64) []string {
		q := inWindow(commit.Blamed)
		q.Times.AppliedBefore = before
		return foundIDs(t, h.Finder, q)
	}
	ts := tsOf(t, h, "waiting")
	require.NotContains(t, early(ts), "waiting", "changed in this second: not before it")
	require.Contains(t, early(ts+1), "waiting")
	require.ElementsMatch(t, []string{"due"}, early(0))
	require.ElementsMatch(t, []string{"due", "waiting", "upper"}, early(forever))
	for _, w := range []commit.Window{commit.PutOff, commit.Orphans} {
		q := inWindow(w)
		q.Times.AppliedBefore = forever
		require.Empty(t, foundIDs(t, h.Finder, q), w)
	}
}

func findOrphans(t *testing.T, h FinderHarness) {
	for _, status := range []string{
		"pending", "PENDING", "Pending", "processing", "PROCESSING", "Processing", "PenDing", "committed",
		"failed", "retry_scheduled",
	} {
		h.Put(t, stateDocument(status, "web", status, `"retry_after":1`))
		h.Put(t, stateDocument("their "+status, "dev", status, `"retry_after":1`))
	}
	orphans := func(left, old int64) []string {
		q := inWindow(commit.Orphans)
		q.Times.LeftBefore, q.Times.OldWriterBefore = left, old
		return foundIDs(t, h.Finder, q)
	}
	pending, processing := []string{"pending", "PENDING", "Pending"}, []string{"processing", "PROCESSING", "Processing"}
	require.ElementsMatch(t, pending, orphans(forever, 0))
	require.ElementsMatch(t, processing, orphans(0, forever))
	require.ElementsMatch(t, append(pending, processing...), orphans(forever, forever))
	require.Empty(t, orphans(0, 0))
	young, old := tsOf(t, h, "pending"), tsOf(t, h, "processing")
	require.NotContains(t, orphans(young, 0), "pending", "changed in this second: not before it")
	require.Contains(t, orphans(young+1, 0), "pending")
	require.NotContains(t, orphans(0, old), "processing")
	require.Contains(t, orphans(0, old+1), "processing")
	other := inWindow(commit.Orphans)
	other.Times = commit.WindowTimes{Now: forever, AppliedBefore: forever}
	require.Empty(t, foundIDs(t, h.Finder, other))
}

func findWindows(t *testing.T, h FinderHarness) {
	for _, doc := range withoutStatus("web") {
		h.Put(t, doc)
	}
	states := map[commit.Window]string{
		commit.PutOff: `"retry_after":1,"last_error_kind":"contention"`, commit.Blamed: `"retry_after":1`,
	}
	for w, state := range states {
		for _, sysName := range []string{"dev", "WEB", "web ", ""} {
			h.Put(t, stateDocument(string(w)+" of "+sysName, sysName, "retry_scheduled", state))
		}
		h.Put(t,
			json.RawMessage(`{"id":"`+string(w)+` of nobody","sql_writer":{"status":"retry_scheduled",`+state+`}}`))
		h.Put(t, stateDocument(string(w), "web", "retry_scheduled", state))
	}
	h.Put(t, stateDocument("orphans", "web", "pending", ""))
	h.Put(t, stateDocument("orphans of dev", "dev", "processing", ""))
	for _, w := range commit.Windows() {
		q := inWindow(w)
		q.Times.AppliedBefore, q.Times.LeftBefore, q.Times.OldWriterBefore = forever, forever, forever
		require.Equal(t, []string{string(w)}, foundIDs(t, h.Finder, q))
	}
	_, err := h.Finder.Find(t.Context(), inWindow("committed"), "")
	requireFault(t, err, fault.Internal, fault.NoCondition, "a window that is none")
}
