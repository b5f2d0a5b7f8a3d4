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

	"sqlwriter/internal/config"
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

// A row is shown only where all that it needs was seen. Without --send the trigger is not.
func TestReportClaimsOnlyWhatWasSeen(t *testing.T) {
	for row, c := range map[string]struct {
		change func(p *patient)
		ids    string // those that lack the row
	}{
		"":            {func(*patient) {}, "^$"},
		ops.DepSQL:    {func(p *patient) { p.rows[0].Found = "" }, "^identity-sql$"},
		ops.RowLeases: {func(p *patient) { p.rows[2].Found = "2 leases of 0 owners" }, "^trigger$"},
		rowSite: {func(p *patient) {
			answer := p.Others["GET "]
			answer.Body = strings.Replace(answer.Body, "functionAppConfig", "other", 1) // not on Flex Consumption
			p.Others["GET "] = answer
		}, "."},
		ops.RowSignIn: {
			func(p *patient) { p.rows[5].Found, p.Sites[0].SignIn = "off: x", "{}" }, "^sign-in-seen$",
		},
		rowIdentity: {
			func(p *patient) { p.set(config.BlobConnection, "AccountName=stx;AccountKey=a2V5") },
			"^(identity-.*|trigger)$",
		},
	} {
		p := newPatient(t)
		p.Sites[0].SignIn, p.env[keyVariable] = signInOn, "key-marker"
		p.rows[2].Found = "2 leases of 1 owner, renewed in the last 9s"
		p.rows[0].Found, p.rows[5].Found = "user app; rights", "on: the platform's sign-in is seen"
		c.change(p)
		require.Equal(t, exitOK, p.run(t, "doctor", "--app", "func-x", "--report", "-o", "json"), p.errors+p.out)
		var found struct{ Report []shownRow }
		require.NoError(t, json.Unmarshal([]byte(p.out), &found))
		require.Len(t, found.Report, len(reportTable()))
		for _, one := range found.Report {
			lacks := regexp.MustCompile(c.ids).MatchString(one.ID)
			require.Equal(t, lacks, slices.Contains(one.Lacks, row), "%s without %s", one.ID, row)
			require.Equal(t, lacks || one.ID == "trigger", one.Seen == "")
			if one.Seen != "" {
				require.Regexp(t, `^20\S+Z; site: func-x, Flex .*; health: ready, v1\.4\.0\b`, one.Seen)
			}
		}
	}
}

// Whatever keeps a row of doctor from being ok keeps what needs it from being shown, and nothing else.
func TestReportNeedsEachRow(t *testing.T) {
	var f diagnosis
	names := idsOf(doctorRows(), func(row doctorRow) string { return row.name })
	if !slices.Contains(names, "feed") {
		names = append(names, "feed")
	}
	for _, name := range names {
		f.Rows = append(f.Rows, ops.DoctorRow{Name: name, State: ops.RowOK, Found: map[string]string{
			rowSite: "x, Flex Consumption", rowHealth: "ready, v1", rowIdentity: "no key", ops.RowSignIn: "on: x",
			rowRoles: "Storage Blob, Cosmos DB, Service Bus", ops.DepSQL: "user x", ops.RowLeases: "1 lease of 1 owner",
		}[name]})
	}
	for i, row := range f.Rows {
		for _, state := range []string{ops.RowWrong, ops.RowNotYet, ops.RowNotLooked} {
			f.Rows[i].State = state
			for _, one := range f.shows(time.Now()) {
				_, needs := reportTable()[one.ID][row.Name]
				require.Equal(t, needs, one.Seen == "", "%s without %s", one.ID, row.Name)
				require.Equal(t, needs, slices.Equal(one.Lacks, []string{row.Name}))
			}
		}
		f.Rows[i].State = ops.RowOK
	}
}
