// Package porttest has one suite per port. Every implementation passes it, so that what the use cases rely on is what
// the comments in the ports promise.
package porttest
