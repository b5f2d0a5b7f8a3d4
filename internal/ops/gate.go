package ops

import (
	"context"
	"encoding/json"
	"fmt"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/writer"
)

// GateRequest asks to hold the gate open, or to close it.
type GateRequest struct {
	By  string `json:"by"`
	Why string `json:"why"`
	// Force lets Resume write its audit row although the gate is open because SQL did not answer: one attempt.
	Force bool `json:"force,omitempty"`
}

// GateChange is what became of the gate.
type GateChange struct {
	// Was and Is are the gate before and after.
	Was GateView `json:"was"`
	Is  GateView `json:"is"`
	// Audited says that there is an audit row; otherwise Note says why not.
	Audited bool   `json:"audited"`
	Note    string `json:"note,omitempty"`
}

// Pause holds the gate open for all instances until Resume: nothing is sent to SQL, documents wait and are counted nothing.
// It is the brake, so it works without an audit row and then says so. Errors by kind: *RequestError (usage); infrastructure
// (code "control": the control document cannot be had), throttled, contention.
func (o *Ops) Pause(ctx context.Context, r GateRequest) (GateChange, error) {
	if err := words(r.By, r.Why); err != nil {
		return GateChange{}, err
	}
	if r.Force {
		return GateChange{}, refuse(Usage, "force: goes with resume")
	}
	was := o.p.Gate.View(ctx)
	state := was.State()
	if err := o.p.Gate.Pause(ctx, r.By, r.Why); err != nil {
		return GateChange{}, err
	}
	change := GateChange{Was: o.gateView(was), Is: o.gateView(o.p.Gate.Seen()), Audited: true}
	var err error
	if state.Open() && !beyond(state) {
		err = o.gateOpen(state) // SQL did not answer a moment ago: it is not asked for this
	} else {
		err = o.direct(ctx, o.gateAudit("pause", r, was))
	}
	if err != nil {
		change.Audited = false
		change.Note = "paused, and no audit row was written: " + said(err)
	}
	return change, nil
}

// Resume closes the gate, whatever held it open, after its audit row is written. While the gate is open for infrastructure,
// throttled or quota it is refused at once, unless Force asks SQL for that row once: when that succeeds SQL is there again, and
// when it does not, a closed gate would not be for long. Errors by kind: *RequestError (usage); infrastructure (code
// "control"; "gate_open"), throttled, quota, contention.
func (o *Ops) Resume(ctx context.Context, r GateRequest) (GateChange, error) {
	if err := words(r.By, r.Why); err != nil {
		return GateChange{}, err
	}
	was := o.p.Gate.View(ctx)
	state := was.State()
	write := o.gateAudit("resume", r, was)
	var err error
	switch {
	case was.Lost:
		return GateChange{}, fault.New(fault.Infrastructure, "ops: resume", "control", "the control document cannot be had, so the other instances would not know")
	case state.Open() && !beyond(state) && !r.Force:
		return GateChange{}, unaudited(fault.New(fault.Infrastructure, "ops: resume", "gate_open",
			"the gate is %s; it closes by itself when a probe succeeds. With force SQL is asked once for the audit row, and the gate is closed if it answers",
			o.says(state)))
	case state.Open():
		err = o.direct(ctx, write)
	default:
		err = o.write(ctx, write)
	}
	if err != nil {
		return GateChange{}, unaudited(err)
	}
	if err := o.p.Gate.Resume(ctx, r.By); err != nil {
		return GateChange{}, err
	}
	return GateChange{Was: o.gateView(was), Is: o.gateView(o.p.Gate.Seen()), Audited: true}, nil
}

// direct uses the Journal without asking the gate, within its time.
func (o *Ops) direct(ctx context.Context, use func(context.Context) error) error {
	if err := o.opened(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, journalTimeout)
	defer cancel()
	return use(ctx)
}

// gateAudit writes the entry of a change of the gate.
func (o *Ops) gateAudit(action string, r GateRequest, was writer.View) func(context.Context) error {
	return func(ctx context.Context) error {
		detail, err := json.Marshal(map[string]any{"was": o.gateView(was), "force": r.Force})
		if err != nil {
			return fault.Wrap(fault.Internal, "ops: audit", "encode", "the audit entry cannot be written as JSON", err)
		}
		return o.p.Journal.Write(ctx, Audit{Action: action, By: r.By, Why: r.Why, Subject: "gate:" + o.o.SysName, Detail: detail})
	}
}

// said is an error in our own words: a cause may hold an address.
func said(err error) string {
	e := fault.As(err)
	if e == nil {
		return fmt.Sprintf("%T", err)
	}
	return fmt.Sprintf("%s: %s %s: %s", e.Op, e.Kind, e.Code, e.Reason)
}
