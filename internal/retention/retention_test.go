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
	err   error
}

func (t *table) Purge(_ context.Context, part retention.Part, days, limit int) (int, error) {
	n := min(limit, t.old[part])
	t.old[part] -= n
	t.days[part], t.clock = days, t.clock.Add(t.takes)
	t.calls[part]++
	return n, t.err
}

func (t *table) tick(days int) (int, error) {
	return retention.Tick(context.Background(), t, days, func() time.Time { return t.clock })
}

func newTable(old map[retention.Part]int, takes time.Duration) *table {
	return &table{old: old, days: map[retention.Part]int{}, calls: map[retention.Part]int{}, takes: takes}
}

// A tick deletes for half a second, the parts in turn: a million rows of one keep no other waiting.
func TestATickPurgesForHalfASecond(t *testing.T) {
	tab := newTable(map[retention.Part]int{retention.ErrorDetails: 1_000_000, retention.EndedRuns: 1500, retention.AuditLog: 10}, 100*time.Millisecond)
	rows, err := tab.tick(90)
	require.NoError(t, err)
	require.Equal(t, 1000+1000+10+1000, rows, "five chunks, one of which found nothing")
	require.Equal(t, map[retention.Part]int{retention.ErrorDetails: 2, retention.EndedRuns: 1, retention.Comparisons: 1, retention.AuditLog: 1}, tab.calls)

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

func TestTheAuditLogIsKeptAYear(t *testing.T) {
	for days, want := range map[int]int{30: 365, 365: 365, 3650: 3650} {
		tab := newTable(map[retention.Part]int{}, 0)
		_, err := tab.tick(days)
		require.NoError(t, err)
		require.Equal(t, map[retention.Part]int{retention.ErrorDetails: days, retention.EndedRuns: days, retention.Comparisons: days, retention.AuditLog: want}, tab.days)
	}
}

// SQL is away in the middle: the tick says so, and the next one goes on.
func TestAPurgeThatFails(t *testing.T) {
	tab := newTable(map[retention.Part]int{retention.ErrorDetails: 5}, 0)
	tab.err = fault.New(fault.Infrastructure, "test", "away", "it is away")
	_, err := tab.tick(90)
	require.True(t, fault.IsDependency(err))
}
