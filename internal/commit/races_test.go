package commit_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// Two contents within one second: the old one is written late over the committed new one, and the healing is cut off.
// The host offers the batch again, and "committed" must not stop it.
func TestAHealingThatWasCutShortIsDoneWhenTheBatchComesAgain(t *testing.T) {
	for _, where := range []string{"record", "reread", "apply"} {
		w := newWorld(t, 1)
		old := w.put(result(0, 1, "one", ""))
		w.run(w.put(result(0, 1, "two", ""))...) // the same second
		applied := w.faulty.writes
		switch where {
		case "record":
			w.faulty.onRecord = func(int) error { return down("cosmos") }
		case "reread":
			w.faulty.onRead = func(int) error { return down("cosmos") }
		case "apply":
			w.faulty.onApply = func(n int) error {
				if n > applied+1 {
					w.away(true)
					return down("sql")
				}
				return nil
			}
		}
		_, err := w.offer(0, old...)
		require.Error(t, err, where)
		require.Equal(t, "one", w.value(1, invoice.Detail, "CLN_MFR_AI_NM"), "the harm is done: %s", where)
		w.faulty.onRecord, w.faulty.onRead = nil, nil
		w.away(false)
		w.clock = w.clock.Add(2 * time.Minute) // the breaker's probe is due
		_, err = w.offer(1, old...)
		require.NoError(t, err)
		require.Equal(t, "two", w.value(1, invoice.Detail, "CLN_MFR_AI_NM"),
			"SQL holds what the document says: %s", where)
	}
}

// The timer takes two documents. Another instance commits newer content of the second within the same second, before
// the timer's old content is written. The outcome of the first cannot be recorded. No other job reads a committed
// document, so the second is healed all the same.
func TestADocumentIsHealedBesideOneThatCannotBeRecorded(t *testing.T) {
	w := newWorld(t, 1, 2)
	batch := w.put(result(0, 1, "first", ""), result(0, 2, "one", ""))
	other := commit.NewCommit(w.docs, w.sink,
		commit.Options{SysName: "web", Now: func() time.Time { return w.clock }, Log: zerolog.Nop()})
	w.faulty.onApply = func(n int) error {
		if n == 1 {
			_, err := other.Run(t.Context(),
				commit.Delivery{Documents: w.put(result(0, 2, "two", "")), Received: w.clock})
			require.NoError(t, err)
		}
		return nil
	}
	w.faulty.onRecord = func(n int) error {
		if n == 1 {
			return down("cosmos")
		}
		return nil
	}
	_, err := w.batch(commit.Delivery{Documents: batch, Purpose: commit.FromTimer})
	require.ErrorContains(t, err, "cosmos")
	require.Equal(t, "two", w.value(2, invoice.Detail, "CLN_MFR_AI_NM"), "SQL holds what the document says")
}

// unreadable is a container in which one document does not read after its change.
type unreadable struct {
	*faulty
	id string
}

func (u unreadable) ReadMany(ctx context.Context, ids []string) ([]json.RawMessage, error) {
	return u.faulty.ReadMany(ctx, slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return id == u.id }))
}

func (u unreadable) Read(context.Context, string) (json.RawMessage, error) {
	return nil, down("cosmos")
}

// The same when the other document cannot be read again.
func TestADocumentIsHealedBesideOneThatCannotBeRead(t *testing.T) {
	w := newWorld(t, 1, 2)
	batch := w.put(result(0, 1, "first", ""), result(0, 2, "one", ""))
	other := commit.NewCommit(w.docs, w.sink,
		commit.Options{SysName: "web", Now: func() time.Time { return w.clock }, Log: zerolog.Nop()})
	docs := unreadable{w.faulty, idOf(t, result(0, 1, "", ""))}
	w.faulty.onApply = func(n int) error {
		if n == 1 {
			_, err := other.Run(t.Context(),
				commit.Delivery{
					Documents: w.put(result(0, 1, "changed", ""), result(0, 2, "two", "")), Received: w.clock,
				})
			require.NoError(t, err)
		}
		return nil
	}
	c := commit.NewCommit(docs, w.faulty, commit.Options{
		SysName: "web", Now: func() time.Time {
			return w.clock
		}, Log: zerolog.Nop(), Wait: func(context.Context, time.Duration) error { return nil },
	})
	_, err := c.Run(t.Context(), commit.Delivery{Documents: batch, Received: w.clock, Purpose: commit.FromTimer})
	require.True(t, fault.IsDependency(err))
	require.Equal(t, "two", w.value(2, invoice.Detail, "CLN_MFR_AI_NM"))
}

