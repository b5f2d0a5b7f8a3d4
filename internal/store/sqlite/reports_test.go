package sqlite_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/store/shared"
	"sqlwriter/internal/store/sqlite"
	"sqlwriter/test/conformance"
)

func TestReports(t *testing.T) {
	t.Parallel()
	conformance.TestReports(t, func(t *testing.T) conformance.ReportsHarness {
		d := spying(newStore(t))
		h := conformance.ReportsHarness{
			Reports: d.Reports(conformance.ReportsSysName), Store: d.RunStore, Insert: d.spy.Insert,
			Sink: d.Store, AddLines: d.addLines,
			Now: func(testing.TB) time.Time { return time.Now() }, // the database is in this process
		}
		for _, r := range shared.ReportNames() {
			h.Names = append(h.Names, r.Name)
		}
		return h
	})
}

func TestReportsOfTablesThatAreMissing(t *testing.T) {
	d := spying(newStore(t))
	d.spy.Exec(t, `DROP VIEW sqlwriter_processing_job`)
	_, err := d.Reports("web").Report(t.Context(), "queue-lag")
	require.ErrorContains(t, err, "sqlite: report queue-lag")
}

// reportBound describes how a report finds its rows.
type reportBound struct {
	// by names the bound.
	by string
	// steps are the steps of the plan that read our tables, in their order.
	steps []string
}

// reportBounds has the bounds of all reports. The tables only grow between purges, and a dashboard may read a report
// every minute.
func reportBounds() map[string]reportBound {
	const (
		status  = "SEARCH t USING INDEX sqlwriter_ix_batch_status (status=?)"
		created = "SEARCH t USING INDEX sqlwriter_ix_batch_created (created_at>?)"
		ended   = "SEARCH t USING INDEX sqlwriter_ix_batch_ended (process_end_time>?)"
		details = "SEARCH e USING INDEX sqlwriter_ix_error_detail_created (sys_name=? AND created_at>?)"
		sample  = "SEARCH e USING INTEGER PRIMARY KEY (rowid=?)"
		running = "SEARCH w USING INDEX sqlwriter_ix_worker_status (status=?)"
	)
	return map[string]reportBound{
		"runs": {"the newest 100 runs, from the end of the table", []string{
			"SCAN r", "SEARCH t USING INDEX sqlite_autoindex_sqlwriter_batch_2 (run_id=?)",
			"SEARCH r USING INDEX sqlite_autoindex_sqlwriter_run_1 (run_id=?)",
		}},
		"batch-progress": {"what is open, and 7 days of what has ended", []string{status, ended}},
		"performance":    {"7 days", []string{ended + " LEFT-JOIN"}},
		"workers": {
			"running workers, and 7 days of the others",
			[]string{running, "SEARCH w USING INDEX sqlwriter_ix_worker_started (started_at>?)"},
		},
		"pending-retries": {"what is to be sent again", []string{status}},
		"queue-lag":       {"an hour", []string{created}},
		"batch-success":   {"7 days", []string{created}},
		"error-codes":     {"7 days, and 10,000 failures", []string{details, sample}},
		"same-key": {
			"the newest 100,000 lines, from the end of the ledger",
			[]string{"SCAN l", "SEARCH d USING INTEGER PRIMARY KEY (rowid=?)"},
		},
	}
}

func TestNoReportScansATable(t *testing.T) {
	s := newStore(t)
	texts, err := sqlite.Texts(shared.OfReports)
	require.NoError(t, err)
	bounds := reportBounds()
	require.Len(t, bounds, len(texts))
	for name, text := range texts {
		plan := planOf(t, s, text)
		tables := map[string]bool{"t": true} // the view's name for the table of batches
		for _, found := range regexp.MustCompile(
			`(?:sqlwriter_|"IVCE_)(\w+)"? AS (\w+)`).FindAllStringSubmatch(text, -1) {
			if found[1] != "processing_job" {
				tables[found[2]] = true
			}
		}
		delete(tables, "x") // finds the run of each row by its key
		var steps []string
		for i, step := range plan {
			if words := strings.Fields(step); (words[0] == "SCAN" || words[0] == "SEARCH") && tables[words[1]] {
				steps = append(steps, step)
				if words[0] == "SCAN" { // reads in the order of the key, so it stops at the limit
					require.NotContains(t, plan[i+1], "TEMP B-TREE", "%s: %s", name, strings.Join(plan, "; "))
				}
			}
		}
		require.Equal(t, bounds[name].steps, steps, "%s is bounded by %s: %s", name, bounds[name].by,
			strings.Join(plan, "; "))
	}
}
