package funchost

import (
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"strings"
	"time"
)

// serviceBusTrigger is a serviceBusTrigger binding of extension 5.x, resolved together with host.json's
// extensions.serviceBus. Names and defaults: ServiceBusTriggerAttribute.cs, ServiceBusOptions.cs.
type serviceBusTrigger struct {
	connection   string // a connection string: never log it
	entity       string // queue, or queue/$DeadLetterQueue
	autoComplete bool
	serviceBusOptions
}

// serviceBusOptions is host.json's extensions.serviceBus as far as single dispatch of queues needs it.
type serviceBusOptions struct {
	autoCompleteMessages bool
	// maxCalls is how many messages are worked on at once, prefetch how many more are locked and wait for their turn.
	maxCalls, prefetch int
	// maxRenewal is how long a running invocation's lock is renewed; negative means as long as it runs.
	maxRenewal time.Duration
	retry      serviceBusRetry
}

// serviceBusRetry is clientRetryOptions: how the client retries before it reports an error.
type serviceBusRetry struct {
	delay, maxDelay time.Duration
	max             int
}

// defaultServiceBusOptions are the extension's own. The real default of maxConcurrentCalls is 16 for each core of the
// instance; this host counts as one core, like the smallest instance, so that a run doesn't depend on the machine. A
// number in host.json is taken as it stands, there and here.
func defaultServiceBusOptions() serviceBusOptions {
	return serviceBusOptions{
		autoCompleteMessages: true, maxCalls: 16, maxRenewal: 5 * time.Minute,
		retry: serviceBusRetry{delay: 800 * time.Millisecond, maxDelay: time.Minute, max: 3},
	}
}

// serviceBusProperties are the properties of function.json that extension 5.x knows, in lower case.
const serviceBusProperties = " type name direction datatype queuename topicname subscriptionname connection issessionsenabled " +
	"autocompletemessages cardinality maxmessagebatchsize "

// serviceBusOldName maps the names of older extensions, which today's ignores without a word, to today's.
func serviceBusOldName(lower string) string {
	switch lower {
	case "accessrights":
		return "nothing (it is gone)"
	case "autocomplete":
		return "autoCompleteMessages"
	case "connectionstringsetting":
		return "connection"
	}
	return ""
}

func (b binding) checkServiceBusNames() error {
	var problems []string
	for name := range b {
		switch old := serviceBusOldName(name); {
		case old != "":
			problems = append(problems,
				fmt.Sprintf("'%s' is a name of an older extension, which 5.x ignores in silence: use %s", name, old))
		case !strings.Contains(serviceBusProperties, " "+name+" "):
			problems = append(problems,
				fmt.Sprintf("'%s' is not a property of serviceBusTrigger; the host would ignore it in silence", name))
		}
	}
	if problems == nil {
		return nil
	}
	sort.Strings(problems)
	return errors.New(strings.Join(problems, "; "))
}

