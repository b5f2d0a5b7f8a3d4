package ops

import (
	"context"
	"fmt"
	"strings"
	"time"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/run"
)

// auditTimeout bounds the audit entries of a pause or a resume, because the operator waits for them.
const auditTimeout = 5 * time.Second

// The actions of the audit log that say how the flow changed.
const (
	FlowStopped = "FLOW_STOPPED"
	FlowRunning = "FLOW_RUNNING"
	FlowPaused  = "FLOW_PAUSED"
	FlowResumed = "FLOW_RESUMED"
	// FlowForced: resumed over a database that is not the one written to last. Its detail names both heartbeats.
	FlowForced = "FLOW_FORCED"
)

// FlowRequest asks to pause the flow.
type FlowRequest struct {
	Why string `json:"why"`
}

// ResumeFlow asks to resume the flow.
type ResumeFlow struct { //nolint:revive // RunResume is a run's
	Why string `json:"why"`
	// Force accepts a database that is not the one written to last (breaker.Risk). It overrides no other reason.
	Force bool `json:"force,omitempty"`
}

// FlowChange is the result of a pause or a resume.
type FlowChange struct {
	// Was and Is are the flow before and after.
	Was FlowView `json:"was"`
	Is  FlowView `json:"is"`
	// Audited says that the audit log has the entry. Otherwise it waits in the control document for SQL.
	Audited bool `json:"audited"`
	// Risk is what a forced resume accepted: the database was not the one written to last, and is from now on. It is
	// empty when nothing had to be forced.
	Risk string `json:"risk,omitempty"`
	// Behind is Status.Behind after a forced resume.
	Behind string `json:"behind,omitempty"`
}

// FlowView is the state of the breaker, for people.
type FlowView struct {
	State breaker.Flow `json:"state"`
	// Says is the state in words.
	Says string `json:"says"`
	// Kind, Code and Reason are those of the failure that opened the breaker. During a pause Reason is the operator's.
	Kind   fault.Kind `json:"kind,omitempty"`
	Code   string     `json:"code,omitempty"`
	Reason string     `json:"reason,omitempty"`
	Since  time.Time  `json:"since,omitzero"`
	// NextProbe is the time of the next probe; zero unless the breaker is open.
	NextProbe time.Time `json:"next_probe,omitzero"`
	// HeldBy is the instance that opened the breaker or sends the probe, or the person who paused or resumed.
	HeldBy string `json:"held_by,omitempty"`
	// Limit is the most documents of a request while the flow ramps up.
	Limit int `json:"limit,omitempty"`
	// CutOff: only this instance cannot reach SQL. Lost: the control document cannot be read.
	CutOff bool `json:"cut_off,omitempty"`
	Lost   bool `json:"lost,omitempty"`
}

// Pause stops the flow of all instances until Resume. Waiting documents spend no retry. SQL is not needed: the audit
// entry waits in the control document. Errors by kind: *RequestError (usage); infrastructure (code "control": the
// control document cannot be read or written), throttled, contention.
func (o *Ops) Pause(ctx context.Context, r FlowRequest) (FlowChange, error) {
	return o.change(ctx, r.Why, o.p.Breaker.Pause)
}

// Resume lets the flow run again, whatever stopped it. SQL is not needed, unless the database is not the one written to
// last. Then Force is required. With Force the database must answer and be ready for the app: migrated, and its ledger
// adopted or said to be empty. An app that runs checked another one. Behind a failure of SQL Force changes nothing.
// Errors as Pause; *RequestError (conflict) when Force is required, and in a shadow with Force.
func (o *Ops) Resume(ctx context.Context, r ResumeFlow) (FlowChange, error) {
	if flow := o.p.Breaker.View(ctx).Control.Breaker; !r.Force ||
		(flow.Name == breaker.Open && !flow.RefusesDatabase()) {
		return o.change(ctx, r.Why, o.p.Breaker.Resume)
	}
	if _, err := o.mayAct(ctx, r.Why); err != nil {
		return FlowChange{}, err
	}
	if err := o.withStores(ctx, func(ctx context.Context, s Stores) error { return s.Check(ctx) }); err != nil {
		return FlowChange{}, err
	}
	taken := false
	change, err := o.change(ctx, r.Why, func(ctx context.Context, by, why string) (err error) {
		taken, err = o.p.Breaker.Force(ctx, by, why)
		return err
	})
	if taken {
		change.Risk = breaker.Risk
	}
	if err == nil {
		change.Behind, _ = o.behind(ctx, o.p.Breaker.Seen())
	}
	return change, err
}

