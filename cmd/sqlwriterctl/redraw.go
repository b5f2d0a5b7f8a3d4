package main

import (
	"context"
	"encoding/json"
	"strings"
)

// watchFlag is the flag of the queries that can be repeated.
type watchFlag struct {
	Watch bool `short:"w" help:"Repeat it until Ctrl-C: redrawn on a terminal, otherwise printed at each change."`
}

// clearScreen moves a terminal's cursor home and erases what follows.
const clearScreen = "\x1b[H\x1b[J"

// view prints one view to the app it is given. It returns what is the same as long as nothing happens.
type view func(ctx context.Context, out *app) (key any, err error)

// watch prints a view once, or with --watch again and again.
func (f watchFlag) watch(ctx context.Context, a *app, show view) error {
	if !f.Watch {
		_, err := show(ctx, a)
		return err
	}
	redraw, every, before := a.width > 0 && !a.asData(), lineEvery, ""
	if redraw {
		every = redrawEvery
	}
	for {
		out, block := *a, &strings.Builder{}
		out.stdout = block
		key, err := show(ctx, &out)
		switch text, encoded := json.Marshal(key); {
		case err != nil && (before == "" || final(err) || ctx.Err() != nil):
			return err
		case err != nil: // it may come back
			what, _ := a.describe(err)
			a.tellf("no answer, trying again: %s", what)
		case encoded != nil:
			return encoded
		case redraw:
			a.print(clearScreen + block.String())
			before = string(text)
		case string(text) != before:
			if before != "" && !a.asData() {
				a.print("\n")
			}
			a.print(block.String())
			before = string(text)
		}
		if err := a.pause()(ctx, every); err != nil {
			return err
		}
	}
}
