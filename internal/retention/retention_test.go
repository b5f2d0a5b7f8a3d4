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
	fails map[retention.Part]bool
}

func (t *table) Purge(_ context.Context, part retention.Part, days, limit int) (int, error) {
	t.calls[part]++
	if t.fails[part] {
		return 0, fault.New(fault.Contention, "test", "1205", "it was the victim of a deadlock")
	}
	n := min(limit, t.old[part])
	t.old[part] -= n
	t.days[part], t.clock = days, t.clock.Add(t.takes)
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
	require.Equal(t, 1000+1000+10+1000, rows, "five chunks, one of which found nothing")
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

func TestNoDaysKeepAll(t *testing.T) {
	tab := newTable(map[retention.Part]int{retention.ErrorDetails: 5}, 0)
	rows, err := tab.tick(0)
	require.NoError(t, err)
	require.Zero(t, rows)
	require.Empty(t, tab.calls)
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
