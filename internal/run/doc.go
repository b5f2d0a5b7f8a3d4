// Package run is long work: an operator's run is divided into batches by a manager (Manager), handed to workers over a queue,
// committed by them (Worker) through the same commit.Commit as everything else, and finished by the timer (Recovery) whatever
// died in between. The database is the truth and a message only a reason to look at it: every message may be lost, come twice,
// late or in another order, and every change of a row is compare-and-set.
//
// It knows no SDK; its ports are in ports.go and their comments are the contract that the adapters are tested against
// (test/conformance).
package run
