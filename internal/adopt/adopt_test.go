package adopt_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/adopt"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/test/inmem"
)

func TestARunCountsWhatItSawAndDid(t *testing.T) {
	c := &container{}
	sink := inmem.NewSink()
	sink.SetEntry(30,
		inmem.Entry{
			Version: invoice.Version{US: 1 << 60}, DocumentID: "newer", Outcome: inmem.OutcomeApplied,
			Hash: "h", HashVersion: 1,
		})
	c.put(committedDocument(2, 2, 900, 11)) // newer for 11
	c.put(committedDocument(1, 1, 1000, 10, 11))
	c.put(committedDocument(3, 3, 2000, 30, 31))
	c.put(finished(`:7`, `:40`, `[8,9]`, `[]`, fmt.Sprint(committedTS), fmt.Sprint(committedTS+9000)))
	c.put(failed(""))
	c.put(finished(`"id":"2025-12-17 10:30:00.000000-06:00-0001-7"`, `"no":"id"`))
	c.put(finished(`:7`, `:"x"`, `-0001-7`, `-0001-8`))
	c.put(finished(`:7`, `:"x"`, `-0001-7`, `-0001-9`))
	for i, status := range []string{"pending", "retry_scheduled", "processing", "odd"} {
		c.put(
			finished(`"status":"committed"`, `"status":"`+status+`"`, `:7`, fmt.Sprintf(":%d", 100+i),
				`committed_at`, `created_at`))
	}
	c.put(finished(`"status":"committed"`, `"status":"pending"`, `:7`, `:60`, `[8,9]`, `[]`, `-0001-7`, `-0001-60`))
	c.put(
		finished(fmt.Sprint(committedTS), fmt.Sprint(now().Unix()+7), `:7`, `:50`, `[8,9]`,
			`[]`, `-0001-7`, `-0001-50`))

	var skipped []string
	o := options()
	o.Now = func() time.Time { return now().Add(10 * time.Second) }
	o.OnSkip = func(id string, reason adopt.Reason) { skipped = append(skipped, id+" "+string(reason)) }
	var last adopt.Progress
	o.OnPage = func(p adopt.Progress) { last = p }
	state, err := adopt.New(c, sink, o).Run(t.Context())
	require.NoError(t, err)
	want := adopt.Counts{
		Documents: 9, Lines: 2 + 1 + 2 + 1 + 3 + 1 + 1, Adopted: 2 + 1 + 1 + 1 + 1, Marked: 3,
		Unproven: 3, Open: 5, Processing: 1,
		Skipped: map[adopt.Reason]int{adopt.NoID: 1, adopt.NoLine: 2},
	}
	require.Equal(t, want, state.Counts)
	require.Equal(t, 2, state.Counts.Kept(), "11 of the first document, and 30")
	require.Equal(t, "me", state.By)
	require.ElementsMatch(t, []string{
		" no_id", "2025-12-17 10:30:00.000000-06:00-0001-8 no_line", "2025-12-17 10:30:00.000000-06:00-0001-9 no_line",
	}, skipped)
	want.Adopted, want.Marked = 0, 0
	require.Equal(t, want, last.Counts)
	require.Equal(t, o.Now(), last.Until)
	for line, id := range map[int64]string{10: "000001", 11: "000002", 30: "newer", 31: "000003"} {
		e, ok := sink.Entry(line)
		require.True(t, ok, line)
		require.Contains(t, e.DocumentID, id)
	}
	for _, line := range []int64{100, 101, 102, 103} {
		_, ok := sink.Entry(line)
		require.False(t, ok, line)
	}
}

func TestAdoptingAgainChangesNothing(t *testing.T) {
	c, sink := &container{}, inmem.NewSink()
	c.put(committedDocument(1, 1, 1000, 10, 11))
	c.put(committedDocument(2, 2, 900, 11))
	c.put(failed(""))
	first := run(t, c, sink)
	before := entries(sink, 10, 11, 7, 8, 9)
	second := run(t, c, sink)
	require.NotEqual(t, first.Run, second.Run)
	require.Equal(t, before, entries(sink, 10, 11, 7, 8, 9))
	require.Equal(t, adopt.Counts{Documents: 3, Lines: 6, Skipped: map[adopt.Reason]int{}}, second.Counts)
	require.Equal(t, 6, second.Counts.Kept())
}

