package writer_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/writer"
)

// app is several instances of the app over one world, as the host runs them: each takes the batches of its own part of the
// feed, one after the other, and is offered a batch again ten seconds after it failed.
type app struct {
	*world
	instances []*instance
	// answer is what the database says to an instance's request, before it does anything; items is nil for a probe.
	answer func(i *instance, items []writer.Item) error
	// asked are the requests and probes that reached the database's door.
	asked []time.Time
	// alone are the documents that were sent by themselves, in order.
	alone []string
	// batch is how many documents a batch of the feed has.
	batch int
}

type instance struct {
	app    *app
	name   string
	gate   *writer.Gate
	commit *writer.Commit
	queue  [][]json.RawMessage
	retry  int
	// next is when the host offers the next batch; errs are what it answered, the last one last.
	next time.Time
	errs []error
}

// newApp makes n instances. Instance i is offered its first batch at offsets[i].
func newApp(t *testing.T, offsets ...time.Duration) *app {
	t.Helper()
	a := &app{world: newWorld(t), batch: 100}
	for i, offset := range offsets {
		a.instances = append(a.instances, a.more(fmt.Sprint("i", i), offset))
	}
	return a
}

func (a *app) more(name string, offset time.Duration) *instance {
	i := &instance{app: a, name: name, next: a.clock.Add(offset)}
	i.gate, i.commit = a.instance(name, i, a.control, a.evidence)
	return i
}

// Apply and Heartbeat make an instance the sink of its own Commit.
func (i *instance) Apply(ctx context.Context, items []writer.Item, mode writer.Mode) ([]writer.Outcome, error) {
	i.app.asked = append(i.app.asked, i.app.clock)
	if len(items) == 1 {
		i.app.alone = append(i.app.alone, items[0].DocumentID)
	}
	if i.app.answer != nil {
		if err := i.app.answer(i, items); err != nil {
			return nil, err
		}
	}
	return i.app.sink.Apply(ctx, items, mode)
}

func (i *instance) Heartbeat(context.Context, string) error {
	i.app.asked = append(i.app.asked, i.app.clock)
	if i.app.answer != nil {
		return i.app.answer(i, nil)
	}
	return nil
}

// fill puts n documents into the container and divides the feed's batches among the instances.
func (a *app) fill(n int, doc func(i int) string) (ids []string) {
	a.t.Helper()
	var docs []string
	for i := range n {
		a.sink.AddLines(int64(i + 1))
		docs = append(docs, doc(i))
		ids = append(ids, idOf(a.t, docs[i]))
	}
	batches := slices.Collect(slices.Chunk(a.put(docs...), a.batch))
	for i, batch := range batches {
		in := a.instances[i%len(a.instances)]
		in.queue = append(in.queue, batch)
	}
	return ids
}

// good is a document that can be written.
func good(i int) string { return result(i%60, int64(i+1), fmt.Sprint("maker ", i), "") }

// host offers what is due now.
func (a *app) host() {
	a.t.Helper()
	for _, i := range a.instances {
		for len(i.queue) > 0 && !i.next.After(a.clock) {
			_, err := i.commit.Run(a.t.Context(), writer.Batch{Documents: i.queue[0], Received: a.clock, RetryCount: i.retry})
			i.errs = append(i.errs, err)
			if err != nil {
				i.retry++
				i.next = a.clock.Add(10 * time.Second)
				continue
			}
			i.queue, i.retry = i.queue[1:], 0
		}
	}
}

// pass lets time pass, a second at a time, while the host offers.
func (a *app) pass(d time.Duration, each ...func()) {
	a.t.Helper()
	for end := a.clock.Add(d); a.clock.Before(end); a.clock = a.clock.Add(time.Second) {
		a.host()
		for _, f := range each {
			f()
		}
	}
}

