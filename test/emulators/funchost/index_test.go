package funchost

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// index reads one function the way Start does.
func indexed(t *testing.T, text string, settings map[string]string) (*function, error) {
	t.Helper()
	r := newRoot(t).function("F", text)
	all := map[string]string{
		"AzureWebJobsStorage": "UseDevelopmentStorage=true", "COSMOS": "AccountEndpoint=https://a/;AccountKey=a2V5",
	}
	for name, value := range settings {
		all[name] = value
	}
	host, err := readHostConfig(r.dir, all)
	require.NoError(t, err)
	return indexer{root: r.dir, settings: all, host: host}.index("F")
}

// cosmosBinding replaces or adds properties of a good binding; the value "-" takes one away.
func cosmosBinding(change ...string) string {
	properties := []string{
		"type", `"cosmosDBTrigger"`, "name", `"documents"`, "direction", `"in"`, "connection", `"COSMOS"`,
		"databaseName", `"db"`, "containerName", `"docs"`, "leaseContainerName", `"leases"`,
		"startFromBeginning", `true`,
	}
	for i := 0; i < len(change); i += 2 {
		found := false
		for j := 0; j < len(properties); j += 2 {
			if properties[j] == change[i] {
				properties[j+1], found = change[i+1], true
			}
		}
		if !found {
			properties = append(properties, change[i], change[i+1])
		}
	}
	var parts []string
	for i := 0; i < len(properties); i += 2 {
		if properties[i+1] != "-" {
			parts = append(parts, `"`+properties[i]+`":`+properties[i+1])
		}
	}
	return `{"bindings":[{` + strings.Join(parts, ",") + `}]}`
}

