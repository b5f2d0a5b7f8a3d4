package sqlserver_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	mssql "github.com/microsoft/go-mssqldb"
	"github.com/stretchr/testify/require"

	"sqlwriter/internal/adopt"
	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/retention"
	"sqlwriter/internal/run"
	"sqlwriter/internal/store/migration"
	"sqlwriter/internal/store/sqlserver"
	"sqlwriter/test/conformance"
	"sqlwriter/test/mapping"
	"sqlwriter/test/sqlservertest"
	"sqlwriter/test/sqltest"
)

const testPassword = "Test!only-5c1e"

// as is the connection string of a new login with the rights of a script. The login replaces the script's user.
func (d *database) as(t *testing.T, user, script string) string {
	t.Helper()
	login := fmt.Sprintf("%s_%d", user, time.Now().UnixNano()%1e9)
	d.spy.Exec(t, fmt.Sprintf(`CREATE LOGIN %s WITH PASSWORD = '%s'`, login, testPassword))
	t.Cleanup(func() { // a login with a session cannot be dropped
		require.Eventually(t, func() bool {
			_, err := d.db.Exec(`DROP USER IF EXISTS ` + user + `; DROP LOGIN ` + login)
			return err == nil
		}, 30*time.Second, 100*time.Millisecond)
	})
	d.spy.Exec(t, fmt.Sprintf(`CREATE USER %s FOR LOGIN %s`, user, login))
	d.run(t, script)
	return sqlservertest.As(t, d.dsn, login, testPassword)
}

// chained grants a role the rights that a procedure has on SQL Server by its ownership chain. Other engines check the
// caller's rights instead, so this test proves nothing about the caller there.
func (d *database) chained(t *testing.T, grants ...string) (real bool) {
	t.Helper()
	if sqlservertest.IsReal(d.version) {
		return true
	}
	t.Log("this engine has no chain of owners: shown with rights to the tables")
	for _, g := range grants {
		d.spy.Exec(t, g)
	}
	return false
}

// run runs a script of deploy/sql, statement by statement, with names replaced.
func (d *database) run(t *testing.T, script string, names ...string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "deploy", "sql", script))
	require.NoError(t, err)
	for line := range strings.Lines(strings.NewReplacer(names...).Replace(string(text))) {
		if strings.Contains(line, "VIEW DEFINITION") && !sqlservertest.IsReal(d.version) {
			t.Log("not to be had on this engine: " + line)
			continue
		}
		if !strings.HasPrefix(line, "--") {
			d.spy.Exec(t, line)
		}
	}
}

// Without a server, too: what the app's login may do to tables itself.
func TestTheAppsRightsToTables(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "deploy", "sql", "app_rights.sql"))
	require.NoError(t, err)
	grants, may := regexp.MustCompile(`(?m)^GRANT (.+) ON OBJECT::(\S+) TO`), map[string][]string{}
	for _, grant := range grants.FindAllStringSubmatch(string(text), -1) {
		for right := range strings.SplitSeq(grant[1], ", ") {
			may[right] = append(may[right], strings.TrimPrefix(grant[2], "sqlwriter."))
		}
	}
	delete(may, "SELECT")
	delete(may, "VIEW DEFINITION")
	require.Equal(t, map[string][]string{
		"INSERT": {"run", "batch", "batch_item", "worker", "error_detail", "finding", "comparison"},
		"UPDATE": {"run", "batch", "batch_item", "worker", "finding", "comparison"},
		"DELETE": {"finding"},
	}, may)
}

// forbids requires that each statement fails for the login.
func forbids(t *testing.T, s *sqlserver.Store, statements ...string) {
	t.Helper()
	for _, text := range statements {
		_, err := s.DB().Exec(text)
		require.Error(t, err, text)
		require.Regexp(t, `(?i)permission|must be owner|not have permission|does not exist`, err.Error(),
			"%s: refused for a right", text)
	}
}

