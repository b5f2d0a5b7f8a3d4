package expect

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/store/sqlite"
	"sqlwriter/test/fill"
)

const (
	mainLine      = 1421549
	duplicateLine = 1421550
	otherLine     = 1421560 // has a detail row; no document names it
)

const full = `{
  "id": "2025-12-17 10:30:00.000000-06:00-0001-1421549",
  "request_details": {"sys_name": "web"},
  "invoice_details_from_rpa": {"IVCE_DTL_UID": 1421549},
  "process_output": {
    "manufacturer_name": "THOMAS & BETTS", "part_number": "425", "unspsc": "39131711", "upc": "786210004250",
    "aks_part_number": "AKS-1", "cleaned_description": "Strain relief", "invoice_line_status": "AI_ERROR",
    "data_verified": true, "web_search_url": "https://parts.example/425", "stage": "rules",
    "manufacturer_name_confidence": 0.12345, "part_number_confidence": 0.99995, "unspsc_confidence": 1,
    "manufacturer_name_stage": "a", "part_number_stage": "b", "unspsc_stage": "c",
    "processing_started_at": "2025-12-17 10:30:01.000001-06:00", "processing_completed_at": "2025-12-17T16:30:02.5Z"
  },
  "post-processing": {"duplicate_detail_uids": [1421550]},
  "sql_writer": {"status": "committed", "outcome": "applied", "committed_at": "2025-12-17 10:30:15.123456-06:00"}
}`

