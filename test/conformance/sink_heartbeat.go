package conformance

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// The names of two environments on one database.
const (
	sysName  = "web"
	otherSys = "batch"
)

// heartbeatCases: a heartbeat commits, and concerns no document; a database that is not the one that is known is
// refused. A preview without items is a heartbeat of an instance that may not write.
func heartbeatCases() []sinkCase {
	return []sinkCase{
		{"a heartbeat makes its environment's row, then raises it, for others to see", nil, heartbeatRaises},
		{"a heartbeat's number is the time, and one more than a number that is ahead of it", nil, heartbeatIsTheTime},
		{"a heartbeat that knows nothing commits and leaves a number as it is", nil, heartbeatKnowsNothing},
		{"a heartbeat refuses a database that went back, and leaves it as it is", nil, heartbeatRefuses},
		{"a takeover gives the row a new id and a number above all that is known", nil, takeOver},
		{
			"a takeover of a row that an open transaction holds is contention within bounds, and changes nothing",
			[]string{"LockHeartbeat"},
			takeOverLocked,
		},
		{
			"a write to a database that went back is refused, whatever is written, and a preview is not", nil,
			writeRefuses,
		},
		{"a write to the database that is known is not refused", nil, writePasses},
		{
			"a write does not wait for a heartbeat that goes on",
			[]string{"LockHeartbeat", "RowLocks"},
			writeBesideAHeartbeat,
		},
		{"a heartbeat leaves the user's tables and the ledger as they are", nil, heartbeatTouchesNothing},
		{
			"a heartbeat on a row that an open transaction holds is contention within bounds, and raises nothing",
			[]string{"LockHeartbeat"},
			heartbeatLocked,
		},
		{"a heartbeat does not wait for somebody's line", []string{"Lock", "RowLocks"}, heartbeatBesideALine},
		{
			"a heartbeat of a read-only database is infrastructure, until it can be written to again",
			[]string{"ReadOnly"},
			heartbeatReadOnly,
		},
		{"25 heartbeats at once on an empty table make one row, and only contention surfaces", nil, heartbeatRace},
		{"a heartbeat whose context has ended is infrastructure and raises nothing", nil, heartbeatCancelled},
		{"a preview without items answers no outcomes and writes nothing", nil, emptyPreview},
		{"a preview without items misses the tables that a preview needs", []string{"Hide"}, emptyPreviewMisses},
	}
}

// unknown is an environment of which nothing is known.
func unknown(sysName string) breaker.Heartbeat { return breaker.Heartbeat{SysName: sysName} }

// beat makes one heartbeat that must succeed, with the row that is there known, and answers the row.
func (s *sinkTest) beat(sysName string) breaker.Heartbeat {
	s.Helper()
	row, _ := s.h.Heartbeat(s, sysName)
	return s.raised(
		s.h.Sink.Heartbeat(s.Context(),
			breaker.Heartbeat{SysName: sysName, DatabaseID: row.DatabaseID, Number: row.Number}))
}

// raised requires that the row was raised, and that the answer is what was committed.
func (s *sinkTest) raised(row breaker.Heartbeat, err error) breaker.Heartbeat {
	s.Helper()
	require.NoError(s, err)
	require.Equal(s, s.heartbeat(row.SysName), HeartbeatRow{row.DatabaseID, row.Number},
		"the answer is the row as it was committed")
	return row
}

// isRefused requires a refusal with a code.
func (s *sinkTest) isRefused(code string, err error) {
	s.Helper()
	require.Equal(s, []string{string(fault.Infrastructure), code},
		[]string{string(fault.KindOf(err)), fault.CodeOf(err)}, "%v", err)
	require.True(s, breaker.Refused(err))
}

// heartbeat reads an environment's row, which must be there.
func (s *sinkTest) heartbeat(sysName string) HeartbeatRow {
	s.Helper()
	row, ok := s.h.Heartbeat(s, sysName)
	require.True(s, ok, "%s has a row", sysName)
	return row
}

// aDay is more than clocks are apart, in the milliseconds of a heartbeat's number.
const aDay = 24 * 60 * 60 * 1000

