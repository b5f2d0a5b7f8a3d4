package comparison

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/retention"
	"sqlwriter/internal/run"
)

// ticks is the time between two ticks of the recovery timer.
const ticks = 5 * time.Minute

// purgedVariable names how many documents the old run has that TestAPurge deletes.
const purgedVariable = "SQLWRITER_PURGED"

// TestAPurge deletes an old run with many documents, and as many other rows as a tenth of them. The first go beside
// drains, a tick of the recovery timer for each. With SQLWRITER_PURGED it bounds by what a tick slows a drain. A run of
// the same age that is running keeps all it has.
func TestAPurge(t *testing.T) {
	if testing.Short() {
		t.Skip("it measures")
	}
	rows, rounds, measured := 20_000, 2, false // docs/figures.md has what was measured
	if n, err := strconv.Atoi(os.Getenv(purgedVariable)); err == nil {
		rows, rounds, measured = n, 5, true
	}
	for name, open := range databases() {
		t.Run(name, func(t *testing.T) {
			p := &purged{
				beside: &beside{world: newWorld(t, open, inMemoryContainer), next: 10_001},
				took:   map[string][]time.Duration{},
			}
			if name == "sqlite" {
				p.execute("PRAGMA synchronous = FULL") // as the product has it
			}
			p.db.keepAudits(t, 365)
			p.old("running", 500)
			p.old("ended", rows)
			p.end("ended")
			all := p.counts()

			p.drain()
			var costs []float64
			for round := range rounds {
				took := map[bool]time.Duration{}
				for _, beside := range []bool{round%2 == 0, round%2 == 1} {
					if !beside {
						took[false] = p.drain()
						continue
					}
					stop := p.purgeBeside()
					took[true] = p.drain()
					stop()
				}
				if p.over { // beside nothing
					break
				}
				costs = append(costs, (took[true] - took[false]).Seconds())
			}
			for _, part := range retention.Parts() {
				for p.chunk(t.Context(), part, string(part)) > 0 { //nolint:revive // until nothing is left
				}
			}
			left := p.counts()
			require.Equal(t, map[string]int{"batch_item": 500, "error_detail": 50, "audit_log": 0}, left,
				"of the running run, and what it failed of")
			if !measured && len(costs) == 0 {
				t.Log(
					"nothing was measured: other work made the first drain so slow that the old run was over before it")
				return
			}
			require.NotEmpty(t, costs, "the old run was over in the first round")
			slices.Sort(costs)
			median := (costs[(len(costs)-1)/2] + costs[len(costs)/2]) / 2
			lost := median / ticks.Seconds()
			t.Logf(
				"%s: %v rows; %d rounds of %d documents, a tick costs a drain %.2f s, median, from %.2f to %.2f: %.2f %% of the time between two ticks",
				name, all, len(costs), drained, median, costs[0], costs[len(costs)-1], 100*lost)
			for _, of := range slices.Sorted(maps.Keys(p.took)) {
				took := p.took[of]
				slices.Sort(took)
				t.Logf("%s: %s: %d chunks, median %.1f ms, p99 %.1f, worst %.1f", name, of, len(took),
					millis(took[len(took)/2]), millis(took[len(took)*99/100]), millis(took[len(took)-1]))
			}
			if measured { // a time proves nothing on a machine that does other work
				require.Less(t, lost, 0.05)
			}
		})
	}
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// purged is a world with old rows.
type purged struct {
	*beside

	// took are how long chunks took, by what they were. over says that none was left beside a drain.
	took map[string][]time.Duration
	over bool
}

// execute executes a statement of a server, or of the engine that it is replaced for.
func (p *purged) execute(text string) {
	p.Helper()
	s := p.db.statements
	_, err := s.db.ExecContext(p.Context(), s.tables.Replace(text))
	require.NoError(p, err, text)
}

// counts counts the rows of old runs, documents for the whole.
func (p *purged) counts() map[string]int {
	p.Helper()
	s, n := p.db.statements, map[string]int{}
	for table, where := range map[string]string{
		"batch_item": "run_id IN ('running', 'ended')", "error_detail": "run_id IN ('running', 'ended')",
		"audit_log": "run_id IN ('running', 'ended')",
	} {
		var rows int
		require.NoError(p,
			s.db.QueryRowContext(p.Context(),
				s.tables.Replace("SELECT COUNT(*) FROM sqlwriter."+table+" WHERE "+where)).Scan(&rows))
		n[table] = rows
	}
	return n
}

// old makes a running run that began long ago, with documents in batches, a worker for each, and error details and
// entries of the audit log for a tenth of the documents.
func (p *purged) old(id string, documents int) {
	p.Helper()
	ctx := p.Context()
	require.NoError(p,
		p.db.runs.StartRun(ctx,
			run.Run{ID: id, SysName: sysName, Kind: run.Drain, RequestedBy: "ann", Why: "w"}, p.entry()))
	row, ok, err := p.db.runs.ClaimRun(ctx, id, 0, -1, run.Worker{ID: "manager of " + id}, time.Hour)
	require.NoError(p, err)
	require.True(p, ok)
	for from := 0; from < documents; from += 500 {
		chunk := run.Chunk{First: 1 + from/100}
		for batch := from; batch < min(from+500, documents); batch += 100 {
			list := make([]string, min(100, documents-batch))
			for i := range list {
				list[i] = fmt.Sprintf("2025-12-17 10:30:15.123456-06:00-0001-%d of %s", batch+i, id)
			}
			chunk.Batches = append(chunk.Batches, list)
		}
		require.NoError(p, p.db.runs.AddChunk(ctx, run.RunLease{Run: id, Owner: row.Owner, Epoch: row.Epoch}, chunk))
	}
	tenth := fmt.Sprintf(" FROM sqlwriter.batch_item AS i WHERE i.run_id = '%s' AND i.position < 10", id)
	p.execute(
		"INSERT INTO sqlwriter.worker (worker_id, kind, instance, status, run_id, batch_id, started_at, heartbeat_at) " +
			"SELECT b.batch_id, 'worker', 'here', 'COMPLETED', b.run_id, b.batch_id, '2025-01-01', '2025-01-01' FROM sqlwriter.batch AS b WHERE b.run_id = '" + id + "'")
	p.execute(
		"INSERT INTO sqlwriter.error_detail (sys_name, run_id, batch_id, document_id, error_code, error_message, error_type, retry_count, is_retryable, created_at) " +
			"SELECT '" + sysName +
			"', i.run_id, i.batch_id, i.document_id, '2628', 'a text that is as long as such texts usually are', 'MIGRATION', 1, 1, '2025-01-01'" + tenth)
	p.execute(
		"INSERT INTO sqlwriter.audit_log (done_at, sys_name, level, action, done_by, why, subject, run_id, batch_id) " +
			"SELECT '2025-01-01', '" + sysName +
			"', 'INFO', 'BATCH_DONE', 'worker', 'w', i.document_id, i.run_id, i.batch_id" + tenth)
	p.execute("UPDATE sqlwriter.audit_log SET done_at = '2025-01-01'")
	p.db.began(p, id, time.Now().Add(-200*day))
}

func (p *purged) entry() run.Audit {
	return run.Audit{Action: run.CodeRunStart, Level: run.LevelInfo, By: "ann", Why: "w"}
}

// end ends a run, long ago.
func (p *purged) end(id string) {
	p.Helper()
	ok, err := p.db.runs.CancelRun(p.Context(), id, p.entry())
	require.NoError(p, err)
	require.True(p, ok)
	ok, err = p.db.runs.CompleteRun(p.Context(), id, time.Hour, func(run.RunStatus, run.Stats) run.Audit {
		return p.entry()
	})
	require.NoError(p, err)
	require.True(p, ok)
	p.execute("UPDATE sqlwriter.run SET ended_at = '2025-01-02' WHERE run_id = '" + id + "'")
	p.execute("UPDATE sqlwriter.audit_log SET done_at = '2025-01-01'")
}

// chunk deletes a chunk, and notes how long that took if rows went.
func (p *purged) chunk(ctx context.Context, part retention.Part, of string) int {
	n, err := noted{p.db.retention, p, of}.Purge(ctx, part, retention.LeastDays, retention.MaxPurge)
	require.NoError(p, err)
	return n
}

// noted is a retention whose chunks are noted, by what they are.
type noted struct {
	retention.Store

	in *purged
	of string
}

func (s noted) Purge(ctx context.Context, part retention.Part, days, limit int) (int, error) {
	began := time.Now()
	n, err := s.Store.Purge(ctx, part, days, limit)
	if n > 0 {
		s.in.took[s.of] = append(s.in.took[s.of], time.Since(began))
	}
	return n, err
}

// purgeBeside is a tick's purge; stop waits for its end.
func (p *purged) purgeBeside() (stop func()) {
	over := make(chan error)
	go func() {
		n, err := retention.Tick(p.Context(), noted{p.db.retention, p, "beside a drain"}, retention.LeastDays, time.Now)
		p.over = n == 0
		over <- err
	}()
	return func() { require.NoError(p, <-over) }
}