func TestIndexingRefusals(t *testing.T) {
	timer := func(schedule string) string {
		return `{"bindings":[{"type":"timerTrigger","name":"timer","schedule":"` + schedule + `"}]}`
	}
	retry := func(text string) string {
		return strings.Replace(timer("0 * * * * *"), `}]}`, `}],"retry":`+text+`}`, 1)
	}
	web := func(more string) string { return `{"bindings":[{"type":"httpTrigger","name":"req"` + more + `}]}` }
	bus := func(old, replacement string) string { return strings.Replace(busBinding(""), old, replacement, 1) }
	for _, c := range []struct {
		text, want string
		settings   []string // one is set to another, here and there
	}{
		{text: `{`, want: "function.json"},
		{text: `{"bindings":[]}`, want: "at least one binding must be declared"},
		{text: `{"bindings":[{"type":"http","name":"res","direction":"out"}]}`, want: "no trigger binding specified"},
		{text: web(`},{"type":"httpTrigger","name":"b"`), want: "multiple trigger bindings defined"},
		{text: web(`,"direction":"out"`), want: `direction must be "in"`},
		{text: `{"bindings":[{"name":"a"}]}`, want: "'type' is missing"},
		{text: `{"bindings":[{"type":"httpTrigger","name":"my-req"}]}`, want: "binding name 'my-req' is invalid"},
		{text: `{"bindings":[{"type":"queueTrigger","name":"a"}]}`, want: "'queueTrigger' is not one this emulator has"},

		{text: cosmosBinding("collectionName", `"docs"`), want: "'collectionname' is not emulated, or the host would ignore"},
		{text: cosmosBinding("cardinality", `"many"`), want: "'cardinality' is not emulated"},
		{text: cosmosBinding("createLeaseContainerIfNotExists", `true`), want: "is not implemented by this emulator"},
		{text: cosmosBinding("databaseName", "-"), want: "'databaseName' is missing"},
		{text: cosmosBinding("containerName", `"x%NOT_SET%"`), want: "'containerName': '%NOT_SET%' does not resolve to a value"},
		{text: cosmosBinding("leaseContainerPrefix", `"%NOT_SET%"`), want: "'leaseContainerPrefix': '%NOT_SET%'"},
		{text: cosmosBinding("connection", `"OTHER"`), want: "connection configuration 'OTHER' does not exist"},
		{text: cosmosBinding("connection", "-"), want: "connection configuration 'CosmosDB' does not exist"},
		{text: cosmosBinding(), settings: []string{"COSMOS", "secret"}, want: "'COSMOS' is not a Cosmos DB connection string"},
		{text: cosmosBinding("leaseContainerName", `"docs"`), want: "cannot be the same as the container storing the leases"},
		{text: cosmosBinding("feedPollDelay", `"soon"`), want: "'feedPollDelay' must be a whole number"},
		{text: cosmosBinding("startFromBeginning", "-"), want: "'startFromBeginning' must be true"},
		{text: cosmosBinding(), settings: []string{"AzureWebJobsStorage", ""}, want: "missing value for AzureWebJobs"},
		// Stricter than the host, which puts the empty text in: an empty prefix would share another function's leases.
		{text: cosmosBinding("leaseContainerPrefix", `"%EMPTY%"`), settings: []string{"EMPTY", ""}, want: "'%EMPTY%'"},

		{text: timer("%NOT_SET%"), want: "'%NOT_SET%' does not resolve to a value"},
		{text: timer("every day"), want: "'every day' was not recognized as a valid cron expression"},
		{text: timer("@daily"), want: "was not recognized"},
		{text: timer("0 0 0 L * *"), want: "was not recognized"},
		{text: timer("0 60 * * * *"), want: "was not recognized"},

		{text: retry(`{"strategy":"fixedDelay","delayInterval":"00:00:10"}`), want: "retry: maxRetryCount"},
		{text: retry(`{"strategy":"fixedDelay","maxRetryCount":-2,"delayInterval":"00:00:10"}`), want: "retry: maxRetryCount"},
		{text: retry(`{"strategy":"linear","maxRetryCount":1}`), want: `strategy "linear"`},
		{text: retry(`{"strategy":"fixedDelay","maxRetryCount":1,"delayInterval":"10s"}`), want: `delayInterval "10s"`},
		{text: bus(`}]}`, `}],"retry":{"strategy":"fixedDelay","maxRetryCount":1,"delayInterval":"00:00:10"}}`), want: "only"},

		{text: web(`,"authLevel":"user"`), want: "'authLevel' must be"},
		{text: web(`,"methods":"get"`), want: "'methods' must be a list"},
		{text: web(`},{"type":"http","name":"res"`), want: `direction of http must be "out"`},
		{text: web(`,"route":"{*all}/x"`), want: "as the last segment"},
		{
			text: strings.Replace(timer("0 * * * * *"), `}]}`, `},{"type":"http","name":"res","direction":"out"}]}`, 1),
			want: "needs an httpTrigger",
		},

		{text: bus(`"queueName":"batches",`, ""), want: "'queueName' is missing"},
		{text: bus(`"batches"`, `"%QUEUE%/$DeadLetterQueue"`), want: "'queueName': '%QUEUE%' does not resolve to a value"},
		{text: bus(`"batches"`, `"/q"`), want: "neither begin nor end with a slash"},
		{text: busBinding(`,"maxConcurrentCalls":1`), want: "'maxconcurrentcalls' is not emulated"},
		{text: busBinding(""), settings: []string{"SERVICEBUS", ""}, want: "name 'SERVICEBUS' does not exist"},
		{
			text:     busBinding(""),
			settings: []string{"SERVICEBUS", "", "SERVICEBUS__fullyQualifiedNamespace", "x.servicebus.windows.net"},
			want:     "'SERVICEBUS__fullyQualifiedNamespace' asks for an identity; this emulator takes a connection string",
		},
		{
			text: busBinding(""), settings: []string{"SERVICEBUS", "Endpoint=sb://secret;SharedAccessKeyName=k"},
			want: "setting 'SERVICEBUS' is not a Service Bus connection string",
		},
		{text: busBinding(""), settings: []string{"SERVICEBUS", serviceBusSetting + "EntityPath=q"}, want: "use that"},
	} {
		settings := map[string]string{"SERVICEBUS": serviceBusSetting}
		for i := 0; i+1 < len(c.settings); i += 2 {
			settings[c.settings[i]] = c.settings[i+1]
		}
		_, err := indexed(t, c.text, settings)
		require.ErrorContains(t, err, c.want, c.text)
		require.NotContains(t, err.Error(), "secret")
	}
	// A variable of the developer's machine must not hide a setting that the deployment lacks.
	t.Setenv("ONLY_IN_THE_PROCESS", "docs")
	_, err := indexed(t, cosmosBinding("containerName", `"%ONLY_IN_THE_PROCESS%"`), nil)
	require.ErrorContains(t, err, "'%ONLY_IN_THE_PROCESS%' does not resolve to a value")
	r := newRoot(t).function("F", cosmosBinding()).file("host.json",
		`{"version":"2.0","customHandler":{"description":{"defaultExecutablePath":"handler"}}}`)
	host, err := readHostConfig(r.dir, nil)
	require.NoError(t, err)
	_, err = indexer{root: r.dir, host: host}.index("F")
	require.ErrorContains(t, err, "'cosmosDBTrigger' is not registered: extensionBundle")
}

