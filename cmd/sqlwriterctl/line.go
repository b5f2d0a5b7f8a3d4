package main

import (
	"context"

	"sqlwriter/internal/ops"
	"sqlwriter/internal/opsapi"
)

// lineCommands groups the commands about single lines.
type lineCommands struct {
	Release lineReleaseCommand `cmd:"" help:"Write the newest committed document that names a line to it, although the line has content of a newer document that is gone or does not name it any more (finding not_named)."`
}

type lineReleaseCommand struct {
	whyFlag

	Line           int64 `arg:"" help:"The id of the line."`
	OverwriteEdits bool  `help:"Also where a person edited the line, or nobody can tell."`
	DryRun         bool  `help:"Show the columns before and after, and change nothing."`
}

// Run releases the line.
func (c *lineReleaseCommand) Run(ctx context.Context, a *app) error {
	started, err := ask(ctx, a, opsapi.LineRelease, ops.LineReleaseRequest{
		Line: c.Line, OverwriteEdits: c.OverwriteEdits, DryRun: c.DryRun, Why: c.Why,
	})
	return printExecution(a, started, err)
}
