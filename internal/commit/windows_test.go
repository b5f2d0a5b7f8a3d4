package commit_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// backlogOf fills windows with pages of 20 documents whose lines do not exist, from line 1000 on.
func (w *world) backlogOf(sizes map[commit.Window]int) *pages {
	w.t.Helper()
	backlog, line := &pages{of: map[commit.Window][][]string{}}, int64(1000)
	for _, window := range commit.Windows() {
		for n := range sizes[window] {
			doc := result(1, line, "ACME", retryState(start(), ""))
			w.put(doc)
			line++
			if n%20 == 0 {
				backlog.of[window] = append(backlog.of[window], nil)
			}
			last := len(backlog.of[window]) - 1
			backlog.of[window][last] = append(backlog.of[window][last], idOf(w.t, doc))
		}
	}
	return backlog
}

// Half of a tick's failures is for documents that nobody blames, a quarter for each of their windows. The next window
// may use the rest.
func TestTheFailuresOfATickAreShared(t *testing.T) {
	w := newWorld(t)
	w.sink.AddLines(1)
	backlog := w.backlogOf(map[commit.Window]int{commit.PutOff: 20, commit.Orphans: 600, commit.Blamed: 600})
	r := commit.NewRecover(w.commit, backlog)
	found, err := r.Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, map[commit.Window]int{commit.PutOff: 20, commit.Orphans: 210, commit.Blamed: 230}, found.Found)
	require.Equal(t, []commit.Window{commit.Orphans, commit.Blamed}, found.More)
	require.LessOrEqual(t, 12*(found.SQLRequests+len(backlog.asked)), 6000, "an hour of such ticks")

	// The next tick continues where this one stopped, and wraps around.
	backlog.asked = nil
	w.clock = w.clock.Add(5 * time.Minute)
	_, err = r.Run(t.Context())
	require.NoError(t, err)
	require.Contains(t, backlog.asked, "orphans page 10")
	require.NotContains(t, backlog.asked, "orphans ")
	require.Contains(t, backlog.asked, "blamed page 11")
}

// A search that began in the middle wraps around: the same tick reads the pages before its position.
func TestAWindowIsLookedAtRoundToItsBeginning(t *testing.T) {
	w := newWorld(t)
	backlog := w.backlogOf(map[commit.Window]int{commit.Blamed: 500})
	r := commit.NewRecover(w.commit, backlog)
	found, err := r.Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, 460, found.Found[commit.Blamed], "all: the other windows were empty")
	backlog.asked = nil
	w.clock = w.clock.Add(time.Minute) // no document is due: every page is read and skipped
	found, err = r.Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, 500, found.Found[commit.Blamed], "each once")
	require.Contains(t, backlog.asked, "blamed page 24")
	require.Contains(t, backlog.asked, "blamed ")
}

// A search whose continuation is not valid any more begins again.
func TestAWindowWhosePlaceIsGoneBeginsAgain(t *testing.T) {
	w := newWorld(t)
	backlog := w.backlogOf(map[commit.Window]int{commit.Blamed: 500})
	r := commit.NewRecover(w.commit, backlog)
	_, err := r.Run(t.Context())
	require.NoError(t, err)
	backlog.of[commit.Blamed] = backlog.of[commit.Blamed][:3]
	found, err := r.Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, 60, found.Found[commit.Blamed])
}

// When every continuation is refused, a window begins again once and does not repeat until its time is over.
func TestAWindowThatRefusesEveryPlaceBeginsAgainOnce(t *testing.T) {
	w := newWorld(t)
	backlog := w.backlogOf(map[commit.Window]int{commit.Blamed: 60})
	r := commit.NewRecover(w.commit, backlog)
	for range 2 {
		backlog.asked, backlog.refuse = nil, 20
		_, err := r.Run(t.Context())
		require.True(t, fault.IsDependency(err), "it is said")
		asked := slices.DeleteFunc(backlog.asked, func(page string) bool { return !strings.HasPrefix(page, "blamed ") })
		require.Equal(t, []string{"blamed ", "blamed page 1"}, asked)
	}
}