func TestGoodBindings(t *testing.T) {
	f, err := indexed(t,
		cosmosBinding("DatabaseName", `"%DB%-x"`, "databaseName", "-", "maxItemsPerInvocation", `"100"`,
			"feedPollDelay", `1000`, "leaseContainerName", "-"), map[string]string{"DB": "prod"})
	require.NoError(t, err)
	require.Equal(t, &cosmosTrigger{
		connection: cosmosConnection{endpoint: "https://a/", key: "a2V5"},
		database:   "prod-x", container: "docs", leases: "leases", maxItems: 100, feedPoll: time.Second,
		acquire: 13 * time.Second, expire: time.Minute, renew: 17 * time.Second,
	}, f.cosmos)
	require.Equal(t, "documents", f.trigger)
	for settings, want := range map[[2]string]cosmosConnection{
		{"COSMOS__accountEndpoint", "https://b/"}: {endpoint: "https://b/", clientID: "id"},
		{"COSMOS", "AccountEndpoint=https://c:8081/;AccountKey=a2V5==;DisableServerCertificateValidation=True;Database=x"}: {
			endpoint: "https://c:8081/", key: "a2V5==", skipVerify: true,
		},
	} {
		f, err = indexed(t, cosmosBinding(),
			map[string]string{"COSMOS": "", "COSMOS__clientId": "id", settings[0]: settings[1]})
		require.NoError(t, err)
		require.Equal(t, want, f.cosmos.connection)
	}
	f, err = indexed(t, strings.Replace(busBinding(""), `"batches"`, `"%A%-%B%/$DeadLetterQueue"`, 1),
		map[string]string{"SERVICEBUS": serviceBusSetting, "A": "x", "B": "y"})
	require.NoError(t, err)
	require.Equal(t, "x-y/$DeadLetterQueue", f.serviceBus.entity)
	require.Equal(t, serviceBusSetting, f.serviceBus.connection)
	require.Equal(t, "message", f.trigger)
}

// withExtension is host.json with a section of extensions.
func withExtension(name, section string) string {
	return strings.Replace(hostFile, `"unknown":`, `"extensions":{"`+name+`":`+section+`},"unknown":`, 1)
}

func busHost(section string) string { return withExtension("serviceBus", section) }

func TestHostFileRefusals(t *testing.T) {
	handler := `"customHandler":{"description":{"defaultExecutablePath":"handler"}}`
	path := func(path string) string { return strings.Replace(hostFile, `"handler"`, `"`+path+`"`, 1) }
	for text, want := range map[string]string{
		`{`:                                 "host.json",
		`{` + handler + `}`:                 "missing the required 'version'",
		`{"version":"4.0",` + handler + `}`: "'4.0' is an invalid value for 'version'",
		`{"version":"2.0"}`:                 "customHandler.description is missing",
		path(""):                            "defaultExecutablePath cannot be empty",
		path("no-such-program"):             "neither a file in the script root nor a program in PATH",
		path("host.json"):                   "is not executable",
		`{"version":"2.0","functionTimeout":"00:00:00",` + handler + `}`:                                          "functionTimeout",
		`{"version":"2.0","functionTimeout":"10m",` + handler + `}`:                                               `functionTimeout "10m"`,
		strings.Replace(hostFile, `"customHandler":{`, `"customHandler":{"enableForwardingHttpRequest":true,`, 1): "not implemented by this emulator",

		withExtension("http", `{"maxConcurrentRequests":0}`):      "maxConcurrentRequests",
		withExtension("http", `{"maxConcurrentRequest":7}`):       "the host would ignore it in silence",
		withExtension("http", `{"dynamicThrottlesEnabled":true}`): "not implemented by this emulator",
		withExtension("http", `[]`):                               "extensions.http",
		busHost(`[]`):                                             "extensions.serviceBus",
		busHost(`{"messageHandlerOptions":{}}`):                   "'messagehandleroptions' is not emulated",
		busHost(`{"maxConcurrentCalls":0}`):                       "'maxConcurrentCalls' must be 1 or more",
		busHost(`{"prefetchCount":-1}`):                           "'prefetchCount' must be a whole number that is not negative",
		busHost(`{"autoCompleteMessages":false}`):                 "'autoCompleteMessages' must be true",
		busHost(`{"maxAutoLockRenewalDuration":"5 minutes"}`):     "'maxAutoLockRenewalDuration': \"5 minutes\" is not a time span",
		busHost(`{"maxAutoLockRenewalDuration":"-00:05:00"}`):     "must not be negative",
	} {
		b := prepare(t, newRoot(t).file("host.json", text), newControl(t), newFakeClock())
		require.ErrorContains(t, b.Start(t.Context()), want, text)
		require.ErrorIs(t, b.Wait(), ErrNotStarted)
	}
	b := prepare(t, newRoot(t), newControl(t), newFakeClock(),
		with(func(o *Options) { o.Settings["FUNCTIONS_WORKER_RUNTIME"] = "node" }))
	require.ErrorContains(t, b.Start(t.Context()), `FUNCTIONS_WORKER_RUNTIME is "node"`)
	require.ErrorIs(t, New(Options{ScriptRoot: t.TempDir()}).Start(t.Context()), os.ErrNotExist)
}

