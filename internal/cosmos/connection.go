package cosmos

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
	settingConnection = "COSMOS_CONNECTION"
	settingEndpoint   = "COSMOS_CONNECTION__accountEndpoint"
	settingClientID   = "COSMOS_CONNECTION__clientId"
	settingDatabase   = "COSMOS_DATABASE"
	settingContainer  = "COSMOS_CONTAINER"
)

// connection is a parsed connection string.
type connection struct {
	endpoint string
	key      string
	database string
	// skipVerify is DisableServerCertificateValidation.
	skipVerify bool
}

// parseConnection reads a connection string by the rules of the .NET trigger, which reads the same setting
// (System.Data.Common.DbConnectionStringBuilder). Parts come in any order and names in any case; the last of two parts of
// one name counts. Blanks around names and values, values in quotes, a trailing semicolon, "=" in a value and unknown parts
// are allowed. azcosmos' parser fails on a third part (docs/facts.md F72). Errors name the part, never a value.
func parseConnection(text string) (connection, error) {
	var c connection
	var problems []error
	for part := range strings.SplitSeq(text, ";") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		name, value, found := strings.Cut(part, "=")
		if !found {
			// The text is not shown: it may be a key without its name.
			problems = append(problems, fmt.Errorf("%s: a part without \"=\": want AccountEndpoint=...;AccountKey=...;", settingConnection))
			continue
		}
		value = unquote(strings.TrimSpace(value))
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "accountendpoint":
			c.endpoint = value
		case "accountkey":
			c.key = value
		case "database":
			c.database = value
		case "disableservercertificatevalidation":
			c.skipVerify = strings.EqualFold(value, "true")
		}
	}
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

// checkEndpoint validates an endpoint. Plain http and unverified certificates are allowed only on this machine and for a
// declared emulator.
func checkEndpoint(setting, endpoint string, skipVerify, emulator bool) error {
	u, err := url.Parse(endpoint)
	if err != nil {
		// A *url.Error repeats the text, and a malformed string may contain the key.
		return fmt.Errorf("%s: the account endpoint is not an address: want https://NAME.documents.azure.com:443/", setting)
	}
	local := emulator || isLoopback(u.Hostname())
	switch {
	case u.Hostname() == "" || (u.Scheme != "https" && u.Scheme != "http"):
		return fmt.Errorf("%s: the account endpoint is not an address: want https://NAME.documents.azure.com:443/", setting)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.Trim(u.Path, "/") != "":
		return fmt.Errorf("%s: the account endpoint has more than host and port: want https://NAME.documents.azure.com:443/", setting)
	case u.Scheme == "http" && !local:
		return fmt.Errorf("%s: http:// is for an emulator on this machine only; found it for another host: want https://", setting)
	case skipVerify && !local:
		return fmt.Errorf("%s: DisableServerCertificateValidation=True is for an emulator on this machine only; found it for another host", setting)
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
