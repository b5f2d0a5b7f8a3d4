// Package app is the composition root: settings, adapters, use case, handlers, and the life of the handler process.
//
//	Main (serve.go)      listens, serves, drains; its answer is the exit code
//	App (app.go)         what is mounted, and how it becomes ready in the background
//	opening (open.go)    the adapters behind the settings, tried again and again until they answer
//	version (version.go) which build this is
//	status (status.go)   what Health says; fed by watch.go, which sees every call of a dependency
package app
