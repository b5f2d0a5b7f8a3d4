package commit

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// transitionsAt makes the transitions of a time, without jitter.
func transitionsAt(now time.Time) transitions {
	return transitions{now: func() time.Time { return now }, loc: time.UTC, draw: func() float64 { return 0 }}
}

func own() error {
	return fault.New(fault.Document, "sql: apply", "2628", "a value does not fit its column")
}

func unreadable() error {
	err := fault.New(fault.Document, "invoice: read", "json", "it cannot be read")
	err.Condition = fault.Unreadable
	return err
}

// likeOutage is the failure of a document alone while others succeed.
func likeOutage() error {
	err := fault.New(fault.Infrastructure, "sql: apply", "eof", "the connection was cut")
	err.Condition = fault.OthersAnswered
	return err
}

// failedOften is a state with a retry_count and so many attempts of a kind.
func failedOften(count, attempts int, kind fault.Kind) invoice.State {
	s := invoice.State{Present: true, Status: invoice.RetryScheduled, RetryCount: count, LastErrorKind: string(kind)}
	for range attempts {
		s.Attempts = append(s.Attempts, invoice.Attempt{Kind: string(kind), NextTry: "later"})
	}
	return s
}

// The table of blame: what an own failure makes of a state, by the failures before it.
func TestTheTableOfBlame(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	for _, c := range []struct {
		count     int
		postponed bool

		want     int
		is       bool
		wait     time.Duration
		readable bool // whether the next failure may be the last of a document that can be read
		unread   bool // and of one that cannot
	}{
		{0, false, 1, false, 2 * time.Minute, false, true},
		{1, false, 2, false, 4 * time.Minute, false, true},
		{2, false, 3, false, 8 * time.Minute, false, true},
		{3, false, 4, false, 16 * time.Minute, false, true},
		{4, false, 5, false, 32 * time.Minute, false, true},
		{5, false, 5, true, time.Hour, true, true}, // the sixth spends the retries
		{5, true, 5, true, time.Hour, true, true},  // it may not end yet
		{9, false, 5, true, time.Hour, true, true}, // the old writer counted on
	} {
		s := failedOften(c.count, c.count, fault.Document)
		s.Postponed = c.postponed
		next := transitionsAt(now).failure(s, own())
		require.Equal(t, []any{c.want, c.is, now.Add(c.wait).Unix()},
			[]any{next.RetryCount, next.Postponed, next.RetryAfter}, "%+v", c)
		require.Len(t, next.Attempts, min(c.count+1, invoice.MaxAttempts))
		require.Equal(t, []bool{c.readable, c.unread},
			[]bool{usedUp(next, own()), usedUp(next, unreadable())}, "%+v", c)
	}
	require.False(t, usedUp(invoice.State{Present: true, Status: invoice.Pending}, unreadable()), "its first failure")
}

// The first own failure is remembered until the document is committed or reset. A time in the future is none.
func TestTheFirstFailureIsRemembered(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	s := transitionsAt(now).failure(invoice.State{Present: true, Status: invoice.Pending}, own())
	first := invoice.Stamp(now, time.UTC)
	require.Equal(t, first, s.FirstFailedAt)
	for n := range 30 { // attempts remembers ten
		s = transitionsAt(now.Add(time.Duration(n)*time.Hour)).failure(s, own())
	}
	require.Equal(t, first, s.FirstFailedAt)
	require.Equal(t, first, minimal(s).FirstFailedAt)
	require.Equal(t, first, transitionsAt(now).statePutOff(s, likeOutage()).FirstFailedAt)
	failed := transitionsAt(now).failed(s, own(), "")
	require.Equal(t, first, failed.FirstFailedAt)
	require.Empty(t, transitionsAt(now).committed(s, DocumentOutcome{Verdict: invoice.OutcomeApplied}).FirstFailedAt)
	require.Empty(t, failed.Afresh().FirstFailedAt)
	require.Empty(t,
		transitionsAt(now).statePutOff(invoice.State{Status: invoice.Pending}, likeOutage()).FirstFailedAt,
		"not its own")
	for _, other := range []string{"yesterday", invoice.Stamp(now.Add(time.Hour), time.UTC)} {
		s.FirstFailedAt = other
		require.Equal(t, first, transitionsAt(now).failure(s, own()).FirstFailedAt, other)
	}
}

