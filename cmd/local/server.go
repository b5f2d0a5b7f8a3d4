package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"sqlwriter/cmd/local/expect"
	"sqlwriter/cmd/local/internal/proc"
	"sqlwriter/cmd/local/internal/term"
	"sqlwriter/cmd/local/outage"
	"sqlwriter/cmd/local/sample"
	"sqlwriter/internal/app/open"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/store/sqlserver"
)

// The stack uses a server's database only if it was empty before, so that FRESH=1 may delete everything in it. The table
// sqlwriter.local_stack marks such a database. Its one row contains an id that is also in the state folder (pairName),
// because the documents there and the rows here belong together.
const (
	pairName      = "sqlserver.id"
	markTable     = "sqlwriter.local_stack"
	stackLock     = "sqlwriter.local_stack"
	ownSchema     = "sqlwriter"
	previewSchema = "sqlwriter_preview"
	shownNames    = 3
	// cleanWithin bounds the removal of the tables at the end of a run.
	cleanWithin = 20 * time.Second
)

// serverOptions are the options of openServer.
type serverOptions struct {
	dsn, dir              string
	hasState, once, fresh bool
}

// server is a database on a server.
type server struct {
	serverOptions
	db *open.Database
	// lock is the connection with the application lock: one stack at a time uses the database.
	lock *sql.Conn
	name string
}

// openServer connects, creates the database if it does not exist, and checks that the stack may use it. It removes the tables
// of an earlier stack if the options require that.
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

// openOrCreate opens the database, and creates it if it is missing. Error 4060 (911 on some servers) also means that the login
// may not open the database, so the server's list of databases decides.
func openOrCreate(ctx context.Context, out *term.Output, dsn, name string) (*open.Database, error) {
	db, err := connectSQL(ctx, dsn)
	if err == nil || !slices.Contains([]string{"4060", "911"}, fault.CodeOf(err)) {
		return db, err
	}
	master, masterErr := connectSQL(ctx, withDatabase(dsn, "master"))
	if masterErr != nil {
		return nil, err // the first error names the cause
	}
	defer func() { _ = master.Close() }() // no transaction is open there
	var there int
	if scanErr := master.Writer.QueryRowContext(ctx, `SELECT COUNT(*) FROM sys.databases WHERE name = @name`, sql.Named("name", name)).Scan(&there); scanErr != nil || there > 0 {
		return nil, err
	}
	if _, err := master.Writer.ExecContext(ctx, "CREATE DATABASE "+bracket(name)); err != nil {
		return nil, fmt.Errorf("the server has no database %s, and it cannot be created: %w", name, err)
	}
	out.Linef("the server had no database %s: an empty one was created", name)
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

// databaseOf returns the database that a connection string names. It refuses the server's system databases.
func databaseOf(dsn string) (string, error) {
	u, err := url.Parse(dsn)
	if err != nil {
		return "", errors.New("the connection string cannot be read") // the parser's error repeats it
	}
	name := parameter(u, "database")
	if slices.Contains([]string{"master", "model", "msdb", "tempdb"}, strings.ToLower(name)) {
		return "", fmt.Errorf("%s is a system database: name an empty database, or one that does not exist and will be created", name)
	}
	return name, nil
}

// parameter returns a parameter of a connection string. Names are compared without case.
func parameter(u *url.URL, name string) string {
	for n, values := range u.Query() {
		if strings.EqualFold(n, name) && len(values) > 0 {
			return values[0]
		}
	}
	return ""
}

// withDatabase returns the connection string of another database on the same server.
func withDatabase(dsn, name string) string {
	u, err := url.Parse(dsn)
	if err != nil {
		return dsn // the adapter reports the error
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

// bracket quotes a name as an identifier.
func bracket(name string) string { return "[" + strings.ReplaceAll(name, "]", "]]") + "]" }

// claim takes the lock and decides whether the stack may use the database.
func (d *server) claim(ctx context.Context, out *term.Output) error {
	if err := d.takeLock(ctx); err != nil {
		return err
	}
	id, persistent, err := d.mark(ctx)
	if err != nil {
		return err
	}
	pair, err := os.ReadFile(filepath.Join(d.dir, pairName))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	ours := string(pair)
	switch {
	case id == "" && d.hasState:
		return fmt.Errorf("the documents in %s belong to another database than %s: FRESH=1 deletes them", d.dir, d)
	case id == "":
		if err := d.refuseTables(ctx); err != nil {
			return err
		}
	case d.fresh || (d.once && !persistent):
		if err := d.clean(ctx); err != nil {
			return err
		}
		out.Linef("the tables of an earlier stack in %s were removed", d)
	case d.hasState && id == ours:
		return nil
	default:
		return fmt.Errorf("%s contains the tables of a stack with another state folder: use another database, or FRESH=1 removes them", d)
	}
	return d.setMark(ctx)
}

// takeLock takes the application lock. The server releases it when the connection ends, also if the stack is killed.
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
		return fmt.Errorf("another stack uses %s", d)
	}
	return nil
}

// mark reads the mark: the stack's id, and whether its state folder is persistent. An empty id means no mark.
func (d *server) mark(ctx context.Context) (id string, persistent bool, err error) {
	all, err := d.tables(ctx)
	if err != nil || !slices.Contains(all, object{name: markTable}) {
		return "", false, err
	}
	err = d.db.Writer.QueryRowContext(ctx, "SELECT id, keeps FROM "+markTable).Scan(&id, &persistent)
	if errors.Is(err, sql.ErrNoRows) { // a stack was killed between creating the table and inserting its row
		return "(unnamed)", false, nil
	}
	return id, persistent, err
}

// setMark writes the mark. It writes the id to the state folder first, because an id without a mark has no effect.
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
			return fmt.Errorf("the mark %s: %w", markTable, err)
		}
	}
	return nil
}

