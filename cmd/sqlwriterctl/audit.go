package main

import (
	"context"
	"fmt"

	"sqlwriter/internal/ops"
	"sqlwriter/internal/opsapi"
)

type auditCommands struct {
	List auditListCommand `cmd:"" help:"List the actions of operators, warnings and errors, newest first."`
}

// pageFlags bound a list.
type pageFlags struct {
	Limit int    `help:"At most N, 1,000 at most." default:"20" placeholder:"N"`
	Page  string `help:"Continue where a list ended; the list before names it." placeholder:"PAGE"`
}

// check refuses a limit of 0: the output would look as if there were nothing.
func (f pageFlags) check() error {
	if f.Limit < 1 {
		return &usageError{fmt.Errorf("--limit: expected 1 to 1000, found %d", f.Limit)}
	}
	return nil
}

// more names the next page.
func (a *app) more(next string) {
	if next != "" {
		a.notef("there are more: --page %q continues", next)
	}
}

type auditListCommand struct {
	pageFlags

	RunID  string `name:"run" help:"Only entries about this run." placeholder:"RUN"`
	Action string `help:"Only entries of this action." placeholder:"ACTION" values:"actions"`
	All    bool   `help:"Also the steps of workers and timers (level INFO), three or more for each batch."`
}

// Run lists the entries.
func (c *auditListCommand) Run(ctx context.Context, a *app) error {
	if err := c.check(); err != nil {
		return err
	}
	return a.operate(ctx, func(o opsapi.Caller) error {
		page, err := opsapi.Do(ctx, o, opsapi.AuditList, ops.AuditQuery{Run: c.RunID, Action: c.Action, All: c.All, Limit: c.Limit, Page: c.Page})
		if err != nil {
			return err
		}
		a.more(page.Next)
		if len(page.Audits) == 0 {
			a.notef("no entry found%s", c.leftOut())
		}
		return a.emit(page, idsOf(page.Audits, func(e ops.Audit) string { return e.Action }), func() error {
			rows := [][]string{{"AT", "LEVEL", "ACTION", "BY", "SUBJECT", "WHY"}}
			for _, e := range page.Audits {
				rows = append(rows, []string{a.time(e.At), orDash(e.Level), e.Action, e.By, orDash(e.Subject), oneLine(e.Why)})
			}
			return a.table(rows)
		})
	})
}

// leftOut describes the entries that the default filter hides.
func (c *auditListCommand) leftOut() string {
	if c.All || c.Action != "" {
		return ""
	}
	return " of operators' actions, warnings and errors: --all also shows the steps of workers and timers"
}