// depth is how many documents have which status.
func (a *app) depth(ids []string) map[string]int {
	a.t.Helper()
	n := map[string]int{}
	for _, id := range ids {
		s := a.state(id)
		n[s["status"].(string)]++
		if s["retry_count"].(float64) > 0 {
			n["retries"]++
		}
	}
	return n
}

func (a *app) atMostOnceAMinuteSince(since time.Time) {
	a.t.Helper()
	var last time.Time
	for _, at := range a.asked {
		if at.Before(since) {
			continue
		}
		require.True(a.t, last.IsZero() || at.Sub(last) >= time.Minute, "asked at %s and %s", last, at)
		last = at
	}
}

// Promise G4, by the letter of the requirement.
func TestSQLDownFor10Minutes500PendingAnd3InstancesOnOneClock(t *testing.T) {
	t.Parallel()
	const s = time.Second
	for _, c := range []struct {
		pending, batch int
		offsets        []time.Duration
	}{{500, 100, []time.Duration{0, 3 * s, 7 * s}}, {20, 4, []time.Duration{0, 0, 0}}, {20, 4, []time.Duration{9 * s, 5 * s, 6 * s}}} {
		a := newApp(t, c.offsets...)
		a.batch = c.batch
		ids := a.fill(c.pending, good)
		timer := a.more("timer", 0)
		recovery := writer.NewRecover(timer.commit, a.docs)
		tick := func() {
			if a.clock.Sub(start())%(5*time.Minute) == 0 {
				_, err := recovery.Run(t.Context())
				require.NoError(t, err)
			}
		}
		before := a.snapshots(ids...)

		a.answer = func(*instance, []writer.Item) error { return unreachable() }
		var opened time.Time
		a.pass(10*time.Minute, tick, func() {
			if opened.IsZero() && timer.gate.View(t.Context()).State().Open() {
				opened = timer.gate.Seen().State().Since
			}
		})
		require.Less(t, opened.Sub(start()), time.Minute)
		a.atMostOnceAMinuteSince(opened.Add(5 * time.Second))
		require.GreaterOrEqual(t, len(a.asked), 5+8, "and it was asked, or nobody would notice that it is back")
		require.Equal(t, before, a.snapshots(ids...), "no document was touched")

		a.answer, a.asked = nil, nil
		returned := a.clock
		var done time.Time
		a.pass(80*time.Second, tick, func() {
			if done.IsZero() && !slices.ContainsFunc(a.instances, func(i *instance) bool { return len(i.queue) > 0 }) {
				done = a.clock
			}
		})
		require.False(t, done.IsZero())
		require.LessOrEqual(t, done.Sub(returned), 70*time.Second)
		require.Equal(t, map[string]int{"committed": c.pending}, a.depth(ids))
		require.Empty(t, a.evidence.Files())
		for _, i := range a.instances {
			require.False(t, i.gate.Seen().Own.Open())
		}
	}
}

// traffic gives each instance that has nothing to do a batch of one new document.
func (a *app) traffic() func() {
	n := 0
	return func() {
		for k, i := range a.instances {
			if len(i.queue) == 0 && a.clock.Sub(start())%(10*time.Second) == time.Duration(k)*time.Second {
				n++
				a.sink.AddLines(int64(n))
				i.queue = [][]json.RawMessage{a.put(good(n - 1))}
				i.next = a.clock
			}
		}
	}
}

