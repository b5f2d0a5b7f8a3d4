// Package arch holds the tests that keep the shape of the program: which package may import which, and that what is
// produced from a table is in step with it. It has no code of its own.
package arch
