package commit_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/invoice"
)

// deeply gives a document 64 levels or more, in a member that the product does not read.
func deeply(doc string) string {
	return strings.Replace(doc, `"sql_writer"`, `"notes":`+strings.Repeat("[", 63)+strings.Repeat("]", 63)+`,"sql_writer"`, 1)
}

// timer is the recovery timer of one process.
type timer struct {
	w *world
	*commit.Recover
	down bool
}

func (w *world) timer() *timer {
	t := &timer{w: w}
	t.Recover = commit.NewRecover(w.commit, t)
	return t
}

// Page implements commit.Backlog.
func (t *timer) Page(ctx context.Context, q commit.WindowQuery, at string) ([]commit.PendingDoc, string, error) {
	if t.down {
		return nil, "", down("cosmos: page")
	}
	return t.w.docs.Page(ctx, q, at)
}

// PendingDocs implements commit.Backlog.
func (t *timer) PendingDocs(context.Context, string, []invoice.Status, int64, int64, func([]commit.PendingDoc) (bool, error)) error {
	panic("the timer does not ask for it")
}

// tick is one tick five minutes after the last.
func (t *timer) tick() commit.Recovered {
	t.w.clock = t.w.clock.Add(5 * time.Minute)
	found, _ := t.Run(t.w.t.Context())
	return found
}

func (w *world) missed() breaker.Missed { return w.breaker.View(w.t.Context()).Control.Missed }

// What waited for ten minutes is missed only if the feed had no excuse from then on (ADR 0022). Each case is what happens in a
// quarter of an hour with a document that is on no feed.
func TestWhatTheFeedMissedAndWhatItHasAnExcuseFor(t *testing.T) {
	doc := result(1, 1, "ACME", "")
	for name, c := range map[string]struct {
		doc    string
		during func(w *world, t *timer) *timer
		want   int
	}{
		"nothing else happens":             {doc, func(_ *world, t *timer) *timer { t.tick(); return t }, 1},
		"the process started later":        {doc, func(w *world, _ *timer) *timer { t := w.timer(); t.tick(); return t }, 0},
		"a document too deep all the same": {deeply(doc), func(w *world, _ *timer) *timer { t := w.timer(); t.tick(); return t }, 1},
		"a tick failed": {doc, func(_ *world, t *timer) *timer {
			t.down = true
			t.tick()
			t.down = false
			return t
		}, 0},
		"no tick for eleven minutes": {doc, func(w *world, t *timer) *timer { w.clock = w.clock.Add(6*time.Minute + time.Second); return t }, 0},
		"the flow was stopped": {doc, func(w *world, t *timer) *timer {
			require.NoError(w.t, w.breaker.Pause(w.t.Context(), "ann", "maintenance"))
			w.clock = w.clock.Add(time.Minute)
			require.NoError(w.t, w.breaker.Resume(w.t.Context(), "ann", "done"))
			t.tick()
			return t
		}, 0},
		"another range is six minutes behind": {doc, func(w *world, t *timer) *timer { w.behind(6 * time.Minute); t.tick(); return t }, 0},
		"another range is four minutes behind": {doc, func(w *world, t *timer) *timer {
			w.behind(4 * time.Minute)
			t.tick()
			return t
		}, 1},
		"a slow range among quick ones": {doc, func(w *world, t *timer) *timer {
			w.behind(time.Second)
			w.behind(6 * time.Minute) // at once: the lag itself is noted every five seconds
			w.behind(0)
			t.tick()
			return t
		}, 0},
		"it was written and not recorded": {doc, func(w *world, t *timer) *timer {
			w.faulty.onRecord = func(int) error { return down("cosmos: record") }
			_, err := w.offer(0, w.snapshots(idOf(w.t, doc))...)
			require.Error(w.t, err)
			w.faulty.onRecord = nil
			t.tick()
			return t
		}, 0},
		"the old writer left it": {
			result(1, 1, "ACME", `{"status":"processing"}`), func(_ *world, t *timer) *timer { t.tick(); return t }, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1)
			timer := w.timer()
			timer.tick()
			w.clock = w.clock.Add(time.Second)
			w.put(c.doc)
			timer = c.during(w, timer)
			for range 3 {
				if timer.tick(); w.status(idOf(t, doc)) == "committed" {
					break
				}
			}
			require.Equal(t, "committed", w.status(idOf(t, doc)), "it is committed in any case")
			require.Equal(t, c.want, w.missed().Documents)
			require.Equal(t, c.want, strings.Count(w.log.String(), `"event":"feed_missed"`))
		})
	}
}

