// Package reconcile compares the documents, the ledger and the rows of the user's two tables of an environment, and
// keeps what does not fit as findings. Reconcile.Tick carries comparisons on, the table judges.
//
// It reads the compared things only. It writes findings, and each night one run that writes again what needs no person.
package reconcile
