package handlers

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/run"
)

const timerBody = `{"Data":{"timer":{"IsPastDue":false}},"Metadata":{}}`

// The evidence of a poison message has the host's invocation id, so that the host's log can be found.
func TestCommitAndRecoverAreToldTheInvocation(t *testing.T) {
	var ids []string
	invoke(t, CommitResults(committer(func(_ context.Context, b commit.Delivery) (commit.Report, error) {
		ids = append(ids, b.InvocationID)
		return commit.Report{}, nil
	})), Options{}, batch())
	invoke(t, RecoverRetries(auditing{recovers: func(invocationID string) (commit.RecoveredDocuments, error) {
		ids = append(ids, invocationID)
		return commit.RecoveredDocuments{}, nil
	}}), Options{}, strings.NewReader(timerBody))
	require.Equal(t, []string{invocationID, invocationID}, ids)
}

// A skipped queue is not reported as empty.
func TestRecoverSaysNoCountsOfAQueueItDidNotLookAt(t *testing.T) {
	for off, counted := range map[string]bool{"shadow: nothing is recovered": false, "": true} {
		w, log := invoke(t, RecoverRetries(auditing{recovers: func(string) (commit.RecoveredDocuments, error) {
			return commit.RecoveredDocuments{Off: off}, nil
		}}), Options{}, strings.NewReader(timerBody))
		for _, output := range []string{w.Body.String(), log} {
			require.Contains(t, output, off)
			require.Contains(t, output, "7", "the result of runs is reported all the same")
		}
		require.Equal(t, counted, strings.Contains(w.Body.String(), "documents"))
	}
}

func TestATickSaysWhatItFoundInEachWindowAndWhatTheFlowDoes(t *testing.T) {
	w, log := invoke(t, RecoverRetries(auditing{recovers: func(string) (commit.RecoveredDocuments, error) {
		return commit.RecoveredDocuments{
			Report: commit.Report{Documents: 3, Outcomes: map[invoice.Outcome]int{"applied": 3}}, Oldest: time.Hour,
			Found: map[commit.Window]int{commit.Blamed: 2, commit.Orphans: 1}, More: []commit.Window{commit.Blamed},
			Missed: 1, Flow: "stopped since then",
		}, nil
	}}), Options{}, strings.NewReader(timerBody))
	require.Contains(t, w.Body.String(),
		"took up 3 documents: 3 applied; there are more in [blamed]; the feed did not bring 1 of them; the flow is stopped since then")
	require.Contains(t, log, `"found":{"blamed":2,"orphans":1},"more":["blamed"],"missed":1,"oldest_s":3600`)
	require.Contains(t, log, `"flow":"stopped since then"`)
}

// auditing records the order of a tick's parts.
type auditing struct {
	parts *[]string
	// recovers is the recovery of documents; may be nil.
	recovers func(invocationID string) (commit.RecoveredDocuments, error)
	// documents, runs, err and compare are the errors of the parts.
	documents, runs, err, purge, compare, counts error
}

func (a auditing) note(part string, err error) error {
	if a.parts != nil {
		*a.parts = append(*a.parts, part)
	}
	return err
}

func (a auditing) Recover(_ context.Context, invocationID string) (commit.RecoveredDocuments, error) {
	if a.recovers != nil {
		return a.recovers(invocationID)
	}
	return commit.RecoveredDocuments{}, a.note("documents", a.documents)
}

func (a auditing) RecoverRuns(context.Context) (run.RecoveredRuns, error) {
	return run.RecoveredRuns{Sent: 7}, a.note("runs", a.runs)
}

func (a auditing) CarryOnRuns(context.Context) (run.Carried, error) {
	return run.Carried{}, a.note("carry on", nil)
}

func (a auditing) SaveCounts(context.Context) error       { return a.note("counts", a.counts) }
func (a auditing) TellTransitions(context.Context) error  { return a.note("audit", a.err) }
func (a auditing) PurgeRows(context.Context) (int, error) { return 7, a.note("purge", a.purge) }
func (a auditing) Compare(context.Context) (int, error)   { return 9, a.note("compare", a.compare) }

// The recovery may end an outage, so the audit log is written after it, in the same tick. Comparisons have what time is
// left.
func TestATickTellsTheAuditLogAfterTheRecovery(t *testing.T) {
	var parts []string
	w, lines := invoke(t, RecoverRetries(auditing{parts: &parts}), Options{}, strings.NewReader(timerBody))
	require.Equal(t, http.StatusOK, w.Code)
	require.Contains(t, lines, `"purged":7,"compared":9`)
	require.Equal(t, []string{"counts", "runs", "documents", "audit", "purge", "compare"}, parts)
	full := fault.New(fault.Quota, "test: journal", "9002", "full")
	w, _ = invoke(t, RecoverRetries(auditing{parts: &parts, err: full}), Options{}, strings.NewReader(timerBody))
	require.Equal(t, http.StatusServiceUnavailable, w.Code, "an audit log that fails is reported")
}

// A tick does all of its parts and returns one error: that of documents first, then of runs, of the audit log, of the
// purge, of the comparison, of the counts.
func TestATickAnswersTheFirstOfItsErrors(t *testing.T) {
	documents, runs, audit, purge, compare, counts := errors.New("documents"), errors.New("runs"), errors.New("audit"),
		errors.New("purge"), errors.New("compare"), errors.New("counts")
	for _, c := range []struct {
		of   auditing
		want error
	}{
		{auditing{documents: documents, runs: runs, err: audit, compare: compare}, documents},
		{auditing{runs: runs, err: audit}, runs},
		{auditing{err: audit, compare: compare}, audit},
		{auditing{purge: purge, compare: compare}, purge},
		{auditing{compare: compare, counts: counts}, compare},
		{auditing{counts: counts}, counts},
		{auditing{}, nil},
	} {
		var parts []string
		c.of.parts = &parts
		_, err := RecoverRetries(c.of).Run(t.Context(), Invocation{})
		require.ErrorIs(t, err, c.want)
		require.Equal(t, []string{"counts", "runs", "documents", "audit", "purge", "compare"}, parts)
	}
}
