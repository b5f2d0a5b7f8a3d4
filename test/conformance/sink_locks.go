package conformance

import (
	"context"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
)

// lockCases: another program's open transaction locks a line's detail row.
func lockCases() []sinkCase {
	lock := []string{"Lock"}
	return []sinkCase{
		{"a line that an open transaction holds is contention within bounds, and nothing is written", lock, lockedLine},
		{"a lock that is let go in time is waited for", lock, lockLetGo},
		{"a request that waits for a lock ends when its context does, and writes nothing", lock, lockedAndCancelled},
		{"a lock on one line leaves requests for other lines alone", []string{"Lock", "RowLocks"}, lockedNeighbour},
	}
}

// lock has another program lock a line until unlock, which may be called again, or the end of the case.
func (s *sinkTest) lock(line int64) (unlock func()) {
	s.Helper()
	require.Positive(s, s.h.LockWait, "the harness says how long a statement waits for a lock")
	unlock = sync.OnceFunc(s.h.Lock(s, line))
	s.Cleanup(unlock)
	return unlock
}

// slack is how much longer than it should a request may take on a machine that is busy with other tests.
const slack = 10 * time.Second

func lockedLine(s *sinkTest) {
	s.h.AddLines(s, 1, 2, 3, 4)
	old := doc("old", 9, 5, "w", 3)
	s.gives(old, "applied(applied)")
	before := s.state(1, 2, 3, 4)
	a, b, c := doc("a", 10, 5, "x", 1), doc("b", 11, 5, "y", 2, 3), doc("c", 12, 5, "z", 4)
	unlock := s.lock(3)
	begin := time.Now()
	err := s.failure(fault.Contention, commit.Write, a, b, c)
	require.False(s, fault.Has(err, fault.OwnWhenAlone), "a lock that is never free is nobody's own: %v", err)
	require.Less(s, time.Since(begin), 2*s.h.LockWait+slack, "the wait is bounded")
	unlock()
	require.Equal(s, before, s.state(1, 2, 3, 4), "nothing of the request stays, of the neighbours neither")
	s.givesIn(commit.Write, []string{"applied(applied)", "applied(applied applied)", "applied(applied)"}, a, b, c)
	s.holds(b)
}

func lockLetGo(s *sinkTest) {
	s.h.AddLines(s, 1)
	a := doc("a", 10, 5, "x", 1)
	unlock := s.lock(1)
	begin := time.Now()
	timer := time.AfterFunc(s.h.LockWait/4, unlock)
	defer timer.Stop()
	s.gives(a, "applied(applied)")
	require.GreaterOrEqual(s, time.Since(begin), s.h.LockWait/4, "the lock was held, and waited for")
	s.holds(a)
}

func lockedAndCancelled(s *sinkTest) {
	s.h.AddLines(s, 1)
	before := s.state(1)
	unlock := s.lock(1)
	ctx, cancel := context.WithTimeout(s.Context(), s.h.LockWait/4)
	defer cancel()
	out, err := s.h.Sink.Apply(ctx, []commit.Item{doc("a", 10, 5, "x", 1)}, commit.Write, unknown(sysName))
	require.Nil(s, out)
	require.Equal(s, fault.Infrastructure, fault.KindOf(err), "%v", err)
	require.ErrorIs(s, err, context.DeadlineExceeded)
	unlock()
	require.Equal(s, before, s.state(1))
	s.gives(doc("a", 10, 5, "x", 1), "applied(applied)")
}

func lockedNeighbour(s *sinkTest) {
	s.h.AddLines(s, 1, 2, 3)
	unlock := s.lock(2)
	a := doc("a", 10, 5, "x", 1, 3)
	s.gives(a, "applied(applied applied)")
	unlock()
	s.holds(a)
	s.gives(doc("b", 10, 5, "y", 2), "applied(applied)")
}
