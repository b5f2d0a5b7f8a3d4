// Package funchost emulates the Azure Functions host (version 4, Linux) with one custom handler.
//
// It reads a staged script root: host.json, the handler binary, and one folder with a function.json per function. It
// starts the binary as the host does, and sends changes, timer ticks, messages and requests to it as HTTP POSTs. The
// emulator is strict: it refuses, loses and rewrites what the real host refuses, loses and rewrites, so that a handler
// that passes here also runs in Azure.
//
// # How to use it
//
// Stage a script root (cmd/stage), then call Run with Options until the context ends, or New for a Host whose events
// and counters a test can read. Tune shortens the host's intervals for tests.
//
// # What it emulates, and the sources
//
//   - The wire, compared with recordings of the real host (testdata/README.md): names, layers of JSON in strings,
//     Newtonsoft's escaping and rewriting of dates and fractions, retry context, reply rules. azure-functions-host:
//     Workers/Http/DefaultHttpWorkerService.cs, Workers/MessageExtensions, Extensions/HttpRequestExtensions.cs.
//     Newtonsoft.Json: DateTimeParser.cs, JavaScriptUtils.cs, JsonConvert.cs.
//   - The lifetime of the handler process: environment, readiness, exit codes, three errors in thirty minutes, SIGKILL.
//     azure-functions-host: WorkerProcess.cs, HttpFunctionInvocationDispatcher.cs, WebScriptHostExceptionHandler.cs.
//   - cosmosDBTrigger: the change feed processor with its leases, the lock of the first start, a range that a document
//     of 64 levels stops, and splits. azure-webjobs-sdk-extensions: CosmosDBTriggerListener.cs,
//     CosmosDBTriggerHealthMonitor.cs; azure-cosmos-dotnet-v3: ChangeFeedProcessor/.
//   - serviceBusTrigger for queues and their dead-letter queues, one message at a time, over real AMQP: what a message
//     looks like, how many run at once, how long a lock is renewed, what is completed, abandoned and left.
//     azure-sdk-for-net: ServiceBusListener.cs, MessageProcessor.cs, ServiceBusTriggerBindingStrategy.cs,
//     MessageToStringConverter.cs, ServiceBusOptions.cs, ReceiverManager.cs; azure-functions-host: Utility.cs
//     ApplyBindingData.
//   - timerTrigger: azure-webjobs-sdk-extensions TimerListener.cs, ScheduleMonitor.cs, StorageScheduleMonitor.cs.
//   - Retries: azure-webjobs-sdk FunctionExecutorExtensions.cs, RandomizedExponentialBackoffStrategy.cs.
//   - HTTP routes, keys, the platform's sign-in, and bounds of bodies and of requests at once:
//     WebScriptHostHttpRoutesManager.cs, FunctionInvocationMiddleware.cs, Binding/Http/HttpBinding.cs,
//     AuthenticationLevelHandler.cs, HttpThrottleMiddleware.cs, HttpRequestBodySizeMiddleware.cs.
//
// # A message of Service Bus
//
// The host receives a message under a lock and renews the lock while the function runs, for maxAutoLockRenewalDuration
// at most. The result decides what happens to the message:
//
//	2xx, the host listens                 completed
//	failed, timed out, handler died       abandoned at once: the next delivery comes without a pause, and ten of them
//	                                      end in the dead-letter queue within seconds
//	2xx, but the host is stopping         abandoned: the extension counts nothing that ends after its stop
//	still running when the host ends      left: it comes again when its lock has expired
//	lock lost meanwhile                   logged, nothing else; another receiver has the message
//
// Without maxConcurrentCalls in host.json sixteen messages are processed at once on any machine: the real default
// is 16 for each core, and this host counts as the smallest instance, which has one. When Service Bus is away the
// receiver pauses for 1 s to 30 s and is then replaced. A message received before is settled by its lock token
// afterwards, as the .NET client does, while its lock is valid.
//
// # What it does not do
//
// Triggers and bindings other than cosmosDBTrigger, serviceBusTrigger, timerTrigger and httpTrigger with its http
// output, and properties that no function of ours has (refused); topics, sessions, batches and identities of Service
// Bus (refused), and its concurrency that adapts itself; several handler processes; scale-out; drain mode; content
// negotiation of HTTP replies; forwarding of whole HTTP requests and outputs named $return (both refused); merges of
// physical partitions; daylight-saving corrections of schedules (a host in Azure runs in UTC); the blob lease that
// keeps a timer single across instances: two hosts that share storage both tick.
package funchost
