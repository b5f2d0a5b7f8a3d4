package main

import (
	"context"

	"sqlwriter/internal/config"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/run"
	"sqlwriter/internal/servicebus"
)

// runQueue opens the queue of the runs' messages. Without one a run is begun all the same: the timer sends its message.
func runQueue(from source) (queue run.Queue, closeFn func()) {
	name := from.setting(config.RunsQueue)
	if name == "" {
		return missingQueue{from.name}, func() {}
	}
	namespace, err := servicebus.Open(servicebus.Options{
		Connection:              from.setting(config.ServiceBusConnection),
		FullyQualifiedNamespace: from.setting(config.ServiceBusNamespace),
		ClientID:                from.setting(config.ServiceBusClientID),
	})
	if err != nil {
		return missingQueue{from.name}, func() {}
	}
	return namespace.Queue(name), namespace.Close
}

// missingQueue sends nothing.
type missingQueue struct{ source string }

// Send implements run.Queue.
func (m missingQueue) Send(_ context.Context, messages []run.Outgoing) []error {
	errs := make([]error, len(messages))
	for i := range errs {
		errs[i] = fault.New(fault.Infrastructure, "sqlwriterctl: queue", "settings", "%s names no Service Bus that can be used (%s, %s)",
			m.source, config.ServiceBusConnection, config.RunsQueue)
	}
	return errs
}
