package reconcile_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/reconcile"
	"sqlwriter/internal/run"
)

// The table of kinds and this package name the same classes and passes.
func TestTheKindHasTheClassesAndPasses(t *testing.T) {
	t.Parallel()
	kind, there := run.Kinds().Find(run.Reconcile)
	require.True(t, there)
	var classes, outcomes []string
	for _, m := range reconcile.Meanings() {
		classes = append(classes, string(m.Class))
		require.Equal(t, m.Finding, slices.Contains(reconcile.FindingClasses(), m.Class), m.Class)
		require.True(t, m.Class.Outcome().Success(), "%s: a comparison that found something was completed", m.Class)
	}
	for _, o := range kind.Outcomes {
		outcomes = append(outcomes, string(o))
	}
	require.ElementsMatch(t, classes, outcomes)
	w := newWorld(t)
	for _, pass := range kind.Passes {
		_, err := w.reconciler().Step(t.Context(), w.begin(run.Filter{IDs: []string{"x"}}), pass, "")
		require.NoError(t, err, pass)
		w.end()
	}
	_, err := w.reconciler().Step(t.Context(), w.begin(run.Filter{}), "other", "")
	require.Equal(t, fault.Internal, fault.KindOf(err))
}

func TestAConsistentEnvironment(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.consistent(300)
	w.pass(3 * time.Hour)
	row := w.night(run.Filter{Mend: true})
	require.Equal(t, map[string]int{"consistent": 2 * 400}, counted(row), "400 lines of the ledger, and 300 documents with 400 lines")
	require.Equal(t, 800, row.Documents)
	require.Empty(t, w.open())
	require.Empty(t, w.mended)
	require.Zero(t, w.calls["Heads"]+w.calls["ReadMany"]+w.calls["Newest"], "nothing is suspect")
	row = w.night(run.Filter{})
	require.Equal(t, map[string]int{"consistent": 400}, counted(row), "no document changed")
}

// The process is killed before or after each call of a port, and goes on: the findings, the reports and what is queued are the same.
func TestAKillAtEveryCallChangesNothing(t *testing.T) {
	t.Parallel()
	play := func(kill int, after bool) (*world, run.Run) {
		w := newWorld(t)
		w.consistent(60)
		all := corruptions()
		for i, c := range all[:7] {
			c.plant(w, int64(3*i+1))
		}
		w.pass(2 * time.Hour)
		w.night(run.Filter{})
		for i, c := range all[7:] {
			c.plant(w, int64(3*(i+7)+1))
		}
		all[0].mend(w, 1)
		w.pass(2 * time.Hour)
		w.calls = map[string]int{}
		n := 0
		hook := func(string) error {
			if n++; n == kill {
				return killed()
			}
			return nil
		}
		if w.before = hook; after {
			w.before, w.after = nil, hook
		}
		row := w.night(run.Filter{Mend: true, Whole: true})
		w.calls["all"] = n
		return w, row
	}
	without, want := play(0, false)
	require.Greater(t, without.calls["all"], 80)
	step := 1
	if testing.Short() {
		step = 5
	}
	report := func(w *world) string {
		for name, r := range w.evidence.Reports() {
			if strings.HasSuffix(name, "night-2.txt") {
				_, text, _ := strings.Cut(string(r.Content), "\n") // the first line has the time of its end
				text, _, _ = strings.Cut(text, "Compared")
				return text
			}
		}
		return ""
	}
	for kill := 1; kill <= without.calls["all"]; kill += step {
		for _, after := range []bool{false, true} {
			w, row := play(kill, after)
			where := fmt.Sprintf("killed at call %d, after it: %v", kill, after)
			require.Equal(t, without.open(), w.open(), where)
			require.Equal(t, without.mended, w.mended, where)
			require.Equal(t, report(without), report(w), where)
			had, has := counted(want), counted(row)
			require.LessOrEqual(t, has["gone"], had["gone"])
			delete(had, "gone")
			delete(has, "gone")
			require.Equal(t, had, has, where)
		}
	}
	for _, f := range without.all(reconcile.Query{State: reconcile.Open}) {
		require.Equal(t, f.Mend != reconcile.ByPeople, f.QueuedBy != "", name(f.Key))
	}
}