// Quiet years, a busy time, one second with more documents than a window, and the present: every document is read,
// once. The windows of the busy time get shorter, and few requests are made.
func TestWindowsGrowAndShrink(t *testing.T) {
	const day, busy, most, page = 86400, 1200, 1000, 100
	c := &container{pageSize: page}
	start := now().AddDate(-3, 0, 0).Unix()
	n := 0
	add := func(ts int64) {
		n++
		c.put(committedDocument(n, n%1000, ts, int64(n)))
	}
	for i := range busy {
		add(start + int64(i)*300*day/busy)
	}
	second := start + 400*day
	for range most + 200 {
		add(second)
	}
	add(second + 1)
	add(now().Unix() - 3)
	add(now().Unix() + 86400*365) // the container's clock may be ahead
	state, err := adopt.Limited(adopt.New(c, inmem.NewSink(), options()), most/20, most/10).Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, n, state.Counts.Documents)
	require.Equal(t, n, state.Counts.Adopted)
	t.Logf("%d documents in %d windows, %d pages", n, c.windows, c.pages)
	require.LessOrEqual(t, c.windows, 200)
	require.LessOrEqual(t, c.pages, c.windows+n/page, "nothing is read twice")
	require.LessOrEqual(t, c.most, most+200+3*most/10, "beside the second that cannot be divided")
}

// A document that changes during the adoption gets a present _ts, so no past window misses it, also where the
// container's clock is behind.
func TestWhatIsTouchedMeanwhileIsSeen(t *testing.T) {
	for _, ahead := range []int64{60, -299} {
		c, touched := &container{}, false
		c.afterQuery = func(_, to int64) {
			if !touched && to >= now().Unix()-600 {
				touched = true
				ts := now().Unix() + ahead
				c.put(finished(fmt.Sprint(committedTS), fmt.Sprint(ts))) // changed, but not committed again
			}
		}
		state := run(t, c, inmem.NewSink())
		require.True(t, touched)
		require.Equal(t, 3, state.Counts.Adopted, ahead)
	}
}

// Another writer would finish documents that the adoption misses. The run does not finish, and the next call continues
// it.
func TestNobodyElseMayFinishDocumentsMeanwhile(t *testing.T) {
	c, sink := &container{}, inmem.NewSink()
	c.put(committedDocument(1, 1, 1000, 10))
	// without a stamp its _ts counts
	c.put(strings.Replace(committedDocument(2, 1, now().Unix()+1, 11), "committed_at", "other", 1))
	_, err := adopt.New(c, sink, options()).Run(t.Context())
	require.Equal(t, "still_written", fault.CodeOf(err))
	require.ErrorContains(t, err, "1 documents")
	require.ErrorContains(t, err, "-000002 among them")
	open, err := sink.State(t.Context())
	require.NoError(t, err)
	require.False(t, open.Adopted())

	windows := c.windows
	later := options()
	later.Now = func() time.Time { return now().Add(10 * time.Second) }
	c.put(committedDocument(3, 1, now().Unix()+2, 12))
	state, err := adopt.New(c, sink, later).Run(t.Context())
	require.NoError(t, err)
	require.LessOrEqual(t, c.windows-windows, 2, "only the last minutes are read again")
	require.Equal(t, 3, state.Counts.Documents)
	require.Equal(t, 3, state.Counts.Adopted)

	for _, doc := range []string{
		failed(`,"failed_at":"2026-01-05 12:00:00.000001+00:00"`),
		finished(committedAt, "2026-01-05 12:00:00.000001+00:00"),
	} {
		c = &container{}
		// our clock and the container's differ
		c.put(strings.Replace(doc, fmt.Sprint(committedTS), fmt.Sprint(now().Unix()-250), 1))
		_, err = adopt.New(c, inmem.NewSink(), options()).Run(t.Context())
		require.Equal(t, "still_written", fault.CodeOf(err))
	}
}

// Documents of the last minutes are in one window without an end.
func TestAMassChangeJustNowIsOneWindow(t *testing.T) {
	c := &container{pageSize: 10}
	for i := range 150 {
		c.put(committedDocument(i, i, now().Unix()-int64(i%100), int64(i)))
	}
	state, err := adopt.Limited(adopt.New(c, inmem.NewSink(), options()), 10, 100).Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, 150, state.Counts.Documents)
}

func TestManyLinesAreSeveralPages(t *testing.T) {
	c, l := &container{}, &ledger{Sink: inmem.NewSink()}
	lines := make([]int64, 2500)
	for i := range lines {
		lines[i] = int64(i + 1)
	}
	c.put(committedDocument(1, 1, 1000, lines...))
	require.Equal(t, 2500, run(t, c, l).Counts.Adopted)
	require.Equal(t, 1000, l.largest)
}

func TestAnEmptyContainerNeedsFewQuestions(t *testing.T) {
	c := &container{}
	state := run(t, c, inmem.NewSink())
	require.Equal(t, adopt.Counts{Skipped: map[adopt.Reason]int{}}, state.Counts)
	require.LessOrEqual(t, c.windows, 150)
}

