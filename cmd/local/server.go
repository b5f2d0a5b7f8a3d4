package main

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"sqlwriter/internal/app/open"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/test/expect"
	"sqlwriter/test/outage"
)

// On a server the stack uses a database that has no tables, marks it by the table sqlwriter.local_stack, and removes at
// its end what it made. In a database with the mark every table is of a stack that was killed; with any other table it
// is refused.
const (
	ownSchema     = "sqlwriter"
	previewSchema = "sqlwriter_preview"
	markTable     = ownSchema + ".local_stack"
	shownNames    = 3
	// cleanWithin bounds the removal of the tables at the end of a run.
	cleanWithin = 20 * time.Second
)

// openServer connects, creates the database if it does not exist, and claims it.
func openServer(ctx context.Context, out *output, dsn string, m *invoice.Mapping) (*database, error) {
	name, err := databaseOf(dsn)
	if err != nil {
		return nil, err
	}
	db, err := openOrCreate(ctx, out, dsn, name, m)
	if err != nil {
		return nil, err
	}
	d := &database{Database: db, name: "database " + name + " on " + hostOf(dsn), connection: dsn}
	if err := d.claim(ctx, out); err != nil {
		return nil, errors.Join(err, d.release())
	}
	return d, nil
}

// openOrCreate opens the database, and creates it if it is missing. Error 4060 (911 on some servers) also means that
// the login may not open the database, so the server's list of databases decides.
func openOrCreate(ctx context.Context, out *output, dsn, name string, m *invoice.Mapping) (*open.Database, error) {
	db, err := connectSQL(ctx, dsn, m)
	if err == nil || !slices.Contains([]string{"4060", "911"}, fault.CodeOf(err)) {
		return db, err
	}
	master, masterErr := connectSQL(ctx, withDatabase(dsn, "master"), m)
	if masterErr != nil {
		return nil, err // the first error names the cause
	}
	defer func() { _ = master.Close() }() // no transaction is open there
	var there int
	if scanErr := master.Writer.QueryRowContext(ctx, `SELECT COUNT(*) FROM sys.databases WHERE name = @name`,
		sql.Named("name", name)).Scan(&there); scanErr != nil || there > 0 {
		return nil, err
	}
	if _, err := master.Writer.ExecContext(ctx, "CREATE DATABASE "+bracket(name)); err != nil {
		return nil, fmt.Errorf("the server has no database %s, and it cannot be created: %w", name, err)
	}
	out.linef("the server had no database %s: an empty one was created", name)
	return connectSQL(ctx, dsn, m)
}

// connectSQL opens a database and connects.
func connectSQL(ctx context.Context, dsn string, m *invoice.Mapping) (*open.Database, error) {
	db, err := openSQL(dsn, m)
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
		return "",
			fmt.Errorf(
				"%s is a system database: name an empty database, or one that does not exist and will be created", name)
	}
	return name, nil
}

// hostOf returns the server that a connection string names, without user and password.
func hostOf(dsn string) string {
	u, err := url.Parse(dsn)
	if err != nil {
		return "the server"
	}
	return u.Host
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

// claim takes the lock, refuses tables of others, removes those of a killed stack, and marks the database.
func (d *database) claim(ctx context.Context, out *output) error {
	if err := d.takeLock(ctx); err != nil {
		return err
	}
	all, err := d.tables(ctx)
	if err != nil {
		return err
	}
	if err := d.refuse(all); err != nil {
		return err
	}
	if len(all) > 0 {
		if err := d.clean(ctx); err != nil {
			return err
		}
		out.linef("the tables of a stack that was killed were removed from %s", d.name)
	}
	for _, statement := range []string{
		"IF SCHEMA_ID(N'" + ownSchema + "') IS NULL EXEC (N'CREATE SCHEMA " + ownSchema + "')",
		"CREATE TABLE " + markTable + " (made_at datetime2(0) NOT NULL DEFAULT SYSUTCDATETIME())",
	} {
		if _, err := d.Writer.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("the mark %s: %w", markTable, err)
		}
	}
	return nil
}

// takeLock takes the application lock. The server releases it when the connection ends, also if the stack is killed.
func (d *database) takeLock(ctx context.Context) (err error) {
	if d.lock, err = d.Writer.Conn(ctx); err != nil {
		return err
	}
	const take = `DECLARE @result int;
EXEC @result = sp_getapplock @Resource = @name, @LockMode = N'Exclusive', @LockOwner = N'Session', @LockTimeout = 5000;
SELECT @result;`
	var result int
	if err := d.lock.QueryRowContext(ctx, take, sql.Named("name", markTable)).Scan(&result); err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	if result < 0 {
		return fmt.Errorf("another stack uses %s", d.name)
	}
	return nil
}

// object is a table or a view.
type object struct {
	schema, name string
	view         bool
}