// serviceBusTrigger reads a binding. warning is what the real host would leave unsaid until messages come back for
// ever.
func (x indexer) serviceBusTrigger(b binding) (t *serviceBusTrigger, warning string, err error) {
	if err := b.checkServiceBusNames(); err != nil {
		return nil, "", err
	}
	r := reader{binding: b, settings: x.settings}
	t = &serviceBusTrigger{serviceBusOptions: x.host.serviceBus}
	if r.plain("topicName", "") != "" || r.plain("subscriptionName", "") != "" {
		r.fail(errors.New("'topicName' and 'subscriptionName': this emulator has queues only"))
	}
	t.entity = r.required("queueName")
	if strings.HasPrefix(t.entity, "/") || strings.HasSuffix(t.entity, "/") {
		r.fail(errors.New("'queueName' must neither begin nor end with a slash"))
	}
	switch cardinality := r.plain("cardinality", "one"); strings.ToLower(cardinality) {
	case "one":
	case "many":
		r.fail(
			errors.New(
				"'cardinality' \"many\": this emulator delivers one message at a time; a custom handler could not settle the messages of a batch one by one either"))
	default:
		r.fail(fmt.Errorf("'cardinality' must be \"one\" or \"many\", found %q", cardinality))
	}
	if dataType := r.plain("dataType", ""); dataType != "" && !strings.EqualFold(dataType, "string") {
		r.fail(fmt.Errorf("'dataType' %q: this emulator delivers messages as string (the default) only", dataType))
	}
	if r.flag("isSessionsEnabled") {
		r.fail(errors.New("'isSessionsEnabled': this emulator has no sessions"))
	}
	r.number("maxMessageBatchSize") // for batches only
	if t.autoComplete, err = b.flag("autoCompleteMessages", t.autoCompleteMessages); err != nil {
		r.fail(err)
	}
	if t.connection, err = serviceBusConnection(r.plain("connection", "AzureWebJobsServiceBus"),
		x.settings); err != nil {
		r.fail(err)
	}
	if !t.autoComplete {
		warning = "autoCompleteMessages is false, and a custom handler cannot complete a message: every one comes back until it is dead-lettered"
	}
	return t, warning, errors.Join(r.errs...)
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

// serviceBusHostNames are the names that extension 5.x knows in host.json's extensions.serviceBus, in lower case.
const serviceBusHostNames = " prefetchcount clientretryoptions transporttype webproxy autocompletemessages maxautolockrenewalduration " +
	"maxconcurrentcalls maxconcurrentsessions maxconcurrentcallspersession maxmessagebatchsize minmessagebatchsize maxbatchwaittime " +
	"sessionidletimeout enablecrossentitytransactions "

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
	for name := range section {
		if !strings.Contains(serviceBusHostNames, " "+name+" ") {
			r.fail(fmt.Errorf("'%s' is not a setting of extension 5.x; the host would ignore it in silence", name))
		}
	}
	o.prefetch = r.number("prefetchCount")
	var err error
	if o.autoCompleteMessages, err = section.flag("autoCompleteMessages", true); err != nil {
		r.fail(err)
	}
	for _, limit := range []struct {
		name string
		to   *int
	}{
		{"maxConcurrentCalls", &o.maxCalls},
		{"maxConcurrentSessions", new(int)},
		{"maxConcurrentCallsPerSession", new(int)},
		{"maxMessageBatchSize", new(int)},
		{"minMessageBatchSize", new(int)},
	} {
		if n, there := r.atLeastOne(limit.name); there {
			*limit.to = n
		}
	}
	r.span("maxAutoLockRenewalDuration", &o.maxRenewal)
	if o.maxRenewal < 0 && o.maxRenewal != -time.Millisecond { // Timeout.InfiniteTimeSpan
		r.fail(
			errors.New("'maxAutoLockRenewalDuration' must not be negative (\"-00:00:00.0010000\" means without end)"))
	}
	if transport := r.plain("transportType", "amqpTcp"); !strings.EqualFold(transport, "amqpTcp") {
		r.fail(fmt.Errorf("'transportType' %q: this emulator speaks AMQP over TCP only", transport))
	}
	o.retry = r.clientRetryOptions(o.retry)
	if r.errs == nil {
		return o, nil
	}
	sort.Slice(r.errs, func(i, j int) bool { return r.errs[i].Error() < r.errs[j].Error() })
	return o, fmt.Errorf("host.json: extensions.serviceBus: %w", errors.Join(r.errs...))
}

// clientRetryOptions reads the object of that name. mode and tryTimeout are checked and then left alone: the Go client
// knows exponential pauses only and bounds no single try.
func (r *reader) clientRetryOptions(o serviceBusRetry) serviceBusRetry {
	raw, there := r.binding["clientretryoptions"]
	if !there {
		return o
	}
	inner := reader{}
	if err := json.Unmarshal(raw, &inner.binding); err != nil {
		r.fail(fmt.Errorf("'clientRetryOptions': %w", err))
		return o
	}
	for name := range inner.binding {
		if !strings.Contains(" mode trytimeout delay maxdelay maxretries ", " "+name+" ") {
			inner.fail(
				fmt.Errorf("'%s' is not a setting of clientRetryOptions; the host would ignore it in silence", name))
		}
	}
	if mode := inner.plain("mode", "exponential"); !strings.EqualFold(mode, "exponential") &&
		!strings.EqualFold(mode, "fixed") {
		inner.fail(fmt.Errorf("'mode' must be exponential or fixed, found %q", mode))
	}
	tryTimeout := time.Minute
	for name, d := range map[string]*time.Duration{
		"tryTimeout": &tryTimeout, "delay": &o.delay, "maxDelay": &o.maxDelay,
	} {
		inner.span(name, d)
		if *d < 0 {
			inner.fail(fmt.Errorf("'%s' must not be negative", name))
		}
	}
	if _, there := inner.binding["maxretries"]; there {
		if o.max = inner.number("maxRetries"); o.max > 100 {
			inner.fail(fmt.Errorf("'maxRetries' must be 0 to 100, found %d", o.max))
		}
	}
	for _, err := range inner.errs {
		r.fail(fmt.Errorf("clientRetryOptions: %w", err))
	}
	return o
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
