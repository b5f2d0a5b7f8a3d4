package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"sync"

	"modernc.org/sqlite"
)

// prepared has the statements of one kind of request. Each is prepared once for a connection and closed with it.
// SQLite prepares it again after a change of the schema.
type prepared struct {
	db    *sql.DB
	text  statements
	steps []string

	mu   sync.Mutex
	done map[string]*sql.Stmt
}

// ready returns the statements by name. The first request prepares them, because that needs the tables to exist.
func (p *prepared) ready(ctx context.Context) (map[string]*sql.Stmt, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done != nil {
		return p.done, nil
	}
	done := map[string]*sql.Stmt{}
	for _, name := range p.steps {
		st, err := p.db.PrepareContext(ctx, p.text[name]) //nolint:sqlclosecheck // closed with the pool
		if err != nil {
			for _, st := range done {
				_ = st.Close() // the first error is returned
			}
			return nil, classify("sqlite: apply: "+name, err)
		}
		done[name] = st
	}
	p.done = done
	return done, nil
}

// statement is a prepared statement in a transaction, which closes it.
type statement interface {
	ExecContext(ctx context.Context, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, args ...any) *sql.Row
}

// connector opens connections with our temp tables. A rollback would drop tables made within a request, and the
// prepared statements that use them would fail.
type connector struct {
	driver.Connector
	script string
}

// open returns the pool of a connection string.
func open(dsn, script string) (*sql.DB, error) {
	c, err := sqlite.NewConnector(dsn)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector{c, script}), nil
}

// Connect implements driver.Connector.
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	script, err := conn.Prepare(c.script) //nolint:staticcheck // the driver prepares a script when it runs
	if err == nil {
		_, err = script.Exec(nil) //nolint:staticcheck // it does not block
		err = errors.Join(err, script.Close())
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}
