// Package explain says what a code means and what a person does about it: of an error, of what asks for attention in
// the status, of a class of a comparison. The command line and the operators' pages show it.
package explain
