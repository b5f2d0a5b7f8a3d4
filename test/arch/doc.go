// Package arch tests the architecture of the repository. It checks which package may import which package, that code
// and pages refer only to things that exist, and the rules for decisions and placeholders in the documentation.
//
// The package has no code of its own. Run it with `go test ./test/arch`. A new package needs a row in directions()
// (imports_test.go), with the imports it may have and the reason.
package arch
