package e2e_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/ops"
	"sqlwriter/internal/run"
	"sqlwriter/test/emulators/azurite"
)

// findings are what the real tool lists, by CLASS/LINE, and its exit code.
func (s *stack) findings(state string) (found map[string]ops.FindingRow, exit int) {
	s.t.Helper()
	out, exit := s.sqlwriterctl("finding", "list", "--state", state, "-o", "json")
	var page ops.FindingPage
	require.NoError(s.t, json.Unmarshal([]byte(out), &page), out)
	found = map[string]ops.FindingRow{}
	for _, f := range page.Findings {
		name, _, _ := strings.Cut(f.Name, "/"+f.Document)
		found[name] = f
	}
	return found, exit
}

// edit changes one row of the user's tables, as another program does.
func (s *stack) edit(query string, args ...any) {
	s.t.Helper()
	result, err := s.store.Writer().ExecContext(s.t.Context(), query, args...)
	require.NoError(s.t, err)
	n, err := result.RowsAffected()
	require.NoError(s.t, err)
	require.Equal(s.t, int64(1), n)
}

// The nightly comparison as operators meet it: the timer starts it, RecoverRetries executes it and starts what mends, the status asks
// for attention, a person accepts, and another look by the real tool finds SQL equal to Cosmos.
func TestTheNightFindsWhatSomebodyEdited(t *testing.T) {
	t.Parallel()
	s := quietStack(t, func(s *stack) { s.blobs = azurite.Start(t).ConnectionString() })
	edited, untracked, reviewed := "", "", ""
	require.NoError(t, s.db.QueryRowContext(t.Context(), "SELECT min(detail_id), max(detail_id) FROM sqlwriter_ledger").Scan(&edited, &untracked))
	require.NoError(t, s.db.QueryRowContext(t.Context(), "SELECT min(detail_id) FROM sqlwriter_ledger WHERE detail_id NOT IN (?, ?)", edited, untracked).Scan(&reviewed))
	was := ""
	require.NoError(t, s.db.QueryRowContext(t.Context(), "SELECT coalesce(CLN_MFR_AI_NM, '') FROM IVCE_DTL WHERE IVCE_DTL_UID = ?", edited).Scan(&was))
	s.edit("UPDATE IVCE_DTL SET CLN_MFR_AI_NM = 'SOMEBODY' WHERE IVCE_DTL_UID = ?", edited)
	s.edit("DELETE FROM IVCE_TRKG_MSTR WHERE IVCE_DTL_UID = ?", untracked)
	s.edit("UPDATE IVCE_DTL SET IVCE_LNE_STAT = 'ST-OK' WHERE IVCE_DTL_UID = ?", reviewed) // a steward's work

	s.edit(`INSERT INTO sqlwriter_error_detail (sys_name, document_id, error_code, error_message, error_type, retry_count, is_retryable, created_at)
		VALUES ('web', 'x', '2628', 'x', 'MIGRATION', 0, 1, strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-366 days'))`)
	s.tickOf("Reconcile", "reconcile_started")
	s.tickOf("Reconcile", "reconcile_started") // a repeated tick starts nothing new
	require.Equal(t, 1, s.count("SELECT count(*) FROM sqlwriter_run WHERE kind = 'reconcile'"))
	s.tick()
	require.Equal(t, 1, s.count("SELECT count(*) FROM sqlwriter_run WHERE kind = 'reconcile' AND status = 'completed'"))
	require.Zero(t, s.count("SELECT count(*) FROM sqlwriter_error_detail WHERE document_id = 'x'"), "what was older than RETENTION_DAYS")
	open, exit := s.findings("open")
	require.Equal(t, 3, exit)
	require.Equal(t, []string{"edited/" + edited, "tracking_missing/" + untracked}, sorted(open))
	require.NotEmpty(t, open["tracking_missing/"+untracked].QueuedBy, "the timer mends it")
	require.Empty(t, open["edited/"+edited].QueuedBy, "people's work is left to people")
	require.Eventually(t, func() bool {
		return s.count("SELECT count(*) FROM sqlwriter_run WHERE kind = 'reindex' AND status = 'completed'") == 1
	}, patience, 20*time.Millisecond, "the run that mends does not end")
	s.tick()
	s.waitAlarm(time.Now(), "findings_open", `^SQL does not equal Cosmos: 1 open finding \(1 edited\), as of `)

	out, exit := s.sqlwriterctl("finding", "accept", "edited/"+edited, "--why", "INC-4714: the vendor's correction")
	require.Zero(t, exit, out)
	p, exit := s.compare("is it clean")
	require.Zero(t, exit)
	require.Equal(t, []int{0, 1, 1}, []int{p.Findings.Open, p.Findings.Accepted, p.Stats.Outcomes["reviewed"]}, "%+v", p.Stats)
	open, exit = s.findings("open")
	require.Zero(t, exit)
	require.Empty(t, open)
	s.tick()
	s.requireNothing()

	s.edit("UPDATE IVCE_DTL SET CLN_MFR_AI_NM = 'ANOTHER' WHERE IVCE_DTL_UID = ?", edited) // what was accepted is not what is there
	_, exit = s.compare("and now")
	require.Equal(t, 3, exit)
	open, _ = s.findings("open")
	require.Equal(t, []string{"edited/" + edited}, sorted(open))
	out, exit = s.sqlwriterctl("run", "start", "reindex", "--findings", "edited", "--yes", "--why", "wrong", "-q")
	require.Zero(t, exit, out)
	out, exit = s.sqlwriterctl("run", "show", strings.TrimSpace(out), "--watch")
	require.Zero(t, exit, out)
	_, exit = s.compare("is it mended")
	require.Zero(t, exit)
	is := ""
	require.NoError(t, s.db.QueryRowContext(t.Context(), "SELECT coalesce(CLN_MFR_AI_NM, '') FROM IVCE_DTL WHERE IVCE_DTL_UID = ?", edited).Scan(&is))
	require.Equal(t, was, is)
	require.Equal(t, 1, s.count("SELECT count(*) FROM IVCE_DTL WHERE IVCE_LNE_STAT = 'ST-OK'"), "the steward's work is left alone")
}

// compare starts a comparison by the tool, and has the timer execute it. exit is that of `run show`.
func (s *stack) compare(why string) (p ops.RunProgress, exit int) {
	s.t.Helper()
	id, exit := s.sqlwriterctl("run", "start", "reconcile", "--why", why, "-q")
	require.Zero(s.t, exit, id)
	s.tick()
	out, exit := s.sqlwriterctl("run", "show", strings.TrimSpace(id), "-o", "json")
	require.NoError(s.t, json.Unmarshal([]byte(out), &p))
	require.Equal(s.t, run.RunCompleted, p.Status)
	return p, exit
}

func sorted(found map[string]ops.FindingRow) (names []string) {
	for name := range found {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
