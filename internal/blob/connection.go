package blob

import (
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
	settingContainer  = "POISON_CONTAINER"
	settingPrefix     = "SYS_NAME"
)

// What UseDevelopmentStorage=true stands for. Name and key are published by the vendor and open nothing but emulators.
const (
	emulatorName     = "devstoreaccount1"
	emulatorKey      = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==" //nolint:gosec // published by the vendor
	emulatorEndpoint = "http://127.0.0.1:10000/" + emulatorName
)

// connection is what a connection string says: an address, and either name and key or a shared access signature.
type connection struct {
	endpoint  string
	name, key string
	// sas is the signature's query, without the question mark.
	sas string
}

// parseConnection reads a connection string the way the host does, which has AzureWebJobsStorage of the same form: parts in
// any order, names without regard to case, a trailing semicolon, "=" in a value, unknown parts (the other services'
// endpoints) ignored. azblob's own reader knows no UseDevelopmentStorage, the value of every local.settings.json
// (docs/facts.md F87). Its errors name the part, never a value.
func parseConnection(text string) (connection, error) {
	parts := map[string]string{}
	for part := range strings.SplitSeq(text, ";") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		name, value, found := strings.Cut(part, "=")
		if !found {
			// The text is not shown: a key that lost its name would be printed.
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
		c.endpoint = or(parts["defaultendpointsprotocol"], "https") + "://" + c.name + ".blob." + or(parts["endpointsuffix"], "core.windows.net")
	}
	return c, c.check()
}

// or gives a value, or its default when it is empty.
func or(value, standard string) string {
	if value == "" {
		return standard
	}
	return value
}

// check tells what a connection string lacks.
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

// checkEndpoint holds the rules for where we connect to. The wire may be plain on this machine and for an emulator's
// account, which holds nobody's documents.
func checkEndpoint(setting, endpoint string, emulator bool) error {
	const form = "want https://NAME.blob.core.windows.net/"
	u, err := url.Parse(endpoint)
	switch {
	case err != nil || u.Hostname() == "" || (u.Scheme != "https" && u.Scheme != "http"):
		// A *url.Error repeats the text; a string put together wrongly may have the key in it.
		return fmt.Errorf("%s: the blob endpoint is not an address: %s", setting, form)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.Contains(strings.Trim(u.Path, "/"), "/"):
		// One part of a path is how an emulator names the account.
		return fmt.Errorf("%s: the blob endpoint has more than the address of an account: %s", setting, form)
	case u.Scheme == "http" && !emulator && !isLoopback(u.Hostname()):
		return fmt.Errorf("%s: http:// is for an emulator only; found it for another host: want https://", setting)
	}
	return nil
}

// isLoopback reports whether a host name can only mean this machine.
func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
