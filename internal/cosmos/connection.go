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

// connection is what a connection string says.
type connection struct {
	endpoint string
	key      string
	database string
	// skipVerify is DisableServerCertificateValidation.
	skipVerify bool
}

// parseConnection reads a connection string the way the .NET trigger does, which reads the same setting: parts in any
// order, names without regard to case, blanks around names and values, values in quotes, a trailing semicolon, "=" in a
// value, the last of two parts of one name, unknown parts ignored (System.Data.Common.DbConnectionStringBuilder).
// azcosmos' own reader breaks on a third part (docs/facts.md F72). Its errors name the part, never a value.
func parseConnection(text string) (connection, error) {
	var c connection
	var problems []error
	for part := range strings.SplitSeq(text, ";") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		name, value, found := strings.Cut(part, "=")
		if !found {
			// The text is not shown: a key that lost its name would be printed.
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

// unquote takes the quotes off a value that stands in them.
func unquote(v string) string {
	if len(v) >= 2 && (v[0] == '"' || v[0] == '\'') && v[len(v)-1] == v[0] {
		return v[1 : len(v)-1]
	}
	return v
}

// checkEndpoint holds the rules for where we connect to. local says that the host is this machine or a declared
// emulator: only there may the wire be plain and the certificate unverified.
func checkEndpoint(setting, endpoint string, skipVerify, emulator bool) error {
	u, err := url.Parse(endpoint)
	if err != nil {
		// A *url.Error repeats the text; a string put together wrongly may have the key in it.
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

// isLoopback reports whether a host name can only mean this machine.
func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
