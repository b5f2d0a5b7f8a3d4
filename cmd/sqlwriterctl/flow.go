package main

import (
	"context"

	"sqlwriter/internal/ops"
	"sqlwriter/internal/opsapi"
)

type flowCommands struct {
	Pause  flowPauseCommand  `cmd:"" help:"Stop the flow: nothing is sent to SQL, and documents wait."`
	Resume flowResumeCommand `cmd:"" help:"Start the flow again, after a pause or an outage."`
}

// whyFlag is the reason that every action needs.
type whyFlag struct {
	Why string `help:"The reason, for the audit log." placeholder:"TEXT"`
}

type flowPauseCommand struct{ whyFlag }

// Run pauses the flow.
func (c *flowPauseCommand) Run(ctx context.Context, a *app) error {
	change, err := ask(ctx, a, opsapi.FlowPause, ops.FlowRequest{Why: c.Why})
	return printFlowChange(a, change, err)
}

type flowResumeCommand struct {
	whyFlag
	yesFlag

	Force bool `help:"Accept a restored or another database as it is: status then names the run that writes again what it lacks (docs/runbook.md#restored-from-a-backup)."`
}

// Run resumes the flow.
func (c *flowResumeCommand) Run(ctx context.Context, a *app) error {
	if c.Force {
		if err := a.mayConfirm(c.Yes); err != nil {
			return err
		}
		if err := a.connect(ctx); err != nil { // who confirms sees of which app
			return err
		}
		if err := a.confirm(c.Yes,
			"A restored or another database is accepted as it is. What it lacks must be written again: `status` names the command."); err != nil {
			return err
		}
	}
	change, err := ask(ctx, a, opsapi.FlowResume, ops.ResumeFlow{Why: c.Why, Force: c.Force})
	if err == nil && c.Force && change.Risk == "" && !a.asData() {
		a.printf("there was nothing to accept; the flow was resumed")
	}
	return printFlowChange(a, change, err)
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
		if change.Behind != "" {
			a.printf("%s", a.says(change.Behind))
		}
		return nil
	})
}
