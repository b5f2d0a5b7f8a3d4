package writer_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/writer"
)

// refusedNULL is what a column that was made NOT NULL answers, or a trigger; it names no document.
func refusedNULL() error {
	return fault.New(fault.Document, "sql: apply", "515", "the column does not allow NULL")
}

// refuseAll makes the database refuse every write and answer everything else.
func (a *app) refuseAll() {
	a.answer = func(_ *instance, items []writer.Item) error {
		if items == nil {
			return nil
		}
		return refusedNULL()
	}
}

// committed counts the documents that are.
func (a *app) committed(ids []string) int { return a.depth(ids)["committed"] }

// settle lets the host offer until every queue is empty.
func (a *app) settle(bound time.Duration) {
	a.t.Helper()
	a.pass(bound)
	for _, i := range a.instances {
		require.Empty(a.t, i.queue, "%v", i.errs[max(0, len(i.errs)-1):])
	}
}

// systemic drains n documents with three instances until the schema changes in the middle. It answers the documents, and what
// is known of them then.
func systemic(t *testing.T, n int) (a *app, ids []string, stopped map[string]int) {
	t.Helper()
	a = newApp(t, 0, time.Second, 2*time.Second)
	ids = a.fill(n, good)
	a.host()
	stopped = a.depth(ids)
	require.GreaterOrEqual(t, stopped["committed"], 100)
	require.GreaterOrEqual(t, stopped["pending"], 200)
	a.refuseAll()
	a.clock = a.clock.Add(time.Second)
	a.host()
	state := a.shared()
	require.True(t, state.Open())
	require.Equal(t, fault.Systemic, state.Kind)
	require.Equal(t, "515", state.Code)
	require.Equal(t, a.clock.Add(5*time.Minute), state.OpenUntil)
	require.Equal(t, 1, strings.Count(a.log.String(), `"kind":"systemic"`), "said once by each that knows")
	require.Equal(t, stopped, a.depth(ids), "nobody is blamed, no retry is spent")
	return a, ids, stopped
}

// A schema that every document fails on, in mid-drain: everything stops, a few documents that were not tried before are tried
// after 5 minutes, 15 minutes, an hour; and after the fix all is written.
func TestASchemaThatRefusesEverythingStopsEverything(t *testing.T) {
	t.Parallel()
	a, ids, stopped := systemic(t, 500)
	tried := map[string]bool{}
	for _, id := range a.alone {
		tried[id] = true
	}
	require.GreaterOrEqual(t, len(tried), 20)
	for _, wait := range []time.Duration{5 * time.Minute, 15 * time.Minute, time.Hour} {
		a.asked, a.alone = nil, nil
		due := a.shared().OpenUntil
		require.InDelta(t, wait.Seconds(), due.Sub(a.clock).Seconds(), 5)
		a.clock = due.Add(-11 * time.Second)
		a.pass(11 * time.Second)
		require.Empty(t, a.asked, "SQL is left alone for %s", wait)
		a.pass(12 * time.Second)
		require.NotEmpty(t, a.alone)
		fresh := map[string]bool{}
		for _, id := range a.alone {
			require.False(t, tried[id], "%s was tried before", id)
			fresh[id] = true
		}
		require.Len(t, fresh, 5)
		for id := range fresh {
			tried[id] = true
		}
		require.Equal(t, stopped, a.depth(ids))
	}
	a.answer = nil
	a.clock = a.shared().OpenUntil.Add(-11 * time.Second)
	a.pass(11 * time.Second)
	require.Equal(t, stopped, a.depth(ids))
	a.settle(31 * time.Second)
	require.Equal(t, map[string]int{"committed": 500}, a.depth(ids))
	require.Empty(t, a.evidence.Files())
}