// Successful documents are not bounded.
func TestATickBoundsOnlyWhatFails(t *testing.T) {
	w := newWorld(t)
	backlog := w.backlogOf(map[commit.Window]int{commit.Blamed: 1000})
	for line := range int64(1000) {
		w.sink.AddLines(1000 + line)
	}
	found, err := commit.NewRecover(w.commit, backlog).Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, map[invoice.Outcome]int{"applied": 1000}, found.Outcomes)
}

// Time is shared like failures: a window with slow documents leaves the others their share.
func TestTheTimeOfATickIsShared(t *testing.T) {
	w := newWorld(t)
	sizes := map[commit.Window]int{}
	for _, window := range commit.Windows() {
		sizes[window] = 600
	}
	backlog := w.backlogOf(sizes)
	for line := range int64(2400) {
		w.sink.AddLines(1000 + line)
	}
	w.faulty.onApply = func(int) error { w.clock = w.clock.Add(time.Second); return nil }
	begin := w.clock
	found, err := commit.NewRecover(w.commit, backlog).Run(t.Context())
	require.NoError(t, err)
	require.LessOrEqual(t, w.clock.Sub(begin), 4*time.Minute-30*time.Second+20*time.Second)
	for _, window := range commit.Windows() {
		require.Positive(t, found.Found[window], window)
	}
	require.Less(t, found.Found[commit.PutOff], 100, "a second each: they are sent one by one")
}

// Dividing also ends with the window's share.
func TestDividingEndsWithTheWindowsShare(t *testing.T) {
	w := newWorld(t)
	var bad []string
	for n := range int64(100) {
		w.sink.AddLines(n + 1)
		bad = append(bad, idOf(t, result(1, n+1, "", "")))
		w.put(result(1, n+1, "ACME", ""))
	}
	w.clock = w.clock.Add(time.Hour)
	refusal := failFor(fault.New(fault.Document, "sql: apply", "547", ""), bad...)
	w.use(sinkHook{w.faulty, func(items []commit.Item) error {
		w.clock = w.clock.Add(3 * time.Second)
		return refusal(items)
	}})
	begin := w.clock
	found := w.tick()
	require.Equal(t, map[invoice.Outcome]int{"retry_scheduled": 100}, found.Outcomes)
	require.Positive(t, found.Kinds["contention"], "those that were undecided")
	require.Less(t, w.clock.Sub(begin), 110*time.Second, "half of 3 min 30 s, as they are orphans")
}

// A document that cannot be patched stays due. It is taken once a tick, and does not stop its window.
func TestWhatCanNeverBePatchedDoesNotHoldItsWindow(t *testing.T) {
	w := newWorld(t)
	var ids []string
	for n := range 150 {
		w.sink.AddLines(int64(n + 1))
		doc := document(fmt.Sprintf("d-%03d", n), int64(n+1), "ACME", retryState(start(), `,"version":1`))
		w.put(doc)
		ids = append(ids, idOf(t, doc))
	}
	refuse := true
	w.faulty.onRecord = func(n int) error {
		if refuse && n <= 100 {
			return refused("", "400")
		}
		return nil
	}
	found := w.tick()
	require.Equal(t, map[invoice.Outcome]int{"left": 100, "applied": 50}, found.Outcomes)
	require.Equal(t, "committed", w.status(ids[149]))
}

// A document that was put off has its first request for itself, because it shared the earlier one with bad ones.
func TestThePutOffWindowIsSentOneByOne(t *testing.T) {
	w := newWorld(t, 1, 2, 3)
	for line := range int64(3) {
		w.put(result(int(line), line+1, "ACME", retryState(start(), `,"last_error_kind":"contention"`)))
	}
	found := w.tick()
	require.Equal(t, map[invoice.Outcome]int{"applied": 3}, found.Outcomes)
	require.Equal(t, 3, found.SQLRequests)
}

// cutOff is an instance that cannot reach SQL while the others can.
func (w *world) cutOff() *commit.Commit {
	w.t.Helper()
	cut := &faulty{docs: w.docs, sink: w.sink}
	cut.onApply = func(int) error { return down("sql: apply") }
	cut.onHeartbeat = func(int) error { w.othersApply(); return down("sql: heartbeat") }
	_, alone := w.instance("b", "v1", cut, nil)
	return alone
}

