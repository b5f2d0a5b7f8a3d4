package e2e_test

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/test/emulators/cosmosdb"
	"sqlwriter/test/emulators/funchost"
	"sqlwriter/test/sample"
)

// kill ends the handler and waits for another one. The third time within half an hour the host itself gives up, as the
// real one does (docs/facts.md F22), and the platform starts another.
func (s *stack) kill() {
	s.t.Helper()
	if s.killHandler(s.host) == funchost.HandlerGaveUp {
		<-s.host.Done()
		s.startHost()
	}
}

// killHandler ends a host's handler as the platform does, from outside, and waits until another one is ready, or until
// the host has given up: it answers which of the two it is.
func (s *stack) killHandler(host *funchost.Host) funchost.Kind {
	s.t.Helper()
	pid := host.HandlerPid()
	require.NoError(s.t, syscall.Kill(pid, syscall.SIGKILL))
	// All that an earlier handler did is of another pid: nothing depends on when its last event is written.
	exited, err := host.WaitEvent(s.patiently(), 0, func(e funchost.Event) bool {
		return e.Kind == funchost.HandlerExited && e.Pid == pid
	})
	require.NoError(s.t, err)
	require.Equal(s.t, -1, exited.ExitCode, "it was the signal that ended it")
	next, err := host.WaitEvent(s.patiently(), exited.Seq, func(e funchost.Event) bool {
		return e.Kind == funchost.HandlerReady || e.Kind == funchost.HandlerGaveUp
	})
	require.NoError(s.t, err)
	return next.Kind
}

// Must show: kill -9 between SQL commit and patch. The emulator delays the patches, so SQL has committed and no
// document says so yet; then the handler dies.
func TestKillBetweenSQLCommitAndPatch(t *testing.T) {
	docs := sample.Generate(sample.Options{Seed: 3, Count: 40, Clean: true})
	s := newStack(t, sample.Lines(docs)...)
	rule := s.holdRequests(cosmosdb.OpPatch, cosmosdb.Before, 0)
	s.submit(jsons(docs)...)
	s.startHost()
	require.NoError(t, s.cosmos.Server.WaitHeld(s.patiently(), rule, 1))
	_, most := s.writes("detail") // two where both results for one line have arrived
	require.Positive(t, most, "SQL has committed before any patch was sent")

	s.kill()
	s.cosmos.Server.RemoveFault(rule)
	s.waitUntilQuiet(len(docs))
	s.requireExact(docs)
	requireWrittenOnce(t, s, docs)
}

// requireWrittenOnce: as many writes as lines, by the count of triggers; a line that two results were for may have two.
func requireWrittenOnce(t *testing.T, s *stack, docs []sample.Document) {
	t.Helper()
	results := map[int64]int{}
	for _, d := range docs {
		for _, l := range d.Lines {
			results[l]++
		}
	}
	for _, what := range []string{"detail", "tracking"} {
		rows, err := s.db.QueryContext(t.Context(),
			"SELECT line, count(*) FROM counted WHERE what = @p1 GROUP BY line", sql.Named("p1", what))
		require.NoError(t, err)
		defer func() { require.NoError(t, rows.Close()) }()
		seen := 0
		for rows.Next() {
			var line int64
			var n int
			require.NoError(t, rows.Scan(&line, &n))
			require.LessOrEqual(t, n, results[line], "%s of line %d was written %d times for %d results",
				what, line, n, results[line])
			seen++
		}
		require.NoError(t, rows.Err())
		require.Equal(t, len(results), seen)
	}
}

// kills is how often the handler is killed during one drain, and betweenEvery which of these times fall between SQL
// commit and the first patch.
const (
	kills        = 20
	betweenEvery = 5
)

