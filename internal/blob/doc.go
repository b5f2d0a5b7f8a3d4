// Package blob keeps evidence in a container of Azure blob storage, on azblob v1.8.0. It implements commit.Evidence.
//
// A file is one block blob, {sys_name}/{name}, written by a single PUT with If-None-Match: *. The service stores it whole
// or not at all, and never over another one: "there is one already" is success, whoever wrote it (docs/facts.md F85).
//
// # Who repeats what
//
// With If-None-Match a second PUT cannot do harm, so azcore may repeat everything that got no answer, and 408, 429, 500,
// 502, 503 and 504: three times after 0.2, 0.6 and 1.4 s, or after the Retry-After when that is at most 2 s. A repetition of
// a PUT that was applied although its answer was lost gets a 409 of our own making, which is success like any other.
// One try has half of the call's time, so that a connection that hangs leaves time for another one. A wait that might
// outlast the call's deadline is not begun: the caller then learns what was wrong instead of "timeout".
//
// # The container
//
// It is made when something is kept and it is not there; if it is there, nothing is asked of it and no right to make
// containers is needed. With an identity that may not make it, Keep fails as infrastructure under the operation
// "make container": nothing is lost, the document waits, and Ping has said so before the first poison pill.
package blob
