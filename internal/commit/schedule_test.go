package commit_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sqlwriter/internal/commit"
)

func TestTheScheduleIsTheRequirements(t *testing.T) {
	want := []time.Duration{
		2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 16 * time.Minute, 32 * time.Minute, time.Hour, time.Hour,
	}
	for n, d := range want {
		require.Equal(t, d, commit.Backoff(n, 0), "retry %d", n)
	}
}

func TestJitterIsNeverEarlyAndAtMostAFifth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 1000).Draw(t, "n")
		draw := rapid.Float64Range(0, 0.999999).Draw(t, "draw")
		plain, with := commit.Backoff(n, 0), commit.Backoff(n, draw)
		require.GreaterOrEqual(t, with, plain)
		require.LessOrEqual(t, with, plain+plain/5)
		require.GreaterOrEqual(t, commit.Backoff(n+1, 0), plain, "a later retry waits at least as long")
	})
}
