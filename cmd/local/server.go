package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sqlwriter/cmd/local/expect"
	"sqlwriter/cmd/local/internal/term"
	"sqlwriter/cmd/local/sample"
	"sqlwriter/internal/app/open"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/store/sqlserver"
)

// The stack works on a server's database only if it was empty when it came: then everything in it is the stack's, and
// FRESH=1 can take it away again. The sign is the table sqlwriter.local_stack with one row: an id that the state folder
// has too (pairName), because the documents there and the rows here belong together.
const (
	pairName      = "sqlserver.id"
	markTable     = "sqlwriter.local_stack"
	stackLock     = "sqlwriter.local_stack"
	ownSchema     = "sqlwriter"
	previewSchema = "sqlwriter_preview"
	shownNames    = 3
	// cleanWithin bounds the removal of the tables at the end of a run, which nothing else does.
	cleanWithin = 20 * time.Second
)

// serverOptions say what a run wants of the database.
type serverOptions struct {
	dsn, dir          string
	kept, once, fresh bool
}

// server is a database on a server.
type server struct {
	serverOptions
	db *open.Database
	// lock is the connection that holds the lock on the database: one stack at a time.
	lock *sql.Conn
	name string
}

// openServer connects, makes the database if the server has none of this name, and finds out whether it may be worked on.
// What an earlier run left is removed where the options say so.
func openServer(ctx context.Context, out *term.Output, o serverOptions) (_ database, err error) {
	d := &server{serverOptions: o}
	if d.name, err = databaseOf(o.dsn); err != nil {
		return nil, err
	}
	if d.db, err = openOrCreate(ctx, out, o.dsn, d.name); err != nil {
		return nil, err
	}
	if err := d.claim(ctx, out); err != nil {
		return nil, errors.Join(err, d.release())
	}
	return d, nil
}

// openOrCreate opens the database. Whether it is missing is asked of the server, which has one number (4060; 911 on some)
// for a database that is not there and for one that the login may not open.
func openOrCreate(ctx context.Context, out *term.Output, dsn, name string) (*open.Database, error) {
	db, err := connectSQL(ctx, dsn)
	if err == nil || !slices.Contains([]string{"4060", "911"}, fault.CodeOf(err)) {
		return db, err
	}
	master, masterErr := connectSQL(ctx, withDatabase(dsn, "master"))
	if masterErr != nil {
		return nil, err // the first error says what is wrong
	}
	defer func() { _ = master.Close() }() // nothing was begun there
	var there int
	if scanErr := master.Writer.QueryRowContext(ctx, `SELECT COUNT(*) FROM sys.databases WHERE name = @name`, sql.Named("name", name)).Scan(&there); scanErr != nil || there > 0 {
		return nil, err
	}
	if _, err := master.Writer.ExecContext(ctx, "CREATE DATABASE "+bracket(name)); err != nil {
		return nil, fmt.Errorf("the server has no database %s, and it cannot be made: %w", name, err)
	}
	out.Linef("the server had no database %s: an empty one was made", name)
	return connectSQL(ctx, dsn)
}

// connectSQL opens a database and connects.
func connectSQL(ctx context.Context, dsn string) (*open.Database, error) {
	db, err := openSQL(dsn)
	if err != nil {
		return nil, err
	}
	return db, db.Connect(ctx)
}

// databaseOf is the database that a connection string names. The server's own are nobody's to work in.
func databaseOf(dsn string) (string, error) {
	u, err := url.Parse(dsn)
	if err != nil {
		return "", errors.New("the connection string cannot be read") // the parser's error repeats it
	}
	name := parameter(u, "database")
	if slices.Contains([]string{"master", "model", "msdb", "tempdb"}, strings.ToLower(name)) {
		return "", fmt.Errorf("%s is the server's own: name an empty database, or one that is not there yet and will be made", name)
	}
	return name, nil
}

// parameter is a parameter of a connection string; case does not tell their names apart.
func parameter(u *url.URL, name string) string {
	for n, values := range u.Query() {
		if strings.EqualFold(n, name) && len(values) > 0 {
			return values[0]
		}
	}
	return ""
}

// withDatabase is the connection string of another database on the same server.
func withDatabase(dsn, name string) string {
	u, err := url.Parse(dsn)
	if err != nil {
		return dsn // the adapter says what is wrong with it
	}
	q := u.Query()
	for n := range q {
		if strings.EqualFold(n, "database") {
			q.Del(n)
		}
	}
	q.Set("database", name)
	u.RawQuery = q.Encode()
	return u.String()
}