// An operator who mended the schema need not wait, nor does another build.
func TestResumeOrAnotherVersionEndsASystemicStopAtOnce(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(a *app){
		"resume": func(a *app) { require.NoError(t, a.instances[0].gate.Resume(t.Context(), "ada")) },
		"another version": func(a *app) {
			g := writer.NewGate(a.control, writer.GateOptions{Instance: "new", Version: "v2", Now: func() time.Time { return a.clock }})
			require.False(t, g.View(t.Context()).State().Open(), "a look is enough")
		},
	} {
		a, ids, stopped := systemic(t, 300)
		a.pass(10 * time.Second)
		require.Equal(t, stopped, a.depth(ids))
		a.answer = nil
		end(a)
		a.settle(31 * time.Second)
		require.Equal(t, map[string]int{"committed": 300}, a.depth(ids), name)
	}
}

// The same version coming back (a restart) closes nothing, and one that helps nothing is stopped again before it blames anybody.
func TestAnotherVersionThatHelpsNothingIsStoppedAgain(t *testing.T) {
	t.Parallel()
	a, ids, stopped := systemic(t, 300)
	same := writer.NewGate(a.control, writer.GateOptions{Instance: "restarted", Version: "v1", Now: func() time.Time { return a.clock }})
	require.True(t, same.View(t.Context()).State().Open())
	require.NoError(t, same.Resume(t.Context(), "ada"))
	a.pass(31 * time.Second)
	state := a.shared()
	require.Equal(t, fault.Systemic, state.Kind)
	require.True(t, state.Open())
	require.Equal(t, stopped, a.depth(ids))
}

// The schema changes in the middle of a request that is being divided because of one bad document. That one pays; those that
// failed since the last success do not, although neighbours in the same request were written.
func TestASchemaThatChangesInTheMiddleOfARequestBlamesNobody(t *testing.T) {
	a := newApp(t, 0)
	ids := a.fill(100, func(i int) string { return result(i%60, int64(i+1), "maker", "") })
	writes := 0
	a.answer = func(_ *instance, items []writer.Item) error {
		if items == nil {
			return nil
		}
		if slices.ContainsFunc(items, func(it writer.Item) bool { return it.DocumentID == ids[0] }) {
			return fault.New(fault.Document, "sql: apply", "2628", "too long")
		}
		if writes++; writes > 5 {
			return refusedNULL()
		}
		return nil
	}
	a.host()
	state := a.shared()
	require.Equal(t, fault.Systemic, state.Kind)
	require.Equal(t, "515", state.Code)
	depth := a.depth(ids)
	require.Positive(t, depth["committed"])
	require.Equal(t, map[string]int{"committed": depth["committed"], "retry_scheduled": 1, "retries": 1, "pending": 99 - depth["committed"]}, depth)
	require.Equal(t, "2628", a.state(ids[0])["last_error_code"])
}

// With five documents an hour it takes hours until twenty have failed. Until then their retries are spent, but none of them
// ends: nothing else was written since they first failed.
func TestASchemaThatRefusesEverythingFailsNobodyAtFiveDocumentsAnHour(t *testing.T) {
	t.Parallel()
	a := newApp(t, 0)
	i := a.instances[0]
	timer := a.more("timer", 0)
	recovery := writer.NewRecover(timer.commit, a.docs)
	a.refuseAll()
	var ids []string
	var stopped time.Time
	tick := func(after time.Duration) {
		if len(i.queue) > 0 {
			i.next = a.clock
			a.host()
		}
		_, err := recovery.Run(t.Context())
		require.True(t, err == nil || fault.IsDependency(err))
		a.clock = a.clock.Add(after)
		if state := timer.gate.Seen().State(); stopped.IsZero() && state.Open() {
			require.Equal(t, fault.Systemic, state.Kind)
			require.Equal(t, "515", state.Code)
			stopped = a.clock
		}
	}
	for hour := range 12 {
		var docs []string
		for n := range 5 {
			line := int64(hour*5 + n + 1)
			a.sink.AddLines(line)
			docs = append(docs, result(hour, line, "maker", ""))
			ids = append(ids, idOf(t, docs[n]))
		}
		i.queue = append(i.queue, a.put(docs...))
		every := 5 * time.Minute
		if hour >= 6 { // only the wait for the next probe is left
			every = 15 * time.Minute
		}
		for range time.Hour / every {
			tick(every)
		}
		require.Zero(t, a.depth(ids)["failed"])
	}
	require.InDelta(t, 4, stopped.Sub(start()).Hours(), 1, "the twentieth document")
	require.Contains(t, a.log.String(), "no other document was written since it first failed")
	require.Empty(t, a.evidence.Files())

	a.answer = nil
	require.NoError(t, timer.gate.Resume(t.Context(), "ada"))
	for range 24 {
		tick(5 * time.Minute)
	}
	require.Equal(t, 60, a.committed(ids))
	require.Equal(t, map[string]int{"committed": 60, "retries": a.depth(ids)["retries"]}, a.depth(ids))
}

