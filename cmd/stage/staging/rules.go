package staging

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"sqlwriter/handlers"
	"sqlwriter/internal/config"
)

// rule is one thing that the host wants, usually without ever saying so.
type rule struct {
	name, source string
	// broken says how a root breaks the rule, "" when it does not.
	broken func(r *root) string
}

// rules are the table, those for the root first, then those for each function's folder.
func rules() []rule {
	return append(rootRules(), functionRules()...)
}

func rootRules() []rule {
	host := func(f func(h object) string) func(*root) string { return func(r *root) string { return f(r.host) } }
	return []rule{
		{"host.version", "docs/facts.md F34", host(func(h object) string {
			return want(h.text("version"), "2.0")
		})},
		{"host.bundle", "docs/facts.md F34", host(func(h object) string {
			b := h.object("extensionBundle")
			return first(
				want(b.text("id"), "Microsoft.Azure.Functions.ExtensionBundle"),
				want(b.text("version"), "[4.*, 5.0.0)"), // 4.x property names need extension 4.x
			)
		})},
		{"host.executable", "docs/facts.md F31: only the zip entry exactly equal to it gets the x bit", func(r *root) string {
			return want(r.host.object("customHandler").object("description").text("defaultExecutablePath"), Binary)
		}},
		{"host.executable_there", "docs/facts.md F31: otherwise the host looks in PATH", func(r *root) string {
			info, err := fs.Stat(r.files, Binary)
			if err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
				return "no executable file " + Binary
			}
			return ""
		}},
		{"host.no_forwarding", "docs/facts.md F14: http functions would get the bare request, and no Outputs.res", host(func(h object) string {
			c := h.object("customHandler")
			if c.truth("enableForwardingHttpRequest") || c.truth("enableProxyingHttpRequest") {
				return "requests are forwarded"
			}
			return ""
		})},
		{
			"host.no_routes", "docs/facts.md F14: customHandler.http throws beside any function.json, a fixed port forces sequential restarts",
			host(func(h object) string { return h.object("customHandler").hasNone("http", "port") }),
		},
		{"host.no_http_worker", "docs/facts.md F14: the section's old name switches forwarding on", host(func(h object) string {
			return h.hasNone("httpWorker")
		})},
		{
			"host.timeout", "docs/facts.md F24: one timeout kills every invocation, so ours ends well before it; 10 min is the most of every plan",
			host(func(h object) string {
				d, ok := span(h.text("functionTimeout"))
				if !ok || d > 10*time.Minute || d < 2*handlers.DefaultDeadline {
					return "functionTimeout " + h.text("functionTimeout") + ": expected 00:08:00 to 00:10:00"
				}
				return ""
			}),
		},
		{"host.log_level", "docs/facts.md F27: the filters apply to our lines", host(func(h object) string {
			levels := h.object("logging").object("logLevel")
			for name := range levels {
				if !slices.Contains([]string{"Information", "Debug", "Trace"}, levels.text(name)) {
					return name + " hides our lines"
				}
			}
			return ""
		})},
		{"host.sampling", "docs/facts.md F27: sampling is on by default and can drop traces", host(func(h object) string {
			s := h.object("logging").object("applicationInsights").object("samplingSettings")
			if _, set := s["isEnabled"]; set && !s.truth("isEnabled") {
				return ""
			}
			if !slices.Contains(strings.Split(s.text("excludedTypes"), ";"), "Trace") {
				return "traces are sampled: expected Trace among excludedTypes"
			}
			return ""
		})},
		{
			"host.service_bus", "docs/facts.md F51: a handler cannot complete a message itself, a lock must last as long as an invocation, and prefetched messages' locks run while they wait",
			host(func(h object) string {
				s := h.object("extensions").object("serviceBus")
				if _, set := s["autoCompleteMessages"]; set && !s.truth("autoCompleteMessages") {
					return "autoCompleteMessages: expected true"
				}
				if d, ok := span(s.text("maxAutoLockRenewalDuration")); !ok || d <= handlers.DefaultDeadline {
					return "maxAutoLockRenewalDuration " + s.text("maxAutoLockRenewalDuration") + ": expected more than the handlers' own deadline"
				}
				return want(s.text("prefetchCount"), "0")
			}),
		},
		{"root.functions", "docs/facts.md F30: folders are direct children; none found is only a log line", func(r *root) string {
			if len(r.functions) == 0 {
				return "no folder with a function.json"
			}
			nested, err := fs.Glob(r.files, "*/*/function.json")
			if err != nil || len(nested) > 0 {
				return "function folders that are not direct children"
			}
			return ""
		}},
		{"root.funcignore", "docs/facts.md F32: .funcignore is honoured", func(r *root) string {
			text, err := fs.ReadFile(r.files, ".funcignore")
			if errors.Is(err, fs.ErrNotExist) {
				return ""
			}
			for line := range strings.Lines(string(text)) {
				line = strings.TrimSpace(line)
				for _, needed := range append([]string{Binary, "host.json", "function.json", ColumnNames}, r.names()...) {
					if match, _ := path.Match(strings.Trim(line, "/"), needed); match {
						return "it leaves out " + needed
					}
				}
			}
			return ""
		}},
	}
}

