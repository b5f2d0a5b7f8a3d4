// Package azure has what the connections to Cosmos DB, blob storage and Service Bus have in common: connection strings,
// the choice between a key and an identity, which addresses may be used, and what a lost call failed of. No error has a
// key.
package azure

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
)

// Settings are the settings of one connection. Errors name them (docs/requirements.md R96).
type Settings struct {
	// Connection has the connection string. Address has the address for an identity, and ClientID says which identity.
	Connection, Address, ClientID string
	// ConnectionForm and AddressForm are what the values look like. The scheme of AddressForm is the encrypted one.
	ConnectionForm, AddressForm string
	// AccountInPath says that the path of an address may have one part, in which an emulator names the account.
	AccountInPath bool
}

// Choose refuses the values of Connection and Address unless one of them is set.
func (s Settings) Choose(connection, address string) error {
	switch {
	case connection != "" && address != "":
		return fmt.Errorf("%s and %s are both set: want one of them", s.Connection, s.Address)
	case connection == "" && address == "":
		return fmt.Errorf("%s is not set, nor is %s: want one of them", s.Connection, s.Address)
	}
	return nil
}

// Parts are the parts of a connection string; names are lower case.
type Parts map[string]string

// Parse reads a connection string by the rules of the host, whose triggers read the same settings. Parts come in any
// order and names in any case; the last of two parts of one name counts. Blanks around names and values, a trailing
// semicolon, "=" in a value and unknown parts are allowed, where the parsers of the SDKs fail (docs/facts.md F72, F87).
// Its error shows no value.
func (s Settings) Parse(text string) (Parts, error) {
	parts := Parts{}
	for part := range strings.SplitSeq(text, ";") {
		name, value, found := strings.Cut(part, "=")
		if !found && strings.TrimSpace(part) != "" {
			// The text is not shown: it may be a key without its name.
			return nil, fmt.Errorf("%s: a part without \"=\": want %s", s.Connection, s.ConnectionForm)
		}
		parts[strings.ToLower(strings.TrimSpace(name))] = strings.TrimSpace(value)
	}
	return parts, nil
}

// True reports whether a part says true.
func (p Parts) True(name string) bool { return strings.EqualFold(p[name], "true") }

// PersonOfAz stands for a client id: the identity is whom az has signed in, and no other.
const PersonOfAz = "az"

// Credential gives the identity of a client id. A managed identity that is named is the only one that is tried, so that
// a wrong id fails visibly. "" means azidentity's default chain: the system-assigned identity in Azure, the developer's
// login on a laptop.
func (s Settings) Credential(clientID string) (cred azcore.TokenCredential, err error) {
	switch clientID {
	case "":
		cred, err = azidentity.NewDefaultAzureCredential(nil)
	case PersonOfAz:
		cred, err = azidentity.NewAzureCLICredential(nil)
	default:
		cred, err = azidentity.NewManagedIdentityCredential(
			&azidentity.ManagedIdentityCredentialOptions{ID: azidentity.ClientID(clientID)})
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.ClientID, err)
	}
	return cred, nil
}

// IsIdentity reports whether the identity got no token.
func IsIdentity(err error) bool {
	var failed *azidentity.AuthenticationFailedError
	var required *azidentity.AuthenticationRequiredError
	return errors.As(err, &failed) || errors.As(err, &required)
}

// Endpoint is the address of a service, from a connection string.
type Endpoint struct {
	Address string
	// Unsafe is the part of the connection string that gives up encryption or the check of the certificate; "" if none
	// does.
	Unsafe string
	// Emulator says that the host is an emulator's, whatever its name.
	Emulator bool
}

// CheckEndpoint refuses what is no address of the service. What is not encrypted or not verified is only for this
// machine and for emulators.
func (s Settings) CheckEndpoint(e Endpoint) error { return s.check(s.Connection, e) }

// CheckAddress is CheckEndpoint for an identity. Its token is never sent over plain http, not even on this machine.
func (s Settings) CheckAddress(address string) error {
	if err := s.check(s.Address, Endpoint{Address: address}); err != nil {
		return err
	}
	if !strings.HasPrefix(strings.ToLower(address), "https://") {
		return fmt.Errorf("%s: an identity's token is never sent over http://: want https://", s.Address)
	}
	return nil
}

func (s Settings) check(setting string, e Endpoint) error {
	scheme, _, _ := strings.Cut(s.AddressForm, "://")
	u, err := url.Parse(e.Address)
	if err != nil || u.Hostname() == "" || (u.Scheme != scheme && (scheme != "https" || u.Scheme != "http")) {
		// A *url.Error repeats the text, and a malformed string may contain the key.
		return fmt.Errorf("%s: the endpoint is not an address: want %s", setting, s.AddressForm)
	}
	path := strings.Trim(u.Path, "/")
	if s.AccountInPath && !strings.Contains(path, "/") {
		path = ""
	}
	local := e.Emulator || isLoopback(u.Hostname())
	switch {
	case u.User != nil || u.RawQuery != "" || u.Fragment != "" || path != "":
		return fmt.Errorf("%s: the endpoint has more than the address: want %s", setting, s.AddressForm)
	case u.Scheme == "http" && !local:
		return fmt.Errorf(
			"%s: http:// is for an emulator on this machine only; found it for another host: want https://", setting)
	case e.Unsafe != "" && !local:
		return fmt.Errorf(
			"%s: %s is for an emulator on this machine only; found it for another host", setting, e.Unsafe)
	}
	return nil
}

// isLoopback reports whether a host name always means this machine.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || (ip != nil && ip.IsLoopback())
}