func (o object) String() string { return o.schema + "." + o.name }

// ours reports whether a stack makes an object of this name.
func (o object) ours() bool {
	return o.schema == ownSchema ||
		(o.schema == "dbo" && !o.view && (o.name == expect.Detail || o.name == expect.Tracking))
}

// drop returns the statement that drops the object.
func (o object) drop() string {
	kind := "TABLE "
	if o.view {
		kind = "VIEW "
	}
	return "DROP " + kind + bracket(o.schema) + "." + bracket(o.name)
}

// refuse refuses a database with a table or view that no stack made: without the mark all are such.
func (d *database) refuse(all []object) error {
	marked := slices.ContainsFunc(all, func(o object) bool { return o.String() == markTable })
	var others []string
	for _, o := range all {
		if !marked || !o.ours() {
			others = append(others, o.String())
		}
	}
	if len(others) == 0 {
		return nil
	}
	shown := strings.Join(others[:min(len(others), shownNames)], ", ")
	if len(others) > shownNames {
		shown += ", ..."
	}
	return fmt.Errorf("%s has %d tables that no stack created (%s), so nothing is touched: "+
		"name an empty database, or one that does not exist and will be created", d.name, len(others), shown)
}

// tables lists the tables and views of the database.
func (d *database) tables(ctx context.Context) (all []object, err error) {
	return listObjects(ctx, d.Writer, `SELECT TABLE_SCHEMA, TABLE_NAME, CASE WHEN TABLE_TYPE = 'VIEW' THEN 1 ELSE 0 END
FROM INFORMATION_SCHEMA.TABLES ORDER BY TABLE_SCHEMA, TABLE_NAME`)
}

// listObjects lists objects: schema, name, whether it is a view.
func listObjects(ctx context.Context, db *sql.DB, query string) (all []object, err error) {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var o object
		if err := rows.Scan(&o.schema, &o.name, &o.view); err != nil {
			return nil, err
		}
		all = append(all, o)
	}
	return all, rows.Err()
}

// clean drops the sample tables and everything in the app's schemas, the mark last. Other objects of the database stay.
func (d *database) clean(ctx context.Context) error {
	all, err := d.tables(ctx)
	if err != nil {
		return err
	}
	procedures, err := listObjects(ctx, d.Writer,
		`SELECT ROUTINE_SCHEMA, ROUTINE_NAME, 0 FROM INFORMATION_SCHEMA.ROUTINES
WHERE ROUTINE_TYPE = 'PROCEDURE' AND ROUTINE_SCHEMA IN ('`+ownSchema+`', '`+previewSchema+`')`)
	if err != nil {
		return err
	}
	var drops, tables, last []string
	for _, p := range procedures {
		drops = append(drops, "DROP PROCEDURE "+bracket(p.schema)+"."+bracket(p.name))
	}
	for _, o := range all {
		switch {
		case !o.ours():
		case o.String() == markTable:
			last = append(last, o.drop())
		case o.view:
			drops = append(drops, o.drop())
		default:
			tables = append(tables, o.drop())
		}
	}
	for _, statement := range slices.Concat(drops, tables, last,
		[]string{"DROP SCHEMA IF EXISTS " + previewSchema, "DROP SCHEMA " + ownSchema}) {
		if _, err := d.Writer.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("remove the tables of a stack: %s: %w", statement, err)
		}
	}
	return nil
}

// behindProxy sets power to a proxy in front of the server, and returns SQL_CONNECTION for a handler behind it.
func (d *database) behindProxy(ctx context.Context) (string, error) {
	address := addressOf(d.connection)
	if address == "" {
		return d.connection, nil
	}
	proxy, err := outage.NewProxy(ctx, "127.0.0.1:0", address)
	if err != nil {
		return "", err
	}
	d.power = proxy
	return through(d.connection, proxy.Address()), nil
}

// addressOf returns the HOST:PORT of a connection string. It is empty where a proxy does not work: an instance without
// a port is asked for its port by UDP, and Azure SQL finds the server by the name that the client connects to.
func addressOf(dsn string) string {
	u, err := url.Parse(dsn)
	if err != nil || (u.Port() == "" && strings.Trim(u.Path, "/") != "") ||
		strings.HasSuffix(strings.ToLower(u.Hostname()), ".windows.net") {
		return ""
	}
	return net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "1433"))
}

// through returns the connection string with another address. The server's certificate is still checked for its own
// name.
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

// endServer drops the stack's tables and closes the connections.
func (d *database) endServer(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, cleanWithin)
	defer cancel()
	return errors.Join(d.clean(ctx), d.release())
}

// release closes the connections, which releases the lock.
func (d *database) release() error {
	var err error
	if d.lock != nil {
		err = d.lock.Close()
	}
	return errors.Join(err, d.Close())
}
