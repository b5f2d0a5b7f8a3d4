package e2e_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
	"sqlwriter/test/emulators/azurite"
	"sqlwriter/test/emulators/servicebus"
	away "sqlwriter/test/outage"
	"sqlwriter/test/sample"
)

// requireConditionLine waits until the handler has logged a condition, and requires what alerts ask for.
func (s *stack) requireConditionLine(p *process, condition string) {
	s.t.Helper()
	line := ""
	require.Eventually(s.t, func() bool {
		for _, text := range p.lines() {
			if strings.Contains(text, `"condition":"`+condition+`"`) {
				line = text
				return true
			}
		}
		return false
	}, s.patience, 20*time.Millisecond, "no line tells %s", condition)
	require.Regexp(s.t, `"severity":"(wake|tell)"`, line)
	s.t.Logf("LINE %s", line)
}

// Conditions that no other test of the stack makes: each is made with the real handler, and its line is read from the
// handler's output.
func TestPlantedConditionsReachTheLog(t *testing.T) {
	t.Parallel()
	docs := sample.Generate(sample.Options{Seed: 77, Count: 5, Clean: true})
	s := newStack(t, append(sample.Lines(docs), 1, 2, 3, 4)...)
	s.recover, s.blobs = yearly, azurite.Start(t).ConnectionString()
	bus := s.withBus(usualLock)
	_, err := s.store.Writer().ExecContext(t.Context(),
		`CREATE TRIGGER refuse BEFORE UPDATE OF IVCE_LNE_STAT ON IVCE_DTL WHEN NEW.IVCE_DTL_UID = 2
		BEGIN SELECT RAISE(ABORT, 'refused'); END`)
	require.NoError(t, err)
	settings := timerStorage(t)
	maps.Copy(settings, off("BatchWorker"))
	settings["MAX_POISON_PER_HOUR"] = "1"
	s.submit(jsons(docs)...)
	s.handler = s.launch("e2e", settings)
	s.host = s.handler.Host
	s.waitUntilQuiet(len(docs))
	s.tick()
	s.requireNothing()

	s.post(`{"no":"batch"}`)
	s.requireConditionLine(s.handler, "mistake")

	bus.Send(runsQueue, servicebus.Outgoing{MessageID: "x", Body: []byte("hello")})
	s.requireConditionLine(s.handler, "dead_letters")

	_, unmarkable := spent(t, 2)
	s.submit(unmarkable)
	s.tick()
	s.requireConditionLine(s.handler, "manual_review")
	_, another := spent(t, 3)
	s.submit(another)
	s.tick()
	s.requireConditionLine(s.handler, "poison_limit")

	_, other := aResult(t, "web", 4, nil)
	var members map[string]any
	require.NoError(t, json.Unmarshal(other, &members))
	members["sql_writer"] = map[string]any{
		"status": "committed", "committed_at": invoice.Stamp(time.Now().Add(time.Minute), time.UTC),
	}
	other, err = json.Marshal(members)
	require.NoError(t, err)
	s.submit(other)
	s.requireConditionLine(s.handler, "second_writer")

	s.startRun(`{"kind":"reapply","all":true,"why":"no worker takes it"}`)
	require.Eventually(t, func() bool {
		return s.count("SELECT COUNT(*) FROM sqlwriter_batch WHERE status = 'queued'") > 0
	}, s.patience, 20*time.Millisecond)
	s.edit(
		"UPDATE sqlwriter_batch SET created_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-2 hours'), queued_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-2 hours')")
	s.tick()
	s.requireConditionLine(s.handler, "work_waits")

	refused := s.launch("refused", map[string]string{"LOG_LEVEL": "loud", "LEASE_PREFIX": "another-"})
	s.requireConditionLine(refused, "settings_invalid")
}

// The flow stops: by an outage, then by a database that is older than what was written to.
func TestPlantedStopsOfTheFlowReachTheLog(t *testing.T) {
	t.Parallel()
	docs := sample.Generate(sample.Options{Seed: 78, Count: 6, Clean: true})
	s := newStack(t, sample.Lines(docs)...)
	s.recover, s.patience = yearly, runPatience
	s.submit(jsons(docs[:2])...)
	s.handler = s.launch("e2e", timerStorage(t))
	s.host = s.handler.Host
	s.waitUntilQuiet(2)
	stopped := func(o ops.Status) bool { return o.Flow.State == breaker.StoppedFlow }

	sql := away.NewFile(filepath.Join(s.dir, "sqlwriter.db"), s.store.Writer())
	require.NoError(t, sql.Off(t.Context()))
	s.submit(jsons(docs[2:4])...)
	s.waitStatus("that the flow is stopped", stopped)
	s.tick()
	s.requireConditionLine(s.handler, "flow_stopped")
	require.NoError(t, sql.On(t.Context()))
	s.waitUntilQuiet(4)

	s.edit("UPDATE sqlwriter_heartbeat SET number = number - 3600000")
	s.submit(jsons(docs[4:])...)
	s.waitStatus("that the database is refused", stopped)
	s.tick()
	s.requireConditionLine(s.handler, "database_refused")
	out, exit := s.sqlwriterctl("flow", "resume", "--force", "--yes", "--why", "an hour is lost")
	require.Zero(t, exit, out)
	s.waitUntilQuiet(6)
	s.tick()
	s.requireConditionLine(s.handler, "database_behind")
	status, answer := s.ops(http.MethodGet, "status", "", functionKey)
	require.Equal(t, http.StatusOK, status, "%v", answer)
	s.requireExact(docs)
}
