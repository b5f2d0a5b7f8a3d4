package main

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	exampleDocuments "sqlwriter/examples"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/store/migration"
	"sqlwriter/internal/store/sqlite"
	"sqlwriter/test/mapping"
)

// empty is a bench whose connection is an empty SQLite file.
func empty(t *testing.T) (b *bench, db *sql.DB) {
	t.Helper()
	b = newBench(t)
	path := filepath.Join(b.dir, "x.db")
	store, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	b.env["SQL_CONNECTION"] = "sqlite:" + path
	return b, store.Writer()
}

func TestMigrateUpRunsWhatIsPendingAndStatusShowsIt(t *testing.T) {
	b, db := empty(t)
	require.Equal(t, exitFailed, b.run(t, "migrate", "status"))
	require.Regexp(t, `1\s+0001_schema\s+pending\s+-`, b.out)
	require.Contains(t, b.errors, "migrations are pending\nhint: `sqlwriterctl migrate up` runs them")

	require.Equal(t, exitOK, b.run(t, "migrate", "up"), b.errors)
	require.Contains(t, b.out, "0001_schema: done")
	require.Contains(t, b.errors, "connections: the environment")
	require.Equal(t, exitOK, b.run(t, "migrate", "up"))
	require.Contains(t, b.out, "nothing to do")

	require.Equal(t, exitOK, b.run(t, "migrate", "status", "-o", "json"))
	var shown shownSchema
	require.NoError(t, json.Unmarshal([]byte(b.out), &shown))
	require.Equal(t, migration.Applied, shown.Migrations[0].Status)
	require.WithinDuration(t, time.Now(), shown.Migrations[0].At, time.Minute)
	require.Nil(t, shown.Procedures, "a file has none")

	_, err := db.ExecContext(t.Context(),
		`INSERT INTO sqlwriter_migration SELECT 99, '0099_later', checksum, applied_at FROM sqlwriter_migration WHERE number = 1`)
	require.NoError(t, err)
	require.Equal(t, exitOK, b.run(t, "migrate", "status"), "what a newer build added is no trouble")
	require.Regexp(t, `99\s+0099_later\s+unknown`, b.out)

	_, err = db.ExecContext(t.Context(), `UPDATE sqlwriter_migration SET checksum = 'x' WHERE number = 1`)
	require.NoError(t, err)
	require.Equal(t, exitFailed, b.run(t, "migrate", "status"))
	require.Contains(t, b.errors, "were run from other files")
	require.Equal(t, exitFailed, b.run(t, "migrate", "up"))
	require.Contains(t, b.errors, "migration_checksum")
}

// The script has the same effect as up: a database where it was run has no pending migration and no other object.
func TestTheScriptOfMigrateMakesWhatUpMakes(t *testing.T) {
	schema := func(db *sql.DB) (all []string) {
		rows, err := db.QueryContext(t.Context(), `SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name`)
		require.NoError(t, err)
		defer func() { require.NoError(t, rows.Close()) }()
		for rows.Next() {
			var text string
			require.NoError(t, rows.Scan(&text))
			all = append(all, text)
		}
		require.NoError(t, rows.Err())
		return all
	}
	b, db := empty(t)
	require.Equal(t, exitOK, b.run(t, "migrate", "script"))
	require.Contains(t, b.errors, "script for sqlite")
	_, err := db.ExecContext(t.Context(), b.out)
	require.NoError(t, err)
	require.Equal(t, exitOK, b.run(t, "migrate", "status"), b.out)

	other, byUp := empty(t)
	require.Equal(t, exitOK, other.run(t, "migrate", "up"))
	require.Equal(t, schema(byUp), schema(db))
	require.NotEmpty(t, schema(db))
}

func TestTheScriptNeedsNoConnection(t *testing.T) {
	b := newBench(t)
	require.Equal(t, exitOK, b.run(t, "migrate", "script"))
	require.Contains(t, b.errors, "script for sqlserver")
	require.Contains(t, b.out, "\nGO\n")
	require.Contains(t, b.out, "sqlwriter.ledger")
	plain := b.out
	b.env["MAPPING"] = filepath.Join(b.dir, "mapping.json")
	require.NoError(t, os.WriteFile(b.env["MAPPING"], mapping.File(mapping.Rename), 0o600))
	require.Equal(t, exitOK, b.run(t, "migrate", "script"), b.errors)
	require.Contains(t, b.out, "[REQUEST_TIME] = ", "the procedures are those of the settings")
	require.NotContains(t, plain, "REQUEST_TIME")
	require.Equal(t, exitOK, b.run(t, "migrate", "script", "--engine=sqlite"))
	require.NotContains(t, b.out, "\nGO\n")
	b.env["SQL_CONNECTION"] = "sqlserver://u:hunter2@127.0.0.1:1?database=d"
	require.Equal(t, exitOK, b.run(t, "migrate", "script"))
	require.Contains(t, b.out, "\nGO\n")
	require.NotContains(t, b.out+b.errors, "hunter2")
	require.Equal(t, exitUsage, b.run(t, "migrate", "script", "--engine=oracle"))
}

