package explain

import (
	"cmp"
	"slices"

	"sqlwriter/internal/condition"
	"sqlwriter/internal/fault"
)

// advice is what a person does about an error, and the section of the runbook that says more.
type advice struct {
	// of is the condition that has both, unless do says something else.
	of string
	// codes, conditions and kind select rows; empty ones select all.
	codes      []string
	conditions []fault.Condition
	kind       fault.Kind
	do, page   string
}

// advices is the table: the first that fits a row counts.
func advices() []advice {
	return []advice{
		{codes: []string{"database_went_back", "other_database"}, of: condition.DatabaseRefused},
		{codes: []string{"paused"}, of: condition.FlowPaused},
		{
			codes: []string{"document.too_deep"}, of: condition.FeedMissed,
			do: "put a flat version of the document, or delete it",
		},
		{codes: []string{"breaker_open"}, of: condition.FlowStopped, do: "`sqlwriterctl status` names the cause"},
		{
			conditions: []fault.Condition{fault.Waits}, of: condition.WaitsLong,
			do: "nothing; if it lasts, sys.dm_tran_locks names the session that has the lock sqlwriter.one_writer",
		},
		{conditions: []fault.Condition{fault.Gone, fault.Changed}, page: "One line per invocation", do: "nothing"},
		{
			conditions: []fault.Condition{fault.MissingRow}, of: condition.WaitsLong,
			do: "write the missing row into IVCE_DTL; `sqlwriterctl document why ID` names the line",
		},
		{
			codes: []string{"916", "18456"}, of: condition.FlowStopped,
			do: "for an identity `sqlwriterctl migrate up --user IDENTITY --client-id CLIENT_ID` makes the user; else correct SQL_CONNECTION",
		},
		{
			codes: []string{"33134", "33159"}, of: condition.FlowStopped,
			do: "sign in with `az login`, and give SQL_CONNECTION `fedauth=ActiveDirectoryAzCli`",
		},
		{
			codes: []string{"40615"}, of: condition.FlowStopped,
			do: "`az sql server firewall-rule create -g GROUP -s SERVER -n NAME --start-ip-address ADDRESS --end-ip-address ADDRESS`",
		},
		{
			codes: []string{"403/5301"}, of: condition.FlowStopped,
			do: "`az cosmosdb sql role assignment create -g GROUP -a ACCOUNT --role-definition-id 00000000-0000-0000-0000-000000000002 " +
				"--scope /dbs/DATABASE --principal-id OBJECT_ID`; a new role takes some minutes",
		},
		{
			codes: []string{"ledger_not_adopted"}, of: condition.FlowStopped,
			do: "`sqlwriterctl ledger adopt`, with `--empty` where nothing was written before",
		},
		{
			codes: []string{"amqp:not-found", "notfound"}, of: condition.DependencyFailing,
			do: "`az servicebus queue create -g GROUP --namespace-name NAMESPACE -n QUEUE --enable-duplicate-detection true " +
				"--default-message-time-to-live P14D`, or correct the setting that names the queue",
		},
		{
			codes: []string{"unauthorized"}, of: condition.DependencyFailing,
			do: "`az role assignment create --role \"Azure Service Bus Data Owner\" --assignee-object-id OBJECT_ID " +
				"--assignee-principal-type ServicePrincipal --scope NAMESPACE_ID`; a new role takes some minutes",
		},
		{
			codes: []string{"403/AuthorizationPermissionMismatch"}, of: condition.DependencyFailing,
			do: "`az role assignment create --role \"Storage Blob Data Contributor\" --assignee-object-id OBJECT_ID " +
				"--assignee-principal-type ServicePrincipal --scope ACCOUNT_ID`; a new role takes some minutes",
		},
		{
			kind: fault.Infrastructure, of: condition.FlowStopped,
			do: "mend what the meaning names; it goes on by itself, and `sqlwriterctl status` shows when",
		},
		{kind: fault.Throttled, of: condition.FlowStopped, do: "nothing; give it a larger tier if it lasts"},
		{
			kind: fault.Quota, of: condition.FlowStopped,
			do: "make room, then `sqlwriterctl flow resume --why TEXT` probes at once",
		},
		{kind: fault.Contention, of: condition.WaitsLong, do: "nothing; if it lasts, find out what holds the locks"},
		{
			kind: fault.Document, of: condition.Poison,
			do: "correct the document or the schema, then `sqlwriterctl document retry --error-code CODE --dry-run` shows what would be tried again",
		},
		{kind: fault.Internal, of: condition.Mistake},
	}
}

// adviceOn returns what to do about a row, and the link to the section.
func adviceOn(r fault.Row) (do, page string) {
	i := slices.IndexFunc(advices(), func(a advice) bool {
		return (len(a.codes) == 0 || slices.Contains(a.codes, r.Code)) &&
			(len(a.conditions) == 0 || slices.Contains(a.conditions, r.Condition)) && (a.kind == "" || a.kind == r.Kind)
	})
	a := advices()[max(i, 0)]
	of, _ := condition.Of(a.of)
	return cmp.Or(a.do, of.Do), condition.Row{Page: cmp.Or(a.page, of.Page)}.Link()
}