// The first time its failures shut all; the second time within five minutes it keeps them for itself.
func TestAnInstanceThatAloneCannotReachSQLDoesNotKeepTheOthersShut(t *testing.T) {
	a := newApp(t, 0, 0, 0)
	cut := a.instances[0]
	a.answer = func(i *instance, _ []writer.Item) error {
		if i == cut {
			return unreachable()
		}
		return nil
	}
	traffic := a.traffic()
	var own time.Time
	a.pass(5*time.Minute, traffic, func() {
		if own.IsZero() && cut.gate.Seen().Own.Open() {
			own = a.clock
		}
	})
	require.False(t, own.IsZero(), "it keeps its own gate")
	require.Equal(t, 1, strings.Count(a.log.String(), "keeps its own gate"), "and says so")

	for _, i := range a.instances {
		i.errs = nil
	}
	a.asked = nil
	a.pass(10*time.Minute, traffic)
	for _, i := range a.instances[1:] {
		require.GreaterOrEqual(t, len(i.errs), 50)
		for _, err := range i.errs {
			require.NoError(t, err, "the others keep committing")
		}
		require.False(t, i.gate.Seen().State().Open())
	}
	tries := 0
	for _, err := range cut.errs {
		require.Error(t, err)
		if !writer.IsGate(err) {
			tries++
		}
	}
	require.InDelta(t, 10, tries, 2, "its own gate is a gate")

	a.answer = nil
	a.pass(70*time.Second, traffic)
	require.Zero(t, cut.retry, "it comes back by itself")
	require.False(t, cut.gate.Seen().Own.Open())
	require.Contains(t, a.log.String(), "this instance reaches SQL again")
}

// The same when the others have so little to do that their successes come between its failures, and when it reaches SQL now
// and then.
func TestAnInstanceThatSeldomReachesSQLKeepsItsOwnGate(t *testing.T) {
	a := newApp(t, 0, 0, 0)
	cut, n := a.instances[0], 0
	a.answer = func(i *instance, items []writer.Item) error {
		if i != cut {
			return nil
		}
		if n++; n%7 == 0 || items == nil {
			return nil
		}
		return unreachable()
	}
	traffic := a.traffic()
	a.pass(5*time.Minute, traffic)
	require.Contains(t, a.log.String(), "keeps its own gate")
}

// An outage that goes and comes back is everybody's: no instance takes it for its own, and the database is left alone.
func TestAnOutageThatComesBackIsEverybodysOutage(t *testing.T) {
	a := newApp(t, 0, 0, 0)
	traffic := a.traffic()
	for _, up := range []time.Duration{75 * time.Second, 90 * time.Second} {
		a.answer = func(*instance, []writer.Item) error { return unreachable() }
		a.asked = nil
		opened := time.Time{}
		a.pass(170*time.Second, traffic, func() {
			if state := a.instances[0].gate.Seen().State(); opened.IsZero() && state.Open() {
				opened = state.Since
			}
		})
		require.False(t, opened.IsZero())
		a.atMostOnceAMinuteSince(opened.Add(5 * time.Second))
		a.answer = nil
		a.pass(up, traffic)
		for _, i := range a.instances {
			require.Zero(t, i.retry)
			require.False(t, i.gate.Seen().State().Open())
		}
	}
	require.NotContains(t, a.log.String(), "keeps its own gate")
}

// broken is a connection that breaks, as the adapter says it.
func broken(code string) error {
	return &fault.Error{Kind: fault.Infrastructure, Condition: fault.Broken, Code: code, Op: "sql: apply", Reason: "the connection broke"}
}

// killing answers every request that has the document with a broken connection.
func killing(id, code string) func(*instance, []writer.Item) error {
	return func(_ *instance, items []writer.Item) error {
		if slices.ContainsFunc(items, func(it writer.Item) bool { return it.DocumentID == id && !it.FailureMark }) {
			return broken(code)
		}
		return nil
	}
}