// What needs no person is queued once: in no later night, until it was gone and came again.
func TestThreeNightsQueueNothingTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.consistent(60)
	w.night(run.Filter{Mend: true})
	for i, c := range corruptions() {
		c.plant(w, int64(3*i+1))
	}
	w.pass(2 * time.Hour)
	queued := w.night(run.Filter{}).ID
	require.Empty(t, w.mended, "a person's run mends only when asked")
	for range 3 {
		w.pass(22 * time.Hour)
		w.night(run.Filter{Mend: true})
		queued = "night-3"
		require.ElementsMatch(t, []string{queued + "-rewrite", queued + "-write"}, slices.Collect(maps.Keys(w.mended)))
	}
	older, newer := w.idOf(13), idOf(599, 13)+"b"
	require.Equal(t, mended{reconcile.WithRewrite, []string{w.idOf(4)}, "1 findings of night-3"}, w.mended[queued+"-rewrite"])
	require.Equal(t, mended{reconcile.WithWrite, slices.Sorted(slices.Values([]string{w.idOf(10), older, newer, w.idOf(16)})), "3 findings of night-3"}, w.mended[queued+"-write"])
	w.rewrite(w.mended[queued+"-rewrite"].documents...)
	w.reapply(w.mended[queued+"-write"].documents...)
	w.pass(time.Hour)
	w.night(run.Filter{Mend: true})
	for _, f := range w.all(reconcile.Query{State: reconcile.Open}) {
		require.Empty(t, f.QueuedBy, name(f.Key))
		require.Equal(t, reconcile.ByPeople, f.Mend)
	}
	require.Len(t, w.mended, 2)
	l, _ := w.sink.Line(4)
	l.Tracking = false
	w.sink.SetLine(4, l)
	w.pass(time.Hour)
	last := w.night(run.Filter{Mend: true}).ID
	require.Equal(t, []string{w.idOf(4)}, w.mended[last+"-rewrite"].documents, "it came again")
}

// At most 1,000 findings are queued in a night.
func TestANightQueuesAThousand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.consistent(1010)
	for line := int64(1); line <= 995; line++ {
		l, _ := w.sink.Line(line)
		l.Tracking = false
		w.sink.SetLine(line, l)
	}
	for line := int64(1001); line <= 1010; line++ {
		w.put(document(int(line%600), line, "CHANGED", stateOf(w.doc(w.idOf(line)).State)))
	}
	w.pass(time.Hour)
	first := w.night(run.Filter{Mend: true}).ID
	require.Len(t, w.mended[first+"-rewrite"].documents, 995)
	require.Len(t, w.mended[first+"-write"].documents, 5)
	w.pass(24 * time.Hour)
	second := w.night(run.Filter{Mend: true}).ID
	require.Len(t, w.mended[second+"-write"].documents, 5)
	require.Len(t, w.mended, 3)
}

// The process is killed after it marked what it queued. The repeated step queues nothing more under the same run.
func TestAStepThatIsRepeatedQueuesNoOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.consistent(1010)
	for line := int64(1); line <= 1010; line++ {
		l, _ := w.sink.Line(line)
		l.Tracking = false
		w.sink.SetLine(line, l)
	}
	w.after = func(call string) error {
		if call == "MarkQueued" && w.calls[call] == 1 {
			return killed()
		}
		return nil
	}
	row := w.night(run.Filter{Mend: true})
	require.Len(t, w.mended[row.ID+"-rewrite"].documents, 1000)
	require.Len(t, w.all(reconcile.Query{Unqueued: true}), 10)
}

// A try that failed keeps evidence too, and the document says so in its attempts, which no head has.
func TestEvidenceOfATryIsExplained(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.consistent(3)
	d := w.doc(w.idOf(1))
	require.NoError(t, w.evidence.Keep(t.Context(), commit.EvidenceFolder(d, 0)+"/metadata.json", fmt.Appendf(nil, `{"document_id":%q}`, d.ID)))
	w.record(d.ID, func(s *invoice.State) {
		s.Attempts = []invoice.Attempt{{At: s.CommittedAt, Kind: "document", Error: "x"}}
	})
	w.pass(2 * time.Hour)
	w.night(run.Filter{})
	require.Empty(t, w.open())
}

