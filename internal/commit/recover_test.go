package commit_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/test/inmem"
)

// tick runs the recovery timer of a new process.
func (w *world) tick() commit.RecoveredDocuments {
	w.t.Helper()
	found, err := commit.NewRecover(w.commit, w.docs).Run(w.t.Context())
	require.NoError(w.t, err)
	return found
}

// retryState is the state of a document that waits for another try.
func retryState(after time.Time, more string) string {
	return fmt.Sprintf(`{"status":"retry_scheduled","retry_count":1,"retry_after":%d%s}`, after.Unix(), more)
}

func TestTheTimerTakesWhatIsDueAndWhatWasLeftBehind(t *testing.T) {
	w := newWorld(t, 1, 2, 3, 4, 5, 6, 7, 8, 9)
	now := start()
	old := []string{
		result(1, 1, "orphan", ""),
		result(2, 2, "left by the old writer", `{"status":"processing"}`),
		result(3, 3, "due", retryState(now, "")),
		result(4, 4, "not due", retryState(now.Add(time.Second), "")),
		result(5, 5, "when nobody knows", `{"status":"retry_scheduled","retry_count":1,"retry_after":"soon"}`),
		result(6, 6, "done", `{"status":"committed"}`),
		result(7, 7, "put off", retryState(now, `,"last_error_kind":"contention"`)),
		result(8, 8, "postponed", retryState(now, `,"postponed":true`)),
		result(9, 9, "never offered", `{}`),
	}
	w.clock = start().Add(-10*time.Minute - time.Second)
	w.put(old...)
	w.clock = start().Add(-9 * time.Minute)
	young := result(10, 7, "the feed will bring it", "")
	w.put(young)
	w.clock = start()

	found := w.tick()
	require.Equal(t, map[invoice.Outcome]int{"applied": 6}, found.Outcomes)
	require.Equal(t, map[commit.Window]int{commit.PutOff: 1, commit.Orphans: 2, commit.Blamed: 3}, found.Found)
	require.Equal(t, 10*time.Minute+time.Second, found.Oldest)
	require.Empty(t, found.More)
	const committed = "committed"
	for i, want := range []string{
		committed, committed, committed, "retry_scheduled", committed, committed, committed, committed,
	} {
		require.Equal(t, want, w.status(idOf(t, old[i])), "document %d", i+1)
	}
	require.Empty(t, w.state(idOf(t, old[8])), "unchanged")
	require.Equal(t, "pending", w.status(idOf(t, young)))
	require.Equal(t, map[invoice.Outcome]int{}, w.tick().Outcomes, "then there is nothing to do")
}

func TestTheEvidenceOfWhatTheTimerGivesUpNamesTheTick(t *testing.T) {
	w := newWorld(t, 1)
	w.othersApply()
	w.put(result(1, 1, tooLong(), spent()))
	found, err := commit.NewRecover(w.commit, w.docs).RunAs(t.Context(), "invocation-7")
	require.NoError(t, err)
	require.Equal(t, map[invoice.Outcome]int{"failed": 1}, found.Outcomes)
	require.Equal(t, "invocation-7", w.evidenceFile("error.json")["invocation_id"])
}

// A document whose retries are spent waits for an hour. It is due at once when another is written a minute or more
// after its failure.
func TestAPostponedDocumentIsDueWhenOthersGetThrough(t *testing.T) {
	for name, c := range map[string]struct {
		applied time.Duration // after its last patch
		want    map[invoice.Outcome]int
	}{
		"before":                                 {-time.Minute, map[invoice.Outcome]int{}},
		"so shortly after that clocks may err":   {time.Minute, map[invoice.Outcome]int{}},
		"after":                                  {61 * time.Second, map[invoice.Outcome]int{"applied": 1}},
		"never, as far as the build of it knows": {0, map[invoice.Outcome]int{}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1)
			const own = `,"last_error_kind":"document"`
			counted := result(2, 1, "ACME", retryState(start().Add(time.Hour), own))
			put := func() {
				w.put(counted, result(1, 1, "ACME", retryState(start().Add(time.Hour), own+`,"postponed":true`)))
			}
			if c.applied > 0 {
				put()
			}
			if c.applied != 0 {
				w.clock = start().Add(c.applied - time.Minute)
				w.othersApply()
			}
			if c.applied <= 0 {
				w.clock = start()
				put()
			}
			w.clock = start().Add(15 * time.Minute)
			require.Equal(t, map[invoice.Outcome]int{"skipped": 1}, w.retry(idOf(t, counted)).Outcomes,
				"one that is not postponed keeps its time")
			require.Equal(t, c.want, w.tick().Outcomes)
		})
	}
}

