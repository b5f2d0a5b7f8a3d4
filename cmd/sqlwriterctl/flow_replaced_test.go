package main

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/store/sqlite"
)

// maker is the manufacturer in a line's row.
func (r *real) maker(t *testing.T, store *sqlite.Store, line int64) string {
	t.Helper()
	var name string
	require.NoError(t,
		store.Writer().QueryRowContext(t.Context(),
			`SELECT COALESCE(CLN_MFR_AI_NM, '') FROM IVCE_DTL WHERE IVCE_DTL_UID = ?`, line).Scan(&name))
	return name
}

// opened opens another file as the database of the commands to come.
func (r *real) opened(t *testing.T, path string) *sqlite.Store {
	t.Helper()
	store, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	r.env["SQL_CONNECTION"] = "sqlite:" + path
	return store
}

// The page "Restored from a backup", with a file that was put in the place of the database.
func TestARestoredDatabaseIsBroughtUpToDateStepByStep(t *testing.T) {
	r := operated(t)
	first, second := r.failed(t, 1, "2628"), r.failed(t, 2, "2628")
	require.Equal(t, exitOK, r.run(t, "document", "retry", first, "--why", "x"), r.errors)
	backup := filepath.Join(r.dir, "backup.db")
	_, err := r.store.Writer().ExecContext(t.Context(), `VACUUM INTO ?`, backup)
	require.NoError(t, err)
	require.Equal(t, exitOK, r.run(t, "document", "retry", second, "--why", "x"), r.errors)
	store := r.opened(t, backup)
	// of an hour ago
	_, err = store.Writer().ExecContext(t.Context(), `UPDATE sqlwriter_heartbeat SET number = number - 3600000`)
	require.NoError(t, err)
	require.Equal(t, "OLD", r.maker(t, store, 2))

	forced := []string{"flow", "resume", "--force"}
	require.Equal(t, exitUsage, r.run(t, append(forced, "--why", "x")...), "there is no terminal to ask on")
	require.Equal(t, exitUsage, r.run(t, append(forced, "--yes")...))
	require.Contains(t, r.errors, "--why: expected the reason")
	require.Equal(t, exitOK, r.run(t, append(forced, "--yes", "--why", "INC-4715")...), r.errors)
	require.Contains(t, r.out, "FORCED. A forced resume")
	next := regexp.MustCompile(
		"write it again by `sqlwriterctl (run start reapply --since \\S+) --why").FindStringSubmatch(r.out)
	require.NotNil(t, next, r.out)
	require.Equal(t, exitOK, r.run(t, append(forced, "--yes", "--why", "again")...), r.errors)
	require.Contains(t, r.out, "there was nothing to accept; the flow was resumed")
	require.Contains(t, r.out, next[1], "it is said until it is done")
	require.Equal(t, "OLD", r.maker(t, store, 2))
	require.Equal(t, exitOK, r.run(t, append(strings.Fields(next[1]), "--yes", "--why", "INC-4715")...), r.errors)
	require.Regexp(t, `1 applied, 1 unchanged`, r.out)
	require.Equal(t, "M", r.maker(t, store, 2))
	require.Equal(t, invoice.Committed, r.writerState(t, second).Status)
	require.Equal(t, exitOK, r.run(t, "audit", "list"), r.errors)
	require.Contains(t, r.out, ops.FlowForced)

	require.Equal(t, exitOK, r.run(t, append(forced, "--yes", "--why", "again")...), r.errors)
	require.NotContains(t, r.out, "write it again by")
}