// A run that is stopped before or after any step and continued ends with the ledger and the counts of an undisturbed
// run.
func TestARunThatWasStoppedGoesOn(t *testing.T) {
	fill := func() *container {
		c := &container{pageSize: 3}
		start := now().AddDate(0, 0, -40).Unix()
		for i := range 60 {
			c.put(committedDocument(i, i*7%60, start+int64(i%20)*2*86400, int64(i%25+1), int64(i%9+50)))
		}
		c.put(finished(`:7`, `:"x"`))
		return c
	}
	lines := make([]int64, 60)
	for i := range lines {
		lines[i] = int64(i + 1)
	}
	documents := func(l *inmem.Sink) map[int64]string {
		all := map[int64]string{}
		for line, e := range entries(l, lines...) {
			all[line] = e.DocumentID
		}
		return all
	}
	undisturbed, c := inmem.NewSink(), fill()
	expected := run(t, c, undisturbed)
	counted := &ledger{Sink: inmem.NewSink()}
	run(t, fill(), counted)
	require.Greater(t, counted.pages, 10)

	stop := fault.New(fault.Infrastructure, "test", "killed", "here")
	failAt := func(k int) func(int) error {
		return func(n int) error {
			if n == k {
				return stop
			}
			return nil
		}
	}
	check := func(c *container, l *ledger, where string) {
		_, err := adopt.New(c, l, options()).Run(t.Context())
		require.ErrorIs(t, err, stop, where)
		state := run(t, c, l)
		require.Equal(t, expected.Counts, state.Counts, where)
		require.Equal(t, documents(undisturbed), documents(l.Sink), where)
	}
	for k := 1; k <= c.pages; k++ {
		broken := fill()
		broken.onPage = failAt(k)
		check(broken, &ledger{Sink: inmem.NewSink()}, fmt.Sprint("document page ", k))
	}
	for k := 1; k <= counted.pages; k++ {
		check(fill(), &ledger{Sink: inmem.NewSink(), onPage: failAt(k)}, fmt.Sprint("before ledger page ", k))
		check(fill(), &ledger{Sink: inmem.NewSink(), after: failAt(k)}, fmt.Sprint("after ledger page ", k))
	}
}

func TestWhatPassesIsWaitedFor(t *testing.T) {
	var waits []time.Duration
	o := options()
	o.Wait = func(_ context.Context, d time.Duration) error { waits = append(waits, d); return nil }
	fails := func(n int, err error) func(int) error {
		return func(int) error {
			if n--; n < 0 {
				return nil
			}
			return err
		}
	}
	c := &container{}
	c.put(committedDocument(1, 1, 1000, 10))
	throttled := fault.New(fault.Throttled, "test", "429", "slow down")
	throttled.RetryAfter = 7 * time.Second
	c.onPage = fails(2, throttled)
	l := &ledger{Sink: inmem.NewSink(), onPage: fails(3, fault.New(fault.Contention, "test", "1205", "deadlock"))}
	state, err := adopt.New(c, l, o).Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, state.Counts.Adopted)
	require.Equal(t,
		[]time.Duration{7 * time.Second, 7 * time.Second, time.Second, 2 * time.Second, 4 * time.Second}, waits)

	waits = nil
	for i := range 3 {
		c.put(committedDocument(2+i, 1, 1000+int64(i+1)*200*86400, 20))
	}
	tries := 0
	c.onPage = func(int) error {
		if tries++; tries <= 24 && tries%6 > 0 {
			return throttled
		}
		return nil
	}
	_, err = adopt.New(c, inmem.NewSink(), o).Run(t.Context())
	require.NoError(t, err, "each request has its own patience")
	require.Len(t, waits, 20)

	waits = nil
	c.onPage = fails(100, fault.New(fault.Throttled, "test", "429", "slow down"))
	_, err = adopt.New(c, inmem.NewSink(), o).Run(t.Context())
	require.Equal(t, fault.Throttled, fault.KindOf(err), "not for ever")
	require.Len(t, waits, 8)
	require.Equal(t, 30*time.Second, waits[7])

	waits = nil
	moved := fault.New(fault.Contention, "test", "adoption_moved", "somebody else")
	moved.Condition = fault.Changed
	for _, final := range []error{
		moved, fault.New(fault.Infrastructure, "test", "eof", "cut"), fault.New(fault.Quota, "test", "1105", "full"),
	} {
		_, err = adopt.New(&container{}, &ledger{Sink: inmem.NewSink(), onPage: fails(1, final)}, o).Run(t.Context())
		require.ErrorIs(t, err, final)
	}
	require.Empty(t, waits)

	stopped := errors.New("stopped")
	o.Wait = func(context.Context, time.Duration) error { return stopped }
	c.onPage = fails(1, throttled)
	_, err = adopt.New(c, inmem.NewSink(), o).Run(t.Context())
	require.ErrorIs(t, err, stopped)
	require.True(t, fault.IsDependency(err))
}

