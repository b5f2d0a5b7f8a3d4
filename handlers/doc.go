// Package handlers is the side that the Functions host sees: it turns the host's POST for one invocation into a call of a
// use case and the use case's answer into what the host accepts. Nothing here decides about documents.
//
//   - mount.go recognises the function, sets its deadline, catches panics, maps errors to status codes and writes one
//     log line per invocation;
//   - envelope.go, scan.go and body.go read the host's encoding (docs/facts.md F2 to F12);
//   - reply.go writes the answer (docs/facts.md F16);
//   - every function has one file of its own, named after it.
package handlers
