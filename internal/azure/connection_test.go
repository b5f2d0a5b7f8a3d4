package azure_test

import (
	"errors"
	"net"
	"net/url"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/azure"
	"sqlwriter/internal/fault"
)

const secret = "bm9ib2R5IG1heSByZWFkIGl0IQ=="

func settings() azure.Settings {
	return azure.Settings{
		Connection: "X_CONNECTION", Address: "X_CONNECTION__address", ClientID: "X_CONNECTION__clientId",
		ConnectionForm: "Key=...;", AddressForm: "https://NAME.x/",
	}
}

func TestPartsOfAConnectionString(t *testing.T) {
	for text, want := range map[string]azure.Parts{
		"Endpoint=https://x/;Key=" + secret: {"endpoint": "https://x/", "key": secret},
		" KEY = " + secret + " ;; Other=1;": {"key": secret, "other": "1"},
		"Key=old;key=" + secret:             {"key": secret},
		"Emulator=True":                     {"emulator": "True"},
	} {
		parts, err := settings().Parse(text)
		require.NoError(t, err)
		for name, value := range want {
			require.Equal(t, value, parts[name], text)
		}
		require.Equal(t, want["emulator"] != "", parts.True("emulator"))
	}
	_, err := settings().Parse("Endpoint=https://x/;" + strings.TrimRight(secret, "="))
	require.ErrorContains(t, err, `X_CONNECTION: a part without "=": want Key=...;`)
	require.NotContains(t, err.Error(), secret[:8])
}

func TestOneOfTwoSettings(t *testing.T) {
	require.NoError(t, settings().Choose("Key=x", ""))
	require.NoError(t, settings().Choose("", "https://x/"))
	require.EqualError(t, settings().Choose("a", "b"),
		"X_CONNECTION and X_CONNECTION__address are both set: want one of them")
	require.EqualError(t, settings().Choose("", ""),
		"X_CONNECTION is not set, nor is X_CONNECTION__address: want one of them")
}

// What is not encrypted or not verified is for this machine and for emulators, and no error repeats an address: it may
// have a key.
func TestWhichEndpointsMayBeUsed(t *testing.T) {
	for _, host := range []string{"localhost", "LOCALHOST", "127.0.0.1", "127.9.9.9", "[::1]", "[::1]:8081"} {
		require.NoError(t,
			settings().CheckEndpoint(azure.Endpoint{Address: "http://" + host + "/", Unsafe: "Unverified=true"}), host)
	}
	for _, e := range []azure.Endpoint{
		{Address: "https://name.x"},
		{Address: "HTTPS://name.x:443/"},
		{Address: "http://emulator:1/", Emulator: true, Unsafe: "Unverified=true"},
	} {
		require.NoError(t, settings().CheckEndpoint(e), "%+v", e)
	}
	for says, endpoints := range map[string][]azure.Endpoint{
		"not an address": {
			{},
			{Address: "name.x"},
			{Address: "ftp://x/"},
			{Address: "https:///"},
			{Address: "https://x:" + secret + "%zz/"},
			{Address: "sb://x/"},
		},
		"more than the address": {
			{Address: "https://x/" + secret},
			{Address: "https://x/?sig=" + secret},
			{Address: "https://u:" + secret + "@x/"},
			{Address: "https://x/#" + secret},
		},
		"http:// is for an emulator": {
			{Address: "http://x/"},
			{Address: "http://localhost.example.com/"},
			{Address: "http://128.0.0.1/"},
			{Address: "http://0.0.0.0/"},
		},
		"Unverified=true is for an": {
			{Address: "https://x/", Unsafe: "Unverified=true"},
			{Address: "https://localhost.x/", Unsafe: "Unverified=true"},
		},
	} {
		for _, e := range endpoints {
			err := settings().CheckEndpoint(e)
			require.ErrorContains(t, err, says, "%+v", e)
			require.ErrorContains(t, err, "X_CONNECTION: ")
			require.NotContains(t, err.Error(), secret[:8])
		}
	}
	require.NoError(t, settings().CheckAddress("https://name.x/"))
	for _, address := range []string{"http://127.0.0.1/", "HTTP://localhost/"} {
		require.ErrorContains(t, settings().CheckAddress(address),
			"X_CONNECTION__address: an identity's token is never sent over http://")
	}
	inPath := settings()
	inPath.AccountInPath = true
	require.NoError(t, inPath.CheckEndpoint(azure.Endpoint{Address: "https://x/account"}))
	require.ErrorContains(t, inPath.CheckAddress("https://x/a/"+secret), "more than the address")
	other := settings()
	other.AddressForm = "sb://NAME.x/"
	require.NoError(t, other.CheckEndpoint(azure.Endpoint{Address: "sb://x:5671"}))
	for _, address := range []string{"http://localhost/", "https://x/"} {
		require.ErrorContains(t, other.CheckEndpoint(azure.Endpoint{Address: address}), "not an address", address)
	}
}

func TestAnIdentityNeedsNoKey(t *testing.T) {
	for _, id := range []string{"", "11111111-2222-3333-4444-555555555555"} {
		cred, err := settings().Credential(id)
		require.NoError(t, err)
		require.NotNil(t, cred)
	}
}

// The address of a request may have a signature. Neither the error nor a cause of it shows the address.
func TestALostCallShowsNoAddress(t *testing.T) {
	service := azure.Service{Applied: "it may have been stored"}
	native := &url.Error{
		Op: "Put", URL: "https://x/?sig=" + secret,
		Err: &url.Error{
			Op: "Put", URL: "https://x/?sig=" + secret, Err: &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED},
		},
	}
	err := service.Translate("x: put", "", native)
	require.Equal(t, []string{"infrastructure", "refused"}, []string{string(fault.KindOf(err)), fault.CodeOf(err)})
	for ; err != nil; err = errors.Unwrap(err) {
		require.NotContains(t, err.Error(), secret)
	}
	err = service.Translate("x: put", "", errors.New("anything"))
	require.Equal(t, "unknown", fault.CodeOf(err))
	require.ErrorContains(t, err, "; it may have been stored")
}
