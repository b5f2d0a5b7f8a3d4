package reconcile_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/adopt"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/reconcile"
	"sqlwriter/test/inmem"
)

func TestAConsistentEnvironment(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.consistent(300)
	c := w.night()
	require.Equal(t, map[reconcile.Class]int{reconcile.Consistent: 2 * 400}, counted(c),
		"400 lines of the ledger, and 300 documents with 400 lines")
	require.Empty(t, w.found())
	require.Zero(t, w.calls["ReadMany"], "nothing is suspect")
	require.Equal(t, map[reconcile.Class]int{reconcile.Consistent: 400}, counted(w.night()), "no document changed")
}

// The process is killed before or after each call of a port, and another tick goes on: the findings, the counts, and
// what is mended are the same.
func TestAKillAtEveryCallChangesNothing(t *testing.T) {
	t.Parallel()
	play := func(kill int, after bool) (*world, reconcile.Comparison) {
		w := newWorld(t)
		w.consistent(60)
		all := corruptions()
		for i, c := range all[:4] {
			c.plant(w, int64(3*i+1))
		}
		w.night()
		for i, c := range all[4:] {
			c.plant(w, int64(3*(i+4)+1))
		}
		all[0].mend(w, 1)
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
		c := w.night()
		w.calls["all"] = n
		return w, c
	}
	without, want := play(0, false)
	require.Greater(t, without.calls["all"], 40)
	require.Len(t, without.mended, 2)
	for kill := 1; kill <= without.calls["all"]; kill++ {
		for _, after := range []bool{false, true} {
			w, c := play(kill, after)
			where := fmt.Sprintf("killed at call %d, after it: %v", kill, after)
			require.Equal(t, without.found(), w.found(), where)
			require.Equal(t, without.mended, w.mended, where)
			require.Equal(t, counted(want), counted(c), where)
		}
	}
}

// A finding that is found again keeps the time of its first sight. One that is mended and comes again begins anew.
func TestAFindingKeepsItsFirstSight(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.consistent(3)
	w.keep(1)
	w.edit(1, "UPC_CD", "1")
	require.Equal(t, 1, w.night().Counts[reconcile.NewEdits])
	first := w.all(reconcile.Query{})[0]
	w.edit(1, "UPC_CD", "2") // another edit is no other finding
	require.Zero(t, w.night().Counts[reconcile.NewEdits])
	again := w.all(reconcile.Query{})[0]
	require.Equal(t, first.FirstSeen, again.FirstSeen)
	require.True(t, again.LastSeen.After(first.LastSeen))
	w.back(1)
	w.night()
	require.Empty(t, w.found())
	w.edit(1, "UPC_CD", "1")
	require.Equal(t, 1, w.night().Counts[reconcile.NewEdits])
	require.True(t, w.all(reconcile.Query{})[0].FirstSeen.After(first.FirstSeen))
}

// Only a night mends, each once.
func TestANightMends(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.consistent(3)
	w.night()
	w.compare(true)
	w.night()
	require.Equal(t, []string{"2025-12-19", "2025-12-20"}, w.mended)
}

