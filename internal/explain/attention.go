package explain

import (
	"slices"
	"strings"

	"sqlwriter/internal/ops"
)

// ofAttention stands for the adapter of a code of status's attention.
const ofAttention = "attention"

// alarmWords say of each code of ops.Alarms what it means and what a person does.
func alarmWords() map[string][2]string {
	return map[string][2]string{
		"database_refused":    {"SQL is not the database that was written to last; nothing is written", "find out which database is the right one; only then connect it, or accept this one"},
		"database_behind":     {"an operator accepted a database that lacks writes; documents say that it has them", "give the command that it names, and look again; then `sqlwriterctl run start reconcile --all --why TEXT`"},
		"flow_stopped":        {"failures of SQL stopped the flow of all instances", "mend what the cause names; it goes on by itself"},
		"dependency_failing":  {"a dependency fails, from its first failure on; the flow may run still", "mend it; `sqlwriterctl explain CODE` says what its code means"},
		"cut_off":             {"this instance alone cannot reach SQL and leaves its documents to the others", "restart the instance if it lasts"},
		"timer_silent":        {"RecoverRetries has not counted for two ticks, or never: retries, postponed documents and what the feed missed wait for it", "find out why the timer does not run: disabled, missing, or failing"},
		"feed_missed":         {"the change feed did not bring documents that were due; the timer commits them, late", "look for a document of 64 levels or more, else restart the app"},
		"mass_failure":        {"20 documents or more began to fail with one code; others go on", "look at the last deployment of the app or the schema"},
		"flow_paused":         {"an operator paused the flow; documents wait and are counted nothing", "`sqlwriterctl flow resume --why TEXT` once the reason for the pause is gone"},
		"poison":              {"documents failed for good in the last 60 minutes", "`sqlwriterctl document list --status failed` lists them; mend the cause, then `sqlwriterctl document retry`"},
		"findings_open":       {"a comparison found rows, documents or evidence that do not fit; of what it mends itself only what the second night found again", "`sqlwriterctl finding list` lists them, `sqlwriterctl explain CLASS` says what to do about one"},
		"dead_letters":        {"a queue of the runs has dead letters that no function has taken", "see whether BatchManager and BatchWorker run"},
		"run_without_manager": {"a run does not go on: its manager is silent, or none has it for long", "nothing: the timer sends its message again, and executes it itself while Service Bus is away; `sqlwriterctl run resume RUN --why TEXT` does it at once"},
		"waits_long":          {"a document waits for four hours or more; all its retries take about two", "`sqlwriterctl document why ID` says why"},
		"feed_lag":            {"the change feed is five minutes or more behind", "see whether SQL or Cosmos DB is slow; a run of kind drain works off a backlog"},
		"skipped":             {"documents of another environment came, for the first time in the last 24 hours; this app leaves them alone", "is the name a mistake? Correct request_details.sys_name, and the program that writes it"},
	}
}

// explainAlarm explains a code of attention; false when it is none.
func explainAlarm(asked string) (Entry, bool) {
	all := ops.Alarms()
	i := slices.IndexFunc(all, func(at ops.Attention) bool { return strings.EqualFold(at.Code, asked) })
	if i < 0 {
		return Entry{}, false
	}
	words := alarmWords()[all[i].Code]
	page := "docs/runbook.md#" + strings.ReplaceAll(strings.ToLower(all[i].Page), " ", "-")
	return Entry{Asked: asked, Adapter: ofAttention, Code: all[i].Code, Reason: words[0], Do: words[1], Page: page}, true
}
