package cosmos

import (
	"encoding/base64"
	"errors"
	"fmt"

	"sqlwriter/internal/azure"
)

// The settings that errors at Open name (docs/requirements.md R96).
const (
	settingConnection = "COSMOS_CONNECTION"
	settingEndpoint   = "COSMOS_CONNECTION__accountEndpoint"
	settingDatabase   = "COSMOS_DATABASE"
	settingContainer  = "COSMOS_CONTAINER"
)

func settings() azure.Settings {
	return azure.Settings{
		Connection: settingConnection, Address: settingEndpoint, ClientID: "COSMOS_CONNECTION__clientId",
		ConnectionForm: "AccountEndpoint=...;AccountKey=...;", AddressForm: "https://NAME.documents.azure.com:443/",
	}
}

// connection is a parsed connection string.
type connection struct {
	endpoint string
	key      string
	database string
	// unverified is DisableServerCertificateValidation.
	unverified bool
}

// parseConnection reads a connection string. Values may be in quotes, as the .NET trigger allows, which reads the same
// setting (System.Data.Common.DbConnectionStringBuilder). Errors name the part, never a value.
func parseConnection(text string) (connection, error) {
	parts, err := settings().Parse(text)
	if err != nil {
		return connection{}, err
	}
	c := connection{
		endpoint: unquote(parts["accountendpoint"]), key: unquote(parts["accountkey"]),
		database:   unquote(parts["database"]),
		unverified: parts.True("disableservercertificatevalidation"),
	}
	var problems []error
	if c.endpoint == "" {
		problems = append(problems, fmt.Errorf("%s: AccountEndpoint is missing", settingConnection))
	}
	switch _, err := base64.StdEncoding.DecodeString(c.key); {
	case c.key == "":
		problems = append(problems, fmt.Errorf("%s: AccountKey is missing", settingConnection))
	case err != nil:
		problems = append(problems, fmt.Errorf("%s: AccountKey is not base64: %w", settingConnection, err))
	}
	return c, errors.Join(problems...)
}

func unquote(v string) string {
	if len(v) >= 2 && (v[0] == '"' || v[0] == '\'') && v[len(v)-1] == v[0] {
		return v[1 : len(v)-1]
	}
	return v
}

// endpointOf is the endpoint for its check.
func (c connection) endpointOf(emulator bool) azure.Endpoint {
	e := azure.Endpoint{Address: c.endpoint, Emulator: emulator}
	if c.unverified {
		e.Unsafe = "DisableServerCertificateValidation=True"
	}
	return e
}