// A night writes a document whole or leaves it to people: one of its lines may be a person's, or nobody may know. A
// line that the ledger lacks is no obstacle.
func TestTheNightLeavesADocumentWithALineOfPeople(t *testing.T) {
	t.Parallel()
	const main, other = 1, 2
	for name, c := range map[string]struct {
		plant func(w *world)
		mends []string
	}{
		"nothing is a person's": {func(*world) {}, []string{"stale 1", "stale 2"}},
		"another document of the line failed": {func(w *world) {
			w.put(document(4, other, "REFUSED", `{"status":"failed","retry_count":5,"failed_at":"x"}`))
		}, []string{"stale 1", "stale 2"}},
		"another document of the line has no order": {func(w *world) {
			w.put(documentOf("no-time", other, "ANCIENT", `{"status":"committed"}`))
		}, []string{"stale 1", "stale 2"}},
		"the ledger lacks it": {func(w *world) { w.sink.DeleteEntry(other) }, []string{"not_in_ledger 2", "stale 1"}},
		"an edited line":      {func(w *world) { w.edit(other, "UPC_CD", "1") }, nil},
		"an edited line beside a lost tracking row": {func(w *world) {
			w.put(document(5, main, "ACME", stateOf(w.doc(idOf(5, main)).State), other)) // as it was written
			l, _ := w.sink.Line(main)
			l.Tracking = false
			w.sink.SetLine(main, l)
			w.edit(other, "UPC_CD", "1")
		}, nil},
		"a line of an earlier build": {func(w *world) {
			e, _ := w.sink.Entry(other)
			e.HashVersion--
			w.sink.SetEntry(other, e)
		}, nil},
		"an adopted line": {func(w *world) {
			e, _ := w.sink.Entry(other)
			e.Outcome, e.DetailHash, e.TrackingHash = inmem.OutcomeAdopted, "", ""
			w.sink.SetEntry(other, e)
		}, nil},
		"a line of which a person marked the document that failed": {func(w *world) {
			failed := w.put(document(4, other, "REFUSED", `{"status":"committed","outcome":"manual"}`))
			e, _ := w.sink.Entry(other)
			d := w.doc(failed)
			w.sink.SetEntry(other, inmem.Entry{
				Outcome: inmem.OutcomeFailed, Version: d.Version, DocumentID: failed, SysName: sysName,
				Write: e.Write + 1,
			})
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.addLines(main, other)
			id := w.put(document(5, main, "ACME", "", other))
			w.offer(id)
			w.pass(time.Hour)
			w.put(document(5, main, "CHANGED", stateOf(w.doc(id).State), other))
			c.plant(w)
			w.night()
			var mends []string
			for _, f := range w.all(reconcile.Query{Mends: true}) {
				require.Equal(t, id, f.Document)
				mends = append(mends, fmt.Sprint(f.Class, " ", f.Line))
			}
			require.Equal(t, c.mends, mends)
			require.NotEmpty(t, w.found(), "it stays a finding")
		})
	}
}

func TestATickAsksTheBreakerFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.flowOff = true
	w.toTheNight()
	require.NoError(t, w.tick())
	require.Equal(t, map[string]int{"Permit": 1}, w.calls)
	w.flowOff = false
	w.finish()
	require.Equal(t, "2025-12-19", w.last().ID, "the night was not missed")
}

// A comparison goes back an hour before the last one began, and no further. One that named documents is none.
func TestWhichDocumentsAreCompared(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.consistent(12)
	w.keep(12)
	w.edit(12, "UPC_CD", "1") // its second look is when the night has lasted a quarter of an hour
	last := w.night().BegunAt
	require.Greater(t, w.last().EndedAt.Sub(last), 10*time.Minute)
	w.sink.SetLine(12, w.kept[12].line)
	w.compare(false, w.idOf(12))
	change := func(line int64, at time.Time) {
		w.clock = at
		w.put(document(int(line%600), line, "CHANGED", stateOf(w.doc(w.idOf(line)).State)))
	}
	change(1, last.Add(-time.Hour-time.Second))
	change(2, last.Add(-time.Hour))
	change(4, last.Add(12*time.Hour))
	w.clock = last.Add(13 * time.Hour)
	w.compare(false, w.idOf(7))
	require.Empty(t, w.found())
	w.night()
	require.Equal(t, []string{"stale 2 " + w.idOf(2), "stale 4 " + w.idOf(4)}, w.found())
	w.compare(false, w.idOf(1), "unknown", "unknown")
	require.Len(t, w.found(), 3)
	require.Equal(t, 3, w.compare(true).Counts[reconcile.Stale])
}

// A comparison that names documents looks at their findings, their lines and themselves, and leaves the rest standing.
// So does one that is cut off.
func TestAComparisonOfNamedDocuments(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.consistent(12)
	w.night()
	for _, line := range []int64{4, 5, 7} {
		w.keep(line)
		w.edit(line, "UPC_CD", "1")
	}
	w.calls = map[string]int{}
	c := w.compare(false, w.idOf(4), w.idOf(8))
	require.Equal(t, []string{"edited 4 " + w.idOf(4)}, w.found())
	require.Equal(t,
		map[reconcile.Class]int{reconcile.Edited: 1, reconcile.NewEdits: 1, reconcile.Consistent: 3}, counted(c))
	require.Zero(t, w.calls["Scan"]+w.calls["Changed"])
	w.night()
	require.Len(t, w.found(), 3)
	for _, line := range []int64{4, 5, 7} {
		w.sink.SetLine(line, w.kept[line].line)
	}
	w.compare(false, w.idOf(5), w.idOf(8))
	require.Equal(t, []string{"edited 4 " + w.idOf(4), "edited 7 " + w.idOf(7)}, w.found())

	w.ask(true)
	require.NoError(t, w.tick())
	require.NoError(t, w.tick())
	require.Len(t, w.found(), 2, "its second look has not begun")
	w.finish()
	require.Empty(t, w.found())
}