// An accepted finding stays accepted until a row of its line changes, the status included.
func TestAnAcceptedFindingOpensWhenItsRowChanges(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.consistent(12)
	w.keep(5)
	w.edit(4, "UPC_CD", "1")
	w.edit(5, "UPC_CD", "2")
	w.night(run.Filter{})
	require.Len(t, w.open(), 2)
	w.accept("edited")
	for range 2 {
		w.pass(24 * time.Hour)
		w.night(run.Filter{Mend: true})
		require.Empty(t, w.open())
		require.Len(t, w.inState(reconcile.Accepted), 2)
	}
	w.edit(4, invoice.StatusColumn, "CC-ENR")
	w.night(run.Filter{})
	require.Equal(t, []string{"edited 4 " + w.idOf(4)}, w.open())
	w.sink.SetLine(5, w.kept[5].line)
	w.night(run.Filter{})
	require.Empty(t, w.inState(reconcile.Accepted))
	require.Equal(t, []string{"edited 5 " + w.idOf(5)}, w.inState(reconcile.Gone))
}

// A run waits for an older one of its kind, and for the run that it follows.
func TestARunWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.consistent(3)
	older := w.begin(run.Filter{})
	younger := w.begin(run.Filter{})
	done, err := w.reconciler().Step(t.Context(), younger, "rows", `{"after":1}`)
	require.NoError(t, err)
	require.Equal(t, run.Stepped{Next: `{"after":1}`, Wait: 5 * time.Minute}, done)
	done, err = w.reconciler().Step(t.Context(), older, "rows", "")
	require.NoError(t, err)
	require.True(t, done.Done)
	w.end()
	w.end()
	require.NoError(t, w.store.StartRun(t.Context(), run.Run{ID: "first", SysName: sysName, Kind: run.Drain, Pattern: run.TwoPhase},
		run.Audit{Code: run.CodeRunStart, Level: run.LevelInfo, By: "ann", Why: "x", Run: "first"}))
	follower := w.begin(run.Filter{Run: "first"})
	done, err = w.reconciler().Step(t.Context(), follower, "findings", "")
	require.NoError(t, err)
	require.Equal(t, run.Stepped{Wait: 5 * time.Minute}, done)
}

// While the breaker is open nothing is compared.
func TestAStepAsksTheBreakerFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.flowOff = true
	_, err := w.reconciler().Step(t.Context(), run.Run{}, "rows", "")
	require.Equal(t, "breaker_open", fault.CodeOf(err))
	require.Equal(t, map[string]int{"Permit": 1}, w.calls)
}

// A comparison goes back three hours before the last one began, and no further. One that named documents is none.
func TestWhichDocumentsAreCompared(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.consistent(12)
	last := w.night(run.Filter{}).StartedAt
	change := func(line int64, at time.Time) {
		w.clock = at
		w.put(document(int(line%600), line, "CHANGED", stateOf(w.doc(w.idOf(line)).State)))
	}
	change(1, last.Add(-3*time.Hour-time.Second))
	change(2, last.Add(-3*time.Hour))
	change(4, last.Add(22*time.Hour))
	w.clock = last.Add(23 * time.Hour)
	w.night(run.Filter{IDs: []string{w.idOf(7)}})
	require.Empty(t, w.open())
	w.clock = last.Add(24 * time.Hour)
	w.night(run.Filter{})
	require.Equal(t, []string{"stale 2 " + w.idOf(2), "stale 4 " + w.idOf(4)}, w.open())
	w.pass(time.Hour)
	named := w.night(run.Filter{IDs: []string{w.idOf(1), "unknown", "unknown"}})
	require.Equal(t, 1, named.Counts["document_gone"])
	require.Len(t, w.open(), 3)
	w.pass(time.Hour)
	require.Equal(t, 3, w.night(run.Filter{Whole: true}).Counts["stale"])
}

