package main

import (
	"context"

	"sqlwriter/internal/app/open"
	"sqlwriter/internal/config"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/run"
)

// runQueue opens the queue of the runs' messages. Without a queue a run starts anyway, because the timer sends its message.
func runQueue(c config.ServiceBus, from string) (queue run.Queue, closeFn func()) {
	if c.RunsQueue == "" {
		return missingQueue{from}, func() {}
	}
	namespace, err := open.ServiceBus(c)
	if err != nil {
		return missingQueue{from}, func() {}
	}
	return namespace.Queue(c.RunsQueue), namespace.Close
}

// missingQueue refuses every message.
type missingQueue struct{ source string }

// Send implements run.Queue.
func (m missingQueue) Send(_ context.Context, messages []run.Outgoing) []error {
	errs := make([]error, len(messages))
	for i := range errs {
		errs[i] = fault.New(fault.Infrastructure, "sqlwriterctl: queue", "settings", "%s names no valid Service Bus (%s, %s)",
			m.source, config.ServiceBusConnection, config.RunsQueue)
	}
	return errs
}
