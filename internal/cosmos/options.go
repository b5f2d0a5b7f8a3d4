package cosmos

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"sqlwriter/internal/fault"
)

// Options configure a Container. Set Connection, or AccountEndpoint for an identity.
type Options struct {
	// Connection is the account's connection string (setting COSMOS_CONNECTION), which the .NET trigger reads too:
	// AccountEndpoint=...;AccountKey=...;. Database= counts when Database is empty; further parts are ignored.
	// DisableServerCertificateValidation=True is accepted for localhost, 127.0.0.0/8 and ::1, and for other hosts only
	// with Emulator. Open refuses it elsewhere.
	Connection string
	// AccountEndpoint connects with an identity instead of a key (setting COSMOS_CONNECTION__accountEndpoint).
	AccountEndpoint string
	// ClientID names a user-assigned managed identity (azure.Settings.Credential).
	ClientID            string
	Database, Container string
	// KeyIsID is for containers of the app itself: a partition key other than /id is refused.
	KeyIsID bool
	// Emulator allows plain http and unverified certificates, whatever the host's name.
	Emulator bool
	// Timeouts bound each call; a zero field means its default.
	Timeouts Timeouts
	// Concurrency is the number of calls in progress at the same time. Over http/1 as many connections stay open.
	// Default
	// 64.
	Concurrency int
}

// Timeouts bound a call with its waits and retries. The caller's own deadline counts when it is earlier.
type Timeouts struct {
	// Read bounds the read of one document, with the look for its partition key. Default 10 s.
	Read time.Duration
	// Record bounds one patch, with the look for a key that was another one. Default 10 s, which has room for three
	// waits of 2 s of a throttled account.
	Record time.Duration
	// Page bounds each page of a query. ReadMany and Query read several pages. Default 20 s.
	Page time.Duration
	// Submit bounds the write of one whole document, with the look for another one that has its id. Default 15 s.
	Submit time.Duration
	// Control bounds one read or write of the control document. Default 5 s: documents wait meanwhile, and the breaker
	// can work without it.
	Control time.Duration
	// Ping bounds the read of the container's metadata. Default 5 s, which has room for the SDK's three retries of 1 s
	// when nothing listens.
	Ping time.Duration
}

// withDefaults sets the fields that are zero.
func (t Timeouts) withDefaults() Timeouts {
	return Timeouts{
		Read: cmp.Or(t.Read, 10*time.Second), Record: cmp.Or(t.Record, 10*time.Second),
		Page:   cmp.Or(t.Page, 20*time.Second),
		Submit: cmp.Or(t.Submit, 15*time.Second), Control: cmp.Or(t.Control, 5*time.Second),
		Ping: cmp.Or(t.Ping, 5*time.Second),
	}
}

// Open makes a Container without a request; Ping finds out whether the account answers. Errors by kind: infrastructure,
// code "settings", with every problem of the options. The text names settings and never a key.
func Open(o Options) (*Container, error) {
	o.Timeouts = o.Timeouts.withDefaults()
	if o.Concurrency <= 0 {
		o.Concurrency = 64
	}
	build, unverified, err := account(&o)
	var problems []error
	if err != nil {
		problems = append(problems, err)
	}
	if o.Database == "" {
		problems = append(problems, fmt.Errorf("%s is not set", settingDatabase))
	}
	if o.Container == "" {
		problems = append(problems, fmt.Errorf("%s is not set", settingContainer))
	}
	if len(problems) > 0 {
		return nil,
			fault.Wrap(fault.Infrastructure, "cosmos: open", "settings", "the settings cannot be used",
				errors.Join(problems...))
	}
	return &Container{options: o, build: build, transport: newTransport(o.Concurrency, unverified)}, nil
}

// buildFunc makes a client.
type buildFunc func(*azcosmos.ClientOptions) (*azcosmos.Client, error)

// account validates the options. It gives the function that makes clients, and whether certificates go unverified. It
// sets an empty Database from the connection string.
func account(o *Options) (build buildFunc, unverified bool, err error) {
	if err := settings().Choose(o.Connection, o.AccountEndpoint); err != nil {
		return nil, false, err
	}
	if o.Connection != "" {
		c, err := parseConnection(o.Connection)
		if err == nil {
			err = settings().CheckEndpoint(c.endpointOf(o.Emulator))
		}
		o.Database = cmp.Or(o.Database, c.database)
		return func(co *azcosmos.ClientOptions) (*azcosmos.Client, error) {
			cred, err := azcosmos.NewKeyCredential(c.key)
			if err != nil {
				return nil, err
			}
			return azcosmos.NewClientWithKey(c.endpoint, cred, co)
		}, c.unverified, err
	}
	if err := settings().CheckAddress(o.AccountEndpoint); err != nil {
		return nil, false, err
	}
	cred, err := settings().Credential(o.ClientID)
	endpoint := o.AccountEndpoint
	return func(co *azcosmos.ClientOptions) (*azcosmos.Client, error) {
		return azcosmos.NewClient(endpoint, cred, co)
	}, false, err
}

// clientOptions configure the SDK's retries; doc.go has the whole table.
func clientOptions(transport *http.Client) *azcosmos.ClientOptions {
	return &azcosmos.ClientOptions{
		ClientOptions: azcore.ClientOptions{
			Transport: transport,
			Retry: policy.RetryOptions{
				MaxRetries: 3,
				// This applies where a 429 names no wait: 0.2, 0.6, 1.4 s.
				RetryDelay: 200 * time.Millisecond,
				// A caller waits longer ones itself.
				MaxRetryDelay: 2 * time.Second,
				ShouldRetry:   worthRetrying,
			},
		},
		// The etag of the new state is in a header, so the document of up to 2 MB need not come back.
		EnableContentResponseOnWrite: false,
	}
}
