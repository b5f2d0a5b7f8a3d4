package main

import (
	"context"
	"fmt"

	"sqlwriter/internal/ops"
	"sqlwriter/internal/opsapi"
	"sqlwriter/internal/run"
)

type auditCommands struct {
	List auditListCommand `cmd:"" help:"List the actions of operators, warnings and errors, newest first."`
}

type auditListCommand struct {
	limitFlag

	RunID  string `name:"run" help:"Only entries about this run." placeholder:"RUN"`
	Action string `help:"Only entries of this action." placeholder:"ACTION"`
	All    bool   `help:"Also the steps of workers and timers (level INFO), three or more for each batch."`
}

// Run lists the entries.
func (c *auditListCommand) Run(ctx context.Context, a *app) error {
	if err := c.check(); err != nil {
		return err
	}
	audits, err := collect(a, c.Limit, func(limit int, page string) ([]run.Audit, string, error) {
		p, err := ask(ctx, a, opsapi.AuditList,
			ops.AuditQuery{Run: c.RunID, Action: c.Action, All: c.All, Limit: limit, Page: page})
		return p.Audits, p.Next, err
	})
	if err != nil {
		return err
	}
	if len(audits) == 0 {
		a.notef("no entry found%s", c.leftOut())
	}
	actions := idsOf(audits, func(e run.Audit) string { return e.Action })
	return a.emit(ops.AuditPage{Audits: audits}, actions, func() error {
		rows := [][]string{{"AT", "LEVEL", "ACTION", "BY", "SUBJECT", "WHY"}}
		for _, e := range audits {
			rows = append(rows, []string{
				a.time(e.At), orDash(e.Level), e.Action, e.By, orDash(e.Subject), oneLine(e.Why),
			})
		}
		return a.table(rows)
	})
}

// leftOut says why there may be no entry: a filter that nothing matches, or the default one.
func (c *auditListCommand) leftOut() string {
	switch {
	case c.Action != "":
		return fmt.Sprintf(" of the action %q: `sqlwriterctl audit list --all` shows how actions are spelled", c.Action)
	case c.All:
		return ""
	}
	return " of operators' actions, warnings and errors: --all also shows the steps of workers and timers"
}
