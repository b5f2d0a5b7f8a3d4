// Package e2e holds the end-to-end tests: the real handler binary in a staged script root, under the host emulator, with
// the Cosmos emulator behind the real SDK and SQLite behind the real adapter. Kills and cuts come from outside; the
// product has no hook for them.
package e2e
