package main

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

// sampleRequest is an id of a request as documents have it.
const sampleRequest = "2025-12-17 10:45:00.250000-06:00-0002"

// examples are one or two for each command. A test parses them, and that each command has some.
func examples() map[string][]string {
	return map[string][]string{
		"status": {"sqlwriterctl status", "sqlwriterctl status --check || echo somebody must look"},
		"doctor": {"sqlwriterctl doctor --app NAME", "sqlwriterctl doctor --app NAME --wait 5m"},
		"explain": {
			"sqlwriterctl explain 2628", "sqlwriterctl explain quota", "sqlwriterctl explain timer_silent",
			"sqlwriterctl explain stale",
		},
		"document list": {
			"sqlwriterctl document list --status failed --error-code 2628 --since 1d",
			`sqlwriterctl document list --request "` + sampleRequest + `"`,
		},
		"document why": {
			`sqlwriterctl document why "2025-12-17 10:30:00.000000-06:00-0001-1421549"`,
			"sqlwriterctl document why --line 1421549",
		},
		"document diff": {
			`sqlwriterctl document diff "2025-12-17 10:30:00.000000-06:00-0001-1421549"`,
			"sqlwriterctl document diff ID ID -o json",
		},
		"document retry": {
			"sqlwriterctl document retry --error-code 2628 --dry-run",
			`sqlwriterctl document retry --error-code 2628 --why "column widened"`,
		},
		"document submit": {
			"sqlwriterctl document submit --replace examples/01-plain-success.json",
			"sqlwriterctl document submit - < result.json",
		},
		"document mark-committed": {`sqlwriterctl document mark-committed ID --why "typed in from the invoice"`},
		"flow pause":              {`sqlwriterctl flow pause --why "index rebuild"`},
		"flow resume": {
			`sqlwriterctl flow resume --why "it is built"`,
			`sqlwriterctl flow resume --force --why "INC-4715: restored"`,
		},
		"run start": {
			"sqlwriterctl run start reindex --since 2026-01-31 --dry-run",
			`sqlwriterctl run start replay --run RUN --why "column widened" --rate 600`,
		},
		"run list": {"sqlwriterctl run list --limit 5"},
		"run show": {"sqlwriterctl run show RUN --watch"},
		"run items": {
			"sqlwriterctl run items RUN --outcome failed,retry_scheduled,left",
			"sqlwriterctl run items RUN -o json > receipt.json",
		},
		"run cancel": {`sqlwriterctl run cancel RUN --why "wrong filter"`},
		"run resume": {`sqlwriterctl run resume RUN --why "it was killed"`},
		"batch list": {"sqlwriterctl batch list RUN --status failed"},
		"batch requeue": {
			`sqlwriterctl batch requeue RUN/3 --why "queue is back"`,
			`sqlwriterctl batch requeue --run RUN --why "queue is back"`,
		},
		"finding list": {
			"sqlwriterctl finding list --class edited,row_missing", "sqlwriterctl finding list --line 1421549",
		},
		"finding compare": {
			`sqlwriterctl finding compare --why "numbers do not match"`,
			`sqlwriterctl finding compare --all --why "INC-4715: restored"`,
		},
		"line release": {
			"sqlwriterctl line release 1421550 --dry-run",
			`sqlwriterctl line release 1421550 --why "INC-4716: its document dropped it"`,
		},
		"evidence show": {
			`sqlwriterctl evidence show "2025-12-17 10:30:00.000000-06:00-0001-1421549"`,
			"sqlwriterctl evidence show ID --line 1421549",
		},
		"evidence get": {
			"sqlwriterctl evidence get ID > document.json", "sqlwriterctl evidence get ID --file error.json",
		},
		"evidence restore": {
			"sqlwriterctl evidence restore ID --dry-run",
			`sqlwriterctl evidence restore ID --why "INC-4716: deleted by mistake"`,
		},
		"audit list": {
			"sqlwriterctl audit list --limit 50", "sqlwriterctl audit list --action FLOW_PAUSED",
		},
		"report show":   {"sqlwriterctl report show queue-lag", "sqlwriterctl report show"},
		"ledger adopt":  {"sqlwriterctl ledger adopt --dry-run", "sqlwriterctl ledger adopt --empty"},
		"ledger status": {"sqlwriterctl ledger status"},
		"ledger reopen": {"sqlwriterctl ledger reopen"},
		"migrate up": {
			"sqlwriterctl migrate up",
			"sqlwriterctl migrate up --user func-sqlwriter-web --client-id 00000000-0000-0000-0000-000000000000 --sample-tables --history empty",
		},
		"migrate status": {"sqlwriterctl migrate status"},
		"migrate prune":  {"sqlwriterctl migrate prune"},
		"migrate script": {"sqlwriterctl migrate script > migrate.sql"},
		"column list":    {"sqlwriterctl column list"},
		"column check":   {"sqlwriterctl column check", "MAPPING=mapping.json sqlwriterctl column check"},
		"column draft":   {"sqlwriterctl column draft > mapping.draft.json"},
		"completion": {
			"source <(sqlwriterctl completion bash)",
			"sqlwriterctl completion fish > ~/.config/fish/completions/sqlwriterctl.fish",
		},
		"version": {"sqlwriterctl version -o json"},
	}
}

// addExamples puts the examples into the help of the commands.
func addExamples(root *kong.Node) error {
	all := examples()
	for _, node := range root.Leaves(true) {
		lines, ok := all[node.Path()]
		if !ok {
			return fmt.Errorf("the command %q has no example", node.Path())
		}
		node.Detail = "Examples:\n\n  " + strings.Join(lines, "\n  ")
	}
	return nil
}
