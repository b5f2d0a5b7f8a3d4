package sqlserver_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	mssql "github.com/microsoft/go-mssqldb"
	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/migration"
	"sqlwriter/internal/sqlserver"
	"sqlwriter/internal/sqlserver/sqlservertest"
	"sqlwriter/internal/writer"
)

func TestOpenSaysWhatIsWrong(t *testing.T) {
	dsn := sqlservertest.Server(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	_, err := sqlserver.Open(ctx, sqlservertest.WithAddress(t, dsn, "127.0.0.1:1"), sqlserver.Options{})
	require.Equal(t, fault.Infrastructure, fault.KindOf(err), "%v", err)
	require.Equal(t, "connection", fault.CodeOf(err))
	_, err = sqlserver.Open(ctx, sqlservertest.WithDatabase(t, dsn, "no_such_database_here"), sqlserver.Options{})
	require.Equal(t, fault.Infrastructure, fault.KindOf(err), "%v", err)
	ended, end := context.WithCancel(t.Context())
	end()
	_, err = sqlserver.Open(ended, dsn, sqlserver.Options{})
	require.Equal(t, "cancelled", fault.CodeOf(err), "%v", err)
}

// Refusals of a login, of a firewall or of a starting server are nobody's document, whatever their number: nothing was
// sent yet.
func TestConnectingIsNeverADocumentsError(t *testing.T) {
	for _, number := range []int32{40615, 18456, 17187, 987654} {
		err := sqlserver.Outside(mssql.Error{Number: number})
		require.Equal(t, fault.Infrastructure, fault.KindOf(err), number)
		require.Equal(t, fmt.Sprint(number), fault.CodeOf(err), "the number stays")
	}
	require.Equal(t, fault.Throttled, fault.KindOf(sqlserver.Outside(mssql.Error{Number: 40501})))
	require.Equal(t, fault.Contention, fault.KindOf(sqlserver.Outside(mssql.Error{Number: 1222})))
}

// What a trigger of the user's selects comes before our answer and is not taken for it.
func TestATriggerThatSelectsIsNotTakenForTheAnswer(t *testing.T) {
	d := newDatabase(t)
	for _, selects := range []string{"SELECT 1 AS n, 1 AS m", "SELECT COUNT(*) AS n FROM inserted", "SELECT 7 AS sqlwriter_stamped, 7 AS x"} {
		h := d.harness(t)
		h.AddLines(t, 1, 2)
		d.exec(t, `CREATE TRIGGER dbo.selects ON dbo.IVCE_DTL AFTER UPDATE AS `+selects)
		a := item("a", 10, 1, 2)
		for _, want := range []writer.Verdict{writer.Applied, writer.Unchanged} {
			out, err := h.Sink.Apply(t.Context(), []writer.Item{a}, writer.Write)
			require.NoError(t, err, selects)
			require.Equal(t, want, out[0].Verdict, selects)
			require.Len(t, out[0].Rows, 2)
		}
	}
}

// Outcomes count only when the stream ended cleanly.
func TestAnErrorAfterTheOutcomesTakesThemBack(t *testing.T) {
	d := newDatabase(t)
	d.harness(t).AddLines(t, 1)
	late, err := d.store.With("outcomes", "THROW 52999, N'late', 1;")
	require.NoError(t, err)
	out, err := late.Apply(t.Context(), []writer.Item{item("a", 10, 1)}, writer.Write)
	require.ErrorContains(t, err, "late")
	require.Nil(t, out)
}

func TestThePoolIsBounded(t *testing.T) {
	s, err := sqlserver.Open(t.Context(), sqlservertest.Server(t), sqlserver.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	require.Equal(t, 10, s.DB().Stats().MaxOpenConnections)
}

// A lost acknowledgement on the wire: the request was carried out, the answer never arrives, and the driver does not send
// it again by itself. The same request again answers unchanged.
func TestALostAnswerIsNeverSentAgainBehindOurBack(t *testing.T) {
	d := newDatabase(t)
	h := d.harness(t)
	h.AddLines(t, 1)
	count := h.CountWrites(t)
	h.LoseReply(t)
	_, err := h.Sink.Apply(t.Context(), []writer.Item{item("a", 10, 1)}, writer.Write)
	require.Equal(t, fault.Infrastructure, fault.KindOf(err), "%v", err)
	out, err := h.Sink.Apply(t.Context(), []writer.Item{item("a", 10, 1)}, writer.Write)
	require.NoError(t, err)
	require.Equal(t, writer.Unchanged, out[0].Verdict)
	detail, tracking := count(1)
	require.Equal(t, []int{1, 1}, []int{detail, tracking})
}

// After a break every idle connection is let go: its siblings broke with it, and each would cost another request.
func TestABrokenConnectionTakesItsIdleSiblingsWithIt(t *testing.T) {
	dsn := sqlservertest.NewDatabase(t)
	proxy := sqlservertest.NewProxy(t, sqlservertest.Address(t, dsn), 0)
	s := openStore(t, sqlservertest.WithAddress(t, dsn, proxy.Address()))
	var group sync.WaitGroup
	meet := make(chan struct{})
	for range 3 { // three connections at once
		conn, err := s.DB().Conn(t.Context())
		require.NoError(t, err)
		group.Go(func() {
			<-meet
			_ = conn.Close() // back to the pool
		})
	}
	close(meet)
	group.Wait()
	require.Equal(t, 3, s.DB().Stats().Idle)
	proxy.Cut()
	_, err := s.Apply(t.Context(), []writer.Item{item("a", 10, 1)}, writer.Write)
	require.Equal(t, "connection", fault.CodeOf(err), "%v", err)
	require.Zero(t, s.DB().Stats().Idle)
}

// The request is one text whatever it carries: the server keeps one plan for it.
func TestTheTextIsConstant(t *testing.T) {
	d := newDatabase(t)
	before := d.store.WriteText()
	h := d.harness(t)
	h.AddLines(t, 1, 2, 3)
	for _, items := range [][]writer.Item{{item("a", 1, 1)}, {item("b", 1, 2, 3), item("c", 2, 2)}} {
		_, err := d.store.Apply(t.Context(), items, writer.Write)
		require.NoError(t, err)
	}
	require.Equal(t, before, d.store.WriteText())
	require.NotContains(t, before, "--", "comments stay in the files")
}

func TestMigrations(t *testing.T) {
	ctx := t.Context()
	dsn := sqlservertest.NewDatabase(t)
	s := openStore(t, dsn)
	states, err := s.MigrationStatus(ctx)
	require.NoError(t, err)
	require.NotEmpty(t, states)
	require.Equal(t, len(states), migration.Count(states, migration.Pending), "an empty database has none")
	require.ErrorContains(t, s.Check(ctx), "sqlwriterctl migrate up")

	errs := make([]error, 2)
	var group sync.WaitGroup
	for i := range errs { // two at once: one waits for the other and finds nothing to do
		group.Go(func() { errs[i] = s.Migrate(ctx) })
	}
	group.Wait()
	require.Equal(t, []error{nil, nil}, errs)
	states, err = s.MigrationStatus(ctx)
	require.NoError(t, err)
	require.Equal(t, len(states), migration.Count(states, migration.Applied))
	for _, st := range states {
		require.WithinDuration(t, time.Now(), st.At, 10*time.Minute)
	}

	n := len(states)
	list := func(last string) []migration.File {
		return append(ownMigrations(t), migration.New(n+1, fmt.Sprintf("%04d_more", n+1), last))
	}
	require.NoError(t, s.MigrateWith(ctx, list("CREATE TABLE sqlwriter.more (a int NOT NULL)")...))
	require.NoError(t, s.Migrate(ctx), "a database that knows more than this build is fine")
	states, err = s.MigrationStatus(ctx)
	require.NoError(t, err)
	require.Equal(t, 1, migration.Count(states, migration.Unknown))
	err = s.MigrateWith(ctx, list("CREATE TABLE sqlwriter.other (a int NOT NULL)")...)
	require.Equal(t, "migration_checksum", fault.CodeOf(err), "%v", err)
	files := append(list("CREATE TABLE sqlwriter.more (a int NOT NULL)"),
		migration.New(n+2, "good", "CREATE TABLE sqlwriter.good (a int NOT NULL)"), migration.New(n+3, "bad", "CREATE TABLE sqlwriter.more (a int NOT NULL)"))
	require.Error(t, s.MigrateWith(ctx, files...))
	var there sql.NullInt64
	require.NoError(t, s.DB().QueryRow(`SELECT OBJECT_ID(N'sqlwriter.good')`).Scan(&there))
	require.False(t, there.Valid, "a migration that fails leaves nothing of those before it")
}

func ownMigrations(t *testing.T) []migration.File {
	t.Helper()
	files, err := migration.Read(os.DirFS("."), "migrations")
	require.NoError(t, err)
	return files
}

// The script that a DBA runs by hand leaves the database as Migrate does: nothing is left to do, and running it again
// does nothing.
func TestTheScriptIsWhatMigrateDoes(t *testing.T) {
	ctx := t.Context()
	dsn := sqlservertest.NewDatabase(t)
	s := openStore(t, dsn)
	script, err := sqlserver.MigrationScript()
	require.NoError(t, err)
	for range 2 {
		runScript(t, s.DB(), script)
		states, err := s.MigrationStatus(ctx)
		require.NoError(t, err)
		require.Equal(t, len(states), migration.Count(states, migration.Applied))
	}
	require.NoError(t, s.Migrate(ctx))
	require.NoError(t, sqlserver.CreateSampleSchema(ctx, s.DB(), sqlserver.Options{}))
	require.NoError(t, s.Check(ctx))
}

// runScript runs the batches between GO on one connection, as sqlcmd does.
func runScript(t *testing.T, db *sql.DB, script string) {
	t.Helper()
	conn, err := db.Conn(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	for batch := range strings.SplitSeq(script, "\nGO\n") {
		if strings.TrimSpace(batch) == "" {
			continue
		}
		_, err := conn.ExecContext(t.Context(), batch)
		require.NoError(t, err, batch)
	}
}

// checked is what Check says of a database after somebody's change.
func checked(t *testing.T, d *database, changes ...string) string {
	t.Helper()
	d.harness(t) // the sample schema anew
	for _, c := range changes {
		d.exec(t, c)
	}
	err := d.store.Check(t.Context())
	if err == nil {
		return ""
	}
	require.Equal(t, fault.Infrastructure, fault.KindOf(err), "no document is blamed: %v", err)
	require.Equal(t, "schema", fault.CodeOf(err))
	return err.Error()
}

func TestTheCheckNamesEveryDifferenceAndItsFix(t *testing.T) {
	d := newDatabase(t)
	require.Empty(t, checked(t, d), "the sample schema is what the statements need")
	all := checked(t, d,
		`ALTER TABLE dbo.IVCE_DTL DROP COLUMN UPC_CD`,
		`ALTER TABLE dbo.IVCE_TRKG_MSTR DROP COLUMN MFR_STG_NM`,
		`ALTER TABLE dbo.IVCE_DTL ALTER COLUMN CLN_MFR_AI_NM nvarchar(100)`,
		`ALTER TABLE dbo.IVCE_TRKG_MSTR ADD must int NOT NULL`)
	for _, part := range []string{
		"4 differences",
		"dbo.IVCE_DTL: expected a column UPC_CD nvarchar(20), found none", "ALTER TABLE dbo.IVCE_DTL ADD UPC_CD nvarchar(20) NULL",
		"dbo.IVCE_TRKG_MSTR: expected a column MFR_STG_NM", "COLUMN_NAMES",
		"dbo.IVCE_DTL.CLN_MFR_AI_NM: expected nvarchar(255) or wider, found nvarchar(100)",
		"dbo.IVCE_TRKG_MSTR.must: expected that a row can be inserted without it",
	} {
		require.Contains(t, all, part)
	}
	require.Contains(t, checked(t, d, `DROP TABLE dbo.IVCE_TRKG_MSTR`), "dbo.IVCE_TRKG_MSTR: expected a table")
	require.Contains(t, checked(t, d, `DROP TABLE dbo.IVCE_DTL`,
		`SELECT * INTO dbo.IVCE_DTL FROM (SELECT CAST(1 AS int) AS IVCE_DTL_UID) AS x`), "expected a primary key or unique index")
}

func TestTheCheckLooksAtTypes(t *testing.T) {
	d := newDatabase(t)
	for column, want := range map[string]string{
		"UNSPSC_CD int":                   "expected nvarchar(10) or wider, found int",
		"UNSPSC_CD nvarchar(9)":           "expected nvarchar(10) or wider, found nvarchar(9)",
		"UNSPSC_CD nvarchar(max)":         "",
		"UNSPSC_CD nvarchar(10) NOT NULL": "expected a column that takes NULL",
		"MFR_CNFDC_SCR decimal(5, 3)":     "expected decimal(5, 4) or wider, found decimal(5, 3)",
		"MFR_CNFDC_SCR decimal(4, 4)":     "expected decimal(5, 4) or wider",
		"MFR_CNFDC_SCR decimal(18, 9)":    "",
		"MFR_CNFDC_SCR float":             "",
		"MFR_CNFDC_SCR real":              "expected decimal(5, 4) or wider, found real",
		"PRNT_IVCE_DTL_ID nvarchar(50)":   "expected bigint or wider",
	} {
		name, _, _ := strings.Cut(column, " ")
		said := checked(t, d, `ALTER TABLE dbo.IVCE_DTL DROP COLUMN `+name, `ALTER TABLE dbo.IVCE_DTL ADD `+column)
		if want == "" {
			require.Empty(t, said, column)
		} else {
			require.Contains(t, said, want, column)
			require.Contains(t, said, "1 differences", column)
		}
	}
}

func TestTheCheckNamesTriggersAndWhatRounds(t *testing.T) {
	d := newDatabase(t)
	d.harness(t)
	d.exec(t, `ALTER TABLE dbo.IVCE_TRKG_MSTR DROP COLUMN RQST_TS`)
	d.exec(t, `ALTER TABLE dbo.IVCE_TRKG_MSTR ADD RQST_TS datetime`)
	d.exec(t, `CREATE TRIGGER dbo.their_trigger ON dbo.IVCE_DTL AFTER UPDATE AS SELECT 1 AS nothing WHERE 1 = 0`)
	f, err := d.store.Inspect(t.Context())
	require.NoError(t, err)
	require.Empty(t, f.Differences)
	notes := strings.ToLower(strings.Join(f.Notes, "\n"))
	require.Contains(t, notes, "their_trigger")
	require.Contains(t, notes, "dbo.ivce_trkg_mstr.rqst_ts: datetime rounds")
	require.NoError(t, d.store.Check(t.Context()))
	require.Equal(t, f.Notes, d.store.Notes())
}

// A varchar column makes question marks of what its code page lacks. The document is refused instead; others are written.
func TestNoCharacterIsLostInAVarcharColumn(t *testing.T) {
	d := newDatabase(t)
	for _, table := range []invoice.Table{invoice.Detail, invoice.Tracking} {
		h := d.harness(t)
		h.AddLines(t, 1, 2)
		for column, kind := range map[string]string{"CLN_MFR_AI_NM": "varchar(255)", "UNSPSC_CD": "char(12)"} {
			d.exec(t, fmt.Sprintf(`ALTER TABLE dbo.%s DROP COLUMN %s`, table, column))
			d.exec(t, fmt.Sprintf(`ALTER TABLE dbo.%s ADD %s %s NULL`, table, column, kind))
		}
		store := openStore(t, d.dsn)
		f, err := store.Inspect(t.Context())
		require.NoError(t, err)
		require.Len(t, f.Notes, 2)
		require.Contains(t, strings.Join(f.Notes, "\n"), "code page")
		require.NoError(t, store.Check(t.Context()))
		good, bad := item("good", 10, 1), item("bad", 10, 2)
		setText(t, &good, "CLN_MFR_AI_NM", "Is it? Yes")
		setText(t, &bad, "CLN_MFR_AI_NM", "\u6f22\u5b57")
		if !sqlservertest.IsReal(d.version) { // this engine's varchar keeps them: a trigger does what SQL Server does
			d.exec(t, fmt.Sprintf(`CREATE TRIGGER dbo.lose ON dbo.%[1]s AFTER INSERT, UPDATE AS
				UPDATE t SET CLN_MFR_AI_NM = CASE WHEN LEN(i.CLN_MFR_AI_NM) = 2 THEN '??' ELSE UPPER(i.CLN_MFR_AI_NM) END
				FROM dbo.%[1]s AS t INNER JOIN inserted AS i ON i.IVCE_DTL_UID = t.IVCE_DTL_UID
				WHERE t.CLN_MFR_AI_NM NOT IN ('??', 'IS IT? YES')`, table))
		}
		_, err = store.Apply(t.Context(), []writer.Item{good, bad}, writer.Write)
		require.Equal(t, fault.Document, fault.KindOf(err), "%v", err)
		require.Equal(t, "lost_characters", fault.CodeOf(err))
		require.ErrorContains(t, err, fmt.Sprintf("document bad, line 2: characters that the column cannot hold: %s.CLN_MFR_AI_NM", table))
		out, err := store.Apply(t.Context(), []writer.Item{good}, writer.Write)
		require.NoError(t, err)
		require.Equal(t, writer.Applied, out[0].Verdict)
		_, inLedger := h.Ledger(t, 2)
		require.False(t, inLedger)
	}
}

// Columns may be called otherwise; everything then works with those names.
func TestALayoutOfTheDeployments(t *testing.T) {
	ctx := t.Context()
	dsn := sqlservertest.NewDatabase(t)
	layout, err := invoice.ReadLayout([]byte(`{"IVCE_TRKG_MSTR": {"RQST_TS": "REQUEST TIME", "IVCE_DTL_UID": "DTL_ID"}}`))
	require.NoError(t, err)
	o := sqlserver.Options{Layout: layout, Schema: "billing"}
	s, err := sqlserver.Open(ctx, dsn, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	require.NoError(t, s.Migrate(ctx))
	_, err = s.DB().Exec(`CREATE SCHEMA billing`)
	require.NoError(t, err)
	require.NoError(t, sqlserver.CreateSampleSchema(ctx, s.DB(), o))
	require.NoError(t, s.Check(ctx))
	_, err = s.DB().Exec(`INSERT INTO billing.IVCE_DTL (IVCE_DTL_UID) VALUES (7)`)
	require.NoError(t, err)
	for _, want := range []writer.Verdict{writer.Applied, writer.Unchanged} {
		out, err := s.Apply(ctx, []writer.Item{item("a", 10, 7)}, writer.Write)
		require.NoError(t, err)
		require.Equal(t, want, out[0].Verdict)
	}
	var n int
	require.NoError(t, s.DB().QueryRow(`SELECT COUNT(*) FROM billing.IVCE_TRKG_MSTR WHERE DTL_ID = 7 AND [REQUEST TIME] IS NULL`).Scan(&n))
	require.Equal(t, 1, n)
	out, err := s.Apply(ctx, []writer.Item{item("b", 11, 7)}, writer.Preview)
	require.NoError(t, err)
	require.Len(t, out[0].Rows[0].Before, len(invoice.Columns()))
}

// The rights in deploy/sql are enough for what each of the two does, and for nothing else.
func TestTheRightsOfTheScriptsAreEnough(t *testing.T) {
	ctx := t.Context()
	d := newDatabase(t)
	d.harness(t).AddLines(t, 1)
	const password = "Test!only-5c1e"
	login := "sqlwriter_test_" + strings.ToLower(t.Name()[:6]) + fmt.Sprint(time.Now().UnixNano()%1e6)
	d.exec(t, fmt.Sprintf(`CREATE LOGIN %s WITH PASSWORD = '%s'`, login, password))
	t.Cleanup(func() { // somebody who is still logged in cannot be dropped
		require.Eventually(t, func() bool {
			_, err := d.db.Exec(`DROP USER IF EXISTS sqlwriter_app; DROP LOGIN ` + login)
			return err == nil
		}, 30*time.Second, 100*time.Millisecond)
	})
	d.exec(t, fmt.Sprintf(`CREATE USER sqlwriter_app FOR LOGIN %s`, login))
	script, err := os.ReadFile(filepath.Join("..", "..", "deploy", "sql", "app_rights.sql"))
	require.NoError(t, err)
	for line := range strings.Lines(string(script)) {
		if (strings.Contains(line, "VIEW DEFINITION") || strings.HasPrefix(line, "DENY")) && !sqlservertest.IsReal(d.version) {
			t.Log("not to be had on this engine: " + line)
			continue
		}
		if !strings.HasPrefix(line, "--") {
			d.exec(t, line)
		}
	}

	s := openStore(t, sqlservertest.As(t, d.dsn, login, password))
	require.NoError(t, s.Check(ctx))
	for _, mode := range []writer.Mode{writer.Preview, writer.Write, writer.Rewrite} {
		_, err := s.Apply(ctx, []writer.Item{item("a", 10, 1)}, mode)
		require.NoError(t, err, mode)
	}
	for _, forbidden := range []string{
		`DELETE FROM dbo.IVCE_DTL`, `DELETE FROM sqlwriter.ledger`, `INSERT INTO dbo.IVCE_DTL (IVCE_DTL_UID) VALUES (2)`,
		`DROP TABLE sqlwriter.ledger`, `CREATE TABLE sqlwriter.mine (a int)`,
	} {
		_, err := s.DB().Exec(forbidden)
		require.Error(t, err, forbidden)
	}
	require.Error(t, s.MigrateWith(ctx, append(ownMigrations(t), migration.New(len(ownMigrations(t))+1, "x", "CREATE TABLE sqlwriter.x (a int)"))...))
}

// Encryption is on and the certificate is checked unless the connection string says otherwise: a server that shows one
// that nobody signed is not talked to, and no password is sent.
func TestTheCertificateIsChecked(t *testing.T) {
	dsn := sqlservertest.Server(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	s, err := sqlserver.Open(ctx, sqlservertest.WithParameters(t, dsn, map[string]string{"encrypt": "", "TrustServerCertificate": ""}), sqlserver.Options{})
	if err == nil {
		t.Log("this server's certificate is trusted here")
		require.NoError(t, s.Close())
		return
	}
	require.Equal(t, fault.Infrastructure, fault.KindOf(err), "%v", err)
	require.ErrorContains(t, err, "certificate", "the cause says it (as text: the driver keeps no more of it)")
	s, err = sqlserver.Open(ctx, sqlservertest.WithParameters(t, dsn, map[string]string{"encrypt": "true", "TrustServerCertificate": "true"}), sqlserver.Options{})
	require.NoError(t, err, "encrypted, when it is told to trust")
	require.NoError(t, s.Close())
}
