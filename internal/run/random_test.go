package run_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/run"
	"sqlwriter/test/inmem"
)

// bubbleT records a failure inside a bubble, for the test outside.
type bubbleT struct {
	failed bool
	text   strings.Builder
}

type failNow struct{}

func (n *bubbleT) Helper() {}

func (n *bubbleT) Errorf(format string, args ...any) {
	n.failed = true
	n.Logf(format, args...)
}

func (n *bubbleT) Logf(format string, args ...any) { fmt.Fprintf(&n.text, format+"\n", args...) }

func (n *bubbleT) FailNow() {
	n.failed = true
	panic(failNow{})
}

// incident is one thing that goes wrong.
type incident struct {
	After time.Duration
	What  string
	Who   int
	For   time.Duration
	Step  int
}

// now is what a document of a history says, after changes.
type now struct {
	says  string
	lines []int64
	gone  bool
}

// history is a random sequence of incidents.
type history struct {
	Documents   int
	Rate        int
	Outstanding int
	Duplicates  bool
	// Skews are how far the instances' clocks are off.
	Skews  []time.Duration
	Events      []incident
}

func drawHistory(t *rapid.T) history {
	minutes := func(label string, most int) time.Duration {
		return time.Duration(rapid.IntRange(0, most*60).Draw(t, label)) * time.Second
	}
	s := history{
		Documents:   rapid.IntRange(1, 30).Draw(t, "documents"),
		Rate:        rapid.SampledFrom([]int{6, 18, 30}).Draw(t, "rate"), // batches of 1, 3 and 5
		Outstanding: rapid.IntRange(1, 4).Draw(t, "outstanding"),
		Duplicates:  rapid.Bool().Draw(t, "duplicates"),
	}
	for range 5 {
		s.Skews = append(s.Skews, time.Duration(rapid.IntRange(-600, 600).Draw(t, "skew"))*time.Second)
	}
	for range rapid.IntRange(0, 8).Draw(t, "events") {
		s.Events = append(s.Events, incident{
			After: minutes("after", 3),
			What: rapid.SampledFrom([]string{
				"kill", "kill", "kill", "restart", "duplicate", "lose", "queue down", "answer lost", "sql down",
				"pause", "cancel", "edit", "more lines", "fewer lines", "key", "delete",
			}).Draw(t, "what"),
			Who: rapid.IntRange(0, 4).Draw(t, "who"), For: minutes("for", 20),
			Step: rapid.IntRange(1, 40).Draw(t, "step"),
		})
	}
	return s
}

// Crashes, duplicates, losses, delays, outages and cancellations, with three workers and two managers.
func TestRandomHistories(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		s := drawHistory(rt)
		n := &bubbleT{}
		synctest.Test(t, func(*testing.T) {
			w := newWorld(n)
			defer w.close()
			defer func() {
				if r := recover(); r != nil && r != (failNow{}) {
					panic(r)
				}
			}()
			w.play(s)
		})
		if n.failed {
			rt.Fatalf("%+v\n%s", s, n.text.String())
		}
	})
}