// The rights suffice for the app's work and allow no direct write to the user's tables.
func TestTheAppsRights(t *testing.T) {
	ctx := t.Context()
	d := newDatabase(t)
	d.harness(t).AddLines(t, 1)
	s := d.withOneWriter(t, d.as(t, "sqlwriter_app", "app_rights.sql")).store // the lock needs no right
	const entry = `INSERT INTO sqlwriter.audit_log (done_at, sys_name, action, done_by, why, subject) ` +
		`VALUES ('2001-01-01', N'web', N'mark-committed', N'ann', N'x', N'x')`
	forbids( // first, because other engines need some of these rights for the procedures
		t, s, entry, `DELETE FROM sqlwriter.audit_log`, `UPDATE sqlwriter.audit_log SET why = N'another'`,
		`INSERT INTO sqlwriter.audit_retention (sys_name, kept_days) VALUES (N'web', 365)`,
		`UPDATE sqlwriter.audit_retention SET kept_days = 365`, `DELETE FROM sqlwriter.audit_retention`,
		`INSERT INTO sqlwriter.adoption (id, phase, run_id, watermark, counts, adopted, marked, who, started_at) `+
			`VALUES (1, 'empty', '', 0, N'{}', 0, 0, N'x', '2001-01-01')`,
		`UPDATE sqlwriter.adoption SET who = N'x'`, `DELETE FROM sqlwriter.adoption`,
		`INSERT INTO sqlwriter.mapping (version, columns) VALUES (7, N'[]')`,
		`UPDATE sqlwriter.mapping SET chosen_at = SYSUTCDATETIME()`, `DELETE FROM sqlwriter.mapping`,
	)
	real := d.chained(
		t, `GRANT INSERT ON OBJECT::sqlwriter.audit_log TO sqlwriter_writers`,
		`GRANT UPDATE ON OBJECT::dbo.IVCE_DTL TO sqlwriter_writers`,
		`GRANT INSERT, UPDATE ON OBJECT::dbo.IVCE_TRKG_MSTR TO sqlwriter_writers`,
		`GRANT INSERT, UPDATE ON OBJECT::sqlwriter.ledger TO sqlwriter_writers`,
		`GRANT SELECT, INSERT, UPDATE ON OBJECT::sqlwriter.heartbeat TO sqlwriter_writers`,
		`GRANT UPDATE ON OBJECT::sqlwriter.procedure_set TO sqlwriter_writers`,
	)
	require.NoError(t, s.Check(ctx))
	user, at, err := s.Login(ctx)
	require.NoError(t, err)
	require.Equal(t, "sqlwriter_app", user)
	require.WithinDuration(t, time.Now(), at, time.Minute)
	for _, mode := range []commit.Mode{commit.Preview, commit.Write, commit.Rewrite} {
		_, err := s.Apply(ctx, []commit.Item{sqltest.Item("a", 10, 1)}, mode, breaker.Heartbeat{})
		require.NoError(t, err, mode)
	}
	chosen, err := s.Mappings(ctx)
	require.NoError(t, err)
	require.Equal(t, mapping.InUse().Version(), chosen[0].Version)
	_, err = s.Heartbeat(ctx, breaker.Heartbeat{SysName: "web"})
	require.NoError(t, err)
	scanned, err := s.ReconcileRows("web", 0).Scan(ctx, 0, 10)
	require.NoError(t, err)
	require.Equal(t, int64(1), scanned.Last)
	_, err = s.ReconcileRows("web", 0).Lines(ctx, []int64{1})
	require.NoError(t, err)
	useAuditLog(t, s)
	conformance.UseRunStore(t, s.RunStore("web"), s.AuditLog("web"))
	conformance.UseFindings(t, s.Findings("web"))
	for _, report := range s.Reports("web").Names() {
		_, err := s.Reports("web").Report(ctx, report.Name)
		require.NoError(t, err, report.Name)
	}
	if real {
		forbids(
			t, s, `UPDATE dbo.IVCE_DTL SET ITM_LDSC = N'x'`, `INSERT INTO dbo.IVCE_TRKG_MSTR (IVCE_DTL_UID) VALUES (2)`,
			`UPDATE dbo.IVCE_TRKG_MSTR SET UPC_CD = N'x'`, `UPDATE sqlwriter.ledger SET source_ts = 0`,
			`UPDATE sqlwriter.heartbeat SET number = 0`,
		)
	}
	forbids(
		t, s, `INSERT INTO dbo.IVCE_DTL (IVCE_DTL_UID) VALUES (2)`, `DELETE FROM dbo.IVCE_DTL`,
		`DELETE FROM dbo.IVCE_TRKG_MSTR`,
		`DELETE FROM sqlwriter.ledger`, `DROP TABLE sqlwriter.ledger`,
		`CREATE TABLE sqlwriter.mine (a int)`,
		`DELETE FROM sqlwriter.run`, `DELETE FROM sqlwriter.batch`, `DELETE FROM sqlwriter.batch_item`,
		`DELETE FROM sqlwriter.worker`,
		`DELETE FROM sqlwriter.error_detail`, `DELETE FROM sqlwriter.comparison`, `DELETE FROM sqlwriter.migration`,
		`CREATE PROCEDURE sqlwriter.mine AS SELECT 1 AS a`,
	)
	require.Error(t,
		s.MigrateWith(ctx,
			append(ownMigrations(t),
				migration.New(len(ownMigrations(t))+1, "x", "CREATE TABLE sqlwriter.x (a int)"))...))
	// last: without a chain of owners it needs rights that the app must not have
	for _, table := range conformance.PurgedTables() {
		d.chained(t, `GRANT SELECT, UPDATE, DELETE ON OBJECT::sqlwriter.`+table+` TO sqlwriter_writers`)
	}
	d.chained(t, `GRANT SELECT ON OBJECT::sqlwriter.audit_retention TO sqlwriter_writers`)
	for _, part := range retention.Parts() {
		_, err := s.Retention("web").Purge(ctx, part, retention.LeastDays, 10)
		require.NoError(t, err, part)
	}
}

