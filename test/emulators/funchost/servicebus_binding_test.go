package funchost

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const serviceBusSetting = "Endpoint=sb://127.0.0.1:1;SharedAccessKeyName=k;SharedAccessKey=secret=;UseDevelopmentEmulator=true;"

// busBinding is a good serviceBusTrigger with some more properties.
func busBinding(properties string) string {
	return fmt.Sprintf(
		`{"bindings":[{"type":"serviceBusTrigger","name":"message","direction":"in","queueName":"batches","connection":"SERVICEBUS"%s}]}`, properties)
}

func busSettings(more ...string) map[string]string {
	all := map[string]string{"SERVICEBUS": serviceBusSetting}
	for i := 0; i+1 < len(more); i += 2 {
		all[more[i]] = more[i+1]
	}
	return all
}

func TestServiceBusBindingRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		text     string
		settings map[string]string
		want     string
	}{
		"no queue": {
			strings.Replace(busBinding(""), `"queueName":"batches",`, "", 1), busSettings(), "'queueName' is missing",
		},
		"unset queue": {
			strings.Replace(busBinding(""), `"batches"`, `"%QUEUE%/$DeadLetterQueue"`, 1), busSettings(),
			"'queueName': '%QUEUE%' does not resolve to a value",
		},
		"a slash": {
			strings.Replace(busBinding(""), `"batches"`, `"%QUEUE%/$DeadLetterQueue"`, 1), busSettings("QUEUE", "/q"),
			"neither begin nor end with a slash",
		},
		"topic": {busBinding(`,"topicName":"t","subscriptionName":"s"`), busSettings(), "queues only"},
		"many": {
			busBinding(`,"cardinality":"many"`), busSettings(),
			"'cardinality' \"many\": this emulator delivers one message at a time",
		},
		"no cardinality": {
			busBinding(`,"cardinality":"two"`), busSettings(), `must be "one" or "many", found "two"`,
		},
		"sessions": {
			busBinding(`,"isSessionsEnabled":true`), busSettings(),
			"'isSessionsEnabled': this emulator has no sessions",
		},
		"binary": {busBinding(`,"dataType":"binary"`), busSettings(), `'dataType' "binary"`},
		"unknown property": {
			busBinding(`,"maxConcurrentCalls":1`), busSettings(),
			"'maxconcurrentcalls' is not a property of serviceBusTrigger",
		},
		"an old name": {
			busBinding(`,"accessRights":"manage"`), busSettings(), "'accessrights' is a name of an older extension",
		},
		"text for a flag": {
			busBinding(`,"autoCompleteMessages":"yes"`), busSettings(), "'autoCompleteMessages' must be true or false",
		},
		"no setting": {busBinding(""), nil, "string with name 'SERVICEBUS' does not exist"},
		"default setting": {
			strings.Replace(busBinding(""), `,"connection":"SERVICEBUS"`, "", 1), busSettings(),
			"'AzureWebJobsServiceBus' does not exist",
		},
		"identity": {
			busBinding(""),
			map[string]string{"SERVICEBUS__fullyQualifiedNamespace": "x.servicebus.windows.net"},
			"'SERVICEBUS__fullyQualifiedNamespace' asks for an identity; this emulator takes a connection string",
		},
		"no string": {
			busBinding(""),
			map[string]string{"SERVICEBUS": "secret"},
			"setting 'SERVICEBUS' is not a Service Bus connection string",
		},
		"no key": {
			busBinding(""),
			map[string]string{"SERVICEBUS": "Endpoint=sb://secret;SharedAccessKeyName=k"},
			"setting 'SERVICEBUS' is not a Service Bus connection string",
		},
		"one entity's": {
			busBinding(""), busSettings("SERVICEBUS", serviceBusSetting+"EntityPath=q"), "use that of the namespace",
		},
		"without storage": {
			busBinding(""), busSettings("AzureWebJobsStorage", ""), "missing value for AzureWebJobsStorage",
		},
		"a going direction": {
			strings.Replace(busBinding(""), `"in"`, `"out"`, 1), busSettings(), `direction must be "in"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := indexed(t, c.text, c.settings)
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "secret")
		})
	}
}

func TestGoodServiceBusBindings(t *testing.T) {
	text := strings.Replace(
		busBinding(`,"cardinality":"one","dataType":"string","isSessionsEnabled":false,"maxMessageBatchSize":10`),
		`"batches"`, `"%A%-%B%/$DeadLetterQueue"`, 1)
	f, err := indexed(t, text, busSettings("A", "x", "B", "y"))
	require.NoError(t, err)
	require.Equal(t, "x-y/$DeadLetterQueue", f.serviceBus.entity)
	require.Equal(t, serviceBusSetting, f.serviceBus.connection)
	require.True(t, f.serviceBus.autoComplete)
	require.Equal(t, "message", f.trigger)
	require.Empty(t, f.warnings)

	f, err = indexed(t,
		strings.Replace(busBinding(`,"autoCompleteMessages":false`), `}]}`,
			`}],"retry":{"strategy":"fixedDelay","maxRetryCount":1,"delayInterval":"00:00:01"}}`, 1), busSettings())
	require.NoError(t, err)
	require.False(t, f.serviceBus.autoComplete)
	require.Len(t, f.warnings, 2)
	require.Contains(t, f.warnings[0], "a custom handler cannot complete a message")
	require.Contains(t, f.warnings[1], "retries are not supported by serviceBusTrigger")
}

func TestServiceBusNeedsTheExtensionBundle(t *testing.T) {
	r := newRoot(t).function("F", busBinding("")).file("host.json",
		`{"version":"2.0","customHandler":{"description":{"defaultExecutablePath":"handler"}}}`)
	host, err := readHostConfig(r.dir, nil)
	require.NoError(t, err)
	_, err = indexer{root: r.dir, settings: busSettings("AzureWebJobsStorage", "x"), host: host}.index("F")
	require.ErrorContains(t, err, "'serviceBusTrigger' is not registered")
}

// busHost is a host.json with extensions.serviceBus.
func busHost(section string) string {
	return strings.Replace(hostFile, `"unknown":`, `"extensions":{"serviceBus":`+section+`},"unknown":`, 1)
}

func TestServiceBusOptionsOfTheHostFile(t *testing.T) {
	read := func(section string) serviceBusOptions {
		c, err := readHostConfig(newRoot(t).file("host.json", busHost(section)).dir, nil)
		require.NoError(t, err)
		return c.serviceBus
	}
	defaults := serviceBusOptions{
		autoCompleteMessages: true, maxCalls: 16, maxRenewal: 5 * time.Minute,
		retry: serviceBusRetry{delay: 800 * time.Millisecond, maxDelay: time.Minute, max: 3},
	}
	require.Equal(t, defaults, read(`null`))
	require.Equal(t, defaults, read(`{}`))
	require.Equal(t, defaults,
		read(
			`{"maxConcurrentSessions":1,"maxConcurrentCallsPerSession":1,"maxMessageBatchSize":1,"minMessageBatchSize":1,
		"maxBatchWaitTime":"00:00:30","transportType":"amqpTcp","enableCrossEntityTransactions":false}`))
	require.Equal(t, serviceBusOptions{
		autoCompleteMessages: false, maxCalls: 4, prefetch: 8, maxRenewal: 10 * time.Minute,
		retry: serviceBusRetry{delay: 50 * time.Millisecond, maxDelay: time.Second, max: 5},
	}, read(
		`{"PrefetchCount":8,"autoCompleteMessages":false,"maxConcurrentCalls":"4","maxAutoLockRenewalDuration":"00:10:00",
		"clientRetryOptions":{"mode":"fixed","tryTimeout":"00:00:10","delay":"00:00:00.05","maxDelay":"00:00:01","maxRetries":5}}`))
	require.Negative(t, read(`{"maxAutoLockRenewalDuration":"-00:00:00.0010000"}`).maxRenewal, "without end")
	require.Zero(t, read(`{"maxAutoLockRenewalDuration":"00:00:00"}`).maxRenewal)
}

func TestServiceBusOptionsRefusals(t *testing.T) {
	for section, want := range map[string]string{
		`[]`:                      "extensions.serviceBus",
		`{"maxConcurentCalls":1}`: "'maxconcurentcalls' is not a setting of extension 5.x",
		`{"messageHandlerOptions":{"maxConcurrentCalls":1}}`: "'messagehandleroptions' is not a setting of extension 5.x",
		`{"maxConcurrentCalls":0}`:                           "'maxConcurrentCalls' must be 1 or more",
		`{"prefetchCount":-1}`:                               "'prefetchCount' must be a whole number that is not negative",
		`{"autoCompleteMessages":"no"}`:                      "'autoCompleteMessages' must be true or false",
		`{"maxAutoLockRenewalDuration":"5 minutes"}`:         "'maxAutoLockRenewalDuration': \"5 minutes\" is not a time span",
		`{"maxAutoLockRenewalDuration":"-00:05:00"}`:         "must not be negative",
		`{"transportType":"amqpWebSockets"}`:                 "AMQP over TCP only",
		`{"clientRetryOptions":3}`:                           "'clientRetryOptions'",
		`{"clientRetryOptions":{"mode":"linear"}}`:           "clientRetryOptions: 'mode' must be exponential or fixed",
		`{"clientRetryOptions":{"delay":"-00:00:01"}}`:       "clientRetryOptions: 'delay' must not be negative",
		`{"clientRetryOptions":{"maxRetries":101}}`:          "clientRetryOptions: 'maxRetries' must be 0 to 100",
		`{"clientRetryOptions":{"retries":1}}`:               "'retries' is not a setting of clientRetryOptions",
	} {
		_, err := readHostConfig(newRoot(t).file("host.json", busHost(section)).dir, nil)
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "host.json")
	}
}

func TestAFunctionWhoseQueueIsNotSetIsNotIndexedAndTheOthersRun(t *testing.T) {
	bus := newFakeBus()
	text := strings.Replace(busBinding(""), `"batches"`, `"%BATCHES_QUEUE%"`, 1)
	b := start(t, newRoot(t).function("Bad", text).function("Good", busBinding("")), bus.uses())
	e := b.await(FunctionRefused)
	require.Equal(t, "Bad", e.Function)
	require.ErrorContains(t, e.Err, "'%BATCHES_QUEUE%' does not resolve to a value: set it in the app settings")
	bus.put("a", "x")
	require.Equal(t, "Good", b.await(MessageCompleted).Function)
}