// bracket makes an identifier of a name.
func bracket(name string) string { return "[" + strings.ReplaceAll(name, "]", "]]") + "]" }

// claim takes the lock and decides what of the database is ours.
func (d *server) claim(ctx context.Context, out *term.Output) error {
	if err := d.takeLock(ctx); err != nil {
		return err
	}
	id, keeps, err := d.mark(ctx)
	if err != nil {
		return err
	}
	pair, err := os.ReadFile(filepath.Join(d.dir, pairName))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	ours := string(pair)
	switch {
	case id == "" && d.kept:
		return fmt.Errorf("the documents kept in %s belong to another database than %s: FRESH=1 forgets them", d.dir, d)
	case id == "":
		if err := d.refuseTables(ctx); err != nil {
			return err
		}
	case d.fresh || (d.once && !keeps):
		if err := d.clean(ctx); err != nil {
			return err
		}
		out.Linef("what an earlier stack made in %s is removed", d)
	case d.kept && id == ours:
		return nil
	default:
		return fmt.Errorf("%s holds what a stack with another state folder made: use another database, or FRESH=1 removes it", d)
	}
	return d.setMark(ctx)
}

// takeLock keeps a second stack out. The server lets go of it when the connection ends, however the stack does.
func (d *server) takeLock(ctx context.Context) (err error) {
	if d.lock, err = d.db.Writer.Conn(ctx); err != nil {
		return err
	}
	const take = `DECLARE @result int;
EXEC @result = sp_getapplock @Resource = @name, @LockMode = N'Exclusive', @LockOwner = N'Session', @LockTimeout = 5000;
SELECT @result;`
	var result int
	if err := d.lock.QueryRowContext(ctx, take, sql.Named("name", stackLock)).Scan(&result); err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	if result < 0 {
		return fmt.Errorf("another stack is working on %s", d)
	}
	return nil
}

// mark reads the sign: the stack's id, and whether its state is kept. No id means no sign.
func (d *server) mark(ctx context.Context) (id string, keeps bool, err error) {
	all, err := d.tables(ctx)
	if err != nil || !slices.Contains(all, object{name: markTable}) {
		return "", false, err
	}
	err = d.db.Writer.QueryRowContext(ctx, "SELECT id, keeps FROM "+markTable).Scan(&id, &keeps)
	if errors.Is(err, sql.ErrNoRows) { // it was cut off between making the table and its row
		return "(unnamed)", false, nil
	}
	return id, keeps, err
}

// setMark puts the sign there. The state folder learns the id first: an id without a sign means nothing.
func (d *server) setMark(ctx context.Context) error {
	id := rand.Text()
	if err := os.WriteFile(filepath.Join(d.dir, pairName), []byte(id), 0o600); err != nil {
		return err
	}
	for _, statement := range []string{
		"IF SCHEMA_ID(N'" + ownSchema + "') IS NULL EXEC (N'CREATE SCHEMA " + ownSchema + "')",
		"CREATE TABLE " + markTable + " (id varchar(26) NOT NULL PRIMARY KEY, keeps bit NOT NULL, made_at datetime2(0) NOT NULL DEFAULT SYSUTCDATETIME())",
		"INSERT INTO " + markTable + " (id, keeps) VALUES (@id, @keeps)",
	} {
		var args []any
		if strings.HasPrefix(statement, "INSERT") {
			args = []any{sql.Named("id", id), sql.Named("keeps", !d.once)}
		}
		if _, err := d.db.Writer.ExecContext(ctx, statement, args...); err != nil {
			return fmt.Errorf("the sign %s: %w", markTable, err)
		}
	}
	return nil
}

// object is a table or a view, as schema.name.
type object struct {
	name string
	view bool
}

// drop is the statement that removes it.
func (o object) drop() string {
	kind := "TABLE "
	if o.view {
		kind = "VIEW "
	}
	return "DROP " + kind + qualified(o.name)
}

// qualified quotes a name with its schema.
func qualified(full string) string {
	schema, name, _ := strings.Cut(full, ".")
	return bracket(schema) + "." + bracket(name)
}

// procedures lists those in our two schemas.
func (d *server) procedures(ctx context.Context) (all []string, err error) {
	rows, err := d.db.Writer.QueryContext(ctx, `SELECT ROUTINE_SCHEMA + '.' + ROUTINE_NAME FROM INFORMATION_SCHEMA.ROUTINES
WHERE ROUTINE_TYPE = 'PROCEDURE' AND ROUTINE_SCHEMA IN ('`+ownSchema+`', '`+previewSchema+`')`)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		all = append(all, name)
	}
	return all, rows.Err()
}