// The API stores the same content again, without sql_writer, between the write and the patch.
func TestAfterA412AnIdWithoutATimeKeepsTheVersionThatTheLedgerHas(t *testing.T) {
	w := newWorld(t, 1)
	doc := document("no-time", 1, "ACME", "")
	batch := w.put(doc)
	w.faulty.onRecord = func(n int) error {
		if n == 2 {
			w.clock = w.clock.Add(5 * time.Second)
			w.put(doc)
		}
		return nil
	}
	require.Equal(t, 1, w.run(batch...).Outcomes["applied"])
	entry, _ := w.sink.Entry(1)
	require.Equal(t, float64(entry.Version.US), w.state("no-time")["version"])
}

// The container's clock goes back (a failover). Content that If-Match proves to be current is never superseded.
func TestContentThatIsSupersededByItselfIsNeverCommitted(t *testing.T) {
	w := newWorld(t, 1)
	w.run(w.put(result(0, 1, "one", ""))...)
	w.clock = w.clock.Add(-2 * time.Second)
	doc := result(0, 1, "two", "")
	require.Equal(t, map[invoice.Outcome]int{"retry_scheduled": 1}, w.run(w.put(doc)...).Outcomes)
	s := w.state(idOf(t, doc))
	require.Equal(t, 0.0, s["retry_count"], "not the document's fault")
	require.Equal(t, "contention", s["last_error_kind"])
	w.clock = w.clock.Add(3 * time.Minute)
	w.put(result(0, 1, "two", `{"status":"pending"}`))
	require.Equal(t, 1, w.run(w.snapshots(idOf(t, doc))...).Outcomes["applied"])
	require.Equal(t, "two", w.value(1, invoice.Detail, "CLN_MFR_AI_NM"))
}

// A 412 whose document reads unchanged may come from a lagging replica, or from the service alone: the record is tried
// again.
func TestARefusedRecordOfAnUnchangedDocumentIsTriedAgain(t *testing.T) {
	// the second one's version is refused, too
	for _, id := range []string{"2025-12-17 10:00:00.000000-06:00-0001-1", "no-time"} {
		w := newWorld(t, 1)
		batch := w.put(document(id, 1, "ACME", ""))
		w.faulty.onRecord = func(n int) error {
			if n%4 != 0 {
				return refused(fault.Changed, "412")
			}
			return nil
		}
		require.Equal(t, map[invoice.Outcome]int{"applied": 1}, w.run(batch...).Outcomes)
		require.Equal(t, "committed", w.status(id))
	}
}

func TestARetryIsNeverEarlyHoweverLongTheBatchTook(t *testing.T) {
	w := newWorld(t, 1)
	batch := w.put(result(0, 1, "one", ""), result(1, 99, "missing line", ""))
	w.faulty.afterApply = func(int) error { w.clock = w.clock.Add(3 * time.Minute); return nil }
	w.run(batch...)
	require.GreaterOrEqual(t, int64(w.state(idOf(t, result(1, 99, "", "")))["retry_after"].(float64)),
		w.clock.Add(2*time.Minute).Unix())
	require.Equal(t, "2025-12-18 10:03:00.000000-06:00", w.state(idOf(t, result(0, 1, "", "")))["committed_at"])
}

// lagging is a container whose reads lag behind its change feed.
type lagging struct {
	*faulty
	many []json.RawMessage
	read func() (json.RawMessage, error)
}

func (l lagging) ReadMany(context.Context, []string) ([]json.RawMessage, error) { return l.many, nil }
func (l lagging) Read(context.Context, string) (json.RawMessage, error)         { return l.read() }

