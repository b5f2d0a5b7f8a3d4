package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/adopt"
	"sqlwriter/test/emulators/cosmosdb"
)

// put submits a document of the old writer.
func (r *real) put(t *testing.T, minute int, line int64, status string) string {
	t.Helper()
	id := fmt.Sprintf("2025-12-17 10:%02d:00.000000-06:00-0001-%d", minute, line)
	doc := fmt.Sprintf(`{"id":%q,"request_details":{"sys_name":"web"},"invoice_details_from_rpa":{"IVCE_DTL_UID":%d},
		"process_output":{"manufacturer_name":"ACME","invoice_line_status":"RC-AI"},
		"sql_writer":{"status":%q,"%[3]s_at":"2025-12-17 10:59:00.000000-06:00"}}`, id, line, status)
	require.NoError(t, r.documents.Submit(t.Context(), json.RawMessage(doc), false))
	return id
}

func (r *real) state(t *testing.T) adopt.State {
	t.Helper()
	s, err := r.store.State(t.Context())
	require.NoError(t, err)
	return s
}

func (r *real) ledgerOf(t *testing.T, line int64) string {
	t.Helper()
	rows, err := r.store.Rows(t.Context(), []int64{line})
	require.NoError(t, err)
	if len(rows) == 0 {
		return ""
	}
	return string(rows[0].Outcome) + " " + rows[0].DocumentID
}

func TestLedgerAdopt(t *testing.T) {
	r := newReal(t)
	r.line(t, 1)
	older, newer := r.put(t, 1, 1, "committed"), r.put(t, 2, 1, "committed")
	marked := r.put(t, 3, 2, "failed")
	r.put(t, 4, 3, "pending")
	r.put(t, 5, 4, "processing")
	bad := r.put(t, 6, 0, "committed")

	require.Equal(t, exitFailed, r.run(t, "ledger", "status"))
	require.Contains(t, r.out, "not adopted")
	require.Contains(t, r.errors, "sqlwriterctl ledger adopt")

	require.Equal(t, exitOK, r.run(t, "ledger", "adopt", "--dry-run", "-o", "json"), r.errors)
	require.Contains(t, r.errors, "dry run: nothing is written")
	require.Equal(t, adopt.State{}, r.state(t))
	require.Empty(t, r.ledgerOf(t, 1))
	var dry, wet receipt
	require.NoError(t, json.Unmarshal([]byte(r.out), &dry), "stdout is JSON and nothing else")

	require.Equal(t, exitOK, r.run(t, "ledger", "adopt", "-o", "json"), r.errors)
	require.NoError(t, json.Unmarshal([]byte(r.out), &wet))
	read := wet.Counts
	read.Adopted, read.Marked = 0, 0
	require.Equal(t, read, dry.Counts)
	// The container's times are now, long after the commits, so it is unknown whether the documents have changed since.
	require.Equal(t, adopt.Counts{
		Documents: 4, Lines: 3, Adopted: 1, Marked: 1, Unproven: 2, Open: 2, Processing: 1,
		Skipped: map[adopt.Reason]int{adopt.NoLine: 1},
	}, wet.Counts)
	require.Equal(t, 1, wet.Kept)
	require.Equal(t, adopt.Done, wet.State)
	require.Contains(t, wet.By, "@")
	require.Contains(t, r.errors, "environment: web (SYS_NAME)")
	require.Contains(t, r.errors, fmt.Sprintf("skipped %q: its main line cannot be read", bad))
	require.NotContains(t, r.errors+r.out, "AccountKey")
	require.Equal(t, "adopted "+newer, r.ledgerOf(t, 1), older)
	require.Equal(t, "failed "+marked, r.ledgerOf(t, 2))
	require.Empty(t, r.ledgerOf(t, 3))

	require.Equal(t, exitOK, r.run(t, "ledger", "status"))
	require.Contains(t, r.out, "done: adopted ")

	before := r.state(t)
	require.Equal(t, exitOK, r.run(t, "ledger", "adopt"))
	require.Contains(t, r.errors, "adopted already: done: adopted")
	require.Contains(t, r.out, "  adopted   1")
	require.Equal(t, before, r.state(t))
	require.Equal(t, exitOK, r.run(t, "ledger", "adopt", "--yes"))
	require.NotEqual(t, before.Run, r.state(t).Run)
	require.Zero(t, r.state(t).Counts.Adopted)
	require.Regexp(t, `  kept +3 `, r.out)
}

