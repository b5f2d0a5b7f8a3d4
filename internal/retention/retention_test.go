package retention_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/retention"
)

// table has old rows by part. A purge of a chunk takes a time.
type table struct {
	old   map[retention.Part]int
	days  map[retention.Part]int
	calls map[retention.Part]int
	clock time.Time
	takes time.Duration
	// perRow is what each row adds, and longest the longest chunk.
	perRow, longest time.Duration
	fails           map[retention.Part]bool
}

func (t *table) Purge(_ context.Context, part retention.Part, days, limit int) (int, error) {
	t.calls[part]++
	if t.fails[part] {
		return 0, fault.New(fault.Contention, "test", "1205", "it was the victim of a deadlock")
	}
	n := min(limit, t.old[part])
	t.old[part] -= n
	took := t.takes + time.Duration(n)*t.perRow
	t.days[part], t.clock, t.longest = days, t.clock.Add(took), max(t.longest, took)
	return n, nil
}

func (t *table) tick(days int) (int, error) {
	return retention.Tick(context.Background(), t, days, func() time.Time { return t.clock })
}

func newTable(old map[retention.Part]int, takes time.Duration) *table {
	return &table{old: old, days: map[retention.Part]int{}, calls: map[retention.Part]int{}, takes: takes}
}

// A tick deletes for half a second, the parts in turn: a million rows of one keep no other waiting.
func TestATickPurgesForHalfASecond(t *testing.T) {
	tab := newTable(
		map[retention.Part]int{
			retention.ErrorDetails: 1_000_000, retention.EndedRuns: 1500, retention.AuditLog: 10,
		}, 100*time.Millisecond)
	rows, err := tab.tick(90)
	require.NoError(t, err)
	require.Equal(t, 100+100+10+100, rows, "five chunks, one of which found nothing")
	for part, days := range tab.days {
		require.Equal(t, 90, days, part)
	}
	require.Equal(t,
		map[retention.Part]int{
			retention.ErrorDetails: 2, retention.EndedRuns: 1, retention.Comparisons: 1, retention.AuditLog: 1,
		}, tab.calls)

	tab.takes = 0
	for tab.old[retention.ErrorDetails] > 0 {
		_, err = tab.tick(90)
		require.NoError(t, err)
	}
	rows, err = tab.tick(90)
	require.NoError(t, err)
	require.Zero(t, rows, "nothing is left")
}

// A row takes 4 ms beside a drain, as seen on a T-SQL engine: no chunk keeps its locks for longer than half a second.
// Where a row costs little, chunks grow.
func TestAChunkIsShort(t *testing.T) {
	tab := newTable(map[retention.Part]int{retention.EndedRuns: 1_000_000}, 0)
	tab.perRow = 4 * time.Millisecond
	for range 10 {
		rows, err := tab.tick(90)
		require.NoError(t, err)
		require.GreaterOrEqual(t, rows, 100)
	}
	require.LessOrEqual(t, tab.longest, 500*time.Millisecond)

	tab = newTable(map[retention.Part]int{retention.EndedRuns: 1_000_000}, time.Millisecond)
	tab.perRow = 10 * time.Microsecond
	rows, err := tab.tick(90)
	require.NoError(t, err)
	require.Greater(t, rows, 30_000)
}

func TestNoDaysKeepAll(t *testing.T) {
	tab := newTable(map[retention.Part]int{retention.ErrorDetails: 5, retention.AuditLog: 7}, 0)
	rows, err := tab.tick(0)
	require.NoError(t, err)
	require.Equal(t, 7, rows, "the audit log has days of its own")
	require.Equal(t, map[retention.Part]int{retention.AuditLog: 2}, tab.calls)
}

// A part that fails is told, and keeps no other waiting. The next tick goes on.
func TestAPurgeThatFails(t *testing.T) {
	tab := newTable(map[retention.Part]int{retention.ErrorDetails: 5, retention.AuditLog: 7}, 0)
	tab.fails = map[retention.Part]bool{retention.ErrorDetails: true}
	rows, err := tab.tick(90)
	require.Equal(t, fault.Contention, fault.KindOf(err))
	require.Equal(t, 7, rows)
	require.Equal(t, 1, tab.calls[retention.ErrorDetails])
	tab.fails = nil
	rows, err = tab.tick(90)
	require.NoError(t, err)
	require.Equal(t, 5, rows)
}
