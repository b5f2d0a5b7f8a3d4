package main

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"sqlwriter/internal/ops"
)

// reportTable has the rows of docs/unverified.md that doctor can show, by id: the rows of doctor that must all be ok,
// and what each must say. A row of that page of which doctor looks at a part only is not here. Each needs an app on
// Flex Consumption, its settings, and Health, which names the build.
func reportTable() map[string]map[string]string {
	const noKey = "no key"
	table := map[string]map[string]string{
		"doctor-reads":    {rowPackage: "", rowHost: "", rowFunctions: "", rowAlwaysReady: "", rowTelemetry: ""},
		"handler-starts":  {rowPackage: "", rowHost: "", rowFunctions: ""},
		"identity-blobs":  {rowIdentity: noKey, rowRoles: "Storage Blob", ops.RowBlobs: ""},
		"identity-cosmos": {rowIdentity: noKey, rowRoles: "Cosmos DB", ops.DepCosmos: "", ops.RowLeases: ""},
		"identity-queues": {rowIdentity: noKey, rowRoles: "Service Bus", ops.DepServiceBus: ""},
		"identity-sql":    {rowIdentity: noKey, ops.DepSQL: "user "},
		"sign-in-seen":    {ops.RowSignIn: "^on:"},
		"trigger":         {rowIdentity: noKey, ops.RowLeases: "[1-9][0-9]* owner", ops.RowFeed: ""},
	}
	for _, must := range table {
		must[rowSite], must[rowSettings], must[rowHealth] = ", Flex Consumption", "", ", ."
	}
	return table
}

// shownRow is what a run says of a row of docs/unverified.md: what was seen, as text to paste, or which rows of doctor
// did not show it.
type shownRow struct {
	ID    string   `json:"id"`
	Seen  string   `json:"seen,omitempty"`
	Lacks []string `json:"lacks,omitempty"`
}

// shows says which rows of docs/unverified.md a run has shown.
func (f diagnosis) shows(at time.Time) (all []shownRow) {
	for _, id := range slices.Sorted(maps.Keys(reportTable())) {
		must, one, seen := reportTable()[id], shownRow{ID: id}, at.UTC().Format(time.RFC3339)
		for _, row := range f.Rows {
			says, needed := must[row.Name]
			if needed && row.State == ops.RowOK && regexp.MustCompile(says).MatchString(row.Found) {
				delete(must, row.Name)
				seen += "; " + row.Name + ": " + oneLine(row.Found)
			}
		}
		if one.Lacks = slices.Sorted(maps.Keys(must)); len(must) == 0 {
			one.Seen = seen
		}
		all = append(all, one)
	}
	return all
}

// emitReport prints a diagnosis, and what it shows of docs/unverified.md.
func (a *app) emitReport(f diagnosis) error {
	rows := f.shows(a.now())
	shown := slices.DeleteFunc(slices.Clone(rows), func(row shownRow) bool { return row.Seen == "" })
	result := struct {
		diagnosis

		Report []shownRow `json:"report"`
	}{f, rows}
	return a.emit(result, idsOf(shown, func(row shownRow) string { return row.ID }), func() error {
		if err := printDiagnosis(a, f); err != nil {
			return err
		}
		a.printf("\nof docs/unverified.md (the rows without a line here keep the command beside them)")
		for _, row := range rows {
			if row.Seen != "" {
				a.printf("%s: shown %s", row.ID, row.Seen)
			} else {
				a.printf("%s: not shown by %s", row.ID, strings.Join(row.Lacks, ", "))
			}
		}
		return nil
	})
}