// behind has the feed bring a document of so long ago, whose line is nobody's.
func (w *world) behind(lag time.Duration) {
	w.t.Helper()
	now := w.clock
	w.clock = now.Add(-lag)
	w.applied++
	docs := w.put(result(w.applied%60, int64(5000+w.applied), "slow", `{"status":"committed"}`))
	w.clock = now
	w.run(docs...)
}

// The document at which the feed stops is found once, and named until the feed misses nothing more.
func TestTheDocumentAtWhichTheFeedStopsIsNamed(t *testing.T) {
	w := newWorld(t, 1, 2, 3, 4)
	timer := w.timer()
	timer.tick()
	deep := deeply(result(2, 2, "deep", ""))
	w.clock = w.clock.Add(time.Minute)
	put := w.clock.Unix()
	w.put(result(1, 1, "ACME", ""), deep)
	w.clock = w.clock.Add(4 * time.Minute)
	w.put(result(3, 3, "ACME", ""))
	timer.tick()
	require.Zero(t, w.missed())
	require.Equal(t, 2, timer.tick().Missed)
	require.Equal(t, breaker.Missed{
		Documents: 2, Oldest: time.Unix(put, 0).UTC(), At: w.clock, Sample: idOf(t, deep), Code: invoice.CodeTooDeep,
	}, w.missed())
	require.Equal(t, "committed", w.status(idOf(t, deep)), "it is no failure")
	require.Contains(t, w.log.String(), `"document":"`+idOf(t, deep)+`","kind":"document","code":"document.too_deep"`)

	require.Equal(t, 1, timer.tick().Missed)
	require.Equal(t, []any{1, idOf(t, deep)}, []any{w.missed().Documents, w.missed().Sample}, "it is why the third waited, too")

	timer.down = true
	timer.tick()
	require.Equal(t, 1, w.missed().Documents, "a tick that failed knows nothing")
	timer.down = false
	timer.tick()
	require.Equal(t, 1, w.missed().Documents, "as long as it is too deep, the feed stands still")
	w.faulty.onRead = func(int) error { return down("cosmos: read") }
	timer.tick()
	require.Equal(t, 1, w.missed().Documents, "and until it is known")
	w.faulty.onRead = nil
	w.put(result(2, 2, "flat", ""))
	timer.tick()
	require.Zero(t, w.missed())
}

// The message ends with a tick that finds no orphan, and not with one that finds excused ones.
func TestWhatTheFeedMissedIsToldUntilATickFindsNothing(t *testing.T) {
	w := newWorld(t, 1, 2, 3)
	timer := w.timer()
	timer.tick()
	w.clock = w.clock.Add(time.Minute)
	w.put(result(1, 1, "ACME", ""))
	for range 3 {
		timer.tick()
	}
	require.Equal(t, 1, w.missed().Documents)
	w.put(result(2, 2, "ACME", ""))
	w.clock = w.clock.Add(6 * time.Minute)
	later := w.timer() // a restart
	require.Equal(t, map[commit.Window]int{commit.Orphans: 1}, later.tick().Found)
	require.Equal(t, 1, w.missed().Documents)
	later.tick()
	require.Zero(t, w.missed())
	w.put(deeply(result(3, 3, "deep", `{"status":"committed"}`)))
	w.clock = w.clock.Add(10 * time.Minute)
	later.tick()
	require.Zero(t, w.missed(), "no trigger has to bring what is committed")
}