// fixture is a database with the exact rows of a document.
func fixture(t *testing.T) (*sql.DB, Input) {
	t.Helper()
	ctx := t.Context()
	store, err := sqlite.Open(ctx, filepath.Join(t.TempDir(), "check.db"), sqlite.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	db := store.Writer()
	exec(t, db, `PRAGMA synchronous = OFF`) // hundreds of writes that need not survive a power cut
	require.NoError(t, sqlite.CreateSampleSchema(ctx, db))
	require.NoError(t, store.Migrate(ctx))
	for _, line := range []int{mainLine, duplicateLine, otherLine} {
		exec(t, db,
			`INSERT INTO IVCE_DTL (IVCE_DTL_UID, IVCE_NUM, ITM_LDSC, IVCE_LNE_STAT) VALUES (?, 'INV-1', 'AS SCANNED', 'NEW')`, line)
	}
	before, err := Read(ctx, db)
	require.NoError(t, err)

	d, err := read("full", json.RawMessage(full))
	require.NoError(t, err)
	for _, line := range d.lines {
		detail, err := detailRow(d, line)
		require.NoError(t, err)
		for column, v := range detail {
			exec(t, db, `UPDATE IVCE_DTL SET "`+column+`" = ? WHERE IVCE_DTL_UID = ?`, v, line)
		}
		tracking, err := trackingRow(d, line)
		require.NoError(t, err)
		exec(t, db, `INSERT INTO IVCE_TRKG_MSTR (IVCE_DTL_UID) VALUES (?)`, line)
		for column, v := range tracking {
			exec(t, db, `UPDATE IVCE_TRKG_MSTR SET "`+column+`" = ? WHERE IVCE_DTL_UID = ?`, v, line)
		}
		exec(t, db,
			`INSERT INTO sqlwriter_ledger (detail_id, version_us, document_key, document_id, source_ts, content_hash, hash_version, sys_name, outcome, write_id, applied_at)
			VALUES (?, ?, unhex(?), ?, 1, zeroblob(32), 1, 'web', 'applied', 'w', 'now')`, line, d.versions.us, d.versions.key, d.id)
	}
	want := &Want{Status: "committed", Outcomes: []string{"applied"}}
	return db,
		Input{
			Before: before,
			Documents: []Document{
				{Name: "full", ID: d.id, Submitted: json.RawMessage(full), Stored: json.RawMessage(full), Want: want},
			},
		}
}

func exec(t *testing.T, db *sql.DB, query string, args ...any) {
	t.Helper()
	_, err := db.ExecContext(t.Context(), query, args...)
	require.NoError(t, err, query)
}

func check(t *testing.T, db *sql.DB, in Input) Result {
	t.Helper()
	r, err := checkFile(t.Context(), db, in)
	require.NoError(t, err)
	return r
}

func TestCorrectRowsAreExact(t *testing.T) {
	db, in := fixture(t)
	r := check(t, db, in)
	require.True(t, r.Exact(), "%v", r.Differences)
	require.Equal(t, Result{Documents: 1, Rows: 7, Values: r.Values, Written: 2}, r)
	require.Greater(t, r.Values, 2*(14+19+4))
}

// TestEveryColumnIsCompared changes one value of one column at a time, for the main line and the duplicate, in all
// three tables, to another text and to NULL (or from NULL to a text).
func TestEveryColumnIsCompared(t *testing.T) {
	db, in := fixture(t)
	notCompared := []string{
		"IVCE_DTL_UID", "detail_id", "source_ts", "content_hash", "hash_version", "sys_name", "detail_row_hash",
		"tracking_row_hash", "write_id", "applied_at",
	}
	changed := 0
	for table, rows := range in.mustRead(t, db) {
		for line, row := range rows {
			if table != Detail && line == otherLine {
				continue
			}
			key := "IVCE_DTL_UID"
			if table == Ledger {
				key = "detail_id"
			}
			for column, old := range row {
				if slices.Contains(notCompared, column) {
					continue
				}
				changed++
				d := withValue(t, db, table, key, line, column, old, in)
				require.Len(t, d, 1, "%s.%s of %d", table, column, line)
				require.Equal(t, table, d[0].Table)
				require.Equal(t, column, d[0].Column)
				require.Equal(t, line, d[0].Line)
				require.Contains(t, d[0].String(), column)
			}
		}
	}
	columns := map[invoice.Table]int{}
	for _, c := range invoice.DefaultMapping().Columns() {
		columns[c.Table]++
	}
	const unused, ofLedger = 2, 4
	require.Equal(t, 3*(columns[Detail]+unused)+2*columns[Tracking]+2*ofLedger, changed)
}

// The product and this package map a document with every member of the column table alike.
func TestBothMappingsAgreeOnEveryColumn(t *testing.T) {
	stored := fill.Document(full)
	d, err := invoice.Reader{}.Read([]byte(stored), time.Date(2025, 12, 17, 16, 35, 0, 0, time.UTC))
	require.NoError(t, err)
	require.NoError(t, d.Problem)
	lines, err := RowsOf(json.RawMessage(stored))
	require.NoError(t, err)
	require.Len(t, lines, 2)
	for _, line := range lines {
		product := map[invoice.Table]Row{Detail: {}, Tracking: {}}
		for i, v := range invoice.DefaultMapping().RowValues(d.Values, d.Main, line.Line) {
			c := invoice.DefaultMapping().Columns()[i]
			product[c.Table][c.Name] = just(v.Text)
			if v.Null {
				product[c.Table][c.Name] = nil
			}
		}
		require.Equal(t, product[Detail], line.Detail)
		require.Equal(t, product[Tracking], line.Tracking)
	}
}

func (in Input) mustRead(t *testing.T, db *sql.DB) Tables {
	t.Helper()
	all, err := Read(t.Context(), db)
	require.NoError(t, err)
	return all
}

// withValue runs the check with one changed value, and restores the value.
func withValue(
	t *testing.T, db *sql.DB, table, key string, line int64, column string, old *string, in Input,
) []Difference {
	t.Helper()
	changed := "9"
	if column == "outcome" {
		changed = "adopted"
	}
	if column == "document_key" {
		changed = strings.Repeat("0", 64)
	}
	if strings.HasSuffix(column, "_SCR") {
		changed = "0.0001"
	}
	value := "?"
	if column == "document_key" {
		value = "unhex(?)"
	}
	update := fmt.Sprintf(`UPDATE %s SET "%s" = %s WHERE %s = ?`, table, column, value, key)
	exec(t, db, update, changed, line)
	r := check(t, db, in)
	exec(t, db, update, old, line)
	if table != Ledger && old != nil {
		exec(t, db, update, nil, line)
		require.Len(t, check(t, db, in).Differences, 1, "%s.%s of %d set to NULL", table, column, line)
		exec(t, db, update, old, line)
	}
	return r.Differences
}

func TestRowsThatAreMissingOrTooMany(t *testing.T) {
	for name, c := range map[string]struct {
		change string
		want   string
	}{
		"a written tracking row is gone": {
			`DELETE FROM IVCE_TRKG_MSTR WHERE IVCE_DTL_UID = 1421550`,
			`line 1421550 (full) IVCE_TRKG_MSTR: want a row, got none`,
		},
		"a written detail row is gone": {
			`DELETE FROM IVCE_DTL WHERE IVCE_DTL_UID = 1421549`, `line 1421549 (full) IVCE_DTL: want a row, got none`,
		},
		"the ledger forgot a line": {
			`DELETE FROM sqlwriter_ledger WHERE detail_id = 1421549`,
			`line 1421549 (full) sqlwriter_ledger: want a row, got none`,
		},
		"an untouched line got a tracking row": {
			`INSERT INTO IVCE_TRKG_MSTR (IVCE_DTL_UID) VALUES (1421560)`,
			`line 1421560 () IVCE_TRKG_MSTR: want no row, got a row`,
		},
		"an untouched detail row is gone": {
			`DELETE FROM IVCE_DTL WHERE IVCE_DTL_UID = 1421560`,
			`line 1421560 (no document) IVCE_DTL: want a row, got none`,
		},
		"a row nobody knows": {
			`INSERT INTO IVCE_DTL (IVCE_DTL_UID) VALUES (7)`, `line 7 () IVCE_DTL: want no row, got a row`,
		},
		"the ledger names a line that no document won": {
			`INSERT INTO sqlwriter_ledger SELECT 1421560, version_us, document_key, document_id, source_ts, content_hash, hash_version, sys_name, detail_row_hash, tracking_row_hash, outcome, write_id, applied_at FROM sqlwriter_ledger WHERE detail_id = 1421549`,
			`sqlwriter_ledger: want no row: no committed document names the line`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			db, in := fixture(t)
			exec(t, db, c.change)
			r := check(t, db, in)
			require.Len(t, r.Differences, 1)
			require.Contains(t, r.Differences[0].String(), c.want)
		})
	}
}

