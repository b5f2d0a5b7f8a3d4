package staging

import (
	"encoding/json"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/handlers"
	"sqlwriter/internal/config"
)

// With a wrong host.json or function.json the host runs no function, and at most logs a line. So these tests check the
// files against the host's rules (docs/facts.md).

const repository = "../../.."

// decode reads JSON. names_test.go checks the names.
func decode(t *testing.T, content []byte, to any) {
	t.Helper()
	require.NoError(t, json.Unmarshal(content, to))
}

// span is the host's hh:mm:ss.
func span(t *testing.T, text string) time.Duration {
	t.Helper()
	at, err := time.Parse(time.TimeOnly, text)
	require.NoError(t, err)
	return at.Sub(at.Truncate(24 * time.Hour))
}

func TestHostFile(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(repository, "host.json"))
	require.NoError(t, err)
	var host struct {
		Version, FunctionTimeout string
		Logging                  struct {
			LogLevel            map[string]string
			ApplicationInsights struct {
				SamplingSettings struct {
					IsEnabled     bool
					ExcludedTypes string
				}
			}
		}
		ExtensionBundle struct{ ID, Version string }
		Extensions      struct {
			HTTP struct {
				MaxConcurrentRequests, MaxOutstandingRequests int
				DynamicThrottlesEnabled                       *bool
			}
			ServiceBus struct {
				PrefetchCount              *int
				AutoCompleteMessages       bool
				MaxConcurrentCalls         int
				MaxAutoLockRenewalDuration string
			}
		}
		CustomHandler struct {
			Description struct{ DefaultExecutablePath string }
		}
	}
	decode(t, content, &host)
	require.Equal(t, "2.0", host.Version, "F34")
	require.Equal(t, "Microsoft.Azure.Functions.ExtensionBundle", host.ExtensionBundle.ID, "F34")
	require.Equal(t, "[4.*, 5.0.0)", host.ExtensionBundle.Version, "F34: the names of properties are those of 4.x")
	require.Equal(t, Binary, host.CustomHandler.Description.DefaultExecutablePath,
		"F31: only the zip entry exactly equal to it gets the x bit")

	timeout := span(t, host.FunctionTimeout)
	require.LessOrEqual(t, timeout, 10*time.Minute, "F24: the most of every plan")
	require.GreaterOrEqual(t, timeout, 2*handlers.DefaultDeadline,
		"F24: it kills every invocation, so ours end well before")

	for name, level := range host.Logging.LogLevel {
		require.Contains(t, []string{"Information", "Debug", "Trace"}, level, "F27: %s would hide our lines", name)
	}
	require.Contains(t, strings.Split(host.Logging.ApplicationInsights.SamplingSettings.ExcludedTypes, ";"), "Trace",
		"F27: sampling drops traces")

	http := host.Extensions.HTTP
	require.Equal(t, []int{100, 200}, []int{http.MaxConcurrentRequests, http.MaxOutstandingRequests},
		"F113: 100 bodies at once fit into the handler, and twenty clients leave Health its answer")
	require.NotNil(t, http.DynamicThrottlesEnabled)
	require.False(t, *http.DynamicThrottlesEnabled, "F113: under load it would refuse Health")
	bus := host.Extensions.ServiceBus
	require.True(t, bus.AutoCompleteMessages, "F51: a handler cannot complete a message itself")
	require.Greater(t, span(t, bus.MaxAutoLockRenewalDuration), handlers.DefaultDeadline,
		"F51: a lock lasts as long as an invocation")
	require.NotNil(t, bus.PrefetchCount)
	require.Zero(t, *bus.PrefetchCount, "F51: the locks of prefetched messages run while they wait")
}

// trigger has the properties of a trigger that are checked.
type trigger struct {
	Type, Direction, Name string
	Connection            string

	DatabaseName, ContainerName, LeaseContainerName, LeaseContainerPrefix string
	CreateLeaseContainerIfNotExists, StartFromBeginning                   bool
	MaxItemsPerInvocation, FeedPollDelay                                  int

	QueueName string

	AuthLevel, Route string
	Methods          []string

	Schedule   string
	UseMonitor bool
}

// function is a function.json.
type function struct {
	Bindings []json.RawMessage
	Retry    *struct {
		Strategy, DelayInterval string
		MaxRetryCount           int
	}
}