// The app's login may add entries, and say neither when nor who was connected. It may erase none: the purge obeys the
// row that an administrator writes, and no row means for ever.
func TestTheAppsLoginAndTheAuditLog(t *testing.T) {
	ctx := t.Context()
	d := newDatabase(t)
	d.harness(t)
	dsn := d.as(t, "sqlwriter_app", "app_rights.sql")
	s := openStore(t, dsn)
	d.chained(t, `GRANT INSERT ON OBJECT::sqlwriter.audit_log TO sqlwriter_writers`)
	for _, sysName := range []string{"web", "dev"} {
		require.NoError(t, s.AuditLog(sysName).Write(ctx, run.Audit{Action: "X", By: "somebody", Why: "w"}))
	}
	var login string
	var seconds int
	require.NoError(t, d.db.QueryRow(`SELECT MIN(a.db_login), MAX(ABS(DATEDIFF(SECOND, a.done_at, SYSUTCDATETIME())))
FROM sqlwriter.audit_log AS a`).Scan(&login, &seconds))
	require.Contains(t, dsn, login, "the login of the connection, whoever it says it was done for")
	require.Contains(t, login, "sqlwriter_app")
	require.Less(t, seconds, 60)

	d.spy.Exec(t, `UPDATE sqlwriter.audit_log SET done_at = DATEADD(DAY, -3000, done_at)`)
	d.chained(t, `GRANT SELECT ON OBJECT::sqlwriter.audit_retention TO sqlwriter_writers`,
		`GRANT DELETE ON OBJECT::sqlwriter.audit_log TO sqlwriter_writers`)
	d.spy.KeepAudits(t, "web", 3650)
	for _, sysName := range []string{"web", "dev"} {
		n, err := s.Retention(sysName).Purge(ctx, retention.AuditLog, retention.LeastDays, 10)
		require.NoError(t, err)
		require.Zero(t, n, sysName)
	}
	require.Equal(t, 2, d.spy.Counts(t)["audit_log"])
	d.spy.KeepAudits(t, "dev", 365)
	n, err := s.Retention("dev").Purge(ctx, retention.AuditLog, retention.LeastDays, 10)
	require.NoError(t, err)
	require.Equal(t, 1, n, "what the administrator allows")
	_, err = d.db.Exec(`UPDATE sqlwriter.audit_retention SET kept_days = 364`)
	require.ErrorContains(t, err, "ck_audit_retention_kept")
}

