package blob

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
)

// Options say which container, and how to get to it: by Connection, or by ServiceURI and an identity.
type Options struct {
	// Connection is a storage connection string with a key or a shared access signature, or UseDevelopmentStorage=true
	// for Azurite on 127.0.0.1:10000 (settings BLOB_CONNECTION and AzureWebJobsStorage).
	Connection string
	// ServiceURI connects with an identity instead (setting BLOB_CONNECTION__blobServiceUri). It needs the role Storage
	// Blob Data Contributor.
	ServiceURI string
	// ClientID names a user-assigned managed identity and then no other credential is tried, so a wrong id fails in the
	// open. Empty: azidentity's default chain, which is the system-assigned identity in Azure and the developer's own
	// login on a laptop.
	ClientID string
	// Container is made when it is not there (setting POISON_CONTAINER).
	Container string
	// Prefix is the first part of every name: the environment (setting SYS_NAME).
	Prefix string
	// Timeouts bound each call; the zero value of a field stands for its default.
	Timeouts Timeouts
}

// Timeouts bound a call, waits and repetitions included, on top of the caller's own deadline; the earlier one counts.
type Timeouts struct {
	// Keep bounds the keeping of one file, the making of the container included. Default 10 s.
	Keep time.Duration
	// Read bounds the reading of one file. Default 10 s.
	Read time.Duration
	// Ping bounds the look at the container. Default 5 s.
	Ping time.Duration
}

// withDefaults fills the fields that are not set.
func (t Timeouts) withDefaults() Timeouts {
	for _, f := range []struct {
		field *time.Duration
		value time.Duration
	}{
		{&t.Keep, 10 * time.Second},
		{&t.Read, 10 * time.Second},
		{&t.Ping, 5 * time.Second},
	} {
		if *f.field <= 0 {
			*f.field = f.value
		}
	}
	return t
}

// maxBlobName is Azure's limit (docs/facts.md F86).
const maxBlobName = 1024

// Open makes the adapter. It reads no network: that an account answers is Ping's to say. All that is wrong with the
// options is reported in one infrastructure error with code "settings", which names settings and never a key.
func Open(o Options) (*Store, error) {
	t := newTransport()
	client, err := account(o, clientOptions(t))
	problems := []error{err}
	if !validContainer(o.Container) {
		problems = append(problems, fmt.Errorf("%s: want 3 to 63 lower-case letters, digits and single hyphens between them, found %d characters", settingContainer, len(o.Container)))
	}
	const most = maxBlobName - commit.MaxEvidenceName - len("/")
	if len(o.Prefix) > most || strings.Contains(o.Prefix, "/") || commit.CheckEvidenceName(o.Prefix) != nil {
		problems = append(problems, fmt.Errorf("%s: want 1 to %d letters, digits, - and _, found %d characters", settingPrefix, most, len(o.Prefix)))
	}
	if err := errors.Join(problems...); err != nil {
		return nil, fault.Wrap(fault.Infrastructure, "blob: open", "settings", "the settings cannot be used", err)
	}
	return &Store{client: client, transport: t, prefix: o.Prefix + "/", timeouts: o.Timeouts.withDefaults()}, nil
}

// validContainer reports whether a container can have this name (the vendor's page "Naming and Referencing Containers,
// Blobs, and Metadata").
func validContainer(name string) bool {
	const least, most = 3, 63
	return len(name) >= least && len(name) <= most && regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`).MatchString(name)
}

// account makes a client of the container at the account that the options name.
func account(o Options, co *container.ClientOptions) (*container.Client, error) {
	switch {
	case o.Connection != "" && o.ServiceURI != "":
		return nil, fmt.Errorf("%s and %s are both set: want one of them", settingConnection, settingServiceURI)
	case o.Connection != "":
		c, err := parseConnection(o.Connection)
		if err != nil {
			return nil, err
		}
		if c.key == "" {
			return container.NewClientWithNoCredential(address(c.endpoint, o.Container)+"?"+c.sas, co)
		}
		cred, err := container.NewSharedKeyCredential(c.name, c.key)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", settingConnection, err)
		}
		return container.NewClientWithSharedKeyCredential(address(c.endpoint, o.Container), cred, co)
	case o.ServiceURI != "":
		if err := checkEndpoint(settingServiceURI, o.ServiceURI, false); err != nil {
			return nil, err
		}
		if !strings.HasPrefix(strings.ToLower(o.ServiceURI), "https://") {
			return nil, fmt.Errorf("%s: an identity's token is never sent over http://: want https://", settingServiceURI)
		}
		cred, err := credential(o.ClientID)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", settingClientID, err)
		}
		return container.NewClient(address(o.ServiceURI, o.Container), cred, co)
	default:
		return nil, fmt.Errorf("%s is not set, nor is %s: want one of them", settingConnection, settingServiceURI)
	}
}

// address is a container's.
func address(endpoint, name string) string { return strings.TrimRight(endpoint, "/") + "/" + name }

// credential chooses who we are, see Options.ClientID.
func credential(clientID string) (azcore.TokenCredential, error) {
	if clientID != "" {
		return azidentity.NewManagedIdentityCredential(&azidentity.ManagedIdentityCredentialOptions{ID: azidentity.ClientID(clientID)})
	}
	return azidentity.NewDefaultAzureCredential(nil)
}

// clientOptions leave the repetitions to each call, which knows its deadline (Store.bounded).
func clientOptions(t transport) *container.ClientOptions {
	return &container.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: t}}
}