func functionRules() []rule {
	return []rule{
		{"function.trigger", "docs/facts.md F1", each(func(f function) string {
			triggers := 0
			for _, b := range f.bindings {
				if strings.HasSuffix(b.text("type"), "Trigger") {
					triggers++
					if b.text("direction") != "in" || b.text("name") == "" {
						return "the trigger needs direction in and a name"
					}
				}
			}
			if triggers != 1 {
				return "expected exactly one trigger"
			}
			return ""
		})},
		{"function.no_script", "docs/facts.md F33: a custom handler has no script file; a disabled function belongs in the app settings", each(func(f function) string {
			return f.config.hasNone("scriptFile", "entryPoint", "disabled")
		})},
		{"function.settings", "docs/facts.md F35: an unset %NAME% fails the indexing, there are no defaults", each(func(f function) string {
			return unknownSetting(f)
		})},
		{"function.retry", "docs/facts.md F43: without retry a failed batch is lost to the trigger; elsewhere retry is not supported", each(func(f function) string {
			retry := f.config.object("retry")
			if _, cosmos := f.trigger("cosmosDBTrigger"); !cosmos {
				return f.config.hasNone("retry")
			}
			return first(
				want(retry.text("strategy"), "fixedDelay"), want(retry.text("maxRetryCount"), "-1"),
				want(retry.text("delayInterval"), "00:00:10"),
			)
		})},
		{"cosmos.known_properties", "docs/facts.md F37: 3.x names and misspelt ones are silently wrong", cosmos(func(b object) string {
			for name := range b {
				if !slices.Contains(cosmosProperties(), name) {
					return "no property of extension 4.x: " + name
				}
			}
			for _, name := range []string{"connection", "databaseName", "containerName", "leaseContainerName"} {
				if b.text(name) == "" {
					return name + " is missing"
				}
			}
			return ""
		})},
		{"cosmos.no_cardinality", "docs/facts.md F6: cardinality (or a dataType) becomes the feed's element type and every batch fails", cosmos(func(b object) string {
			return b.hasNone("cardinality", "dataType")
		})},
		{"cosmos.lease_prefix", "docs/facts.md F39: two environments with one prefix split the changes between them", cosmos(func(b object) string {
			return want(b.text("leaseContainerPrefix"), "%"+config.LeasePrefix+"%")
		})},
		{"cosmos.lease_container", "docs/facts.md F40: an identity cannot create it (403/5300), and it is not the monitored one", cosmos(func(b object) string {
			if b.truth("createLeaseContainerIfNotExists") {
				return "createLeaseContainerIfNotExists: expected false"
			}
			if b.text("leaseContainerName") == b.text("containerName") {
				return "leases in the monitored container"
			}
			return ""
		})},
		{"cosmos.start", "docs/facts.md F38: what was there before the leases must be seen; startFromBeginning and startFromTime exclude each other", cosmos(func(b object) string {
			if !b.truth("startFromBeginning") {
				return "startFromBeginning: expected true"
			}
			return b.hasNone("startFromTime")
		})},
		{"cosmos.batch", "docs/facts.md F28: 100 documents of 1 MB are more than 100 MB in one POST", cosmos(func(b object) string {
			return first(want(b.text("maxItemsPerInvocation"), "100"), want(b.text("feedPollDelay"), "1000"))
		})},
		{"servicebus.properties", "docs/facts.md F52: one message for each invocation, completed by the host; cardinality and sessions settle them otherwise", each(func(f function) string {
			b, ok := f.trigger("serviceBusTrigger")
			if !ok {
				return ""
			}
			for name := range b {
				if !slices.Contains([]string{"type", "direction", "name", "queueName", "connection"}, name) {
					return "a property that is not for us: " + name
				}
			}
			return first(want(b.text("name"), "message"), want(b.text("connection"), config.ServiceBusConnection))
		})},
		{"servicebus.queue", "docs/requirements.md R14: everything shared carries the environment, so the queue's name is a setting", each(func(f function) string {
			b, ok := f.trigger("serviceBusTrigger")
			if !ok {
				return ""
			}
			for _, setting := range []string{config.RunsQueue, config.BatchesQueue} {
				if rest, found := strings.CutPrefix(b.text("queueName"), "%"+setting+"%"); found && (rest == "" || rest == "/$DeadLetterQueue") {
					return ""
				}
			}
			return "queueName " + b.text("queueName") + ": expected one of ours, or its dead-letter queue"
		})},
		{"http.output", "docs/facts.md F19: without forwarding the reply goes through the output binding that handlers names res", http(func(b object, f function) string {
			for _, o := range f.bindings {
				if o.text("type") == "http" && o.text("direction") == "out" && o.text("name") == "res" {
					return ""
				}
			}
			return "no http output binding named res"
		})},
		{"http.auth_level", "the default is a function key; who may call is said in the open", http(func(b object, _ function) string {
			if b.text("authLevel") == "" || b.text("route") == "" || len(b.list("methods")) == 0 {
				return "expected authLevel, route and methods"
			}
			return ""
		})},
	}
}

