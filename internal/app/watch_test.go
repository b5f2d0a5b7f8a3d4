package app

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/run"
	"sqlwriter/test/inmem"
)

// sharing are two instances of an app.
func sharing(t *testing.T) (control *inmem.Control, a, b *App) {
	t.Helper()
	control = inmem.NewControl()
	a, b = bare(t), bare(t)
	a.useBreaker(breaker.New(control, breaker.Options{Instance: "a"}))
	b.useBreaker(breaker.New(control, breaker.Options{Instance: "b"}))
	return control, a, b
}

// Every instance's Health shows what one of them sees, from the first failure on.
func TestHealthOfEveryInstanceShowsTheFirstFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, a, b := sharing(t)
		sql := watchedSink{inmem.NewSink(), a.status.seen}
		away := watchedSink{refusing{}, a.status.seen}
		_, err := sql.Apply(t.Context(), nil, commit.Preview, breaker.Heartbeat{})
		require.NoError(t, err)
		time.Sleep(time.Hour)
		down := time.Now()
		_, err = away.Heartbeat(t.Context(), breaker.Heartbeat{})
		require.Error(t, err)
		time.Sleep(6 * time.Second)
		b.breaker.View(t.Context())
		for _, is := range []*App{a, b} {
			r := is.status.report()
			require.Equal(t, breaker.DependencyFailing, r.Dependencies[depSQL].State)
			require.Equal(t, []string{"infrastructure", "refused"},
				[]string{r.Dependencies[depSQL].Kind, r.Dependencies[depSQL].Code})
			require.True(t, down.Equal(r.Dependencies[depSQL].Since))
			require.Equal(t, stateUnknown, r.Dependencies[depBlob].State)
			require.Equal(t, "running", r.Flow.State)
		}
		_, err = sql.Apply(t.Context(), nil, commit.Preview, breaker.Heartbeat{})
		require.NoError(t, err)
		require.Equal(t, breaker.DependencyOK, a.status.report().Dependencies[depSQL].State)
	})
}

// refusing is a database that nobody reaches.
type refusing struct{ commit.Sink }

func (refusing) Heartbeat(context.Context, breaker.Heartbeat) (breaker.Heartbeat, error) {
	return breaker.Heartbeat{}, fault.New(fault.Infrastructure, "test", "refused", "nobody listens")
}

// Every instance says once a minute what it committed, and at its end.
func TestAnInstanceSaysWhatItCommitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		control, a, _ := sharing(t)
		counted := func() int64 {
			all, err := control.LoadStatuses(t.Context(), time.Time{})
			require.NoError(t, err)
			if len(all) == 0 {
				return 0
			}
			return all[0].Committed
		}
		ctx, end := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			a.tell(ctx)
		}()
		a.breaker.Committed(3)
		time.Sleep(61 * time.Second)
		require.EqualValues(t, 3, counted())
		a.breaker.Committed(4)
		end()
		<-ended
		require.EqualValues(t, 7, counted())
	})
}

// The recovery timer's windows are all that an idle app asks Cosmos DB.
func TestTheWindowsOfTheTimerAreAnswersOfCosmos(t *testing.T) {
	_, a, _ := sharing(t)
	documents := inmem.NewDocuments(time.Now)
	for _, want := range []string{breaker.DependencyFailing, breaker.DependencyOK} {
		ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
		if want == breaker.DependencyOK {
			ctx = t.Context()
		}
		_, err := watchedFinder{
			documents, a.status.seen,
		}.Find(ctx, commit.Query{SysName: "web", Window: commit.Blamed, Size: 1}, "")
		cancel()
		require.Equal(t, want == breaker.DependencyOK, err == nil, "%v", err)
		require.Equal(t, want, a.status.report().Dependencies[depCosmos].State)
	}
}

// The recovery timer's look into the queues is all that an idle app asks Service Bus.
func TestALookIntoAQueueIsAnAnswerOfServiceBus(t *testing.T) {
	_, a, _ := sharing(t)
	look := func(err error) {
		_, _, got := watchedMessages{silentQueue{err}, a.status.seen}.Count(t.Context(), 1)
		require.Equal(t, err, got)
	}
	state := func() string { return a.status.report().Dependencies[depServiceBus].State }
	look(fault.New(fault.Infrastructure, "test", "unauthorized", "no right to listen"))
	require.Equal(t, stateUnknown, state())
	look(fault.New(fault.Infrastructure, "test", "refused", "nobody listens"))
	require.Equal(t, breaker.DependencyFailing, state())
	look(nil)
	require.Equal(t, breaker.DependencyOK, state())
}

// Of many messages one that the service did not take is enough.
func TestASendThatFailsInPartIsAFailureOfServiceBus(t *testing.T) {
	_, a, _ := sharing(t)
	away := fault.New(fault.Infrastructure, "test", "refused", "nobody listens")
	errs := watchedQueue{sentQueue{nil, away, nil}, a.status.seen}.Send(t.Context(), make([]run.Outgoing, 3))
	require.Equal(t, []error{nil, away, nil}, errs)
	require.Equal(t, breaker.DependencyFailing, a.status.report().Dependencies[depServiceBus].State)
}

// sentQueue is a queue that answers so.
type sentQueue []error

func (q sentQueue) Send(context.Context, []run.Outgoing) []error { return q }

// silentQueue is a queue that answers with an error.
type silentQueue struct{ err error }

func (q silentQueue) Count(context.Context, int) (active, deadLettered ops.Count, err error) {
	return ops.Count{}, ops.Count{}, q.err
}
