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
		"sqlserver://user:pass@host:1433/instance?database=db&encrypt=disable",
		"sqlserver://host?database=db&user+id=u&password=p",
		"sqlserver://host?database=db&fedauth=ActiveDirectoryDefault",
		"sqlserver://host?Database=db&fedauth=ActiveDirectoryManagedIdentity",
		"sqlserver://host?database=db&fedauth=ActiveDirectoryManagedIdentity&user+id=6a1e2c3d-0000-0000-0000-000000000000",
	} {
		require.NoError(t, sqlserver.CheckDSN(good), good)
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
		err := sqlserver.CheckDSN(bad)
		require.ErrorContains(t, err, found, bad)
		require.Equal(t, fault.Infrastructure, fault.KindOf(err))
		require.Equal(t, "settings", fault.CodeOf(err))
		require.NotContains(t, err.Error(), "s3cret", "no part of a connection string is repeated")
	}
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
