package servicebus

import (
	"cmp"
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"sqlwriter/internal/fault"
)

// Options configure a Namespace. Set Connection, or FullyQualifiedNamespace for an identity.
type Options struct {
	// Connection is the namespace's connection string (setting SERVICEBUS_CONNECTION):
	// Endpoint=sb://...;SharedAccessKeyName=...;SharedAccessKey=...; or with a SharedAccessSignature. The host's
	// triggers read the same setting. With UseDevelopmentEmulator=true the connection is not encrypted; Open refuses
	// that except for this machine or with the key of the vendor's emulator.
	Connection string
	// FullyQualifiedNamespace is NAME.servicebus.windows.net, to connect with an identity (setting
	// SERVICEBUS_CONNECTION__fullyQualifiedNamespace). The identity needs the role Azure Service Bus Data Sender; the
	// triggers need Data Receiver (docs/facts.md F55).
	FullyQualifiedNamespace string
	// ClientID names a user-assigned managed identity (azure.Settings.Credential).
	ClientID string
	// Timeouts bound each call; a zero field means its default.
	Timeouts Timeouts
	// Now is the clock that a message's delay is added to; nil means time.Now.
	Now func() time.Time
}

// Timeouts bound a call of the SDK with its retries. The caller's own deadline counts when it is earlier.
type Timeouts struct {
	// Call bounds the opening of a queue and the sending of one batch, each with one replaced Sender. Default 10 s.
	Call time.Duration
	// Close bounds the closing of a Sender or Client. Only Namespace.Close waits for it. Default 3 s.
	Close time.Duration
}

// withDefaults sets the fields that are zero.
func (t Timeouts) withDefaults() Timeouts {
	return Timeouts{Call: cmp.Or(t.Call, 10*time.Second), Close: cmp.Or(t.Close, 3*time.Second)}
}

// Open makes a Namespace without a request. Errors by kind: infrastructure, code "settings", with every problem of the
// options. The text names settings and never a key.
func Open(o Options) (*Namespace, error) {
	build, err := account(o)
	if err == nil {
		// The SDK only validates its arguments here: a Client dials on first use.
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

// buildFunc makes a Client.
type buildFunc func() (*azservicebus.Client, error)

// account validates the options and gives the function that makes Clients.
func account(o Options) (buildFunc, error) {
	if err := settings().Choose(o.Connection, o.FullyQualifiedNamespace); err != nil {
		return nil, err
	}
	if o.Connection != "" {
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
	}
	if err := checkNamespace(o.FullyQualifiedNamespace); err != nil {
		return nil, err
	}
	cred, err := settings().Credential(o.ClientID)
	return func() (*azservicebus.Client, error) {
		return azservicebus.NewClient(o.FullyQualifiedNamespace, cred, clientOptions())
	}, err
}

// clientOptions configure the SDK's retries; doc.go has the reasons.
func clientOptions() *azservicebus.ClientOptions {
	return &azservicebus.ClientOptions{RetryOptions: azservicebus.RetryOptions{
		MaxRetries: 2, RetryDelay: 200 * time.Millisecond, MaxRetryDelay: time.Second,
	}}
}
