package commit_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

func lost() error { return fault.New(fault.Contention, "sql: apply", "1222", "lock timeout") }

// A stale batch was written over committed content, and the repair loses every race. That is logged and counted as
// left.
func TestAHealingThatLosesARaceIsSaid(t *testing.T) {
	w := newWorld(t, 1)
	old := w.put(result(0, 1, "one", ""))
	w.run(w.put(result(0, 1, "two", ""))...)
	n0 := w.faulty.writes
	w.faulty.onApply = func(n int) error {
		if n > n0+1 {
			return lost()
		}
		return nil
	}
	rep, err := w.offer(0, old...)
	w.faulty.onApply = nil
	require.NoError(t, err)
	require.Equal(t, map[invoice.Outcome]int{"left": 1}, rep.Outcomes)
	require.Contains(t, w.log.String(), "left to the recovery timer")
}

// The same when the batch is offered again.
func TestAHealingOfferedAgainThatLosesARaceIsSaid(t *testing.T) {
	w := newWorld(t, 1)
	old := w.put(result(0, 1, "one", ""))
	w.run(w.put(result(0, 1, "two", ""))...)
	w.faulty.onRecord = func(int) error { return down("cosmos") }
	_, err := w.offer(0, old...)
	require.Error(t, err)
	w.faulty.onRecord = nil
	w.faulty.onApply = func(int) error { return lost() }
	rep, err := w.offer(1, old...)
	w.faulty.onApply = nil
	require.NoError(t, err)
	require.Equal(t, map[invoice.Outcome]int{"left": 1}, rep.Outcomes)
}

// A is written. Before the patch another instance writes and commits B, and then A is stored again.
func TestContentThatIsPutAgainAfterAnotherIsWrittenAgain(t *testing.T) {
	w := newWorld(t, 1)
	batch := w.put(result(0, 1, "A", ""))
	other := commit.NewCommit(w.docs, w.sink,
		commit.Options{SysName: "web", Now: func() time.Time { return w.clock }, Log: zerolog.Nop()})
	w.faulty.onRecord = once(func() {
		w.clock = w.clock.Add(time.Second)
		_, err := other.Run(t.Context(), commit.Delivery{Documents: w.put(result(0, 1, "B", "")), Received: w.clock})
		require.NoError(t, err)
		w.clock = w.clock.Add(time.Second)
		w.put(result(0, 1, "A", ""))
	})
	rep := w.run(batch...)
	// The feed offers the current document.
	rep2 := w.run(w.snapshots(idOf(t, result(0, 1, "", "")))...)
	require.Equal(t, "committed", w.state(idOf(t, result(0, 1, "", "")))["status"])
	require.Equal(t, "A", w.value(1, invoice.Detail, "CLN_MFR_AI_NM"), "%v %v", rep.Outcomes, rep2.Outcomes)
}

// A document whose read is refused does not affect others (promise G6).
func TestOneDocumentsRefusedReadHoldsNobody(t *testing.T) {
	for _, e := range []error{refused("", "400"), fault.New(fault.Contention, "cosmos: read", "449", "x")} {
		w := newWorld(t, 1, 2)
		batch := w.put(result(0, 1, "one", ""), result(1, 2, "good", ""))
		docs := lagging{faulty: w.faulty, many: batch[1:], read: func() (json.RawMessage, error) { return nil, e }}
		c := commit.NewCommit(docs, w.faulty,
			commit.Options{SysName: "web", Now: func() time.Time { return w.clock }, Log: zerolog.Nop()})
		w.clock = w.clock.Add(time.Hour)
		_, err := c.Run(t.Context(), commit.Delivery{Documents: batch, Received: w.clock, RetryCount: 300})
		if err != nil {
			t.Errorf("whole batch blocked at RetryCount 300: %v", err)
		}
	}
}

// ADR 0004 also holds after a 412.
func TestAfterA412AStatusThatNobodyKnowsIsLeftAlone(t *testing.T) {
	w := newWorld(t, 1)
	doc := result(1, 1, "OLD", "")
	batch := w.put(doc)
	w.faulty.onRecord = once(func() { w.put(result(1, 1, "NEW", `{"status":"on_hold","retry_count":0}`)) })
	rep := w.run(batch...)
	require.Equal(t, "on_hold", w.state(idOf(t, doc))["status"], "%v", rep.Outcomes)
}

// The report names the kind even when the document has no room for it.
func TestTheShortestStateStillCountsTheFailuresKind(t *testing.T) {
	w := newWorld(t, 1)
	batch := w.put(result(1, 1, tooLong(), ""))
	w.faulty.onRecord = onlyFirst(refused(fault.TooLarge, "413"))
	rep := w.run(batch...)
	require.Equal(t, map[string]int{"document": 1}, rep.Kinds, w.log.String())
}
