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
	return strings.Replace(doc, `"sql_writer"`,
		`"notes":`+strings.Repeat("[", 63)+strings.Repeat("]", 63)+`,"sql_writer"`, 1)
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

// Find implements commit.Finder.
func (t *timer) Find(ctx context.Context, q commit.Query, at string) (commit.Page, error) {
	if t.down {
		return commit.Page{}, down("cosmos: find")
	}
	return t.w.docs.Find(ctx, q, at)
}

// tick is one tick five minutes after the last.
func (t *timer) tick() commit.RecoveredDocuments {
	t.w.clock = t.w.clock.Add(5 * time.Minute)
	found, _ := t.Run(t.w.t.Context())
	return found
}

func (w *world) missed() breaker.Missed { return w.breaker.View(w.t.Context()).Control.Missed }

// What the timer is the first to write was missed. It is told after three ticks in a row (ADR 0022), a document too
// deep at once.
func TestWhatTheTimerWritesFirstIsMissed(t *testing.T) {
	doc := result(1, 1, "ACME", "")
	for name, c := range map[string]struct {
		doc    string
		before func(w *world)
		want   int
		told   bool
	}{
		"nothing else happened": {doc, func(*world) {}, 1, false},
		"a document too deep":   {deeply(doc), func(*world) {}, 1, true},
		"it was written and not recorded": {doc, func(w *world) {
			w.faulty.onRecord = func(int) error { return down("cosmos: record") }
			_, err := w.offer(0, w.snapshots(idOf(w.t, doc))...)
			require.Error(w.t, err)
			w.faulty.onRecord = nil
		}, 0, false},
		"the old writer left it": {result(1, 1, "ACME", `{"status":"processing"}`), func(*world) {}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1)
			w.put(c.doc)
			c.before(w)
			w.clock = w.clock.Add(6 * time.Minute)
			require.Equal(t, c.want, w.timer().tick().Missed)
			require.Equal(t, "committed", w.status(idOf(t, doc)), "it is committed in any case")
			require.Equal(t, c.want, w.missed().Documents)
			require.Equal(t, c.told, w.missed().Holds())
			require.Equal(t, c.told, strings.Contains(w.log.String(), `"event":"feed_missed"`))
		})
	}
}

// The document at which the feed stops is named as long as it is too deep, or cannot be read.
func TestTheDocumentAtWhichTheFeedStopsIsNamed(t *testing.T) {
	w := newWorld(t, 1, 2, 3)
	timer := w.timer()
	deep := deeply(result(2, 2, "deep", ""))
	put := w.clock.Unix()
	w.put(result(1, 1, "ACME", ""), deep)
	w.clock = w.clock.Add(5 * time.Minute)
	w.put(result(3, 3, "ACME", ""))
	w.clock = w.clock.Add(time.Second)
	require.Equal(t, 2, timer.tick().Missed)
	require.Equal(t, breaker.Missed{
		Documents: 2, Ticks: 1, Oldest: time.Unix(put, 0).UTC(), At: w.clock, Sample: idOf(t, deep),
		Code: invoice.CodeTooDeep,
	}, w.missed())
	require.Equal(t, "committed", w.status(idOf(t, deep)), "it is no failure")
	require.Contains(t, w.log.String(), `"document":"`+idOf(t, deep)+`","kind":"document","code":"document.too_deep"`)

	require.Equal(t, 1, timer.tick().Missed)
	require.Equal(t, []any{1, idOf(t, deep)}, []any{w.missed().Documents, w.missed().Sample},
		"it is why the third waited, too")
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

// Three ticks in a row are told. A tick that failed knows nothing, and one that found nothing ends it.
func TestWhatThreeTicksMissIsTold(t *testing.T) {
	w := newWorld(t, 1, 2, 3, 4)
	timer := w.timer()
	miss := func(n int) {
		w.put(result(n, int64(n), "ACME", ""))
		w.clock = w.clock.Add(6 * time.Minute)
		require.Equal(t, 1, timer.tick().Missed)
	}
	told := func() int { return strings.Count(w.log.String(), `"event":"feed_missed"`) }
	miss(1)
	miss(2)
	require.Zero(t, told())
	timer.down = true
	timer.tick()
	timer.down = false
	miss(3)
	require.Equal(t, 1, told())
	require.True(t, w.missed().Holds())
	timer.tick()
	require.Zero(t, w.missed())
	miss(4)
	require.Equal(t, 1, told())
	w.put(deeply(result(3, 3, "deep", `{"status":"committed"}`)))
	w.clock = w.clock.Add(10 * time.Minute)
	timer.tick()
	require.Zero(t, w.missed(), "no trigger has to bring what is committed")
}
