package commit_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// The timer takes two documents. Another instance commits newer content of the second within the same second, before
// the timer's old content is written. The outcome of the first cannot be recorded. No other job reads a committed
// document, so the second is healed all the same.
func TestADocumentIsHealedBesideOneThatCannotBeRecorded(t *testing.T) {
	w := newWorld(t, 1, 2)
	batch := w.put(result(0, 1, "first", ""), result(0, 2, "one", ""))
	other := w.with(w.docs, w.sink, nil)
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
	other := w.with(w.docs, w.sink, nil)
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
	c := w.with(docs, w.faulty, nil)
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
		committer := w.with(docs, w.faulty, nil)
		_, err := committer.Run(t.Context(), commit.Delivery{Documents: batch, Received: w.clock, RetryCount: 1})
		require.True(t, fault.IsDependency(err), "%s: the batch must come again, not be dropped: %v", before, err)
		require.Equal(t, "not_caught_up", fault.CodeOf(err))

		docs.read = func() (json.RawMessage, error) { return w.docs.Read(t.Context(), id) }
		committer = w.with(docs, w.faulty, nil)
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
		committer := w.with(docs, w.faulty, nil)
		_, err := committer.Run(t.Context(), commit.Delivery{Documents: batch, Received: w.clock, RetryCount: 6})
		require.True(t, fault.IsDependency(err))
		report, err := committer.Run(t.Context(), commit.Delivery{Documents: batch, Received: w.clock, RetryCount: 7})
		require.NoError(t, err)
		require.Equal(t, map[invoice.Outcome]int{want: 1}, report.Outcomes, before)
	}
	w := newWorld(t, 1)
	batch := w.put(result(0, 1, "two", ""))
	w.clock = w.clock.Add(11 * time.Second)
	committer := w.with(lagging{faulty: w.faulty, read: gone}, w.faulty, nil)
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
