package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sqlwriter/handlers"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/ops"
	"sqlwriter/test/emulators/cosmosdb"
	away "sqlwriter/test/outage"
	"sqlwriter/test/sample"
	"sqlwriter/test/sqlservertest"
)

// The tests of this file plant a fault that concerns a process or a connection, and look as an operator does.

// toldWithin is how long operators may not be told of a dependency that fails, after its first failure.
const toldWithin = 15 * time.Second

// answersWithin is how long a status may take while Cosmos DB does not answer: five seconds, and what a busy machine
// adds.
const answersWithin = 8 * time.Second

// status asks for the status, as an operator does.
func (s *stack) status() (out ops.Status) {
	s.t.Helper()
	code, answer := s.ops(http.MethodGet, "status", "", functionKey)
	require.Equal(s.t, http.StatusOK, code, "%v", answer)
	text, err := json.Marshal(answer)
	require.NoError(s.t, err)
	require.NoError(s.t, json.Unmarshal(text, &out))
	return out
}

// waitStatus waits until the status says what match wants.
func (s *stack) waitStatus(what string, match func(ops.Status) bool) ops.Status {
	s.t.Helper()
	var last ops.Status
	if !assert.Eventually(s.t, func() bool {
		last = s.status()
		return match(last)
	}, patience, 20*time.Millisecond, "the status does not say %s", what) {
		s.t.Fatalf("%+v", last)
	}
	return last
}

// find returns a dependency by its name.
func find(s ops.Status, dependency string) ops.DependencyView {
	at := slices.IndexFunc(s.Dependencies, func(d ops.DependencyView) bool { return d.Name == dependency })
	return s.Dependencies[at]
}

// requireTold waits until status and Health tell that a dependency fails so, and requires that they did in time.
func (s *stack) requireTold(dependency string, codes []string, first time.Time) {
	s.t.Helper()
	status := s.waitStatus("that "+dependency+" fails", func(o ops.Status) bool {
		return find(o, dependency).State == ops.DepFailing
	})
	s.handler.waitHealth("that "+dependency+" fails", func(h handlers.HealthReport) bool {
		return h.Dependencies[dependency].State == "failing"
	})
	took, d := time.Since(first), find(status, dependency)
	require.Less(s.t, took, toldWithin)
	require.Equal(s.t, fault.Infrastructure, d.Kind)
	require.Contains(s.t, codes, d.Code)
	require.Equal(s.t, "dependency_failing", status.Attention[0].Code)
	s.requireAlarm(took, "dependency_failing", "^"+dependency+" fails since ")
}

// sqlwriterctl runs the real tool with the app's address and a key.
func (s *stack) sqlwriterctl(args ...string) (out string, exit int) {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), ctlBinary(s.t), args...)
	cmd.Dir = s.t.TempDir()
	cmd.Env = []string{"HOME=" + cmd.Dir, "SQLWRITER_APP=http://" + s.host.Address(), "SQLWRITER_KEY=" + functionKey}
	var notes strings.Builder
	cmd.Stderr = &notes
	text, err := cmd.Output()
	var ended *exec.ExitError
	if err != nil {
		require.ErrorAs(s.t, err, &ended, notes.String())
	}
	require.NotEqual(s.t, 2, cmd.ProcessState.ExitCode(), notes.String())
	return string(text), cmd.ProcessState.ExitCode()
}

// requireAlarm requires that one command of the real tool names the cause: the line of status that has the code.
func (s *stack) requireAlarm(took time.Duration, code, says string) {
	s.t.Helper()
	out, exit := s.sqlwriterctl("status", "--check", "-o", "json")
	require.Equal(s.t, 3, exit, "what a monitor sees")
	var all []ops.Attention
	require.NoError(s.t, json.Unmarshal([]byte(out), &all))
	at := slices.IndexFunc(all, func(a ops.Attention) bool { return a.Code == code })
	require.GreaterOrEqual(s.t, at, 0, "%v", all)
	require.Regexp(s.t, says, all[at].Says)
	s.t.Logf("PLANTED %s after %s: %s", code, took.Round(10*time.Millisecond), all[at].Says)
	s.requirePageNames(took, code)
}

// waitAlarm waits until the status has a code, requires it of the tool, and requires that operators were told in time.
func (s *stack) waitAlarm(planted time.Time, code, says string) {
	s.t.Helper()
	s.waitStatus(code, func(o ops.Status) bool {
		return slices.ContainsFunc(o.Attention, func(a ops.Attention) bool { return a.Code == code })
	})
	took := time.Since(planted)
	require.Less(s.t, took, toldWithin)
	s.requireAlarm(took, code, says)
}