// The page "A new database": one whose rows came with it, and one without results.
func TestANewDatabaseIsAdoptedAndFilled(t *testing.T) {
	for name, c := range map[string]struct {
		adopt          []string
		rows, afterAll string
		outcomes       string
	}{
		"with its rows": {[]string{"ledger", "adopt"}, "M", "M", "1 unchanged"},
		"without":       {[]string{"ledger", "adopt", "--empty", "--yes"}, "OLD", "M", "1 applied"},
	} {
		t.Run(name, func(t *testing.T) {
			r := operated(t)
			first := r.failed(t, 1, "2628")
			require.Equal(t, exitOK, r.run(t, "document", "retry", first, "--why", "x"), r.errors)
			path := filepath.Join(r.dir, "new.db")
			store := r.opened(t, path)
			require.NoError(t, sqlite.CreateSampleSchema(t.Context(), store.Writer()))
			_, err := store.Writer().ExecContext(t.Context(),
				`INSERT INTO IVCE_DTL (IVCE_DTL_UID, CLN_MFR_AI_NM) VALUES (1, ?)`, c.rows)
			require.NoError(t, err)
			require.Equal(t, exitOK, r.run(t, "migrate", "up"), r.errors)
			require.Equal(t, exitFailed, r.run(t, "flow", "resume", "--force", "--yes", "--why", "moved"))
			require.Contains(t, r.errors, "ledger_not_adopted")
			require.Equal(t, exitOK, r.run(t, c.adopt...), r.errors)
			require.Equal(t, exitOK, r.run(t, "flow", "resume", "--force", "--yes", "--why", "moved"), r.errors)
			require.Contains(t, r.out, "FORCED.")
			require.Contains(t, r.out, "`sqlwriterctl run start reapply --all --why")
			require.Equal(t, exitOK, r.run(t, "run", "start", "reapply", "--all", "--yes", "--why", "x"), r.errors)
			require.Contains(t, r.out, c.outcomes)
			require.Equal(t, c.afterAll, r.maker(t, store, 1))
		})
	}
}

// Two environments in one database: each is refused, and each is accepted by a command of its own.
func TestTwoEnvironmentsInARestoredDatabase(t *testing.T) {
	r := operated(t)
	ids := map[int64]string{}
	for line, sysName := range map[int64]string{1: "web", 2: "dev", 3: "web", 4: "dev"} {
		ids[line] = r.failed(t, line, "2628")
		raw, err := r.documents.Read(t.Context(), ids[line])
		require.NoError(t, err)
		raw = []byte(strings.Replace(string(raw), `"sys_name":"web"`, fmt.Sprintf(`"sys_name":%q`, sysName), 1))
		require.NoError(t, r.documents.Submit(t.Context(), raw, true))
	}
	commit := func(sysName string, line int64) {
		t.Helper()
		r.env["SYS_NAME"] = sysName
		require.Equal(t, exitOK, r.run(t, "document", "retry", ids[line], "--why", "x"), r.errors)
	}
	commit("web", 1)
	commit("dev", 2)
	backup := filepath.Join(r.dir, "backup.db")
	_, err := r.store.Writer().ExecContext(t.Context(), `VACUUM INTO ?`, backup)
	require.NoError(t, err)
	commit("web", 3)
	commit("dev", 4)
	store := r.opened(t, backup)
	// of three minutes ago
	_, err = store.Writer().ExecContext(t.Context(), `UPDATE sqlwriter_heartbeat SET number = number - 180000`)
	require.NoError(t, err)
	heartbeat := func(sysName string) (id string) {
		t.Helper()
		require.NoError(t,
			store.Writer().QueryRowContext(t.Context(),
				`SELECT database_id FROM sqlwriter_heartbeat WHERE sys_name = ?`, sysName).Scan(&id))
		return id
	}
	for sysName, c := range map[string]struct {
		line  int64
		other string
	}{"web": {3, "dev"}, "dev": {4, "web"}} {
		require.Equal(t, "OLD", r.maker(t, store, c.line))
		r.env["SYS_NAME"] = sysName
		others := heartbeat(c.other)
		require.Equal(t, exitOK, r.run(t, "flow", "resume", "--force", "--yes", "--why", "x"), r.errors)
		require.Contains(t, r.out, "FORCED.")
		require.Equal(t, others, heartbeat(c.other), "the other environment's row is not touched")
		require.Equal(t, exitOK, r.run(t, "run", "start", "reapply", "--since", "10m", "--yes", "--why", "x"), r.errors)
		require.Regexp(t, `1 applied, 1 unchanged`, r.out)
		require.Equal(t, "M", r.maker(t, store, c.line))
	}
}
