package e2e_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/handlers"
	"sqlwriter/internal/events"
	"sqlwriter/test/emulators/azurite"
	"sqlwriter/test/emulators/cosmosdb"
	"sqlwriter/test/emulators/funchost"
	"sqlwriter/test/emulators/servicebus"
	"sqlwriter/test/emulators/servicebus/servicebustest"
	"sqlwriter/test/sample"
)

// The queues of the stack.
const (
	runsQueue    = "sqlwriter-web-runs"
	batchesQueue = "sqlwriter-web-batches"
)

// withBus starts Service Bus beside the stack; lock is how long a message stays with a host that does not say a word.
func (s *stack) withBus(lock time.Duration) *servicebustest.Server {
	s.t.Helper()
	bus := servicebustest.Start(s.t,
		servicebus.Queue{Name: runsQueue, RequiresDuplicateDetection: true, LockDuration: lock},
		servicebus.Queue{Name: batchesQueue, RequiresDuplicateDetection: true, LockDuration: lock})
	s.bus = bus.ConnectionString()
	return bus
}

const (
	// usualLock is long enough for the busiest machine; shortLock is for tests that lose what a host had in hand.
	usualLock = time.Minute
	shortLock = 5 * time.Second
	// slots is how many batches a worker has in hand at most: maxConcurrentCalls in host.json.
	slots = 4
	// runPatience is how long a run may take in which something goes wrong: what was put off comes again after minutes.
	runPatience = 10 * time.Minute
)

// off are settings that switch functions off.
func off(functions ...string) map[string]string {
	settings := map[string]string{}
	for _, name := range functions {
		settings["AzureWebJobs."+name+".Disabled"] = "true"
	}
	return settings
}

// team starts a manager and workers as processes of their own, CommitResults switched off everywhere, and waits for
// each.
func (s *stack) team(workers int) (manager *process, all []*process) {
	s.t.Helper()
	s.recover = "*/5 * * * * *" // more often than deployed, so that a test sees it at work
	manager = s.launch("manager", off("CommitResults", "BatchWorker"))
	s.host = manager.Host
	for n := range workers {
		all = append(all,
			s.launch(fmt.Sprintf("worker-%d", n+1),
				off("CommitResults", "BatchManager", "RunDeadLetter", "BatchDeadLetter", "RecoverRetries")))
	}
	for _, p := range append([]*process{manager}, all...) {
		p.waitReady()
	}
	return manager, all
}

// count asks the database for a number.
func (s *stack) count(query string) int {
	s.t.Helper()
	var n int
	require.NoError(s.t, s.db.QueryRowContext(s.t.Context(), query).Scan(&n))
	return n
}

// table is the name of one of our own tables.
func (s *stack) table(name string) string {
	if s.store != nil {
		return "sqlwriter_" + name
	}
	return "sqlwriter." + name
}

// waitReady waits until the handler has opened everything.
func (p *process) waitReady() {
	p.t.Helper()
	p.waitHealth("ready", func(r handlers.HealthReport) bool { return r.Status == handlers.StatusReady })
}

// progress is what the tests read of a run.
type progress struct {
	ID        string `json:"id"`
	Status    string `json:"status"`
	Documents int    `json:"documents"`
	Batches   int    `json:"batches"`
	Done      int    `json:"done"`
	Stats     struct {
		Batches   map[string]int `json:"batches"`
		Documents map[string]int `json:"documents"`
	} `json:"stats"`
}

// startRun starts a run over the operators' API.
func (s *stack) startRun(body string) string {
	s.t.Helper()
	status, answer := s.ops(http.MethodPost, "runs", body, functionKey)
	require.Equal(s.t, http.StatusOK, status, "%v", answer)
	require.NotContains(s.t, answer, "note")
	return answer["run"].(string)
}

// showRun asks how far a run is.
func (s *stack) showRun(id string) progress {
	s.t.Helper()
	status, answer := s.ops(http.MethodGet, "runs/progress?run="+id, "", functionKey)
	require.Equal(s.t, http.StatusOK, status, "%v", answer)
	text, err := json.Marshal(answer)
	require.NoError(s.t, err)
	var p progress
	require.NoError(s.t, json.Unmarshal(text, &p))
	return p
}

// watchRun waits for the end of a run and says on the way how far it is; each is called at every look.
func (s *stack) watchRun(id string, within time.Duration, each func(progress)) progress {
	s.t.Helper()
	last, said := progress{}, -1
	require.Eventually(s.t, func() bool {
		last = s.showRun(id)
		if last.Done != said {
			said = last.Done
			s.t.Logf("%s: %d of %d documents, batches %v", last.Status, last.Done, last.Documents, last.Stats.Batches)
		}
		if each != nil {
			each(last)
		}
		return last.Status != "running"
	}, within, 200*time.Millisecond, "the run does not end")
	return last
}