func TestTheNewestDocumentOfALineIsFoundByTheIds(t *testing.T) {
	db, in := fixture(t)
	later := strings.NewReplacer("2025-12-17 10:30:00.000000-06:00", "2025-12-17 16:30:00.000001+00:00",
		`"425"`, `"426"`).Replace(full)
	in.Documents = append(in.Documents, Document{Name: "later", ID: "x", Stored: json.RawMessage(later)})
	r := check(t, db, in)
	require.False(t, r.Exact())
	for _, d := range r.Differences {
		require.Equal(t, "later", d.Document, "the rows are held against the newer document: %v", d)
	}

	earlier := strings.NewReplacer("2025-12-17 10:30:00.000000-06:00", "2025-12-17 17:29:59.999999+01:00",
		`"425"`, `"424"`).Replace(full)
	in.Documents[1].Stored = json.RawMessage(earlier)
	require.True(t, check(t, db, in).Exact(), "an older one changes nothing, whatever its clock shows")
}

func TestTheEndOfADocumentIsCompared(t *testing.T) {
	for name, c := range map[string]struct {
		stored func(string) string
		want   Want
		differ []string
	}{
		"another status": {
			swap(`"committed"`, `"pending"`),
			Want{Status: "committed", Outcomes: []string{"applied"}},
			[]string{"sql_writer.status"},
		},
		"another outcome": {
			swap(`"outcome": "applied"`, `"outcome": "unchanged"`),
			Want{Status: "committed", Outcomes: []string{"applied"}},
			[]string{"sql_writer.outcome"},
		},
		"no time": {
			swap(`"2025-12-17 10:30:15.123456-06:00"`, `"noon"`),
			Want{Status: "committed", Outcomes: []string{"applied"}},
			[]string{"sql_writer.committed_at"},
		},
		"changed content": {
			swap(`"data_verified": true`, `"data_verified": "Y"`),
			Want{Status: "committed", Outcomes: []string{"applied"}},
			[]string{""},
		},
		"wrongly touched": {swap(`"outcome": "applied", `, ``), Want{}, []string{""}},
		"no outcome": {
			swap(`"outcome": "applied", `, ``), Want{Status: "committed"}, []string{"sql_writer.outcome"},
		},
		"not superseded": {
			swap(`"outcome": "applied"`, `"outcome": "superseded", "superseded_by": "who"`),
			Want{Status: "committed", Outcomes: []string{"superseded"}},
			[]string{"sql_writer.superseded_by"},
		},
		"must have failed": {
			swap(``, ``),
			Want{Status: "failed", Kind: "document"},
			[]string{"sql_writer.status", "sql_writer.last_error_kind", "sql_writer.last_error"},
		},
		"two are all right": {
			swap(``, ``), Want{Status: "committed", Outcomes: []string{"superseded", "applied"}}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			db, in := fixture(t)
			in.Documents[0].Stored = json.RawMessage(c.stored(full))
			in.Documents[0].Want = &c.want
			var columns []string
			for _, d := range check(t, db, in).Differences {
				if d.Table == "" {
					columns = append(columns, d.Column)
				}
			}
			require.Equal(t, c.differ, columns)
		})
	}
}