// Promise G1: no decision comes from a read that is older than the snapshot.
func TestAReadThatLagsBehindTheFeedDecidesNothing(t *testing.T) {
	id := idOf(t, result(0, 1, "", ""))
	gone := func() (json.RawMessage, error) {
		return nil, &fault.Error{Kind: fault.Document, Condition: fault.Gone, Code: "404"}
	}
	for _, before := range []string{"absent", "older and committed"} {
		w := newWorld(t, 1)
		docs := lagging{faulty: w.faulty, read: gone}
		if before != "absent" {
			w.run(w.put(result(0, 1, "one", ""))...)
			docs.many = w.snapshots(id)
			old := docs.many[0]
			docs.read = func() (json.RawMessage, error) { return old, nil }
		}
		w.clock = w.clock.Add(time.Hour)
		batch := w.put(result(0, 1, "two", ""))
		committer := commit.NewCommit(docs, w.faulty, commit.Options{
			SysName: "web", Now: func() time.Time { return w.clock }, Log: zerolog.Nop(),
		})
		_, err := committer.Run(t.Context(), commit.Delivery{Documents: batch, Received: w.clock, RetryCount: 1})
		require.True(t, fault.IsDependency(err), "%s: the batch must come again, not be dropped: %v", before, err)
		require.Equal(t, "not_caught_up", fault.CodeOf(err))

		docs.read = func() (json.RawMessage, error) { return w.docs.Read(t.Context(), id) }
		committer = commit.NewCommit(docs, w.faulty,
			commit.Options{SysName: "web", Now: func() time.Time { return w.clock }, Log: zerolog.Nop()})
		_, err = committer.Run(t.Context(), commit.Delivery{Documents: batch, Received: w.clock, RetryCount: 1})
		require.NoError(t, err)
		require.Equal(t, "two", w.value(1, invoice.Detail, "CLN_MFR_AI_NM"), "caught up: %s", before)
	}
	// A clock that went back looks like an endless lag: after a minute of offers the feed continues.
	for _, before := range []string{"absent", "older"} {
		w := newWorld(t, 1)
		batch := w.put(result(0, 1, "one", ""))
		docs := lagging{faulty: w.faulty, read: gone}
		want := invoice.Outcome("gone")
		if before != "absent" {
			w.clock = w.clock.Add(-2 * time.Second)
			docs.many = w.put(result(0, 1, "two", ""))
			docs.read = func() (json.RawMessage, error) { return w.docs.Read(t.Context(), id) }
			want = "applied"
		}
		committer := commit.NewCommit(docs, w.faulty,
			commit.Options{SysName: "web", Now: func() time.Time { return w.clock }, Log: zerolog.Nop()})
		_, err := committer.Run(t.Context(), commit.Delivery{Documents: batch, Received: w.clock, RetryCount: 6})
		require.True(t, fault.IsDependency(err))
		report, err := committer.Run(t.Context(), commit.Delivery{Documents: batch, Received: w.clock, RetryCount: 7})
		require.NoError(t, err)
		require.Equal(t, map[invoice.Outcome]int{want: 1}, report.Outcomes, before)
	}
	w := newWorld(t, 1)
	batch := w.put(result(0, 1, "two", ""))
	w.clock = w.clock.Add(11 * time.Second)
	committer := commit.NewCommit(lagging{faulty: w.faulty, read: gone}, w.faulty, commit.Options{
		SysName: "web", Now: func() time.Time { return w.clock }, Log: zerolog.Nop(),
	})
	report, err := committer.Run(t.Context(), commit.Delivery{Documents: batch, Received: w.clock, RetryCount: 1})
	require.NoError(t, err)
	require.Equal(t, map[invoice.Outcome]int{"gone": 1}, report.Outcomes,
		"a document that no read shows after ten seconds is gone")
}

func TestTheShortestOutcomeThatMeetsA412IsNoEnd(t *testing.T) {
	w := newWorld(t, 1)
	batch := w.put(result(0, 1, "one", ""))
	w.faulty.onRecord = func(n int) error {
		if n == 1 {
			w.put(result(0, 1, "two", ""))
			return refused(fault.TooLarge, "413")
		}
		return nil
	}
	require.Equal(t, map[invoice.Outcome]int{"applied": 1}, w.run(batch...).Outcomes)
	require.Equal(t, "two", w.value(1, invoice.Detail, "CLN_MFR_AI_NM"))
}

