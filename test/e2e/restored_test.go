package e2e_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/cmd/local/sample"
	"sqlwriter/handlers"
	"sqlwriter/internal/breaker"
)

// backup copies the database into a file, as it is when it is so old.
func (s *stack) backup(age time.Duration) (path string) {
	s.t.Helper()
	path = filepath.Join(s.dir, "backup.db")
	s.exec(`VACUUM INTO ?`, path)
	s.exec(`ATTACH ? AS backup`, path)
	s.exec(`UPDATE backup.sqlwriter_heartbeat SET number = number - ?`, age.Milliseconds())
	s.exec(`DETACH backup`)
	return path
}

// restore replaces the content of every table by a backup's, at once, while the handler has the file open.
func (s *stack) restore(path string) {
	s.t.Helper()
	s.exec(`ATTACH ? AS backup`, path)
	rows, err := s.store.Writer().QueryContext(s.t.Context(), `SELECT name FROM backup.sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite!_%' ESCAPE '!' AND name <> 'counted'`)
	require.NoError(s.t, err)
	swap, tables := "PRAGMA defer_foreign_keys = ON;", 0
	for rows.Next() {
		var name string
		require.NoError(s.t, rows.Scan(&name))
		swap += fmt.Sprintf("DELETE FROM main.%[1]s; INSERT INTO main.%[1]s SELECT * FROM backup.%[1]s;", name)
		tables++
	}
	require.NoError(s.t, rows.Err())
	require.NoError(s.t, rows.Close())
	require.Greater(s.t, tables, 10)
	s.exec("BEGIN IMMEDIATE;" + swap + "COMMIT")
	s.exec(`DETACH backup`)
}

func (s *stack) exec(query string, args ...any) {
	s.t.Helper()
	_, err := s.store.Writer().ExecContext(s.t.Context(), query, args...)
	require.NoError(s.t, err, query)
}

// ctl runs the real tool, which must succeed.
func (s *stack) ctl(args ...string) string {
	s.t.Helper()
	out, exit := s.sqlwriterctl(args...)
	require.Zero(s.t, exit, "%v: %s", args, out)
	return out
}

// written counts the rows of the ledger.
func (s *stack) written() int { return s.count(`SELECT COUNT(*) FROM sqlwriter_ledger`) }

// A backup is put in the place of the database under a running host. Nothing is written to it before an operator's word; where nothing was
// lost there is nothing to refuse. Then every row equals its document. The commands are those of the page "Restored from a backup".
func TestARestoredDatabaseIsBroughtUpToDate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		age time.Duration
		// appliedSince: documents were written after the backup.
		appliedSince bool
	}{
		"of an hour ago": {time.Hour, true},
		"of three minutes ago with documents applied since":   {3 * time.Minute, true},
		"of three minutes ago with no document applied since": {0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const part = 40
			docs := sample.Generate(sample.Options{Seed: 19, Count: 3 * part, Clean: true})
			s := newStack(t, sample.Lines(docs)...)
			s.withBus(usualLock)
			s.recover = "*/1 * * * * *" // each tick raises the heartbeat
			if !c.appliedSince {
				s.recover = "0 0 0 1 1 *"
			}
			s.startHost()
			s.handler.waitReady()
			s.submit(jsons(docs[:part])...)
			s.waitUntilQuiet(part)
			taken, copied := time.Now(), s.backup(c.age)
			if c.appliedSince {
				s.submit(jsons(docs[part : 2*part])...)
				s.waitUntilQuiet(2 * part)
			}
			s.restore(copied)
			before := s.written()
			if !c.appliedSince {
				s.submit(jsons(docs[part:])...)
				s.waitUntilQuiet(len(docs))
				s.requireExact(docs)
				return
			}

			s.submit(jsons(docs[2*part:])...)
			s.handler.waitHealth("a database that went back", func(h handlers.HealthReport) bool {
				return h.Status != handlers.StatusReady && h.Flow.Code == breaker.CodeWentBack
			})
			require.Eventually(t, func() bool { // the feed offers them again and again
				return strings.Count(strings.Join(s.handler.lines(), "\n"), `"event":"invocation_postponed"`) >= 10
			}, patience, 20*time.Millisecond)
			require.Equal(t, before, s.written(), "nothing is written before the operator's word")

			require.Contains(t, s.ctl("status"), breaker.CodeWentBack)
			out := s.ctl("flow", "resume", "--database-restored", "--since", taken.UTC().Format(time.RFC3339), "--yes", "--why", "INC-4715: restored")
			require.Contains(t, out, "FORCED.")
			end := s.watchRun(regexp.MustCompile(`run (reapply-[-0-9a-f]+):`).FindStringSubmatch(out)[1], patience, nil)
			require.Equal(t, "completed", end.Status)
			require.GreaterOrEqual(t, end.Stats.Documents["committed"], part/2)
			s.waitUntilQuiet(len(docs))
			s.requireExact(docs)
			require.Contains(t, s.ctl("audit", "list"), "FLOW_FORCED")
			require.Contains(t, out, "compares everything afterwards")
		})
	}
}
