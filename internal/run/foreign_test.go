package run_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/run"
)

// Environments may share a database: a message of ours that names a run of theirs hands nothing of it off.
func TestAManagerLeavesAnotherEnvironmentsRunAlone(t *testing.T) {
	t.Parallel()
	simulate(t, func(t *testing.T, w *world) {
		theirs := run.Run{ID: "theirs", SysName: "dev", Kind: run.Drain, Pattern: run.TwoPhase, RequestedBy: "them", Why: "x"}
		require.NoError(t, w.store.StartRun(t.Context(), theirs, run.Audit{Code: run.CodeRunStart, Level: run.LevelInfo}))
		before := w.run("theirs")
		m := run.Notice{Kind: run.RunMessage, SysName: sysName, RunID: "theirs"}.Message(0)
		h, err := w.instance("m").manager.Receive(t.Context(), run.Delivery{Body: m.Body, ID: m.ID, Count: 1, EnqueuedAt: time.Now()})
		require.NoError(t, err, "it is done with")
		require.Equal(t, "dead_lettered", h.Did)
		require.Contains(t, h.Reason, `expected a run of "web", found one of "dev"`)
		_, _, l := w.kept()
		require.Equal(t, h.Reason, l.Reason)
		a := w.lastAudit()
		require.Equal(t, []string{run.CodeDeadLetter, run.LevelWarn, ""}, []string{a.Code, a.Level, a.Run})
		require.Equal(t, before, w.run("theirs"))
		require.Empty(t, w.batches.Messages())
	})
}
