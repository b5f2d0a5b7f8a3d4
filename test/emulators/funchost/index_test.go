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
	for name, c := range map[string]struct {
		text     string
		settings map[string]string
		want     string
	}{
		"no JSON":     {`{`, nil, "function.json"},
		"no bindings": {`{"bindings":[]}`, nil, "at least one binding must be declared"},
		"no trigger": {
			`{"bindings":[{"type":"http","name":"res","direction":"out"}]}`, nil, "no trigger binding specified",
		},
		"two triggers": {
			`{"bindings":[{"type":"httpTrigger","name":"a"},{"type":"httpTrigger","name":"b"}]}`, nil,
			"multiple trigger bindings defined",
		},
		"a trigger going out": {
			`{"bindings":[{"type":"httpTrigger","name":"a","direction":"out"}]}`, nil, `direction must be "in"`,
		},
		"no type": {`{"bindings":[{"name":"a"}]}`, nil, "'type' is missing"},
		"no name": {`{"bindings":[{"type":"httpTrigger"}]}`, nil, "binding name '' is invalid"},
		"a bad binding name": {
			`{"bindings":[{"type":"httpTrigger","name":"my-req"}]}`, nil, "binding name 'my-req' is invalid",
		},
		"an unknown trigger": {
			`{"bindings":[{"type":"queueTrigger","name":"a"}]}`, nil, "'queueTrigger' is not one this emulator has",
		},
		"an unknown output": {
			`{"bindings":[{"type":"httpTrigger","name":"a"},{"type":"blob","name":"b","direction":"out"}]}`, nil,
			"'blob'",
		},
		"a missing script": {
			`{"scriptFile":"run.js","bindings":[{"type":"httpTrigger","name":"a"}]}`, nil, "scriptFile",
		},

		"cosmos 3.x connection": {
			cosmosBinding("connectionStringSetting", `"COSMOS"`), nil,
			"'connectionstringsetting' is a name of extension 3.x, which 4.x ignores in silence: use connection",
		},
		"cosmos 3.x collection": {cosmosBinding("collectionName", `"docs"`), nil, "use containerName"},
		"cosmos 3.x lease": {
			cosmosBinding("leaseCollectionName", `"docs"`), nil, "use leaseContainerName",
		},
		"cosmos 3.x prefix": {
			cosmosBinding("leaseCollectionPrefix", `"x"`), nil, "use leaseContainerPrefix",
		},
		"cosmos 3.x create": {
			cosmosBinding("createLeaseCollectionIfNotExists", `true`), nil, "use createLeaseContainerIfNotExists",
		},
		"cosmos unknown property": {
			cosmosBinding("maxItemPerInvocation", `3`), nil,
			"'maxitemperinvocation' is not a property of cosmosDBTrigger",
		},
		"cosmos cardinality": {
			cosmosBinding("cardinality", `"many"`), nil, "'cardinality' makes every batch fail",
		},
		"cosmos binary":            {cosmosBinding("dataType", `"binary"`), nil, "'dataType' \"binary\""},
		"cosmos without database":  {cosmosBinding("databaseName", "-"), nil, "'databaseName' is missing"},
		"cosmos without container": {cosmosBinding("containerName", `""`), nil, "'containerName' is missing"},
		"cosmos unset database": {
			cosmosBinding("databaseName", `"%NOT_SET%"`), nil,
			"'databaseName': '%NOT_SET%' does not resolve to a value",
		},
		"cosmos unset container": {
			cosmosBinding("containerName", `"x%NOT_SET%"`), nil, "'containerName': '%NOT_SET%'",
		},
		"cosmos unset lease container": {
			cosmosBinding("leaseContainerName", `"%NOT_SET%"`), nil, "'leaseContainerName': '%NOT_SET%'",
		},
		"cosmos unset lease database": {
			cosmosBinding("leaseDatabaseName", `"%NOT_SET%"`), nil, "'leaseDatabaseName': '%NOT_SET%'",
		},
		"cosmos unset prefix": {
			cosmosBinding("leaseContainerPrefix", `"%NOT_SET%"`), nil, "'leaseContainerPrefix': '%NOT_SET%'",
		},
		"cosmos unset locations": {
			cosmosBinding("preferredLocations", `"%NOT_SET%"`), nil, "'preferredLocations': '%NOT_SET%'",
		},
		"cosmos unset connection": {
			cosmosBinding("connection", `"OTHER"`), nil, "connection configuration 'OTHER' does not exist",
		},
		"cosmos default connection": {
			cosmosBinding("connection", "-"), nil, "connection configuration 'CosmosDB' does not exist",
		},
		"cosmos unset lease connection": {cosmosBinding("leaseConnection", `"OTHER"`), nil, "'OTHER' does not exist"},
		"cosmos connection is no such": {
			cosmosBinding(),
			map[string]string{"COSMOS": "secret"},
			"setting 'COSMOS' is not a Cosmos DB connection string",
		},
		"cosmos two starts": {
			cosmosBinding("startFromBeginning", `true`, "startFromTime", `"2021-02-16T14:19:29Z"`), nil,
			"only one of startFromBeginning or startFromTime",
		},
		"cosmos bad start": {
			cosmosBinding("startFromTime", `"yesterday"`), nil,
			"'startFromTime' \"yesterday\" is not in the correct format",
		},
		"cosmos leases in itself": {
			cosmosBinding("leaseContainerName", `"docs"`), nil,
			"cannot be the same as the container storing the leases",
		},
		"cosmos text for a number": {
			cosmosBinding("feedPollDelay", `"soon"`), nil, "'feedPollDelay' must be a whole number",
		},
		"cosmos text for a flag": {
			cosmosBinding("startFromBeginning", `"yes"`), nil, "'startFromBeginning' must be true or false",
		},
		"cosmos without storage": {
			cosmosBinding(), map[string]string{"AzureWebJobsStorage": ""}, "missing value for AzureWebJobsStorage",
		},

		"timer without schedule": {
			`{"bindings":[{"type":"timerTrigger","name":"timer"}]}`, nil, "'schedule' is missing",
		},
		"timer unset schedule": {timer("%NOT_SET%"), nil, "'%NOT_SET%' does not resolve to a value"},
		"timer bad schedule": {
			timer("every day"), nil, "'every day' was not recognized as a valid cron expression or timespan string",
		},
		"timer gronx tag":    {timer("@daily"), nil, "was not recognized"},
		"timer seven fields": {timer("0 0 0 * * * 2026"), nil, "was not recognized"},
		"timer last day":     {timer("0 0 0 L * *"), nil, "was not recognized"},
		"timer minute 60":    {timer("0 60 * * * *"), nil, "was not recognized"},
		"timer without storage": {
			timer("0 * * * * *"), map[string]string{"AzureWebJobsStorage": ""}, "missing value for AzureWebJobsStorage",
		},

		"retry without count": {
			retry(`{"strategy":"fixedDelay","delayInterval":"00:00:10"}`), nil, "retry: maxRetryCount is missing",
		},
		"retry without strategy": {retry(`{"maxRetryCount":1}`), nil, "strategy is missing"},
		"retry unknown strategy": {retry(`{"strategy":"linear","maxRetryCount":1}`), nil, `strategy "linear"`},
		"retry fixed without delay": {
			retry(`{"strategy":"fixedDelay","maxRetryCount":1}`), nil, "delayInterval is missing",
		},
		"retry bad delay": {
			retry(`{"strategy":"fixedDelay","maxRetryCount":1,"delayInterval":"10s"}`), nil,
			"delayInterval: \"10s\" is not a time span",
		},
		"retry without minimum": {
			retry(`{"strategy":"exponentialBackoff","maxRetryCount":1,"maximumInterval":"00:00:10"}`), nil,
			"minimumInterval is missing",
		},
		"retry without maximum": {
			retry(`{"strategy":"exponentialBackoff","maxRetryCount":1,"minimumInterval":"00:00:10"}`), nil,
			"maximumInterval is missing",
		},
		"retry turned round": {
			retry(
				`{"strategy":"exponentialBackoff","maxRetryCount":1,"minimumInterval":"00:00:10","maximumInterval":"00:00:05"}`), nil, "must not be greater",
		},
		"retry count -2": {
			retry(`{"strategy":"fixedDelay","maxRetryCount":-2,"delayInterval":"00:00:10"}`), nil,
			"maxRetryCount must be -1 or more",
		},

		"http bad level": {
			`{"bindings":[{"type":"httpTrigger","name":"req","authLevel":"user"}]}`, nil, "'authLevel' must be",
		},
		"http bad methods": {
			`{"bindings":[{"type":"httpTrigger","name":"req","methods":"get"}]}`, nil, "'methods' must be a list",
		},
		"http output direction": {
			`{"bindings":[{"type":"httpTrigger","name":"req"},{"type":"http","name":"res"}]}`, nil,
			`direction of http must be "out"`,
		},
		"http catch-all inside": {
			`{"bindings":[{"type":"httpTrigger","name":"req","route":"{*all}/x"}]}`, nil, "must be the last segment",
		},
		"http unknown parameter": {
			`{"bindings":[{"type":"httpTrigger","name":"req","route":"a{b}c"}]}`, nil, "is not a parameter",
		},
		"http output as return": {
			strings.Replace(web(anyone), `"name":"res"`, `"name":"$return"`, 1), nil,
			"binding name '$return' is invalid",
		},
		"http output of a timer": {
			`{"bindings":[{"type":"timerTrigger","name":"t","schedule":"0 * * * * *"},{"type":"http","name":"res","direction":"out"}]}`, nil, "needs an httpTrigger",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := indexed(t, c.text, c.settings)
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "secret")
		})
	}
}

