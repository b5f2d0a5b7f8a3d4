package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"sqlwriter/internal/app/open"
	"sqlwriter/internal/config"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/store/sqlite"
	"sqlwriter/internal/store/sqlserver"
	"sqlwriter/test/expect"
	"sqlwriter/test/outage"
	"sqlwriter/test/sample"
)

// database is the stack's SQL database: a SQLite file of its own, or a database on a server.
type database struct {
	*open.Database
	// name names it without a secret. connection is SQL_CONNECTION.
	name, connection string
	// power takes SQL away from the handler and gives it back; nil if it cannot, and before behindSwitch.
	power outage.Switch
	// lock is the connection with the application lock: one stack at a time uses a database on a server.
	lock *sql.Conn
}

// readMapping reads the file of a mapping, in the time zone of the stack's settings; without one it is the default.
func readMapping(path string) (*invoice.Mapping, error) {
	values, err := localSettings(addresses{}, "")
	if err != nil {
		return nil, err
	}
	return open.Mapping(path, configOf(values).Location)
}

// openDatabase opens the database on a server that a connection string names, or a file in dir.
func openDatabase(ctx context.Context, out *output, connection, dir string, m *invoice.Mapping) (*database, error) {
	if connection != "" {
		return openServer(ctx, out, connection, m)
	}
	path := filepath.Join(dir, "sqlwriter.db")
	db, err := openSQL(sqlite.Scheme+path, m)
	if err != nil {
		return nil, err
	}
	return &database{Database: db, name: path, connection: sqlite.Scheme + path}, nil
}

// openSQL opens the database of a connection string. A test server seldom has a certificate that can be checked, and
// gets sample data.
func openSQL(connection string, m *invoice.Mapping) (*open.Database, error) {
	return open.SQL(config.SQL{
		Engine: config.EngineOf(connection), Connection: config.Secret(connection), AnyCertificate: true,
	}, m, false)
}

// checkConnection refuses a connection that the stack cannot use.
func checkConnection(connection string) error {
	switch config.EngineOf(connection) {
	case config.SQLServer:
		return sqlserver.CheckDSN(connection, true)
	case config.SQLite:
		return errors.New(config.SQLConnection +
			": expected sqlserver://..., found sqlite: without this setting the stack uses a SQLite file of its own")
	}
	if connection == "" {
		return nil
	}
	return fmt.Errorf("%s: expected sqlserver://..., found another text of %d characters",
		config.SQLConnection, len(connection))
}

func (d *database) onServer() bool { return d.Engine == config.SQLServer }

// makeTables creates the sample tables and the app's own.
func (d *database) makeTables(ctx context.Context) (err error) {
	if d.onServer() {
		err = sqlserver.CreateSampleSchema(ctx, d.Writer, sqlserver.Options{Mapping: d.Mapping})
	} else {
		err = sqlite.CreateSampleSchemaAs(ctx, d.Writer, d.Mapping)
	}
	if err != nil {
		return err
	}
	if err := d.Migrate(ctx); err != nil {
		return err
	}
	return d.MarkEmpty(ctx, "the local stack")
}

// read reads the three tables completely.
func (d *database) read(ctx context.Context) (expect.Tables, error) {
	keys := expect.Keys{Detail: d.Mapping.Key(invoice.Detail), Tracking: d.Mapping.Key(invoice.Tracking)}
	if d.onServer() {
		return expect.ReadServerBy(ctx, d.Reader, keys)
	}
	return expect.ReadBy(ctx, d.Reader, keys)
}

// seed makes a detail row of each line. It has a key alone where the columns are a deployment's own.
func (d *database) seed(ctx context.Context, lines []int64, own bool) error {
	if !own {
		_, err := sample.SeedLines(ctx, d.Writer, lines)
		return err
	}
	key := `"` + strings.ReplaceAll(d.Mapping.Key(invoice.Detail), `"`, `""`) + `"`
	tx, err := d.Writer.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("seed: %w", err)
	}
	for _, line := range lines {
		_, err := tx.ExecContext(ctx, fmt.Sprintf(`INSERT INTO IVCE_DTL (%s) SELECT @line
			WHERE NOT EXISTS (SELECT 1 FROM IVCE_DTL WHERE %s = @line)`, key, key), sql.Named("line", line))
		if err != nil {
			return errors.Join(fmt.Errorf("seed: %w", err), tx.Rollback())
		}
	}
	return tx.Commit()
}

// behindSwitch sets power, and returns SQL_CONNECTION for a handler whose SQL it takes away.
func (d *database) behindSwitch(ctx context.Context) (string, error) {
	if d.onServer() {
		return d.behindProxy(ctx)
	}
	d.power = outage.NewFile(d.name, d.Writer)
	return d.connection, nil
}

// end removes the tables from a server and closes the connections.
func (d *database) end(ctx context.Context) error {
	if d.onServer() {
		return d.endServer(ctx)
	}
	return d.Close()
}
