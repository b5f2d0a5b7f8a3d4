package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"sqlwriter/handlers"
	"sqlwriter/internal/breaker"
	"sqlwriter/internal/events"
	"sqlwriter/test/emulators/cosmosdb"
	"sqlwriter/test/emulators/funchost"
	"sqlwriter/test/sample"
	"sqlwriter/test/sqlservertest"
)

// The campaigns of `make faults` run real processes for real minutes, with the host's pauses as deployed.

const (
	// outage is how long SQL is away.
	outage = 3 * time.Minute
	// returned is how long it may take, once SQL is back, until the first document is committed: the claim of a probe
	// that just failed with its jitter, the longer wait of whoever made it, the ramp, and pauses of the host. Those who
	// did not make the probe learn of it after a pause of their own.
	returned, pause = 110 * time.Second, 10 * time.Second
)

// asDeployed is a script root with the pauses of functions/.
func asDeployed(t *testing.T) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "root")
	require.NoError(t, os.CopyFS(root, os.DirFS(scriptRoot)))
	require.NoError(t, os.Chmod(filepath.Join(root, "handler"), 0o755))
	path := filepath.Join(root, "CommitResults", "function.json")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	long := strings.Replace(string(text), `"00:00:00.200"`, `"00:00:10"`, 1)
	require.NotEqual(t, string(text), long)
	require.NoError(t, os.WriteFile(path, []byte(long), 0o600))
	return root
}

// ranges makes a container of so many physical partitions, so that several hosts have something to share.
func ranges(n int) func(*cosmosdb.Options) {
	return func(o *cosmosdb.Options) { o.Ranges = n }
}

// three starts three hosts with one LEASE_PREFIX over the stack, one after the other; change says what the next one has
// otherwise.
func (s *stack) three(change func(before []*process) map[string]string) []*process {
	s.t.Helper()
	root := asDeployed(s.t)
	s.recover = "*/30 * * * * *" // more often than deployed: it must not knock either
	var all []*process
	for n := range 3 {
		all = append(all, s.launchFrom(root, fmt.Sprintf("host-%d", n+1), change(all)))
	}
	return all
}

// switchable is SQL that can be switched off and on again.
type switchable struct {
	off, on func()
	// came gives the times of the connection attempts.
	came func() []time.Time
}

// Must show: SQL off for three real minutes, 500 documents pending, three real processes: no retry spent, none failed,
// at most one attempt in 60 s for the app, all committed within two minutes of its return, no process restarted.
func TestCampaignSQLIsOffForThreeMinutes(t *testing.T) {
	onlyInACampaign(t)
	t.Parallel()
	t.Run("sqlserver", func(t *testing.T) { // goes away in the middle of the work, counted at the proxy
		t.Parallel()
		docs := plainResults(41, 530)
		s, proxy := behindProxyOf(t, ranges(6), sample.Lines(docs)...)
		all := s.three(func([]*process) map[string]string { return nil })
		s.submitMany(docs[:30])
		s.waitUntilQuiet(30)
		s.outageOf(all, docs, 30, switchable{off: proxy.Away, on: proxy.Back, came: proxy.Came})
	})
	t.Run("sqlite", func(t *testing.T) { // is not there from the start, counted in the logs
		t.Parallel()
		docs := sample.Generate(sample.Options{Seed: 42, Count: 500, Clean: true})
		s := newStackOver(t, newContainers(t, ranges(6)), sample.Lines(docs)...)
		away := s.dir + "-away"
		off := func() { require.NoError(t, os.Rename(s.dir, away)) }
		on := func() { require.NoError(t, os.Rename(away, s.dir)) }
		off()
		t.Cleanup(func() {
			if err := os.Rename(away, s.dir); err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Error(err)
			}
		})
		all := s.three(func([]*process) map[string]string { return nil })
		s.outageOf(all, docs, 0, switchable{off: func() {}, on: on, came: func() []time.Time {
			var tries []time.Time
			for _, p := range all {
				for _, l := range p.log(isOpening) {
					tries = append(tries, l.Time)
				}
			}
			slices.SortFunc(tries, time.Time.Compare)
			return tries
		}})
	})
}