func TestAnOrphanIsOlderThanTwiceWhatTheFeedHasYetToBring(t *testing.T) {
	w := newWorld(t, 1, 2)
	w.clock = start().Add(-20 * time.Minute)
	w.put(result(1, 1, "orphan", ""))
	batch := w.put(result(2, 2, "slow", ""))
	w.clock = start()
	w.run(batch...) // the feed is 20 minutes behind
	w.clock = w.clock.Add(10 * time.Minute)
	require.Zero(t, w.tick().Found[commit.Orphans], "30 minutes old: the feed may still bring it")
	w.clock = w.clock.Add(5*time.Minute + time.Second)
	require.Equal(t, 1, w.tick().Found[commit.Orphans], "a feed without a measurement for 15 minutes may have stopped")
}

func TestTheTimerNeverRegressesWhatATriggerWrote(t *testing.T) {
	w := newWorld(t, 1)
	doc := result(1, 1, "first", "")
	w.put(doc)
	w.clock = w.clock.Add(11 * time.Minute)
	backlog := &pages{of: map[commit.Window][][]string{commit.Orphans: {{idOf(t, doc)}}}}
	backlog.after = func() { // between the timer's read and its work a trigger commits a correction
		w.run(w.put(result(1, 1, "second", ""))...)
	}
	found, err := commit.NewRecover(w.commit, backlog).Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, map[invoice.Outcome]int{"skipped": 1}, found.Outcomes)
	require.Equal(t, "second", w.value(1, invoice.Detail, "CLN_MFR_AI_NM"))
	require.Equal(t, "committed", w.status(idOf(t, doc)))
}

func TestTheTimerStartsNothingBeforeItsDeadlineOrBehindTheBreaker(t *testing.T) {
	w := newWorld(t, 1)
	w.put(result(1, 1, "ACME", ""))
	w.clock = w.clock.Add(time.Hour)
	found, err := commit.NewRecover(w.commit, w.docs).Run(deadlineOnly{t.Context(), w.clock.Add(29 * time.Second)})
	require.NoError(t, err)
	require.Empty(t, found.Outcomes)
	require.Equal(t, commit.Windows(), found.More)

	require.NoError(t, w.breaker.Pause(t.Context(), "ann", "maintenance"))
	beats := w.faulty.beats
	found = w.tick()
	require.Empty(t, found.Outcomes)
	require.Contains(t, found.Flow, "paused by ann")
	require.Contains(t, found.Flow, "maintenance")
	require.Equal(t, []int{0, beats}, []int{w.faulty.writes, w.faulty.beats}, "SQL is not even asked")

	require.NoError(t, w.breaker.Resume(t.Context(), "ann", "done"))
	require.Equal(t, map[invoice.Outcome]int{"applied": 1}, w.tick().Outcomes)
	require.Equal(t, beats+2, w.faulty.beats, "a heartbeat comes first, and another before the success is recorded")
}

// An outage without traffic is found within a tick, and no document is read.
func TestATickFindsAnOutageByItself(t *testing.T) {
	w := newWorld(t, 1)
	w.put(result(1, 1, "ACME", ""))
	w.clock = w.clock.Add(time.Hour)
	w.away(true)
	begin := w.clock
	_, err := commit.NewRecover(w.commit, w.docs).Run(t.Context())
	require.True(t, fault.IsDependency(err))
	require.True(t, w.opened())
	require.LessOrEqual(t, w.clock.Sub(begin), time.Minute)
	require.Equal(t, []int{0, 0}, []int{w.faulty.reads, w.faulty.writes})
}

