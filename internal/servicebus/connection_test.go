package servicebus

import (
	"encoding/base64"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
)

// secret is a key with "=" signs, which a naive parser loses.
var secret = base64.StdEncoding.EncodeToString([]byte("a key that nobody may ever read"))

func TestConnectionStringsAsTheHostAcceptsThem(t *testing.T) {
	const address = "sb://ns.servicebus.windows.net"
	portal := connection{endpoint: address, keyName: "Root", key: secret}
	for name, c := range map[string]struct {
		text string
		want connection
		// sdk is the text that the SDK gets.
		sdk string
	}{
		"as the portal gives it": {
			"Endpoint=" + address + "/;SharedAccessKeyName=Root;SharedAccessKey=" + secret, portal,
			"Endpoint=" + address + ";SharedAccessKeyName=Root;SharedAccessKey=" + secret,
		},
		"with blanks, in another case and order": {
			" sharedaccesskey = " + secret + " ; ENDPOINT = " + address +
				" ;sharedAccessKeyName=Root;OperationTimeout=00:01:00; ", portal,
			"Endpoint=" + address + ";SharedAccessKeyName=Root;SharedAccessKey=" + secret,
		},
		"a signature": {
			"Endpoint=" + address + ";SharedAccessSignature=SharedAccessSignature sr=ns&sig=a%3D&se=1&skn=k",
			connection{endpoint: address, signature: "SharedAccessSignature sr=ns&sig=a%3D&se=1&skn=k"},
			"Endpoint=" + address + ";SharedAccessSignature=SharedAccessSignature sr=ns&sig=a%3D&se=1&skn=k",
		},
		"the emulator": {
			"Endpoint=sb://localhost;SharedAccessKeyName=Root;SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=True;",
			connection{endpoint: "sb://localhost", keyName: "Root", key: emulatorKey, emulator: true},
			"Endpoint=sb://localhost;SharedAccessKeyName=Root;SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true",
		},
		"the emulator under another name": {
			"Endpoint=sb://servicebus-emulator:5673;SharedAccessKeyName=Root;SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true",
			connection{endpoint: "sb://servicebus-emulator:5673", keyName: "Root", key: emulatorKey, emulator: true},
			"Endpoint=sb://servicebus-emulator:5673;SharedAccessKeyName=Root;SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true",
		},
		"another key on this machine": {
			"Endpoint=sb://127.0.0.1:5672;SharedAccessKeyName=Root;SharedAccessKey=" + secret +
				";UseDevelopmentEmulator=true",
			connection{endpoint: "sb://127.0.0.1:5672", keyName: "Root", key: secret, emulator: true},
			"Endpoint=sb://127.0.0.1:5672;SharedAccessKeyName=Root;SharedAccessKey=" + secret +
				";UseDevelopmentEmulator=true",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseConnection(c.text)
			require.NoError(t, err)
			require.Equal(t, c.want, got)
			require.Equal(t, c.sdk, got.text())
			n, err := Open(Options{Connection: c.text})
			require.NoError(t, err)
			n.Close()
		})
	}
}

func TestOpenNamesTheSettingAndNeverTheKey(t *testing.T) {
	good := "Endpoint=sb://ns.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey=" + secret
	for name, c := range map[string]struct {
		options Options
		says    []string
	}{
		"nothing at all": {Options{}, []string{settingConnection, settingNamespace}},
		"both ways": {
			Options{Connection: good, FullyQualifiedNamespace: "ns.servicebus.windows.net"},
			[]string{settingNamespace, "both"},
		},
		"no key": {
			Options{Connection: "Endpoint=sb://ns/;SharedAccessKeyName=Root"},
			[]string{"neither SharedAccessKeyName with SharedAccessKey"},
		},
		"no key name": {
			Options{Connection: "Endpoint=sb://ns/;SharedAccessKey=" + secret},
			[]string{"neither SharedAccessKeyName with SharedAccessKey"},
		},
		"no endpoint": {
			Options{Connection: "SharedAccessKeyName=Root;SharedAccessKey=" + secret},
			[]string{"the endpoint is not an address"},
		},
		"another scheme": {
			Options{Connection: "Endpoint=https://ns/;SharedAccessKeyName=Root;SharedAccessKey=" + secret},
			[]string{"the endpoint is not an address"},
		},
		"no address": {
			Options{Connection: "Endpoint=" + secret + "%;SharedAccessKeyName=Root;SharedAccessKey=" + secret},
			[]string{"the endpoint is not an address"},
		},
		"key in the endpoint": {
			Options{Connection: "Endpoint=sb://ns/" + secret + ";SharedAccessKeyName=R;SharedAccessKey=x"},
			[]string{"more than the address"},
		},
		"key without its name": {Options{Connection: "Endpoint=sb://ns/;a key that nobody"}, []string{`without "="`}},
		"of one queue": {
			Options{Connection: good + ";EntityPath=" + secret}, []string{"EntityPath", "the namespace's"},
		},
		"plain on the wire": {Options{Connection: good + ";UseDevelopmentEmulator=true"}, []string{"not encrypted"}},
		"an address for a name": {
			Options{FullyQualifiedNamespace: "sb://" + secret},
			[]string{settingNamespace, "want NAME.servicebus.windows.net"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Open(c.options)
			require.Equal(t, fault.Infrastructure, fault.KindOf(err))
			require.Equal(t, "settings", fault.CodeOf(err))
			for _, text := range c.says {
				require.Contains(t, err.Error(), text)
			}
			requireNoSecret(t, err, secret, "a key that nobody")
		})
	}
}

func TestAnIdentityNeedsNoKey(t *testing.T) {
	for _, id := range []string{"", "00000000-0000-0000-0000-000000000000"} {
		n, err := Open(Options{FullyQualifiedNamespace: "ns.servicebus.windows.net", ClientID: id})
		require.NoError(t, err)
		n.Close()
	}
}

func TestTimeoutsHaveDefaults(t *testing.T) {
	n, err := Open(Options{FullyQualifiedNamespace: "ns.servicebus.windows.net", Timeouts: Timeouts{Call: time.Second}})
	require.NoError(t, err)
	require.Equal(t, Timeouts{Call: time.Second, Close: 3 * time.Second}, n.timeouts)
	require.Equal(t, Timeouts{Call: 10 * time.Second, Close: 3 * time.Second}, Timeouts{}.withDefaults())
	n.Close()
	require.GreaterOrEqual(t, clientOptions().RetryOptions.MaxRetries, int32(1),
		"a Client without retries never recovers")
}

// requireNoSecret checks every error of a chain, because a log may print each cause.
func requireNoSecret(t *testing.T, err error, secrets ...string) {
	t.Helper()
	for ; err != nil; err = errors.Unwrap(err) {
		text := fmt.Sprintf("%v %+v", err, err)
		for _, s := range secrets {
			require.NotContains(t, text, s)
		}
	}
}