// outageOf switches SQL off, submits the documents from the first one on, and switches it on again.
func (s *stack) outageOf(all []*process, docs []sample.Document, first int, sql switchable) {
	s.t.Helper()
	sql.off()
	s.submitMany(docs[first:])
	var flow handlers.FlowHealth
	history := s.historyOfTheBreaker()
	require.Eventually(s.t, func() bool {
		flow = all[0].health().Flow
		return flow.State == string(breaker.StoppedFlow)
	}, patience, 50*time.Millisecond, "the flow does not stop")
	settled := flow.Since.Add(settleTime)
	wait(s.t, settled.Add(outage))
	// It comes back at the worst moment: just after it was probed.
	var came []time.Duration
	require.Eventually(s.t, func() bool {
		history.look(time.Since(settled))
		came = nil
		for _, at := range sql.came() {
			if at.After(settled) {
				came = append(came, at.Sub(settled).Round(10*time.Millisecond))
			}
		}
		return len(came) > 0 && came[len(came)-1] > outage
	}, 2*time.Minute, 100*time.Millisecond, "SQL is not probed any more")
	committed, states := s.committed()
	require.Equal(s.t, first, committed, "nothing was committed while SQL was away")
	require.Equal(s.t, map[string]int{"pending": len(docs) - first}, states, "every document waits as it came")
	require.LessOrEqual(s.t, mostPerMinute(came), 1, "attempts after the flow stopped: %v", came)
	require.GreaterOrEqual(s.t, len(came), 2, "SQL is probed: %v", came)

	back := time.Now()
	sql.on()
	var firstOne time.Duration
	for n := 0; n < len(docs); {
		require.Less(s.t, time.Since(back), 5*time.Minute, "%d of %d are committed", n, len(docs))
		history.look(time.Since(settled))
		if n, _ = s.committed(); n > first && firstOne == 0 {
			firstOne = time.Since(back)
		}
		wait(s.t, time.Now().Add(100*time.Millisecond))
	}
	took := time.Since(back)
	s.t.Logf("the breaker, from 5 s after it had opened:\n%s", history)
	s.requireExact(docs)
	requireWrittenOnce(s.t, s, docs)
	s.requireUncounted()
	refusals, engine := 0, time.Duration(0)
	for _, p := range all {
		for _, l := range p.log(func(l logLine) bool { return l.Time.After(back) }) {
			engine = max(engine, time.Duration(l.SQL)*time.Millisecond)
		}
		p.requireNeverRestarted()
		statuses, slowest := p.refused()
		refusals += len(statuses)
		require.Less(s.t, slowest, 4*time.Minute, "its own deadline")
	}
	s.t.Logf(
		"SQL away for %s and until the next probe with %d documents pending: %d attempts from 5 s after the breaker had opened, after %v; %d batches answered 503; "+
			"back: the first committed after %s, all after %s, of which the engine took up to %s for one batch; 0 retries, 0 failed, 0 restarts",
		outage, len(docs)-first, len(came), came, refusals, firstOne.Round(100*time.Millisecond),
		took.Round(100*time.Millisecond), engine.Round(100*time.Millisecond))
	require.Less(s.t, firstOne, returned+engine)
	require.Less(s.t, took, returned+pause+2*engine, "the probe's batch, and those that waited for it")
}

// history lists the breaker's states in the control document, change by change.
type history struct {
	s       *stack
	control *azcosmos.ContainerClient
	last    string
	lines   []string
}

func (s *stack) historyOfTheBreaker() *history {
	s.t.Helper()
	control, err := s.cosmos.Client.NewContainer(database, "sqlwriter-control")
	require.NoError(s.t, err)
	return &history{s: s, control: control}
}

