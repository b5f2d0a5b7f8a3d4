package writer_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/inmem"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/writer"
)

// tick runs the recovery timer once.
func (w *world) tick() writer.Recovered {
	w.t.Helper()
	found, err := writer.NewRecover(w.commit, w.docs).Run(w.t.Context())
	require.NoError(w.t, err)
	return found
}

func TestTheTimerTakesWhatIsDueAndWhatWasLeftBehind(t *testing.T) {
	w := newWorld(t, 1, 2, 3, 4, 5, 6, 7)
	now := start().Unix()
	old := []string{
		result(1, 1, "orphan", ""),
		result(2, 2, "left by the old writer", `{"status":"processing"}`),
		result(3, 3, "due", fmt.Sprintf(`{"status":"retry_scheduled","retry_count":1,"retry_after":%d}`, now)),
		result(4, 4, "not due", fmt.Sprintf(`{"status":"retry_scheduled","retry_count":1,"retry_after":%d}`, now+601)),
		result(5, 5, "when nobody knows", `{"status":"retry_scheduled","retry_count":1,"retry_after":"soon"}`),
		result(6, 6, "done", `{"status":"committed"}`),
	}
	w.clock = start().Add(-10*time.Minute - time.Second)
	w.put(old...)
	w.clock = start().Add(-9 * time.Minute)
	young := result(7, 7, "the feed will bring it", "")
	w.put(young)
	w.clock = start()

	found := w.tick()
	require.Equal(t, map[string]int{"applied": 4}, found.Outcomes)
	require.Equal(t, []int{1, 1, 2, 2, 3}, []int{found.Orphans, found.Processing, found.Due, found.Pending, found.Scheduled})
	require.Equal(t, 10*time.Minute+time.Second, found.Oldest)
	for i, want := range []string{"committed", "committed", "committed", "retry_scheduled", "committed", "committed"} {
		require.Equal(t, want, w.state(idOf(t, old[i]))["status"], "document %d", i+1)
	}
	require.Equal(t, "pending", w.state(idOf(t, young))["status"])
	require.Equal(t, map[string]int{}, w.tick().Outcomes, "then there is nothing to do")
}

func TestTheEvidenceOfWhatTheTimerGivesUpNamesTheTick(t *testing.T) {
	w := newWorld(t, 1)
	w.contrast()
	w.put(result(1, 1, tooLong(), spent()))
	found, err := writer.NewRecover(w.commit, w.docs).RunAs(t.Context(), "invocation-7")
	require.NoError(t, err)
	require.Equal(t, map[string]int{"failed": 1}, found.Outcomes)
	require.Equal(t, "invocation-7", w.kept("error.json")["job_id"])
}

func TestAnOrphanIsOlderThanTwiceWhatTheFeedHasYetToBring(t *testing.T) {
	w := newWorld(t, 1, 2)
	w.clock = start().Add(-20 * time.Minute)
	orphan, slow := result(1, 1, "orphan", ""), result(2, 2, "slow", "")
	w.put(orphan)
	batch := w.put(slow)
	w.clock = start()
	w.run(batch...) // the feed is 20 minutes behind
	w.clock = w.clock.Add(10 * time.Minute)
	require.Equal(t, 0, w.tick().Orphans, "30 minutes old: the feed may still bring it")
	w.clock = w.clock.Add(5*time.Minute + time.Second)
	require.Equal(t, 1, w.tick().Orphans, "a feed of which nothing was heard for 15 minutes may stand still")
}

// An orphan is committed while the feed is kept busy: young documents come all the time.
func TestAnOrphanIsCommittedWhileTheFeedIsKeptBusy(t *testing.T) {
	w := newWorld(t, 1)
	orphan := result(1, 1, "orphan", "")
	w.put(orphan)
	for minute := range 12 {
		w.clock = w.clock.Add(time.Minute)
		w.contrast()
		if minute%5 == 4 {
			w.tick()
		}
		if minute < 9 {
			require.Equal(t, "pending", w.state(idOf(t, orphan))["status"], "minute %d", minute+1)
		}
	}
	w.clock = w.clock.Add(3 * time.Minute)
	w.tick()
	require.Equal(t, "committed", w.state(idOf(t, orphan))["status"])
}