// A line of a document may have another document's content: it is that one's finding, and not of a comparison that does
// not name it.
func TestALineOfAnotherDocument(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.consistent(2)
	newer := w.put(documentOf(idOf(599, 1)+"b", 1, "NEWER", ""))
	w.offer(newer)
	w.edit(1, "UPC_CD", "1")
	w.compare(false, w.idOf(1))
	require.Empty(t, w.found())
	w.compare(false, newer)
	require.Equal(t, []string{"edited 1 " + newer}, w.found())
}

// A continuation is lost: the pass begins again, and counts each document once. If it is lost each time, the comparison
// ends, and the next one is not kept from beginning.
func TestALostContinuationBeginsThePassAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.consistent(450)
	w.put(document(1, 1, "CHANGED", stateOf(w.doc(w.idOf(1)).State)))
	lost := 0
	w.before = func(call string) error {
		if call == "Changed" && w.calls[call]%4 == 0 && lost < 10 {
			lost++
			return fault.New(fault.Document, "test", "continuation", "it expired")
		}
		return nil
	}
	c := w.night()
	require.Equal(t, 10, lost)
	require.Equal(t, map[reconcile.Class]int{reconcile.Consistent: 600 + 599, reconcile.Stale: 1}, counted(c))
	require.Equal(t, []string{"stale 1 " + w.idOf(1)}, w.found())

	w.before = func(call string) error {
		if call == "Changed" {
			return fault.New(fault.Document, "test", "continuation", "it expired")
		}
		return nil
	}
	id := w.ask(true)
	w.finish()
	failed, _ := w.store.Comparison(id)
	require.True(t, failed.Ended)
	require.Contains(t, failed.Error, "it expired")
	require.Equal(t, c.ID, w.last().ID, "what failed compared nothing")
	w.before = nil
	require.Equal(t, 1, w.night().Counts[reconcile.Stale])
}

// What changed between the two looks is no finding yet. The next comparison looks again, and a finding of it stays.
func TestWhatChangesBetweenTheLooks(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]func(w *world, line int64){
		"the document": func(w *world, line int64) { w.touch(line) },
		"the row":      func(w *world, line int64) { w.edit(line, "UPC_CD", fmt.Sprint("x", line)) },
		"the ledger": func(w *world, line int64) {
			e, _ := w.sink.Entry(line)
			e.Write += 1000
			w.sink.SetEntry(line, e)
		},
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t)
			w.consistent(6)
			w.keep(1)
			w.edit(1, "UPC_CD", "1")
			w.edit(4, "UPC_CD", "1")
			w.ask(true)
			require.NoError(t, w.tick())
			require.Empty(t, w.found(), "a first look finds nothing")
			require.Len(t, w.all(reconcile.Query{Suspects: true}), 2)
			change(w, 4)
			w.finish()
			require.Equal(t, []string{"edited 1 " + w.idOf(1)}, w.found())
			require.Equal(t, 1, w.last().Counts[reconcile.Changing])
			w.edit(2, "UPC_CD", "1")
			w.ask(false)
			require.NoError(t, w.tick())
			change(w, 1)
			w.finish()
			require.Equal(t, []string{"edited 1 " + w.idOf(1), "edited 2 " + w.idOf(2), "edited 4 " + w.idOf(4)},
				w.found(), "what was found stays")
			w.back(1)
			w.compare(false)
			require.Equal(t, []string{"edited 2 " + w.idOf(2), "edited 4 " + w.idOf(4)}, w.found())
		})
	}
}