// tables lists the tables and views of the database.
func (d *server) tables(ctx context.Context) (all []object, err error) {
	rows, err := d.db.Writer.QueryContext(ctx, `SELECT TABLE_SCHEMA, TABLE_NAME, CASE WHEN TABLE_TYPE = 'VIEW' THEN 1 ELSE 0 END
FROM INFORMATION_SCHEMA.TABLES ORDER BY TABLE_SCHEMA, TABLE_NAME`)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var schema, name string
		var o object
		if err := rows.Scan(&schema, &name, &o.view); err != nil {
			return nil, err
		}
		o.name = schema + "." + name
		all = append(all, o)
	}
	return all, rows.Err()
}

// refuseTables refuses a database that has any table: it is somebody's.
func (d *server) refuseTables(ctx context.Context) error {
	all, err := d.tables(ctx)
	if err != nil || len(all) == 0 {
		return err
	}
	var shown []string
	for _, o := range all[:min(len(all), shownNames)] {
		shown = append(shown, o.name)
	}
	if len(all) > shownNames {
		shown = append(shown, "...")
	}
	return fmt.Errorf("%s has %d tables that no stack made (%s), so nothing is touched: "+
		"name an empty database, or one that is not there yet and will be made", d, len(all), strings.Join(shown, ", "))
}

// clean removes what a stack made: the sample tables and everything in our schema, the sign last. It refuses when there
// are rows that no stack made. Whatever else is in the database stays.
func (d *server) clean(ctx context.Context) error {
	all, err := d.tables(ctx)
	if err != nil {
		return err
	}
	detail, tracking := object{name: "dbo." + expect.Detail}, object{name: "dbo." + expect.Tracking}
	if slices.Contains(all, detail) && slices.Contains(all, tracking) {
		n, err := sample.OtherLines(ctx, d.db.Writer)
		if err != nil {
			return err
		}
		if n > 0 {
			return fmt.Errorf("%s has %d rows in %s and %s that no stack made: delete them, or use another database", d, n, detail.name, tracking.name)
		}
	}
	var views, others, last []object
	for _, o := range all {
		switch {
		case o.name == markTable:
			last = append(last, o)
		case o == detail, o == tracking:
			others = append(others, o)
		case strings.HasPrefix(o.name, ownSchema+".") && o.view:
			views = append(views, o)
		case strings.HasPrefix(o.name, ownSchema+"."):
			others = append(others, o)
		}
	}
	procedures, err := d.procedures(ctx)
	if err != nil {
		return err
	}
	var drops []string
	for _, p := range procedures {
		drops = append(drops, "DROP PROCEDURE "+qualified(p))
	}
	for _, o := range slices.Concat(views, others, last) {
		drops = append(drops, o.drop())
	}
	for _, statement := range append(drops, "DROP SCHEMA IF EXISTS "+previewSchema, "DROP SCHEMA "+ownSchema) {
		if _, err := d.db.Writer.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("remove what a stack made: %s: %w", statement, err)
		}
	}
	return nil
}

func (d *server) make(ctx context.Context) error {
	if err := d.db.Migrate(ctx); err != nil {
		return err
	}
	if err := sqlserver.CreateSampleSchema(ctx, d.db.Writer, sqlserver.Options{}); err != nil {
		return err
	}
	return d.db.MarkEmpty(ctx, madeHere)
}

func (d *server) pool() *sql.DB { return d.db.Writer }

func (d *server) read(ctx context.Context) (expect.Tables, error) {
	return expect.ReadServer(ctx, d.db.Writer)
}

func (d *server) connection() string { return d.dsn }

// String is the place without user and password.
func (d *server) String() string {
	u, err := url.Parse(d.dsn)
	if err != nil {
		return d.name
	}
	return "database " + d.name + " on " + u.Host
}

// close lets go of everything; a run that keeps nothing takes away what it made first.
func (d *server) close() error {
	var err error
	if d.once {
		ctx, cancel := context.WithTimeout(context.Background(), cleanWithin)
		defer cancel()
		err = d.clean(ctx)
	}
	return errors.Join(err, d.release())
}

// release ends the connections, and with them the lock.
func (d *server) release() error {
	var err error
	if d.lock != nil {
		err = d.lock.Close()
	}
	return errors.Join(err, d.db.Close())
}