func TestAVersionThatDoesNotFitIsForAPerson(t *testing.T) {
	w := newWorld(t, 1)
	batch := w.put(document("no-time", 1, "ACME", ""))
	w.faulty.onRecord = func(int) error { return refused(fault.TooLarge, "413") }
	require.Equal(t, map[invoice.Outcome]int{"left": 1}, w.run(batch...).Outcomes)
	require.Contains(t, w.log.String(), "MANUAL REVIEW")
	require.Equal(t, 0, w.faulty.writes)
}

func TestADocumentDeletedWhileItWasWrittenIsSaid(t *testing.T) {
	w := newWorld(t, 1)
	batch := w.put(result(0, 1, "one", ""))
	w.faulty.onRecord = func(int) error { return refused(fault.Gone, "404") }
	require.Equal(t, map[invoice.Outcome]int{"gone": 1}, w.run(batch...).Outcomes)
	require.Contains(t, w.log.String(), "deleted while it was written")
}

// The document was never offered: another type in the place of sql_writer is not a status.
func TestWhatStandsInPlaceOfTheStateIsLeftAlone(t *testing.T) {
	w := newWorld(t, 1)
	before := w.put(result(0, 1, "one", `["somebody's", "data"]`))
	require.Equal(t, map[invoice.Outcome]int{"not_offered": 1}, w.run(before...).Outcomes)
	require.Equal(t, before, w.snapshots(idOf(t, result(0, 1, "", ""))))
}

// lockedSink is a database in which another session locks the first k lines: a request with one of them waits five
// seconds.
type lockedSink struct {
	w *world
	k int64
}

func (l lockedSink) Apply(
	ctx context.Context, items []commit.Item, m commit.Mode, known breaker.Heartbeat,
) ([]commit.DocumentOutcome, error) {
	for _, it := range items {
		if it.Main <= l.k {
			l.w.clock = l.w.clock.Add(5 * time.Second)
			return nil, fault.New(fault.Contention, "sqlserver: apply", "1222", "lock timeout")
		}
	}
	return l.w.sink.Apply(ctx, items, m, known)
}

func (l lockedSink) Heartbeat(ctx context.Context, known breaker.Heartbeat) (breaker.Heartbeat, error) {
	return l.w.sink.Heartbeat(ctx, known)
}

func (l lockedSink) TakeOver(ctx context.Context, known breaker.Heartbeat) (breaker.Heartbeat, error) {
	return l.w.sink.TakeOver(ctx, known)
}

// Promise G6: locked lines neither delay their neighbours nor stop the feed. Dividing ends after two minutes, and
// nothing is counted.
func TestLockedLinesDoNotHoldTheFeed(t *testing.T) {
	for _, k := range []int64{1, 3, 10, 50, 100} {
		w := newWorld(t)
		var docs []string
		for i := range 100 {
			w.sink.AddLines(int64(i + 1))
			docs = append(docs, result(i%60, int64(i+1), "x", ""))
		}
		batch := w.put(docs...)
		committer := commit.NewCommit(w.faulty, lockedSink{w, k}, commit.Options{
			SysName: "web", Now: func() time.Time { return w.clock }, Log: zerolog.Nop(),
			Wait: func(context.Context, time.Duration) error { return nil },
		})
		begin := w.clock
		report, err := committer.Run(t.Context(), commit.Delivery{Documents: batch, Received: w.clock})
		require.NoError(t, err)
		require.Less(t, w.clock.Sub(begin), 2*time.Minute+5*time.Second, "%d locked", k)
		require.Equal(t, map[string]int{"contention": report.Outcomes["retry_scheduled"]}, report.Kinds)
		require.Equal(t, 100, report.Outcomes["applied"]+report.Outcomes["retry_scheduled"])
		for _, d := range docs {
			require.Equal(t, 0.0, w.state(idOf(t, d))["retry_count"], "a lost race blames no document")
		}
		if k <= 3 {
			require.Equal(t, int(100-k), report.Outcomes["applied"], fmt.Sprint(k, " locked"))
		}
	}
}
