package e2e_test

import (
	"database/sql"
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/handlers"
	"sqlwriter/internal/breaker"
	"sqlwriter/internal/reconcile"
	"sqlwriter/test/emulators/azurite"
	"sqlwriter/test/sample"
)

// backup copies the database, as it is when it is so old, and returns what puts the copy in its place at once, while
// the handler uses it.
func (s *stack) backup(age time.Duration) (restore func()) {
	s.t.Helper()
	if s.store == nil {
		return s.backupOnServer(age)
	}
	path := filepath.Join(s.dir, "backup.db")
	s.exec(s.store.Writer(), `VACUUM INTO ?`, path)
	s.exec(s.store.Writer(), `ATTACH ? AS backup`, path)
	s.exec(s.store.Writer(), `UPDATE backup.sqlwriter_heartbeat SET number = number - ?`, age.Milliseconds())
	swap := ""
	for _, name := range s.tablesOfBackup() {
		swap += fmt.Sprintf("DELETE FROM main.%[1]s; INSERT INTO main.%[1]s SELECT * FROM backup.%[1]s;", name)
	}
	return func() {
		s.t.Helper()
		s.exec(s.store.Writer(), "BEGIN IMMEDIATE; PRAGMA defer_foreign_keys = ON;"+swap+"COMMIT")
		s.exec(s.store.Writer(), `DETACH backup`)
	}
}

// tablesOfBackup are the tables of the attached backup, but for the test's own.
func (s *stack) tablesOfBackup() (names []string) {
	s.t.Helper()
	rows, err := s.store.Writer().QueryContext(s.t.Context(),
		`SELECT name FROM backup.sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite!_%' ESCAPE '!' AND name <> 'counted'`)
	require.NoError(s.t, err)
	defer func() { require.NoError(s.t, rows.Close()) }()
	for rows.Next() {
		var name string
		require.NoError(s.t, rows.Scan(&name))
		names = append(names, name)
	}
	require.NoError(s.t, rows.Err())
	require.Greater(s.t, len(names), 10)
	return names
}

// backupOnServer is backup of the user's tables, the ledger and the heartbeat.
func (s *stack) backupOnServer(age time.Duration) (restore func()) {
	s.t.Helper()
	swap := "SET XACT_ABORT ON; BEGIN TRANSACTION; "
	for n, name := range []string{"dbo.IVCE_DTL", "dbo.IVCE_TRKG_MSTR", "sqlwriter.ledger", "sqlwriter.heartbeat"} {
		s.exec(s.db, fmt.Sprintf("SELECT * INTO dbo.backup_%d FROM %s", n, name))
		swap += fmt.Sprintf("DELETE FROM %[2]s; INSERT INTO %[2]s SELECT * FROM dbo.backup_%[1]d; ", n, name)
	}
	s.exec(s.db, "UPDATE dbo.backup_3 SET number = number - @p1", age.Milliseconds())
	return func() {
		s.t.Helper()
		s.exec(s.db, swap+"COMMIT")
	}
}

func (s *stack) exec(db *sql.DB, query string, args ...any) {
	s.t.Helper()
	_, err := db.ExecContext(s.t.Context(), query, args...)
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
func (s *stack) written() int { return s.count("SELECT COUNT(*) FROM " + s.table("ledger")) }

// A backup is put in the place of the database under a running host. Nothing is written to it before an operator's
// word; where nothing was lost there is nothing to refuse. Then every row equals its document. The commands are those
// of the page "Restored from a backup".
func TestARestoredDatabaseIsBroughtUpToDate(t *testing.T) {
	t.Parallel()
	const part = 40
	docs := plainResults(19, 3*part)
	for engine, stackOf := range map[string]func(t *testing.T) *stack{
		"sqlite": func(t *testing.T) *stack { t.Helper(); return newStack(t, sample.Lines(docs)...) },
		"sqlserver": func(t *testing.T) *stack {
			t.Helper()
			return newServerStack(t, newContainers(t), func(dsn string) string { return dsn }, sample.Lines(docs)...)
		},
	} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			restores(t, stackOf, docs, part)
		})
	}
}

// restores runs the cases. Each third of the documents is one part: before the backup, after it, and after the restore.
func restores(t *testing.T, stackOf func(*testing.T) *stack, docs []sample.Document, part int) {
	t.Helper()
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
			s := stackOf(t)
			s.withBus(usualLock)
			s.blobs = azurite.Start(t).ConnectionString()
			s.recover = "*/1 * * * * *" // each tick raises the heartbeat
			if !c.appliedSince {
				s.recover = "0 0 0 1 1 *"
			}
			s.startHost()
			s.handler.waitReady()
			s.submit(jsons(docs[:part])...)
			s.waitUntilQuiet(part)
			taken, restore := time.Now(), s.backup(c.age)
			if c.appliedSince {
				s.submit(jsons(docs[part : 2*part])...)
				s.waitUntilQuiet(2 * part)
			}
			restore()
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
			}, s.patience, 20*time.Millisecond)
			require.Equal(t, before, s.written(), "nothing is written before the operator's word")

			// The person stops after each step, and the status names the next one until it is done.
			require.Contains(t, s.ctl("status"), breaker.CodeWentBack)
			status, answer := s.ops(http.MethodPost, "flow/resume", `{"why":"it looks well"}`, functionKey)
			require.Equal(t, http.StatusConflict, status, "%v", answer)
			require.Equal(t, before, s.written(), "and nothing by a word that does not accept it")
			require.Contains(t, s.ctl("flow", "resume", "--force", "--yes", "--why", "INC-4715: restored"), "FORCED.")
			next := func() []string {
				t.Helper()
				m := regexp.MustCompile(
					`write it again by .sqlwriterctl (run start reapply --since (\S+)) --why "\.\.\.".`).FindStringSubmatch(s.ctl("status"))
				require.NotNil(t, m, s.ctl("status"))
				since, err := time.Parse("2006-01-02T15:04Z07:00", m[2])
				require.NoError(t, err)
				require.WithinDuration(t, taken.Add(-c.age-10*time.Minute), since, 2*time.Minute,
					"some minutes before the copy")
				return append(strings.Fields(m[1]), "--yes", "--why", "INC-4715: restored")
			}
			next()
			s.waitUntilQuiet(len(docs)) // new documents are committed meanwhile
			require.Contains(t, s.ctl("flow", "resume", "--force", "--yes", "--why", "INC-4715: again"),
				"there was nothing to accept")
			reapply := regexp.MustCompile(`reapply-[-0-9a-f]+`)
			out := s.ctl(next()...)
			end := s.watchRun(reapply.FindString(out), s.patience, nil)
			require.Equal(t, "completed", end.Status)
			require.GreaterOrEqual(t, end.Stats.Documents["applied"], part/2)
			s.requireExact(docs)
			require.NotContains(t, s.ctl("status"), "write it again by")
			again := s.watchRun(
				reapply.FindString(s.ctl("run", "start", "reapply", "--all", "--yes", "--why", "to be sure")),
				s.patience, nil)
			require.Equal(t, len(docs), again.Stats.Documents["unchanged"]+again.Stats.Documents["superseded"],
				"it may be repeated: %v", again.Stats.Documents)
			require.Contains(t, s.ctl("audit", "list"), "FLOW_FORCED")
			s.ctl("finding", "compare", "--all", "--why", "INC-4715: compared")
			compared := s.comparedBecause("INC-4715: compared")
			require.GreaterOrEqual(t, compared[string(reconcile.Consistent)], len(docs))
			require.Equal(t, "no finding\n", s.ctl("finding", "list"), "%v", compared)
		})
	}
}