// The text does not say more than was compared, nor that all findings are listed when a class is full.
func TestTheReportSaysWhatWasNotCompared(t *testing.T) {
	t.Parallel()
	r := reconcile.Report{Counts: map[string]int{"consistent": 5, "not_comparable": 3, "changing": 2, "impossible": 1}}
	require.Contains(t, r.Text(), "SQL equals Cosmos.\nNot compared: 3 not_comparable, 2 changing, 1 impossible.\n")
	full := "there may be more. When these are mended: sqlwriterctl run start reconcile --all\n"
	r.Findings = []reconcile.ReportedClass{{Count: reconcile.Count{Class: reconcile.Stale, Open: reconcile.MaxOpen - 1}}}
	require.NotContains(t, r.Text(), full)
	r.Findings[0].Open++
	require.Contains(t, r.Text(), full)
}

// A document whose retry was not due for an hour when a night looked at it, or had passed it, is found by the next one.
func TestARetryThatNobodyTakesIsFound(t *testing.T) {
	t.Parallel()
	const longest = 72 * time.Minute // the wait for the last retry
	for ago := 10 * time.Minute; ago < 4*time.Hour; ago += 10 * time.Minute {
		w := newWorld(t)
		w.consistent(2)
		w.pass(12 * time.Hour)
		w.night(run.Filter{})
		w.pass(24*time.Hour - ago)
		w.record(w.idOf(1), func(s *invoice.State) {
			*s = invoice.State{Status: invoice.RetryScheduled, RetryCount: 5, RetryAfter: w.now().Add(longest).Unix()}
		})
		w.pass(ago)
		w.night(run.Filter{})
		w.pass(24 * time.Hour)
		w.night(run.Filter{})
		require.Equal(t, []string{"pending_too_long 1 " + w.idOf(1)}, w.open(), ago)
	}
}

// A run that names documents looks at their findings, their lines and themselves, and at nothing else.
func TestARunThatNamesDocuments(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.consistent(12)
	for _, line := range []int64{4, 5, 7} {
		w.keep(line)
		w.edit(line, "UPC_CD", "1")
	}
	row := w.night(run.Filter{IDs: []string{w.idOf(4), w.idOf(8)}, Whole: true})
	require.Equal(t, []string{"edited 4 " + w.idOf(4)}, w.open())
	require.Equal(t, map[string]int{"edited": 1, "consistent": 3}, counted(row))
	require.Zero(t, w.calls["Scan"]+w.calls["Changed"]+w.calls["Episodes"]+w.calls["Locks"]+w.calls["Names"])
	w.night(run.Filter{})
	require.Len(t, w.open(), 3)
	for _, line := range []int64{4, 5, 7} {
		w.sink.SetLine(line, w.kept[line].line)
	}
	w.night(run.Filter{IDs: []string{w.idOf(5), w.idOf(8)}})
	require.Equal(t, []string{"edited 4 " + w.idOf(4), "edited 7 " + w.idOf(7)}, w.open())
}

// A continuation is lost: the pass begins again, and counts each document once. If it is lost each time, the run fails.
func TestALostContinuationBeginsThePassAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.consistent(450)
	w.put(document(1, 1, "CHANGED", stateOf(w.doc(w.idOf(1)).State)))
	w.pass(time.Hour)
	lost := 0
	w.before = func(call string) error {
		if call == "Changed" && w.calls[call]%4 == 0 && lost < 10 {
			lost++
			return fault.New(fault.Document, "test", "continuation", "it expired")
		}
		return nil
	}
	row := w.night(run.Filter{})
	require.Equal(t, 10, lost)
	require.Equal(t, map[string]int{"consistent": 600 + 599, "stale": 1}, counted(row))
	require.Equal(t, []string{"stale 1 " + w.idOf(1)}, w.open())

	row, at := w.begin(run.Filter{Whole: true}), ""
	w.before = func(call string) error {
		if call == "Changed" && strings.Contains(at, "continuation") {
			return fault.New(fault.Document, "test", "continuation", "it expired")
		}
		return nil
	}
	var err error
	for range 100 {
		var done run.Stepped
		if done, err = w.reconciler().Step(t.Context(), row, "documents", at); err != nil {
			break
		}
		at = done.Next
	}
	require.Equal(t, "continuation", fault.CodeOf(err))
}

