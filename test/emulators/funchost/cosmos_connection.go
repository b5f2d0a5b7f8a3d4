package funchost

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// cosmosConnection is what a connection name stands for: a connection string in the setting of that name, or an
// endpoint in NAME__accountEndpoint with an identity (docs/facts.md F46).
type cosmosConnection struct {
	endpoint, key string
	clientID      string // user-assigned identity, when key is empty
	skipVerify    bool
}

// parseCosmosConnection reads the settings of a connection. Errors name the setting and never its value.
func parseCosmosConnection(name string, settings map[string]string) (cosmosConnection, error) {
	if endpoint := settings[name+"__accountEndpoint"]; endpoint != "" && settings[name] == "" {
		return cosmosConnection{endpoint: endpoint, clientID: settings[name+"__clientId"]}, nil
	}
	text := settings[name]
	if text == "" {
		return cosmosConnection{}, fmt.Errorf("Cosmos DB connection configuration '%s' does not exist: set it, or %s__accountEndpoint, in the app settings", name, name) //nolint:revive,staticcheck // a product's name begins it
	}
	var c cosmosConnection
	for part := range strings.SplitSeq(text, ";") {
		key, value, _ := strings.Cut(part, "=")
		switch strings.ToLower(strings.TrimSpace(key)) {
		case "accountendpoint":
			c.endpoint = value
		case "accountkey":
			c.key = value
		case "disableservercertificatevalidation":
			c.skipVerify = strings.EqualFold(value, "true")
		}
	}
	if c.endpoint == "" || c.key == "" {
		return cosmosConnection{},
			fmt.Errorf("setting '%s' is not a Cosmos DB connection string (AccountEndpoint=…;AccountKey=…;)", name)
	}
	return c, nil
}

// client opens the account. The caller closes both: the client's background work and the transport's connections.
func (c cosmosConnection) client() (*azcosmos.Client, *http.Transport, error) {
	base, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return nil, nil, errors.New("the default transport has been replaced")
	}
	transport := base.Clone()
	if c.skipVerify {
		transport.TLSClientConfig = &tls.Config{InsecureSkipVerify: true} //nolint:gosec // asked for by the connection string; the emulator's certificate is its own
	}
	options := &azcosmos.ClientOptions{
		ClientOptions: azcore.ClientOptions{Transport: &http.Client{Transport: transport}},
	}
	if c.key != "" {
		credential, err := azcosmos.NewKeyCredential(c.key)
		if err != nil {
			return nil, nil, fmt.Errorf("cosmos account key: %w", err)
		}
		client, err := azcosmos.NewClientWithKey(c.endpoint, credential, options)
		return client, transport, err
	}
	credential, err := credentialOf(c.clientID)
	if err != nil {
		return nil, nil, fmt.Errorf("cosmos identity: %w", err)
	}
	client, err := azcosmos.NewClient(c.endpoint, credential, options)
	return client, transport, err
}

// credentialOf is the identity of NAME__clientId, else the machine's own.
func credentialOf(clientID string) (azcore.TokenCredential, error) {
	if clientID != "" {
		return azidentity.NewManagedIdentityCredential(
			&azidentity.ManagedIdentityCredentialOptions{ID: azidentity.ClientID(clientID)})
	}
	return azidentity.NewDefaultAzureCredential(nil)
}