// A document that is put off spends no retry, and stands in the window PutOff. Whether its retries are spent does not
// change.
func TestWhatIsPutOff(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	for _, postponed := range []bool{false, true} {
		failed := transitionsAt(now.Add(-time.Hour)).failure(failedOften(2, 2, fault.Document), own())
		failed.Postponed = postponed
		for name, c := range map[string]struct {
			err      error
			wait     time.Duration
			attempts int
		}{
			"a race lost alone": {
				fault.New(fault.Contention, "sql: apply", "1222", "lock timeout"), 2 * time.Minute, 4,
			},
			"undecided": {
				fault.New(fault.Contention, "commit: apply", codeUndecided, "put off"), 2 * time.Minute, 3,
			},
			"cut off":        {fault.New(fault.Infrastructure, "commit: apply", codeCutOff, "left"), 0, 3},
			"like an outage": {likeOutage(), 2 * time.Minute, 4},
		} {
			s := transitionsAt(now).statePutOff(failed, c.err)
			require.Equal(t, []any{invoice.RetryScheduled, 3, postponed, now.Add(c.wait).Unix(), c.attempts},
				[]any{s.Status, s.RetryCount, s.Postponed, s.RetryAfter, len(s.Attempts)}, name)
			require.True(t, slices.Contains(PutOffKinds(), fault.Kind(s.LastErrorKind)), name)
		}
	}
}

// A document that fails like an outage alone is put off for 120 * 2^n seconds. The third time it is its own failure.
func TestADocumentThatFailsLikeAnOutageAlone(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	s := invoice.State{Present: true, Status: invoice.Pending}
	for _, wait := range []time.Duration{2 * time.Minute, 4 * time.Minute} {
		err := alone(s, likeOutage())
		require.Equal(t, fault.Infrastructure, fault.KindOf(err))
		s = transitionsAt(now).statePutOff(s, err)
		require.Equal(t, []any{0, now.Add(wait).Unix()}, []any{s.RetryCount, s.RetryAfter})
	}
	require.Equal(t, own().Error(), alone(s, own()).Error(), "another failure stays unchanged")
	for n := range 3 {
		err := alone(s, likeOutage())
		require.Equal(t, []any{fault.Internal, CodeFailsAlone}, []any{fault.KindOf(err), fault.CodeOf(err)})
		s = transitionsAt(now).failure(s, err)
		require.Equal(t, n+1, s.RetryCount)
	}
}

// In any history retry_count grows by one with each own failure, up to five, and with nothing else. The retries are
// spent after six.
func TestFailuresCountPlainly(t *testing.T) {
	errs := []error{own(), own(), unreadable(), likeOutage(), fault.New(fault.Contention, "sql: apply", "1222", "")}
	rapid.Check(t, func(t *rapid.T) {
		now, failures := time.Unix(1_800_000_000, 0), 0
		s := invoice.State{Present: true, Status: invoice.Pending}
		for range rapid.IntRange(1, 40).Draw(t, "tries") {
			now = now.Add(time.Duration(rapid.IntRange(1, 7200).Draw(t, "seconds")) * time.Second)
			err := alone(s, rapid.SampledFrom(errs).Draw(t, "error"))
			if isOwn(err) {
				s = transitionsAt(now).failure(s, err)
				failures++
			} else {
				s = transitionsAt(now).statePutOff(s, err)
			}
			require.Equal(t, min(failures, MaxRetries), s.RetryCount)
			require.Equal(t, failures > MaxRetries, s.Postponed)
			require.Equal(t, failures > MaxRetries, usedUp(s, own()))
		}
	})
}

func TestSpent(t *testing.T) {
	for _, c := range []struct {
		s    invoice.State
		err  error
		want bool
	}{
		{invoice.State{Status: invoice.RetryScheduled, RetryCount: 5}, nil, false},
		{invoice.State{Status: invoice.RetryScheduled, RetryCount: 5, Postponed: true}, nil, true},
		{invoice.State{Status: invoice.Pending, RetryCount: 5, Postponed: true}, nil, true},
		// reset by hand
		{invoice.State{Status: invoice.Pending, RetryCount: 5, Postponed: true, FailedAt: "x"}, nil, false},
		{invoice.State{Status: invoice.Failed, RetryCount: 5}, nil, false},
		{invoice.State{Status: invoice.Failed, RetryCount: 1}, unreadable(), false},
		{invoice.State{Status: invoice.Pending}, unreadable(), false},
		{invoice.State{Status: invoice.RetryScheduled, RetryCount: 1}, unreadable(), true},
	} {
		require.Equal(t, c.want, Spent(c.s, c.err), "%+v", c)
	}
}