// Must show: kill -9 of the handler 20 times during one drain, at random and, four times, between SQL commit and first
// patch, which a trace shows. The moments come from a seed that a failure prints.
func TestKillAtRandomDuringADrain(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	docs := sample.Generate(sample.Options{Seed: 4, Count: 1500, Clean: true})
	s := newStack(t, sample.Lines(docs)...)
	s.startHost()
	submitted := make(chan error, 1)
	go func() {
		for _, d := range docs {
			if err := s.put(d); err != nil {
				submitted <- err
				return
			}
		}
		submitted <- nil
	}()
	// A kill falls on the n-th patch from the one before, n drawn: before it is applied or after it, so between commit
	// and patch too. One that must fall before the first patch has its rule before the handler starts that it kills.
	rule := s.holdSome(r)
	between := 0
	for n := range kills {
		require.NoError(t, s.cosmos.Server.WaitHeld(s.patiently(), rule, 1))
		if n%betweenEvery == betweenEvery-1 {
			s.requireBetween(n, rule)
			between++
		}
		last := rule
		if n%betweenEvery == betweenEvery-2 {
			rule = s.holdRequests(cosmosdb.OpPatch, cosmosdb.Before, 0)
			s.cosmos.Server.RemoveFault(last)
			s.kill()
			continue
		}
		rule = s.holdSome(r)
		s.kill()
		s.cosmos.Server.RemoveFault(last)
	}
	s.cosmos.Server.RemoveFault(rule)
	require.NoError(t, <-submitted)
	s.waitUntilQuiet(len(docs))
	s.requireExact(docs)
	requireWrittenOnce(t, s, docs)
	s.requireUncounted()
	require.GreaterOrEqual(t, between, 3)
	t.Logf("%d kills, %d of them between SQL commit and first patch", kills, between)
}

// holdSome makes the emulator hold what is under way at once from the n-th patch on, n drawn.
func (s *stack) holdSome(r *rand.Rand) string {
	s.t.Helper()
	const atOnce = 32 // two ranges, 16 patches of each
	when := []cosmosdb.When{cosmosdb.Before, cosmosdb.After}[r.IntN(2)]
	rule, err := s.cosmos.Server.AddFault(cosmosdb.Rule{
		Op: cosmosdb.OpPatch, Container: container, Hold: when, Nth: 1 + r.IntN(40), Times: atOnce,
	})
	require.NoError(s.t, err)
	return rule
}

// requireBetween shows that a handler has committed to SQL and that none of its patches was let through: all that came
// since before it started are held, the ledger names a document whose patch is among them, and that document is still
// pending.
func (s *stack) requireBetween(n int, rule string) {
	s.t.Helper()
	var held cosmosdb.RuleState
	var id string
	require.Eventually(s.t, func() bool {
		for _, f := range s.cosmos.Server.Faults() {
			if f.ID == rule {
				held = f
			}
		}
		for _, id = range held.Documents {
			var lines int
			err := s.db.QueryRowContext(s.t.Context(),
				"SELECT count(*) FROM sqlwriter_ledger WHERE document_id = ? AND outcome = 'applied'", id).Scan(&lines)
			if err == nil && lines > 0 {
				return true
			}
		}
		return false
	}, patience, 5*time.Millisecond, "no document in SQL waits for its patch")
	require.Equal(s.t, held.Seen, held.Hit, "a patch was let through")
	require.Equal(s.t, "pending", s.state(id)["status"])
	s.t.Logf("kill %d: pid %d, %d patches held, none let through; the ledger names %s, which is still pending", n+1,
		s.host.HandlerPid(), held.Held, id)
}

// Must show: a stale batch re-sent after its document was corrected and committed does not bring the old content back.
func TestAStaleBatchReSentChangesNothing(t *testing.T) {
	docs := sample.Generate(sample.Options{Seed: 5, Count: 1, Clean: true})
	s := newStack(t, sample.Lines(docs)...)
	s.submit(docs[0].JSON)
	stale := s.document(docs[0].ID)
	var corrected map[string]any
	require.NoError(t, json.Unmarshal(docs[0].JSON, &corrected))
	corrected["process_output"].(map[string]any)["manufacturer_name"] = "CORRECTED"
	text, err := json.Marshal(corrected)
	require.NoError(t, err)
	docs[0].JSON = text
	s.submit(docs[0].JSON)
	s.startHost()
	s.waitUntilQuiet(1)

	status, reply := s.post("[" + string(stale) + "]")
	require.Equal(t, http.StatusOK, status, reply)
	s.requireExact(docs)
	require.Equal(t, "committed", s.state(docs[0].ID)["status"])
}

