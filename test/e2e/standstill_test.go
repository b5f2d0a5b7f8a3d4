package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/handlers"
	"sqlwriter/test/emulators/cosmosdb"
)

// standstill is a stack with one range, whose feed stops at a document too deep. The clock of the container's _ts can
// be set back.
type standstill struct {
	*stack
	back atomic.Int64 // nanoseconds
	// rule makes the range fail, as the host's reader does at such a document.
	rule  string
	lines int
}

func newStandstill(t *testing.T) *standstill {
	t.Helper()
	b := &standstill{}
	b.stack = newStackOver(t, newContainers(t, ranges(1), func(o *cosmosdb.Options) {
		o.Now = func() time.Time { return time.Now().Add(-time.Duration(b.back.Load())) }
	}))
	b.recover = "*/2 * * * * *"
	b.startHost()
	b.handler.waitReady()
	b.waitCommitted(patience, b.put(1)...)
	return b
}

// stop lets the range stop for everything that comes from now on.
func (b *standstill) stop() {
	b.t.Helper()
	var err error
	b.rule, err = b.cosmos.Server.AddFault(
		cosmosdb.Rule{Op: cosmosdb.OpFeed, Container: container, Status: http.StatusServiceUnavailable})
	require.NoError(b.t, err)
}

// put submits n documents with lines of their own, and gives their ids.
func (b *standstill) put(n int) (ids []string) {
	b.t.Helper()
	for range n {
		b.lines++
		b.addLines(int64(b.lines))
		ids = append(ids, b.submitNested(b.lines, 1))
	}
	return ids
}

// fifty submits fifty documents, the first of which has 64 levels: a host that stops at it brings none of them.
func (b *standstill) fifty() (ids []string, deep string, line int) {
	b.t.Helper()
	b.lines++
	line = b.lines
	b.addLines(int64(line))
	deep = b.submitNested(line, 64)
	return append(b.put(49), deep), deep, line
}

// submitNested submits a document of so many levels, itself counted.
func (b *standstill) submitNested(line, levels int) string {
	b.t.Helper()
	nested := "0"
	if levels > 1 {
		nested = strings.Repeat("[", levels-1) + strings.Repeat("]", levels-1)
	}
	id := fmt.Sprintf("2025-12-17 10:30:00.%06d-06:00-0001-%d", line, line)
	b.submit(
		json.RawMessage(
			fmt.Sprintf(
				`{"id":%q,"request_details":{"sys_name":"web"},"invoice_details_from_rpa":{"IVCE_DTL_UID":%d},"notes":%s,
		"process_output":{"manufacturer_name":"M","part_number":"425","unspsc":"39131711","invoice_line_status":"RC-AI"},
		"sql_writer":{"status":"pending","retry_count":0}}`, id, line, nested)))
	return id
}

func (b *standstill) waitCommitted(within time.Duration, ids ...string) {
	b.t.Helper()
	require.Eventually(b.t, func() bool {
		return !slices.ContainsFunc(ids, func(id string) bool { return b.state(id)["status"] != "committed" })
	}, within, 50*time.Millisecond)
}

// requireTold waits until the log and Health tell that the feed stands still, and the log where.
func (b *standstill) requireTold(deep string, stopped time.Time) {
	b.t.Helper()
	b.handler.waitForLine("what the feed missed", func(l logLine) bool {
		return l.Level == "error" && l.Event == "feed_missed" && l.Document == deep && l.Code == "document.too_deep"
	})
	report := b.handler.waitHealth("that the feed stands still", func(h handlers.HealthReport) bool {
		return len(h.Problems) > 0
	})
	require.Equal(b.t,
		[]string{
			"feed_missed: the change feed did not bring documents that were due; the timer commits them, late (docs/runbook.md#the-feed-stands-still)",
		}, report.Problems)
	require.Equal(b.t, handlers.StatusReady, report.Status)
	_, why := b.ops(http.MethodGet, "documents/why?id="+strings.NewReplacer(" ", "%20").Replace(deep), "", functionKey)
	require.Contains(b.t, why["warning"], "document.too_deep")
	b.requireAlarm(time.Since(stopped), "feed_missed",
		fmt.Sprintf(`^the feed did not bring \d+ documents? that (was|were) due, .* such as %s \(document\.too_deep\)`,
			regexp.QuoteMeta(deep)))
}

// mend puts a flat version, and requires that the feed is as quick as before and nothing is told any more.
func (b *standstill) mend(line int) {
	b.t.Helper()
	b.cosmos.Server.RemoveFault(b.rule)
	flat := b.submitNested(line, 63)
	b.waitCommitted(patience, flat)
	worst := time.Duration(0)
	for range 5 {
		begin := time.Now()
		b.waitCommitted(2*time.Second, b.put(1)...)
		worst = max(worst, time.Since(begin))
	}
	b.handler.waitHealth("that the feed goes on", func(h handlers.HealthReport) bool { return len(h.Problems) == 0 })
	b.t.Logf("with the flat version the feed takes at most %s", worst.Round(time.Millisecond))
}

// A document of 64 levels among 50 stops the only range. RecoverRetries commits what waited for more than ten minutes
// (by the container's clock), names the document in log, Health, status and why. A flat version ends it.
func TestADocumentTooDeepForTheFeed(t *testing.T) {
	b := newStandstill(t)
	b.stop()
	b.back.Store(int64(11 * time.Minute))
	ids, deep, line := b.fifty()
	begin := time.Now()
	b.back.Store(0)
	b.waitCommitted(patience, ids...)
	b.requireTold(deep, begin)
	b.mend(line)
	b.handler.requireNeverRestarted()
}

// Must show, in real minutes: of 50 documents with one of 64 levels among them all are committed within 15 minutes, and
// it is told.
func TestCampaignADocumentTooDeepForTheFeed(t *testing.T) {
	if os.Getenv(faultsVariable) == "" {
		t.Skipf("needs ten real minutes: set %s (make faults)", faultsVariable)
	}
	t.Parallel()
	b := newStandstill(t)
	ticked := func(l logLine) bool { return l.Function == "RecoverRetries" }
	// _ts has whole seconds
	require.Eventually(t, func() bool { return len(b.handler.log(ticked)) > 1 }, patience, 20*time.Millisecond)
	b.stop()
	ids, deep, line := b.fifty()
	begin := time.Now()
	b.waitCommitted(15*time.Minute, ids...)
	took := time.Since(begin)
	require.GreaterOrEqual(t, took, 9*time.Minute, "nobody else could bring them")
	b.requireTold(deep, begin)
	t.Logf("%d documents behind one too deep were committed after %s", len(ids), took.Round(time.Second))
	b.mend(line)
}
