package commit_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// aviary is a world whose Commit marks canaries.
type aviary struct {
	*world
	marked []string
	seen   commit.Seen
	// fails is the error of each mark.
	fails error
}

func newAviary(t *testing.T, lines ...int64) *aviary {
	t.Helper()
	a := &aviary{world: newWorld(t, lines...)}
	a.breaker, a.commit = a.instance("a", "v1", a.faulty, a.marks)
	return a
}

func (a *aviary) marks(o *commit.Options) {
	o.Instance = "a"
	o.MarkSeen = func(_ context.Context, d invoice.Snapshot, seen commit.Seen) error {
		a.marked, a.seen = append(a.marked, d.ETag), seen
		return a.fails
	}
}

// offer is that of world: only documents that are no canaries are counted.
func (a *aviary) offer(in commit.Delivery) commit.Report {
	a.t.Helper()
	in.Received = a.clock
	report, err := a.commit.Run(a.t.Context(), in)
	require.NoError(a.t, err)
	return report
}

// canaryOf is a document of doctor with more members.
func canaryOf(sysName, more string) string {
	return fmt.Sprintf(`{"id":"sqlwriter-canary-1","request_details":{"sys_name":%q,"id":"sqlwriter-canary-1"}%s}`,
		sysName, more)
}

// A canary is marked once, with its etag, and is in no count, log or measurement. One that is marked is left alone.
func TestACanaryIsMarkedOnceAndCountedNowhere(t *testing.T) {
	a := newAviary(t)
	canary := a.put(canaryOf("canary:web", ""))
	a.clock = a.clock.Add(20 * time.Minute)
	report := a.offer(commit.Delivery{Documents: canary})
	require.Equal(t, commit.Report{Outcomes: map[invoice.Outcome]int{}, Kinds: map[string]int{}}, report)
	require.Len(t, a.marked, 1)
	require.NotEmpty(t, a.marked[0])
	require.Equal(t, commit.Seen{At: a.clock, Build: "v1", Instance: "a"}, a.seen)

	a.fails = &fault.Error{Kind: fault.Contention, Condition: fault.Changed, Code: "412"}
	require.Zero(t, a.offer(commit.Delivery{Documents: canary, RetryCount: 1}).Documents)
	require.Len(t, a.marked, 2, "an old snapshot has an old etag")
	a.fails = &fault.Error{Kind: fault.Document, Condition: fault.Gone, Code: "404"}
	a.offer(commit.Delivery{Documents: canary})
	marked := a.put(canaryOf("canary:web", `,"seen":{"at":"2025-12-18T16:00:00Z"}`))
	require.Zero(t, a.offer(commit.Delivery{Documents: marked}).Documents)
	require.Len(t, a.marked, 3, "it is seen")

	require.Zero(t, a.faulty.writes+a.faulty.records+a.faulty.reads)
	view := a.breaker.View(t.Context())
	require.Zero(t, view.Control.Feed)
	require.Empty(t, view.Control.Skipped)
	require.Empty(t, a.log.String())
}

// What is not exactly a canary of this environment is treated as ever. That is also how a build that knows of none
// treats one: it is of another environment, and nothing tells of it, because nobody offered it.
func TestOnlyAnExactCanaryIsMarked(t *testing.T) {
	for name, doc := range map[string]string{
		"of another environment": canaryOf("canary:dev", ""),
		"of nobody":              canaryOf("canary:", ""),
		"of this environment":    canaryOf("web", ""),
		"with a state":           canaryOf("canary:web", `,"sql_writer":{"retry_count":0}`),
		"with a line":            canaryOf("canary:web", `,"invoice_details_from_rpa":{"IVCE_DTL_UID":1}`),
		"with another line":      canaryOf("canary:web", `,"post-processing":{"duplicate_detail_uids":[1]}`),
		"with another id":        `{"id":"canary-sqlwriter-canary-1","request_details":{"sys_name":"canary:web"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			a := newAviary(t, 1)
			report := a.offer(commit.Delivery{Documents: a.put(doc)})
			require.Equal(t, 1, report.Documents)
			require.Equal(t, 1, report.Outcomes[invoice.OutcomeSkipped]+report.Outcomes[invoice.OutcomeNotOffered])
			require.Empty(t, a.marked)
			require.Empty(t, a.breaker.View(t.Context()).Control.Skipped)
			require.Empty(t, a.log.String())
		})
	}
}

// The timer and a run count what they are given, and a shadow writes nothing.
func TestOnlyTheLiveFeedMarksACanary(t *testing.T) {
	a := newAviary(t)
	canary := a.put(canaryOf("canary:web", ""))
	for _, purpose := range []commit.Purpose{commit.FromTimer, commit.ForRun} {
		report := a.offer(commit.Delivery{Documents: canary, Purpose: purpose})
		require.Equal(t, map[invoice.Outcome]int{invoice.OutcomeSkipped: 1}, report.Outcomes)
	}
	o := commit.Options{SysName: "web", Now: func() time.Time { return a.clock }}
	a.marks(&o)
	report, err := commit.NewShadow(a.faulty, a.faulty, o).Run(t.Context(), commit.Delivery{Documents: canary})
	require.NoError(t, err)
	require.Empty(t, report.Outcomes)
	require.Empty(t, a.marked)
}

// Good documents beside a canary are recorded before it is marked. A mark that fails, or hangs, fails nothing.
func TestACanaryBesideGoodDocuments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAviary(t, 1, 2)
		batch := a.put(canaryOf("canary:web", ""), result(0, 1, "good", ""), result(1, 2, "good", ""))
		a.breaker, a.commit = a.instance("a", "v1", a.faulty, func(o *commit.Options) {
			o.MarkSeen = func(ctx context.Context, _ invoice.Snapshot, _ commit.Seen) error {
				require.Equal(t, 2, a.faulty.records)
				<-ctx.Done()
				return down("cosmos: mark")
			}
		})
		began := time.Now()
		report := a.offer(commit.Delivery{Documents: batch})
		require.Equal(t, map[invoice.Outcome]int{invoice.OutcomeApplied: 2}, report.Outcomes)
		require.Equal(t, 5*time.Second, time.Since(began))
		require.Contains(t, a.log.String(), `"level":"warn","event":"canary_not_marked"`)
	})
}

// A canary of a batch that waits for SQL is not marked until the batch is done, as any document behind it.
func TestACanaryOfABatchThatWaitsIsNotMarked(t *testing.T) {
	a := newAviary(t, 1)
	batch := commit.Delivery{Documents: a.put(canaryOf("canary:web", ""), result(0, 1, "good", "")), Received: a.clock}
	a.away(true)
	report, err := a.commit.Run(t.Context(), batch)
	require.True(t, fault.IsDependency(err))
	require.Equal(t, map[invoice.Outcome]int{invoice.OutcomeWaiting: 1}, report.Outcomes)
	require.Empty(t, a.marked)
	a.away(false)
	a.clock = a.clock.Add(2 * time.Minute)
	a.offer(batch)
	require.Len(t, a.marked, 1)
}
