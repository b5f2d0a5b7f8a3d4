// Package outage takes a local stack's database away from the handler, and gives it back.
//
// A SQLite file has no server to stop, and the stack must not stop a server that the user named. File makes the file
// unusable to every connection. Proxy stands before a server and refuses connections. Neither changes data, and nothing
// is left to mend when the process that began the outage is killed.
package outage

import "context"

// Switch takes a database away and gives it back. A caller of Off calls On, once, before the next Off.
type Switch interface {
	// Off starts the outage: connections that exist and new ones fail.
	Off(ctx context.Context) error
	// On ends it.
	On(ctx context.Context) error
}
