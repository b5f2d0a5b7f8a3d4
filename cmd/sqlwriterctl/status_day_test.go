package main

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/cosmos"
	"sqlwriter/internal/ops"
)

func TestStatusOfADay(t *testing.T) {
	r := operated(t)
	require.Equal(t, exitOK, r.run(t, "status", "--day"), r.errors)
	require.Contains(t, r.out, "no samples yet")

	last := time.Now().Truncate(time.Hour)
	var samples ops.Samples
	for i := range 25 { // of two hours and the tick before them
		samples = append(samples, ops.Sample{At: last.Add(time.Duration(i-24) * 5 * time.Minute), Committed: int64(i), Waiting: ops.Count{Documents: 100 - i, AtLeast: i == 1}, LagSeconds: int64(i)})
	}
	samples[13].StoppedSeconds = 120
	c, err := cosmos.Open(cosmos.Options{Connection: r.env["COSMOS_CONNECTION"], Database: "invoices", Container: "sqlwriter-control"})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	require.NoError(t, cosmos.NewCounts(c, "web", false).StoreCounts(t.Context(), ops.Saved{Counts: ops.Counts{At: last, EverySeconds: 300}, Samples: samples}))
	_, err = r.control(t).Store(t.Context(), breaker.Control{Stops: []breaker.Stop{{From: last.Add(-58 * time.Minute), To: last.Add(-56 * time.Minute), Code: "refused"}}}, "")
	require.NoError(t, err)

	require.Equal(t, exitOK, r.run(t, "status", "--day"), r.errors)
	require.Regexp(t, `^about 222 documents were committed from \S+ \S+:00:00\S+ to \S+ \S+:00:00`, r.out)
	require.Regexp(t, `(?m)^\S+ \S+:00:00\S+\s+78\s+at least 99\s+12s\s+0s\s*\n\S+ \S+:00:00\S+\s+222\s+87\s+24s\s+2m0s\s*$`, r.out)
	require.Regexp(t, `STOPPED FROM\s+TO\s+FOR\s+CODE\s*\n\S+ \S+:02:00\S+\s+\S+ \S+:04:00\S+\s+2m0s\s+refused\s*$`, r.out)
	require.Equal(t, exitOK, r.run(t, "status", "--day", "-o", "json"))
	var d ops.Day
	require.NoError(t, json.Unmarshal([]byte(r.out), &d))
	require.Len(t, d.Samples, 25)

	require.Equal(t, exitUsage, r.run(t, "status", "--day", "--check"))
	require.Contains(t, r.errors, "--day")
}