func heartbeatRaises(s *sinkTest) {
	_, ok := s.h.Heartbeat(s, sysName)
	require.False(s, ok, "nobody made a row yet")
	first := s.beat(sysName)
	require.Equal(s, sysName, first.SysName)
	require.NotEmpty(s, first.DatabaseID)
	require.Equal(s, strings.ToLower(first.DatabaseID), first.DatabaseID)
	for last := first; last.Number < first.Number+3; {
		next := s.raised(s.h.Sink.Heartbeat(s.Context(), last))
		require.Equal(s, first.DatabaseID, next.DatabaseID)
		require.Greater(s, next.Number, last.Number)
		last = next
	}
	before := s.heartbeat(sysName)
	_, ok = s.h.Heartbeat(s, otherSys)
	require.False(s, ok, "another environment has a row of its own")
	require.NotEqual(s, first.DatabaseID, s.beat(otherSys).DatabaseID, "ids are made, not given")
	require.Equal(s, before, s.heartbeat(sysName))
}

// The number tells when a copy was made.
func heartbeatIsTheTime(s *sinkTest) {
	require.InDelta(s, time.Now().UnixMilli(), s.beat(sysName).Number, aDay,
		"milliseconds since 1970, by the database's clock")
	row := s.heartbeat(sysName)
	s.h.SetHeartbeat(s, sysName, HeartbeatRow{row.DatabaseID, 17})
	require.InDelta(s, time.Now().UnixMilli(), s.beat(sysName).Number, aDay)
	s.h.SetHeartbeat(s, sysName, HeartbeatRow{row.DatabaseID, row.Number + 2*aDay})
	require.Equal(s, row.Number+2*aDay+1, s.beat(sysName).Number)
	s.h.SetHeartbeat(s, sysName, HeartbeatRow{})
	require.InDelta(s, time.Now().UnixMilli(), s.beat(sysName).Number, aDay, "a row that is made too")
}

// Who knows nothing cannot compare: it must not raise a copy above what others know.
func heartbeatKnowsNothing(s *sinkTest) {
	row := s.raised(s.h.Sink.Heartbeat(s.Context(), unknown(sysName)))
	s.h.SetHeartbeat(s, sysName, HeartbeatRow{row.DatabaseID, row.Number - aDay})
	again := s.raised(s.h.Sink.Heartbeat(s.Context(), unknown(sysName)))
	require.Equal(s, row.Number-aDay, again.Number)
}

// wentBack are databases that are not the one that is known, and the code with which each is refused.
func wentBack(known breaker.Heartbeat, another string) map[HeartbeatRow]string {
	return map[HeartbeatRow]string{
		{known.DatabaseID, known.Number - 1}: breaker.CodeWentBack,
		{known.DatabaseID, 1}:                breaker.CodeWentBack,
		{another, known.Number}:              breaker.CodeOtherDatabase,
		{another, known.Number + aDay}:       breaker.CodeOtherDatabase,
		{another, 1}:                         breaker.CodeOtherDatabase,
		{}:                                   breaker.CodeOtherDatabase,
	}
}

func heartbeatRefuses(s *sinkTest) {
	another := s.beat(otherSys).DatabaseID
	known := s.beat(sysName)
	for row, code := range wentBack(known, another) {
		s.h.SetHeartbeat(s, sysName, row)
		answer, err := s.h.Sink.Heartbeat(s.Context(), known)
		s.isRefused(code, err)
		require.Zero(s, answer)
		left, _ := s.h.Heartbeat(s, sysName)
		require.Equal(s, row, left, "a refusal does not raise what it refuses, and makes no row")
	}
	s.h.SetHeartbeat(s, sysName, HeartbeatRow{known.DatabaseID, known.Number})
	s.raised(s.h.Sink.Heartbeat(s.Context(), known))
}

func takeOver(s *sinkTest) {
	another := s.beat(otherSys)
	known := s.beat(sysName)
	known.Number += 2 * aDay
	for row := range wentBack(known, another.DatabaseID) {
		s.h.SetHeartbeat(s, sysName, row)
		taken := s.raised(s.h.Sink.TakeOver(s.Context(), known))
		require.NotContains(s, []string{"", known.DatabaseID, row.DatabaseID}, taken.DatabaseID)
		require.Greater(s, taken.Number, max(known.Number, row.Number))
		_, err := s.h.Sink.Heartbeat(s.Context(), known)
		s.isRefused(breaker.CodeOtherDatabase, err)
		s.raised(s.h.Sink.Heartbeat(s.Context(), taken))
	}
	require.Equal(s, HeartbeatRow{another.DatabaseID, another.Number}, s.heartbeat(otherSys),
		"another environment's row stays")
}