func TestLedgerAdoptBeforeATime(t *testing.T) {
	r := newReal(t)
	id := r.put(t, 1, 1, "committed")
	require.Equal(t, exitOK, r.run(t, "ledger", "adopt", "--before", "2025-12-17T10:58-06:00"))
	require.Contains(t, r.errors, fmt.Sprintf("skipped %q: it ended after the time of --before", id))
	require.Empty(t, r.ledgerOf(t, 1))
	require.Equal(t, exitOK, r.run(t, "ledger", "adopt", "--yes", "--before", "2025-12-17T11:00-06:00"))
	require.Equal(t, "adopted "+id, r.ledgerOf(t, 1))
}

func TestLedgerAdoptOfAnotherEnvironment(t *testing.T) {
	r := newReal(t)
	r.put(t, 1, 1, "committed")
	r.env["SYS_NAME"] = "dev"
	require.Equal(t, exitOK, r.run(t, "ledger", "adopt"))
	require.Contains(t, r.errors, "environment: dev")
	require.Zero(t, r.state(t).Counts.Documents)
}

func TestLedgerEmpty(t *testing.T) {
	r := newReal(t)
	r.put(t, 1, 1, "pending")
	require.Equal(t, exitOK, r.run(t, "ledger", "adopt", "--empty"), r.errors)
	require.Equal(t, adopt.Empty, r.state(t).Phase)
	require.Equal(t, exitOK, r.run(t, "ledger", "status"))
	require.Contains(t, r.out, "empty: confirmed ")
	require.Equal(t, exitOK, r.run(t, "ledger", "adopt", "--empty"))
	require.Contains(t, r.errors, "nothing to do")
}

func TestLedgerEmptyIsRefusedWhereSomethingWasCommitted(t *testing.T) {
	r := newReal(t)
	id := r.put(t, 1, 1, "committed")
	require.Equal(t, exitFailed, r.run(t, "ledger", "adopt", "--empty"))
	require.Contains(t, r.errors, id)
	require.Equal(t, adopt.State{}, r.state(t))
	r.env["SYS_NAME"] = "dev"
	require.Equal(t, exitOK, r.run(t, "ledger", "adopt", "--empty"),
		"another environment's documents are no history of ours")
	delete(r.env, "SYS_NAME")

	r = newReal(t)
	r.put(t, 1, 1, "committed")
	require.Equal(t, exitOK, r.run(t, "ledger", "adopt", "--empty", "--yes"))
	require.Equal(t, adopt.Empty, r.state(t).Phase)

	require.Equal(t, exitOK, r.run(t, "ledger", "reopen", "--yes"))
	require.Equal(t, exitFailed, r.run(t, "ledger", "adopt", "--empty", "--yes"))
	require.Contains(t, r.errors, "an adoption has started")
}

func TestLedgerReopen(t *testing.T) {
	r := newReal(t)
	require.Equal(t, exitUsage, r.run(t, "ledger", "reopen"))
	require.Equal(t, exitOK, r.run(t, "ledger", "reopen", "--yes"))
	require.Contains(t, r.out, "nothing to do")
	r.put(t, 1, 1, "committed")
	require.Equal(t, exitOK, r.run(t, "ledger", "adopt"))
	require.Equal(t, exitOK, r.run(t, "ledger", "reopen", "--yes"))
	require.Equal(t, exitFailed, r.run(t, "ledger", "status"))
	require.Contains(t, r.out, "nothing read yet")
	r.put(t, 2, 1, "committed")
	require.Equal(t, exitOK, r.run(t, "ledger", "adopt"))
	require.Contains(t, r.ledgerOf(t, 1), "10:02")
	require.True(t, r.state(t).Adopted())
}