// An instance that alone cannot reach SQL leaves the feed's documents to the other instances' timers, at once and
// without a count.
func TestAnInstanceThatIsCutOffLeavesItsDocumentsToTheOthers(t *testing.T) {
	w := newWorld(t, 1, 2)
	alone := w.cutOff()
	docs := []string{result(1, 1, "A", ""), result(2, 2, "B", "")}
	report, err := alone.Run(t.Context(), commit.Delivery{Documents: w.put(docs...), Received: w.clock})
	require.NoError(t, err, "its feed continues")
	require.Equal(t, map[invoice.Outcome]int{"retry_scheduled": 2}, report.Outcomes)
	require.False(t, w.opened(), "the others continue")
	for _, d := range docs {
		s := w.state(idOf(t, d))
		require.Equal(t, []any{0.0, "cut_off", string(fault.Infrastructure)},
			[]any{s["retry_count"], s["last_error_code"], s["last_error_kind"]})
		require.LessOrEqual(t, s["retry_after"], float64(w.clock.Unix()))
		require.NotContains(t, s, "attempts")
	}
	require.Equal(t, map[invoice.Outcome]int{"applied": 2}, w.tick().Outcomes)
	// While it is cut off, its timer changes nothing.
	_, err = commit.NewRecover(alone, w.docs).Run(t.Context())
	require.True(t, fault.IsDependency(err))
}

// Also an instance that is cut off reads the documents that the host rewrote before it writes them back.
func TestAnInstanceThatIsCutOffWritesBackNothingThatTheHostReprinted(t *testing.T) {
	w := newWorld(t, 1, 2)
	alone := w.cutOff()
	const note = "2025-12-17T10:30:15.100Z"
	for n := range 2 { // it finds out with the first
		doc := result(n, int64(n+1), "A", `{"status":"pending","retry_count":0,"note":"`+note+`"}`)
		reprinted := bytes.Replace(w.put(doc)[0], []byte(note), []byte("2025-12-17T10:30:15.1Z"), 1)
		report, err := alone.Run(t.Context(),
			commit.Delivery{Documents: []json.RawMessage{reprinted}, Received: w.clock})
		require.NoError(t, err)
		require.Equal(t, map[invoice.Outcome]int{"retry_scheduled": 1}, report.Outcomes)
		require.Equal(t, note, w.state(idOf(t, doc))["note"])
	}
}

// A committed document whose line may have older content of its own is offered again, not left to the timer.
func TestAnInstanceThatIsCutOffKeepsWhatItMustHeal(t *testing.T) {
	w := newWorld(t, 1)
	old := w.put(result(0, 1, "one", ""))
	w.run(w.put(result(0, 1, "two", ""))...) // the same second
	alone := w.cutOff()
	for retry := range 2 {
		report, err := alone.Run(t.Context(), commit.Delivery{Documents: old, Received: w.clock, RetryCount: retry + 1})
		require.True(t, fault.IsDependency(err), "%v", report.Outcomes)
		require.Equal(t, map[invoice.Outcome]int{"waiting": 1}, report.Outcomes)
	}
}

// Documents that a lock put off wait no longer beside 10,000 bad ones that are due than without them.
func TestBadDocumentsDoNotHoldThoseThatALockPutOff(t *testing.T) {
	bads := 10_000
	if testing.Short() {
		bads = 1000
	}
	w := newWorld(t)
	for n := range bads {
		// there is no such line
		w.put(result(1, int64(100_000+n), "ACME", retryState(start(), `,"last_error_kind":"document"`)))
	}
	for n := range int64(50) {
		w.sink.AddLines(n + 1)
		w.put(result(1, n+1, "ACME", retryState(start(), `,"last_error_kind":"contention"`)))
	}
	r := commit.NewRecover(w.commit, w.docs)
	found, err := r.Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, 50, found.Outcomes["applied"], "%v", found)
	require.Equal(t, []commit.Window{commit.Blamed}, found.More)
}