func takeOverLocked(s *sinkTest) {
	known := s.beat(sysName)
	unlock := sync.OnceFunc(s.h.LockHeartbeat(s, sysName))
	s.Cleanup(unlock)
	begin := time.Now()
	_, err := s.h.Sink.TakeOver(s.Context(), known)
	require.Equal(s, fault.Contention, fault.KindOf(err), "%v", err)
	require.Less(s, time.Since(begin), 2*s.h.LockWait+slack, "the wait is bounded")
	unlock()
	require.Equal(s, HeartbeatRow{known.DatabaseID, known.Number}, s.heartbeat(sysName))
}

func writeRefuses(s *sinkTest) {
	another := s.beat(otherSys).DatabaseID
	known := s.beat(sysName)
	s.h.AddLines(s, 1, 2)
	first := doc("a", 10, 5, "x", 1)
	s.gives(first, "applied(applied)")
	before := s.state(1, 2)
	newer, other := doc("b", 20, 5, "y", 1), doc("c", 10, 5, "z", 2)
	for row, code := range wentBack(known, another) {
		s.h.SetHeartbeat(s, sysName, row)
		for mode, items := range map[commit.Mode][]commit.Item{commit.Write: {newer, other}, commit.Rewrite: {first}} {
			out, err := s.h.Sink.Apply(s.Context(), items, mode, known)
			require.Nil(s, out)
			s.isRefused(code, err)
		}
		_, err := s.h.Sink.Apply(s.Context(), []commit.Item{mark(newer)}, commit.Write, known)
		s.isRefused(code, err)
		out, err := s.h.Sink.Apply(s.Context(), []commit.Item{newer}, commit.Preview, known)
		require.NoError(s, err, "a preview writes nothing")
		require.Equal(s, "applied(applied)", inShort(out[0]))
		require.Equal(s, before, s.state(1, 2))
	}
}

func writePasses(s *sinkTest) {
	s.beat(otherSys)
	s.h.AddLines(s, 1)
	version := int64(10)
	passes := func(known breaker.Heartbeat) {
		s.Helper()
		version++
		it := doc(fmt.Sprint("d", version), version, 5, fmt.Sprint("x", version), 1)
		for _, mode := range []commit.Mode{commit.Write, commit.Rewrite} {
			out, err := s.h.Sink.Apply(s.Context(), []commit.Item{it}, mode, known)
			require.NoError(s, err)
			require.Equal(s, "applied(applied)", inShort(out[0]))
		}
	}
	passes(unknown(sysName))
	passes(unknown(sysName)) // and there is no row
	known := s.beat(sysName)
	passes(known)
	passes(unknown(sysName))
	lower := known
	lower.Number -= aDay
	passes(lower) // others raised it meanwhile
	row := s.heartbeat(sysName)
	require.Equal(s, known.Number, row.Number, "a write raises nothing")
}

func writeBesideAHeartbeat(s *sinkTest) {
	s.h.AddLines(s, 1)
	known := s.beat(sysName)
	unlock := sync.OnceFunc(s.h.LockHeartbeat(s, sysName))
	s.Cleanup(unlock)
	out, err := s.h.Sink.Apply(s.Context(), []commit.Item{doc("a", 10, 5, "x", 1)}, commit.Write, known)
	require.NoError(s, err)
	require.Equal(s, "applied(applied)", inShort(out[0]))
	unlock()
}

func heartbeatTouchesNothing(s *sinkTest) {
	items := s.mixed()
	s.apply(commit.Write, items...)
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
	first := s.beat(sysName)
	unlock := sync.OnceFunc(s.h.LockHeartbeat(s, sysName))
	s.Cleanup(unlock)
	begin := time.Now()
	_, err := s.h.Sink.Heartbeat(s.Context(), unknown(sysName))
	require.Equal(s, fault.Contention, fault.KindOf(err), "%v", err)
	require.Less(s, time.Since(begin), 2*s.h.LockWait+slack, "the wait is bounded")
	unlock()
	require.Equal(s, first.Number, s.heartbeat(sysName).Number)
	s.beat(sysName)
}