func TestMigrateNeverMakesAFile(t *testing.T) {
	b := newBench(t)
	nowhere := filepath.Join(b.dir, "nowhere.db")
	for _, args := range [][]string{{"migrate", "up"}, {"migrate", "status"}} {
		b.env["SQL_CONNECTION"] = "sqlite:" + nowhere
		require.Equal(t, exitFailed, b.run(t, args...))
		require.NoFileExists(t, nowhere)
	}
}

// Another mapping is chosen on purpose only: migrate up says what it changes, and refuses. An equal one, and one that
// changes no stored value, are no other.
func TestMigrateUpChoosesAnotherMappingOnPurposeOnly(t *testing.T) {
	b, db := empty(t)
	b.env["MAPPING"] = filepath.Join(b.dir, "mapping.json")
	use := func(edit func(tables map[invoice.Table]*mapping.Table)) int {
		file := mapping.File(edit)
		require.NoError(t, os.WriteFile(b.env["MAPPING"], file, 0o600))
		return mapping.Read(file).Version()
	}
	first := use(func(map[invoice.Table]*mapping.Table) {})
	require.Equal(t, exitFailed, b.run(t, "migrate", "status"))
	require.Contains(t, b.out, fmt.Sprintf("mapping: this one is version %d; chosen: none yet", first))
	require.Equal(t, exitOK, b.run(t, "migrate", "up"), b.errors)
	require.Contains(t, b.out, fmt.Sprintf("mapping: version %d is the chosen one", first))
	require.Equal(t, exitOK, b.run(t, "migrate", "up"))
	require.Contains(t, b.out, "nothing to do")

	use(func(tables map[invoice.Table]*mapping.Table) {
		tables[invoice.Detail].Column("UPC_CD")["type"] = "text(40)"
	})
	require.Equal(t, exitOK, b.run(t, "migrate", "up"), "a wider text changes no stored value")

	second := use(func(tables map[invoice.Table]*mapping.Table) {
		detail := tables[invoice.Detail]
		detail.Columns = append(detail.Columns, mapping.Entry{"name": "VNDR_CD", "value": "AI", "type": "text(5)"})
		detail.Column("UPC_CD")["missing"] = "keep"
		mapping.Rename(tables)
	})
	chosen := func() (version int) {
		require.NoError(t, db.QueryRowContext(t.Context(),
			`SELECT version FROM sqlwriter_mapping ORDER BY chosen_at DESC LIMIT 1`).Scan(&version))
		return version
	}
	for _, args := range [][]string{{"migrate", "status"}, {"migrate", "up"}} {
		require.Equal(t, exitFailed, b.run(t, args...))
		require.Contains(t, b.errors, fmt.Sprintf("version %d is chosen, this one is %d", first, second))
		require.Contains(t, b.errors, "`sqlwriterctl migrate up --new-mapping`")
	}
	require.Regexp(t, `(?s)IVCE_DTL.UPC_CD +changes\n.*IVCE_TRKG_MSTR.RQST_TS +goes\n.*`+
		`IVCE_DTL.VNDR_CD +comes\n.*IVCE_TRKG_MSTR.REQUEST_TIME +comes\n`, b.out)
	require.NotContains(t, b.out, "IVCE_LNE_STAT")
	require.Equal(t, first, chosen())

	require.Equal(t, exitOK, b.run(t, "migrate", "up", "--new-mapping"), b.errors)
	require.Contains(t, b.out, fmt.Sprintf("mapping: version %d is the chosen one", second))
	require.Equal(t, second, chosen())
	require.Equal(t, exitOK, b.run(t, "migrate", "status", "-o", "json"))
	var shown shownSchema
	require.NoError(t, json.Unmarshal([]byte(b.out), &shown))
	require.Equal(t, shownMapping{Chosen: second, Version: second}, shown.Mapping)

	require.Equal(t, exitOK, b.run(t, "migrate", "script"))
	require.Contains(t, b.errors, fmt.Sprintf("it chooses the mapping mapping.json, version %d", second))
	require.Contains(t, b.out, strconv.Itoa(second))
	delete(b.env, "MAPPING")
	require.Equal(t, exitFailed, b.run(t, "migrate", "up"), "the file was forgotten")
	require.Equal(t, exitOK, b.run(t, "migrate", "up", "--new-mapping"))
	require.Equal(t, first, chosen(), "taken back")
}

