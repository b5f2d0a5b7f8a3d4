package blob

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"sqlwriter/internal/azure"
)

// The settings that errors at Open name (docs/requirements.md R96).
const (
	settingConnection = "BLOB_CONNECTION (or AzureWebJobsStorage in its place)"
	settingServiceURI = "BLOB_CONNECTION__blobServiceUri"
	settingPrefix     = "SYS_NAME"
)

func settings() azure.Settings {
	return azure.Settings{
		Connection: settingConnection, Address: settingServiceURI, ClientID: "BLOB_CONNECTION__clientId",
		ConnectionForm: "AccountName=...;AccountKey=...;",
		AddressForm:    "https://NAME.blob.core.windows.net/", AccountInPath: true,
	}
}

// UseDevelopmentStorage=true means these. The vendor publishes the name and the key for the emulator.
const (
	emulatorName     = "devstoreaccount1"
	emulatorKey      = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==" //nolint:gosec // published by the vendor
	emulatorEndpoint = "http://127.0.0.1:10000/" + emulatorName
)

// connection is a parsed connection string: an address, and either name and key or a shared access signature.
type connection struct {
	endpoint  string
	name, key string
	// sas is the signature's query, without the question mark.
	sas string
}

// parseConnection reads a connection string, also UseDevelopmentStorage=true, the value of every local.settings.json.
// Errors name the part, never a value.
func parseConnection(text string) (connection, error) {
	parts, err := settings().Parse(text)
	if err != nil {
		return connection{}, err
	}
	if parts.True("usedevelopmentstorage") {
		if parts["developmentstorageproxyuri"] != "" {
			return connection{},
				fmt.Errorf(
					"%s: DevelopmentStorageProxyUri is not supported: want BlobEndpoint=...;AccountName=...;AccountKey=...;", settingConnection)
		}
		return connection{endpoint: emulatorEndpoint, name: emulatorName, key: emulatorKey}, nil
	}
	c := connection{
		endpoint: parts["blobendpoint"], name: parts["accountname"], key: parts["accountkey"],
		sas: strings.TrimPrefix(parts["sharedaccesssignature"], "?"),
	}
	if c.endpoint == "" && c.name != "" {
		c.endpoint = cmp.Or(parts["defaultendpointsprotocol"], "https") + "://" + c.name + ".blob." +
			cmp.Or(parts["endpointsuffix"], "core.windows.net")
	}
	return c, c.check()
}

// check reports everything that is missing or wrong.
func (c connection) check() error {
	var problems []error
	if c.endpoint == "" {
		problems = append(problems, fmt.Errorf("%s: neither AccountName nor BlobEndpoint", settingConnection))
	}
	switch _, err := base64.StdEncoding.DecodeString(c.key); {
	case c.key == "" && c.sas == "":
		problems = append(problems, fmt.Errorf("%s: neither AccountKey nor SharedAccessSignature", settingConnection))
	case c.key != "" && c.name == "":
		problems = append(problems, fmt.Errorf("%s: AccountKey without AccountName", settingConnection))
	case err != nil:
		problems = append(problems, fmt.Errorf("%s: AccountKey is not base64: %w", settingConnection, err))
	}
	if c.endpoint != "" {
		// The emulator's account has no real documents.
		problems = append(problems,
			settings().CheckEndpoint(azure.Endpoint{Address: c.endpoint, Emulator: c.name == emulatorName}))
	}
	return errors.Join(problems...)
}