// A document that changes while it is looked at is looked at again: it is no finding that it was due before it was committed.
func TestADocumentThatChangesIsLookedAtAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.consistent(3)
	id := w.put(document(1, 1, "WAITS", ""))
	w.pass(2 * time.Hour)
	w.before = func(call string) error {
		if call == "Lines" {
			w.before = nil
			w.offer(id)
		}
		return nil
	}
	row := w.night(run.Filter{})
	require.Empty(t, w.open())
	require.Zero(t, row.Counts["changing"])
	require.Positive(t, w.calls["ReadMany"])
}

// The same for a line: a person marks the document between the reads.
func TestALineWhoseDocumentChangesIsLookedAtAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.consistent(3)
	w.edit(1, "UPC_CD", "1")
	w.before = func(call string) error {
		if call == "Lines" && w.calls[call] == 2 {
			w.record(w.idOf(1), func(s *invoice.State) { s.Outcome = "manual" })
		}
		return nil
	}
	w.night(run.Filter{})
	require.Empty(t, w.open())
}

// A mistake of ours in one line must not keep the others from being compared.
func TestWhatIsImpossibleIsToldAndTheRestIsCompared(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.consistent(6)
	w.edit(1, "UPC_CD", "1")
	w.edit(5, "UPC_CD", "1")
	w.spoil = func(line *reconcile.Line) {
		if line.ID == 3 {
			line.Ledger = reconcile.Ledger{}
		}
	}
	row := w.night(run.Filter{})
	require.Equal(t, run.RunCompleted, row.Status)
	require.Len(t, w.open(), 2)
	require.Equal(t, 1, row.Counts["impossible"])
}

// What changes each time is counted and no finding, and a finding of it stays as it is.
func TestWhatChangesEachTimeIsCounted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.consistent(6)
	w.edit(1, "UPC_CD", "1")
	w.put(document(2, 2, "CHANGED", stateOf(w.doc(w.idOf(2)).State)))
	w.pass(time.Hour)
	w.night(run.Filter{})
	found := w.open()
	require.Len(t, found, 2)
	w.edit(4, "UPC_CD", "1")
	w.put(document(5, 5, "CHANGED", stateOf(w.doc(w.idOf(5)).State)))
	w.pass(time.Hour)
	compared := w.calls["Changed"]
	w.before = func(call string) error {
		if call == "Heads" {
			for _, line := range []int64{1, 2, 4} {
				w.touch(line)
			}
			if w.calls["Changed"] > compared {
				w.touch(5)
			}
		}
		return nil
	}
	row := w.night(run.Filter{})
	require.Equal(t, found, w.open())
	require.Equal(t, 3, row.Counts["changing"], "lines 1 and 4, and document 5; document 2 changed after the run began")
	require.Zero(t, row.Counts["gone"])
}

// While the flow does not run for an hour, nobody knows what has waited for too long.
func TestAFindingThatWaitsIsKeptWhileTheFlowIsNew(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.consistent(3)
	w.put(document(1, 1, "WAITS", ""))
	w.pass(2 * time.Hour)
	w.flowSince = w.clock.Add(-time.Minute)
	w.night(run.Filter{})
	require.Empty(t, w.open())
	w.flowSince = w.clock.Add(-2 * time.Hour)
	w.night(run.Filter{Whole: true})
	require.Len(t, w.open(), 1)
	w.flowSince = w.clock.Add(-time.Minute)
	w.night(run.Filter{})
	require.Len(t, w.open(), 1)
	w.offer(w.idOf(1))
	w.flowSince = w.clock.Add(-2 * time.Hour)
	w.night(run.Filter{})
	require.Empty(t, w.open())
}