// One command brings an empty database to the first document.
func TestMigrateUpOfATrial(t *testing.T) {
	b, db := empty(t)
	r := newReal(t)
	r.env["SQL_CONNECTION"] = b.env["SQL_CONNECTION"]
	up := []string{
		"migrate", "up", "--user", "web", "--client-id", "aa0ca2bc-3342-4a36-9665-6c2c171425a0", "--sample-tables",
		"--history", "empty",
	}
	committed := r.put(t, 1, 1, "committed")
	require.Equal(t, exitFailed, r.run(t, up...))
	require.Contains(t, r.errors, committed)
	require.Contains(t, r.errors, "`sqlwriterctl ledger adopt --empty --yes`")
	require.Equal(t, exitFailed, r.run(t, "ledger", "status"), "it is not adopted")

	for _, sysName := range []string{"trial", "trial", "web"} { // the last finds that it is recorded
		r.env["SYS_NAME"] = sysName
		require.Equal(t, exitOK, r.run(t, up...), r.errors)
		require.Contains(t, r.errors, "SQLite has no users: --user makes none")
		require.Contains(t, r.out, "samples with the rows of examples/")
		require.NotContains(t, r.errors, "docs/cutover.md")
		require.Equal(t, exitOK, r.run(t, "ledger", "status"), "the app may commit")
	}
	lines, err := exampleDocuments.Lines()
	require.NoError(t, err)
	var rows int
	require.NoError(t, db.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM IVCE_DTL`).Scan(&rows))
	require.Equal(t, len(lines), rows)
	require.NotContains(t, lines, int64(9999901), "missing on purpose")

	r.away(t)
	other, _ := empty(t)
	r.env["SQL_CONNECTION"] = other.env["SQL_CONNECTION"]
	require.Equal(t, exitFailed, r.run(t, up...), "a container that does not answer may have documents")
	require.Contains(t, r.errors, "the migrations are done; the same command, given again, does the rest")
}

func TestWhatMigrateUpRefuses(t *testing.T) {
	b, db := empty(t)
	for _, args := range [][]string{
		{"--user", "web"}, {"--client-id", "x"}, {"--history", "full"}, {"--history", "empty"}, // no container is named
	} {
		require.Equal(t, exitUsage, b.run(t, append([]string{"migrate", "up"}, args...)...), args)
	}
	_, err := db.ExecContext(t.Context(), `CREATE TABLE IVCE_DTL (IVCE_DTL_UID INTEGER PRIMARY KEY)`)
	require.NoError(t, err)
	require.Equal(t, exitFailed, b.run(t, "migrate", "up", "--sample-tables"))
	require.Contains(t, b.errors, "IVCE_DTL exists and is no sample: leave --sample-tables out")
	require.Equal(t, exitOK, b.run(t, "migrate", "up"), b.errors)
	require.Regexp(t, `docs/cutover.md goes on with "2. Shadow".*\n$`, b.errors, "the last line")
	page, err := os.ReadFile("../../docs/cutover.md")
	require.NoError(t, err)
	require.Contains(t, string(page), "\n## 2. Shadow")
}

func TestTheScriptMakesTheUser(t *testing.T) {
	b := newBench(t)
	script := []string{"migrate", "script", "--user", "web", "--client-id"}
	require.Equal(t, exitOK, b.run(t, append(script, "aa0ca2bc-3342-4a36-9665-6c2c171425a0")...))
	require.Regexp(t, `(?s)BEGIN TRANSACTION.*CREATE USER \[web\] WITH SID = 0xBCA20CAA4233364A96656C2C171425A0, TYPE = E.*`+
		`ALTER ROLE sqlwriter_writers ADD MEMBER \[web\];.*COMMIT TRANSACTION`, b.out)
	require.Equal(t, exitFailed, b.run(t, append(script, "web")...))
	require.Contains(t, b.errors, "client id: expected the form")
	require.Empty(t, b.out)
}