func TestFunctionFiles(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(repository, "functions", "*", "function.json"))
	require.NoError(t, err)
	require.Len(t, files, 9)
	for _, file := range files {
		t.Run(filepath.Base(filepath.Dir(file)), func(t *testing.T) {
			content, err := os.ReadFile(file)
			require.NoError(t, err)
			var f function
			decode(t, content, &f)
			require.NotEmpty(t, f.Bindings)
			var in trigger // the trigger
			decode(t, f.Bindings[0], &in)
			require.Equal(t, "in", in.Direction, "F1")
			require.NotEmpty(t, in.Name, "F1")
			checkSettings(t, f.Bindings[0])
			if in.Type != "cosmosDBTrigger" && in.Type != "timerTrigger" {
				require.Nil(t, f.Retry, "F43: it is not supported elsewhere")
			}
			if in.Type != "httpTrigger" {
				require.Len(t, f.Bindings, 1, "F1: one trigger and nothing else")
			}
			switch in.Type {
			case "cosmosDBTrigger":
				checkCosmos(t, f, in)
			case "serviceBusTrigger":
				require.Equal(t, "message", in.Name, "F52")
				require.Equal(t, config.ServiceBusConnection, in.Connection, "F52")
				queue := strings.TrimSuffix(in.QueueName, "/$DeadLetterQueue")
				require.Contains(t, []string{"%" + config.RunsQueue + "%", "%" + config.BatchesQueue + "%"}, queue,
					"docs/requirements.md R14: everything shared carries the environment")
			case "httpTrigger":
				require.NotEmpty(t, in.AuthLevel, "the default is a function key; the file says who may call")
				require.NotEmpty(t, in.Route)
				require.NotEmpty(t, in.Methods)
				require.Len(t, f.Bindings, 2)
				require.JSONEq(t, `{"type": "http", "direction": "out", "name": "res"}`, string(f.Bindings[1]),
					"F19: the reply goes through it")
			case "timerTrigger":
				require.NotEmpty(t, in.Schedule)
			default:
				t.Errorf("no trigger of ours: %q", in.Type)
			}
		})
	}
}

func checkCosmos(t *testing.T, f function, in trigger) {
	t.Helper()
	require.NotNil(t, f.Retry, "F43: without retry a failed batch is lost to the trigger")
	require.Equal(t, []any{"fixedDelay", -1, "00:00:10"},
		[]any{f.Retry.Strategy, f.Retry.MaxRetryCount, f.Retry.DelayInterval}, "F43")
	require.Equal(t, config.CosmosConnection, in.Connection)
	require.NotEmpty(t, in.DatabaseName)
	require.NotEmpty(t, in.ContainerName)
	require.Equal(t, "%"+config.LeasePrefix+"%", in.LeaseContainerPrefix,
		"F39: two environments with one prefix split the changes")
	require.Equal(t, "%"+config.LeaseContainer+"%", in.LeaseContainerName,
		"F40: leases do not stand in the monitored container")
	require.False(t, in.CreateLeaseContainerIfNotExists, "F40: an identity cannot create it")
	require.True(t, in.StartFromBeginning, "F38: what was there before the leases is seen too")
	require.Equal(t, 100, in.MaxItemsPerInvocation, "F28: 100 documents of 1 MB are more than 100 MB in one POST")
	require.Equal(t, 1000, in.FeedPollDelay)
}

// checkSettings checks that the settings of a binding are in the table. The host knows no defaults, and its indexing
// fails for an unset one (F35).
func checkSettings(t *testing.T, binding json.RawMessage) {
	t.Helper()
	var properties map[string]any
	require.NoError(t, json.Unmarshal(binding, &properties))
	for name, value := range properties {
		text, _ := value.(string)
		if name != "connection" && !strings.HasPrefix(text, "%") {
			continue
		}
		// %BATCHES_QUEUE%/$DeadLetterQueue names one, too
		setting, _, _ := strings.Cut(strings.TrimPrefix(text, "%"), "%")
		require.True(t, slices.ContainsFunc(config.Settings(), func(s config.Setting) bool {
			return s.Name == setting && s.Host && s.Sample != ""
		}), "%s is no setting that must be set and stands in the sample", setting)
	}
}

// .funcignore excludes no file of a staged root, not even a deployment's own mapping (F32).
func TestFuncignoreLeavesTheRootWhole(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(repository, ".funcignore"))
	require.NoError(t, err)
	needed := []string{Binary, "function.json"}
	for name := range maps.Keys(copied()) {
		if name != "local.settings.json" { // func excludes it by itself
			needed = append(needed, name)
		}
	}
	folders, err := os.ReadDir(filepath.Join(repository, "functions"))
	require.NoError(t, err)
	for _, folder := range folders {
		needed = append(needed, folder.Name())
	}
	for line := range strings.Lines(string(text)) {
		for _, name := range needed {
			match, err := path.Match(strings.Trim(strings.TrimSpace(line), "/"), name)
			require.NoError(t, err)
			require.False(t, match, "%q leaves out %s", line, name)
		}
	}
}
