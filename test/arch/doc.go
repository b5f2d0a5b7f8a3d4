// Package arch holds the tests that keep the shape of the program: which package may import which, and that the references of
// code and pages resolve inside the repository. It has no code of its own.
package arch
