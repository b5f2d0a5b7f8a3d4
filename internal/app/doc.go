// Package app is the composition root. It connects settings, adapters, use cases and handlers, and runs the handler
// process.
//
//	serve.go    Main listens, serves, drains and returns the exit code
//	app.go      App mounts the functions and becomes ready in the background
//	open.go     makes the adapters that the settings name, and retries until they answer
//	runs.go     the use cases behind the functions on Service Bus
//	version.go  the name of this build
//	status.go   the report of Health
//	watch.go    reports the result of every call of a dependency to the status
package app
