package staging

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// source is a script root made of the repository's own files and a binary that is only a name.
func source(t *testing.T) fstest.MapFS {
	t.Helper()
	files := fstest.MapFS{Binary: {Mode: 0o755}}
	add := func(name, from string) {
		content, err := os.ReadFile(filepath.Join("..", "..", "..", from))
		require.NoError(t, err)
		files[name] = &fstest.MapFile{Data: content, Mode: 0o644}
	}
	add("host.json", "host.json")
	add(".funcignore", ".funcignore")
	functions, err := filepath.Glob("../../../functions/*/function.json")
	require.NoError(t, err)
	require.NotEmpty(t, functions)
	for _, path := range functions {
		name := filepath.Base(filepath.Dir(path))
		add(name+"/function.json", filepath.Join("functions", name, "function.json"))
	}
	return files
}

func TestTheRepositorysFunctionsKeepEveryRule(t *testing.T) {
	require.NoError(t, Check(source(t)))
}

// change replaces a text in a file, which must have it.
func change(file, from, to string) func(*testing.T, fstest.MapFS) {
	return func(t *testing.T, files fstest.MapFS) {
		t.Helper()
		text := string(files[file].Data)
		require.Contains(t, text, from)
		files[file] = &fstest.MapFile{Data: []byte(strings.Replace(text, from, to, 1)), Mode: 0o644}
	}
}

const (
	hostFile   = "host.json"
	commitFile = "CommitResults/function.json"
	healthFile = "Health/function.json"
	workerFile = "BatchWorker/function.json"
	letterFile = "RunDeadLetter/function.json"
)