// requireWell waits until status and Health tell that a dependency answers.
func (s *stack) requireWell(dependency string) {
	s.t.Helper()
	s.waitStatus("that "+dependency+" answers", func(o ops.Status) bool {
		return find(o, dependency).State == ops.DepOK
	})
	s.handler.waitHealth("that "+dependency+" answers", func(h handlers.HealthReport) bool {
		return h.Dependencies[dependency].State == "ok"
	})
}

// sqlGoesAway is an outage between two halves of the documents: the connections are refused, or the file cannot be
// opened.
func sqlGoesAway(t *testing.T, s *stack, docs []sample.Document, sql away.Switch, code string) {
	t.Helper()
	half := len(docs) / 2
	s.submit(jsons(docs[:half])...)
	s.startHost()
	s.waitUntilQuiet(half)
	s.requireWell("sql")

	require.NoError(t, sql.Off(t.Context()))
	first := time.Now()
	s.submit(jsons(docs[half:])...)
	s.requireTold(ops.DepSQL, []string{code}, first)
	require.Contains(t, s.status().Flow.Says, "SQL fails since")
	require.NoError(t, sql.On(t.Context()))

	s.waitUntilQuiet(len(docs))
	s.requireWell("sql")
	s.requireExact(docs)
	requireWrittenOnce(t, s, docs)
	s.requireUncounted()
	s.handler.requireNeverRestarted()
}

func TestPlantedSQLIsOff(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		docs := sample.Generate(sample.Options{Seed: 71, Count: 40, Clean: true})
		s := newStack(t, sample.Lines(docs)...)
		const cantOpen = "14"
		sqlGoesAway(t, s, docs, away.NewFile(filepath.Join(s.dir, "sqlwriter.db"), s.store.Writer()), cantOpen)
	})
	t.Run("sqlserver", func(t *testing.T) {
		docs := plainResults(71, 10)
		proxy, err := away.NewProxy(t.Context(), "127.0.0.1:0", sqlservertest.Address(t, sqlservertest.Server(t)))
		require.NoError(t, err)
		t.Cleanup(func() { _ = proxy.Off(t.Context()) })
		s := newServerStack(t, newContainers(t), func(dsn string) string {
			return sqlservertest.WithAddress(t, dsn, proxy.Address())
		}, sample.Lines(docs)...)
		sqlGoesAway(t, s, docs, proxy, "connection")
	})
}

// Cosmos DB's process is gone for host and handler: nothing listens at its address. What comes meanwhile arrives
// afterwards.
func TestPlantedCosmosIsAway(t *testing.T) {
	t.Parallel()
	docs := sample.Generate(sample.Options{Seed: 72, Count: 40, Clean: true})
	s := newStack(t, sample.Lines(docs)...)
	s.recover = "*/2 * * * * *"
	server := strings.TrimSuffix(strings.TrimPrefix(s.cosmos.URL, "http://"), "/")
	proxy, err := away.NewProxy(t.Context(), "127.0.0.1:0", server)
	require.NoError(t, err)
	t.Cleanup(func() { _ = proxy.Off(t.Context()) })
	s.submit(jsons(docs[:20])...)
	settings := s.settings()
	settings["COSMOS_CONNECTION"] = strings.ReplaceAll(s.cosmos.ConnectionString, server, proxy.Address())
	s.handler = s.launch("e2e", settings)
	s.host = s.handler.Host
	s.waitUntilQuiet(20)
	s.requireWell("cosmos")

	require.NoError(t, proxy.Off(t.Context()))
	s.submit(jsons(docs[20:])...)
	first := time.Now()
	require.Equal(t, ops.DepFailing, find(s.status(), ops.DepCosmos).State, "who asks sees it himself")
	took := time.Since(first)
	require.Less(t, took, answersWithin)
	s.requireTold(ops.DepCosmos, []string{"refused", "reset", "eof"}, first)

	begin := time.Now()
	out, exit := s.sqlwriterctl("status", "--check")
	tool := time.Since(begin)
	require.Equal(t, 3, exit)
	require.Regexp(t, "ATTENTION +cosmos fails since .*nothing listens at the account's address", out)
	require.Less(t, tool, answersWithin)
	t.Logf("PLANTED cosmos: the status took %s, the tool's %s", took.Round(10*time.Millisecond),
		tool.Round(10*time.Millisecond))
	require.NoError(t, proxy.On(t.Context()))

	s.waitUntilQuiet(len(docs))
	s.requireWell("cosmos")
	s.requireExact(docs)
	requireWrittenOnce(t, s, docs)
	s.requireUncounted()
	s.handler.requireNeverRestarted()
}