// look notes what has changed since the last look.
func (h *history) look(at time.Duration) {
	h.s.t.Helper()
	pager := h.control.NewQueryItemsPager("SELECT * FROM c", azcosmos.NewPartitionKey(), nil)
	for pager.More() {
		page, err := pager.NextPage(h.s.t.Context())
		require.NoError(h.s.t, err)
		for _, raw := range page.Items {
			var c struct {
				Breaker breaker.State `json:"breaker"`
			}
			require.NoError(h.s.t, json.Unmarshal(raw, &c))
			state := string(c.Breaker.Flow())
			if c.Breaker.Stopped() {
				state += " until " + c.Breaker.OpenUntil.Format(time.TimeOnly)
			}
			line := fmt.Sprintf("%s, limit %d, by %s", state, c.Breaker.Limit, c.Breaker.HeldBy)
			if line != h.last {
				h.last = line
				h.lines = append(h.lines, fmt.Sprintf("  +%s %s", at.Round(100*time.Millisecond), line))
			}
		}
	}
}

func (h *history) String() string { return strings.Join(h.lines, "\n") }

// committed counts the committed documents, and the others by status.
func (s *stack) committed() (int, map[string]int) {
	s.t.Helper()
	n, others := 0, map[string]int{}
	pager := s.docs.NewQueryItemsPager("SELECT VALUE c.sql_writer.status FROM c", azcosmos.NewPartitionKey(),
		&azcosmos.QueryOptions{PageSizeHint: 1000})
	for pager.More() {
		page, err := pager.NextPage(s.t.Context())
		require.NoError(s.t, err)
		for _, raw := range page.Items {
			if status := strings.Trim(string(raw), `"`); status == "committed" {
				n++
			} else {
				others[status]++
			}
		}
	}
	return n, others
}

// wait waits for a moment: in a campaign real time is what passes.
func wait(t *testing.T, until time.Time) {
	t.Helper()
	select {
	case <-time.After(time.Until(until)):
	case <-t.Context().Done():
		require.NoError(t, t.Context().Err())
	}
}

// Must show: one instance that alone cannot reach SQL does not stop the others. It is cut off, and leaves its documents
// to them.
func TestCampaignOneInstanceAloneCannotReachSQL(t *testing.T) {
	onlyInACampaign(t)
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) { // the third cannot even open it
		t.Parallel()
		docs := sample.Generate(sample.Options{Seed: 43, Count: 300, Clean: true})
		s := newStackOver(t, newContainers(t), sample.Lines(docs)...)
		all := s.three(func(before []*process) map[string]string {
			if len(before) < 2 {
				return nil
			}
			waitForRanges(t, before, 1) // both ranges are the others'
			return map[string]string{"SQL_CONNECTION": "sqlite:" + filepath.Join(s.dir, "nowhere", "at", "all.db")}
		})
		s.aloneOf(all, docs, func() {})
	})
	t.Run("sqlserver", func(t *testing.T) { // the third has worked, and then its way is cut
		t.Parallel()
		docs := plainResults(44, 300)
		s, _ := behindProxyOf(t, ranges(2), sample.Lines(docs)...)
		own := sqlservertest.NewProxy(t, sqlservertest.Address(t, sqlservertest.Server(t)))
		all := s.three(func(before []*process) map[string]string {
			if len(before) < 2 {
				return nil
			}
			waitForRanges(t, before, 1)
			own.Away()
			return map[string]string{"SQL_CONNECTION": sqlservertest.WithAddress(t, s.connection, own.Address())}
		})
		s.aloneOf(all, docs, func() {
			require.Positive(t, len(own.Came()))
			t.Logf("the third came %d times to its own way", len(own.Came()))
		})
	})
}

