package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/opsapi"
)

// usageError is a mistake in the command line.
type usageError struct{ error }

func (e *usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// advisedError is an error with what to do about it.
type advisedError struct {
	error
	advice string
}

func (e *advisedError) Unwrap() error { return e.error }

func advised(err error, format string, args ...any) error {
	return &advisedError{err, fmt.Sprintf(format, args...)}
}

// attentionError is the error of `status --check`.
type attentionError struct{ error }

// fail prints an error, what to do about it and, with --verbose, its details. It returns the exit code.
func (a *app) fail(ctx context.Context, err error) int {
	what, advice := a.describe(err)
	if !isUsage(err) { // which may show how times are typed
		what = a.says(what)
	}
	a.tellf("error: %s", what)
	if advice != "" {
		a.tellf("hint: %s", advice)
	}
	if a.Verbose {
		a.tellf("details: %s", oneLine(err.Error()))
	}
	var attention *attentionError
	switch {
	case ctx.Err() != nil:
		return exitInterrupted
	case isUsage(err):
		return exitUsage
	case errors.As(err, &attention):
		return exitAttention
	}
	return exitFailed
}

// describe says in one sentence what happened, and in one what to do.
func (a *app) describe(err error) (what, advice string) {
	var advised *advisedError
	var lost *opsapi.LostError
	var denied *opsapi.DeniedError
	var request *ops.RequestError
	classified := fault.As(err)
	switch {
	case errors.As(err, &advised):
		what, _ = a.describe(errors.Unwrap(advised))
		return what, advised.advice
	case isUsage(err):
		return err.Error(), fmt.Sprintf("see `%s --help`", a.helpFor())
	case errors.Is(err, context.Canceled):
		return "interrupted", ""
	case errors.As(err, &lost):
		what, advice = a.asked.lost(lost)
		if mayBeDone(lost) {
			what, advice = "no answer came, and it may have been done anyway: "+what,
				"`sqlwriterctl audit list` shows what was done, before you do it again"
		}
		return what, advice
	case errors.As(err, &denied):
		advice = fmt.Sprintf("check %s, a function key of Ops, for an action one whose name begins with operator, or sign in again with `az login` (%s)", keyVariable, audienceVariable)
		if a.asked.keyName != "" {
			advice = "the key is valid: look whether the app is stopped, and at its access restrictions"
		}
		return fmt.Sprintf("%s (%s, %s)", err, a.asked.address, a.asked.from), advice
	case errors.As(err, &request) && request.Refusal == ops.NotFound:
		return err.Error(), a.finds()
	case classified != nil:
		advice = "details are shown with --verbose"
		if codes().Names(classified.Code) {
			advice = fmt.Sprintf("`sqlwriterctl explain %s` says what it means and what to do", classified.Code)
		}
		return reason(err, classified), advice
	}
	return err.Error(), ""
}

// reason describes a classified error. What was said in front of it stays; its cause, a text of a driver, goes.
func reason(err error, e *fault.Error) string {
	front, _, _ := strings.Cut(err.Error(), e.Error())
	adapter, _, _ := strings.Cut(e.Op, ":")
	name, known := map[string]string{
		"cosmos": "Cosmos DB", "sqlserver": "SQL Server", "sqlite": "SQLite", "blob": "blob storage",
		"servicebus": "Service Bus",
	}[adapter]
	text := e.Reason
	if known {
		text = name + ": " + text
	}
	return fmt.Sprintf("%s%s (%s, code %s)", front, text, e.Kind, e.Code)
}

// finds names the command that finds what a command did not.
func (a *app) finds() string {
	if a.command == nil || a.command.Parent == nil {
		return ""
	}
	return map[string]string{
		"document": "`sqlwriterctl document list --line LINE` finds the documents of an invoice line; without a filter it lists the latest",
		"evidence": "`sqlwriterctl document list --status failed` lists failed documents; `sqlwriterctl document why ID` names their evidence",
		"run":      "`sqlwriterctl run list` lists the latest runs",
		"batch":    "`sqlwriterctl run list` lists the latest runs, `sqlwriterctl batch list RUN` the batches of one",
		"finding":  "`sqlwriterctl finding list` lists findings by their names",
	}[a.command.Parent.Name]
}

// helpFor is the command whose help describes what was typed.
func (a *app) helpFor() string {
	if a.command == nil {
		return "sqlwriterctl"
	}
	return commandPath(a.command)
}

// isUsage reports whether an error is a mistake in the command line.
func isUsage(err error) bool {
	var usage *usageError
	var request *ops.RequestError
	return errors.As(err, &usage) || (errors.As(err, &request) && request.Refusal == ops.Usage)
}

// asTyped replaces the API member in a usage error by the flag that the operator typed.
func (a *app) asTyped(err error) error {
	var request *ops.RequestError
	if !errors.As(err, &request) || request.Refusal != ops.Usage {
		return err
	}
	member, rest, ok := strings.Cut(request.Message, ": ")
	var flags []string
	for one := range strings.SplitSeq(member, ", ") {
		flags = append(flags, flagsOf(a.command, one)...)
	}
	if !ok || len(flags) == 0 {
		return err
	}
	return &ops.RequestError{Refusal: request.Refusal, Message: strings.Join(flags, ", ") + ": " + rest}
}

// flagsOf returns the flags of a command that set a member of the API. It returns none for an argument, whose name is
// the member's.
func flagsOf(command *kong.Node, member string) (flags []string) {
	if command == nil ||
		slices.ContainsFunc(command.Positional, func(arg *kong.Positional) bool { return arg.Name == member }) {
		return nil
	}
	names, other := map[string][]string{
		"classes": {"class"}, "ids": {"id", "ids-file"}, "id": {"id", "ids-file"},
	}[member]
	if !other {
		names = []string{strings.ReplaceAll(member, "_", "-")}
	}
	for _, name := range names {
		if slices.ContainsFunc(command.Flags, func(f *kong.Flag) bool { return f.Name == name }) {
			flags = append(flags, "--"+name)
		}
	}
	return flags
}