// One document that kills its connection each time: its neighbours are written in the same invocation, it alone pays.
func TestADocumentThatKillsItsConnectionIsIsolated(t *testing.T) {
	a := newApp(t, 0)
	ids := a.fill(100, good)
	killer := ids[37]
	a.answer = killing(killer, "eof")
	a.host()
	require.Empty(t, a.instances[0].queue)
	require.Equal(t, map[string]int{"committed": 99, "retry_scheduled": 1, "retries": 1}, a.depth(ids))
	s := a.state(killer)
	require.Equal(t, "internal", s["last_error_kind"])
	require.Equal(t, writer.CodeBreaks, s["last_error_code"])
	require.Equal(t, 1.0, s["retry_count"])
	require.Equal(t, float64(a.clock.Unix()+132), s["retry_after"])
	require.False(t, a.instances[0].gate.Seen().State().Open(), "the database answers others")

	for n := 2; n <= 6; n++ {
		a.clock = time.Unix(int64(a.state(killer)["retry_after"].(float64)), 0)
		a.sink.AddLines(1000 + int64(n))
		other := result(n, 1000+int64(n), "other", "")
		a.instances[0].queue = [][]json.RawMessage{append(a.snapshots(killer), a.put(other)...)}
		a.host()
		require.Equal(t, "committed", a.state(idOf(t, other))["status"])
		require.False(t, a.instances[0].gate.Seen().State().Open())
		require.Equal(t, float64(min(n, 5)), a.state(killer)["retry_count"])
	}
	require.Equal(t, "failed", a.state(killer)["status"])
	require.NotContains(t, a.state(killer), "final_error")
	require.Len(t, a.evidence.Files(), 3)
}

// While the gate is open, the one document of the probe may be the one that kills its connection. The neutral statement is
// answered, so that is no outage any more.
func TestADocumentThatKillsItsConnectionDoesNotKeepTheGateOpen(t *testing.T) {
	for _, n := range []int{1, 10} {
		a := newApp(t, 0)
		ids := a.fill(n, good)
		a.answer = func(*instance, []writer.Item) error { return unreachable() }
		a.pass(55 * time.Second)
		require.True(t, a.instances[0].gate.Seen().State().Open())
		a.answer = killing(ids[0], "eof")
		a.pass(70 * time.Second)
		depth := a.depth(ids)
		require.Equal(t, n-1, depth["committed"])
		require.Equal(t, 1, depth["retries"])
		require.False(t, a.instances[0].gate.Seen().State().Open())
	}
}

// A database that is full has taken nothing when the document of the probe is bad by itself. Then the next one is the probe.
func TestABadDocumentDoesNotKeepAFullGateOpen(t *testing.T) {
	a := newApp(t, 0)
	ids := a.fill(10, good)
	a.answer = func(*instance, []writer.Item) error { return errorOf(fault.Quota) }
	a.host()
	a.answer = func(_ *instance, items []writer.Item) error {
		if slices.ContainsFunc(items, func(it writer.Item) bool { return it.DocumentID == ids[0] || it.DocumentID == ids[1] }) {
			return fault.New(fault.Document, "sql: apply", "515", "NULL")
		}
		return nil
	}
	a.pass(5*time.Minute + 11*time.Second)
	require.Equal(t, map[string]int{"committed": 8, "retry_scheduled": 2, "retries": 2}, a.depth(ids))
}

// One document makes its request hang until its time is over. The invocation has time for five such requests, so the whole
// batch cannot be divided in one; but it is planned smaller each time it is offered again.
func TestABatchWithADocumentThatHangsIsPlannedSmallerEachTime(t *testing.T) {
	a := newApp(t, 0)
	ids := a.fill(100, good)
	hangs := ids[50]
	var sizes [][]int
	var hung int
	var cancel context.CancelFunc
	a.answer = func(_ *instance, items []writer.Item) error {
		if len(items) > 0 {
			sizes[len(sizes)-1] = append(sizes[len(sizes)-1], len(items))
		}
		err := killing(hangs, "timeout")(nil, items)
		if err != nil {
			e := fault.As(err)
			e.Err = context.DeadlineExceeded
			a.clock = a.clock.Add(30 * time.Second)
			if hung++; hung == 5 {
				cancel()
			}
		}
		return err
	}
	var err error
	for retry := range 5 {
		sizes, hung = append(sizes, nil), 0
		var ctx context.Context
		ctx, cancel = context.WithCancel(t.Context())
		_, err = a.instances[0].commit.Run(ctx, writer.Batch{Documents: a.instances[0].queue[0], Received: a.clock, RetryCount: retry})
		cancel()
		a.clock = a.clock.Add(10 * time.Second)
		require.False(t, a.instances[0].gate.Seen().State().Open(), "offer %d", retry)
		if err == nil {
			break
		}
		require.Equal(t, 0, a.depth(ids)["retries"])
	}
	require.NoError(t, err)
	var most []int
	for _, s := range sizes {
		most = append(most, slices.Max(s))
	}
	require.Equal(t, []int{100, 50, 25, 6, 1}, most)
	require.Equal(t, map[string]int{"committed": 99, "retry_scheduled": 1, "retries": 1}, a.depth(ids))
	require.Equal(t, writer.CodeBreaks, a.state(hangs)["last_error_code"])
}

