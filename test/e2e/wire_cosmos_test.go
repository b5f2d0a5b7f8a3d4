package e2e_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/handlers"
	"sqlwriter/internal/breaker"
	"sqlwriter/test/emulators/cosmosdb"
	"sqlwriter/test/emulators/funchost"
	"sqlwriter/test/sample"
)

// cosmosFault is what goes wrong on the wire to Cosmos DB in the middle of a drain.
type cosmosFault struct {
	name string
	rule cosmosdb.Rule
	// kind and code are what the log and Health call it. Empty: it passes without anybody having to wait for it.
	kind, code string
	// deadline is how long an invocation may take that meets it: the call's own deadline, and what a busy machine adds.
	deadline time.Duration
}

// busy is what a machine that has ten times too much to do may add to any wait.
const busy = 30 * time.Second

func cosmosFaults() []cosmosFault {
	const patch = cosmosdb.OpPatch
	return []cosmosFault{
		{"429 a few times", cosmosdb.Rule{Op: patch, Status: 429, RetryAfterMS: 20, Nth: 5, Times: 3}, "", "", busy},
		{"449 a few times", cosmosdb.Rule{Op: patch, Status: 449, Nth: 5, Times: 3}, "", "", busy},
		{"412 a few times", cosmosdb.Rule{Op: patch, Status: 412, Nth: 5, Times: 5}, "", "", busy},
		{
			"429 that lasts",
			cosmosdb.Rule{Op: patch, Status: 429, RetryAfterMS: 20, Nth: 5},
			"throttled", "429/3200", busy,
		},
		{
			"429 with a long wait",
			cosmosdb.Rule{Op: patch, Status: 429, RetryAfterMS: 3_600_000, Nth: 5},
			"throttled", "429/3200", busy,
		},
		{"503", cosmosdb.Rule{Op: patch, Status: 503, Nth: 5}, "infrastructure", "503", busy},
		{
			"cut before it is applied",
			cosmosdb.Rule{Op: patch, Cut: cosmosdb.Before, Nth: 5},
			"infrastructure", "eof", busy,
		},
		{
			"cut after it was applied",
			cosmosdb.Rule{Op: patch, Cut: cosmosdb.After, Nth: 5},
			"infrastructure", "eof", busy,
		},
		{
			"no answer",
			cosmosdb.Rule{Op: patch, Hold: cosmosdb.Before, Nth: 5},
			"infrastructure",
			"timeout", 10*time.Second + busy,
		},
		{
			"the answer is held back",
			cosmosdb.Rule{Op: patch, Hold: cosmosdb.After, Nth: 5},
			"infrastructure",
			"timeout", 10*time.Second + busy,
		},
	}
}

// Must show: faults on the wire to Cosmos DB, with the real SDK and the real binary. Each lands in its kind within its
// deadline, costs no document a retry, and ends exact.
func TestEachFaultOfCosmosOnTheWireLandsInItsKind(t *testing.T) {
	t.Parallel()
	for _, f := range cosmosFaults() {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel() // they wait for deadlines
			count := 40
			if f.rule.Hold != "" {
				count = 18 // as many as are recorded at once, and those that come before the fault: one wait for all
			}
			docs := sample.Generate(sample.Options{Seed: 31, Count: count, Clean: true})
			s := newStack(t, sample.Lines(docs)...)
			f.rule.Container = container
			rule, err := s.cosmos.Server.AddFault(f.rule)
			require.NoError(t, err)
			s.submit(jsons(docs)...)
			s.startHost()
			if f.kind != "" {
				// Health first: the log keeps its line, and Cosmos DB fails no longer once another call is answered.
				s.handler.waitHealth("what is wrong with Cosmos DB", func(h handlers.HealthReport) bool {
					d := h.Dependencies["cosmos"]
					return d.State == "failing" && d.Kind == f.kind && d.Code == f.code
				})
				s.handler.waitForLine(f.kind+" "+f.code, func(l logLine) bool {
					return l.Function == "CommitResults" && l.Status == http.StatusServiceUnavailable &&
						l.Kind == f.kind && l.Code == f.code
				})
				s.cosmos.Server.RemoveFault(rule)
			}
			s.waitUntilQuiet(len(docs))
			s.requireExact(docs)
			requireWrittenOnce(t, s, docs)
			s.requireUncounted()
			if f.kind == "" {
				hit := s.cosmos.Server.Faults()[0].Hit
				require.Equal(t, f.rule.Times, hit, "every fault was met")
			}
			statuses, slowest := s.handler.refused()
			require.Equal(t, f.kind != "", len(statuses) > 0,
				"the host is asked to offer the batch again only for a dependency: %v", statuses)
			for _, status := range statuses {
				require.Equal(t, http.StatusServiceUnavailable, status)
			}
			require.Less(t, slowest, f.deadline)
			require.Equal(t, string(breaker.Running), s.handler.health().Flow.State,
				"SQL is well: its breaker minds no other dependency")
			s.handler.requireNeverRestarted()
			t.Logf("%d invocations answered 503, the slowest took %s", len(statuses), slowest.Round(time.Millisecond))
		})
	}
}

