package handlers

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/run"
	"sqlwriter/internal/writer"
)

// recoverer is a use case made of a function.
type recoverer func(ctx context.Context, job string) (writer.Recovered, error)

func (r recoverer) Recover(ctx context.Context, job string) (writer.Recovered, error) {
	return r(ctx, job)
}

func (r recoverer) RecoverRuns(context.Context) (run.Recovered, error) {
	return run.Recovered{Sent: 7}, nil
}

const timerBody = `{"Data":{"timer":{"IsPastDue":false}},"Metadata":{}}`

// The host's name of the invocation stands in the evidence of a poison pill, so it can be found in the host's own log.
func TestCommitAndRecoverAreToldTheInvocation(t *testing.T) {
	var jobs []string
	invoke(t, CommitResults(committer(func(_ context.Context, b writer.Batch) (writer.Report, error) {
		jobs = append(jobs, b.Job)
		return writer.Report{}, nil
	})), Options{}, batch())
	invoke(t, RecoverRetries(recoverer(func(_ context.Context, job string) (writer.Recovered, error) {
		jobs = append(jobs, job)
		return writer.Recovered{}, nil
	})), Options{}, strings.NewReader(timerBody))
	require.Equal(t, []string{invocationID, invocationID}, jobs)
}

// A queue that nobody looked at is not an empty one.
func TestRecoverSaysNoCountsOfAQueueItDidNotLookAt(t *testing.T) {
	for off, counted := range map[string]bool{"shadow: nothing is recovered": false, "": true} {
		w, log := invoke(t, RecoverRetries(recoverer(func(context.Context, string) (writer.Recovered, error) {
			return writer.Recovered{Off: off}, nil
		})), Options{}, strings.NewReader(timerBody))
		for _, said := range []string{w.Body.String(), log} {
			require.Contains(t, said, off)
			require.Equal(t, counted, strings.Contains(said, "pending"), said)
			require.Contains(t, said, "7", "what became of runs is said all the same")
		}
	}
}
