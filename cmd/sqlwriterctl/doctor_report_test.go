package main

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/ops"
)

// Each row of the page has an id of its own, and those marked doctor are those of the table.
func TestReportHasTheRowsOfThePage(t *testing.T) {
	page, err := os.ReadFile("../../docs/unverified.md")
	require.NoError(t, err)
	seen := map[string]bool{}
	var byDoctor []string
	row := regexp.MustCompile("^\\| `([a-z-]+)` \\| .+ \\| (.+) \\|$")
	for line := range strings.SplitSeq(string(page), "\n") {
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|---") || strings.HasPrefix(line, "| id ") {
			continue
		}
		m := row.FindStringSubmatch(line)
		require.NotNil(t, m, "no id: %s", line)
		require.False(t, seen[m[1]], "two rows are called %s", m[1])
		seen[m[1]] = true
		if strings.HasPrefix(m[2], "*doctor*") {
			byDoctor = append(byDoctor, m[1])
		}
	}
	require.ElementsMatch(t, slices.Collect(maps.Keys(reportTable())), byDoctor)
}

// reportedBy runs doctor with --report on a deployment where all is well but for a change.
func reportedBy(t *testing.T, code int, change func(p *patient)) map[string]shownRow {
	t.Helper()
	p := newPatient(t)
	p.rows[2].Found = "2 leases of 1 owner, renewed in the last 9s"
	p.rows[0].Found, p.rows[5].Found = "user app; rights", "on: the platform's sign-in is seen"
	change(p)
	require.Equal(t, code, p.run(t, "doctor", "--app", "func-x", "--report", "-o", "json"), p.errors+p.out)
	var found struct{ Report []shownRow }
	require.NoError(t, json.Unmarshal([]byte(p.out), &found))
	rows := map[string]shownRow{}
	for _, one := range found.Report {
		rows[one.ID] = one
	}
	require.Len(t, rows, len(reportTable()))
	return rows
}

// A row is shown only where all that it needs was seen.
func TestReportClaimsOnlyWhatWasSeen(t *testing.T) {
	all := reportedBy(t, exitOK, func(*patient) {})
	for id, row := range all {
		if id == "trigger" { // without --send
			require.Equal(t, shownRow{ID: id, Lacks: []string{"feed"}}, row)
			continue
		}
		require.Regexp(t, `^20\S+Z; site: func-x, Flex .*; health: ready, v1\.4\.0\b`, row.Seen)
	}
	require.Contains(t, all["identity-sql"].Seen, "; identity: the settings name one that the app has, and no key; ")
	keyed := func(p *patient) { p.set("AzureWebJobsStorage", "AccountName=stx;AccountKey=a2V5") }
	for id, row := range reportedBy(t, exitOK, keyed) {
		byIdentity := strings.HasPrefix(id, "identity-") || id == "trigger"
		require.Equal(t, byIdentity, slices.Contains(row.Lacks, rowIdentity), id)
	}
	ofNoBuild := func(p *patient) { p.healthBody = `{"status": "ready"}` }
	unseen := func(p *patient) { p.Denied = []string{"Microsoft.Web/sites/config/list/action"} }
	for _, rows := range []map[string]shownRow{
		reportedBy(t, exitOK, ofNoBuild), reportedBy(t, exitAttention, unseen),
	} {
		for id, row := range rows {
			require.Empty(t, row.Seen, id)
		}
	}
}

// Whatever keeps a row of doctor from being ok keeps from being shown what needs it, and nothing else.
func TestReportNeedsEachRow(t *testing.T) {
	var f diagnosis
	names := idsOf(doctorRows(), func(row doctorRow) string { return row.name })
	if !slices.Contains(names, "feed") {
		names = append(names, "feed")
	}
	for _, name := range names {
		f.Rows = append(f.Rows, ops.DoctorRow{Name: name, State: ops.RowOK, Found: map[string]string{
			rowSite: "Flex Consumption", rowHealth: "ready, v1", rowIdentity: "no key", ops.RowSignIn: "on: x",
			rowRoles: "Storage Blob, Cosmos DB, Service Bus", ops.DepSQL: "user x", ops.RowLeases: "1 lease of 1 owner",
		}[name]})
	}
	always := []string{rowSite, rowSettings, rowHealth}
	for i, row := range f.Rows {
		for _, state := range []string{ops.RowWrong, ops.RowNotYet, ops.RowNotLooked, ""} {
			f.Rows[i].State = state
			for _, one := range f.shows(time.Now()) {
				_, needs := reportTable()[one.ID][row.Name]
				needs = needs || slices.Contains(always, row.Name)
				require.Equal(t, needs, one.Seen == "", "%s without %s", one.ID, row.Name)
				require.Equal(t, needs, slices.Equal(one.Lacks, []string{row.Name}))
			}
		}
		f.Rows[i].State = ops.RowOK
	}
}