// A validation rule that every document breaks is a build's fault in the same way: the code is ours then.
func TestAValidationThatRefusesEverythingStopsEverything(t *testing.T) {
	t.Parallel()
	a := newApp(t, 0, time.Second)
	ids := a.fill(200, func(i int) string { return result(i%60, int64(i+1), tooLong(), "") })
	a.pass(12 * time.Second)
	state := a.shared()
	require.True(t, state.Open())
	require.Equal(t, fault.Systemic, state.Kind)
	require.Contains(t, state.Code, "validation.")
	require.Empty(t, a.asked, "nothing of it was sent to SQL")
	require.Equal(t, map[string]int{"pending": 200}, a.depth(ids))

	before := len(a.tried(state.Code))
	a.clock = state.OpenUntil.Add(-5 * time.Second)
	a.pass(16 * time.Second)
	state = a.shared()
	require.InDelta(t, 15*60, state.OpenUntil.Sub(a.clock).Seconds(), 20, "the second wait")
	require.Len(t, a.tried(state.Code), before+5)
	require.Equal(t, map[string]int{"pending": 200}, a.depth(ids))

	var mended []string
	for i := range 200 {
		mended = append(mended, good(i))
	}
	a.put(mended...)
	a.clock = state.OpenUntil
	a.settle(40 * time.Second)
	require.Equal(t, map[string]int{"committed": 200}, a.depth(ids))
}

// shared is the gate as the control document has it.
func (a *app) shared() writer.GateState {
	a.t.Helper()
	c, _, err := a.control.Load(a.t.Context())
	require.NoError(a.t, err)
	return c.Gate
}

// tried are the documents that the control document names for a code.
func (a *app) tried(code string) []string {
	a.t.Helper()
	c, _, err := a.control.Load(a.t.Context())
	require.NoError(a.t, err)
	for _, s := range c.Suspects {
		if s.Code == code {
			return s.Documents
		}
	}
	return nil
}