// A window that cannot be read does not stop the others, and is reported.
func TestAWindowThatCannotBeReadLosesNothingOfTheOthers(t *testing.T) {
	for _, bad := range commit.Windows() {
		w := newWorld(t, 1, 2, 3, 4)
		backlog := &pages{of: map[commit.Window][][]string{}, down: bad}
		for i, window := range commit.Windows() {
			doc := result(i, int64(i+1), "ACME", retryState(start(), ""))
			w.put(doc)
			backlog.of[window] = [][]string{{idOf(t, doc)}}
		}
		found, err := commit.NewRecover(w.commit, backlog).Run(t.Context())
		require.True(t, fault.IsDependency(err))
		require.Equal(t, map[invoice.Outcome]int{"applied": 2}, found.Outcomes, bad)
	}
}

// One page that fails with a dependency's error does not stop its window; two in a row do.
func TestTheTimerGoesOnAfterOneFailedPageAndStopsAfterTwo(t *testing.T) {
	for name, c := range map[string]struct {
		bad  []int // the reads that fail, from 1
		want map[invoice.Outcome]int
	}{
		"one":          {[]int{1}, map[invoice.Outcome]int{"waiting": 1, "applied": 3}},
		"two in a row": {[]int{1, 2}, map[invoice.Outcome]int{"waiting": 2}},
		"two apart":    {[]int{1, 3}, map[invoice.Outcome]int{"waiting": 2, "applied": 2}},
		"the last":     {[]int{4}, map[invoice.Outcome]int{"applied": 3, "waiting": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1, 2, 3, 4)
			backlog := &pages{of: map[commit.Window][][]string{}}
			for i := range 4 {
				doc := result(i, int64(i+1), "ACME", retryState(start(), ""))
				w.put(doc)
				backlog.of[commit.Blamed] = append(backlog.of[commit.Blamed], []string{idOf(t, doc)})
			}
			w.faulty.onRead = func(n int) error {
				if slices.Contains(c.bad, n) {
					return down("cosmos: read many")
				}
				return nil
			}
			found, err := commit.NewRecover(w.commit, backlog).Run(t.Context())
			require.True(t, fault.IsDependency(err), "the error is returned")
			require.Equal(t, c.want, found.Outcomes)
		})
	}
}

// deadlineOnly is a context with a deadline that never ends.
type deadlineOnly struct {
	context.Context //nolint:containedctx // it is the context
	at              time.Time
}

func (d deadlineOnly) Deadline() (time.Time, bool) { return d.at, true }

// pages is a Finder of fixed pages of ids; no page ever loses a document.
type pages struct {
	of map[commit.Window][][]string
	// down is a window that cannot be read. after runs once, after the first page.
	down  commit.Window
	after func()
	// refuse is the number of calls that refuse a continuation.
	refuse int
	// asked are the requested pages; begun is the query of each window's first page.
	asked []string
	begun map[commit.Window]commit.Query
}

func (p *pages) Find(_ context.Context, q commit.Query, at string) (commit.Page, error) {
	p.asked = append(p.asked, fmt.Sprintf("%s %s", q.Window, at))
	n := 0
	if at == "" {
		if p.begun == nil {
			p.begun = map[commit.Window]commit.Query{}
		}
		p.begun[q.Window] = q
	} else {
		_, err := fmt.Sscanf(at, "page %d", &n)
		if err != nil || n >= len(p.of[q.Window]) || p.refuse > 0 || !reflect.DeepEqual(q, p.begun[q.Window]) {
			p.refuse--
			return commit.Page{}, fault.New(fault.Document, "test", "continuation", "%q is none", at)
		}
	}
	if q.Window == p.down {
		return commit.Page{}, down("cosmos: find")
	}
	var found []commit.PendingDoc
	next := ""
	if n < len(p.of[q.Window]) {
		for _, id := range p.of[q.Window][n] {
			found = append(found, commit.PendingDoc{ID: id, TS: q.Times.Now})
		}
	}
	if n+1 < len(p.of[q.Window]) {
		next = fmt.Sprintf("page %d", n+1)
	}
	if p.after != nil {
		after := p.after
		p.after = nil
		after()
	}
	return inmem.PendingPage(found, next), nil
}