func TestGoodBindings(t *testing.T) {
	f, err := indexed(t,
		cosmosBinding("DatabaseName", `"%DB%-x"`, "databaseName", "-", "maxItemsPerInvocation", `"100"`,
			"feedPollDelay", `1000`,
			"startFromBeginning", `"true"`, "leaseContainerName", "-"), map[string]string{"DB": "prod"})
	require.NoError(t, err)
	require.Equal(t, "prod-x", f.cosmos.database)
	require.Equal(t, "prod-x", f.cosmos.leaseDatabase)
	require.Equal(t, "leases", f.cosmos.leases)
	require.Equal(t, int32(100), f.cosmos.maxItems)
	require.Equal(t, time.Second, f.cosmos.feedPoll)
	require.True(t, f.cosmos.fromBeginning)
	require.Equal(t, []time.Duration{13 * time.Second, time.Minute, 17 * time.Second},
		[]time.Duration{f.cosmos.acquire, f.cosmos.expire, f.cosmos.renew})
	require.Equal(t, "documents", f.trigger)

	f, err = indexed(t, cosmosBinding(),
		map[string]string{"COSMOS": "", "COSMOS__accountEndpoint": "https://b/", "COSMOS__clientId": "id"})
	require.NoError(t, err)
	require.Equal(t, cosmosConnection{endpoint: "https://b/", clientID: "id"}, f.cosmos.connection)

	f, err = indexed(t, cosmosBinding(),
		map[string]string{
			"COSMOS": "AccountEndpoint=https://c:8081/;AccountKey=a2V5==;DisableServerCertificateValidation=True;Database=x",
		})
	require.NoError(t, err)
	require.Equal(t,
		cosmosConnection{endpoint: "https://c:8081/", key: "a2V5==", skipVerify: true}, f.cosmos.connection)
}

