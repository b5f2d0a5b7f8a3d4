package ops

import (
	"context"
	"encoding/json"
	"time"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/fault"
)

// tellWithin bounds the writing of audit entries right after a pause or a resume: the operator waits for it.
const auditTimeout = 5 * time.Second

// The actions of the audit log that say how the flow changed.
const (
	FlowStopped = "FLOW_STOPPED"
	FlowRunning = "FLOW_RUNNING"
	FlowPaused  = "FLOW_PAUSED"
	FlowResumed = "FLOW_RESUMED"
	// FlowForced: resumed, and a database accepted that is not the one that was written to last. Its detail names both heartbeats.
	FlowForced = "FLOW_FORCED"
)

// FlowRequest asks to pause the flow, or to resume it.
type FlowRequest struct {
	By  string `json:"by"`
	Why string `json:"why"`
	// Force has Resume accept a database that is not the one that was written to last (breaker.Risk); behind every other reason it
	// changes nothing.
	Force bool `json:"force,omitempty"`
}

// FlowChange is what became of the flow.
type FlowChange struct {
	// Was and Is are the flow before and after.
	Was FlowView `json:"was"`
	Is  FlowView `json:"is"`
	// Audited says that the audit log has the entry. Otherwise it is kept in the control document until SQL takes it.
	Audited bool `json:"audited"`
	// Risk says what a forced resume has accepted; empty when there was nothing to force.
	Risk string `json:"risk,omitempty"`
}

// FlowView is what the breaker in front of SQL does, for people.
type FlowView struct {
	State breaker.Flow `json:"state"`
	// Says is the same in words.
	Says string `json:"says"`
	// Kind, Code and Reason are those of the failure that stopped it, until it runs again. Of a pause Reason is the operator's.
	Kind   fault.Kind `json:"kind,omitempty"`
	Code   string     `json:"code,omitempty"`
	Reason string     `json:"reason,omitempty"`
	Since  time.Time  `json:"since,omitzero"`
	// NextProbe is when SQL is asked again; zero unless the flow is stopped.
	NextProbe time.Time `json:"next_probe,omitzero"`
	// HeldBy is the instance that stopped the flow or has the probe, or the person who paused or resumed it.
	HeldBy string `json:"held_by,omitempty"`
	// Limit is the most documents of one request while the flow ramps up.
	Limit int `json:"limit,omitempty"`
	// CutOff says that the answering instance alone cannot reach SQL, Lost that the control document cannot be had.
	CutOff bool `json:"cut_off,omitempty"`
	Lost   bool `json:"lost,omitempty"`
}

// Pause stops the flow for all instances until Resume: documents wait and are counted nothing. SQL is not needed: the audit
// entry waits in the control document. Errors by kind: *RequestError (usage); infrastructure (code "control": the control
// document cannot be had), throttled, contention.
func (o *Ops) Pause(ctx context.Context, r FlowRequest) (FlowChange, error) {
	return o.change(ctx, r, o.p.Breaker.Pause)
}

// Resume lets work pass again, whatever stopped it. SQL is not needed, as for Pause, unless the database is not the one that was
// written to last: then it must be forced, which SQL has to commit. Errors as Pause; *RequestError (conflict) when it must be forced.
func (o *Ops) Resume(ctx context.Context, r FlowRequest) (FlowChange, error) {
	if !r.Force {
		return o.change(ctx, r, o.p.Breaker.Resume)
	}
	taken := false
	change, err := o.change(ctx, r, func(ctx context.Context, by, why string) (err error) {
		taken, err = o.p.Breaker.Force(ctx, by, why)
		return err
	})
	if taken {
		change.Risk = breaker.Risk
	}
	return change, err
}

func (o *Ops) change(ctx context.Context, r FlowRequest, do func(ctx context.Context, by, why string) error) (FlowChange, error) {
	if err := checkReason(r.By, r.Why); err != nil {
		return FlowChange{}, err
	}
	was := o.flowView(o.p.Breaker.View(ctx))
	if err := do(ctx, Truncate(r.By, MaxBy), Truncate(r.Why, MaxWhy)); breaker.Refused(err) {
		return FlowChange{}, refuse(Conflict, "%s", fault.As(err).Reason)
	} else if err != nil {
		return FlowChange{}, err
	}
	auditing, cancel := context.WithTimeout(ctx, auditTimeout)
	defer cancel()
	err := o.TellTransitions(auditing)
	return FlowChange{Was: was, Is: o.flowView(o.p.Breaker.Seen()), Audited: err == nil}, nil
}

// TellTransitions writes the changes of the flow that the audit log does not have yet, oldest first. One is written twice when
// the control document cannot be had right after. Errors: *RequestError (conflict in a shadow); the breaker's refusal; those of Journal.Write.
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
			detail, err := json.Marshal(t)
			if err != nil {
				return fault.Wrap(fault.Internal, "ops: audit", "encode", "the audit entry cannot be written as JSON", err)
			}
			entry := Audit{Action: flowAction(t), By: t.By, Why: t.Why, Subject: "flow:" + o.o.SysName, Detail: detail}
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

// flowAction names the change to a state.
func flowAction(t breaker.Transition) string {
	if t.Forced != "" {
		return FlowForced
	}
	switch t.To {
	case breaker.Closed:
		return FlowRunning
	case breaker.Open:
		return FlowStopped
	case breaker.HalfOpen: // only a person's resume is told so
		return FlowResumed
	case breaker.Paused:
	}
	return FlowPaused
}

// flowView is the breaker for people.
func (o *Ops) flowView(v breaker.View) FlowView {
	s := v.Control.Breaker
	view := FlowView{
		State: s.Flow(), Says: s.Describe(o.o.Now()), Kind: s.Kind, Code: s.Code, Reason: s.Reason, Since: o.in(s.Since),
		HeldBy: s.HeldBy, Limit: s.Limit, CutOff: v.CutOff, Lost: v.Lost,
	}
	if s.Name == breaker.Open {
		view.NextProbe = o.in(s.NextProbe())
	}
	return view
}
