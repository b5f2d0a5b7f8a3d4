package cosmos

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"sqlwriter/internal/fault"
)

// Options say which container, and how to get to it: by Connection, or by AccountEndpoint and an identity.
type Options struct {
	// Connection is the connection string that the .NET trigger reads too (setting COSMOS_CONNECTION):
	// AccountEndpoint=...;AccountKey=...; with further parts ignored. Database= is used when Database is empty.
	// DisableServerCertificateValidation=True is accepted for localhost, 127.0.0.0/8 and ::1, and for other hosts only
	// with Emulator; elsewhere Open refuses it.
	Connection string
	// AccountEndpoint connects with an identity instead of a key (setting COSMOS_CONNECTION__accountEndpoint).
	AccountEndpoint string
	// ClientID names a user-assigned managed identity and then no other credential is tried, so a wrong id fails in the
	// open. Empty: azidentity's default chain, which is the system-assigned identity in Azure and the developer's own
	// login on a laptop.
	ClientID string
	// Database and Container are the names to use.
	Database, Container string
	// Emulator says that the host, whatever its name, is an emulator: plain http and unverified certificates are
	// allowed.
	Emulator bool
	// Timeouts bound each call; the zero value of a field stands for its default.
	Timeouts Timeouts
	// Concurrency is how many calls are made at the same time; as many connections are kept open over http/1.
	// Default 64.
	Concurrency int
}

// Timeouts bound a call, waits and repetitions included, on top of the caller's own deadline; the earlier one counts.
type Timeouts struct {
	// Read bounds one point read. Default 10 s.
	Read time.Duration
	// Record bounds one patch. Default 10 s: three waits of 2 s for a throttled account fit in.
	Record time.Duration
	// Page bounds each page of a query; ReadMany, Query, Window and Waiting have as many as they need, and Page gives one.
	// Default 20 s.
	Page time.Duration
	// Submit bounds the writing of one whole document. Default 15 s.
	Submit time.Duration
	// Control bounds one reading or writing of the control document. Default 5 s: the breaker asks for it while documents
	// wait, and does without it when it must.
	Control time.Duration
	// Ping bounds the reading of the container's metadata. Default 5 s: more than the three retries, 1 s apart, that
	// the SDK makes when nothing listens.
	Ping time.Duration
	// Setup bounds the making of one database or container. Default 30 s.
	Setup time.Duration
}

// withDefaults fills the fields that are not set.
func (t Timeouts) withDefaults() Timeouts {
	for _, f := range []struct {
		field *time.Duration
		value time.Duration
	}{
		{&t.Read, 10 * time.Second},
		{&t.Record, 10 * time.Second},
		{&t.Page, 20 * time.Second},
		{&t.Submit, 15 * time.Second},
		{&t.Control, 5 * time.Second},
		{&t.Ping, 5 * time.Second},
		{&t.Setup, 30 * time.Second},
	} {
		if *f.field <= 0 {
			*f.field = f.value
		}
	}
	return t
}

// Open makes the adapter. It reads no network: that an account answers is Ping's to say. All that is wrong with the
// options is reported in one infrastructure error with code "settings", which names settings and never a key.
func Open(o Options) (*Container, error) {
	o.Timeouts = o.Timeouts.withDefaults()
	if o.Concurrency <= 0 {
		o.Concurrency = 64
	}
	build, skipVerify, err := account(&o)
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
		return nil, fault.Wrap(fault.Infrastructure, "cosmos: open", "settings", "the settings cannot be used", errors.Join(problems...))
	}
	return &Container{options: o, build: build, transport: newTransport(o.Concurrency, skipVerify)}, nil
}

// buildFunc makes a client of the account that the options name.
type buildFunc func(*azcosmos.ClientOptions) (*azcosmos.Client, error)

// account checks how the options name an account and answers how clients of it are made, and whether certificates go
// unverified. It fills Database from the connection string.
func account(o *Options) (build buildFunc, skipVerify bool, err error) {
	switch {
	case o.Connection != "" && o.AccountEndpoint != "":
		return nil, false, fmt.Errorf("%s and %s are both set: want one of them", settingConnection, settingEndpoint)
	case o.Connection != "":
		c, err := parseConnection(o.Connection)
		if err == nil {
			err = checkEndpoint(settingConnection, c.endpoint, c.skipVerify, o.Emulator)
		}
		if o.Database == "" {
			o.Database = c.database
		}
		return func(co *azcosmos.ClientOptions) (*azcosmos.Client, error) {
			cred, err := azcosmos.NewKeyCredential(c.key)
			if err != nil {
				return nil, err
			}
			return azcosmos.NewClientWithKey(c.endpoint, cred, co)
		}, c.skipVerify, err
	case o.AccountEndpoint != "":
		if err := checkEndpoint(settingEndpoint, o.AccountEndpoint, false, o.Emulator); err != nil {
			return nil, false, err
		}
		if !strings.HasPrefix(strings.ToLower(o.AccountEndpoint), "https://") {
			return nil, false, fmt.Errorf("%s: an identity's token is never sent over http://: want https://", settingEndpoint)
		}
		cred, err := credential(o.ClientID)
		if err != nil {
			return nil, false, fmt.Errorf("%s: %w", settingClientID, err)
		}
		endpoint := o.AccountEndpoint
		return func(co *azcosmos.ClientOptions) (*azcosmos.Client, error) {
			return azcosmos.NewClient(endpoint, cred, co)
		}, false, nil
	default:
		return nil, false, fmt.Errorf("%s is not set, nor is %s: want one of them", settingConnection, settingEndpoint)
	}
}

// credential chooses who we are, see Options.ClientID.
func credential(clientID string) (azcore.TokenCredential, error) {
	if clientID != "" {
		return azidentity.NewManagedIdentityCredential(&azidentity.ManagedIdentityCredentialOptions{ID: azidentity.ClientID(clientID)})
	}
	return azidentity.NewDefaultAzureCredential(nil)
}

// clientOptions configure the SDK's repetitions; doc.go has the whole table.
func clientOptions(transport *http.Client) *azcosmos.ClientOptions {
	return &azcosmos.ClientOptions{
		ClientOptions: azcore.ClientOptions{
			Transport: transport,
			Retry: policy.RetryOptions{
				MaxRetries: 3,
				// Used where a 429 names no wait: 0.2, 0.6, 1.4 s.
				RetryDelay: 200 * time.Millisecond,
				// A longer wait than this is the breaker's business, not a call's.
				MaxRetryDelay: 2 * time.Second,
				ShouldRetry:   worthRetrying,
			},
		},
		// The etag of the new state is in a header; sending 2 MB back would buy nothing.
		EnableContentResponseOnWrite: false,
	}
}
