package conformance

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/test/inmem"
	"sqlwriter/test/mapping"
)

// stormTime bounds how long storms are made. What was drawn for a storm is rapid's to repeat; how its writers
// interleave is the machine's.
const stormTime = 4 * time.Second

// Sizes of a storm.
const (
	stormWriters  = 4
	stormRequests = 4
	stormTries    = 40
)

// mishap is what goes wrong with some request of a storm, not necessarily the one that it was drawn for.
type mishap string

const (
	nothing   mishap = ""
	failAfter mishap = "an error after a statement"
	loseReply mishap = "a lost acknowledgement"
	cancel    mishap = "a context that has ended"
)

// sending is one request of a writer.
type sending struct {
	items  []commit.Item
	mode   commit.Mode
	mishap mishap
	step   string
}

// mishapCount compares what was made to fail with what failed, and counts the requests that lost every race.
type mishapCount struct{ armed, failed, lost, edited int }

// storm is one random history of several writers at once, over lines and documents of its own. The content of a
// document follows from its snapshot, so that where everything ends does not depend on the order.
type storm struct {
	*sinkTest
	rt    *rapid.T
	lines []int64
	docs  []commit.Item
	plan  [][]sending

	// arming is held while a mishap waits for its request: one at a time, for whichever writer.
	arming sync.Mutex

	mu sync.Mutex
	// count covers all storms: a fault armed in one may strike in the next.
	count *mishapCount
	// reported is, per line, the newest version that an outcome named.
	reported map[int64]invoice.Version
}

func storms(s *sinkTest) {
	begin, run := time.Now(), 0
	var count mishapCount
	rapid.Check(s, func(rt *rapid.T) {
		if time.Since(begin) > stormTime {
			return
		}
		run++
		st := &storm{
			sinkTest: s, rt: rt, lines: span(int64(run)*1000, historyLines), count: &count,
			reported: map[int64]invoice.Version{},
		}
		s.h.AddLines(s, st.lines[:historyLines-1]...) // the last one never exists
		st.draw(run)
		st.blow()
		st.rowsMatchLedger()
		st.quiet()
	})
	s.Logf("%d storms of %d writers", run, stormWriters)
	require.Positive(s, run)
}

// draw decides everything but the interleaving.
func (st *storm) draw(run int) {
	for i := range rapid.IntRange(2, 5).Draw(st.rt, "documents") {
		lines := rapid.SliceOfNDistinct(rapid.SampledFrom(slices.Concat(st.lines[:historyLines-1], st.lines)), 1, 3,
			rapid.ID).Draw(st.rt, "lines")
		st.docs = append(st.docs,
			doc(fmt.Sprintf("storm-%d-%d", run, i),
				int64(rapid.IntRange(1, 3).Draw(st.rt, "version")), 0, "", lines...))
	}
	mishaps := []mishap{nothing, nothing, nothing, cancel}
	if st.h.FailAfter != nil {
		mishaps = append(mishaps, failAfter)
	}
	if st.h.LoseReply != nil {
		mishaps = append(mishaps, loseReply)
	}
	for range stormWriters {
		var own []sending
		for range rapid.IntRange(1, stormRequests).Draw(st.rt, "requests") {
			if len(own) > 0 && rapid.IntRange(0, 4).Draw(st.rt, "replay") == 0 {
				own = append(own, rapid.SampledFrom(own).Draw(st.rt, "request"))
				continue
			}
			r := sending{
				mode: rapid.SampledFrom(
					[]commit.Mode{commit.Write, commit.Write, commit.Write, commit.Rewrite}).Draw(st.rt, "mode"),
				mishap: rapid.SampledFrom(mishaps).Draw(st.rt, "mishap"),
			}
			if r.mishap == failAfter {
				r.step = rapid.SampledFrom(st.h.Steps).Draw(st.rt, "step")
			}
			for range rapid.IntRange(1, 4).Draw(st.rt, "items") {
				r.items = append(r.items, st.item())
			}
			own = append(own, r)
		}
		st.plan = append(st.plan, own)
	}
}

// item draws a snapshot of a document, or the mark of one.
func (st *storm) item() commit.Item {
	it := rapid.SampledFrom(st.docs).Draw(st.rt, "document")
	ts := int64(rapid.IntRange(1, 4).Draw(st.rt, "source_ts"))
	it = doc(it.DocumentID, it.Version.US, ts, fmt.Sprint(it.DocumentID, ts), linesOf(it)...)
	it.NotComparable = true // or a rewrite would leave a marked line alone
	if rapid.IntRange(0, 5).Draw(st.rt, "mark") == 0 {
		return mark(it)
	}
	return it
}

// blow lets all writers go at once, each through its requests, again while they fail. Only a writer with an injected
// fault may fail.
func (st *storm) blow() {
	for _, r := range slices.Concat(st.plan...) {
		if r.mishap != nothing {
			st.count.armed++
		}
	}
	var wg sync.WaitGroup
	for _, own := range st.plan {
		wg.Go(func() {
			for _, r := range own {
				st.send(r)
			}
		})
	}
	wg.Wait()
	require.LessOrEqual(st.rt, st.count.failed, st.count.armed, "only what was made to fail fails")
	require.Zero(st.rt, st.count.edited, "nobody edits a line")
	require.Zero(st.rt, st.count.lost, "nobody loses %d races in a row", stormTries)
}

