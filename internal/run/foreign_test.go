package run_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/run"
)

// Environments may share a database. A message of this environment that names a run of another hands off nothing.
func TestAManagerLeavesAnotherEnvironmentsRunAlone(t *testing.T) {
	t.Parallel()
	simulate(t, func(t *testing.T, w *world) {
		foreign := run.Run{ID: "theirs", SysName: "dev", Kind: run.Drain, RequestedBy: "them", Why: "x"}
		require.NoError(t,
			w.store.StartRun(t.Context(), foreign, run.Audit{Action: run.CodeRunStart, Level: run.LevelInfo}))
		before := w.run("theirs")
		m := run.Payload{Kind: run.RunMessage, SysName: sysName, RunID: "theirs"}.Outgoing(0)
		h, err := w.instance("m").manager.Receive(t.Context(),
			run.Incoming{Body: m.Body, ID: m.ID, Count: 1, EnqueuedAt: time.Now()})
		require.NoError(t, err, "it is done with")
		require.Equal(t, "dead_lettered", h.Did)
		require.True(t, h.Foreign, "and Health counts it")
		require.Contains(t, h.Reason, `expected a run of "web", found one of "dev"`)
		_, _, l := w.readEvidence()
		require.Equal(t, h.Reason, l.Reason)
		a := w.lastAudit()
		require.Equal(t, []string{run.CodeDeadLetter, run.LevelWarn, ""}, []string{a.Action, a.Level, a.Run})
		require.Equal(t, before, w.run("theirs"))
		require.Empty(t, w.batches.Messages())
	})
}

func TestMessagesOfAnotherEnvironmentAreDeadLettered(t *testing.T) {
	t.Parallel()
	simulate(t, func(t *testing.T, w *world) {
		i := w.instance("i")
		body := func(kind run.MessageKind, sysName string) run.Incoming {
			p := run.Payload{Kind: kind, SysName: sysName, RunID: "r"}
			if kind == run.BatchMessage {
				p.BatchID = batchID
			}
			m := p.Outgoing(0)
			return run.Incoming{Body: m.Body, ID: m.ID, Count: 1, EnqueuedAt: time.Now()}
		}
		for name, receive := range map[string]func(run.Incoming) (run.Handled, error){
			"runs": func(in run.Incoming) (run.Handled, error) {
				return i.manager.Receive(t.Context(), in)
			},
			"batches": func(in run.Incoming) (run.Handled, error) {
				return i.workers.Receive(t.Context(), in)
			},
			"dead letters of runs": func(in run.Incoming) (run.Handled, error) {
				return i.runDead.Receive(t.Context(), in)
			},
		} {
			kind := run.RunMessage
			if name == "batches" {
				kind = run.BatchMessage
			}
			for sys, foreign := range map[string]bool{"dev": true, sysName: false} {
				h, err := receive(body(kind, sys))
				require.NoError(t, err)
				require.Equal(t, []any{"dead_lettered", foreign}, []any{h.Did, h.Foreign}, "%s of %s", name, sys)
			}
		}
	})
}