func (o *Ops) change(
	ctx context.Context, why string, do func(ctx context.Context, by, why string) error,
) (FlowChange, error) {
	by, err := checkReason(ctx, why)
	if err != nil {
		return FlowChange{}, err
	}
	was := o.flowView(o.p.Breaker.View(ctx))
	if err := do(ctx, by, run.Truncate(why, run.MaxWhy)); breaker.Refused(err) {
		return FlowChange{}, refuse(Conflict, "%s", fault.As(err).Reason)
	} else if err != nil {
		return FlowChange{}, err
	}
	auditing, cancel := context.WithTimeout(ctx, auditTimeout)
	defer cancel()
	err = o.TellTransitions(auditing)
	return FlowChange{Was: was, Is: o.flowView(o.p.Breaker.Seen()), Audited: err == nil}, nil
}

// TellTransitions writes the flow's transitions that are not in the audit log yet, oldest first. A transition is
// written twice when the control document cannot be updated right after. Errors: *RequestError (conflict in a shadow);
// the breaker's; those of AuditLog.Write.
func (o *Ops) TellTransitions(ctx context.Context) error {
	if o.o.ReadOnly != "" {
		return refuse(Conflict, "%s", o.o.ReadOnly)
	}
	waiting := o.p.Breaker.Unaudited(ctx)
	if len(waiting) == 0 {
		return nil
	}
	var written []breaker.Transition
	err := o.stores(ctx, func(ctx context.Context, s Stores) error {
		for _, t := range waiting {
			detail, err := asJSON("ops: audit", t)
			if err != nil {
				return err
			}
			entry := run.Audit{
				Action: flowAction(t), By: t.By, Why: t.Why, Subject: "flow:" + o.o.SysName, Detail: detail,
			}
			if t.StoppedFor > 0 {
				entry.Why = run.Truncate("ended: "+t.Why, run.MaxWhy) // it is the reason of the stop
			}
			if err := s.Audit.Write(ctx, entry); err != nil {
				return err
			}
			written = append(written, t)
		}
		return nil
	})
	if len(written) > 0 {
		o.p.Breaker.Audited(context.WithoutCancel(ctx), written)
	}
	return err
}

// flowAction is the audit action of a transition.
func flowAction(t breaker.Transition) string {
	if t.Forced != "" {
		return FlowForced
	}
	switch t.To {
	case breaker.Closed:
		return FlowRunning
	case breaker.Open:
		return FlowStopped
	case breaker.HalfOpen: // only a person's resume is audited
		return FlowResumed
	case breaker.Paused:
	}
	return FlowPaused
}

func (o *Ops) flowView(v breaker.View) FlowView {
	s := v.Control.Breaker
	view := FlowView{
		State: s.Flow(), Says: o.flowSays(v), Kind: s.Kind, Code: s.Code, Reason: short(s.Reason), Since: o.in(s.Since),
		HeldBy: s.HeldBy, Limit: s.Limit, CutOff: v.CutOff, Lost: v.Lost,
	}
	if s.Name == breaker.Open {
		view.NextProbe = o.in(s.OpenUntil)
	}
	return view
}

// flowSays describes the flow. SQL that fails although the breaker has not counted enough failures is named from the
// first.
func (o *Ops) flowSays(v breaker.View) string {
	s := v.Control.Breaker
	says := o.describe(s)
	if sql := v.Status.Dependencies[DepSQL]; s.Flow() == breaker.Running && sql.State == DepFailing {
		says += fmt.Sprintf("; SQL fails since %s (%s %s): the flow stops after five failures in a row",
			o.clock(sql.Since), sql.Kind, sql.Code)
	}
	return says
}

// describe describes the breaker's state. An operator's reason is cut: it may have any length.
func (o *Ops) describe(s breaker.State) string {
	s.Reason = short(s.Reason)
	return s.Describe(o.o.Now().In(o.o.Location))
}

// maxShown bounds an operator's words in a line, in UTF-16 units. The audit log has them whole.
const maxShown = 200

// short is a text in one line of at most maxShown units.
func short(text string) string {
	return run.Truncate(strings.Join(strings.Fields(text), " "), maxShown)
}
