package sqlserver_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/store/sqlserver"
)

func TestConnectionStrings(t *testing.T) {
	for _, good := range []string{
		"sqlserver://user:pass@host?database=db",
		"sqlserver://user:pass@host:1433/instance?database=db&encrypt=strict",
		"sqlserver://host?database=db&user+id=u&password=p",
		"sqlserver://host?database=db&fedauth=ActiveDirectoryDefault",
		"sqlserver://host?Database=db&fedauth=ActiveDirectoryManagedIdentity",
		"sqlserver://host?database=db&fedauth=ActiveDirectoryManagedIdentity&user+id=6a1e2c3d-0000-0000-0000-000000000000",
	} {
		require.NoError(t, sqlserver.CheckDSN(good, false), good)
	}
	for bad, found := range map[string]string{
		"":                                                  "cannot be read",
		"sqlserver:host":                                    "cannot be read",
		"mssql://u:s3cret@h?database=d":                     "cannot be read",
		"sqlserver://u:s3cret@h:port?database=d":            "cannot be read",
		"sqlserver://u:s3cret%zz@h?database=d":              "cannot be read",
		"sqlserver://u:s3cret@?database=d":                  "no host",
		"sqlserver://u:s3cret@h":                            "no database",
		"sqlserver://h?database=d":                          "neither a user nor fedauth",
		"sqlserver://s3cret@h?database=d":                   "without a password",
		"sqlserver://u:s3cret@h?database=d&database=e":      "twice",
		"sqlserver://u:s3cret@h?database=d&Database=e":      "twice",
		"sqlserver://u:s3cret@h?database=d&encrypt=perhaps": "refuses",
		"sqlserver://h?database=d&fedauth=s3cret":           "refuses",
		"sqlserver://u:s3cret@h?database=d;s3cret":          "cannot be read",
	} {
		err := sqlserver.CheckDSN(bad, false)
		require.ErrorContains(t, err, found, bad)
		require.Equal(t, fault.Infrastructure, fault.KindOf(err))
		require.Equal(t, "settings", fault.CodeOf(err))
		require.NotContains(t, err.Error(), "s3cret", "no part of a connection string is repeated")
	}
}

// A password and rows go to another machine encrypted, and to the right one. What nobody checks is taken where a
// setting says so, and where nobody is in between.
func TestAnotherMachinesConnectionIsEncryptedAndChecked(t *testing.T) {
	const login = "sqlserver://u:s3cret@"
	for query, found := range map[string]string{
		"encrypt=disable": "not encrypted", "encrypt=false": "not encrypted", "Encrypt=Optional": "not encrypted",
		"encrypt=no": "not encrypted", "encrypt=0": "not encrypted",
		"TrustServerCertificate=true":           "SQL_CERTIFICATE=any",
		"encrypt=true&trustServerCertificate=1": "SQL_CERTIFICATE=any",
	} {
		for _, host := range []string{
			"db.example", "192.168.1.7:1433", "db/instance", "localhost.evil.example", "127.0.0.1.nip.io",
		} {
			err := sqlserver.CheckDSN(login+host+"?database=d&"+query, false)
			require.ErrorContains(t, err, found, "%s %s", host, query)
			require.Equal(t, "settings", fault.CodeOf(err))
			require.NotContains(t, err.Error(), "s3cret")
			_, err = sqlserver.New(login+host+"?database=d&"+query, sqlserver.Options{})
			require.ErrorContains(t, err, found)
			err = sqlserver.CheckDSN(login+host+"?database=d&"+query, true)
			if found == "not encrypted" {
				require.ErrorContains(t, err, found, "nobody needs that: every server can encrypt")
			} else {
				require.NoError(t, err)
			}
		}
		for _, host := range []string{"127.0.0.1:1433", "localhost", "[::1]:1433", "LOCALHOST/instance"} {
			require.NoError(t, sqlserver.CheckDSN(login+host+"?database=d&"+query, false), "%s %s", host, query)
		}
	}
	require.ErrorContains(t,
		sqlserver.CheckDSN(login+"localhost?database=d&encrypt=disable&failoverpartner=db.example", false), "not encrypted")
	require.NoError(t, sqlserver.CheckDSN(login+"db?database=d&encrypt=strict&TrustServerCertificate=true", false),
		"strict checks it all the same")
}

// The driver's own defaults are encrypt=false, any certificate, and repeated statements (docs/facts.md F80).
func TestSafeDefaults(t *testing.T) {
	get := func(dsn string) map[string]string {
		p, err := sqlserver.Parameters(dsn)
		require.NoError(t, err)
		return p
	}
	p := get("sqlserver://user:pass@host?database=db")
	require.Equal(t, "true", p["encrypt"])
	require.Equal(t, "false", p["trustservercertificate"])
	require.Equal(t, "true", p["disableretry"])
	require.Equal(t, "sqlwriter", p["app name"])
	require.Equal(t, "30", p["dial timeout"])
	p = get(
		"sqlserver://user:pass@host?database=db&Encrypt=strict&App+Name=mine&disableRetry=false&TrustServerCertificate=true")
	require.Equal(t, "strict", p["encrypt"])
	require.Equal(t, "mine", p["app name"])
	require.Equal(t, "true", p["trustservercertificate"], "an explicit setting is used")
	require.Equal(t, "true", p["disableretry"], "but a write is never repeated behind our back")
}