func swap(old, with string) func(string) string {
	return func(s string) string { return strings.Replace(s, old, with, 1) }
}

func TestAfterARedeliveryUnchangedIsRightToo(t *testing.T) {
	db, in := fixture(t)
	in.Documents[0].Stored = json.RawMessage(swap(`"outcome": "applied"`, `"outcome": "unchanged"`)(full))
	require.False(t, check(t, db, in).Exact())
	in.Redelivered = true
	require.True(t, check(t, db, in).Exact())
}

// A reindex writes what the old writer had committed, and records no outcome in the document.
func TestADocumentWithoutAnOutcomeIsComparedIfTheLedgerNamesIt(t *testing.T) {
	db, in := fixture(t)
	old := json.RawMessage(swap(`"outcome": "applied", `, ``)(full))
	in.Documents[0].Submitted, in.Documents[0].Stored, in.Documents[0].Want = old, old, &Want{}
	require.True(t, check(t, db, in).Exact())
	exec(t, db, `UPDATE IVCE_DTL SET UPC_CD = 'x' WHERE IVCE_DTL_UID = 1421549`)
	require.Len(t, check(t, db, in).Differences, 1)
	exec(t, db, `DELETE FROM sqlwriter_ledger`)
	require.NotEmpty(t, check(t, db, in).Differences, "no document wrote the rows")
}

// A stack that stays up turns the documents that fail into poison messages.
func TestAPoisonMessageOfAnEarlierRunIsRight(t *testing.T) {
	db, in := fixture(t)
	poison := strings.NewReplacer(`"status": "committed", "outcome": "applied"`,
		`"status": "failed", "last_error_kind": "document", "last_error": "too long"`,
		"2025-12-17 10:30", "2025-12-17 10:31").Replace(full)
	in.Documents = append(in.Documents,
		Document{
			Name: "poison", Stored: json.RawMessage(poison), Want: &Want{Status: "retry_scheduled", Kind: "document"},
		})
	d, err := read("poison", json.RawMessage(poison))
	require.NoError(t, err)
	exec(t, db,
		`UPDATE sqlwriter_ledger SET outcome = 'failed', content_hash = NULL, hash_version = NULL, document_id = ?, version_us = ?, document_key = unhex(?)`, d.id, d.versions.us, d.versions.key)
	exec(t, db, `UPDATE IVCE_DTL SET IVCE_LNE_STAT = 'AI-ERROR' WHERE IVCE_DTL_UID <> ?`, otherLine)
	require.Len(t, check(t, db, in).Differences, 1, "the status is too early for a first run")
	in.Redelivered = true
	require.Empty(t, check(t, db, in).Differences)
	exec(t, db, `UPDATE IVCE_DTL SET IVCE_LNE_STAT = 'RC-AI'`)
	require.Len(t, check(t, db, in).Differences, 3, "both lines lack the mark, and another line was touched")
}

