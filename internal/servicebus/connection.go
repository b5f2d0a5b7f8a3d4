package servicebus

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strings"
)

// The settings that errors at Open name (docs/requirements.md R96).
const (
	settingConnection = "SERVICEBUS_CONNECTION"
	settingNamespace  = "SERVICEBUS_CONNECTION__fullyQualifiedNamespace"
	settingClientID   = "SERVICEBUS_CONNECTION__clientId"
)

// emulatorKey is the published key of the vendor's emulator.
const emulatorKey = "SAS_KEY_VALUE"

// connection is a parsed connection string: an address, and either name and key or a shared access signature.
type connection struct {
	// endpoint is sb://host[:port].
	endpoint           string
	keyName, key       string
	signature          string
	emulator, isEntity bool
}

// parseConnection reads a connection string by the rules of the host, which reads the same setting. Parts come in any order
// and names in any case. Blanks around names and values, a trailing semicolon, "=" in a value and unknown parts are
// allowed. The SDK's parser takes blanks for a part of a name. Errors name the part, never a value.
func parseConnection(text string) (connection, error) {
	parts := map[string]string{}
	for part := range strings.SplitSeq(text, ";") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		name, value, found := strings.Cut(part, "=")
		if !found {
			// The text is not shown: it may be a key without its name.
			return connection{}, fmt.Errorf("%s: a part without \"=\": want Endpoint=sb://...;SharedAccessKeyName=...;SharedAccessKey=...;", settingConnection)
		}
		parts[strings.ToLower(strings.TrimSpace(name))] = strings.TrimSpace(value)
	}
	c := connection{
		endpoint: strings.TrimRight(parts["endpoint"], "/"), keyName: parts["sharedaccesskeyname"], key: parts["sharedaccesskey"],
		signature: parts["sharedaccesssignature"], emulator: strings.EqualFold(parts["usedevelopmentemulator"], "true"),
		isEntity: parts["entitypath"] != "",
	}
	return c, c.check()
}

// check reports everything that is missing or wrong.
func (c connection) check() error {
	var problems []error
	problem := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf(settingConnection+": "+format, args...))
	}
	if c.signature == "" && (c.keyName == "" || c.key == "") {
		problem("neither SharedAccessKeyName with SharedAccessKey nor SharedAccessSignature")
	}
	if c.isEntity {
		problem("EntityPath: this is the connection string of one queue: want the namespace's")
	}
	const form = "want sb://NAME.servicebus.windows.net/"
	u, err := url.Parse(c.endpoint)
	switch {
	case c.endpoint == "":
		problem("Endpoint is missing: %s", form)
	case err != nil || u.Scheme != "sb" || u.Hostname() == "":
		// A *url.Error repeats the text, and a malformed string may contain the key.
		problem("Endpoint is not an address: %s", form)
	case u.User != nil || u.Path != "" || u.RawQuery != "" || u.Fragment != "":
		problem("Endpoint has more than the address of a namespace: %s", form)
	case c.emulator && !isLoopback(u.Hostname()) && c.key != emulatorKey:
		problem("UseDevelopmentEmulator is for this machine and for the emulator's own key: the connection is not encrypted")
	}
	return errors.Join(problems...)
}

// text is the connection string in the SDK's form.
func (c connection) text() string {
	text := "Endpoint=" + c.endpoint
	if c.signature != "" {
		text += ";SharedAccessSignature=" + c.signature
	} else {
		text += ";SharedAccessKeyName=" + c.keyName + ";SharedAccessKey=" + c.key
	}
	if c.emulator {
		text += ";UseDevelopmentEmulator=true"
	}
	return text
}

func checkNamespace(name string) error {
	if !regexp.MustCompile(`^[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+$`).MatchString(name) {
		return fmt.Errorf("%s: not a host name: want NAME.servicebus.windows.net", settingNamespace)
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
