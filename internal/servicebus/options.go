package servicebus

import (
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"sqlwriter/internal/fault"
)

// Options say which namespace, and how to get to it: by Connection, or by FullyQualifiedNamespace and an identity.
type Options struct {
	// Connection is the namespace's connection string, which the host's triggers read too (setting SERVICEBUS_CONNECTION):
	// Endpoint=sb://...;SharedAccessKeyName=...;SharedAccessKey=...; or with a SharedAccessSignature. With
	// UseDevelopmentEmulator=true the wire is plain, which is refused unless it is this machine's or the key is the
	// vendor's emulator's.
	Connection string
	// FullyQualifiedNamespace connects with an identity instead: NAME.servicebus.windows.net (setting
	// SERVICEBUS_CONNECTION__fullyQualifiedNamespace). It needs the role Azure Service Bus Data Sender; the triggers need
	// Data Receiver (docs/facts.md F55).
	FullyQualifiedNamespace string
	// ClientID names a user-assigned managed identity and then no other credential is tried, so a wrong id fails in the
	// open. Empty: azidentity's default chain, which is the system-assigned identity in Azure and the developer's own
	// login on a laptop.
	ClientID string
	// Timeouts bound each call; the zero value of a field stands for its default.
	Timeouts Timeouts
	// Now is the clock that a message's delay is added to; nil stands for time.Now.
	Now func() time.Time
}

// Timeouts bound a call of the SDK, repetitions included, on top of the caller's own deadline; the earlier one counts.
type Timeouts struct {
	// Call bounds the opening of a queue and the sending of one batch, each with one rebuilding of the Sender. Default 10 s.
	Call time.Duration
	// Close bounds the closing of a Sender or of the connection; nothing waits for it but Namespace.Close. Default 3 s.
	Close time.Duration
}

// withDefaults fills the fields that are not set.
func (t Timeouts) withDefaults() Timeouts {
	if t.Call <= 0 {
		t.Call = 10 * time.Second
	}
	if t.Close <= 0 {
		t.Close = 3 * time.Second
	}
	return t
}

// Open makes the adapter. It reads no network. All that is wrong with the options is reported in one infrastructure error
// with code "settings", which names settings and never a key.
func Open(o Options) (*Namespace, error) {
	build, err := account(o)
	if err == nil {
		// The SDK looks at its arguments only: a Client dials when it is first used.
		_, err = build()
	}
	if err != nil {
		return nil, fault.Wrap(fault.Infrastructure, "servicebus: open", "settings", "the settings cannot be used", err)
	}
	n := &Namespace{build: build, timeouts: o.Timeouts.withDefaults(), now: o.Now, senders: map[string]*sender{}}
	if n.now == nil {
		n.now = time.Now
	}
	return n, nil
}

// buildFunc makes a client of the namespace that the options name.
type buildFunc func() (*azservicebus.Client, error)

// account checks how the options name a namespace and answers how clients of it are made.
func account(o Options) (buildFunc, error) {
	switch {
	case o.Connection != "" && o.FullyQualifiedNamespace != "":
		return nil, fmt.Errorf("%s and %s are both set: want one of them", settingConnection, settingNamespace)
	case o.Connection != "":
		c, err := parseConnection(o.Connection)
		if err != nil {
			return nil, err
		}
		return func() (*azservicebus.Client, error) {
			client, err := azservicebus.NewClientFromConnectionString(c.text(), clientOptions())
			if err != nil { // its text may repeat a part
				return nil, fmt.Errorf("%s: not accepted by the SDK", settingConnection)
			}
			return client, nil
		}, nil
	case o.FullyQualifiedNamespace != "":
		if err := checkNamespace(o.FullyQualifiedNamespace); err != nil {
			return nil, err
		}
		cred, err := credential(o.ClientID)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", settingClientID, err)
		}
		return func() (*azservicebus.Client, error) {
			return azservicebus.NewClient(o.FullyQualifiedNamespace, cred, clientOptions())
		}, nil
	default:
		return nil, fmt.Errorf("%s is not set, nor is %s: want one of them", settingConnection, settingNamespace)
	}
}

// credential chooses who we are, see Options.ClientID.
func credential(clientID string) (azcore.TokenCredential, error) {
	if clientID != "" {
		return azidentity.NewManagedIdentityCredential(&azidentity.ManagedIdentityCredentialOptions{ID: azidentity.ClientID(clientID)})
	}
	return azidentity.NewDefaultAzureCredential(nil)
}

// clientOptions configure the SDK's repetitions; doc.go says why they are as they are.
func clientOptions() *azservicebus.ClientOptions {
	return &azservicebus.ClientOptions{RetryOptions: azservicebus.RetryOptions{
		MaxRetries: 2, RetryDelay: 200 * time.Millisecond, MaxRetryDelay: time.Second,
	}}
}