// A document may name more lines than one request reads.
func TestADocumentOfManyLines(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var dup []int64
	for id := int64(2); id <= 2500; id++ {
		dup = append(dup, id)
	}
	w.addLines(append(dup, 1)...)
	id := w.put(document(1, 1, "ACME", "", dup...))
	w.offer(id)
	w.pass(time.Hour)
	w.put(document(1, 1, "CHANGED", stateOf(w.doc(id).State), dup...))
	w.pass(time.Hour)
	row := w.night(run.Filter{Mend: true})
	require.Equal(t, 2500, row.Counts["stale"])
	require.Equal(t, 2500, row.Counts["consistent"], "the rows are as the ledger says")
	require.Len(t, w.open(), 2500)
}

// Requests grow with the number of lines and documents, and so does nothing that is kept.
func TestRequestsGrowWithTheLines(t *testing.T) {
	t.Parallel()
	sizes := []int{5000, 20_000}
	if testing.Short() {
		sizes = []int{1000, 3000}
	}
	perThousand := map[int]float64{}
	for _, n := range sizes {
		w := newWorld(t)
		w.consistent(n)
		for line := int64(1); line <= int64(n); line += 50 {
			w.edit(line, "UPC_CD", "1")
		}
		w.calls = map[string]int{}
		row := w.night(run.Filter{Whole: true})
		require.Equal(t, n/50, row.Counts["edited"])
		calls := 0
		for _, n := range w.calls {
			calls += n
		}
		perThousand[n] = float64(calls) * 1000 / float64(row.Counts["consistent"])
		t.Logf("%d documents, %d comparisons: %d calls (%v)", n, row.Counts["consistent"], calls, w.calls)
	}
	require.LessOrEqual(t, perThousand[sizes[1]], perThousand[sizes[0]], "%v", perThousand)
}

// The rate of request units is kept after each request.
func TestThePaceOfRequestUnits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.options.RequestUnits = 200
	w.consistent(300)
	w.night(run.Filter{Whole: true})
	slow := w.waited
	require.Positive(t, slow)
	w.waited, w.options.RequestUnits = 0, 400
	w.night(run.Filter{Whole: true})
	require.InDelta(t, slow/2, w.waited, float64(slow)/20)
	w.waited, w.options.RequestUnits = 0, 0
	w.night(run.Filter{Whole: true})
	require.Zero(t, w.waited)
}

func TestTheReport(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.consistent(300)
	w.night(run.Filter{})
	reports := w.evidence.Reports()
	require.Equal(t, []string{"2025-12-18/reconcile-night-1.json", "2025-12-18/reconcile-night-1.txt"}, slices.Sorted(maps.Keys(reports)))
	require.Contains(t, string(reports["2025-12-18/reconcile-night-1.txt"].Content), "SQL equals Cosmos.\n\nCompared, by class:\n")
	for line := int64(1); line <= 150; line++ {
		w.edit(line, "UPC_CD", "secret")
	}
	w.put(document(200, 200, "CHANGED", stateOf(w.doc(w.idOf(200)).State)))
	w.pass(time.Hour)
	w.night(run.Filter{})
	var r reconcile.Report
	text := string(w.evidence.Reports()["2025-12-18/reconcile-night-2.json"].Content)
	require.NoError(t, json.Unmarshal([]byte(text), &r))
	require.Len(t, r.Findings, 2)
	require.Len(t, r.Findings[0].Listed, 100)
	require.Equal(t, []int{150, 1}, []int{r.Findings[0].Open, r.Findings[1].Open})
	require.Equal(t, 150, r.Counts["edited"])
	text += string(w.evidence.Reports()["2025-12-18/reconcile-night-2.txt"].Content)
	for _, says := range []string{
		"SQL equals Cosmos, except for 151 findings.", "edited: 150 open since 2025-12-18 18:00 UTC", "line 1, document " + w.idOf(1) + ": differs in IVCE_DTL.UPC_CD\n",
		"and 130 more: sqlwriterctl finding list --class edited", "  edited                   150",
	} {
		require.Contains(t, text, says)
	}
	require.NotContains(t, text, "secret")
	w.accept("stale")
	w.night(run.Filter{})
	require.Contains(t, string(w.evidence.Reports()["2025-12-18/reconcile-night-3.txt"].Content), "SQL equals Cosmos, except for 150 findings; 1 accepted.\n")
}
