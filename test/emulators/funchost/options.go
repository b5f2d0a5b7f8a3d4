package funchost

import (
	"maps"
	"os"
	"time"

	"github.com/rs/zerolog"
)

// Version is the host version that the handler sees in X-Azure-Functions-HostVersion and User-Agent: that of the
// release whose posts and replies testdata records.
const Version = "4.1037.0.0"

// Options say what to host and how. Only ScriptRoot is required.
type Options struct {
	// ScriptRoot is the staged folder: host.json, the executable, one folder per function.
	ScriptRoot string
	// Settings are the app settings. The handler gets each as an environment variable, and %NAME% in a function.json is
	// looked up here and nowhere else, so that a forgotten setting shows.
	Settings map[string]string
	// Listen is the address of the host's own HTTP server; empty means 127.0.0.1 and a free port.
	Listen string
	// Log gets the host's lines and the handler's console lines (category Host.Function.Console).
	Log zerolog.Logger
	// Clock is the host's time; nil means the wall clock.
	Clock Clock
	// Zone is the host's local time zone: offsets in dates of a Cosmos payload are moved to it, and schedules run in
	// it. Nil means UTC, as in Azure.
	Zone *time.Location
	// Keys guard HTTP functions and the host's admin paths.
	Keys Keys
	// HostID names the host in the paths of timer blobs; empty means "funchost".
	HostID string
	// Instance names this host as a lease owner. Empty means a new name per start, as the real extension has it: the
	// leases of a killed host then stay taken until they expire. With a fixed name a restarted host takes them at once.
	Instance string
	// Env is the environment the handler inherits beneath the settings; nil means this process's.
	Env []string
	// OnEvent, if set, is called for every event, in order, and must not call the host.
	OnEvent func(Event)
	// OnConsole, if set, is called for every line the handler prints.
	OnConsole func(ConsoleLine)
	// Tune shortens intervals. It is for tests and local stacks: zero values mean the host's own.
	Tune Tune
}

// Keys are the access keys (authLevel). An empty key never matches.
type Keys struct {
	// Master opens everything, admin paths included.
	Master string
	// Host opens every function of authLevel function.
	Host string
	// Named are further keys like Host, by name.
	Named map[string]string
	// Functions opens one function each, by name.
	Functions map[string]string
}

// Tune overrides intervals. Zero keeps the host's own value (for leases and feed: that of function.json).
type Tune struct {
	// ReadyPoll is the pause between two readiness probes (host: 25 ms), InitializationTimeout how long they go on (30
	// s). Both are wall time: what they wait for is a process.
	ReadyPoll, InitializationTimeout time.Duration
	// StopTimeout is how long Stop waits for running invocations before the handler is killed (host: 10 s), wall time.
	StopTimeout time.Duration
	// Schedules replaces the schedule of a timerTrigger, by the function's name.
	Schedules map[string]string
	// ServiceBusRetry replaces the first pause of the Service Bus client before it reports an error.
	ServiceBusRetry time.Duration
	// FeedPoll, LeaseAcquire, LeaseExpiration and LeaseRenew replace the values of every cosmosDBTrigger.
	FeedPoll, LeaseAcquire, LeaseExpiration, LeaseRenew time.Duration
}

// PlainEnv is the little of this process's environment that any program needs (PATH, HOME, TMPDIR). With it as Env a
// setting that the deployment forgot is missed here too, instead of being found in a developer's shell.
func PlainEnv() []string {
	env := []string{}
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "SYSTEMROOT"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// ConsoleLine is one line that the handler printed, as the host logs it (docs/facts.md F26): stdout is Information;
// stderr is Error, or Warning when the line contains "warn".
type ConsoleLine struct {
	Level zerolog.Level
	Text  string
}

// withDefaults fills what was left open. The caller's maps are copied: the host outlives the call.
func (o Options) withDefaults() Options {
	o.Settings = maps.Clone(o.Settings)
	o.Keys.Functions = maps.Clone(o.Keys.Functions)
	o.Tune.Schedules = maps.Clone(o.Tune.Schedules)
	if o.Listen == "" {
		o.Listen = "127.0.0.1:0"
	}
	if o.Clock == nil {
		o.Clock = systemClock{}
	}
	if o.Zone == nil {
		o.Zone = time.UTC
	}
	if o.HostID == "" {
		o.HostID = "funchost"
	}
	if o.Env == nil {
		o.Env = os.Environ()
	}
	o.Tune.ReadyPoll = orDefault(o.Tune.ReadyPoll, 25*time.Millisecond)
	o.Tune.InitializationTimeout = orDefault(o.Tune.InitializationTimeout, 30*time.Second)
	o.Tune.StopTimeout = orDefault(o.Tune.StopTimeout, 10*time.Second)
	return o
}

func orDefault(d, fallback time.Duration) time.Duration {
	if d == 0 {
		return fallback
	}
	return d
}
