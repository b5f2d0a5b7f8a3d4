package adopt_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/adopt"
	"sqlwriter/internal/invoice"
)

// now is the clock of all tests. committedAt and committedTS are the usual stamp and _ts of their documents.
func now() time.Time { return time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC) }

const (
	committedAt = "2025-12-17 10:30:15.123456-06:00"
	committedTS = 1765989015
)

// finished returns a committed document of the old writer. change has pairs of old and new texts.
func finished(change ...string) string {
	return strings.NewReplacer(change...).Replace(`{"id":"2025-12-17 10:30:00.000000-06:00-0001-7","_ts":` +
		fmt.Sprint(committedTS) + `,
		"request_details":{"sys_name":"web"},"invoice_details_from_rpa":{"IVCE_DTL_UID":7},"post-processing":{"duplicate_detail_uids":[8,9]},
		"process_output":{"manufacturer_name":"ACME","unspsc_confidence":0.5,"invoice_line_status":"RC-AI"},
		"sql_writer":{"status":"committed","retry_count":0,"committed_at":"` + committedAt + `"}}`)
}

func failed(more string) string {
	return finished(`"status":"committed"`, `"status":"failed"`, `"committed_at":"`+committedAt+`"`,
		`"failed_at":"`+committedAt+`","error":"x"`+more)
}

func read(t *testing.T, raw string) invoice.Document {
	t.Helper()
	d, err := invoice.Reader{}.Read(json.RawMessage(raw), now())
	require.NoError(t, err)
	return d
}

func TestACommittedDocumentIsARowForEachLine(t *testing.T) {
	d := read(t, finished())
	rows, reason := adopt.RowsOf(d, now(), time.Time{})
	require.Empty(t, reason)
	require.Len(t, rows, 3)
	for i, line := range []int64{7, 8, 9} {
		require.Equal(t, adopt.Row{
			Line: line, Version: invoice.Version{US: 1765989000000000, Key: invoice.Key(d.ID)},
			DocumentID: d.ID, SourceTS: committedTS,
			Hash: d.Hash, HashVersion: invoice.DefaultMapping().Version(), SysName: d.SysName, Outcome: adopt.Adopted,
		}, rows[i])
	}
	require.NotEmpty(t, rows[0].SysName)
}

func TestAFailedDocumentIsAMarkOnEachLine(t *testing.T) {
	d := read(t, failed(""))
	rows, reason := adopt.RowsOf(d, now(), time.Time{})
	require.Empty(t, reason)
	require.Len(t, rows, 3)
	require.Equal(t,
		adopt.Row{
			Line: 8, Version: d.Version, DocumentID: d.ID, SysName: d.SysName,
			SourceTS: committedTS, Outcome: adopt.Failed,
		}, rows[1])
}

// A document with refused values was written by other rules: its lines are adopted with the hash of the refused
// content.
func TestARefusedDocumentIsAdoptedWithItsRefusedHash(t *testing.T) {
	for name, raw := range map[string]string{
		"a value out of bounds": finished(`0.5`, `1.5`),
		"no output":             finished(`"process_output":{`, `"old_output":{`),
		"an odd duplicate":      finished(`[8,9]`, `[8,"x",9]`),
		"an unknown status":     finished(`RC-AI`, `OK`),
	} {
		d := read(t, raw)
		require.Error(t, d.Problem, name)
		rows, reason := adopt.RowsOf(d, now(), time.Time{})
		require.Empty(t, reason, name)
		require.Len(t, rows, 3, name)
		for _, r := range rows {
			require.Equal(t, d.Hash, r.Hash)
			require.Equal(t, invoice.DefaultMapping().Version(), r.HashVersion)
		}
	}
}

func TestADocumentThatWasChangedAfterItsCommitProvesNothing(t *testing.T) {
	for _, c := range []struct {
		ts     int64
		stamp  string
		proven bool
	}{
		{committedTS + 1, committedAt, true},
		{committedTS + 300, committedAt, true}, // two clocks may differ
		{committedTS + 301, committedAt, false},
		{committedTS + 90*86400, committedAt, false},
		{committedTS - 3600, committedAt, true},
		{committedTS + 90*86400, "noon", true}, // unreadable stamps prove nothing
		{committedTS + 90*86400, "", true},
	} {
		d := read(t, finished(fmt.Sprint(committedTS), fmt.Sprint(c.ts), committedAt, c.stamp))
		rows, reason := adopt.RowsOf(d, now(), time.Time{})
		require.Empty(t, reason)
		require.Equal(t, c.proven, rows[0].HashVersion == invoice.DefaultMapping().Version(), "%+v", c)
		require.Equal(t, !c.proven, rows[0].HashVersion == adopt.Unproven)
		require.Equal(t, d.Hash, rows[0].Hash)
	}
}

