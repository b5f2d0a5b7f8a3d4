package run_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/run"
)

// hurry is a kind that only this test's table knows: it tries scheduled retries before their time.
const hurry run.Kind = "hurry"

func withHurry() run.KindTable {
	waiting := []invoice.Status{invoice.RetryScheduled}
	return append(run.Kinds(),
		run.KindRow{Kind: hurry, Meaning: "scheduled retries", Statuses: waiting, TakeOver: waiting})
}

// A new kind is one row of the table.
func TestAKindIsARowOfTheTable(t *testing.T) {
	t.Parallel()
	simulate(t, func(t *testing.T, w *world) {
		// at noon of the first day
		w.put(1, "a", `{"status":"retry_scheduled","retry_count":2,"retry_after":946728000}`)
		w.put(2, "b", `{"status":"pending","retry_count":0}`)
		w.kinds = withHurry()
		w.crew()
		w.start(run.Run{Kind: hurry}, run.Filter{})
		w.waitForEnd("run-1", time.Minute)
		w.addsUp("run-1", map[invoice.Outcome]int{invoice.OutcomeApplied: 1})
		require.Equal(t, invoice.Committed, w.state(docID(1)).Status)
		require.Equal(t, invoice.Pending, w.state(docID(2)).Status)
	})
}

// A newer build may have started a run of a kind that this one does not know. It must not do something else instead.
func TestARunOfAnUnknownKindFails(t *testing.T) {
	t.Parallel()
	simulate(t, func(t *testing.T, w *world) {
		w.fill(3)
		w.crew()
		w.start(run.Run{Kind: hurry}, run.Filter{})
		w.waitForEnd("run-1", time.Minute)
		require.Equal(t, run.RunFailed, w.run("run-1").Status)
		require.Contains(t, w.run("run-1").Error, `expected drain, replay, reindex or reapply, found "hurry"`)
		require.Equal(t, invoice.Pending, w.state(docID(1)).Status)
	})
}