// A document whose patch is refused with 449 for good is left behind, and no other document waits; the next attempt
// finds it in SQL.
func TestADocumentThatTakesNoPatchIsLeftBehindAlone(t *testing.T) {
	t.Parallel()
	docs := sample.Generate(sample.Options{Seed: 32, Count: 20, Clean: true})
	s := newStack(t, sample.Lines(docs)...)
	rule, err := s.cosmos.Server.AddFault(
		cosmosdb.Rule{Op: cosmosdb.OpPatch, Container: container, Doc: docs[7].ID, Status: 449})
	require.NoError(t, err)
	s.submit(jsons(docs)...)
	s.startHost()
	s.handler.waitForLine("that it is left behind", func(l logLine) bool {
		return l.Document == docs[7].ID && l.Level == "error" && l.Kind == "contention" && l.Code == "449"
	})
	s.waitUntilQuiet(len(docs) - 1)
	statuses, _ := s.handler.refused()
	require.Empty(t, statuses, "the feed goes on")
	require.Equal(t, "pending", s.state(docs[7].ID)["status"])
	s.cosmos.Server.RemoveFault(rule)

	s.launch("replay", map[string]string{"LEASE_PREFIX": "web-replay-"}) // sees the container from its beginning
	s.waitUntilQuiet(len(docs))
	require.Equal(t, "unchanged", s.state(docs[7].ID)["outcome"])
	s.requireExact(docs)
	requireWrittenOnce(t, s, docs)
	s.requireUncounted()
}

// A real 412: another program replaces the content while the outcome of the first is being written.
func TestContentThatChangesBeforeItsPatchIsWrittenToo(t *testing.T) {
	t.Parallel()
	docs := sample.Generate(sample.Options{Seed: 33, Count: 20, Clean: true})
	s := newStack(t, sample.Lines(docs)...)
	rule, err := s.cosmos.Server.AddFault(cosmosdb.Rule{
		Op: cosmosdb.OpPatch, Container: container, Doc: docs[3].ID, Hold: cosmosdb.Before, Times: 1,
	})
	require.NoError(t, err)
	s.submit(jsons(docs)...)
	s.startHost()
	require.NoError(t, s.cosmos.Server.WaitHeld(s.patiently(), rule, 1))
	var changed map[string]any
	require.NoError(t, json.Unmarshal(docs[3].JSON, &changed))
	changed["process_output"].(map[string]any)["manufacturer_name"] = "CHANGED MEANWHILE"
	docs[3].JSON, err = json.Marshal(changed)
	require.NoError(t, err)
	s.submit(docs[3].JSON)
	s.cosmos.Server.RemoveFault(rule)
	s.waitUntilQuiet(len(docs))
	s.requireExact(docs)
	s.requireUncounted()
}

// The control document is no document's concern: without it each instance goes by a copy of its own, says so, and
// works.
func TestWithoutTheControlDocumentTheDrainGoesOn(t *testing.T) {
	t.Parallel()
	for name, rule := range map[string]cosmosdb.Rule{
		"503": {Status: http.StatusServiceUnavailable}, "429": {Status: http.StatusTooManyRequests, RetryAfterMS: 10},
		"cut": {Cut: cosmosdb.Before},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			docs := sample.Generate(sample.Options{Seed: 34, Count: 40, Clean: true})
			s := newStack(t, sample.Lines(docs)...)
			rule.Container = "sqlwriter-control"
			_, err := s.cosmos.Server.AddFault(rule)
			require.NoError(t, err)
			s.submit(jsons(docs)...)
			s.startHost()
			s.waitUntilQuiet(len(docs))
			s.requireExact(docs)
			requireWrittenOnce(t, s, docs)
			s.requireUncounted()
			flow := s.handler.health().Flow
			require.Equal(t, string(breaker.Running), flow.State)
			require.True(t, flow.Lost)
			require.False(t, slices.Contains(kinds(s.host), funchost.Retry), "no document had to wait")
		})
	}
}
