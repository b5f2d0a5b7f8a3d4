package blob

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
)

// The settings that errors at Open name (docs/requirements.md R96).
const (
	settingConnection = "BLOB_CONNECTION (or AzureWebJobsStorage in its place)"
	settingServiceURI = "BLOB_CONNECTION__blobServiceUri"
	settingClientID   = "BLOB_CONNECTION__clientId"
	settingPrefix     = "SYS_NAME"
)

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

// parseConnection reads a connection string by the rules of the host, whose AzureWebJobsStorage has the same form. Parts
// come in any order and names in any case. A trailing semicolon, "=" in a value and unknown parts (the endpoints of other
// services) are allowed. azblob's parser does not know UseDevelopmentStorage, the value of every local.settings.json
// (docs/facts.md F87). Errors name the part, never a value.
func parseConnection(text string) (connection, error) {
	parts := map[string]string{}
	for part := range strings.SplitSeq(text, ";") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		name, value, found := strings.Cut(part, "=")
		if !found {
			// The text is not shown: it may be a key without its name.
			return connection{}, fmt.Errorf("%s: a part without \"=\": want AccountName=...;AccountKey=...;", settingConnection)
		}
		parts[strings.ToLower(strings.TrimSpace(name))] = strings.TrimSpace(value)
	}
	if strings.EqualFold(parts["usedevelopmentstorage"], "true") {
		if parts["developmentstorageproxyuri"] != "" {
			return connection{}, fmt.Errorf("%s: DevelopmentStorageProxyUri is not supported: want BlobEndpoint=...;AccountName=...;AccountKey=...;", settingConnection)
		}
		return connection{endpoint: emulatorEndpoint, name: emulatorName, key: emulatorKey}, nil
	}
	c := connection{
		endpoint: parts["blobendpoint"], name: parts["accountname"], key: parts["accountkey"],
		sas: strings.TrimPrefix(parts["sharedaccesssignature"], "?"),
	}
	if c.endpoint == "" && c.name != "" {
		c.endpoint = cmp.Or(parts["defaultendpointsprotocol"], "https") + "://" + c.name + ".blob." + cmp.Or(parts["endpointsuffix"], "core.windows.net")
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
		problems = append(problems, checkEndpoint(settingConnection, c.endpoint, c.name == emulatorName))
	}
	return errors.Join(problems...)
}

// checkEndpoint validates an endpoint. Plain http is allowed only on this machine and for the emulator's account, which has
// no real documents.
func checkEndpoint(setting, endpoint string, emulator bool) error {
	const form = "want https://NAME.blob.core.windows.net/"
	u, err := url.Parse(endpoint)
	switch {
	case err != nil || u.Hostname() == "" || (u.Scheme != "https" && u.Scheme != "http"):
		// A *url.Error repeats the text, and a malformed string may contain the key.
		return fmt.Errorf("%s: the blob endpoint is not an address: %s", setting, form)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.Contains(strings.Trim(u.Path, "/"), "/"):
		// An emulator names the account in the first part of the path.
		return fmt.Errorf("%s: the blob endpoint has more than the address of an account: %s", setting, form)
	case u.Scheme == "http" && !emulator && !isLoopback(u.Hostname()):
		return fmt.Errorf("%s: http:// is for an emulator only; found it for another host: want https://", setting)
	}
	return nil
}

// isLoopback reports whether a host name always means this machine.
func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