// A write is under way at the first look, and recorded before the second.
func TestAWriteUnderWayIsNoFinding(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.consistent(3)
	w.put(document(1, 1, "CHANGED", stateOf(w.doc(w.idOf(1)).State)))
	w.ask(true)
	require.NoError(t, w.tick())
	require.Len(t, w.all(reconcile.Query{Suspects: true}), 1)
	w.rewrite(w.idOf(1))
	w.finish()
	require.Empty(t, w.all(reconcile.Query{Suspects: true}))
	require.Equal(t, 4+4, w.last().Counts[reconcile.Consistent])
}

// What the second look is the first to see waits for another comparison, also when more findings come behind it.
func TestWhatTheSecondLookSeesFirstIsNoFinding(t *testing.T) {
	t.Parallel()
	const lines = 150
	w := newWorld(t)
	w.consistent(lines)
	for line := range int64(lines) {
		w.edit(line+1, "UPC_CD", "1")
	}
	w.ask(true)
	require.NoError(t, w.tick())
	w.sink.DeleteLine(1) // row_missing comes after edited
	w.finish()
	require.NotContains(t, w.found(), "row_missing 1 "+w.idOf(1))
	w.compare(true)
	require.Contains(t, w.found(), "row_missing 1 "+w.idOf(1))
}

// The quarter of an hour is the database's: an app whose clock is ahead looks no sooner.
func TestAClockThatIsAheadLooksNoSooner(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.consistent(3)
	w.edit(1, "UPC_CD", "1")
	w.ask(true)
	now := w.options.Now
	require.NoError(t, w.tick())
	w.options.Now = func() time.Time { return now().Add(30 * time.Minute) }
	require.NoError(t, w.tick())
	require.Empty(t, w.found())
	w.options.Now = func() time.Time { return now().Add(-30 * time.Minute) }
	w.pass(10 * time.Minute)
	require.NoError(t, w.tick())
	require.Equal(t, []string{"edited 1 " + w.idOf(1)}, w.found())
}

// A comparison that finds more than have room says so, and is not the last: what it compared is compared again.
func TestMoreFindingsThanHaveRoom(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.consistent(3)
	w.night()
	before := w.last()
	w.put(document(1, 1, "CHANGED", stateOf(w.doc(w.idOf(1)).State)))
	id := w.ask(false)
	require.NoError(t, w.tick())
	c, _, err := w.findings.Next(t.Context())
	require.NoError(t, err)
	c.Unkept(reconcile.Edited, 7) // people's allowed work, which may stay
	c.Unkept(reconcile.Stale, 2)
	require.NoError(t, w.findings.Save(t.Context(), c, nil, nil))
	w.finish()
	is, _ := w.store.Comparison(id)
	require.Equal(t, []int{7, 3, 2},
		[]int{is.Counts[reconcile.Edited], is.Counts[reconcile.Stale], is.Counts[reconcile.Unlisted]})
	require.Contains(t, is.Error, "2 findings are not listed: a class has 10000")
	require.Equal(t, before.ID, w.last().ID)
	require.Equal(t, []string{"stale 1 " + w.idOf(1)}, w.found())
}

// A step reads 100 documents at most, however many lines differ: else it may not end within a tick.
func TestAStepOverManyDifferencesReadsFewDocuments(t *testing.T) {
	t.Parallel()
	const lines = 450
	w := newWorld(t)
	w.consistent(lines)
	for line := range int64(lines) {
		w.edit(line+1, "UPC_CD", "1")
	}
	read, most := 0, 0
	w.before = func(call string) error {
		if call == "ReadMany" {
			read++
		}
		return nil
	}
	w.after = func(call string) error {
		if call == "Save" {
			most, read = max(most, read), 0
		}
		return nil
	}
	w.compare(true)
	require.Equal(t, 1, most)
	require.Len(t, w.found(), lines)
}

// A document that does not name the line any more, or is gone, promises nothing about it.
func TestAFindingOfALineThatIsNotNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.consistent(6)
	for _, line := range []int64{3, 6} {
		w.put(document(int(line), line, "CHANGED", stateOf(w.doc(w.idOf(line)).State), 1_000_000+line))
	}
	w.night()
	require.Len(t, w.found(), 4)
	w.put(document(3, 3, "CHANGED", stateOf(w.doc(w.idOf(3)).State)))
	w.docs.Delete(w.idOf(6))
	w.night()
	require.Equal(t, []string{"stale 3 " + w.idOf(3)},
		slices.DeleteFunc(w.found(), func(f string) bool { return f == "no_document 1000003 "+w.idOf(3) }))
}

