package staging

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// members are the names that the host reads at one place of host.json or function.json, with the source. It ignores
// others without a word (docs/facts.md F108).
type members struct{ source, names string }

// hostMembers are the members of host.json, by the path of their object. An object that is not in the table has names
// of the user. Left out on purpose: members of customHandler that hand HTTP functions the bare request, and httpWorker
// (F14).
func hostMembers() map[string]members {
	const reference = "learn.microsoft.com/azure/azure-functions/functions-host-json"
	return map[string]members{
		"": {
			"azure-functions-host HostJsonFileConfigurationSource.cs, WellKnownHostJsonProperties; names of version 1.0 are left out",
			"version functionTimeout functions watchDirectories watchFiles singleton logging aggregator healthMonitor extensionBundle " +
				"customHandler extensions concurrency retry sendCanceledInvocationsToWorker telemetryMode",
		},
		"logging": {reference, "logLevel applicationInsights console fileLoggingMode"},
		"logging.applicationInsights": {
			reference,
			"samplingSettings enableLiveMetrics enableDependencyTracking enablePerformanceCountersCollection httpAutoCollectionOptions snapshotConfiguration liveMetricsInitializationDelay dependencyTrackingOptions",
		},
		"logging.applicationInsights.samplingSettings": {
			reference,
			"isEnabled maxTelemetryItemsPerSecond evaluationInterval initialSamplingPercentage samplingPercentageIncreaseTimeout " +
				"samplingPercentageDecreaseTimeout minSamplingPercentage maxSamplingPercentage movingAverageRatio excludedTypes includedTypes",
		},
		"extensionBundle": {
			"azure-functions-host ExtensionBundleOptions.cs", "id version downloadPath ensureLatest",
		},
		"extensions": {"the names that the extensions register with", "cosmosDB http serviceBus"},
		"extensions.cosmosDB": {
			"azure-webjobs-sdk-extensions CosmosDBOptions.cs", "connectionMode userAgentSuffix",
		},
		"extensions.http": {
			"azure-webjobs-sdk-extensions HttpOptions.cs",
			"routePrefix maxOutstandingRequests maxConcurrentRequests dynamicThrottlesEnabled hsts customHeaders",
		},
		"extensions.serviceBus": {
			"azure-sdk-for-net ServiceBusOptions.cs",
			"prefetchCount clientRetryOptions transportType webProxy autoCompleteMessages maxAutoLockRenewalDuration maxConcurrentCalls maxConcurrentSessions maxMessages sessionIdleTimeout",
		},
		"customHandler": {"azure-functions-host HttpWorkerOptions.cs", "description initializationTimeout"},
		"customHandler.description": {
			"azure-functions-host HttpWorkerDescription.cs, WorkerDescription.cs",
			"defaultExecutablePath workingDirectory arguments",
		},
	}
}

// bindingMembers are the members of a binding, by its type. Left out on purpose: cardinality and dataType, which make
// batches fail (F6, F52), and names of the Cosmos DB extension 3.x (F37).
func bindingMembers() map[string]members {
	const every = " type direction name" // azure-functions-host BindingMetadata.cs
	return map[string]members{
		"cosmosDBTrigger": {
			"azure-webjobs-sdk-extensions CosmosDBTriggerAttribute.cs",
			"connection containerName databaseName leaseConnection leaseContainerName leaseDatabaseName createLeaseContainerIfNotExists " +
				"leasesContainerThroughput leaseContainerPrefix feedPollDelay leaseRenewInterval leaseAcquireInterval leaseExpirationInterval " +
				"maxItemsPerInvocation startFromBeginning startFromTime preferredLocations" + every,
		},
		"serviceBusTrigger": {
			"azure-sdk-for-net ServiceBusTriggerAttribute.cs",
			"connection queueName topicName subscriptionName isSessionsEnabled autoCompleteMessages" + every,
		},
		"httpTrigger": {"azure-webjobs-sdk-extensions HttpTriggerAttribute.cs", "route methods authLevel" + every},
		"http":        {"azure-functions-host BindingMetadata.cs", every},
		"timerTrigger": {
			"azure-functions-host CoreExtensionsScriptBindingProvider.cs", "schedule runOnStartup useMonitor" + every,
		},
	}
}

