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

// failedOften is a state with n failures of a kind.
func failedOften(count, attempts int, kind fault.Kind) invoice.State {
	s := invoice.State{Present: true, Status: invoice.RetryScheduled, RetryCount: count, LastErrorKind: string(kind)}
	for range attempts {
		s.Attempts = append(s.Attempts, invoice.Attempt{Kind: string(kind), NextTry: "later"})
	}
	return s
}

// The table of blame: the effect of an own failure, by the number of earlier ones and whether the last one is proven.
func TestTheTableOfBlame(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	minutes := func(n int) time.Duration { return time.Duration(n) * time.Minute }
	for _, c := range []struct {
		count, attempts int
		proven          bool
		err             error

		want      int
		postponed bool
		wait      time.Duration
		poison    bool
	}{
		{0, 0, false, own(), 1, false, minutes(2), false},
		{1, 1, true, own(), 2, false, minutes(4), false},
		{1, 1, false, own(), 1, true, minutes(4), false}, // the schedule continues, the count stays
		{1, 5, false, own(), 1, true, minutes(60), false},
		{2, 2, true, own(), 3, false, minutes(8), false},
		{3, 3, true, own(), 4, false, minutes(16), false},
		{4, 4, true, own(), 5, false, minutes(32), false},
		{4, 4, false, own(), 4, true, minutes(32), false},
		{5, 5, true, own(), 6, true, minutes(60), false}, // the sixth waits for its proof as well
		{5, 5, false, own(), 5, true, minutes(60), false},
		{6, 6, false, own(), 6, true, minutes(60), false},
		{6, 6, true, own(), 0, false, 0, true},
		{0, 0, true, unreadable(), 1, false, minutes(2), false},
		{1, 1, false, unreadable(), 1, true, minutes(4), false},
		{1, 1, true, unreadable(), 0, false, 0, true},
		{6, 6, true, fault.New(fault.Internal, "x", "panic", ""), 0, false, 0, true},
		{6, 6, true, likeOutage(), 0, false, 0, false},
		{6, 6, true, fault.New(fault.Contention, "x", "1222", ""), 0, false, 0, false},
	} {
		s := failedOften(c.count, c.attempts, fault.Document)
		require.Equal(t, c.poison, transitionsAt(now).exhausted(s, c.err, c.proven), "%+v", c)
		if c.poison || !isOwn(c.err) {
			continue
		}
		next := transitionsAt(now).failure(s, c.err, c.proven)
		require.Equal(t, []any{c.want, c.postponed, now.Add(c.wait).Unix()}, []any{next.RetryCount, next.Postponed, next.RetryAfter}, "%+v", c)
		require.Len(t, next.Attempts, c.attempts+1)
	}
}

// A document that is put off spends no retry, stands in the window PutOff, and keeps its last own failure.
func TestWhatIsPutOff(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	failed := transitionsAt(now.Add(-time.Hour)).failure(failedOften(2, 2, fault.Document), own(), true)
	failed.Postponed = true
	for name, c := range map[string]struct {
		err      error
		wait     time.Duration
		attempts int
	}{
		"a race lost alone": {fault.New(fault.Contention, "sql: apply", "1222", "lock timeout"), 2 * time.Minute, 4},
		"undecided":         {fault.New(fault.Contention, "commit: apply", codeUndecided, "put off"), 2 * time.Minute, 3},
		"cut off":           {fault.New(fault.Infrastructure, "commit: apply", codeCutOff, "left"), 0, 3},
		"like an outage":    {likeOutage(), 2 * time.Minute, 4},
	} {
		s := transitionsAt(now).putOff(failed, c.err)
		require.Equal(t, []any{invoice.RetryScheduled, 3, false, now.Add(c.wait).Unix(), c.attempts},
			[]any{s.Status, s.RetryCount, s.Postponed, s.RetryAfter, len(s.Attempts)}, name)
		require.True(t, slices.Contains(PutOffKinds(), fault.Kind(s.LastErrorKind)), name)
		last, known := lastFailure(s, time.UTC)
		require.True(t, known, name)
		require.Equal(t, now.Add(-time.Hour).Unix(), last.Unix(), "%s is no failure of its own", name)
	}
}