func TestHostFile(t *testing.T) {
	read := func(text string) hostConfig {
		c, err := readHostConfig(newRoot(t).file("host.json", text).dir, nil)
		require.NoError(t, err)
		return c
	}
	c := read(`{"version":"2.0","logging":{"x":1},"customHandler":{"description":{"defaultExecutablePath":"sh"}}}`)
	require.True(t, filepath.IsAbs(c.executable), "found in PATH")
	require.Equal(t, 30*time.Minute, c.functionTimeout)
	require.Equal(t, httpOptions{concurrent: -1, outstanding: -1}, c.http, "not bounded")
	require.Equal(t, serviceBusOptions{maxCalls: 16, maxRenewal: 5 * time.Minute}, c.serviceBus)
	require.Equal(t, c.serviceBus, read(busHost(`null`)).serviceBus)
	require.Zero(t, read(strings.Replace(hostFile, "00:05:00", "-1", 1)).functionTimeout, "unlimited")
	require.Equal(t, serviceBusOptions{maxCalls: 4, prefetch: 8, maxRenewal: 10 * time.Minute},
		read(busHost(`{"PrefetchCount":8,"maxConcurrentCalls":"4","maxAutoLockRenewalDuration":"00:10:00"}`)).serviceBus)
}

func TestOnlyDirectChildFoldersAreFunctions(t *testing.T) {
	r := newRoot(t).function("Direct", httpFunction).function("functions/Deeper", httpFunction).
		function("Bad Name", httpFunction).function("Broken", `{`).file("Empty/readme.txt", "")
	b := start(t, r)
	refused := map[string]error{}
	for _, e := range b.Events(0) {
		if e.Kind == FunctionRefused {
			refused[e.Function] = e.Err
		}
	}
	require.Len(t, refused, 2)
	require.ErrorContains(t, refused["Bad Name"], "not a valid function name")
	require.Equal(t, "Direct", b.await(FunctionIndexed).Function)
	require.Equal(t, 1, b.count(FunctionIndexed))
	code, _, _ := b.request("GET", "/api/Direct", nil)
	require.Equal(t, 204, code, "the others run")
	code, _, _ = b.request("GET", "/api/Broken", nil)
	require.Equal(t, 404, code)
}

func TestNoFunctionsIsOnlyALine(t *testing.T) {
	b := start(t, newRoot(t))
	require.Contains(t, b.await(NoFunctions).Text, "0 functions found")
	require.Zero(t, b.count(HandlerStarted))
	code, _, _ := b.request("GET", "/", nil)
	require.Equal(t, 200, code)
}

func TestTimeSpans(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"00:00:10":     10 * time.Second,
		"1.02:03:04.5": 26*time.Hour + 3*time.Minute + 4*time.Second + 500*time.Millisecond,
		"00:05":        5 * time.Minute, "7": 7 * 24 * time.Hour, "-00:00:01": -time.Second,
	} {
		got, err := parseTimeSpan(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "10s", "24:00:00", "00:60:00", "00:00:61", "1:2:3:4", "x"} {
		_, err := parseTimeSpan(text)
		require.Error(t, err, text)
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	require.ErrorContains(t, Run(t.Context(), Options{ScriptRoot: newRoot(t).file("host.json", "{}").dir}), "version")
	var failed *InvocationError
	require.False(t, errors.As(ErrHandlerGaveUp, &failed))
}
