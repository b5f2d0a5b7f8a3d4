package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/handlers"
	"sqlwriter/internal/breaker"
)

// A backup is put back under a running handler. Nothing is written to it, Health says so, a resume is refused, and a
// forced one accepts it: what was written since the backup is missing in it, and everything after goes on.
func TestABackupIsPutBackUnderARunningHandler(t *testing.T) {
	s := newStack(t, 1, 2, 3)
	s.recover = "*/1 * * * * *" // each tick raises the heartbeat
	put := func(line int) string {
		id := fmt.Sprintf("2025-12-17 10:30:0%d.000000-06:00-0001-%d", line, line)
		s.submit(
			json.RawMessage(
				fmt.Sprintf(
					`{"id":%q,"request_details":{"sys_name":"web"},"invoice_details_from_rpa":{"IVCE_DTL_UID":%d},
			"process_output":{"manufacturer_name":"M","part_number":"425","unspsc":"39131711","invoice_line_status":"RC-AI"},
			"sql_writer":{"status":"pending","retry_count":0}}`, id, line)))
		return id
	}
	committed := func(id string) {
		t.Helper()
		require.Eventually(t, func() bool {
			return s.state(id)["status"] == "committed"
		}, patience, 20*time.Millisecond, id)
	}
	exec := func(query string, args ...any) {
		t.Helper()
		_, err := s.store.Writer().ExecContext(t.Context(), query, args...)
		require.NoError(t, err)
	}
	s.startHost()
	s.handler.waitReady()
	committed(put(1))
	backup := filepath.Join(s.dir, "backup.db")
	exec(`VACUUM INTO ?`, backup)
	committed(put(2))
	raised := s.count(`SELECT MAX(number) FROM sqlwriter_heartbeat`)
	require.Eventually(t, func() bool {
		return s.count(`SELECT MAX(number) FROM sqlwriter_heartbeat`) > raised
	}, patience, 20*time.Millisecond)

	exec(`ATTACH ? AS backup`, backup)
	restore := `BEGIN IMMEDIATE;`
	for _, table := range []string{"IVCE_DTL", "IVCE_TRKG_MSTR", "sqlwriter_ledger", "sqlwriter_heartbeat"} {
		restore += fmt.Sprintf(`DELETE FROM main.%[1]s; INSERT INTO main.%[1]s SELECT * FROM backup.%[1]s;`, table)
	}
	exec(restore + `COMMIT`)
	exec(`DETACH backup`)

	third := put(3)
	s.handler.waitHealth("a database that went back", func(h handlers.HealthReport) bool {
		return h.Status != handlers.StatusReady && h.Flow.Code == breaker.CodeWentBack && len(h.Problems) == 1
	})
	require.Zero(t, s.count(`SELECT COUNT(*) FROM sqlwriter_ledger WHERE detail_id IN (2, 3)`))
	status, answer := s.ops(http.MethodPost, "flow/resume", `{"why":"it looks well"}`, functionKey)
	require.Equal(t, http.StatusConflict, status, "%v", answer)
	status, answer = s.ops(http.MethodPost, "flow/resume", `{"why":"we lost the second","force":true}`, functionKey)
	require.Equal(t, http.StatusOK, status, "%v", answer)
	require.Equal(t, breaker.Risk, answer["risk"])
	require.Contains(t, answer["behind"], "sqlwriterctl run start reapply --since ")
	committed(third)
	s.handler.waitHealth("the flow goes on", func(h handlers.HealthReport) bool {
		return h.Status == handlers.StatusReady
	})
	require.Zero(t, s.count(`SELECT COUNT(*) FROM sqlwriter_ledger WHERE detail_id = 2`), "that is the risk")
	require.Equal(t, float64(0), s.state(third)["retry_count"])
}
