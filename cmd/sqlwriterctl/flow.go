package main

import (
	"context"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/opsapi"
)

type flowCommands struct {
	Show   flowShowCommand   `cmd:"" help:"Show whether documents flow to SQL, and why not."`
	Pause  flowPauseCommand  `cmd:"" help:"Stop the flow: nothing is sent to SQL, and documents wait."`
	Resume flowResumeCommand `cmd:"" help:"Start the flow again, after a pause or an outage."`
}

// whyFlag is the reason that every action needs.
type whyFlag struct {
	Why string `help:"The reason, for the audit log." placeholder:"TEXT"`
}

type flowShowCommand struct{}

// Run shows the flow.
func (c *flowShowCommand) Run(ctx context.Context, a *app) error {
	return a.operate(ctx, func(o opsapi.Caller) error {
		s, err := opsapi.Do(ctx, o, opsapi.StatusGet, opsapi.None{})
		if err != nil {
			return err
		}
		return a.emit(s.Flow, []string{string(s.Flow.State)}, func() error { return a.facts(flowRows(a, s.Flow)) })
	})
}

type flowPauseCommand struct{ whyFlag }

// Run pauses the flow.
func (c *flowPauseCommand) Run(ctx context.Context, a *app) error {
	return a.operate(ctx, func(o opsapi.Caller) error {
		change, err := opsapi.Do(ctx, o, opsapi.FlowPause, ops.FlowRequest{Why: c.Why})
		return printFlowChange(a, change, err)
	})
}

type flowResumeCommand struct {
	whyFlag
	yesFlag

	Force bool `help:"Accept a restored or another database: later writes are missing in it (docs/runbook.md#the-database-went-back)."`
}

// Run resumes the flow.
func (c *flowResumeCommand) Run(ctx context.Context, a *app) error {
	if c.Force {
		if err := a.mayConfirm(c.Yes); err != nil {
			return err
		}
	}
	return a.operate(ctx, func(o opsapi.Caller) error {
		if c.Force {
			if err := a.confirm(c.Yes, breaker.Risk+"."); err != nil {
				return err
			}
		}
		change, err := opsapi.Do(ctx, o, opsapi.FlowResume, ops.FlowRequest{Why: c.Why, Force: c.Force})
		if err == nil && c.Force && change.Risk == "" && !a.asData() {
			a.printf("there was nothing to accept; the flow was resumed")
		}
		return printFlowChange(a, change, err)
	})
}

func printFlowChange(a *app, change ops.FlowChange, err error) error {
	if err != nil {
		return err
	}
	if !change.Audited {
		a.notef("the entry goes to the audit log when SQL is available")
	}
	return a.emit(change, []string{string(change.Is.State)}, func() error {
		if change.Risk != "" {
			a.printf("FORCED. %s.", a.says(change.Risk))
		}
		a.printf("the flow was %s", a.says(change.Was.Says))
		a.printf("the flow is %s", a.says(change.Is.Says))
		return nil
	})
}