func TestABatchThatComesAgainIsPlannedSmaller(t *testing.T) {
	t.Parallel()
	for retry, most := range map[int]int{0: 100, 1: 100, 2: 25, 3: 6, 4: 1, 5: 1, 1000: 1} {
		a := newApp(t, 0)
		a.fill(100, good)
		largest := 0
		a.answer = func(_ *instance, items []writer.Item) error {
			largest = max(largest, len(items))
			return nil
		}
		report, err := a.instances[0].commit.Run(t.Context(), writer.Batch{Documents: a.instances[0].queue[0], Received: a.clock, RetryCount: retry})
		require.NoError(t, err)
		require.Equal(t, most, largest, "offer %d", retry)
		require.Equal(t, 100, report.Outcomes["applied"])
	}
}

// A batch that fails for ever although its dependencies answer others must not hold the feed for ever. While the gate is
// open everything waits, and for a reason.
func TestABatchThatFailsForEverIsLeftToTheTimer(t *testing.T) {
	offer := func(a *app, retry int) (writer.Report, error) {
		return a.instances[0].commit.Run(t.Context(), writer.Batch{Documents: a.instances[0].queue[0], Received: a.clock, RetryCount: retry})
	}
	a := newApp(t, 0)
	ids := a.fill(3, good)
	a.faulty.onRecord = func(int) error { return down("cosmos") }
	_, err := offer(a, 20)
	require.Error(t, err, "twenty times it may be an outage")
	a.log.Reset()
	report, err := offer(a, 21)
	require.NoError(t, err)
	require.Equal(t, map[string]int{"left": 3}, report.Outcomes)
	require.Contains(t, a.log.String(), `"level":"error"`)
	require.Contains(t, a.log.String(), "left to the recovery timer")
	require.Equal(t, map[string]int{"pending": 3}, a.depth(ids))

	a.faulty.onRecord = nil
	a.clock = a.clock.Add(11 * time.Minute)
	_, err = writer.NewRecover(a.instances[0].commit, a.docs).Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, map[string]int{"committed": 3}, a.depth(ids), "the timer finds them")

	for name, shut := range map[string]func(a *app){
		"SQL is down": func(a *app) {
			a.answer = func(*instance, []writer.Item) error { return unreachable() }
			for range 5 {
				_, err := offer(a, 0)
				require.Error(t, err)
			}
		},
		"paused": func(a *app) { require.NoError(t, a.instances[0].gate.Pause(t.Context(), "ada", "x")) },
		"it opens meanwhile": func(a *app) {
			a.answer = func(*instance, []writer.Item) error { return errorOf(fault.Throttled) }
		},
	} {
		a := newApp(t, 0)
		ids := a.fill(3, good)
		shut(a)
		reads := a.faulty.reads
		report, err := offer(a, 1000)
		require.Error(t, err, name)
		require.Equal(t, map[string]int{"waiting": 3}, report.Outcomes, name)
		require.True(t, a.faulty.reads == reads || name == "it opens meanwhile", "nor is the container asked, which may be for hours")
		require.Equal(t, map[string]int{"pending": 3}, a.depth(ids))
	}
}