// A mistake of ours in one line must not keep the others from being compared.
func TestWhatIsImpossibleIsToldAndTheRestIsCompared(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var log strings.Builder
	w.consistent(6)
	w.edit(1, "UPC_CD", "1")
	w.edit(5, "UPC_CD", "1")
	w.logTo(&log)
	w.spoil = func(line *reconcile.Line) {
		if line.ID == 3 {
			line.Ledger = reconcile.Ledger{}
		}
	}
	c := w.night()
	require.Len(t, w.found(), 2)
	require.Equal(t, 1, c.Counts[reconcile.Impossible])
	require.Contains(t, log.String(), `"event":"comparison_impossible"`)
	require.Contains(t, log.String(), `"event":"comparison_ended"`)
	require.Contains(t, log.String(), `"edited_new":2`, "how many people edited since the last one is told")
}

// What cannot be compared is counted by the version that wrote it, so that people learn what makes it comparable.
func TestLinesOfOtherVersionsAreCountedByVersion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.consistent(9)
	versions := map[int64]int{1: 7, 2: 7, 3: 8, 4: adopt.Unproven}
	for line, version := range versions {
		e, _ := w.sink.Entry(line)
		if e.HashVersion = version; version == adopt.Unproven {
			e.Outcome, e.DetailHash, e.TrackingHash = inmem.OutcomeAdopted, "", ""
		}
		w.sink.SetEntry(line, e)
	}
	first := w.night()
	require.Equal(t, map[int]int{7: 2, 8: 1}, first.Versions())
	second := w.compare(false)
	require.Equal(t, 4, second.Counts[reconcile.NotComparable], "adopted lines, too")
	require.Equal(t, first.Versions(), second.Versions(), "each comparison counts all of them")
	second.Position = ""
	require.Contains(t, second.Progress(), ", 12 lines and documents compared", "each line once")
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
	w.put(document(1, 1, "CHANGED", stateOf(w.doc(id).State), dup...))
	c := w.night()
	require.Equal(t, 2500, c.Counts[reconcile.Stale])
	require.Equal(t, 2500, c.Counts[reconcile.Consistent], "the rows are as the ledger says")
	require.Len(t, w.found(), 2500)
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
		c := w.compare(true)
		require.Equal(t, n/50, c.Counts[reconcile.Edited])
		calls := 0
		for _, n := range w.calls {
			calls += n
		}
		perThousand[n] = float64(calls) * 1000 / float64(c.Counts[reconcile.Consistent])
		t.Logf("%d documents, %d comparisons: %d calls (%v)", n, c.Counts[reconcile.Consistent], calls, w.calls)
	}
	require.LessOrEqual(t, perThousand[sizes[1]], perThousand[sizes[0]], "%v", perThousand)
}

// The rate of request units is kept after each request, and that of lines after each step.
func TestThePaceOfRequestUnits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.consistent(300)
	w.night()
	waited := func(units int) time.Duration {
		w.waited, w.options.RequestUnits = 0, units
		w.compare(true)
		return w.waited
	}
	lines := waited(0)
	require.Equal(t, 800*time.Millisecond, lines, "800 lines at 1,000 a second")
	w.options.Lines = 100_000
	require.Equal(t, 8*time.Millisecond, waited(0))
	w.options.Lines = 0
	slow := waited(200) - lines
	require.Positive(t, slow)
	require.InDelta(t, slow/2, waited(400)-lines, float64(slow)/20)
}

func TestTheStateOfADocumentIsReadOnceMore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.consistent(3)
	w.edit(1, "UPC_CD", "1")
	w.ask(true)
	require.NoError(t, w.tick())
	w.audited(sysName, w.idOf(1))
	w.record(w.idOf(1), func(s *invoice.State) { s.Outcome = "manual" })
	w.finish()
	require.Empty(t, w.found(), "a person marked it between the looks")
	require.True(t, slices.Contains(reconcile.FindingClasses(), reconcile.Edited))
}
