package main

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"sqlwriter/internal/config"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/reconcile"
	"sqlwriter/internal/run"
	"sqlwriter/internal/store/shared"
)

// Tags of flags and arguments. Both are completed with the values of a list; a value outside of the list of valuesTag is refused.
const (
	valuesTag  = "values"
	suggestTag = "suggest"
)

// valuesOf returns a list that a tag names.
func (a *app) valuesOf(list string) []string {
	switch list {
	case "outputs":
		return []string{"table", "json"}
	case "engines":
		return []string{string(config.SQLServer), string(config.SQLite)}
	case "statuses":
		return words(ops.DocumentStatuses())
	case "kinds":
		return idsOf(fault.Rules(), func(r fault.Rule) string { return string(r.Kind) })
	case "codes":
		return codes().Codes()
	case "explained":
		return codes().Known()
	case "run-kinds":
		return idsOf(run.Kinds(), func(k run.KindRow) string { return string(k.Kind) })
	case "rewritable":
		return words(reconcile.Rewritable())
	case "batch-statuses":
		return words(run.BatchStatuses())
	case "outcomes":
		return words(run.Outcomes())
	case "classes":
		return words(reconcile.FindingClasses())
	case "finding-states":
		return ops.FindingStates()
	case "patterns":
		return idsOf(run.Patterns(), func(p run.Pattern) string { return p.Name })
	case "reports":
		return idsOf(shared.ReportNames(), func(n run.ReportName) string { return n.Name })
	case "actions":
		return slices.Sorted(slices.Values(append(slices.Collect(maps.Keys(run.Codes())),
			ops.FlowStopped, ops.FlowRunning, ops.FlowPaused, ops.FlowResumed, ops.FlowForced, "mark-committed", ops.EvidencePrune, ops.DocumentRestore)))
	case "evidence-files":
		return ops.EvidenceFiles()
	case "shells":
		return slices.Sorted(maps.Keys(completionScripts))
	}
	return nil
}

func words[T ~string](all []T) []string {
	list := make([]string, len(all))
	for i, one := range all {
		list[i] = string(one)
	}
	return list
}

// checkValues refuses values that are not in their list.
func checkValues(a *app, parsed *kong.Context) error {
	for _, p := range parsed.Path {
		value, name := p.Positional, ""
		switch {
		case p.Flag != nil:
			value, name = p.Flag.Value, "--"+p.Flag.Name
		case value != nil:
			name = value.Name
		default:
			continue
		}
		list := value.Tag.Get(valuesTag)
		if list == "" {
			continue
		}
		known := a.valuesOf(list)
		for _, text := range textsOf(value.Target) {
			if text == "" || slices.Contains(known, text) || (list == "codes" && codes().Names(text)) {
				continue
			}
			return &usageError{unknownValue(name, text, known)}
		}
	}
	return nil
}

// textsOf are the texts of a flag: itself, or the parts of a list.
func textsOf(value reflect.Value) []string {
	if value.Kind() == reflect.Slice {
		var all []string
		for i := range value.Len() {
			all = append(all, textsOf(value.Index(i))...)
		}
		return all
	}
	return strings.Split(value.String(), ",")
}

// maxListed is how many values an error lists.
const maxListed = 20

// unknownValue is the error for a value outside of its list: the nearest ones, else a short list as a whole.
func unknownValue(name, value string, known []string) error {
	near := fault.Near(known, value)
	switch {
	case len(near) > 0:
		return fmt.Errorf("%s: unknown value %q; did you mean %s?", name, value, strings.Join(near, ", "))
	case len(known) == 0:
		return fmt.Errorf("%s: unknown value %q; there is none", name, value)
	case len(known) <= maxListed:
		return fmt.Errorf("%s: unknown value %q; expected one of %s", name, value, strings.Join(known, ", "))
	}
	return fmt.Errorf("%s: unknown value %q", name, value)
}
