// Package ops is what operators ask and do: how deep the backlog is, why a document is where it is, and the few actions
// that change something. Every action is audited before it begins. It knows no SDK; the command line and the Ops function
// are two ways in (docs/requirements.md R91).
package ops
