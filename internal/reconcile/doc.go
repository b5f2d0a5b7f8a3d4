// Package reconcile compares the documents, the ledger, the rows of the user's two tables and the evidence of an environment, and keeps
// what does not fit as findings. It is the kind of run "reconcile": Steps is its run.Step, Table judges.
//
// It reads the compared things only. It writes findings, a report, and runs that mend what needs no person.
package reconcile