// drainSize is how many documents a drain has: SQLWRITER_DRAIN, or few.
func drainSize(t *testing.T) int {
	t.Helper()
	const few = 1000
	text := os.Getenv("SQLWRITER_DRAIN")
	if text == "" {
		return few
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}

// Must show: documents with CommitResults switched off, drained by a manager and three worker processes over Service
// Bus; every row equals its document, and the sums add up. Beside it the same documents by one instance from the feed.
func TestDrainByManagerAndThreeWorkers(t *testing.T) {
	docs := plainResults(61, drainSize(t))
	t.Run("sqlite", func(t *testing.T) {
		drain(t, newStackOver(t, newContainers(t, ranges(3)), sample.Lines(docs)...), docs)
	})
	t.Run("sqlserver", func(t *testing.T) {
		if os.Getenv("SQLWRITER_DRAIN") == "" {
			docs = docs[:500] // the engine here takes seconds for a batch
		}
		drain(t,
			newServerStack(t, newContainers(t, ranges(3)), func(dsn string) string { return dsn },
				sample.Lines(docs)...), docs)
	})
	if os.Getenv("SQLWRITER_DRAIN") == "" {
		return
	}
	t.Run("sqlite, one instance", func(t *testing.T) {
		fromFeed(t, newStackOver(t, newContainers(t, ranges(1)), sample.Lines(docs)...), docs)
	})
	t.Run("sqlserver, one instance", func(t *testing.T) {
		fromFeed(t,
			newServerStack(t, newContainers(t, ranges(1)), func(dsn string) string { return dsn },
				sample.Lines(docs)...), docs)
	})
}

func drain(t *testing.T, s *stack, docs []sample.Document) {
	t.Helper()
	s.patience = 30 * time.Minute
	bus := s.withBus(usualLock)
	s.submitMany(docs)
	_, workers := s.team(3)
	batches := (len(docs) + 99) / 100
	release := s.holdUntilSeen(docs)
	began := time.Now()
	id := s.startRun(`{"kind":"drain","why":"the feed is switched off"}`)
	s.waitForWorkers(min(len(workers), (batches+slots-1)/slots))
	s.cosmos.Server.RemoveFault(release.all)
	halfway := false
	end := s.watchRun(id, s.patience, func(p progress) {
		if 0 < p.Done && p.Done < len(docs) {
			halfway = true
			s.cosmos.Server.RemoveFault(release.one)
		}
	})
	took := time.Since(began)
	t.Logf("%d documents in %.1f s by a manager and 3 workers: %.0f documents/s", len(docs), took.Seconds(),
		float64(len(docs))/took.Seconds())

	logCosts(t, workers)
	require.Equal(t, "completed", end.Status)
	require.Equal(t, len(docs), end.Documents)
	require.Equal(t, map[string]int{"completed": batches}, end.Stats.Batches)
	sum := 0
	for outcome, count := range end.Stats.Documents {
		require.Contains(t, []string{"applied", "superseded", "unchanged"}, outcome)
		sum += count
	}
	require.Equal(t, len(docs), sum, "the sums add up: %v", end.Stats.Documents)
	require.True(t, halfway, "the progress is seen")
	s.requireExact(docs)
	requireEmptied(t, bus)
}

// held are the rules of holdUntilSeen.
type held struct{ all, one string }

// holdUntilSeen holds a drain: no batch ends until the rule all is removed, and the run not until one is. Without that
// nobody could be sure of being there in time.
func (s *stack) holdUntilSeen(docs []sample.Document) held {
	s.t.Helper()
	one, err := s.cosmos.Server.AddFault(
		cosmosdb.Rule{Op: cosmosdb.OpPatch, Container: container, Doc: docs[0].ID, Hold: cosmosdb.Before})
	require.NoError(s.t, err)
	return held{all: s.holdRequests(cosmosdb.OpPatch, cosmosdb.Before, 0), one: one}
}

// waitForWorkers waits until so many processes have claimed a batch. While none can end, a process has no more than its
// slots, and the rest is left to the others.
func (s *stack) waitForWorkers(processes int) {
	s.t.Helper()
	claimed := "SELECT COUNT(DISTINCT instance) FROM " + s.table("worker") + " WHERE kind = 'worker'"
	require.Eventually(s.t, func() bool { return s.count(claimed) >= processes }, s.patience, 50*time.Millisecond,
		"not %d processes have a batch", processes)
}

// requireEmptied requires that nothing is left in the queues. A batch whose lock was lost leaves a message that was put
// off, for when its worker might have died: it is let come, and does nothing.
func requireEmptied(t *testing.T, bus *servicebustest.Server) {
	t.Helper()
	for _, queue := range []string{runsQueue, batchesQueue} {
		require.Eventually(t, func() bool {
			c := bus.Counts(queue)
			if c.Scheduled > 0 {
				bus.Advance(10 * time.Minute)
			}
			return c.Active+c.Scheduled == 0
		}, patience, 50*time.Millisecond, queue)
		require.Zero(t, bus.Counts(queue).DeadLetter, queue)
	}
}

// logCosts says where the workers' time went.
func logCosts(t *testing.T, workers []*process) {
	t.Helper()
	var batches, requests, sqlMS, cosmosMS, all int64
	for _, w := range workers {
		for _, text := range w.lines() {
			var l struct {
				Function string           `json:"function"`
				Duration int64            `json:"ms"`
				Counts   map[string]int64 `json:"counts"`
			}
			require.NoError(t, json.Unmarshal([]byte(text), &l))
			if l.Function == "BatchWorker" && l.Counts["sql_requests"] > 0 {
				batches, all = batches+1, all+l.Duration
				requests, sqlMS, cosmosMS = requests+l.Counts["sql_requests"], sqlMS+l.Counts["sql_ms"],
					cosmosMS+l.Counts["cosmos_ms"]
			}
		}
	}
	if batches > 0 {
		t.Logf("a batch took %d ms: %.1f requests of SQL in %d ms, Cosmos DB %d ms (16 at once)", all/batches,
			float64(requests)/float64(batches), sqlMS/batches, cosmosMS/batches)
	}
}

// fromFeed is the same work by one instance, as it is done every day.
func fromFeed(t *testing.T, s *stack, docs []sample.Document) {
	t.Helper()
	s.patience = 30 * time.Minute
	s.submitMany(docs)
	began := time.Now()
	s.startHost()
	s.waitUntilQuiet(len(docs))
	took := time.Since(began)
	t.Logf("%d documents in %.1f s by one instance: %.0f documents/s", len(docs), took.Seconds(),
		float64(len(docs))/took.Seconds())
	s.requireExact(docs)
}

// Workers are killed in the middle of their batches: their messages come again, the batches are taken over, and no line
// is written otherwise than its document says.
func TestWorkersAreKilledInMidBatch(t *testing.T) {
	docs := sample.Generate(sample.Options{Seed: 62, Count: 600, Clean: true})
	s := newStack(t, sample.Lines(docs)...)
	s.patience = runPatience
	s.withBus(shortLock)
	s.submitMany(docs)
	_, workers := s.team(2)
	rule := s.holdRequests(cosmosdb.OpPatch, cosmosdb.Before, 0) // a batch that is in SQL is not finished
	id := s.startRun(`{"kind":"drain","why":"kill"}`)
	for n := range 4 { // the third of one host would be its last
		w := workers[n%2]
		s.waitForBatchOf(w, workers)
		require.Equal(t, funchost.HandlerReady, s.killHandler(w.Host))
	}
	s.cosmos.Server.RemoveFault(rule)
	end := s.watchRun(id, s.patience, func(progress) { s.ageTheDead(workers) })
	require.Equal(t, "completed", end.Status)
	require.Equal(t, len(docs), end.Done)
	require.Equal(t, map[string]int{"completed": 6}, end.Stats.Batches)
	require.GreaterOrEqual(t, s.count(`SELECT COALESCE(SUM(epoch), 0) FROM sqlwriter_batch`), 6+4,
		"what the dead had was taken over")
	s.requireExact(docs)
}

// waitForBatchOf waits until a process has a batch in hand.
func (s *stack) waitForBatchOf(p *process, all []*process) {
	s.t.Helper()
	inHand := fmt.Sprintf(`SELECT COUNT(*) FROM sqlwriter_batch WHERE status = 'processing'
		AND owner IN (SELECT worker_id FROM sqlwriter_worker WHERE instance LIKE '%%-%d')`, p.HandlerPid())
	require.Eventually(s.t, func() bool {
		s.ageTheDead(all)
		return s.count(inHand) > 0
	}, s.patience, 50*time.Millisecond, "it has no batch")
}

// ageTheDead lets the ten minutes be over after which it is taken over what processes had that are there no more. The
// living keep theirs: one that is taken over again and again is taken for the reason.
func (s *stack) ageTheDead(living []*process) {
	s.t.Helper()
	query := `UPDATE sqlwriter_batch SET heartbeat_at = '2020-01-01T00:00:00.000Z', updated_at = '2020-01-01T00:00:00.000Z'
		WHERE status = 'processing' AND owner IN (SELECT worker_id FROM sqlwriter_worker WHERE status = 'RUNNING'`
	for _, p := range living {
		query += fmt.Sprintf(" AND instance NOT LIKE '%%-%d'", p.HandlerPid())
	}
	_, err := s.store.Writer().ExecContext(s.t.Context(), query+")")
	require.NoError(s.t, err)
}

// Must show: unusable messages end in the dead-letter path with a reason: malformed, oversized, of an unknown
// version, for another environment, and one that a person dead-lettered. A run's message, too.
func TestUnusableMessagesAreDeadLettered(t *testing.T) {
	s := newStack(t)
	blobs := azurite.Start(t)
	s.blobs = blobs.ConnectionString()
	bus := s.withBus(usualLock)
	manager := s.launch("all", off("CommitResults"))
	s.host = manager.Host
	manager.waitReady()
	for name, body := range unusable() {
		bus.Send(batchesQueue, servicebus.Outgoing{MessageID: "batch-" + name, Body: []byte(body)})
		bus.Send(runsQueue, servicebus.Outgoing{MessageID: "run-" + name, Body: []byte(body)})
	}
	want := 2 * len(unusable())
	aside := func(l logLine) bool { return l.Event == string(events.MessageDeadLettered) }
	require.Eventually(t, func() bool { return len(manager.log(aside)) >= want }, patience, 50*time.Millisecond)
	require.Len(t, evidence(t, blobs), 2*want, "a body and what came with it")
	status, answer := s.ops(http.MethodGet, "audits?limit=100", "", functionKey)
	require.Equal(t, http.StatusOK, status)
	require.Len(t, answer["audits"], want)
	for _, entry := range answer["audits"].([]any) {
		require.Equal(t, "DEAD_LETTER", entry.(map[string]any)["action"])
		require.Contains(t, entry.(map[string]any)["why"], "expected")
	}
	for _, queue := range []string{runsQueue, batchesQueue} {
		require.Eventually(t, func() bool {
			c := bus.Counts(queue)
			return c.Active+c.Locked+c.DeadLetter == 0
		}, patience, 50*time.Millisecond)
	}
}

// unusable are bodies by what is wrong with them.
func unusable() map[string]string {
	large := `{"message_version":1,"note":"` + strings.Repeat("x", 100_000) + `"}`
	return map[string]string{
		"malformed": `{"message_version":1,`, "text": "hello, is anybody there?", "oversized": large,
		"version": `{"message_version":99}`,
		"environment": `{"message_version":1,"message_kind":"batch","sys_name":"other","run_id":"x","batch_id":"` +
			fmt.Sprintf("%064d", 0) + `"}`,
	}
}

// Service Bus goes away in the middle of a hand-off and comes back: nothing is counted, and the run goes on by itself.
func TestServiceBusGoesAwayDuringAHandOff(t *testing.T) {
	t.Parallel()
	docs := sample.Generate(sample.Options{Seed: 63, Count: 1500, Clean: true})
	s := newStack(t, sample.Lines(docs)...)
	bus := s.withBus(shortLock)
	s.submitMany(docs)
	s.team(1)
	// The first message is taken; the others find a connection that breaks, and then none.
	bus.Fail(servicebus.Fault{Queue: batchesQueue, On: servicebus.OnSend, Then: servicebus.Drop, Skip: 1})
	id := s.startRun(`{"kind":"drain","why":"bus","rate_per_minute":60000}`)
	require.Eventually(t, func() bool { return bus.Faults()[0].Struck > 0 }, patience, 10*time.Millisecond)
	bus.Down()
	require.Never(t, func() bool { return s.showRun(id).Status != "running" }, 3*time.Second, 200*time.Millisecond)
	bus.Heal()
	bus.Up()
	end := s.watchRun(id, runPatience, nil)
	require.Equal(t, "completed", end.Status)
	require.Equal(t, len(docs), end.Done)
	require.Equal(t, []string{"completed"}, keysOf(end.Stats.Batches))
	require.Zero(t, s.count(`SELECT COALESCE(SUM(queue_attempt_count), 0) FROM sqlwriter_batch`),
		"an outage spends nothing")
	s.requireExact(docs)
}

func keysOf(m map[string]int) []string {
	var keys []string
	for k := range maps.Keys(m) {
		keys = append(keys, k)
	}
	return keys
}
