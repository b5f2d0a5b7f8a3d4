package funchost

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// serviceBusTrigger is a serviceBusTrigger binding of extension 5.x, resolved together with host.json's
// extensions.serviceBus. Names and defaults: ServiceBusTriggerAttribute.cs, ServiceBusOptions.cs.
type serviceBusTrigger struct {
	connection string // a connection string: never log it
	entity     string // queue, or queue/$DeadLetterQueue
	serviceBusOptions
	// retryDelay is the first pause of the client before it reports an error.
	retryDelay time.Duration
}

// serviceBusOptions is host.json's extensions.serviceBus as far as single dispatch of queues needs it.
type serviceBusOptions struct {
	// maxCalls is how many messages are worked on at once, prefetch how many more are locked and wait for their turn.
	maxCalls, prefetch int
	// maxRenewal is how long a running invocation's lock is renewed.
	maxRenewal time.Duration
}

// clientRetryDelay is the first of three pauses of the client (clientRetryOptions); the longest is a minute.
const clientRetryDelay = 800 * time.Millisecond

// defaultServiceBusOptions are the extension's own. The real default of maxConcurrentCalls is 16 for each core of the
// instance; this host counts as one core, like the smallest instance, so that a run doesn't depend on the machine. A
// number in host.json is taken as it stands, there and here.
func defaultServiceBusOptions() serviceBusOptions {
	return serviceBusOptions{maxCalls: 16, maxRenewal: 5 * time.Minute}
}

func (x indexer) serviceBusTrigger(b binding) (*serviceBusTrigger, error) {
	r := reader{binding: b, settings: x.settings}
	r.only("type name direction queuename connection")
	t := &serviceBusTrigger{serviceBusOptions: x.host.serviceBus, retryDelay: clientRetryDelay}
	override(&t.retryDelay, 0, x.tune.ServiceBusRetry)
	t.entity = r.required("queueName")
	if strings.HasPrefix(t.entity, "/") || strings.HasSuffix(t.entity, "/") {
		r.fail(errors.New("'queueName' must neither begin nor end with a slash"))
	}
	var err error
	if t.connection, err = serviceBusConnection(r.plain("connection", "AzureWebJobsServiceBus"),
		x.settings); err != nil {
		r.fail(err)
	}
	return t, r.problem()
}

// serviceBusConnection returns the connection string in the setting of a connection's name. Errors name the setting and
// never its value.
func serviceBusConnection(name string, settings map[string]string) (string, error) {
	text := settings[name]
	if text == "" {
		if settings[name+"__fullyQualifiedNamespace"] != "" {
			return "",
				fmt.Errorf(
					"setting '%s__fullyQualifiedNamespace' asks for an identity; this emulator takes a connection string in '%s' only", name, name)
		}
		return "", fmt.Errorf("Service Bus account connection string with name '%s' does not exist in the settings: make sure that it is a defined app setting", name) //nolint:revive,staticcheck // a product's name begins it
	}
	has := map[string]bool{}
	for part := range strings.SplitSeq(text, ";") {
		key, value, _ := strings.Cut(part, "=")
		has[strings.ToLower(strings.TrimSpace(key))] = value != ""
	}
	if !has["endpoint"] || (!has["sharedaccesssignature"] && (!has["sharedaccesskeyname"] || !has["sharedaccesskey"])) {
		return "",
			fmt.Errorf(
				"setting '%s' is not a Service Bus connection string (Endpoint=sb://…;SharedAccessKeyName=…;SharedAccessKey=…)", name)
	}
	if has["entitypath"] {
		return "",
			fmt.Errorf(
				"setting '%s' is the connection string of one entity (EntityPath): use that of the namespace", name)
	}
	return text, nil
}

// parseServiceBusOptions reads extensions.serviceBus of host.json. A name that the extension doesn't know is an error
// here: the real host ignores it, and a misspelt limit is no limit.
func parseServiceBusOptions(text json.RawMessage) (serviceBusOptions, error) {
	o := defaultServiceBusOptions()
	if len(text) == 0 || string(text) == "null" {
		return o, nil
	}
	var section binding
	if err := json.Unmarshal(text, &section); err != nil {
		return o, fmt.Errorf("host.json: extensions.serviceBus: %w", err)
	}
	r := reader{binding: section}
	r.only("prefetchcount autocompletemessages maxautolockrenewalduration maxconcurrentcalls")
	o.prefetch = r.number("prefetchCount")
	if complete, err := section.flag("autoCompleteMessages", true); err != nil || !complete {
		r.fail(errors.New("'autoCompleteMessages' must be true: a custom handler cannot complete a message"))
	}
	if n, set := r.atLeastOne("maxConcurrentCalls"); set {
		o.maxCalls = n
	}
	r.span("maxAutoLockRenewalDuration", &o.maxRenewal)
	if o.maxRenewal < 0 {
		r.fail(errors.New("'maxAutoLockRenewalDuration' must not be negative"))
	}
	if err := r.problem(); err != nil {
		return o, fmt.Errorf("host.json: extensions.serviceBus: %w", err)
	}
	return o, nil
}

// span reads a time span into d and leaves d alone when the property is absent.
func (r *reader) span(name string, d *time.Duration) {
	text := r.plain(name, "")
	if text == "" {
		return
	}
	value, err := parseTimeSpan(text)
	if err != nil {
		r.fail(fmt.Errorf("'%s': %w", name, err))
		return
	}
	*d = value
}

// atLeastOne reads a number that is 1 or more; there is false when the property is absent.
func (r *reader) atLeastOne(name string) (n int, there bool) {
	if _, there = r.binding[strings.ToLower(name)]; !there {
		return 0, false
	}
	if n = r.number(name); n < 1 {
		r.fail(fmt.Errorf("'%s' must be 1 or more", name))
	}
	return n, true
}
