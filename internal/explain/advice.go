package explain

import (
	"slices"

	"sqlwriter/internal/fault"
)

// advice is what a person does about an error, and the page that says more.
type advice struct {
	// codes, conditions and kind select rows; empty ones select all.
	codes      []string
	conditions []fault.Condition
	kind       fault.Kind
	do, page   string
}

// advices is the table: the first that fits a row counts.
func advices() []advice {
	const runbook = "docs/runbook.md#"
	return []advice{
		{codes: []string{"database_went_back", "other_database"}, page: runbook + "the-database-went-back", do: "find out which database is the right one; only then connect it, or accept this one"},
		{codes: []string{"paused"}, page: runbook + "hold-everything", do: "`sqlwriterctl flow resume --why TEXT` once the reason for the pause is gone"},
		{codes: []string{"document.too_deep"}, page: runbook + "the-feed-stands-still", do: "put a flat version of the document, or delete it"},
		{codes: []string{"breaker_open"}, page: runbook + "the-flow", do: "`sqlwriterctl status` names the cause"},
		{conditions: []fault.Condition{fault.Gone, fault.Changed}, page: runbook + "one-line-per-invocation", do: "nothing"},
		{conditions: []fault.Condition{fault.MissingRow}, page: runbook + "why-is-this-document-where-it-is", do: "write the missing row into IVCE_DTL; `sqlwriterctl document why ID` names the line"},
		{kind: fault.Infrastructure, page: runbook + "the-flow", do: "mend what the meaning names; it goes on by itself, and `sqlwriterctl status` shows when"},
		{kind: fault.Throttled, page: runbook + "the-flow", do: "nothing; give it a larger tier if it lasts"},
		{kind: fault.Quota, page: runbook + "the-flow", do: "make room, then `sqlwriterctl flow resume --why TEXT` probes at once"},
		{kind: fault.Contention, page: runbook + "why-is-this-document-where-it-is", do: "nothing; if it lasts, find out what holds the locks"},
		{kind: fault.Document, page: runbook + "try-failed-documents-again", do: "correct the document or the schema, then `sqlwriterctl document retry --code CODE --dry-run` shows what would be tried again"},
		{kind: fault.Internal, page: runbook + "mistakes-of-the-app", do: "keep the log line with its stack and report it: it is a bug of the SQL Writer"},
	}
}

// adviceOn returns the advice on a row.
func adviceOn(r fault.Row) advice {
	i := slices.IndexFunc(advices(), func(a advice) bool {
		return (len(a.codes) == 0 || slices.Contains(a.codes, r.Code)) &&
			(len(a.conditions) == 0 || slices.Contains(a.conditions, r.Condition)) && (a.kind == "" || a.kind == r.Kind)
	})
	return advices()[max(i, 0)]
}