func TestCosmosNeedsTheExtensionBundle(t *testing.T) {
	for name, c := range map[string]struct{ bundle, want string }{
		"none": {`"other":1`, "'cosmosDBTrigger' is not registered: host.json has no extensionBundle"},
		"id":   {`"extensionBundle":{"id":"X","version":"[4.*, 5.0.0)"}`, `extensionBundle.id is "X"`},
		"version": {
			`"extensionBundle":{"id":"Microsoft.Azure.Functions.ExtensionBundle","version":"[2.*, 3.0.0)"}`,
			`extensionBundle.version is "[2.*, 3.0.0)"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRoot(t).function("F", cosmosBinding()).file("host.json",
				`{"version":"2.0","customHandler":{"description":{"defaultExecutablePath":"handler"}},`+c.bundle+`}`)
			settings := map[string]string{"AzureWebJobsStorage": "x", "COSMOS": "AccountEndpoint=a;AccountKey=b"}
			host, err := readHostConfig(r.dir, settings)
			require.NoError(t, err)
			_, err = indexer{root: r.dir, settings: settings, host: host}.index("F")
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestHostFileRefusals(t *testing.T) {
	handler := `"customHandler":{"description":{"defaultExecutablePath":"handler"}}`
	for name, c := range map[string]struct {
		text     string
		settings map[string]string
		want     string
	}{
		"no JSON":        {`{`, nil, "host.json"},
		"no version":     {`{` + handler + `}`, nil, "missing the required 'version'"},
		"version 4.0":    {`{"version":"4.0",` + handler + `}`, nil, "'4.0' is an invalid value for 'version'"},
		"no handler":     {`{"version":"2.0"}`, nil, "customHandler.description is missing"},
		"no description": {`{"version":"2.0","customHandler":{}}`, nil, "customHandler.description is missing"},
		"no path": {
			`{"version":"2.0","customHandler":{"description":{}}}`, nil, "defaultExecutablePath cannot be empty",
		},
		"no such file": {
			`{"version":"2.0","customHandler":{"description":{"defaultExecutablePath":"no-such-program"}}}`, nil,
			"neither a file in the script root nor a program in PATH",
		},
		"not executable": {
			`{"version":"2.0","customHandler":{"description":{"defaultExecutablePath":"host.json"}}}`,
			nil, "is not executable",
		},
		"a zero timeout": {
			`{"version":"2.0","functionTimeout":"00:00:00",` + handler + `}`, nil, "functionTimeout",
		},
		"a timeout of words": {
			`{"version":"2.0","functionTimeout":"10m",` + handler + `}`, nil, `functionTimeout "10m"`,
		},
		"requests as they are": {
			strings.Replace(hostFile, `"customHandler":{`, `"customHandler":{"enableForwardingHttpRequest":true,`, 1),
			nil, "not implemented by this emulator",
		},
		"requests in a proxy": {
			strings.Replace(hostFile, `"customHandler":{`, `"customHandler":{"enableProxyingHttpRequest":true,`, 1),
			nil, "not implemented by this emulator",
		},
		"another worker": {
			hostFile, map[string]string{"FUNCTIONS_WORKER_RUNTIME": "node"}, `FUNCTIONS_WORKER_RUNTIME is "node"`,
		},
		"a file of another kind": {`{"version":2,` + handler + `}`, nil, "version"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRoot(t).file("host.json", c.text)
			b := prepare(t, r, newControl(t), newFakeClock(), with(func(o *Options) {
				for name, value := range c.settings {
					o.Settings[name] = value
				}
			}))
			require.ErrorContains(t, b.Start(t.Context()), c.want)
			require.ErrorIs(t, b.Wait(), ErrNotStarted)
		})
	}
	require.ErrorIs(t, New(Options{ScriptRoot: t.TempDir()}).Start(t.Context()), os.ErrNotExist)
}

func TestHostFile(t *testing.T) {
	r := newRoot(t).file("host.json",
		`{"version":"2.0","functionTimeout":"-1","extensions":{"http":{"routePrefix":"v1/"}},"logging":{"x":1},
		"customHandler":{"description":{"defaultExecutablePath":"sh","arguments":["%A%","%NOPE%"],"workingDirectory":"sub"}}}`)
	c, err := readHostConfig(r.dir, map[string]string{"A": "b"})
	require.NoError(t, err)
	require.Zero(t, c.functionTimeout, "-1 means unlimited")
	require.Equal(t, "v1", c.http.routePrefix)
	require.Equal(t, []string{"b", "%NOPE%"}, c.arguments)
	require.Equal(t, filepath.Join(r.dir, "sub"), c.workDir)
	require.True(t, filepath.IsAbs(c.executable), "found in PATH")
	c, err = readHostConfig(
		newRoot(t).file("host.json",
			`{"version":"2.0","customHandler":{"description":{"defaultExecutablePath":"handler"}}}`).dir, nil)
	require.NoError(t, err)
	require.Equal(t, 30*time.Minute, c.functionTimeout)
	require.Equal(t, "api", c.http.routePrefix)
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

func TestDisabledFunctions(t *testing.T) {
	b := start(t,
		newRoot(t).function("F", httpFunction).function("G",
			strings.Replace(httpFunction, "{", `{"disabled":true,`, 1)),
		with(func(o *Options) { o.Settings["AzureWebJobs.F.Disabled"] = "true" }))
	require.Equal(t, 2, b.count(FunctionDisabled))
	for _, path := range []string{"/api/F", "/api/G"} {
		code, _, _ := b.request("GET", path, nil)
		require.Equal(t, 404, code)
	}
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
