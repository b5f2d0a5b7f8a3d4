package config

import (
	"fmt"
	"regexp"
	"strings"
)

// ServiceBus locates the namespace for messages about runs: by Connection, or by Namespace and an identity.
type ServiceBus struct {
	Connection Secret
	// Namespace is a host name.
	Namespace, ClientID string
	// RunsQueue has a message for each run, BatchesQueue one for each batch.
	RunsQueue, BatchesQueue string
}

// checkServiceBus checks the form only; internal/servicebus parses it.
func checkServiceBus(value string, s lookup) (string, string) {
	if s(ServiceBusNamespace) != "" {
		return "this or " + ServiceBusNamespace + ", not both", "both"
	}
	const form = "Endpoint=sb://...;SharedAccessKeyName=...;SharedAccessKey=...;"
	parts := partsOf(value)
	switch {
	case parts["endpoint"] == "":
		return form, fmt.Sprintf("a text of %d characters without Endpoint", len(value))
	case parts["sharedaccesssignature"] == "" && (parts["sharedaccesskeyname"] == "" || parts["sharedaccesskey"] == ""):
		return form, fmt.Sprintf("a text of %d characters without SharedAccessKeyName and SharedAccessKey", len(value))
	case parts["entitypath"] != "":
		return "the connection string of the namespace", "that of one queue (EntityPath)"
	}
	return "", ""
}

// checkNamespace refuses an address: the host derives it from the name.
func checkNamespace(value string, _ lookup) (string, string) {
	if !regexp.MustCompile(`^[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+$`).MatchString(value) {
		return "a host name such as NAME.servicebus.windows.net", fmt.Sprintf("a text of %d characters", len(value))
	}
	return "", ""
}

func checkServiceBusClientID(_ string, s lookup) (string, string) {
	return checkIdentity(ServiceBusNamespace, serviceBusCredential, s)
}

// checkQueue applies the vendor's rules for queue names and keeps environments apart (docs/requirements.md R14). The
// environment must be a word of the name, whatever the case. Two environments with one queue would take and dead-letter
// each other's messages.
func checkQueue(value string, s lookup) (string, string) {
	const most = 260
	if len(value) > most || !regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._/-]*[A-Za-z0-9])?$`).MatchString(value) {
		return fmt.Sprintf("at most %d letters, digits and . - _ / between them", most), fmt.Sprintf("%q", value)
	}
	environment := regexp.MustCompile(`(?i)(^|[^a-z0-9])` + regexp.QuoteMeta(s(SysName)) + `([^a-z0-9]|$)`)
	if !environment.MatchString(value) {
		return fmt.Sprintf("a name with %q in it (SYS_NAME), as sqlwriter-%s-runs", s(SysName), s(SysName)),
			fmt.Sprintf("%q", value)
	}
	return "", ""
}

// checkBatchesQueue also keeps the two queues apart, because each has a function that understands no other message.
func checkBatchesQueue(value string, s lookup) (string, string) {
	if strings.EqualFold(value, s(RunsQueue)) {
		return "another queue than " + RunsQueue, "the same name"
	}
	return checkQueue(value, s)
}