// A hundred bad documents among four hundred good ones are a hundred bad documents, wherever they stand: the gate stays
// closed, the good ones are written, each bad one is at its first retry at the right time.
func TestBadDocumentsAmongGoodOnesStopNobody(t *testing.T) {
	t.Parallel()
	shuffled := rand.New(rand.NewPCG(1, 1)).Perm(500)[:100]
	cases := map[string][]int{"shuffled": shuffled}
	for _, block := range []int{85, 235} {
		// thirty in a row, the others shuffled
		bad := []int{}
		for i := range 30 {
			bad = append(bad, block+i)
		}
		for _, i := range shuffled {
			if len(bad) < 100 && !slices.Contains(bad, i) {
				bad = append(bad, i)
			}
		}
		cases[fmt.Sprint("thirty in a row from ", block)] = bad
	}
	for name, bad := range cases {
		for _, by := range []string{"the server", "validation"} {
			if by == "validation" && name != "shuffled" {
				continue // where they stand makes no difference before SQL
			}
			t.Run(name+" by "+by, func(t *testing.T) {
				a := newApp(t, 0)
				lines := map[int64]bool{}
				for _, i := range bad {
					lines[int64(i+1)] = true
				}
				ids := a.fill(500, func(i int) string {
					if lines[int64(i+1)] && by == "validation" {
						return result(i%60, int64(i+1), tooLong(), "")
					}
					return good(i)
				})
				a.answer = func(_ *instance, items []writer.Item) error {
					if by == "the server" && slices.ContainsFunc(items, func(it writer.Item) bool { return lines[it.Main] }) {
						return refusedNULL()
					}
					return nil
				}
				a.host()
				require.Empty(t, a.instances[0].queue)
				require.False(t, a.instances[0].gate.Seen().State().Open())
				require.NotContains(t, a.log.String(), "gate:")
				require.Equal(t, map[string]int{"committed": 400, "retry_scheduled": 100, "retries": 100}, a.depth(ids))
				for _, i := range bad {
					s := a.state(ids[i])
					require.Equal(t, 1.0, s["retry_count"])
					require.Equal(t, float64(start().Unix()+132), s["retry_after"], "120 s plus half of 20 %")
					require.Equal(t, "document", s["last_error_kind"])
				}
			})
		}
	}
}

// A batch that ends with thirty bad documents cannot be told from a bad schema, and is not: nobody pays. As soon as others
// wait beside them, a probe that takes documents not tried before finds one that is written, and each gets its due.
func TestABatchThatEndsWithBadDocumentsEndsWhenOthersCome(t *testing.T) {
	for _, before := range []int{0, 30} {
		a := newApp(t, 0)
		ids := a.fill(90, good)
		batch := slices.Concat(a.snapshots(ids[60:60+before]...), a.snapshots(ids[:30]...))
		a.instances[0].queue = [][]json.RawMessage{batch}
		a.answer = func(_ *instance, items []writer.Item) error {
			if slices.ContainsFunc(items, func(it writer.Item) bool { return it.Main <= 30 }) {
				return refusedNULL()
			}
			return nil
		}
		a.host()
		require.Equal(t, fault.Systemic, a.shared().Kind)
		require.Zero(t, a.depth(ids)["retries"])
		require.Equal(t, before, a.committed(ids))

		recovery := writer.NewRecover(a.more("timer", 0).commit, a.docs) // in whose batches the others stand
		for range 6 {                                                    // half an hour
			a.clock = a.clock.Add(5*time.Minute + 15*time.Second)
			a.host() // always before the timer
			_, err := recovery.Run(t.Context())
			require.True(t, err == nil || fault.IsDependency(err))
		}
		a.host()
		require.Equal(t, map[string]int{"committed": 60, "retry_scheduled": 30, "retries": 30}, a.depth(ids))
		require.False(t, a.shared().Open())
		require.Empty(t, a.instances[0].queue)
	}
}

// Suspicion is shared: what fails here and there adds up, and one success anywhere clears it.
func TestSuspicionIsSharedByAllInstances(t *testing.T) {
	for _, cleared := range []bool{false, true} {
		a := newApp(t, 0, 0, 0, 0, 0)
		a.batch = 5
		ids := a.fill(25, good)
		fresh := a.put(result(59, 25, "another", ""))
		a.refuseAll()
		for n, i := range a.instances {
			if n == 3 && cleared {
				a.answer = nil
				_, err := a.instances[0].commit.Run(t.Context(), writer.Batch{Documents: fresh, Received: a.clock})
				require.NoError(t, err)
				a.refuseAll()
			}
			a.clock = a.clock.Add(5 * time.Second)
			_, err := i.commit.Run(t.Context(), writer.Batch{Documents: i.queue[0], Received: a.clock})
			require.Equal(t, !cleared && n >= 3, err != nil, "cleared %t, instance %d: %v", cleared, n, err)
		}
		if cleared {
			require.Equal(t, 25, a.depth(ids)["retry_scheduled"])
		} else {
			require.Equal(t, map[string]int{"retry_scheduled": 15, "retries": 15, "pending": 10}, a.depth(ids))
		}
	}
}

