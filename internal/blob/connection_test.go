package blob

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
)

// secret is a key with "=" signs, which a naive parser loses.
var secret = base64.StdEncoding.EncodeToString([]byte("a key that nobody may ever read"))

func TestConnectionStringsAsTheHostAcceptsThem(t *testing.T) {
	require.True(t, strings.HasSuffix(secret, "="), "the key shows the case only with padding")
	emulator := connection{endpoint: emulatorEndpoint, name: emulatorName, key: emulatorKey}
	account := connection{endpoint: "https://acct.blob.core.windows.net", name: "acct", key: secret}
	for name, c := range map[string]struct {
		text string
		want connection
		// address is the container's address in the SDK.
		address string
	}{
		"the local default": {
			"UseDevelopmentStorage=true", emulator, "http://127.0.0.1:10000/devstoreaccount1/c-1",
		},
		"with a semicolon and blanks": {
			" usedevelopmentstorage = True ; ", emulator, "http://127.0.0.1:10000/devstoreaccount1/c-1",
		},
		"as the portal gives it": {
			"DefaultEndpointsProtocol=https;AccountName=acct;AccountKey=" + secret + ";EndpointSuffix=core.windows.net",
			account, "https://acct.blob.core.windows.net/c-1",
		},
		"the least": {"AccountName=acct;AccountKey=" + secret, account, "https://acct.blob.core.windows.net/c-1"},
		"names in a case": {
			"ACCOUNTNAME=acct;accountkey=" + secret + ";", account, "https://acct.blob.core.windows.net/c-1",
		},
		"another cloud": {
			"AccountName=acct;AccountKey=" + secret + ";EndpointSuffix=core.usgovcloudapi.net",
			connection{endpoint: "https://acct.blob.core.usgovcloudapi.net", name: "acct", key: secret},
			"https://acct.blob.core.usgovcloudapi.net/c-1",
		},
		"the other services beside it": {
			"BlobEndpoint=https://acct.z1.blob.storage.azure.net/;QueueEndpoint=https://q/;AccountName=acct;AccountKey=" + secret,
			connection{endpoint: "https://acct.z1.blob.storage.azure.net/", name: "acct", key: secret},
			"https://acct.z1.blob.storage.azure.net/c-1",
		},
		"a signature": {
			"BlobEndpoint=https://acct.blob.core.windows.net/;SharedAccessSignature=?sv=2026&sig=a%2Bb%3D",
			connection{endpoint: "https://acct.blob.core.windows.net/", sas: "sv=2026&sig=a%2Bb%3D"},
			"https://acct.blob.core.windows.net/c-1?sv=2026&sig=a%2Bb%3D",
		},
		"an emulator under another name": {
			"BlobEndpoint=http://azurite:10000/devstoreaccount1;AccountName=devstoreaccount1;AccountKey=" + emulatorKey,
			connection{endpoint: "http://azurite:10000/devstoreaccount1", name: emulatorName, key: emulatorKey},
			"http://azurite:10000/devstoreaccount1/c-1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseConnection(c.text)
			require.NoError(t, err)
			require.Equal(t, c.want, got)
			s, err := Open(Options{Connection: c.text, Container: "c-1", Prefix: "web"})
			require.NoError(t, err)
			require.Equal(t, c.address, s.client.URL())
		})
	}
}

func TestOpenNamesTheSettingAndNeverTheKey(t *testing.T) {
	good := "AccountName=acct;AccountKey=" + secret
	for name, c := range map[string]struct {
		options Options
		says    []string
	}{
		"nothing at all": {
			Options{},
			[]string{"BLOB_CONNECTION", "AzureWebJobsStorage", settingServiceURI, "the container", settingPrefix},
		},
		"both ways": {
			Options{Connection: good, ServiceURI: "https://x/"}, []string{settingServiceURI, "both"},
		},
		"no key": {
			Options{Connection: "AccountName=acct"}, []string{"neither AccountKey nor SharedAccessSignature"},
		},
		"no account": {
			Options{Connection: "AccountKey=" + secret},
			[]string{"neither AccountName nor BlobEndpoint", "AccountKey without AccountName"},
		},
		"key not base64": {Options{Connection: good + "!"}, []string{"AccountKey is not base64"}},
		"key without its name": {
			Options{Connection: "AccountName=acct;" + strings.TrimRight(secret, "=")}, []string{`without "="`},
		},
		"key in the endpoint": {
			Options{Connection: good + ";BlobEndpoint=https://acct/x/" + secret}, []string{"more than the address"},
		},
		"signature in the endpoint": {
			Options{Connection: "BlobEndpoint=https://acct/?sig=" + secret + ";SharedAccessSignature=sig=" + secret},
			[]string{"more than the address"},
		},
		"endpoint that is no address": {
			Options{Connection: good + ";BlobEndpoint=https://x:" + secret + "%zz/"}, []string{"not an address"},
		},
		"name that is no host": {
			Options{Connection: "AccountName=a b\x7f;AccountKey=" + secret}, []string{"not an address"},
		},
		"plain http elsewhere": {
			Options{Connection: good + ";DefaultEndpointsProtocol=http"}, []string{"http:// is for an emulator"},
		},
		"a proxy for the emulator": {
			Options{Connection: "UseDevelopmentStorage=true;DevelopmentStorageProxyUri=http://x"},
			[]string{"DevelopmentStorageProxyUri"},
		},
		"identity over http": {
			Options{ServiceURI: "http://127.0.0.1:10000/x"}, []string{settingServiceURI, "never sent over http"},
		},
		"identity with a signature": {
			Options{ServiceURI: "https://acct.blob.core.windows.net/?sig=" + secret},
			[]string{settingServiceURI, "more than the address"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Open(c.options)
			require.Equal(t, fault.Infrastructure, fault.KindOf(err))
			require.Equal(t, "settings", fault.CodeOf(err))
			for _, says := range append(c.says, "the container", settingPrefix) { // all problems at once
				require.Contains(t, err.Error(), says)
			}
			requireNoSecret(t, err, strings.TrimRight(secret, "=")[:12])
		})
	}
}

func TestOpenWithAnIdentity(t *testing.T) {
	for _, id := range []string{"", "11111111-2222-3333-4444-555555555555"} {
		s, err := Open(
			Options{
				ServiceURI: "https://acct.blob.core.windows.net", ClientID: id, Container: "sqlwriter", Prefix: "web",
			})
		require.NoError(t, err)
		require.Equal(t, "https://acct.blob.core.windows.net/sqlwriter", s.client.URL())
	}
}

func TestNamesOfContainers(t *testing.T) {
	for _, name := range []string{"abc", "sqlwriter", "a-b-c", "1a2", strings.Repeat("a", 63)} {
		require.True(t, validContainer(name), name)
	}
	for _, name := range []string{
		"", "ab", "Abc", "-abc", "abc-", "a--b", "a_b", "a.b", "abc\n", "a/b", "$root", strings.Repeat("a", 64),
	} {
		require.False(t, validContainer(name), name)
	}
}

func TestPrefixLeavesRoomForEveryName(t *testing.T) {
	open := func(prefix string) error {
		_, err := Open(Options{Connection: "UseDevelopmentStorage=true", Container: "sqlwriter", Prefix: prefix})
		return err
	}
	require.NoError(t, open(strings.Repeat("a", 63)))
	for _, prefix := range []string{"", strings.Repeat("a", 64), "a/b", "a b", "a."} {
		require.ErrorContains(t, open(prefix), settingPrefix)
	}
}
