package cosmos

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
)

// secret is a key with "=" signs, which a naive parser loses.
var secret = base64.StdEncoding.EncodeToString([]byte("a key that nobody may ever read"))

func TestConnectionStringsAsTheTriggerAcceptsThem(t *testing.T) {
	require.True(t, strings.HasSuffix(secret, "="), "the key shows the case only with padding")
	const endpoint = "https://name.documents.azure.com:443/"
	for name, c := range map[string]struct {
		text string
		want connection
	}{
		"as the portal gives it": {
			"AccountEndpoint=" + endpoint + ";AccountKey=" + secret + ";", connection{endpoint: endpoint, key: secret},
		},
		"blanks, quotes and empty parts": {
			";; AccountEndpoint = \"" + endpoint + "\" ;; AccountKey = '" + secret + "' ; ",
			connection{endpoint: endpoint, key: secret},
		},
		"further parts": {
			"AccountEndpoint=https://localhost:8081/;AccountKey=" + secret +
				";Database=db;DisableServerCertificateValidation=true;ApplicationName=x;",
			connection{endpoint: "https://localhost:8081/", key: secret, database: "db", unverified: true},
		},
		"validation not disabled": {
			"AccountEndpoint=" + endpoint + ";AccountKey=" + secret + ";DisableServerCertificateValidation=False",
			connection{endpoint: endpoint, key: secret},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseConnection(c.text)
			require.NoError(t, err)
			require.Equal(t, c.want, got)
			_, err = Open(Options{Connection: c.text, Database: "db", Container: "c"})
			require.NoError(t, err)
		})
	}
}

func TestOpenNamesTheSettingAndNeverTheKey(t *testing.T) {
	good := "AccountEndpoint=https://name.documents.azure.com/;AccountKey=" + secret
	for name, c := range map[string]struct {
		options Options
		says    []string
	}{
		"nothing at all": {Options{}, []string{settingConnection, settingEndpoint, settingDatabase, settingContainer}},
		"both ways": {
			Options{Connection: good, AccountEndpoint: "https://x/", Database: "d", Container: "c"},
			[]string{settingConnection, settingEndpoint, "both"},
		},
		"no key": {
			Options{Connection: "AccountEndpoint=https://x/;", Database: "d", Container: "c"},
			[]string{settingConnection, "AccountKey is missing"},
		},
		"no endpoint": {
			Options{Connection: "AccountKey=" + secret, Database: "d", Container: "c"},
			[]string{settingConnection, "AccountEndpoint is missing"},
		},
		"key not base64": {
			Options{Connection: "AccountEndpoint=https://x/;AccountKey=" + secret + "!", Database: "d", Container: "c"},
			[]string{"AccountKey is not base64"},
		},
		"key without its name": {
			Options{
				Connection: "AccountEndpoint=https://x/;" + strings.TrimRight(secret, "="),
				Database:   "d", Container: "c",
			},
			[]string{"without \"=\""},
		},
		"key run into the endpoint": {
			Options{
				Connection: "AccountEndpoint=https://x/AccountKey=" + secret + ";AccountKey=" + secret,
				Database:   "d", Container: "c",
			},
			[]string{settingConnection, "more than the address"},
		},
		"endpoint that is no address": {
			Options{
				Connection: "AccountEndpoint=https://x:" + secret + "%zz/;AccountKey=" + secret,
				Database:   "d", Container: "c",
			},
			[]string{settingConnection, "not an address"},
		},
		"plain http elsewhere": {
			Options{Connection: "AccountEndpoint=http://x/;AccountKey=" + secret, Database: "d", Container: "c"},
			[]string{"http:// is for an emulator"},
		},
		"unverified certificates elsewhere": {
			Options{Connection: good + ";DisableServerCertificateValidation=True", Database: "d", Container: "c"},
			[]string{"DisableServerCertificateValidation=True is for an emulator"},
		},
		"identity over http": {
			Options{AccountEndpoint: "http://localhost:8081/", Database: "d", Container: "c"},
			[]string{settingEndpoint, "http://"},
		},
		"all problems at once": {
			Options{Connection: "AccountEndpoint=https://x/"},
			[]string{"AccountKey is missing", settingDatabase, settingContainer},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Open(c.options)
			require.Equal(t, fault.Infrastructure, fault.KindOf(err))
			require.Equal(t, "settings", fault.CodeOf(err))
			for _, says := range c.says {
				require.Contains(t, err.Error(), says)
			}
			require.NotContains(t, err.Error(), strings.TrimRight(secret, "=")[:12])
		})
	}
}

func TestOpenAcceptsAnEmulatorWhereItIsDeclared(t *testing.T) {
	local := "AccountEndpoint=http://localhost:8081/;AccountKey=" + secret + ";DisableServerCertificateValidation=True"
	_, err := Open(Options{Connection: local, Database: "d", Container: "c"})
	require.NoError(t, err)
	compose := Options{
		Connection: "AccountEndpoint=http://cosmosdb:8081/;AccountKey=" + secret +
			";DisableServerCertificateValidation=True", Database: "d", Container: "c",
	}
	_, err = Open(compose)
	require.Error(t, err)
	compose.Emulator = true
	_, err = Open(compose)
	require.NoError(t, err)
}

func TestOpenWithAnIdentity(t *testing.T) {
	for _, id := range []string{"", "11111111-2222-3333-4444-555555555555"} {
		c, err := Open(
			Options{
				AccountEndpoint: "https://name.documents.azure.com:443/", ClientID: id, Database: "d", Container: "c",
			})
		require.NoError(t, err)
		require.NotNil(t, c)
	}
}

func TestOpenUsesTheDatabaseOfTheConnectionString(t *testing.T) {
	text := "AccountEndpoint=https://localhost/;AccountKey=" + secret + ";Database=fromstring"
	c, err := Open(Options{Connection: text, Container: "c"})
	require.NoError(t, err)
	require.Equal(t, "fromstring", c.options.Database)
	c, err = Open(Options{Connection: text, Database: "fromsetting", Container: "c"})
	require.NoError(t, err)
	require.Equal(t, "fromsetting", c.options.Database, "the setting wins")
}

func TestCertificatesAreVerifiedUnlessDisabled(t *testing.T) {
	f := &fakeAccount{}
	server := httptest.NewUnstartedServer(f)
	server.EnableHTTP2 = true
	server.Config.ErrorLog = quietLog()
	server.StartTLS()
	t.Cleanup(server.Close)
	f.url = server.URL
	f.documents = func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"id":"a"}`)) }

	strict := open(t, server.URL, "")
	_, err := strict.Read(t.Context(), "a")
	require.Equal(t, "tls", fault.CodeOf(err), "%v", err)
	require.Equal(t, fault.Infrastructure, fault.KindOf(err))

	relaxed := open(t, server.URL, "DisableServerCertificateValidation=True")
	_, err = relaxed.Read(t.Context(), "a")
	require.NoError(t, err)
}
