package commit_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/events"
	"sqlwriter/internal/fault"
)

// Each document has its line with the ids of the work. A failure's line says why, and no line has content.
func TestEachDocumentHasALineWithTheIDsOfItsWork(t *testing.T) {
	w := newWorld(t, 1, 2)
	good, bad, long := result(1, 1, "secret ACME", ""), result(2, 2, "secret GmbH", ""),
		result(3, 3, strings.Repeat("secret", 100), "")
	w.use(
		sinkHook{
			w.faulty,
			failFor(fault.New(fault.Document, "sql: apply", "547", "a constraint refuses the row"), idOf(t, bad)),
		})
	ctx := events.With(t.Context(), events.Fields{Function: "BatchWorker", Invocation: "i", Run: "r", Batch: "b"})
	_, err := w.commit.Run(ctx, commit.Delivery{Documents: w.put(good, bad, long)})
	require.NoError(t, err)
	require.NotContains(t, w.log.String(), "secret")
	const ids = `"function":"BatchWorker","invocation":"i","run":"r","batch":"b"`
	lines := strings.Split(strings.TrimSpace(w.log.String()), "\n")
	require.Len(t, lines, 3)
	for i, want := range []string{
		`{"level":"debug","event":"document_committed",` + ids + `,"line":1,"outcome":"applied"`,
		`{"level":"warn","event":"document_retry_scheduled",` + ids +
			`,"line":2,"kind":"document","code":"547","reason":"a constraint refuses the row"`,
		`{"level":"warn","event":"document_retry_scheduled",` + ids +
			`,"line":3,"kind":"document","code":"validation.too_long"`,
	} {
		var line, part map[string]any
		require.NoError(t, json.Unmarshal([]byte(want+"}"), &part))
		found := false
		for _, text := range lines {
			require.NoError(t, json.Unmarshal([]byte(text), &line))
			found = found || containsAll(line, part)
		}
		require.True(t, found, "%d: %s\nin %s", i, want, w.log.String())
	}
}

// A committed document has one line at level debug, with its lines and its age, and none at info. A document that is
// committed already has none.
func TestACommittedDocumentHasALineAtDebugAlone(t *testing.T) {
	for level, want := range map[zerolog.Level]int{zerolog.DebugLevel: 21, zerolog.InfoLevel: 0} {
		w := newWorld(t, 1000, 1001, 1002)
		docs := append(w.snapshots(w.many(1, 20, "")...), w.put(result(1, 1000, "secret", "", 1001, 1002))...)
		w.breaker, w.commit = w.instance("a", "v1", w.faulty, func(o *commit.Options) { o.Log = o.Log.Level(level) })
		w.clock = w.clock.Add(7 * time.Second)
		require.Equal(t, 21, w.run(docs...).Outcomes["applied"])
		_, err := w.offer(1, docs...)
		require.NoError(t, err)
		lines := strings.SplitAfter(w.log.String(), "\n")
		require.Len(t, lines, want+1, level)
		if want > 0 {
			require.JSONEq(t, `{"level":"debug","event":"document_committed","document":"`+idOf(t, string(docs[20]))+`","line":1000,
				"duplicates":[1001,1002],"outcome":"applied","lag_ms":7000,"message":"the document is committed"}`, lines[20])
		}
	}
}

func containsAll(line, part map[string]any) bool {
	for name, value := range part {
		if line[name] != value {
			return false
		}
	}
	return true
}
