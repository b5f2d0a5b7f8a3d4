package porttest

import (
	"context"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/writer"
)

// The names of two environments on one database.
const (
	sysName  = "web"
	otherSys = "batch"
)

// heartbeatCases: a heartbeat commits, and concerns no document. A preview without items is the same for who may not write.
func heartbeatCases() []sinkCase {
	return []sinkCase{
		{"a heartbeat makes its environment's row, then raises it by one, for others to see", nil, heartbeatRaises},
		{"a heartbeat leaves the user's tables and the ledger as they are", nil, heartbeatTouchesNothing},
		{"a heartbeat on a row that an open transaction holds is contention within bounds, and raises nothing", []string{"LockHeartbeat"}, heartbeatLocked},
		{"a heartbeat does not wait for somebody's line", []string{"Lock", "RowLocks"}, heartbeatBesideALine},
		{"a heartbeat of a read-only database is infrastructure, until it can be written to again", []string{"ReadOnly"}, heartbeatReadOnly},
		{"25 heartbeats at once on an empty table make one row, and only contention surfaces", nil, heartbeatRace},
		{"a heartbeat whose context has ended is infrastructure and raises nothing", nil, heartbeatCancelled},
		{"a preview without items answers no outcomes and writes nothing", nil, emptyPreview},
		{"a preview without items misses the tables that a preview needs", []string{"Hide"}, emptyPreviewMisses},
	}
}

// beat makes one heartbeat that must succeed.
func (s *sinkTest) beat(sysName string) {
	s.Helper()
	_, err := s.h.Sink.Heartbeat(s.Context(), breaker.Heartbeat{SysName: sysName})
	require.NoError(s, err)
}

// heartbeat reads an environment's row, which must be there.
func (s *sinkTest) heartbeat(sysName string) HeartbeatRow {
	s.Helper()
	row, ok := s.h.Heartbeat(s, sysName)
	require.True(s, ok, "%s has a row", sysName)
	return row
}

func heartbeatRaises(s *sinkTest) {
	_, ok := s.h.Heartbeat(s, sysName)
	require.False(s, ok, "nobody made a row yet")
	s.beat(sysName)
	first := s.heartbeat(sysName)
	require.EqualValues(s, 1, first.Number)
	require.NotEmpty(s, first.DatabaseID)
	for n := int64(2); n <= 4; n++ {
		s.beat(sysName)
		require.Equal(s, HeartbeatRow{DatabaseID: first.DatabaseID, Number: n}, s.heartbeat(sysName))
	}
	_, ok = s.h.Heartbeat(s, otherSys)
	require.False(s, ok, "another environment has a row of its own")
	s.beat(otherSys)
	require.EqualValues(s, 1, s.heartbeat(otherSys).Number)
	require.NotEqual(s, first.DatabaseID, s.heartbeat(otherSys).DatabaseID, "ids are made, not given")
	require.EqualValues(s, 4, s.heartbeat(sysName).Number)
}

func heartbeatTouchesNothing(s *sinkTest) {
	items := s.mixed()
	s.apply(writer.Write, items...)
	before := s.state(span(1, 13)...)
	for range 3 {
		s.beat(sysName)
	}
	require.Equal(s, before, s.state(span(1, 13)...))
	again := doc("same", 10, 9, "s", 1, 2)
	s.gives(again, "unchanged(unchanged unchanged)")
	newer := doc("newest", 30, 5, "z", 1)
	s.gives(newer, "applied(applied)")
	s.holds(newer)
}

func heartbeatLocked(s *sinkTest) {
	s.beat(sysName)
	unlock := sync.OnceFunc(s.h.LockHeartbeat(s, sysName))
	s.Cleanup(unlock)
	begin := time.Now()
	_, err := s.h.Sink.Heartbeat(s.Context(), breaker.Heartbeat{SysName: sysName})
	require.Equal(s, fault.Contention, fault.KindOf(err), "%v", err)
	require.Less(s, time.Since(begin), 2*s.h.LockWait+slack, "the wait is bounded")
	unlock()
	require.EqualValues(s, 1, s.heartbeat(sysName).Number)
	s.beat(sysName)
	require.EqualValues(s, 2, s.heartbeat(sysName).Number)
}

func heartbeatBesideALine(s *sinkTest) {
	s.h.AddLines(s, 1)
	unlock := s.lock(1)
	s.beat(sysName)
	unlock()
	require.EqualValues(s, 1, s.heartbeat(sysName).Number)
}

func heartbeatReadOnly(s *sinkTest) {
	s.h.AddLines(s, 1)
	s.beat(sysName)
	restore := s.h.ReadOnly(s)
	_, err := s.h.Sink.Heartbeat(s.Context(), breaker.Heartbeat{SysName: sysName})
	require.Equal(s, []string{string(fault.Infrastructure), "read_only"}, []string{string(fault.KindOf(err)), fault.CodeOf(err)}, "%v", err)
	s.fails(fault.Infrastructure, writer.Write, doc("a", 10, 5, "x", 1))
	s.apply(writer.Preview)
	restore()
	require.EqualValues(s, 1, s.heartbeat(sysName).Number)
	s.beat(sysName)
	s.gives(doc("a", 10, 5, "x", 1), "applied(applied)")
}

func heartbeatRace(s *sinkTest) {
	var raised int64
	for i, err := range all(25, func(int) error {
		_, err := s.h.Sink.Heartbeat(s.Context(), breaker.Heartbeat{SysName: sysName})
		return err
	}) {
		if err == nil {
			raised++
			continue
		}
		require.Equal(s, fault.Contention, fault.KindOf(err), "instance %d: %v", i, err)
		require.False(s, fault.Has(err, fault.OwnWhenAlone), "a heartbeat is no document's: %v", err)
	}
	require.Positive(s, raised)
	require.Equal(s, raised, s.heartbeat(sysName).Number, "each of them raised it once, and who failed changed nothing")
}

func heartbeatCancelled(s *sinkTest) {
	s.beat(sysName)
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	_, err := s.h.Sink.Heartbeat(ctx, breaker.Heartbeat{SysName: sysName})
	require.Equal(s, fault.Infrastructure, fault.KindOf(err), "%v", err)
	require.ErrorIs(s, err, context.Canceled)
	require.EqualValues(s, 1, s.heartbeat(sysName).Number)
	s.beat(sysName)
	require.EqualValues(s, 2, s.heartbeat(sysName).Number)
}

func emptyPreview(s *sinkTest) {
	s.apply(writer.Write, s.mixed()...)
	before := s.state(span(1, 13)...)
	require.NotNil(s, s.apply(writer.Preview))
	require.Equal(s, before, s.state(span(1, 13)...))
	_, ok := s.h.Heartbeat(s, sysName)
	require.False(s, ok)
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	_, err := s.h.Sink.Apply(ctx, nil, writer.Preview, breaker.Heartbeat{})
	require.Equal(s, fault.Infrastructure, fault.KindOf(err), "it is a request: %v", err)
}

func emptyPreviewMisses(s *sinkTest) {
	for _, table := range []invoice.Table{LedgerTable, invoice.Detail, invoice.Tracking} {
		restore := s.h.Hide(s, table, "")
		s.fails(fault.Infrastructure, writer.Preview)
		restore()
		s.apply(writer.Preview)
	}
}
