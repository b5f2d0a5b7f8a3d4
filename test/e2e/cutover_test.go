package e2e_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"sqlwriter/test/emulators/cosmosdb"
	"sqlwriter/test/expect"
)

// The size of the rehearsal: the figures of docs/cutover.md.
const (
	committedBefore = 2000
	editedByHand    = 50
	staleRetries    = 15 // results that are older than the content of their lines, three of them than a failure mark
	freshRetries    = 5  // results that are the newest of their lines
	failedBefore    = 20
	resetByHand     = 10
)

// TestCutoverRehearsal runs the commands of docs/cutover.md: afterwards no edit is overwritten and no row is stale.
func TestCutoverRehearsal(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engine) {
		r := newRehearsal(t, e)
		steps := commandsOf(t, "../../docs/cutover.md")
		require.Equal(t, []string{
			"Before: does the mapping fit?", "1. Our own tables", "2. Shadow: compare, and write nothing",
			"3. See what adopting would do",
			"4. Stop the old writer, and the shadow",
			"5. Adopt", "6. Live", "7. The way back",
		}, titles(steps), "this test knows every step of the page")

		r.run(steps[0])
		r.run(steps[1])
		r.run(steps[2])
		r.requireShadowCompared()
		r.run(steps[3])
		dry := r.answer
		require.Zero(t, r.ledgerRows(), "a dry run writes nothing")
		r.run(steps[4])
		r.requireRefusal()
		r.killAdopting()
		r.run(steps[5])
		for line := range strings.Lines(dry) {
			require.Contains(t, r.answers["sqlwriterctl ledger adopt"], line,
				"the dry run foretold what is read, in spite of the kill")
		}
		r.requireAdopted()
		before := r.tables()
		r.command("sqlwriterctl ledger adopt") // once more: nothing
		r.command("sqlwriterctl ledger adopt --yes")
		r.requireLinesAsBefore(before)

		r.run(steps[6])
		r.drain()
		r.resetByHand()
		overwritten, stale := r.damage()
		require.Empty(t, overwritten, "edits that were overwritten")
		require.Empty(t, stale, "rows that are stale")
		r.requireStatuses(map[string]int{
			"committed": committedBefore - resetByHand, "failed": failedBefore, "committed superseded": staleRetries,
			"committed applied": freshRetries, "committed unchanged": resetByHand,
		})

		r.old.work = r.resultsOfAWeek()
		r.run(steps[7])
		r.drain()
		overwritten, stale = r.damage()
		require.Empty(t, overwritten)
		require.Empty(t, stale)
		require.Empty(t, r.old.work, "the old writer did its part")
	})
}

// TestCutoverWithoutAdoption rehearses a cutover whose operator states that there is no history: it shows that the
// check of the other one can fail.
func TestCutoverWithoutAdoption(t *testing.T) {
	r := newRehearsal(t, sqliteEngine(t))
	steps := commandsOf(t, "../../docs/cutover.md")
	r.run(steps[1])
	r.command("sqlwriterctl ledger adopt --empty --yes")
	r.run(steps[4])
	r.run(steps[6])
	r.drain()
	r.resetByHand()
	overwritten, stale := r.damage()
	t.Logf("without adoption: %d of %d edits overwritten, %d rows stale", len(overwritten), editedByHand, len(stale))
	require.NotEmpty(t, overwritten)
	require.NotEmpty(t, stale)
}

// requireShadowCompared waits until the shadow has seen everything and requires that it found the edits, and nothing
// else.
func (r *rehearsal) requireShadowCompared() {
	r.t.Helper()
	health := r.app.health()
	require.Equal(r.t, "shadow", health["mode"])
	total := len(r.results)
	require.Eventually(r.t, func() bool {
		return r.app.seen() >= total
	}, patience, 50*time.Millisecond, "the shadow has not seen all of %d documents", total)
	outcomes, columns := r.app.outcomes()
	touched := map[string]bool{} // documents that a corrected line names as its newest
	for line := range r.edited {
		touched[r.newest[line]] = true
	}
	require.Equal(r.t, len(touched), outcomes["differs"], "%v", outcomes)
	require.Equal(r.t, []string{"IVCE_DTL.CLN_MFR_PRT_NUM", "IVCE_TRKG_MSTR.UNSPSC_CD"},
		slices.Sorted(maps.Keys(columns)))
	require.Equal(r.t, committedBefore, outcomes["matches"]+outcomes["differs"]+outcomes["holds_newer"], "%v", outcomes)
	require.Positive(r.t, outcomes["holds_newer"])
	require.Equal(r.t, staleRetries+freshRetries, outcomes["would_be_applied"],
		"it has no ledger yet, and says what would happen without one")
	require.Equal(r.t, failedBefore, outcomes["skipped"])
	require.Zero(r.t, r.ledgerRows())
	require.Empty(r.t, r.differences(r.withoutFresh()), "the shadow wrote nothing")
	r.requireStatuses(
		map[string]int{
			"committed": committedBefore, "failed": failedBefore, "retry_scheduled": staleRetries + freshRetries,
		})
}

// withoutFresh are the lines whose newest result waits still.
func (r *rehearsal) withoutFresh() map[int64]bool {
	waiting := map[int64]bool{}
	for line, id := range r.newest {
		waiting[line] = strings.Contains(string(r.results[id]), "retry_scheduled")
	}
	return waiting
}

