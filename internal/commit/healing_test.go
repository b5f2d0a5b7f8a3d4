package commit_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

func lost() error { return fault.New(fault.Contention, "sql: apply", "1222", "lock timeout") }

// A stale batch is written over the committed content of the same second, and what repairs that fails. The host offers
// the batch again, and "committed" does not stop it: no other job reads a committed document. One that loses every race
// is told.
func TestAHealing(t *testing.T) {
	type breaks func(w *world, writes int)
	record := func(w *world, _ int) { w.faulty.onRecord = func(int) error { return down("cosmos") } }
	read := func(w *world, _ int) { w.faulty.onRead = func(int) error { return down("cosmos") } }
	away := func(w *world, writes int) {
		w.faulty.onApply = func(n int) error {
			if n > writes+1 {
				w.away(true)
				return down("sql")
			}
			return nil
		}
	}
	once := func(w *world, writes int) { // while heartbeats succeed
		w.faulty.onApply = func(n int) error {
			if n == writes+2 {
				return down("sql: apply")
			}
			return nil
		}
	}
	races := func(first int) breaks {
		return func(w *world, writes int) {
			w.faulty.onApply = func(n int) error {
				if n > writes+first {
					return lost()
				}
				return nil
			}
		}
	}
	nothing := func(*world, int) {}
	for name, c := range map[string]struct {
		offers []breaks
		left   bool
	}{
		"its record fails":                     {[]breaks{record, nothing}, false},
		"it cannot be read again":              {[]breaks{read, nothing}, false},
		"SQL goes away":                        {[]breaks{away, nothing}, false},
		"its request fails once":               {[]breaks{once, nothing}, false},
		"it loses every race":                  {[]breaks{races(1)}, true},
		"it loses every race when it is again": {[]breaks{record, races(0)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1)
			old := w.put(result(0, 1, "one", ""))
			w.run(w.put(result(0, 1, "two", ""))...) // the same second
			var report commit.Report
			for retry, breaks := range c.offers {
				breaks(w, w.faulty.writes)
				var err error
				if report, err = w.offer(retry, old...); err != nil {
					require.Less(t, retry+1, len(c.offers))
					require.Equal(t, "one", w.value(1, invoice.Detail, "CLN_MFR_AI_NM"), "the harm is done")
				}
				w.faulty.onRecord, w.faulty.onRead = nil, nil
				w.away(false)
				w.clock = w.clock.Add(2 * time.Minute) // a probe is due
			}
			if c.left {
				require.Equal(t, map[invoice.Outcome]int{"left": 1}, report.Outcomes)
				require.Contains(t, w.log.String(), "left to the recovery timer")
				return
			}
			require.Equal(t, "two", w.value(1, invoice.Detail, "CLN_MFR_AI_NM"), "SQL holds what the document says")
		})
	}
}

// A is written. Before the patch another instance writes and commits B, and then A is stored again.
func TestContentThatIsPutAgainAfterAnotherIsWrittenAgain(t *testing.T) {
	w := newWorld(t, 1)
	batch := w.put(result(0, 1, "A", ""))
	other := w.with(w.docs, w.sink, nil)
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
		c := w.with(docs, w.faulty, nil)
		w.clock = w.clock.Add(time.Hour)
		_, err := c.Run(t.Context(), commit.Delivery{Documents: batch, Received: w.clock, RetryCount: 300})
		if err != nil {
			t.Errorf("whole batch blocked at RetryCount 300: %v", err)
		}
	}
}

// The report names the kind even when the document has no room for it.
func TestTheShortestStateStillCountsTheFailuresKind(t *testing.T) {
	w := newWorld(t, 1)
	batch := w.put(result(1, 1, tooLong(), ""))
	w.faulty.onRecord = onlyFirst(refused(fault.TooLarge, "413"))
	rep := w.run(batch...)
	require.Equal(t, map[string]int{"document": 1}, rep.Kinds, w.log.String())
}
