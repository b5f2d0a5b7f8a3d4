package commit_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
)

// failureList keeps the failures in memory, one element for each request.
type failureList struct {
	requests [][]commit.DocumentResult
	err      error
	deadline time.Duration
	ended    error // of the context
}

func (l *failureList) Add(ctx context.Context, failures []commit.DocumentResult) error {
	l.requests = append(l.requests, failures)
	end, _ := ctx.Deadline()
	l.deadline = time.Until(end)
	l.ended = ctx.Err()
	return l.err
}

// storesFailures makes the world's instance store failures.
func (w *world) storesFailures() *failureList {
	list := &failureList{}
	w.breaker, w.commit = w.instance("a", "v1", w.faulty, func(o *commit.Options) {
		o.Failures, o.Log = list, zerolog.New(zerolog.SyncWriter(&w.log))
	})
	return list
}

// bads puts documents that fail by themselves.
func (w *world) bads(n int) []json.RawMessage {
	docs := make([]string, n)
	for i := range docs {
		docs[i] = result(i%60, int64(100+i), tooLong(), "")
	}
	return w.put(docs...)
}

func TestFailuresOfTheFeedAndTheTimerAreStored(t *testing.T) {
	w := newWorld(t, 1)
	list := w.storesFailures()
	good, long := result(1, 1, "ACME", ""), result(2, 2, tooLong(), "")
	missing := result(3, 3, "ACME", "")
	unreadable := strings.Replace(result(4, 4, "ACME", ""), `"IVCE_DTL_UID":4`, `"IVCE_DTL_UID":"4a"`, 1)
	w.run(w.put(good, long, missing, unreadable)...)
	require.Len(t, list.requests, 1, "one request for the whole batch")
	found := map[string]commit.DocumentResult{}
	for _, f := range list.requests[0] {
		require.NotEmpty(t, f.Reason)
		require.NotContains(t, f.Reason, tooLong(), "no content")
		f.Reason = ""
		found[f.ID] = f
	}
	failed := func(doc string, line int64, code string) commit.DocumentResult {
		return commit.DocumentResult{
			ID: idOf(t, doc), Line: line, Outcome: "retry_scheduled", Kind: fault.Document, Code: code, RetryCount: 1, Again: true,
		}
	}
	require.Equal(t, map[string]commit.DocumentResult{
		idOf(t, long): failed(long, 2, "validation.too_long"), idOf(t, missing): failed(missing, 3, "missing_detail_row"),
		idOf(t, unreadable): failed(unreadable, 0, "validation.id"),
	}, found)

	w.clock = w.clock.Add(time.Hour)
	w.retry(idOf(t, long))
	require.Len(t, list.requests, 2, "each try of the timer is stored")
	w.clock = w.clock.Add(time.Hour)
	w.run(w.put(good)...)
	require.Len(t, list.requests, 2, "no failure, no request")
	_, err := w.batch(commit.Batch{Documents: w.snapshots(idOf(t, long)), Purpose: commit.ForRun})
	require.NoError(t, err)
	require.Len(t, list.requests, 2, "a run stores its failures with its batch")
}

// An outage, a lock and a lost race are no failures of documents.
func TestWhatIsPutOffIsNotStored(t *testing.T) {
	for _, err := range []error{
		down("sql: apply"), fault.New(fault.Contention, "sql: apply", "1222", "a lock"), fault.New(fault.Throttled, "sql: apply", "40501", "busy"),
	} {
		w := newWorld(t, 1, 2)
		list := w.storesFailures()
		w.faulty.onApply = func(int) error { return err }
		for minute := range 10 {
			_, _ = w.offer(minute, w.put(result(1, 1, "ACME", ""), result(2, 2, "ACME", ""))...)
			w.clock = w.clock.Add(time.Minute)
		}
		require.Empty(t, list.requests, "%v", err)
	}
}

func TestNothingIsStoredUnlessTheBreakerIsClosed(t *testing.T) {
	w := newWorld(t, 1)
	list := w.storesFailures()
	require.NoError(t, w.breaker.Pause(t.Context(), "ann", "a test"))
	require.NoError(t, w.breaker.Resume(t.Context(), "ann", "a test"))
	w.run(w.bads(1)...)
	require.NotEqual(t, "running", string(w.breaker.Seen().Control.Breaker.Flow()))
	require.Empty(t, list.requests)
	require.Contains(t, w.log.String(), `"event":"failures_left_out","documents":1`)
	require.Contains(t, w.log.String(), "failures of documents are not stored")
}

// A failure to store changes nothing: the batch is answered as without it, and the breaker learns nothing. The next minute
// has no request, so a slow table delays the feed by two seconds a minute at most.
func TestFailuresThatCannotBeStoredStopNothing(t *testing.T) {
	w := newWorld(t, 1, 2, 3)
	list := w.storesFailures()
	list.err = down("sql: add errors")
	for i := range 20 {
		report := w.run(append(w.put(result(i, 1, fmt.Sprint("ACME ", i), "")), w.bads(2)...)...)
		require.Equal(t, 1, report.Outcomes["applied"])
		require.Equal(t, 2, report.Outcomes["retry_scheduled"])
		w.clock = w.clock.Add(10 * time.Second)
	}
	require.Len(t, list.requests, 4, "200 s, a request each minute")
	require.LessOrEqual(t, list.deadline, 2*time.Second)
	require.False(t, w.opened())
	require.Contains(t, w.log.String(), `"event":"failures_not_stored","kind":"infrastructure","code":"eof"`)

	list.err = nil
	w.clock = w.clock.Add(time.Minute)
	ended, cancel := context.WithCancel(t.Context())
	w.faulty.afterApply = func(int) error { cancel(); return nil }
	_, err := w.commit.Run(ended, commit.Batch{Documents: append(w.put(result(50, 3, "ACME", "")), w.bads(2)...)})
	require.NoError(t, err)
	require.Len(t, list.requests, 5)
	require.NoError(t, list.ended, "the end of the invocation does not end it")
}

// A sender that makes bad documents in a loop cannot fill the database.
func TestTheNumberOfStoredFailuresIsBounded(t *testing.T) {
	w := newWorld(t, 1)
	list := w.storesFailures()
	stored := func() (n int) {
		for _, r := range list.requests {
			require.LessOrEqual(t, len(r), 100)
			n += len(r)
		}
		return n
	}
	w.run(w.bads(120)...)
	require.Equal(t, 100, stored(), "of one batch")
	for range 110 {
		w.run(w.bads(100)...)
	}
	require.Equal(t, 10_000, stored(), "of one hour")
	w.clock = w.clock.Add(time.Hour)
	w.run(w.bads(1)...)
	require.Equal(t, 10_001, stored())
}

// A shadow's login may not write.
func TestAShadowStoresNoFailures(t *testing.T) {
	w := newWorld(t, 1)
	list := w.storesFailures()
	shadow := commit.NewShadow(w.faulty, w.faulty, commit.Options{SysName: "web", Breaker: w.breaker, Failures: list})
	report, err := shadow.Run(t.Context(), commit.Batch{Documents: w.bads(2)})
	require.NoError(t, err)
	require.Equal(t, 2, report.Outcomes["would_be_retry_scheduled"])
	require.Empty(t, list.requests)
}