// Every rule has at least one mutation that it alone finds.
func mutations() []struct {
	rule   string
	mutate func(*testing.T, fstest.MapFS)
} {
	timer := `{"bindings":[{"type":"timerTrigger","direction":"in","name":"timer","schedule":"0 */5 * * * *"}],"retry":{"strategy":"fixedDelay"}}`
	return []struct {
		rule   string
		mutate func(*testing.T, fstest.MapFS)
	}{
		{"host.version", change(hostFile, `"version": "2.0"`, `"version": "1.0"`)},
		{"host.bundle", change(hostFile, `[4.*, 5.0.0)`, `[3.*, 4.0.0)`)},
		{"host.bundle", change(hostFile, `ExtensionBundle"`, `ExtensionBundle.Preview"`)},
		{"host.executable", change(hostFile, `"defaultExecutablePath": "handler"`, `"defaultExecutablePath": "./handler"`)},
		{"host.executable_there", func(_ *testing.T, f fstest.MapFS) { delete(f, Binary) }},
		{"host.executable_there", func(_ *testing.T, f fstest.MapFS) { f[Binary] = &fstest.MapFile{Mode: 0o644} }},
		{"host.no_forwarding", change(hostFile, `"description"`, `"enableForwardingHttpRequest": true, "description"`)},
		{"host.no_forwarding", change(hostFile, `"description"`, `"enableProxyingHttpRequest": true, "description"`)},
		{"host.no_routes", change(hostFile, `"description"`, `"http": {"routes": []}, "description"`)},
		{"host.no_routes", change(hostFile, `"description"`, `"port": 8080, "description"`)},
		{"host.no_http_worker", change(hostFile, `"customHandler"`, `"httpWorker": {}, "customHandler"`)},
		{"host.timeout", change(hostFile, `00:10:00`, `00:04:00`)},
		{"host.timeout", change(hostFile, `00:10:00`, `00:30:00`)},
		{"host.timeout", change(hostFile, `"functionTimeout": "00:10:00",`, ``)},
		{"host.log_level", change(hostFile, `"Information"`, `"Warning"`)},
		{"host.sampling", change(hostFile, `;Trace`, ``)},
		{"root.functions", func(_ *testing.T, f fstest.MapFS) {
			f["functions/"+commitFile] = f[commitFile]
			delete(f, commitFile)
		}},
		{"root.functions", func(_ *testing.T, f fstest.MapFS) {
			maps.DeleteFunc(f, func(name string, _ *fstest.MapFile) bool { return strings.HasSuffix(name, "/function.json") })
		}},
		{"root.funcignore", change(".funcignore", `*.log`, `h*`)},
		{"root.funcignore", change(".funcignore", `*.log`, `/Health/`)},
		{"root.funcignore", change(".funcignore", `*.log`, `column-*.json`)},
		{"function.trigger", change(healthFile, `"httpTrigger"`, `"http"`)},
		{"function.trigger", change(commitFile, `"name": "documents",`, ``)},
		{"function.no_script", change(commitFile, `"bindings"`, `"scriptFile": "x", "bindings"`)},
		{"function.no_script", change(commitFile, `"bindings"`, `"disabled": false, "bindings"`)},
		{"function.settings", change(commitFile, `%COSMOS_DATABASE%`, `%COSMOS_DB%`)},
		{"function.settings", change(commitFile, `"COSMOS_CONNECTION"`, `"CosmosConnection"`)},
		{"function.settings", change(commitFile, `%COSMOS_DATABASE%`, `%TIME_ZONE%`)},
		{"function.retry", change(commitFile, `-1`, `5`)},
		{"function.retry", change(commitFile, `00:00:10`, `00:00:01`)},
		{"function.retry", change(commitFile, `fixedDelay`, `exponentialBackoff`)},
		{"function.retry", func(_ *testing.T, f fstest.MapFS) {
			f["Tick/function.json"] = &fstest.MapFile{Data: []byte(timer), Mode: 0o644}
		}},
		{"cosmos.known_properties", change(commitFile, `"containerName"`, `"collectionName"`)},
		{"cosmos.known_properties", change(commitFile, `"connection"`, `"connectionStringSetting"`)},
		{"cosmos.known_properties", change(commitFile, `"feedPollDelay": 1000,`, `"feedPollDelay": 1000, "maxItemPerInvocation": 1,`)},
		{"cosmos.no_cardinality", change(commitFile, `"direction"`, `"cardinality": "many", "direction"`)},
		{"cosmos.no_cardinality", change(commitFile, `"direction"`, `"dataType": "string", "direction"`)},
		{"cosmos.lease_prefix", change(commitFile, `"leaseContainerPrefix": "%LEASE_PREFIX%",`, ``)},
		{"cosmos.lease_prefix", change(commitFile, `%LEASE_PREFIX%`, `web-`)},
		{"cosmos.lease_container", change(commitFile, `"createLeaseContainerIfNotExists": false`, `"createLeaseContainerIfNotExists": true`)},
		{"cosmos.lease_container", change(commitFile, `%LEASE_CONTAINER%`, `%COSMOS_CONTAINER%`)},
		{"cosmos.start", change(commitFile, `"startFromBeginning": true`, `"startFromBeginning": false`)},
		{"cosmos.start", change(commitFile, `"startFromBeginning": true`, `"startFromBeginning": true, "startFromTime": "2026-01-01T00:00:00Z"`)},
		{"cosmos.batch", change(commitFile, `"maxItemsPerInvocation": 100`, `"maxItemsPerInvocation": 1000`)},
		{"cosmos.batch", change(commitFile, `"feedPollDelay": 1000,`, ``)},
		{"host.service_bus", change(hostFile, `"autoCompleteMessages": true`, `"autoCompleteMessages": false`)},
		{"host.service_bus", change(hostFile, `00:05:00`, `00:04:00`)},
		{"host.service_bus", change(hostFile, `"maxAutoLockRenewalDuration"`, `"maxAutoRenewDuration"`)},
		{"host.service_bus", change(hostFile, `"prefetchCount": 0`, `"prefetchCount": 10`)},
		{"function.retry", change(workerFile, `"bindings"`, `"retry": {"strategy": "fixedDelay"}, "bindings"`)},
		{"servicebus.properties", change(workerFile, `"name": "message"`, `"name": "msg"`)},
		{"servicebus.properties", change(workerFile, `"direction"`, `"cardinality": "many", "direction"`)},
		{"servicebus.properties", change(workerFile, `"direction"`, `"autoCompleteMessages": false, "direction"`)},
		{"servicebus.properties", change(letterFile, `"SERVICEBUS_CONNECTION"`, `"COSMOS_CONNECTION"`)},
		{"servicebus.queue", change(workerFile, `%BATCHES_QUEUE%`, `sqlwriter-web-batches`)},
		{"servicebus.queue", change(workerFile, `%BATCHES_QUEUE%`, `%COSMOS_DATABASE%`)},
		{"servicebus.queue", change(letterFile, `/$DeadLetterQueue`, `/$DeadletterQueue`)},
		{"http.output", change(healthFile, `"name": "res"`, `"name": "$return"`)},
		{"http.auth_level", change(healthFile, `"authLevel": "anonymous",`, ``)},
		{"http.auth_level", change(healthFile, `"route": "health"`, `"route": ""`)},
	}
}

func TestEveryRuleBites(t *testing.T) {
	bitten := map[string]bool{}
	for _, m := range mutations() {
		files := source(t)
		m.mutate(t, files)
		var found *Violations
		require.ErrorAs(t, Check(files), &found, m.rule)
		require.Equal(t, m.rule, (*found)[0].Rule, found.Error())
		require.Len(t, *found, 1, found.Error())
		bitten[m.rule] = true
	}
	for _, r := range rules() {
		require.True(t, bitten[r.name], "no mutation for %s", r.name)
		require.NotEmpty(t, r.source, r.name)
	}
}

func TestFilesThatAreNoJSONAreNamed(t *testing.T) {
	for _, name := range []string{hostFile, commitFile} {
		files := source(t)
		files[name] = &fstest.MapFile{Data: []byte(`[]`)}
		require.ErrorContains(t, Check(files), name)
		delete(files, hostFile)
		err := Check(files)
		require.True(t, errors.Is(err, fs.ErrNotExist), "%v", err)
	}
}