// waitForRanges waits until each of the hosts has so many ranges of the feed.
func waitForRanges(t *testing.T, hosts []*process, each int) {
	t.Helper()
	require.Eventually(t, func() bool {
		for _, p := range hosts {
			owned := map[string]bool{}
			for _, e := range p.Events(0) {
				switch e.Kind { //nolint:exhaustive // the others are not about leases
				case funchost.LeaseAcquired:
					owned[e.Range] = true
				case funchost.LeaseLost, funchost.LeaseReleased:
					delete(owned, e.Range) // the event may come twice
				}
			}
			if len(owned) != each {
				return false
			}
		}
		return true
	}, patience, 50*time.Millisecond, "the ranges are not shared out")
}

// aloneOf submits a document a second while the third process cannot reach SQL, and measures how long each waits.
func (s *stack) aloneOf(all []*process, docs []sample.Document, after func()) {
	s.t.Helper()
	submitted, latency := map[string]time.Time{}, map[string]time.Duration{}
	begin := time.Now()
	history := s.historyOfTheBreaker()
	for i, d := range docs {
		submitted[d.ID] = time.Now()
		require.NoError(s.t, s.put(d))
		s.note(submitted, latency)
		history.look(time.Since(begin))
		wait(s.t, begin.Add(time.Duration(i+1)*time.Second))
	}
	require.Eventually(s.t, func() bool {
		s.note(submitted, latency)
		return len(latency) == len(docs)
	}, s.patience, 200*time.Millisecond, "not all are committed")

	opened := all[0].log(func(l logLine) bool {
		return l.Event == string(events.FlowStopped) && l.State == string(breaker.Open)
	})
	own := all[2].log(func(l logLine) bool { return l.Event == string(events.InstanceCutOff) })
	require.NotEmpty(s.t, own, "the third is cut off")
	for _, p := range all {
		require.Equal(s.t, string(breaker.Running), p.health().Flow.State)
	}
	require.True(s.t, all[2].health().Flow.CutOff)
	s.t.Logf("the breaker of all:\n%s", history)
	settled := own[0].Time
	var all50, late []time.Duration
	for id, took := range latency {
		all50 = append(all50, took)
		if submitted[id].After(settled) {
			late = append(late, took)
		}
	}
	slices.Sort(all50)
	slices.Sort(late)
	require.NotEmpty(s.t, late)
	for _, p := range all {
		p.requireNeverRestarted()
	}
	s.requireExact(docs)
	requireWrittenOnce(s.t, s, docs)
	s.requireUncounted()
	after()
	s.t.Logf(
		"one of three without SQL for %s: the breaker of all opened %d times; from %s on the third is cut off; a document waited %s (median), %s (most); "+
			"since then %s (median), %s (most of %d)", time.Since(begin).Round(time.Second), len(opened),
		settled.Sub(begin).Round(time.Second),
		all50[len(all50)/2].Round(10*time.Millisecond), all50[len(all50)-1].Round(100*time.Millisecond),
		late[len(late)/2].Round(10*time.Millisecond), late[len(late)-1].Round(100*time.Millisecond), len(late))
	require.LessOrEqual(s.t, len(opened), 2, "once, and once more until it knows that the others succeed")
	require.Less(s.t, late[len(late)-1], 30*time.Second, "no document waits any more")
}

// note measures the documents that are committed by now.
func (s *stack) note(submitted map[string]time.Time, latency map[string]time.Duration) {
	s.t.Helper()
	pager := s.docs.NewQueryItemsPager("SELECT VALUE c.id FROM c WHERE c.sql_writer.status = 'committed'",
		azcosmos.NewPartitionKey(), &azcosmos.QueryOptions{PageSizeHint: 1000})
	for pager.More() {
		page, err := pager.NextPage(s.t.Context())
		require.NoError(s.t, err)
		for _, raw := range page.Items {
			id := strings.Trim(string(raw), `"`)
			if _, known := latency[id]; !known {
				latency[id] = time.Since(submitted[id])
			}
		}
	}
}
