// Package staging lays out the script root that the Functions host wants: host.json, the binary, and every function's
// folder as a direct child (docs/facts.md F30: the host looks one level deep, so the source folder functions/ must be
// flattened). The files of the repository keep the host's rules by a test (hostfiles_test.go).
package staging
