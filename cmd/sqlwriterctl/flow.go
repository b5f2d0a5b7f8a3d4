package main

import (
	"context"
	"fmt"

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
	return a.operate(ctx, func(o opsapi.Caller) error {
		change, err := opsapi.Do(ctx, o, opsapi.FlowPause, ops.FlowRequest{Why: c.Why})
		return printFlowChange(a, change, err)
	})
}

type flowResumeCommand struct {
	whyFlag
	yesFlag

	Force            bool   `help:"Accept a restored or another database as it is: later writes stay missing in it."`
	DatabaseRestored bool   `help:"Accept a restored database, write again what was committed or failed since --since, then compare everything (docs/runbook.md#restored-from-a-backup)."`
	Since            string `help:"The time of the backup: 90m, 1d or 2w ago, a date (2026-01-31) or a time." placeholder:"TIME"`
	DatabaseNew      bool   `help:"Accept a new database after ledger adopt, write again what it lacks, then compare everything."`
}

// Run resumes the flow.
func (c *flowResumeCommand) Run(ctx context.Context, a *app) error {
	r := ops.ResumeFlow{Why: c.Why, Force: c.Force, DatabaseRestored: c.DatabaseRestored, DatabaseNew: c.DatabaseNew}
	var err error
	if r.Since, _, err = a.period(c.Since, ""); err != nil {
		return err
	}
	replaced := c.DatabaseRestored || c.DatabaseNew
	if c.Force || replaced {
		if err := a.mayConfirm(c.Yes); err != nil {
			return err
		}
	}
	return a.operate(ctx, func(o opsapi.Caller) error {
		switch {
		case replaced:
			counting := r
			counting.DryRun = true
			counted, err := opsapi.Do(ctx, o, opsapi.FlowResume, counting)
			if err != nil {
				return err
			}
			question := fmt.Sprintf("This database is accepted, and the one before is refused from then on. Then a %s looks at %s, writes what this database lacks of them, and everything is compared.",
				counted.Reapply.Kind, documentsMatched(*counted.Reapply))
			if c.Yes {
				a.tellf("%s", question)
			}
			if err := a.confirm(c.Yes, question); err != nil {
				return err
			}
		case c.Force:
			if err := a.confirm(c.Yes, "A restored or another database is accepted as it is: what it lacks stays missing."); err != nil {
				return err
			}
		}
		change, err := opsapi.Do(ctx, o, opsapi.FlowResume, r)
		if err == nil && (c.Force || replaced) && !change.Accepted && !a.asData() {
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
		switch {
		case change.Risk != "":
			a.printf("FORCED. %s.", a.says(change.Risk))
		case change.Accepted:
			a.printf("FORCED. This database was accepted, the one before is refused from now on.")
		}
		a.printf("the flow was %s", a.says(change.Was.Says))
		a.printf("the flow is %s", a.says(change.Is.Says))
		if change.Compare == nil {
			return nil
		}
		defer func() { a.printf("run %s compares everything afterwards", change.Compare.Run) }()
		if change.Reapply.Run == "" {
			a.printf("nothing was committed or failed since then: there is nothing to write again")
			return nil
		}
		if change.Reapply.Note != "" {
			a.notef("%s", a.says(change.Reapply.Note))
		}
		return printStarted(a, *change.Reapply)
	})
}