// The host runs without the recovery timer: the deployed function is disabled. The feed goes on.
func TestPlantedTheTimerIsOff(t *testing.T) {
	t.Parallel()
	docs := sample.Generate(sample.Options{Seed: 73, Count: 20, Clean: true})
	s := newStack(t, sample.Lines(docs)...)
	s.withBus(usualLock) // the timer looks into its queues, and all but the timer is well here
	s.recover = "*/2 * * * * *"
	s.submit(jsons(docs[:10])...)
	s.startHost()
	s.waitUntilQuiet(10)
	s.waitStatus("what the timer counted", func(o ops.Status) bool {
		return find(o, ops.DepTimer).State == ops.DepOK && o.Counts != nil
	})
	require.NoError(t, s.host.Stop())

	s.handler = s.launch("e2e", off("RecoverRetries"))
	s.host = s.handler.Host
	s.submit(jsons(docs[10:])...)
	s.waitUntilQuiet(len(docs))
	s.requireExact(docs)
	require.Equal(t, ops.DepOK, find(s.status(), ops.DepTimer).State, "two ticks are not over")

	s.ageCounts(11 * time.Minute) // two ticks of the schedule that is deployed
	status := s.status()
	require.Equal(t, ops.DepSilent, find(status, ops.DepTimer).State)
	require.Contains(t, status.CountsUnknown, "unknown: the timer is silent since")
	require.NotNil(t, status.Counts, "the last ones are still told")
	s.requireAlarm(10*time.Minute, "timer_silent", "^the timer is silent since ")
}

// ageCounts sets back the time of the timer's last counts.
func (s *stack) ageCounts(by time.Duration) {
	s.t.Helper()
	control, err := s.cosmos.Client.NewContainer(database, "sqlwriter-control")
	require.NoError(s.t, err)
	const id = "status:web"
	key := azcosmos.NewPartitionKeyString(id)
	stored, err := control.ReadItem(s.t.Context(), key, id, nil)
	require.NoError(s.t, err)
	var counts map[string]any
	require.NoError(s.t, json.Unmarshal(stored.Value, &counts))
	at, err := time.Parse(time.RFC3339Nano, counts["at"].(string))
	require.NoError(s.t, err)
	counts["at"] = at.Add(-by)
	text, err := json.Marshal(counts)
	require.NoError(s.t, err)
	_, err = control.UpsertItem(s.t.Context(), key, text, nil)
	require.NoError(s.t, err)
}

// The manager's process is killed while it searches for the run's documents. Another one finishes the run.
func TestPlantedTheManagerIsDead(t *testing.T) {
	t.Parallel()
	docs := sample.Generate(sample.Options{Seed: 74, Count: 120, Clean: true})
	s := newStack(t, sample.Lines(docs)...)
	s.patience = runPatience
	s.withBus(shortLock)
	s.submitMany(docs)
	operators := s.launch("operators",
		off("CommitResults", "BatchManager", "BatchWorker", "RunDeadLetter", "BatchDeadLetter", "RecoverRetries"))
	s.host = operators.Host
	operators.waitReady()
	onlyManager := off("CommitResults", "BatchWorker", "RunDeadLetter", "BatchDeadLetter", "RecoverRetries")
	id := s.startRun(`{"kind":"drain","why":"a dead manager"}`)
	search := s.holdRequests(cosmosdb.OpQuery, cosmosdb.Before, 0)
	dead := s.launch("dead", onlyManager)
	require.NoError(t, s.cosmos.Server.WaitHeld(s.patiently(), search, 1))
	status := s.status()
	require.Equal(t, []string{id, ops.RunWorks}, []string{status.Runs[0].ID, status.Runs[0].State})
	require.NoError(t, dead.Stop())
	s.cosmos.Server.RemoveFault(search)

	s.ageManager(id, 95*time.Second)
	status = s.status()
	require.Equal(t, ops.RunSilent, status.Runs[0].State)
	require.Regexp(t, `^manager silent for (9[5-9]|1\d\d) s, taken over at 120 s$`, status.Runs[0].Says)
	s.requireAlarm(95*time.Second, "run_without_manager", "^run "+id+": manager silent for ")

	s.ageManager(id, 10*time.Minute)
	s.team(1)
	s.host = operators.Host
	end := s.watchRun(id, s.patience, nil)
	require.Equal(t, "completed", end.Status)
	require.Equal(t, len(docs), end.Done)
	require.Empty(t, s.status().Runs)
	s.requireExact(docs)
}

// ageManager sets a manager's last sign of life back.
func (s *stack) ageManager(run string, by time.Duration) {
	s.t.Helper()
	changed, err := s.store.Writer().ExecContext(s.t.Context(),
		`UPDATE sqlwriter_run SET heartbeat_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now', ?)
		WHERE run_id = ? AND owner IS NOT NULL`, fmt.Sprintf("-%d seconds", int(by.Seconds())), run)
	require.NoError(s.t, err)
	n, err := changed.RowsAffected()
	require.NoError(s.t, err)
	require.EqualValues(s.t, 1, n, "no manager had the run")
}