// play executes a history and checks how it ends.
func (w *world) play(s history) {
	w.fill(s.Documents)
	edited := map[int]*now{}
	w.outstanding = s.Outstanding
	if !s.Duplicates {
		w.batches.DetectDuplicates(0)
	}
	instances := make([]*instance, 5)
	w.skews = map[string]time.Duration{}
	for k, skew := range s.Skews {
		w.skews[fmt.Sprint("i", k)] = skew
	}
	launch := func(k int) {
		if instances[k] = w.instance(fmt.Sprint("i", k)); k < 2 {
			instances[k].manage()
		} else {
			instances[k].work()
		}
	}
	for k := range instances {
		launch(k)
	}
	w.instance("timer").tick().deadLetters()
	operator := w.instance("operator")
	store := operator.store() // an operator's changes are checked, too
	w.start(run.Run{Rate: s.Rate}, run.Filter{})
	by := func(code string) run.Audit { return run.Audit{Action: code, Level: run.LevelInfo, By: "ann", Why: "x"} }
	for _, e := range s.Events {
		time.Sleep(e.After)
		switch e.What {
		case "kill":
			instances[e.Who].killAfter(e.Step)
		case "restart":
			if instances[e.Who].isDead() {
				launch(e.Who)
			}
		case "duplicate":
			if m := w.batches.Messages(); len(m) > 0 {
				w.batches.PutBack(run.Incoming{ID: m[0].ID, Body: m[0].Body, EnqueuedAt: time.Now()})
				w.batches.Signal()
			}
		case "lose":
			w.batches.Lose()
		case "queue down":
			w.batches.Always(inmem.QueueDown())
			w.runs.Always(inmem.QueueDown())
			time.Sleep(e.For)
			w.batches.Mend()
			w.runs.Mend()
		case "answer lost":
			w.batches.Plan(inmem.QueueLosesAnswer())
			w.runs.Plan(inmem.QueueLosesAnswer())
		case "sql down":
			w.sql(false)
			time.Sleep(e.For)
			w.sql(true)
		case "pause":
			require.NoError(w.t, operator.breaker.Pause(w.ctx, "ann", "x"))
		case "cancel":
			_, err := store.CancelRun(w.ctx, "run-1", by(run.CodeRunCancel))
			require.NoError(w.t, err)
		default:
			w.edit(e, 1+e.Step%s.Documents, edited)
		}
	}

	// Everything is back, every process lives, and failed work is requeued.
	w.batches.Mend()
	w.runs.Mend()
	w.sql(true)
	for k := range instances {
		if !instances[k].isDead() {
			instances[k].killAfter(1 << 30)
		}
		if instances[k].isDead() {
			launch(k)
		}
	}
	require.NoError(w.t, operator.breaker.Resume(w.ctx, "ann", "x"))
	w.waitForEnd("run-1", 3*time.Hour)
	for _, batch := range w.store.AllBatches() {
		require.False(w.t, batch.Status.Open(), "%+v", batch)
	}
	if w.run("run-1").Status != run.RunCompleted {
		ok, err := store.ResumeRun(w.ctx, "run-1", by(run.CodeRunResume))
		require.NoError(w.t, err)
		require.True(w.t, ok)
		w.waitForEnd("run-1", 3*time.Hour)
	}
	for _, batch := range w.store.AllBatches() {
		if batch.Status == run.Failed {
			ok, err := store.RequeueBatch(w.ctx, batch.ID, by(run.CodeBatchRequeue))
			require.NoError(w.t, err)
			require.True(w.t, ok)
		}
	}
	w.waitForEnd("run-1", 3*time.Hour)
	time.Sleep(30 * time.Minute) // until the last dead worker is rescued
	w.addsUp("run-1", w.stats("run-1").Outcomes)
	w.checkDocuments(s, edited)
}

// edit is a newer result of the same document, also of one that was deleted. Lines above 100 are its own.
func (w *world) edit(e incident, number int, edited map[int]*now) {
	own := int64(number)
	is := edited[number]
	if is == nil {
		is = &now{lines: []int64{own}}
		edited[number] = is
	}
	switch e.What {
	case "delete":
		w.docs.Delete(docID(number))
		is.gone = true
		return
	case "more lines":
		is.lines = []int64{is.lines[0], own + 200}
	case "fewer lines":
		is.lines = is.lines[:1]
	case "key":
		is.lines[0] = 2*own + 100 - is.lines[0] // its other one
	}
	is.says, is.gone = fmt.Sprint(e.What, " ", e.Step), false
	w.putOn(number, is.says, `{"status":"pending","retry_count":0}`, is.lines...)
}

// checkDocuments checks that lines hold only contents of documents, and that committed documents are in their lines.
func (w *world) checkDocuments(s history, edited map[int]*now) {
	w.t.Helper()
	items, err := w.store.Items(context.Background(), "run-1", nil, "", 1000)
	require.NoError(w.t, err)
	has := map[string]bool{}
	for _, it := range items {
		has[it.Document] = true
	}
	for number := 1; number <= s.Documents; number++ {
		id, want := docID(number), edited[number]
		if want == nil {
			want = &now{says: fmt.Sprint("maker ", number), lines: []int64{int64(number)}}
			require.True(w.t, has[id], "every document has its batch: %s", id)
		}
		if want.gone {
			continue
		}
		switch st := w.state(id); st.Status {
		case invoice.Committed:
			for _, line := range want.lines {
				require.Equal(w.t, want.says, w.maker(int(line)), "line %d", line)
			}
		case invoice.Pending:
			require.Contains(w.t, edited, number, "only what was edited after its batch waits for the feed")
		default:
			require.Fail(w.t, "a document spent a retry", "%s: %+v", id, st)
		}
	}
}
