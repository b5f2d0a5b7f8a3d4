// Package staging lays out the script root of the Functions host: host.json, the binary, and one folder per function.
// The host looks for functions one level deep only, so the source folder functions/ is flattened (docs/facts.md F30).
// hostfiles_test.go checks that the repository's files obey the host's rules.
package staging
