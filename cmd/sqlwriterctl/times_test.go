package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMoment(t *testing.T) {
	now := time.Date(2026, 1, 20, 3, 4, 5, 0, time.UTC)
	a := &app{environment: environment{zone: chicago, now: func() time.Time { return now }}}
	for text, want := range map[string]time.Time{
		"": {}, "90m": now.Add(-90 * time.Minute), "1d": now.AddDate(0, 0, -1), "2w": now.AddDate(0, 0, -14),
		"2026-01-01T00:00:00-07:00":        time.Date(2026, 1, 1, 7, 0, 0, 0, time.UTC),
		"2026-01-01T00:00:00Z":             time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		"2026-01-01":                       time.Date(2026, 1, 1, 6, 0, 0, 0, time.UTC),
		"2026-01-01 12:30":                 time.Date(2026, 1, 1, 18, 30, 0, 0, time.UTC),
		"2026-01-01T12:30:10":              time.Date(2026, 1, 1, 18, 30, 10, 0, time.UTC),
		"2025-12-17 10:30:15.123456-06:00": time.Date(2025, 12, 17, 16, 30, 15, 123456000, time.UTC),
	} {
		got, err := a.moment("--since", text)
		require.NoError(t, err, text)
		require.True(t, want.Equal(got), "%s: %s", text, got)
	}
	for _, text := range []string{"yesterday", "-1h", "-1d", "1y", "2026-13-01", "01.02.2026"} {
		_, err := a.moment("--since", text)
		require.True(t, isUsage(err), text)
	}
	_, _, err := a.period("1d", "2d")
	require.ErrorContains(t, err, "--until: expected a time after --since (2026-01-18 21:04:05-06:00)")
}

// Every shown time says its zone: the operator's, or UTC. So do the times in sentences of the app.
func TestOneRuleOfTimes(t *testing.T) {
	at := time.Date(2026, 1, 20, 3, 4, 5, 0, time.UTC)
	a := &app{environment: environment{zone: chicago}}
	require.Equal(t, "2026-01-19 21:04:05-06:00", a.time(at))
	require.Equal(t, "stopped since 2026-01-19 21:04:05-06:00: x", a.says("stopped since 2026-01-20T03:04:05Z: x"))
	require.Equal(t, "the document 2026-01-20 03:04:05.000000-06:00-0001-1",
		a.says("the document 2026-01-20 03:04:05.000000-06:00-0001-1"), "an id is no time")
	a.UTC = true
	require.Equal(t, "2026-01-20 03:04:05Z", a.time(at))
	require.Equal(t, "-", a.time(time.Time{}))
}