// send makes a request until it is answered. It runs beside the others and must not end the test.
func (st *storm) send(r sending) {
	ctx, stop := context.WithCancel(st.Context())
	defer stop()
	if r.mishap == failAfter || r.mishap == loseReply {
		st.arming.Lock()
		defer st.arming.Unlock()
	}
	switch r.mishap {
	case failAfter:
		st.h.FailAfter(st.sinkTest, r.step)
	case loseReply:
		st.h.LoseReply(st.sinkTest)
	case cancel:
		stop()
	case nothing:
	}
	for range stormTries {
		out, err := st.h.Sink.Apply(ctx, r.items, r.mode, unknown(sysName))
		if err == nil {
			st.recordReported(r.items, out)
			return
		}
		if fault.KindOf(err) != fault.Contention {
			st.mu.Lock()
			st.count.failed++
			st.mu.Unlock()
		}
		if ctx.Err() != nil {
			return // it was never sent
		}
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	st.count.lost++
}

// recordReported records the outcomes that a writer got.
func (st *storm) recordReported(items []commit.Item, outcomes []commit.DocumentOutcome) {
	st.mu.Lock()
	defer st.mu.Unlock()
	for i, it := range items {
		for _, r := range outcomes[i].Rows {
			if r.Verdict == invoice.OutcomeMissing || r.Verdict == "" {
				continue
			}
			if r.Verdict == invoice.OutcomeEdited {
				st.count.edited++
			}
			if it.Version.Compare(st.reported[r.DetailID]) > 0 {
				st.reported[r.DetailID] = it.Version
			}
		}
	}
}

// rowsMatchLedger requires the invariant at the end: each row equals the content of the document that the ledger
// names, and nothing older than an outcome that any writer got.
func (st *storm) rowsMatchLedger() {
	for _, line := range st.lines {
		row := st.h.Row(st.sinkTest, line)
		l, ok := st.h.Ledger(st.sinkTest, line)
		if !ok {
			require.Zero(st.rt, st.reported[line], "line %d: a writer was told of a write", line)
			require.Equal(st.rt, nullValues(), row.Values, "line %d is nobody's", line)
			continue
		}
		require.GreaterOrEqual(st.rt, l.Version.Compare(st.reported[line]), 0,
			"line %d: the ledger names %s, a writer was told of a newer one", line, l.DocumentID)
		st.named(line, row, l)
	}
}

// named requires that a row has the content that the ledger names.
func (st *storm) named(line int64, row SinkRow, l LedgerRow) {
	i := slices.IndexFunc(st.docs, func(d commit.Item) bool { return d.Version == l.Version })
	require.GreaterOrEqual(st.rt, i, 0, "line %d: the ledger names a document that was sent", line)
	it := st.docs[i]
	it = doc(it.DocumentID, it.Version.US, l.SourceTS, fmt.Sprint(it.DocumentID, l.SourceTS), linesOf(it)...)
	if l.Outcome == inmem.OutcomeFailed {
		require.Equal(st.rt, ledgerOf(mark(it), line), l)
		require.Equal(st.rt, withStatus(row), row, "line %d carries the mark", line)
		return
	}
	require.Equal(st.rt, ledgerOf(it, line), l)
	require.Equal(st.rt, mapping.InUse().RowValues(it.Values, it.Main, line), row.Values,
		"line %d holds what the ledger names", line)
}

// quiet sends everything once more, one after the other, as redelivery does: then the oracle, which saw it in another
// order and without mishaps, says the same of every line.
func (st *storm) quiet() {
	oracle := inmem.NewSink()
	oracle.AddLines(st.lines[:historyLines-1]...)
	var all []commit.Item
	for _, r := range slices.Concat(st.plan...) {
		for _, it := range r.items {
			if !slices.ContainsFunc(all, func(o commit.Item) bool {
				return o.DocumentID == it.DocumentID && o.SourceTS == it.SourceTS && o.FailureMark == it.FailureMark
			}) {
				all = append(all, it)
			}
		}
	}
	for _, it := range all {
		_, err := oracle.Apply(st.Context(), []commit.Item{it}, commit.Write, unknown(sysName))
		require.NoError(st.rt, err)
	}
	slices.Reverse(all)
	for _, it := range all {
		st.untilAnswered(it)
	}
	st.rowsMatchLedger()
	for _, line := range st.lines {
		want, known := oracle.Entry(line)
		l, ok := st.h.Ledger(st.sinkTest, line)
		require.Equal(st.rt, known, ok, "line %d", line)
		require.Equal(st.rt, want.Version, l.Version, "line %d: the newest is there", line)
		require.Equal(st.rt, want.SourceTS, l.SourceTS, "line %d: its latest snapshot is there", line)
		require.Equal(st.rt, want.Outcome, l.Outcome, "line %d", line)
	}
}

// untilAnswered repeats a request until no pending fault fails it.
func (st *storm) untilAnswered(it commit.Item) {
	var err error
	for range stormWriters*stormRequests + 1 {
		var out []commit.DocumentOutcome
		if out, err = st.h.Sink.Apply(st.Context(), []commit.Item{it}, commit.Write, unknown(sysName)); err == nil {
			st.recordReported([]commit.Item{it}, out)
			return
		}
		st.count.failed++
	}
	require.NoError(st.rt, err)
}
