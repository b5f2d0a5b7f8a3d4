package blob

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
)

// Options configure a Store. Set Connection, or ServiceURI for an identity.
type Options struct {
	// Connection is a storage connection string with a key or a shared access signature (settings BLOB_CONNECTION and
	// AzureWebJobsStorage). UseDevelopmentStorage=true means Azurite on 127.0.0.1:10000.
	Connection string
	// ServiceURI connects with an identity instead (setting BLOB_CONNECTION__blobServiceUri). The identity needs the
	// role Storage Blob Data Contributor.
	ServiceURI string
	// ClientID names a user-assigned managed identity (azure.Settings.Credential).
	ClientID string
	// Container is the container's name . The Store makes a missing container.
	Container string
	// Prefix is the first part of every name: the environment (setting SYS_NAME).
	Prefix string
	// Timeouts bound each call; a zero field means its default.
	Timeouts Timeouts
}

// Timeouts bound a call with its waits and retries. The caller's own deadline counts when it is earlier.
type Timeouts struct {
	// Keep bounds the storing of one file, with the making of the container, and the removal of one. Default 10 s.
	Keep time.Duration
	// Read bounds the read of one file. Default 10 s.
	Read time.Duration
	// List bounds one page of a listing. Default 20 s.
	List time.Duration
	// Ping bounds the check of the container. Default 5 s.
	Ping time.Duration
}

// withDefaults sets the fields that are zero.
func (t Timeouts) withDefaults() Timeouts {
	return Timeouts{
		Keep: cmp.Or(t.Keep, 10*time.Second), Read: cmp.Or(t.Read, 10*time.Second),
		List: cmp.Or(t.List, 20*time.Second),
		Ping: cmp.Or(t.Ping, 5*time.Second),
	}
}

// maxBlobName is Azure's limit (docs/facts.md F86).
const maxBlobName = 1024

// Open makes a Store without a request; Ping finds out whether the account answers. Errors by kind: infrastructure,
// code "settings", with every problem of the options. The text names settings and never a key.
func Open(o Options) (*Store, error) {
	t := newTransport()
	client, err := account(o, clientOptions(t))
	problems := []error{err}
	if !validContainer(o.Container) {
		problems = append(problems,
			fmt.Errorf(
				"the container: want 3 to 63 lower-case letters, digits and single hyphens between them, found %d characters", len(o.Container)))
	}
	const most = maxBlobName - commit.MaxEvidenceName - len("/")
	if len(o.Prefix) > most || strings.Contains(o.Prefix, "/") || commit.CheckEvidenceName(o.Prefix) != nil {
		problems = append(problems,
			fmt.Errorf("%s: want 1 to %d letters, digits, - and _, found %d characters",
				settingPrefix, most, len(o.Prefix)))
	}
	if err := errors.Join(problems...); err != nil {
		return nil, fault.Wrap(fault.Infrastructure, "blob: open", "settings", "the settings cannot be used", err)
	}
	return &Store{client: client, transport: t, prefix: o.Prefix + "/", timeouts: o.Timeouts.withDefaults()}, nil
}

// validContainer checks a container's name (the vendor's page "Naming and Referencing Containers, Blobs, and
// Metadata").
func validContainer(name string) bool {
	const least, most = 3, 63
	return len(name) >= least && len(name) <= most && regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`).MatchString(name)
}

// account makes the container's client.
func account(o Options, co *container.ClientOptions) (*container.Client, error) {
	if err := settings().Choose(o.Connection, o.ServiceURI); err != nil {
		return nil, err
	}
	if o.Connection != "" {
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
	}
	if err := settings().CheckAddress(o.ServiceURI); err != nil {
		return nil, err
	}
	cred, err := settings().Credential(o.ClientID)
	if err != nil {
		return nil, err
	}
	return container.NewClient(address(o.ServiceURI, o.Container), cred, co)
}

func address(endpoint, name string) string { return strings.TrimRight(endpoint, "/") + "/" + name }

// clientOptions set no retries: each call sets its own, because they depend on its deadline (see bounded).
func clientOptions(t transport) *container.ClientOptions {
	return &container.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: t}}
}