// Twenty documents are no evidence when their codes differ, nor is one document twenty times.
func TestSuspicionIsByCodeAndByDocument(t *testing.T) {
	a := newApp(t, 0)
	ids := a.fill(38, good)
	a.answer = func(_ *instance, items []writer.Item) error {
		if items == nil {
			return nil
		}
		return fault.New(fault.Document, "sql: apply", fmt.Sprint(500+items[0].Main%2), "no")
	}
	a.host()
	require.Equal(t, 38, a.depth(ids)["retry_scheduled"], "nineteen of each code")
	for range 30 {
		a.clock = a.clock.Add(2 * time.Hour)
		_, err := a.instances[0].commit.Run(t.Context(), writer.Batch{Documents: a.snapshots(ids[0]), Received: a.clock})
		require.NoError(t, err)
	}
	require.False(t, a.instances[0].gate.Seen().State().Open())
}

// over makes a Commit behind a gate with options of its own.
func (w *world) over(gate *writer.Gate) *writer.Commit {
	return writer.NewCommit(w.faulty, w.faulty, writer.Options{
		SysName: "web", Now: func() time.Time { return w.clock }, Draw: func() float64 { return 0.5 }, Parallel: 1,
		Log: zerolog.New(&w.log), Gate: gate, Evidence: w.evidence,
	})
}

// The app makes no more poison pills in an hour than it is allowed; the others wait for the next one.
func TestMoreThanTheHoursPoisonPillsWait(t *testing.T) {
	w := newWorld(t, 1, 2, 3)
	var docs []string
	for line := range int64(3) {
		docs = append(docs, result(int(line), line+1, tooLong(), spent()))
	}
	var gates []*writer.Gate
	var commits []*writer.Commit
	for _, name := range []string{"a", "b"} {
		g := writer.NewGate(w.control, writer.GateOptions{
			Instance: name, Version: "v1", MaxPoisonPerHour: 2, Now: func() time.Time { return w.clock },
		})
		gates = append(gates, g)
		commits = append(commits, w.over(g))
	}
	w.contrast()
	batch := w.put(docs...)
	id := idOf(t, docs[2])
	for n := range 2 {
		w.clock = w.clock.Add(10 * time.Second)
		report, err := commits[n].Run(t.Context(), writer.Batch{Documents: batch[n : n+1], Received: w.clock})
		require.NoError(t, err)
		require.Equal(t, map[string]int{"failed": 1}, report.Outcomes)
	}
	w.log.Reset()
	_, err := commits[0].Run(t.Context(), writer.Batch{Documents: batch[2:], Received: w.clock})
	require.NoError(t, err)
	s := w.state(id)
	require.Equal(t, "retry_scheduled", s["status"])
	require.Equal(t, 5.0, s["retry_count"], "nothing is counted")
	require.Equal(t, float64(w.clock.Unix()+3600+360), s["retry_after"])
	require.Contains(t, w.log.String(), `"level":"error"`)
	require.Contains(t, w.log.String(), "enough poison pills were made in this hour")
	require.Len(t, w.evidence.Files(), 2*3)
	require.Equal(t, "NULL", w.value(3, "IVCE_DTL", "IVCE_LNE_STAT"))

	w.clock = time.Unix(int64(s["retry_after"].(float64)), 0)
	_, err = commits[1].Run(t.Context(), writer.Batch{Documents: w.snapshots(id), Received: w.clock})
	require.NoError(t, err)
	require.Equal(t, "failed", w.state(id)["status"])
	require.Equal(t, 1, gates[1].Seen().Control.Poison.Count, "the next hour counts anew")
}
