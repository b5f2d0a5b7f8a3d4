// Package ops implements the operators' use cases: how many documents wait, why a document is in its state, and the few
// actions that change something. Every action is audited before it starts. The package knows no SDK; the command line
// and the function Ops call it (docs/requirements.md R91).
//
// An action on a run (start, cancel, resume, requeue) writes its audit entry in the transaction of the change. A pause
// or a resume of the flow needs no SQL: its entry waits in the control document until TellTransitions writes it.
// Questions ask the breaker before they use SQL, except during a pause.
package ops
