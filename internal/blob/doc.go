// Package blob keeps evidence in a container of Azure Blob Storage, on azblob v1.8.0. It implements commit.Evidence and
// ops.EvidenceStore.
//
// A file of evidence is one block blob, {sys_name}/{name}, written by a single PUT with If-None-Match: *. The service
// stores it whole or not at all, and never replaces a file. "The file exists" counts as success, whichever instance
// wrote it (docs/facts.md F85).
//
// # Retries
//
// If-None-Match makes a second PUT harmless, and a listing may be repeated. azcore may therefore retry every call
// without an answer, and 408, 429, 500, 502, 503 and 504. It retries three times, after 0.2, 0.6 and 1.4 s, or after
// the Retry-After when that is at most 2 s. A retry after a lost acknowledgement gets a 409 for its own file, which
// counts as success.
//
// One try has half of the call's time, so that a hanging connection leaves time for another try. A wait that might
// outlast the call's deadline is not begun: the caller then learns the cause instead of "timeout".
//
// # The container
//
// Keep makes the container only when it is missing, so an existing container needs no right to make one. With an
// identity that may not make it, Keep fails as infrastructure under the operation "make container". The document then
// waits and nothing is lost. Ping reports the same problem before the first poison message.
//
// # Rights
//
// Keep and Read need the rights to create, to write and to read, FilesBelow also to list. An identity with the role
// Storage Blob Data Contributor has them all; a shared access signature names each (rcwl).
package blob