// object is a table or a view, as schema.name.
type object struct {
	name string
	view bool
}

// drop returns the statement that drops the object.
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

// procedures lists the procedures in the app's two schemas.
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

// refuseTables refuses a database that has a table, because another program uses it.
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
	return fmt.Errorf("%s has %d tables that no stack created (%s), so nothing is touched: "+
		"name an empty database, or one that does not exist and will be created", d, len(all), strings.Join(shown, ", "))
}

// clean drops the sample tables and everything in the app's schemas, the mark last. It refuses if there are rows that no
// stack inserted. Other objects of the database stay.
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
			return fmt.Errorf("%s has %d rows in %s and %s that no stack inserted: delete them, or use another database", d, n, detail.name, tracking.name)
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
			return fmt.Errorf("remove the tables of a stack: %s: %w", statement, err)
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
	return d.db.MarkEmpty(ctx, adoptedBy)
}

func (d *server) pool() *sql.DB { return d.db.Writer }

func (d *server) read(ctx context.Context) (expect.Tables, error) {
	return expect.ReadServer(ctx, d.db.Writer)
}

func (d *server) connection() string { return d.dsn }

// sqlPort is the preferred port of the proxy before the server.
const sqlPort = 14330

func (d *server) behindSwitch(ctx context.Context) (outage.Switch, string, error) {
	address := addressOf(d.dsn)
	if address == "" {
		return nil, d.dsn, nil
	}
	port, err := proc.Port(ctx, sqlPort)
	if err != nil {
		return nil, "", err
	}
	proxy, err := outage.NewProxy(ctx, net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), address)
	if err != nil {
		return nil, "", err
	}
	return proxy, through(d.dsn, proxy.Address()), nil
}

// addressOf returns the HOST:PORT of a connection string. It is empty where a proxy does not work: an instance without a port
// is asked for its port by UDP, and Azure SQL finds the server by the name that the client connects to.
func addressOf(dsn string) string {
	u, err := url.Parse(dsn)
	if err != nil || (u.Port() == "" && strings.Trim(u.Path, "/") != "") || strings.HasSuffix(strings.ToLower(u.Hostname()), ".windows.net") {
		return ""
	}
	return net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "1433"))
}

// through returns the connection string with another address. The server's certificate is still checked for its own name.
func through(dsn, address string) string {
	u, err := url.Parse(dsn)
	if err != nil {
		return dsn // the adapter reports the error
	}
	if parameter(u, "hostNameInCertificate") == "" {
		q := u.Query()
		q.Set("hostNameInCertificate", u.Hostname())
		u.RawQuery = q.Encode()
	}
	u.Host = address
	return u.String()
}

// String names database and server, without user and password.
func (d *server) String() string {
	u, err := url.Parse(d.dsn)
	if err != nil {
		return d.name
	}
	return "database " + d.name + " on " + u.Host
}

// close closes the connections. A run with a temporary state folder drops its tables first.
func (d *server) close() error {
	var err error
	if d.once {
		ctx, cancel := context.WithTimeout(context.Background(), cleanWithin)
		defer cancel()
		err = d.clean(ctx)
	}
	return errors.Join(err, d.release())
}

// release closes the connections, which releases the lock.
func (d *server) release() error {
	var err error
	if d.lock != nil {
		err = d.lock.Close()
	}
	return errors.Join(err, d.db.Close())
}
