package e2e_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/test/sample"
)

// Must show: with 130 results whose lines do not exist, a good one is committed in less than 10 s: one that comes with
// them, and those that come later. (On a fake clock, for hours: test/scenario.)
func TestAGoodDocumentIsCommittedBeside130BadOnes(t *testing.T) {
	const (
		bad   = 130
		limit = 10 * time.Second
	)
	docs := sample.Generate(sample.Options{Seed: 13, Count: 8, Clean: true})
	s := newStack(t, sample.Lines(docs)...)
	s.poll = 0 // as deployed
	s.startHost()
	s.handler.waitReady()

	ids := make([]string, bad)
	for k := range ids {
		ids[k] = fmt.Sprintf("2025-12-17 10:%02d:%02d.000000-06:00-0001-%d", k/60, k%60, 900_000_000+k)
		s.submit(
			json.RawMessage(
				fmt.Sprintf(
					`{"id":%q,"request_details":{"sys_name":"web"},"invoice_details_from_rpa":{"IVCE_DTL_UID":%d},
			"process_output":{"manufacturer_name":"NO SUCH LINE","part_number":"425","unspsc":"39131711","invoice_line_status":"RC-AI"},
			"post-processing":{"duplicate_detail_uids":[]},"sql_writer":{"status":"pending","retry_count":0}}`, ids[k], 900_000_000+k)))
	}
	var worst time.Duration
	for k, d := range docs {
		begin := time.Now()
		s.submit(d.JSON)
		require.Eventually(t, func() bool { return s.state(d.ID)["status"] == "committed" }, limit, 20*time.Millisecond,
			"good document %d is not committed after %s: %v", k, limit, s.state(d.ID))
		worst = max(worst, time.Since(begin))
		if k == 0 { // this one came with them; the next come when they have all failed
			s.waitUntilQuiet(bad + 1)
		}
	}
	t.Logf("%d good ones beside %d bad ones: the slowest was committed after %s", len(docs), bad,
		worst.Round(time.Millisecond))
	require.Less(t, worst, limit)
	for _, id := range ids {
		state := s.state(id)
		require.Equal(t, "retry_scheduled", state["status"], "%s: %v", id, state)
		require.LessOrEqual(t, state["retry_count"], 1.0, "%s: one failure is one retry at most", id)
	}
	s.requireCommittedOnly(docs)
}

// requireCommittedOnly checks that good documents stand in their lines.
func (s *stack) requireCommittedOnly(docs []sample.Document) {
	s.t.Helper()
	for _, d := range docs {
		var lines int
		require.NoError(s.t,
			s.db.QueryRowContext(s.t.Context(),
				"SELECT count(*) FROM sqlwriter_ledger WHERE document_id = ? AND outcome = 'applied'",
				d.ID).Scan(&lines))
		require.Equal(s.t, len(d.Lines), lines, "%s", d.ID)
	}
}