// A document that fails like an outage alone is put off for 120 * 2^n seconds. The third time it is its own failure.
func TestADocumentThatFailsLikeAnOutageAlone(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	s := invoice.State{Present: true, Status: invoice.Pending}
	for _, wait := range []time.Duration{2 * time.Minute, 4 * time.Minute} {
		err := alone(s, likeOutage())
		require.Equal(t, fault.Infrastructure, fault.KindOf(err))
		s = transitionsAt(now).putOff(s, err)
		require.Equal(t, []any{0, now.Add(wait).Unix()}, []any{s.RetryCount, s.RetryAfter})
	}
	require.Equal(t, own().Error(), alone(s, own()).Error(), "another failure stays unchanged")
	for n := range 3 {
		err := alone(s, likeOutage())
		require.Equal(t, []any{fault.Internal, CodeFailsAlone}, []any{fault.KindOf(err), fault.CodeOf(err)})
		s = transitionsAt(now).failure(s, err, true)
		require.Equal(t, n+1, s.RetryCount)
	}
}

func TestTheTimeOfTheLastOwnFailure(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	for name, s := range map[string]invoice.State{
		"none":                  {},
		"of the old writer":     {RetryCount: 3},
		"no time":               {RetryCount: 3, LastErrorKind: "document", LastErrorAt: "yesterday"},
		"only what was put off": {RetryCount: 1, LastErrorKind: "contention", LastErrorAt: invoice.Stamp(now, time.UTC)},
	} {
		_, known := lastFailure(s, time.UTC)
		require.False(t, known, name)
	}
	short := minimal(transitionsAt(now).failure(invoice.State{}, own(), false))
	last, known := lastFailure(short, time.UTC)
	require.True(t, known, "the minimal state keeps it")
	require.Equal(t, now.Unix(), last.Unix())
}

// history is a document in a random history.
type history struct {
	now, applied time.Time
	s            invoice.State
	failures     []time.Time
}

// fail is one failed try: the state changes, or the document is poison.
func (l *history) fail(t *rapid.T, err error) (poison bool) {
	last, known := lastFailure(transitionsAt(l.now).begin(l.s), time.UTC)
	proven := known && !l.applied.IsZero() && !l.applied.Before(last.Add(time.Minute))
	if err = alone(l.s, err); !isOwn(err) {
		l.s = transitionsAt(l.now).putOff(l.s, err)
		return false
	}
	if transitionsAt(l.now).exhausted(l.s, err, proven) {
		return true
	}
	l.s = transitionsAt(l.now).failure(l.s, err, proven)
	l.failures = append(l.failures, l.now)
	if l.s.Postponed {
		require.True(t, !proven || l.s.RetryCount == maxFailures, "only an unproven failure is postponed")
	}
	return false
}

// proven counts the failures after which others succeeded.
func (l *history) proven() (n int) {
	for _, f := range l.failures {
		if !l.applied.Before(f.Add(time.Minute)) {
			n++
		}
	}
	return n
}

// An outage of everything raises no count by more than one. A poison pill has failed as often as the rules require, each
// time with a later success of others.
func TestATotalBreakCountsAtMostOnceAndPoisonIsProven(t *testing.T) {
	errs := []error{own(), own(), unreadable(), likeOutage(), fault.New(fault.Contention, "sql: apply", "1222", "")}
	rapid.Check(t, func(t *rapid.T) {
		l := &history{now: time.Unix(1_800_000_000, 0)}
		for range rapid.IntRange(1, 8).Draw(t, "phases") {
			flows := rapid.Bool().Draw(t, "flows")
			before, tried := l.s.RetryCount, false
			for range rapid.IntRange(1, 40).Draw(t, "tries") {
				l.now = l.now.Add(time.Duration(rapid.IntRange(1, 7200).Draw(t, "seconds")) * time.Second)
				if flows && rapid.Bool().Draw(t, "others") {
					l.applied = l.now
					continue
				}
				err := rapid.SampledFrom(errs).Draw(t, "error")
				if l.fail(t, err) {
					least := maxFailures
					if fault.Has(err, fault.Unreadable) {
						least = unreadableFailures
					}
					require.GreaterOrEqual(t, l.proven(), least)
					require.False(t, !flows && tried, "an outage makes no document a poison pill")
					return
				}
				tried = tried || isOwn(err)
				if !flows {
					require.LessOrEqual(t, l.s.RetryCount, before+1)
				}
				require.LessOrEqual(t, l.s.RetryCount, l.proven()+1)
			}
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
		{invoice.State{Status: invoice.RetryScheduled, RetryCount: 6}, nil, true},
		{invoice.State{Status: invoice.Pending, RetryCount: 6}, nil, true},
		{invoice.State{Status: invoice.Pending, RetryCount: 6, FailedAt: "x"}, nil, false}, // reset by hand
		{invoice.State{Status: invoice.Failed, RetryCount: 6}, nil, false},
		{invoice.State{Status: invoice.Pending}, unreadable(), false},
		{invoice.State{Status: invoice.RetryScheduled, RetryCount: 1}, unreadable(), true},
	} {
		require.Equal(t, c.want, Spent(c.s, c.err), "%+v", c)
	}
}
