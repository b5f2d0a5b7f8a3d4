// Package sqlservertest gives tests a T-SQL server and a proxy that breaks the connections to it.
//
// Set SQLWRITER_TEST_SQLSERVER to a go-mssqldb connection string whose login may create databases. Server and
// NewDatabase skip the test when it is not set. NewDatabase makes an empty database and drops it at the end of the
// test. NewProxy starts the proxy; WithAddress changes a connection string to go through it.
package sqlservertest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	_ "github.com/microsoft/go-mssqldb" // the driver "sqlserver"
	"github.com/stretchr/testify/require"
)

// Variable names the environment variable with the connection string. Its login must be allowed to create databases.
const Variable = "SQLWRITER_TEST_SQLSERVER"

// Server is the connection string of the server, or the test is skipped with the reason.
func Server(t testing.TB) string {
	t.Helper()
	dsn := os.Getenv(Variable)
	if dsn == "" {
		t.Skip("no T-SQL server: set " + Variable +
			" to a connection string such as sqlserver://USER:PASSWORD@HOST?database=master")
	}
	return dsn
}

// Named reports whether a server is named.
func Named() bool { return os.Getenv(Variable) != "" }

// NewDatabase makes an empty database and answers its connection string; the end of the test drops it. Servers make one
// database after another, so it is tried again for a while.
func NewDatabase(t testing.TB) string {
	t.Helper()
	server := Server(t)
	admin, err := sql.Open("sqlserver", server)
	require.NoError(t, err)
	name := "sqlwriter_test_" + strings.ToLower(rand.Text()[:10])
	run := func(statement string) {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			_, err := admin.ExecContext(ctx, statement)
			if err == nil {
				return
			}
			select {
			case <-ctx.Done():
				require.NoError(t, err, statement)
				return
			case <-tick.C:
			}
		}
	}
	run("CREATE DATABASE " + name)
	t.Cleanup(func() {
		run("DROP DATABASE " + name)
		require.NoError(t, admin.Close())
	})
	return WithDatabase(t, server, name)
}

// WithDatabase is a connection string for another database of the same server.
func WithDatabase(t testing.TB, dsn, name string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	require.NoError(t, err)
	q := u.Query()
	q.Set("database", name)
	u.RawQuery = q.Encode()
	return u.String()
}

// WithAddress is a connection string for the same database at another address, HOST:PORT.
func WithAddress(t testing.TB, dsn, address string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	require.NoError(t, err)
	u.Host = address
	return u.String()
}

// Address is the server's HOST:PORT.
func Address(t testing.TB, dsn string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	require.NoError(t, err)
	port := u.Port()
	if port == "" {
		port = "1433"
	}
	return fmt.Sprintf("%s:%s", u.Hostname(), port)
}

// Version is the server's @@VERSION in one line. See IsReal.
func Version(t testing.TB, db *sql.DB) string {
	t.Helper()
	var version string
	require.NoError(t, db.QueryRow("SELECT @@VERSION").Scan(&version))
	return strings.Join(strings.Fields(version), " ")
}

// IsReal reports whether a version is that of Microsoft's own server.
func IsReal(version string) bool {
	return strings.HasPrefix(version, "Microsoft SQL Server") || strings.HasPrefix(version, "Microsoft SQL Azure")
}

// As is a connection string with another login.
func As(t testing.TB, dsn, user, password string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	require.NoError(t, err)
	u.User = url.UserPassword(user, password)
	return u.String()
}

// WithParameters is a connection string with other parameters; an empty value takes one away.
func WithParameters(t testing.TB, dsn string, values map[string]string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	require.NoError(t, err)
	q := u.Query()
	for name := range q {
		for other := range values {
			if strings.EqualFold(name, other) {
				q.Del(name)
			}
		}
	}
	for name, value := range values {
		if value != "" {
			q.Set(name, value)
		}
	}
	u.RawQuery = q.Encode()
	return u.String()
}