func TestTheTimerNeverRegressesWhatATriggerWrote(t *testing.T) {
	w := newWorld(t, 1)
	doc := result(1, 1, "first", "")
	w.put(doc)
	w.clock = w.clock.Add(11 * time.Minute)
	changed := false
	backlog := backlogThat{w.docs, func() {
		if !changed { // between the timer's look and its work a trigger commits a correction
			changed = true
			w.run(w.put(result(1, 1, "second", ""))...)
		}
	}}
	found, err := writer.NewRecover(w.commit, backlog).Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, map[string]int{"skipped": 1}, found.Outcomes)
	require.Equal(t, "second", w.value(1, invoice.Detail, "CLN_MFR_AI_NM"))
	require.Equal(t, "committed", w.state(idOf(t, doc))["status"])
}

func TestTheTimerIsBoundedAndTakesTheOldestFirst(t *testing.T) {
	w := newWorld(t)
	var ids []string
	for n := range 30 {
		w.sink.AddLines(int64(n + 1))
		w.clock = start().Add(time.Duration(n) * 24 * time.Hour)
		doc := document(fmt.Sprintf("d-%02d", n), int64(n+1), "ACME", "")
		w.put(doc)
		ids = append(ids, idOf(t, doc))
	}
	w.clock = w.clock.Add(24 * time.Hour)
	r := writer.NewRecover(w.commit, w.docs)
	r.PerTick = 10
	for tick := range 3 {
		found, err := r.Run(t.Context())
		require.NoError(t, err)
		require.Equal(t, map[string]int{"applied": 10}, found.Outcomes)
		require.Equal(t, tick < 2, found.More)
		for n, id := range ids {
			want := "pending"
			if n < (tick+1)*10 {
				want = "committed"
			}
			require.Equal(t, want, w.state(id)["status"], "tick %d, document %d", tick, n)
		}
	}
}

func TestTheTimerStartsNothingBeforeItsDeadlineOrBehindTheGate(t *testing.T) {
	w := newWorld(t, 1)
	doc := result(1, 1, "ACME", "")
	w.put(doc)
	w.clock = w.clock.Add(time.Hour)

	ctx, cancel := context.WithDeadline(t.Context(), w.clock.Add(29*time.Second))
	defer cancel()
	if time.Now().After(w.clock) { // the deadline lies in the past of the real clock: the context has ended
		ctx = deadlineOnly{t.Context(), w.clock.Add(29 * time.Second)}
	}
	found, err := writer.NewRecover(w.commit, w.docs).Run(ctx)
	require.NoError(t, err)
	require.Equal(t, map[string]int{"waiting": 1}, found.Outcomes)

	require.NoError(t, w.gate.Pause(t.Context(), "ann", "maintenance"))
	found = w.tick()
	require.Equal(t, map[string]int{"waiting": 1}, found.Outcomes)
	require.Contains(t, found.Gate, "paused by ann: maintenance")
	require.Equal(t, 0, w.faulty.writes)

	require.NoError(t, w.gate.Resume(t.Context(), "ann"))
	require.Equal(t, map[string]int{"applied": 1}, w.tick().Outcomes)
}

func TestTheTimerSaysWhatTheBacklogCannot(t *testing.T) {
	w := newWorld(t, 1)
	w.put(result(1, 1, "ACME", ""))
	w.clock = w.clock.Add(time.Hour)
	_, err := writer.NewRecover(w.commit, brokenBacklog{}).Run(t.Context())
	require.True(t, fault.IsDependency(err))
	w.faulty.onRead = func(int) error { return down("cosmos: read many") }
	found, err := writer.NewRecover(w.commit, w.docs).Run(t.Context())
	require.True(t, fault.IsDependency(err))
	require.Equal(t, map[string]int{"waiting": 1}, found.Outcomes)
}

// deadlineOnly is a context that names a deadline and never ends.
type deadlineOnly struct {
	context.Context //nolint:containedctx // it is the context
	at              time.Time
}

func (d deadlineOnly) Deadline() (time.Time, bool) { return d.at, true }

// backlogThat does something after each page.
type backlogThat struct {
	*inmem.Documents
	after func()
}

func (b backlogThat) Waiting(ctx context.Context, sysName string, statuses []invoice.Status, from, to int64, page func([]writer.Waiting) (bool, error)) error {
	return b.Documents.Waiting(ctx, sysName, statuses, from, to, func(all []writer.Waiting) (bool, error) {
		more, err := page(all)
		b.after()
		return more, err
	})
}

type brokenBacklog struct{ writer.Backlog }

func (brokenBacklog) Waiting(context.Context, string, []invoice.Status, int64, int64, func([]writer.Waiting) (bool, error)) error {
	return down("cosmos: waiting")
}
