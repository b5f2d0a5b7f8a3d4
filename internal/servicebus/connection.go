package servicebus

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"sqlwriter/internal/azure"
)

// The settings that errors at Open name (docs/requirements.md R96).
const (
	settingConnection = "SERVICEBUS_CONNECTION"
	settingNamespace  = "SERVICEBUS_CONNECTION__fullyQualifiedNamespace"
)

func settings() azure.Settings {
	return azure.Settings{
		Connection: settingConnection, Address: settingNamespace, ClientID: "SERVICEBUS_CONNECTION__clientId",
		ConnectionForm: "Endpoint=sb://...;SharedAccessKeyName=...;SharedAccessKey=...;",
		AddressForm:    "sb://NAME.servicebus.windows.net/",
	}
}

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

// parseConnection reads a connection string. The SDK's parser takes blanks for a part of a name. Errors name the part,
// never a value.
func parseConnection(text string) (connection, error) {
	parts, err := settings().Parse(text)
	if err != nil {
		return connection{}, err
	}
	c := connection{
		endpoint: strings.TrimRight(parts["endpoint"], "/"), keyName: parts["sharedaccesskeyname"],
		key:       parts["sharedaccesskey"],
		signature: parts["sharedaccesssignature"], emulator: parts.True("usedevelopmentemulator"),
		isEntity: parts["entitypath"] != "",
	}
	return c, c.check()
}

// check reports everything that is missing or wrong.
func (c connection) check() error {
	var problems []error
	if c.signature == "" && (c.keyName == "" || c.key == "") {
		problems = append(problems,
			fmt.Errorf(
				"%s: neither SharedAccessKeyName with SharedAccessKey nor SharedAccessSignature", settingConnection))
	}
	if c.isEntity {
		problems = append(problems,
			fmt.Errorf(
				"%s: EntityPath: this is the connection string of one queue: want the namespace's", settingConnection))
	}
	e := azure.Endpoint{Address: c.endpoint, Emulator: c.key == emulatorKey}
	if c.emulator {
		e.Unsafe = "UseDevelopmentEmulator=true (the connection is not encrypted)"
	}
	return errors.Join(append(problems, settings().CheckEndpoint(e))...)
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
