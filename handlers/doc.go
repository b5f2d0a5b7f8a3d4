// Package handlers connects the functions to the Functions host. It decodes the host's POST, calls a use case and
// encodes the result. It has no rules about documents.
//
// - mount.go finds the function, sets its deadline, catches panics, maps errors to status codes and writes one log line
// per invocation;
//   - envelope.go, reader.go and body.go decode the host's payload (docs/facts.md F2 to F12);
//   - reply.go encodes the reply (docs/facts.md F16);
//   - every function has a file of its own with its name.
package handlers