// The old writer is still running: the command fails with that reason, and the app does not commit.
func TestLedgerAdoptWhileTheOldWriterWorks(t *testing.T) {
	r := newReal(t)
	doc := `{"id":"2025-12-17 10:30:00.000000-06:00-1","request_details":{"sys_name":"web"},"invoice_details_from_rpa":{"IVCE_DTL_UID":1},
		"process_output":{},"sql_writer":{"status":"committed","committed_at":"9999-12-31 10:59:00.000000-06:00"}}`
	require.NoError(t, r.documents.Submit(t.Context(), json.RawMessage(doc), false))
	require.Equal(t, exitOK, r.run(t, "ledger", "adopt", "--dry-run"),
		"which is for looking before the old writer is stopped")
	require.Equal(t, exitFailed, r.run(t, "ledger", "adopt"))
	require.Contains(t, r.errors, "stop the old writer")
	require.False(t, r.state(t).Adopted())
}

func TestLedgerAdoptGoesOnWhereItWasStopped(t *testing.T) {
	r := newReal(t)
	for i := range 30 {
		r.put(t, i, int64(i+1), "committed")
	}
	ctx, cancel := context.WithCancel(t.Context())
	hold, err := r.server.AddFault(
		cosmosdb.Rule{Op: cosmosdb.OpQuery, Container: "AI_PROCESS_LOGS", Hold: cosmosdb.Before, Nth: 12})
	require.NoError(t, err)
	done := make(chan int)
	var stdout, stderr strings.Builder
	go func() {
		env := r.environment(nil, nil)
		env.stdout, env.stderr = &stdout, &stderr
		done <- execute(ctx, []string{"ledger", "adopt"}, env)
	}()
	require.NoError(t, r.server.WaitHeld(t.Context(), hold, 1))
	cancel()
	require.Equal(t, exitInterrupted, <-done)
	require.Contains(t, stderr.String(), "the same command continues from there")
	r.server.RemoveFault(hold)
	require.Positive(t, r.state(t).Watermark)

	require.Equal(t, exitUsage, r.run(t, "ledger", "adopt", "--before=1d"))
	require.Contains(t, r.errors, "expected that of the unfinished adoption (-), found 20")
	require.Equal(t, exitOK, r.run(t, "ledger", "adopt"), r.errors)
	require.Contains(t, r.errors, "continuing the adoption that")
	require.Equal(t, 30, r.state(t).Counts.Documents)
	require.Equal(t, 30, r.state(t).Counts.Adopted)
}

func TestLedgerUsage(t *testing.T) {
	r := newReal(t)
	for _, args := range [][]string{
		{"ledger", "reopen"},
		{"ledger", "adopt", "--empty", "--dry-run"},
		{"ledger", "adopt", "--empty", "--rate=1"},
		{"ledger", "adopt", "--empty", "--before=1d"},
		{"ledger", "adopt", "--before=noon"},
		{"ledger", "adopt", "--rate=-1"},
		{"ledger", "adopt", "x"},
	} {
		require.Equal(t, exitUsage, r.run(t, args...), args)
	}
}

// A receipt names every skipped document with the reason.
func TestTheReceiptExplains(t *testing.T) {
	b := newBench(t)
	var out strings.Builder
	env := b.environment(nil, nil)
	env.stdout = &out
	r := receiptOf(adopt.State{Phase: adopt.Done, Counts: adopt.Counts{
		Documents: 9, Lines: 20, Adopted: 10, Marked: 2, Unproven: 1, Open: 4, Processing: 1,
		Skipped: map[adopt.Reason]int{adopt.NoVersion: 2, adopt.MarkNotMade: 1},
	}})
	require.NoError(t, r.print(&app{environment: env}))
	for _, line := range []string{
		`documents +9 `, `lines +20 `, `  adopted +10 `, `  marked +2 `, `  kept +8 `, `unproven +1 `,
		`skipped +1 +mark_not_made: `, `skipped +2 +no_version: `, `open +4 `, `processing +1 `,
	} {
		require.Regexp(t, line, out.String())
	}
}
