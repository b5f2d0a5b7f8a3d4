package events

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"sqlwriter/internal/condition"
)

// The marks around the tables in docs/events.md.
const (
	TablesBegin = "<!-- events:begin -->"
	TablesEnd   = "<!-- events:end -->"
)

// Tables returns the tables of docs/events.md.
func Tables() string {
	var b strings.Builder
	b.WriteString(
		"## The conditions\n\nA line that has `condition` asks for a person. `wake` wakes somebody, `tell` tells somebody during the day ([deploy/alerts](../deploy/alerts/README.md)).\n")
	b.WriteString(
		"Event `attention` tells the others that `sqlwriterctl status` shows, at each tick of the recovery timer, and as soon as the flow stops.\n\n")
	b.WriteString("| condition | severity | meaning | what to do | told at once by |\n|---|---|---|---|---|\n")
	for _, c := range condition.Table() {
		told := strings.Join(c.Events, ", ")
		if c.After > 0 {
			told = "told after " + strings.Replace(strings.TrimSuffix(c.After.String(), "0s"), "h0m", "h", 1)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s: [%s](%s) | %s |\n", c.Code, c.Severity, c.Means, c.Do, c.Page,
			strings.TrimPrefix(c.Link(), "docs/"), orDash(told))
	}
	b.WriteString("\n## The events\n\n| event | level | meaning | what to do | its fields (*why*: kind, code, reason) |\n|---|---|---|---|---|\n")
	type list struct{ event, fields string }
	var long []list
	for _, r := range Table() {
		own := strings.Join(r.Fields, ", ")
		fields := own
		for _, earlier := range slices.Backward(long) {
			fields = strings.Replace(fields, earlier.fields, "as `"+earlier.event+"`", 1)
		}
		if len(r.Fields) > 5 && strings.Contains(fields, ",") {
			long = append(long, list{string(r.Name), own})
		}
		fields = strings.Replace(fields, "kind, code, reason", "*why*", 1)
		do := r.Do
		if c, tells := condition.ToldBy(string(r.Name)); tells && do == "" {
			do = fmt.Sprintf("see `%s`", c.Code)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", r.Name, r.Level, r.Says, orDash(do), orDash(fields))
	}
	b.WriteString("\n## The fields\n\n")
	for i := range fieldTypes.NumField() {
		f := fieldTypes.Field(i)
		fmt.Fprintf(&b, "- `%s` (%s): %s\n", f.Tag.Get("log"), jsonTypeOf(f.Type), f.Tag.Get("says"))
	}
	b.WriteString(
		"\n## The original's lines\n\nThe original wrote \"SQL Writer: \" and a sentence (docs/requirements.md R93). Here the same is said by:\n\n| its line | ours |\n|---|---|\n")
	for _, o := range Originals() {
		fmt.Fprintf(&b, "| %s | %s |\n", o.Line, o.Ours)
	}
	return b.String()
}

// jsonTypeOf names the JSON type of a field.
func jsonTypeOf(t reflect.Type) string {
	switch t.Kind() { //nolint:exhaustive // Fields has no others
	case reflect.Int, reflect.Int64:
		return "number"
	case reflect.Bool:
		return "true"
	case reflect.Slice:
		return "list"
	case reflect.Map:
		return "object of numbers"
	case reflect.Struct:
		return "time, UTC"
	default:
		return "text"
	}
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// Original is a line of the original's log and what says the same here.
type Original struct{ Line, Ours string }

// Originals lists the lines of the original (docs/requirements.md R93).
func Originals() []Original {
	return []Original{
		{"Found N documents to process.", "`batch_committed`: `documents`; of the timer `tick_done`: `found`"},
		{
			"Successfully processed and committed doc ID X.",
			"`document_committed`, at level debug; the count is in `batch_committed`: `outcomes`",
		},
		{
			"Failed to process document ID X. Error: E",
			"`document_retry_scheduled` or `document_error`: `document`, `kind`, `code`, `reason`. While SQL is away no document fails: `invocation_postponed`",
		},
		{
			"Scheduling document ID X for retry 1/5 after 120s backoff",
			"`document_retry_scheduled`: `retry_count`, `retry_after`",
		},
		{"Successfully scheduled retry for doc ID X.", "the same line: it is written after the patch"},
		{"Circuit breaker opening after 5 consecutive failures", "`flow_stopped`: `state` open"},
		{"Circuit breaker is open. Retrying in 60.0s.", "`flow_stopped`: `next_probe`; `tick_done`: `flow`"},
		{"Circuit breaker entering half-open state", "`flow_changed`: `state` half_open"},
		{"Circuit breaker closing after successful operation", "`flow_changed`: `state` closed"},
		{
			"Attempting to set AI-ERROR status in SQL for detail IDs: [...]",
			"none: `poison_kept` or `poison_unmarked` says how it ended",
		},
		{"Successfully set AI-ERROR status in SQL for detail IDs: [...]", "`poison_kept`: `marked`"},
		{"Successfully marked poison message for doc ID X.", "`document_failed`"},
		{
			"a critical error that requires manual review (R62)",
			"`poison_unmarked`: `line`, `duplicates`; `document_too_large` (R19)",
		},
		{
			"how many documents wait after a full batch (R27)",
			"`tick_done`: `found`, `more`, `oldest_s`; `sqlwriterctl status`",
		},
		{
			"Batch coordination metrics: {...} (R71)",
			"`hand_off_done`: `documents`, `batches`, `sent`, `unsent`, `insert_ms`, `send_ms`, `update_ms`",
		},
	}
}