func TestTheRateIsKept(t *testing.T) {
	clock := now()
	o := options()
	o.Rate = 100
	o.Now = func() time.Time { return clock }
	o.Wait = func(_ context.Context, d time.Duration) error { clock = clock.Add(d); return nil }
	c := &container{pageSize: 50}
	for i := range 1000 {
		c.put(committedDocument(i, i, 1000+int64(i), int64(i+1)))
	}
	_, err := adopt.New(c, inmem.NewSink(), o).Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, 10*time.Second, clock.Sub(now()))

	o.Wait = func(context.Context, time.Duration) error { return context.Canceled }
	_, err = adopt.New(c, inmem.NewSink(), o).Run(t.Context())
	require.ErrorIs(t, err, context.Canceled)
}

func TestTwoAtOnceDoNotMix(t *testing.T) {
	c, sink := &container{}, inmem.NewSink()
	c.put(committedDocument(1, 1, 1000, 10))
	other := &ledger{Sink: sink}
	other.onPage = func(n int) error {
		if n == 1 { // another run finishes in between
			_, err := adopt.New(c, sink, options()).Run(t.Context())
			return err
		}
		return nil
	}
	_, err := adopt.New(c, other, options()).Run(t.Context())
	require.True(t, fault.Has(err, fault.Changed), "%v", err)
	state, err := sink.State(t.Context())
	require.NoError(t, err)
	require.Equal(t, adopt.Done, state.Phase)
	require.Equal(t, 1, state.Counts.Adopted)
}

// A copy from before the adoption has no ledger, and lacks what this product wrote since: it must not be adopted, else
// a reapply finds it unchanged. A run that was stopped keeps its bound.
func TestACopyLacksWhatWasWrittenAfterIt(t *testing.T) {
	c, sink := &container{}, inmem.NewSink()
	sink.AddLines(10, 11)
	c.put(committedDocument(1, 1, 1000, 10, 11))
	c.put(
		strings.NewReplacer(`"status":"committed"`, `"status":"committed","outcome":"applied"`, committedAt,
			"2025-12-20 10:30:15.123456-06:00").
			Replace(committedDocument(2, 2, now().Unix()-9_000, 11)))
	o := options()
	o.Before = time.Date(2025, 12, 18, 0, 0, 0, 0, time.UTC)
	stopped := errors.New("stopped")
	_, err := adopt.New(c, &ledger{Sink: sink, onPage: func(n int) error {
		if n == 3 {
			return stopped
		}
		return nil
	}}, o).Run(t.Context())
	require.ErrorIs(t, err, stopped)
	state := run(t, c, sink)
	require.Equal(t, o.Before, state.Counts.Before)
	require.Equal(t, map[adopt.Reason]int{adopt.Later: 1}, state.Counts.Skipped)
	e, _ := sink.Entry(11)
	require.Contains(t, e.DocumentID, "000001", "not that of the document that the copy lacks")
}

// A dry run counts what a run reads, from the beginning, whatever the ledger has. It has no ledger to write to.
func TestADryRunCountsAsTheRun(t *testing.T) {
	c, sink := &container{pageSize: 3}, inmem.NewSink()
	for i := range 40 {
		c.put(committedDocument(i, i, now().Unix()-int64(i)*9_000_000, int64(i%7+1), int64(i%5+10)))
	}
	c.put(failed(""))
	c.put(finished(`:7`, `:"x"`))
	c.put(finished(`"committed"`, `"pending"`))
	c.put(finished(committedAt, "2026-01-05 12:00:01.000000+00:00")) // the old writer still works
	o, skipped := options(), 0
	o.DryRun, o.OnSkip = true, func(string, adopt.Reason) { skipped++ }
	dry, err := adopt.New(c, nil, o).Run(t.Context())
	require.NoError(t, err)
	require.Empty(t, dry.Phase)
	require.Equal(t, 1, skipped)

	later := options()
	later.Now = func() time.Time { return now().Add(2 * time.Second) }
	run, err := adopt.New(c, sink, later).Run(t.Context())
	require.NoError(t, err)
	require.NotZero(t, run.Counts.Adopted)
	run.Counts.Adopted, run.Counts.Marked = 0, 0 // what the ledger says
	require.Equal(t, run.Counts, dry.Counts)
	again, err := adopt.New(c, nil, o).Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, dry, again)
}