// Who adopts needs the app's rights and those of ledger_rights.sql.
func TestTheRightsOfWhoAdopts(t *testing.T) {
	ctx := t.Context()
	d := newDatabase(t)
	d.harness(t)
	s := openStore(t, d.as(t, "sqlwriter_operator", "ledger_rights.sql"))
	d.run(t, "app_rights.sql", "sqlwriter_app", "sqlwriter_operator")
	d.chained(t, `GRANT UPDATE ON OBJECT::sqlwriter.procedure_set TO sqlwriter_writers`)
	require.NoError(t, s.Check(ctx))
	state, err := s.Begin(ctx, adopt.State{}, "ann")
	require.NoError(t, err)
	_, err = s.Finish(ctx, state.Run, 0)
	require.NoError(t, err)
}

// The rights suffice for previews only.
func TestTheShadowsRights(t *testing.T) {
	ctx := t.Context()
	d := newDatabase(t)
	d.harness(t).AddLines(t, 1)
	dsn := d.as(t, "sqlwriter_shadow", "shadow_rights.sql")
	s, err := sqlserver.Open(ctx, dsn, sqlserver.Options{LockTimeout: lockTimeout, PreviewOnly: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	real := d.chained(
		t, `GRANT SELECT ON OBJECT::dbo.IVCE_DTL TO sqlwriter_readers`,
		`GRANT SELECT ON OBJECT::dbo.IVCE_TRKG_MSTR TO sqlwriter_readers`,
		`GRANT SELECT ON OBJECT::sqlwriter.ledger TO sqlwriter_readers`,
	)
	require.NoError(t, s.Check(ctx))
	chosen, err := s.Mappings(ctx)
	require.NoError(t, err)
	require.Equal(t, mapping.InUse().Version(), chosen[0].Version)
	out, err := s.Apply(ctx, []commit.Item{sqltest.Item("a", 10, 1)}, commit.Preview, breaker.Heartbeat{})
	require.NoError(t, err)
	require.Equal(t, invoice.OutcomeApplied, out[0].Verdict)
	_, err = s.Apply(ctx, []commit.Item{sqltest.Item("a", 10, 1)}, commit.Write, breaker.Heartbeat{})
	require.Error(t, err)
	if real {
		require.Equal(t, "229", fault.CodeOf(err))
	}
	_, err = s.Heartbeat(ctx, breaker.Heartbeat{SysName: "web"})
	require.Error(t, err)
	if real {
		forbids(t, s, `SELECT * FROM dbo.IVCE_DTL`, `SELECT * FROM sqlwriter.ledger`)
	}
	forbids(t, s, `UPDATE dbo.IVCE_DTL SET ITM_LDSC = N'x'`, `UPDATE sqlwriter.ledger SET source_ts = 0`,
		`SELECT * FROM sqlwriter.run`)
	var n int
	require.NoError(t, d.db.QueryRow(`SELECT COUNT(*) FROM sqlwriter.ledger`).Scan(&n))
	require.Zero(t, n, "a shadow writes nothing")
}

// With the rights the script ends without an error and writes nothing.
func TestTheScriptThatTriesTheRights(t *testing.T) {
	d := newDatabase(t)
	d.harness(t)
	d.as(t, "sqlwriter_app", "app_rights.sql")
	script, err := os.ReadFile(filepath.Join("..", "..", "..", "deploy", "sql", "check_rights.sql"))
	require.NoError(t, err)
	text := string(script)
	if !sqlservertest.IsReal(d.version) {
		t.Log(
			"this engine has no EXECUTE AS USER and calls no procedure by a variable: shown with the rights of this login")
		state, err := d.store.ProcedureState(t.Context())
		require.NoError(t, err)
		text = strings.NewReplacer("EXECUTE AS USER = 'sqlwriter_app';", "", "REVERT;", "",
			"EXEC @preview", "EXEC sqlwriter_preview.preview_"+state.Hash, "EXEC @apply",
			"EXEC sqlwriter.apply_"+state.Hash,
			"EXEC @read ", "EXEC sqlwriter.rewrite_read_"+state.Hash+" ", "EXEC @rewrite",
			"EXEC sqlwriter.rewrite_"+state.Hash,
			"EXEC @scan ", "EXEC sqlwriter.reconcile_scan_"+state.Hash+" ", "EXEC @lines ",
			"EXEC sqlwriter.reconcile_lines_"+state.Hash+" ",
			"EXEC @purge ", "EXEC sqlwriter.purge_"+state.Hash+" ", "EXEC @started ",
			"EXEC sqlwriter.started_"+state.Hash+" ").Replace(text)
	}
	rows, err := d.db.Query(text)
	require.NoError(t, err)
	defer func() { require.NoError(t, rows.Close()) }()
	var answer string
	for more := true; more; more = rows.NextResultSet() {
		columns, err := rows.Columns()
		require.NoError(t, err)
		for rows.Next() {
			if len(columns) > 0 && columns[len(columns)-1] == "answer" {
				require.Len(t, columns, 1, "no error number")
				require.NoError(t, rows.Scan(&answer))
			}
		}
	}
	require.NoError(t, rows.Err())
	require.Equal(t, "the rights are enough", answer)
}

// The check at the start must report a table of another owner, which our procedures cannot use.
func TestABrokenOwnershipChainIsReported(t *testing.T) {
	d := newDatabase(t)
	d.harness(t)
	dsn := d.as(t, "sqlwriter_app", "app_rights.sql")
	if !sqlservertest.IsReal(d.version) {
		t.Skip("this engine has no chain of owners")
	}
	d.spy.Exec(t, `CREATE USER somebody WITHOUT LOGIN; ALTER AUTHORIZATION ON OBJECT::dbo.IVCE_DTL TO somebody`)
	err := openStore(t, dsn).Check(t.Context())
	require.Equal(t, "schema", fault.CodeOf(err), "%v", err)
	require.ErrorContains(t, err, "expected the owner of")
}

// The message is tested directly, because the other engines have no ownership chains.
func TestTheMessageOfABrokenOwnershipChain(t *testing.T) {
	require.Empty(t, sqlserver.OwnerDifference("p", "dbo", "t", "DBO"))
	require.Empty(t, sqlserver.OwnerDifference("p", "", "t", "somebody"), "the server does not say")
	require.Empty(t, sqlserver.OwnerDifference("p", "dbo", "t", ""))
	errorText := sqlserver.OwnerDifference("sqlwriter.apply_1", "dbo", "[billing].[IVCE_DTL]", "clerk")
	require.Contains(t, errorText, "[billing].[IVCE_DTL]: expected the owner of sqlwriter.apply_1, dbo, found clerk")
	require.Contains(t, errorText, "ALTER AUTHORIZATION ON SCHEMA::sqlwriter TO [clerk]")

	for _, number := range []int32{229, 230} {
		errorText, err := sqlserver.BrokenOwnershipChain(
			mssql.Error{Number: number, Message: "The SELECT permission was denied on the object 'IVCE_DTL'"})
		require.NoError(t, err)
		require.Contains(t, errorText,
			fmt.Sprintf("error %d: The SELECT permission was denied on the object 'IVCE_DTL'", number))
		require.Contains(t, errorText, "one owner for the schemas")
	}
	errorText, err := sqlserver.BrokenOwnershipChain(mssql.Error{Number: 4060})
	require.Empty(t, errorText)
	require.Equal(t, fault.Infrastructure, fault.KindOf(err))
	errorText, err = sqlserver.BrokenOwnershipChain(nil)
	require.Empty(t, errorText)
	require.NoError(t, err)
}