// post offers a batch to the handler as the host encodes it: a JSON string within a JSON string.
func (s *stack) post(array string) (int, string) {
	s.t.Helper()
	once, err := json.Marshal(array)
	require.NoError(s.t, err)
	body, err := json.Marshal(
		map[string]any{"Data": map[string]any{"documents": string(once)}, "Metadata": map[string]any{}})
	require.NoError(s.t, err)
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost,
		s.host.HandlerURL()+"/CommitResults", bytes.NewReader(body))
	require.NoError(s.t, err)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	require.NoError(s.t, err)
	defer func() { require.NoError(s.t, res.Body.Close()) }()
	text, err := io.ReadAll(res.Body)
	require.NoError(s.t, err)
	return res.StatusCode, string(text)
}

// Must show: a 5xx after half of the patches neither loses nor counts anything.
func TestCosmosGoesAwayAfterHalfOfThePatches(t *testing.T) {
	docs := sample.Generate(sample.Options{Seed: 6, Count: 100, Clean: true})
	s := newStack(t, sample.Lines(docs)...)
	rule, err := s.cosmos.Server.AddFault(
		cosmosdb.Rule{Op: cosmosdb.OpPatch, Container: container, Nth: 51, Status: http.StatusServiceUnavailable})
	require.NoError(t, err)
	s.submit(jsons(docs)...)
	s.startHost()
	_, err = s.host.WaitEvent(s.patiently(), 0, func(e funchost.Event) bool { return e.Kind == funchost.Retry })
	require.NoError(t, err)
	s.cosmos.Server.RemoveFault(rule)
	s.waitUntilQuiet(len(docs))
	s.requireExact(docs)
	requireWrittenOnce(t, s, docs)
	for id := range s.all() {
		require.Equal(t, 0.0, s.state(id)["retry_count"], "nothing was counted against %s", id)
	}
}

// A payload that is not a batch is logged with its invocation, and other documents do not wait.
func TestAPayloadThatIsNoBatchBlocksNobody(t *testing.T) {
	docs := sample.Generate(sample.Options{Seed: 7, Count: 3, Clean: true})
	s := newStack(t, sample.Lines(docs)...)
	s.startHost()
	s.handler.waitReady()
	for _, payload := range []string{"not JSON at all", `{"an":"object"}`, ""} {
		status, reply := s.post(payload)
		require.Equal(t, http.StatusOK, status, reply)
		require.True(t, strings.HasPrefix(reply, "{"), "never an empty reply")
	}
	status, _ := s.post("[]")
	require.Equal(t, http.StatusOK, status)
	s.submit(jsons(docs)...)
	s.waitUntilQuiet(len(docs))
	s.requireExact(docs)
}

// Must show: the handler's memory over 10,000 documents of 4 KB.
func TestTenThousandDocumentsInLittleMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("ten thousand documents take half a minute")
	}
	docs := sample.Generate(sample.Options{Seed: 8, Count: 10_000, Clean: true, Size: 4096})
	s := newStack(t, sample.Lines(docs)...)
	s.patience = 5 * time.Minute // on a machine that has other work to do
	s.submitMany(docs)
	begin := time.Now()
	s.startHost()
	s.waitUntilQuiet(len(docs))
	took := time.Since(begin)
	peak, ok := peakRSS(s.host.HandlerPid())
	if !ok {
		t.Skip("this system does not tell a process's peak memory")
	}
	t.Logf("10,000 documents of 4 KB in %s (%.0f a second), the handler's peak RSS %.1f MB", took,
		10_000/took.Seconds(), float64(peak)/(1<<20))
	require.Less(t, peak, int64(64<<20))
	var written int
	require.NoError(t,
		s.store.Reader().QueryRowContext(t.Context(), "SELECT count(*) FROM IVCE_TRKG_MSTR").Scan(&written))
	lines := map[int64]bool{}
	for _, l := range sample.Lines(docs) {
		lines[l] = true
	}
	require.Len(t, lines, written, "every line has its tracking row; the values are compared where there are fewer")
}

func (s *stack) submitMany(docs []sample.Document) {
	s.t.Helper()
	const lanes = 16
	errs := make(chan error, lanes)
	for lane := range lanes {
		go func() {
			for i := lane; i < len(docs); i += lanes {
				if err := s.put(docs[i]); err != nil {
					errs <- fmt.Errorf("%s: %w", docs[i].Name, err)
					return
				}
			}
			errs <- nil
		}()
	}
	for range lanes {
		require.NoError(s.t, <-errs)
	}
}