// functionMembers are the members of function.json and of its retry. Left out on purpose: scriptFile and entryPoint,
// because a custom handler has no script, and disabled, which belongs in the app settings (F33).
func functionMembers() map[string]members {
	return map[string]members{
		"": {"azure-functions-host HostFunctionMetadataProvider.cs", "bindings retry"},
		"retry": {
			"azure-functions-host RetryOptions.cs",
			"strategy maxRetryCount delayInterval minimumInterval maximumInterval",
		},
	}
}

// unknown lists the members of an object, and of those below it, that the table does not have.
func unknown(t *testing.T, table map[string]members, path string, object json.RawMessage) (found []string) {
	t.Helper()
	known, checked := table[path]
	var all map[string]json.RawMessage
	if !checked || json.Unmarshal(object, &all) != nil {
		return nil
	}
	for name, value := range all {
		below := strings.TrimPrefix(path+"."+name, ".")
		if !slices.Contains(strings.Fields(known.names), name) {
			found = append(found, below)
		}
		found = append(found, unknown(t, table, below, value)...)
	}
	slices.Sort(found)
	return found
}

// unknownInFunction is unknown for a function.json.
func unknownInFunction(t *testing.T, content []byte) []string {
	t.Helper()
	found := unknown(t, functionMembers(), "", content)
	var f struct{ Bindings []json.RawMessage }
	require.NoError(t, json.Unmarshal(content, &f))
	for _, binding := range f.Bindings {
		var b struct{ Type string }
		require.NoError(t, json.Unmarshal(binding, &b))
		table := bindingMembers()
		if _, set := table[b.Type]; !set {
			found = append(found, "type "+b.Type)
			continue
		}
		found = append(found, unknown(t, map[string]members{"": table[b.Type]}, "", binding)...)
	}
	return found
}

func TestTheHostKnowsEveryNameOfItsFiles(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(repository, "host.json"))
	require.NoError(t, err)
	require.Empty(t, unknown(t, hostMembers(), "", content))
	files, err := filepath.Glob(filepath.Join(repository, "functions", "*", "function.json"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Empty(t, unknownInFunction(t, content), file)
	}
}

func TestANameThatTheHostIgnoresIsFound(t *testing.T) {
	require.Equal(t,
		[]string{
			"customHandler.description.defaultExecutable",
			"extensions.serviceBus.maxConcurrentcalls", "functiontimeout",
		},
		unknown(t, hostMembers(), "",
			json.RawMessage(`{"functiontimeout": "00:10:00", "logging": {"logLevel": {"Host.Results": "Error"}},
			"extensions": {"serviceBus": {"maxConcurrentcalls": 1}}, "customHandler": {"description": {"defaultExecutable": "handler"}}}`)))
	for name, content := range map[string]string{
		"disabled":           `{"disabled": true, "bindings": []}`,
		"retry.maxRetries":   `{"retry": {"maxRetries": 1}, "bindings": []}`,
		"collectionName":     `{"bindings": [{"type": "cosmosDBTrigger", "collectionName": "c"}]}`,
		"cardinality":        `{"bindings": [{"type": "cosmosDBTrigger", "cardinality": "many"}]}`,
		"queueName":          `{"bindings": [{"type": "timerTrigger", "queueName": "q"}]}`,
		"type eventTrigger":  `{"bindings": [{"type": "eventTrigger"}]}`,
		"route":              `{"bindings": [{"type": "http", "route": "r"}]}`,
		"maxConcurrentCalls": `{"bindings": [{"type": "serviceBusTrigger", "maxConcurrentCalls": 1}]}`,
	} {
		require.Equal(t, []string{name}, unknownInFunction(t, []byte(content)))
	}
}