// requireRefusal starts the app before the ledger is adopted. It writes nothing and logs the reason.
func (r *rehearsal) requireRefusal() {
	r.t.Helper()
	early := maps.Clone(r.settings)
	early["MODE"], early["LEASE_PREFIX"] = "live", "web-early-"
	app := startApplication(r.t, early)
	require.Eventually(r.t, func() bool {
		return strings.Contains(fmt.Sprint(app.health()["problems"]), "ledger_not_adopted")
	},
		patience, 50*time.Millisecond)
	require.Contains(r.t, fmt.Sprint(app.health()["problems"]), "sqlwriterctl ledger adopt")
	require.Equal(r.t, "live", app.health()["status"])
	app.stop()
	require.Zero(r.t, r.ledgerRows())
	r.requireStatuses(
		map[string]int{
			"committed": committedBefore, "failed": failedBefore, "retry_scheduled": staleRetries + freshRetries,
		})
}

// killAdopting starts the adoption and kills the process when some of its rows are written. What the page says next
// then goes on from there.
func (r *rehearsal) killAdopting() {
	r.t.Helper()
	rule, err := r.cosmos.Server.AddFault(
		cosmosdb.Rule{Op: cosmosdb.OpQuery, Container: container, Hold: cosmosdb.Before})
	require.NoError(r.t, err)
	cmd := r.ctl(r.t.Context(), "ledger", "adopt")
	require.NoError(r.t, cmd.Start())
	for page := 1; r.ledgerRows() == 0; page++ { // page by page
		require.Eventually(r.t, func() bool { return r.held(rule) >= page }, patience, time.Millisecond)
		if r.ledgerRows() == 0 {
			r.cosmos.Server.Release(rule)
		}
	}
	require.NoError(r.t, cmd.Process.Kill())
	require.Error(r.t, cmd.Wait())
	r.cosmos.Server.RemoveFault(rule)
	require.Less(r.t, r.ledgerRows(), len(r.newest)-freshRetries)
	require.Error(r.t, r.ctl(r.t.Context(), "ledger", "status").Run(), "the app does not commit yet")
	r.t.Logf("killed after %d ledger rows", r.ledgerRows())
}

// held is how many requests a rule has stopped so far.
func (r *rehearsal) held(rule string) int {
	for _, f := range r.cosmos.Server.Faults() {
		if f.ID == rule {
			return f.Hit
		}
	}
	return 0
}

// requireAdopted: the ledger names the newest finished result of every line, and the user's rows are as they were.
func (r *rehearsal) requireAdopted() {
	r.t.Helper()
	now := r.tables()
	waiting := r.withoutFresh()
	for line, id := range r.newest {
		row := now[expect.Ledger][line]
		require.NotNil(r.t, row, "line %d", line)
		want := "adopted"
		if line > 7_000_000 {
			want = "failed"
		}
		require.Equal(r.t, want, *row["outcome"], "line %d", line)
		if !waiting[line] {
			require.Equal(r.t, id, *row["document_id"], "line %d", line)
		}
	}
	require.Len(r.t, now[expect.Ledger], len(r.newest))
	require.Empty(r.t, r.differences(waiting))
}

func (r *rehearsal) requireLinesAsBefore(before expect.Tables) {
	r.t.Helper()
	now := r.tables()
	require.Equal(r.t, before, now, "adopting again changes nothing")
}

// drain waits until the live app has been offered every document and nothing is due any more.
func (r *rehearsal) drain() {
	r.t.Helper()
	total := len(r.results)
	require.Eventually(r.t, func() bool {
		return r.app.seen() >= total && r.statuses()["retry_scheduled"] == 0 && r.statuses()["pending"] == 0
	},
		patience, 50*time.Millisecond, "not everything came to its end: %d of %d documents, %v",
		r.app.seen(), total, r.statuses())
}

// damage compares the user's rows with what they must be: which corrections are gone, and which lines hold something
// else than their newest result says.
func (r *rehearsal) damage() (overwritten, stale []int64) {
	r.t.Helper()
	for _, line := range r.differences(nil) {
		if r.edited[line] {
			overwritten = append(overwritten, line)
		} else {
			stale = append(stale, line)
		}
	}
	return overwritten, stale
}

// differences lists the lines whose rows are not as expected, but for some.
func (r *rehearsal) differences(but map[int64]bool) []int64 {
	r.t.Helper()
	now := r.tables()
	var lines []int64
	for _, line := range slices.Sorted(maps.Keys(r.expected[expect.Detail])) {
		if but[line] {
			continue
		}
		for _, table := range []string{expect.Detail, expect.Tracking} {
			if !sameRow(r.expected[table][line], now[table][line]) {
				lines = append(lines, line)
				break
			}
		}
	}
	return lines
}

// sameRow compares the columns that are expected.
func sameRow(want, got expect.Row) bool {
	if (want == nil) != (got == nil) {
		return false
	}
	for column, w := range want {
		g, there := got[column]
		if !there || (w == nil) != (g == nil) || w != nil && *w != *g {
			return false
		}
	}
	return true
}

// statuses counts the documents by status and outcome.
func (r *rehearsal) statuses() map[string]int {
	r.t.Helper()
	counts := map[string]int{}
	pager := r.docs.NewQueryItemsPager("SELECT c.sql_writer.status, c.sql_writer.outcome FROM c",
		azcosmos.NewPartitionKey(), &azcosmos.QueryOptions{PageSizeHint: 1000})
	for pager.More() {
		page, err := pager.NextPage(r.t.Context())
		require.NoError(r.t, err)
		for _, raw := range page.Items {
			var s struct{ Status, Outcome string }
			require.NoError(r.t, json.Unmarshal(raw, &s))
			counts[strings.TrimSpace(s.Status+" "+s.Outcome)]++
		}
	}
	return counts
}

func (r *rehearsal) requireStatuses(want map[string]int) {
	r.t.Helper()
	require.Equal(r.t, want, r.statuses())
}