func heartbeatBesideALine(s *sinkTest) {
	s.h.AddLines(s, 1)
	unlock := s.lock(1)
	s.beat(sysName)
	unlock()
}

func heartbeatReadOnly(s *sinkTest) {
	s.h.AddLines(s, 1)
	first := s.beat(sysName)
	restore := s.h.ReadOnly(s)
	_, err := s.h.Sink.Heartbeat(s.Context(), unknown(sysName))
	require.Equal(s, []string{string(fault.Infrastructure), "read_only"},
		[]string{string(fault.KindOf(err)), fault.CodeOf(err)}, "%v", err)
	s.fails(fault.Infrastructure, commit.Write, doc("a", 10, 5, "x", 1))
	s.apply(commit.Preview)
	restore()
	require.Equal(s, first.Number, s.heartbeat(sysName).Number)
	s.beat(sysName)
	s.gives(doc("a", 10, 5, "x", 1), "applied(applied)")
}

func heartbeatRace(s *sinkTest) {
	made, ids := heartbeatsAtOnce(s, unknown(sysName))
	require.Len(s, ids, 1)
	require.Len(s, made, 1)
	first := s.heartbeat(sysName)
	raised, ids := heartbeatsAtOnce(s,
		breaker.Heartbeat{SysName: sysName, DatabaseID: first.DatabaseID, Number: first.Number})
	require.Len(s, ids, 1)
	for number, times := range raised {
		require.Equal(s, 1, times, "each of them raised it once: %d", number)
	}
	last := s.heartbeat(sysName)
	require.Equal(s, slices.Max(slices.Collect(maps.Keys(raised))), last.Number,
		"a request that failed changed nothing")
	require.True(s, ids[last.DatabaseID])
}

// heartbeatsAtOnce makes 25 heartbeats, of which some may be contention, and answers their numbers and ids.
func heartbeatsAtOnce(s *sinkTest, known breaker.Heartbeat) (numbers map[int64]int, ids map[string]bool) {
	var mu sync.Mutex
	numbers, ids = map[int64]int{}, map[string]bool{}
	for i, err := range all(25, func(int) error {
		row, err := s.h.Sink.Heartbeat(s.Context(), known)
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			numbers[row.Number]++
			ids[row.DatabaseID] = true
		}
		return err
	}) {
		if err != nil {
			require.Equal(s, fault.Contention, fault.KindOf(err), "instance %d: %v", i, err)
			require.False(s, fault.Has(err, fault.OwnWhenAlone), "a heartbeat is no document's: %v", err)
		}
	}
	return numbers, ids
}

func heartbeatCancelled(s *sinkTest) {
	first := s.beat(sysName)
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	for _, raise := range []func(context.Context, breaker.Heartbeat) (breaker.Heartbeat, error){
		s.h.Sink.Heartbeat, s.h.Sink.TakeOver,
	} {
		_, err := raise(ctx, unknown(sysName))
		require.Equal(s, fault.Infrastructure, fault.KindOf(err), "%v", err)
		require.ErrorIs(s, err, context.Canceled)
		require.Equal(s, first.Number, s.heartbeat(sysName).Number)
	}
	s.beat(sysName)
}

func emptyPreview(s *sinkTest) {
	s.apply(commit.Write, s.mixed()...)
	before := s.state(span(1, 13)...)
	require.NotNil(s, s.apply(commit.Preview))
	require.Equal(s, before, s.state(span(1, 13)...))
	_, ok := s.h.Heartbeat(s, sysName)
	require.False(s, ok)
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	_, err := s.h.Sink.Apply(ctx, nil, commit.Preview, unknown(sysName))
	require.Equal(s, fault.Infrastructure, fault.KindOf(err), "it is a request: %v", err)
}

func emptyPreviewMisses(s *sinkTest) {
	for _, table := range []invoice.Table{LedgerTable, invoice.Detail, invoice.Tracking} {
		restore := s.hide(table, "")
		s.fails(fault.Infrastructure, commit.Preview)
		restore()
		s.apply(commit.Preview)
	}
}