// A document that waits again was written before, with a content that nobody knows: its lines keep older results out,
// and its present content is written.
func TestADocumentThatWasResetIsAWitness(t *testing.T) {
	later := "2025-12-18 10:30:15.123456-06:00"
	for name, c := range map[string]struct {
		raw  string
		want adopt.Outcome
	}{
		"committed, and pending again":                 {finished(`"committed"`, `"pending"`), adopt.Adopted},
		"committed, and in work again":                 {finished(`"committed"`, `"processing"`), adopt.Adopted},
		"committed, and with a retry":                  {finished(`"committed"`, `"retry_scheduled"`), adopt.Adopted},
		"committed, and of a status that nobody knows": {finished(`"committed"`, `"redo"`), adopt.Adopted},
		"failed, and pending again": {
			strings.Replace(failed(""), `"failed"`, `"pending"`, 1), adopt.Failed,
		},
		"failed, then committed": {
			finished(`"committed",`, `"pending","failed_at":"`+committedAt+`",`, `"committed_at":"`+committedAt,
				`"committed_at":"`+later), adopt.Adopted,
		},
		"committed, then failed": {
			finished(`"committed",`, `"pending","failed_at":"`+later+`",`), adopt.Failed,
		},
		"at a time that cannot be read": {finished(`"committed"`, `"pending"`, committedAt, "noon"), ""},
		"failed by us": {
			strings.Replace(failed(`,"last_error_kind":"document"`), `"failed"`, `"pending"`, 1), "",
		},
		"never": {
			finished(`"committed"`, `"pending"`, `committed_at`, `created_at`), "",
		},
	} {
		d := read(t, c.raw)
		rows, reason := adopt.RowsOf(d, now(), time.Time{})
		if c.want == "" {
			require.Empty(t, rows, name)
			continue
		}
		require.Empty(t, reason, name)
		require.Len(t, rows, 3, name)
		require.Equal(t, c.want, rows[0].Outcome, name)
		require.Equal(t, adopt.Unproven, rows[0].HashVersion, name)
		require.Less(t, rows[0].SourceTS, d.TS, name)
	}
}

func TestWhatEndedAfterTheCopyHasNoRows(t *testing.T) {
	at := time.Date(2025, 12, 17, 16, 30, 15, 123_456_000, time.UTC) // committedAt
	for _, raw := range []string{
		finished(), failed(""), finished(`"committed"`, `"pending"`),
		finished(`"retry_count":0`, `"outcome":"applied"`),
	} {
		for before, want := range map[time.Time]adopt.Reason{
			{}: "", at: "", at.Add(time.Hour): "", at.Add(-time.Microsecond): adopt.Later,
		} {
			rows, reason := adopt.RowsOf(read(t, raw), now(), before)
			require.Equal(t, want, reason, "%s: %s", before, raw)
			require.Equal(t, want == "", len(rows) > 0)
		}
	}
}

func TestWhatSaysNothingHasAReason(t *testing.T) {
	ahead := "2026-01-05 13:00:00.000001+00:00"
	for name, c := range map[string]struct {
		raw  string
		want adopt.Reason
	}{
		"no line":        {finished(`"IVCE_DTL_UID":7`, `"IVCE_DTL_UID":"x"`), adopt.NoLine},
		"no line at all": {finished(`"invoice_details_from_rpa"`, `"other"`), adopt.NoLine},
		"no time": {
			finished(`2025-12-17 10:30:00.000000-06:00-0001-7`, `by-hand`), adopt.NoVersion,
		},
		"no time, but a version": {
			finished(`2025-12-17 10:30:00.000000-06:00-0001-7`, `by-hand`, `"retry_count":0`,
				`"version":1765989000000000`), "",
		},
		"the future": {finished(`2025-12-17 10:30:00.000000-06:00`, ahead), adopt.Future},
		"the future, with 70 refusals": {
			finished(`2025-12-17 10:30:00.000000-06:00`, ahead, `[8,9]`, "["+strings.Repeat(`"x",`, 70)+`9]`),
			adopt.Future,
		},
		"an hour ahead": {
			finished(`2025-12-17 10:30:00.000000-06:00`, `2026-01-05 13:00:00.000000+00:00`), "",
		},
		"a mark that was not made": {failed(`,"final_error":"timeout"`), adopt.MarkNotMade},
		"failed by us":             {failed(`,"last_error_kind":"document"`), adopt.FailedHere},
		"failed by us, without a mark": {
			failed(`,"last_error_kind":"document","final_error":"no row"`), adopt.FailedHere,
		},
		"failed without a line": {
			strings.Replace(failed(""), `"IVCE_DTL_UID":7`, `"IVCE_DTL_UID":0`, 1), adopt.NoLine,
		},
		"committed with an old failure": {
			finished(`"retry_count":0`, `"last_error_kind":"document","final_error":"x"`), "",
		},
		"committed as superseded by us":  {finished(`"retry_count":0`, `"outcome":"superseded"`), ""},
		"committed in another spelling":  {finished(`"committed"`, `" Committed"`), ""},
		"committed with nothing else":    {finished(`"retry_count":0,"committed_at":"`+committedAt+`"`, `"x":1`), ""},
		"committed, its values all null": {finished(`"manufacturer_name":"ACME","unspsc_confidence":0.5,`, ``), ""},
	} {
		rows, reason := adopt.RowsOf(read(t, c.raw), now(), time.Time{})
		require.Equal(t, c.want, reason, name)
		require.Equal(t, c.want == "", len(rows) > 0, name)
	}
	for _, r := range []adopt.Reason{
		adopt.NoID, adopt.NoLine, adopt.NoVersion, adopt.Future, adopt.MarkNotMade, adopt.FailedHere, adopt.Later,
	} {
		require.NotEqual(t, string(r), r.Meaning())
	}
}
