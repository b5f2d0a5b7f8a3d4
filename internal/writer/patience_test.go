package writer_test

import (
	"context"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"sqlwriter/internal/writer"
)

// The host offers a batch every 10 s. A probe that is due before it does so again is waited for, so that it is made on time.
func TestAProbeThatIsNearlyDueIsWaitedFor(t *testing.T) {
	w := newWorld(t)
	waited := time.Duration(0)
	gate := writer.NewGate(w.control, writer.GateOptions{
		Instance: "patient", Log: zerolog.Nop(), Now: func() time.Time { return w.clock },
		Wait: func(_ context.Context, d time.Duration) error {
			waited += d
			w.clock = w.clock.Add(d)
			return nil
		},
	})
	refused := func(context.Context) error { return down("sql: probe") }
	for range 5 {
		require.Error(t, gate.Guard(t.Context(), false, refused))
	}
	answered := func(context.Context) error { return nil }

	w.clock = w.clock.Add(49 * time.Second)
	require.True(t, writer.IsGate(gate.Guard(t.Context(), false, answered)))
	require.Zero(t, waited, "eleven seconds are too long")
	w.clock = w.clock.Add(2 * time.Second)
	require.NoError(t, gate.Guard(t.Context(), false, answered))
	require.Equal(t, 9*time.Second, waited)
	require.False(t, gate.Seen().State().Open())

	require.NoError(t, gate.Pause(t.Context(), "ann", "why"))
	require.True(t, writer.IsGate(gate.Guard(t.Context(), false, answered)))
	require.Equal(t, 9*time.Second, waited, "nobody knows when a pause ends")
}

// A batch that was offered again and again because the gate was open is not under suspicion: it is written at full size, as
// soon as the ramp allows.
func TestABatchThatWaitedForAnOutageIsNotCutSmaller(t *testing.T) {
	lines := make([]int64, 100)
	for i := range lines {
		lines[i] = int64(i + 1)
	}
	w := newWorld(t, lines...)
	var docs []string
	for i, line := range lines {
		docs = append(docs, result(i%60, line, "ACME", ""))
	}
	batch := w.put(docs...)
	w.faulty.onApply = func(int) error { return down("sql: apply") }
	offers := 0
	for ; offers < 40; offers++ {
		_, err := w.offer(offers, batch...)
		require.Error(t, err)
		w.clock = w.clock.Add(10 * time.Second)
	}
	w.faulty.onApply = nil
	before := w.faulty.writes
	for ; ; offers++ {
		if _, err := w.offer(offers, batch...); err == nil {
			break
		}
		w.clock = w.clock.Add(10 * time.Second)
	}
	require.Equal(t, 4, w.faulty.writes-before, "1, 5, 25 and the other 69")
}
