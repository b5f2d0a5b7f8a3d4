// Package funchost stands in for the Azure Functions host running one custom handler (version 4, Linux).
//
// It reads a staged script root (host.json, the handler binary, one folder with a function.json per function), starts
// the binary as the host does, and turns changes, ticks and requests into the POSTs a custom handler gets. It is strict
// on purpose: whatever the real host refuses, loses, rewrites or punishes is refused, lost, rewritten or punished here,
// because a handler that only ever met a friendly host fails on its first day in Azure.
//
// # What it imitates, and from which sources
//
//   - The wire: names, layers of JSON in strings, Newtonsoft's escaping and rewriting of dates and fractions, retry context,
//     reply rules. azure-functions-host: Workers/Http/DefaultHttpWorkerService.cs, Workers/MessageExtensions,
//     Extensions/HttpRequestExtensions.cs. Newtonsoft.Json: DateTimeParser.cs, JavaScriptUtils.cs, JsonConvert.cs.
//   - The life of the handler process: environment, readiness, exit codes, three errors in thirty minutes, SIGKILL.
//     azure-functions-host: WorkerProcess.cs, HttpFunctionInvocationDispatcher.cs, WebScriptHostExceptionHandler.cs.
//   - cosmosDBTrigger: the change feed processor with its leases. azure-webjobs-sdk-extensions:
//     CosmosDBTriggerListener.cs; azure-cosmos-dotnet-v3: ChangeFeedProcessor/.
//   - serviceBusTrigger for queues and their dead-letter queues, one message at a time, over real AMQP: what a message looks
//     like, how many run at once, how long a lock is renewed, what is completed, abandoned and left. azure-sdk-for-net:
//     ServiceBusListener.cs, MessageProcessor.cs, ServiceBusTriggerBindingStrategy.cs, MessageToStringConverter.cs,
//     ServiceBusOptions.cs, ReceiverManager.cs; azure-functions-host: Utility.cs ApplyBindingData.
//   - timerTrigger: azure-webjobs-sdk-extensions TimerListener.cs, ScheduleMonitor.cs, StorageScheduleMonitor.cs.
//   - Retries: azure-webjobs-sdk FunctionExecutorExtensions.cs, RandomizedExponentialBackoffStrategy.cs.
//   - HTTP routes and keys: WebScriptHostHttpRoutesManager.cs, FunctionInvocationMiddleware.cs, Binding/Http/HttpBinding.cs.
//
// # A message of Service Bus
//
// It is received under a lock, which is renewed while the function runs, for maxAutoLockRenewalDuration at most. What then
// becomes of it:
//
//	2xx, the host listens                 completed
//	failed, timed out, handler died       abandoned at once: the next delivery comes without a pause, and ten of them end
//	                                      in the dead-letter queue within seconds
//	2xx, but the host was told to stop    abandoned: the extension counts nothing that ends after its stop
//	still running when the host ends      left: it comes again when its lock has expired
//	2xx, autoCompleteMessages false       left, again and again: a custom handler cannot settle
//	lock lost meanwhile                   said in the log, nothing else; somebody else has the message
//
// Without maxConcurrentCalls in host.json sixteen messages are worked on at once, whatever the machine: the real default
// is 16 for each core, and this host counts as the smallest instance, which has one. When Service Bus goes away the
// receiver pauses, 1 s to 30 s, and is made anew; a message that is out meanwhile is settled by its lock token afterwards,
// as the .NET client does, as long as its lock holds.
//
// # What it does not do
//
// Triggers and bindings other than cosmosDBTrigger, serviceBusTrigger, timerTrigger and httpTrigger with its http output (a
// function that has one is refused); topics, sessions, batches and identities of Service Bus (refused), and its concurrency
// that adapts itself; several handler processes; scale-out; drain mode; content negotiation and cookies of HTTP replies;
// Newtonsoft's depth limit of 64 and its dates of the form /Date(…)/; splits of a physical partition into new leases (the
// SDK follows a split inside the lease it has); daylight-saving corrections of schedules (a host in Azure runs in UTC); the
// bootstrap lock of the lease container (creating a lease that exists is no error, so the lock only saves requests); the
// blob lease that keeps a timer single across instances: two hosts that share storage both tick.
package funchost
