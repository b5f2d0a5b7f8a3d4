package e2e_test

import (
	"database/sql"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/ops"
	"sqlwriter/test/emulators/azurite"
)

// findings are what the real tool lists, by CLASS/LINE, and its exit code.
func (s *stack) findings() (found map[string]ops.FindingRow, exit int) {
	s.t.Helper()
	out, exit := s.sqlwriterctl("finding", "list", "-o", "json")
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

// A night as operators meet it: the tick begins it and carries it on, its run mends what nobody edited, an edit is
// listed and asks for nobody, and a comparison that the real tool asks for finds what changed.
func TestTheNightFindsWhatSomebodyEdited(t *testing.T) {
	t.Parallel()
	s := quietStack(t, func(s *stack) { s.blobs = azurite.Start(t).ConnectionString() })
	s.compared(1) // the night before, at the first tick
	edited, untracked, reviewed := "", "", ""
	require.NoError(t,
		s.db.QueryRowContext(t.Context(),
			"SELECT min(detail_id), max(detail_id) FROM sqlwriter_ledger").Scan(&edited, &untracked))
	require.NoError(t,
		s.db.QueryRowContext(t.Context(), "SELECT min(detail_id) FROM sqlwriter_ledger WHERE detail_id NOT IN (?, ?)",
			edited, untracked).Scan(&reviewed))
	was := ""
	require.NoError(t,
		s.db.QueryRowContext(t.Context(),
			"SELECT coalesce(CLN_MFR_AI_NM, '') FROM IVCE_DTL WHERE IVCE_DTL_UID = ?", edited).Scan(&was))
	s.edit("UPDATE IVCE_DTL SET CLN_MFR_AI_NM = 'SOMEBODY' WHERE IVCE_DTL_UID = ?", edited)
	s.edit("DELETE FROM IVCE_TRKG_MSTR WHERE IVCE_DTL_UID = ?", untracked)
	s.edit("UPDATE IVCE_DTL SET IVCE_LNE_STAT = 'ST-OK' WHERE IVCE_DTL_UID = ?", reviewed) // a steward's work
	s.edit(
		`INSERT INTO sqlwriter_error_detail (sys_name, run_id, batch_id, document_id, error_code, error_message, error_type, retry_count, is_retryable, created_at)
		VALUES ('web', 'r', 'r/1', 'x', '2628', 'x', 'MIGRATION', 0, 1, strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-366 days'))`)
	s.edit("UPDATE sqlwriter_comparison SET comparison_id = 'an earlier night'") // so that this one was not begun yet
	s.compared(2)
	require.Zero(t, s.count("SELECT count(*) FROM sqlwriter_error_detail WHERE document_id = 'x'"),
		"what was older than RETENTION_DAYS")
	found, exit := s.findings()
	require.Equal(t, 3, exit)
	require.Equal(t, []string{"edited/" + edited, "tracking_missing/" + untracked}, sorted(found))
	require.Eventually(t, func() bool {
		return s.count("SELECT count(*) FROM sqlwriter_run WHERE kind = 'reindex' AND status = 'completed'") == 1
	}, patience, 20*time.Millisecond, "the run that mends does not end")
	require.Equal(t, 1, s.count("SELECT count(*) FROM IVCE_DTL WHERE CLN_MFR_AI_NM = 'SOMEBODY'"),
		"people's work is left to people")

	out, exit := s.sqlwriterctl("finding", "compare", "--all", "--why", "is it mended")
	require.Zero(t, exit, out)
	s.compared(3)
	found, exit = s.findings()
	require.Zero(t, exit, "an edit asks for nobody")
	require.Equal(t, []string{"edited/" + edited}, sorted(found))
	s.tick()
	s.requireNothing()

	out, exit = s.sqlwriterctl("run", "start", "reindex", "--findings", "edited", "--yes", "--why", "wrong", "-q")
	require.Zero(t, exit, out)
	out, exit = s.sqlwriterctl("run", "show", strings.TrimSpace(out), "--watch")
	require.Zero(t, exit, out)
	is := ""
	require.NoError(t,
		s.db.QueryRowContext(t.Context(),
			"SELECT coalesce(CLN_MFR_AI_NM, '') FROM IVCE_DTL WHERE IVCE_DTL_UID = ?", edited).Scan(&is))
	require.Equal(t, was, is)
	out, exit = s.sqlwriterctl("finding", "compare", found["edited/"+edited].Document, "--why", "and now")
	require.Zero(t, exit, out)
	s.compared(4)
	found, _ = s.findings()
	require.Empty(t, found)
	require.Equal(t, 1, s.count("SELECT count(*) FROM IVCE_DTL WHERE IVCE_LNE_STAT = 'ST-OK'"),
		"the steward's work is left alone")
}

// compared ticks until so many comparisons have ended. Nobody waits a quarter of an hour for the second look: its time
// is put back.
func (s *stack) compared(n int) {
	s.t.Helper()
	for range 10 {
		s.tick()
		if s.count("SELECT count(*) FROM sqlwriter_comparison WHERE ended_at IS NOT NULL") == n {
			require.Zero(s.t, s.count("SELECT count(*) FROM sqlwriter_comparison WHERE error IS NOT NULL"))
			return
		}
		s.putBackLooks()
	}
	s.t.Fatalf("%d comparisons do not end", n)
}

// comparedBecause waits until the comparison with a reason has ended without an error, and gives its counts.
func (s *stack) comparedBecause(why string) (counts map[string]int) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		s.putBackLooks()
		text := ""
		row := s.db.QueryRowContext(s.t.Context(),
			"SELECT counts FROM "+s.table("comparison")+
				" WHERE ended_at IS NOT NULL AND error IS NULL AND why = '"+why+"'")
		err := row.Scan(&text)
		if errors.Is(err, sql.ErrNoRows) {
			return false
		}
		require.NoError(s.t, errors.Join(err, json.Unmarshal([]byte(text), &counts)))
		return true
	}, s.patience, 100*time.Millisecond)
	return counts
}

// putBackLooks puts first looks back, so that nobody waits a quarter of an hour for the second.
func (s *stack) putBackLooks() {
	s.t.Helper()
	db, set := s.db, "JSON_MODIFY"
	if s.store != nil {
		db, set = s.store.Writer(), "json_set"
	}
	s.exec(db,
		"UPDATE "+s.table("comparison")+" SET position = "+set+
			"(position, '$.looked', 1) WHERE ended_at IS NULL AND position LIKE '%\"looked\"%'")
	s.exec(db, "UPDATE "+s.table("finding")+" SET last_seen = '1970-01-01T00:00:00.000Z' WHERE sure = 0")
}

func sorted(found map[string]ops.FindingRow) (names []string) {
	for name := range found {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
