package sqlserver

import (
	"net"
	"net/url"
	"strings"

	mssql "github.com/microsoft/go-mssqldb"
	"github.com/microsoft/go-mssqldb/azuread"
	"github.com/microsoft/go-mssqldb/msdsn"

	"sqlwriter/internal/fault"
)

// Scheme begins the connection string of this engine: "sqlserver://USER:PASSWORD@HOST:PORT?database=NAME".
const Scheme = "sqlserver:"

// codeSettings is the code of an error that a change of a setting fixes.
const codeSettings = "settings"

// dsnForm describes a connection string in messages.
const dsnForm = "sqlserver://HOST?database=NAME with user and password, or with &fedauth=ActiveDirectoryDefault, " +
	"ActiveDirectoryManagedIdentity (and &user id=CLIENT_ID for a user-assigned one)"

// CheckDSN checks a connection string without connecting. Errors by kind: infrastructure, code "settings". The reason
// names what was expected and found, and never contains a value. anyCertificate is that of Options.
func CheckDSN(dsn string, anyCertificate bool) error {
	_, err := connector(dsn, anyCertificate)
	return err
}

// connector makes connections with safe defaults. The driver's own defaults send everything unencrypted, trust any
// certificate, and repeat statements that may have run (docs/facts.md F80). Repeating is off in any case, because the
// caller decides whether a write is sent again. A connection to another machine must be encrypted and checked.
func connector(dsn string, anyCertificate bool) (boundedConnector, error) {
	safe, identity, err := withDefaults(dsn)
	if err != nil {
		return boundedConnector{}, err
	}
	config, err := msdsn.Parse(safe)
	if err != nil {
		return boundedConnector{}, badDSN("a parameter that the driver refuses")
	}
	if err := private(config, anyCertificate); err != nil {
		return boundedConnector{}, err
	}
	var c *mssql.Connector
	if identity {
		c, err = azuread.NewConnector(safe)
	} else {
		c, err = mssql.NewConnector(safe)
	}
	if err != nil {
		return boundedConnector{}, badDSN("a parameter that the driver refuses")
	}
	return newBoundedConnector(c, config.KeepAlive), nil
}

// private refuses a connection that others on the way to another machine can read, or take for themselves.
func private(c msdsn.Config, anyCertificate bool) error {
	switch {
	case isLoopback(c.Host) && (c.FailOverPartner == "" || isLoopback(c.FailOverPartner)):
		return nil
	case c.Encryption != msdsn.EncryptionRequired && c.Encryption != msdsn.EncryptionStrict:
		return badDSN("a server on another machine and a connection that is not encrypted")
	case c.TrustServerCertificate && !anyCertificate:
		return badDSN("TrustServerCertificate for a server on another machine: name a certificate of its own by " +
			"servercertificate=FILE, or its authority by certificate=FILE; in a test network set SQL_CERTIFICATE=any")
	}
	return nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || (ip != nil && ip.IsLoopback())
}

// withDefaults returns the connection string for the driver, and whether it names an identity.
func withDefaults(dsn string) (safe string, identity bool, err error) {
	u, err := url.Parse(dsn)
	if err != nil || !strings.HasPrefix(dsn, Scheme+"//") {
		return "", false, badDSN("an address that cannot be read") // the parser's error contains the password
	}
	q, err := parameters(u)
	if err != nil {
		return "", false, err
	}
	for name, value := range map[string]string{
		msdsn.Encrypt: "true", msdsn.TrustServerCertificate: "false", msdsn.AppName: "sqlwriter",
		msdsn.PacketSize: "16383", msdsn.DialTimeout: "30", // Azure SQL asks for 30 s and more
	} {
		if q.Get(name) == "" {
			q.Set(name, value)
		}
	}
	q.Set(msdsn.DisableRetry, "true")
	u.RawQuery = q.Encode()
	return u.String(), q.Get(fedauth) != "", nil
}

const fedauth = "fedauth"

// parameters reads the query of a connection string. Names become lower case, as in the driver.
func parameters(u *url.URL) (url.Values, error) {
	given, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, badDSN("parameters that cannot be read: write %20 for a blank and %25 for a percent sign")
	}
	q := url.Values{}
	for name, values := range given {
		lower := strings.ToLower(name)
		if len(values) > 1 || q.Has(lower) {
			return nil, badDSN("a parameter that occurs twice")
		}
		q.Set(lower, values[0])
	}
	identity := q.Get(fedauth) != ""
	_, password := u.User.Password()
	switch {
	case u.Fragment != "" || strings.HasSuffix(u.String(), "#"):
		return nil, badDSN("a #, which ends the address: write %23")
	case strings.Contains(u.Host, ","):
		return nil, badDSN("a comma in the host: separate the port by a colon")
	case u.Hostname() == "":
		return nil, badDSN("no host")
	case q.Get(msdsn.Database) == "":
		return nil, badDSN("no database: the login's default would be used, which is seldom the right one")
	case !identity && u.User.Username() == "" && q.Get(msdsn.UserID) == "":
		return nil, badDSN("neither a user nor fedauth")
	case !identity && !password && q.Get(msdsn.Password) == "":
		return nil, badDSN("a user without a password")
	}
	return q, nil
}

func badDSN(found string) error {
	return fault.New(fault.Infrastructure, "sqlserver: open", codeSettings, "expected %s; found %s", dsnForm, found)
}