// cosmosProperties are those of CosmosDBTriggerAttribute in extension 4.x, and a binding's own.
func cosmosProperties() []string {
	return []string{
		"type", "direction", "name", "dataType", "cardinality", "connection", "databaseName", "containerName", "leaseConnection",
		"leaseDatabaseName", "leaseContainerName", "createLeaseContainerIfNotExists", "leasesContainerThroughput",
		"leaseContainerPrefix", "feedPollDelay", "leaseAcquireInterval", "leaseExpirationInterval", "leaseRenewInterval",
		"maxItemsPerInvocation", "startFromBeginning", "startFromTime", "preferredLocations",
	}
}

// unknownSetting finds a setting that a function names and the table does not have, or that may stay unset.
func unknownSetting(f function) string {
	for _, b := range f.bindings {
		for name := range b {
			text := b.text(name)
			if name != "connection" && !strings.HasPrefix(text, "%") {
				continue
			}
			setting, _, _ := strings.Cut(strings.TrimPrefix(text, "%"), "%") // %BATCHES_QUEUE%/$DeadLetterQueue names one, too
			i := slices.IndexFunc(config.Settings(), func(s config.Setting) bool { return s.Name == setting })
			if i < 0 || !config.Settings()[i].Host || config.Settings()[i].Sample == "" {
				return setting + " is no setting that must be set and stands in the sample"
			}
		}
	}
	return ""
}