// A person repaired the rows by hand and said so: nothing says what must be in them.
func TestALineThatAPersonRepairedIsNotCompared(t *testing.T) {
	db, in := fixture(t)
	in.Documents[0].Stored = json.RawMessage(swap(`"outcome": "applied"`, `"outcome": "manual"`)(full))
	in.Documents[0].Want, in.Before = nil, nil
	exec(t, db, `UPDATE sqlwriter_ledger SET outcome = 'failed', content_hash = NULL, hash_version = NULL`)
	exec(t, db, `UPDATE IVCE_DTL SET UPC_CD = 'x'`)
	require.Empty(t, check(t, db, in).Differences)
}

func TestADocumentThatIsGoneIsADifference(t *testing.T) {
	db, in := fixture(t)
	in.Documents[0].Stored = nil
	require.Contains(t, check(t, db, in).Differences[0].String(), "it is not in the container")
	in.Documents[0].Stored = json.RawMessage(`{`)
	require.Contains(t, check(t, db, in).Differences[0].String(), "not a JSON object")
}

func TestAnIdWithoutATimeNeedsARecordedVersion(t *testing.T) {
	db, in := fixture(t)
	in.Documents[0].Submitted = nil
	in.Documents[0].Stored = json.RawMessage(swap("2025-12-17 10:30:00.000000-06:00-0001", "by-hand")(full))
	var columns []string
	for _, d := range check(t, db, in).Differences {
		columns = append(columns, d.Column)
	}
	require.Contains(t, columns, "sql_writer.version")
	require.Contains(t, columns, "RQST_TS", "there is no request time")
}

func TestRoundingIsAwayFromZeroAtTheHalf(t *testing.T) {
	m := mapper{}
	for in, want := range map[string]string{
		"0.12345": "0.1235", "0.99995": "1.0000", "9.4994e-1": "0.9499", "1": "1.0000",
		"0.00005": "0.0001", "0.000049": "0.0000",
	} {
		require.Equal(t, want, *m.fourDigits(json.Number(in)))
	}
	require.NoError(t, m.err)
	m.fourDigits("much")
	require.Error(t, m.err)
}

func TestAnUnknownValueIsADifference(t *testing.T) {
	db, in := fixture(t)
	in.Documents[0].Submitted = nil
	in.Documents[0].Stored = json.RawMessage(swap(`"stage": "rules"`, `"stage": ["rules"]`)(full))
	r := check(t, db, in)
	require.Len(t, r.Differences, 2)
	require.Contains(t, r.Differences[0].String(), "a value that this check understands")
}

func TestADatabaseThatCannotBeReadIsAnError(t *testing.T) {
	db, in := fixture(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := checkFile(ctx, db, in)
	require.Error(t, err)
	require.NotEmpty(t, slices.Collect(maps.Keys(in.Before)))
}

func TestTheCellsOfAServerAreTextsAsTheMappingWritesThem(t *testing.T) {
	for _, c := range []struct {
		kind string
		cell any
		want string
	}{
		{"BIGINT", int64(-7), "-7"},
		{"NVARCHAR", "", ""},
		{"CHAR", "x ", "x "},
		{"DECIMAL", []byte("0.9500"), "0.9500"},
		{
			"DATETIME2", time.Date(2025, 12, 17, 10, 30, 15, 123456000, time.FixedZone("", -6*3600)),
			"2025-12-17T16:30:15.123456Z",
		},
		{"UNIQUEIDENTIFIER", []byte{0, 255}, "00ff"},
	} {
		got, err := cellText(c.kind, c.cell)
		require.NoError(t, err)
		require.Equal(t, c.want, *got, c.kind)
	}
	null, err := cellText("INT", nil)
	require.NoError(t, err)
	require.Nil(t, null)
	_, err = cellText("FLOAT", 0.5)
	require.ErrorContains(t, err, "FLOAT")
}

// checkFile reads the tables from a SQLite file and compares.
func checkFile(ctx context.Context, db *sql.DB, in Input) (Result, error) {
	now, err := Read(ctx, db)
	if err != nil {
		return Result{}, err
	}
	return Compare(now, in), nil
}
