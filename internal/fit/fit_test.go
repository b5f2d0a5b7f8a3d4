package fit_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // as the tool has it

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fit"
	"sqlwriter/internal/invoice"
	"sqlwriter/test/mapping"
)

// world is a container and two tables, whose rows hold what truth makes of the documents.
type world struct {
	truth   *invoice.Mapping
	pages   [][]string
	charge  float64
	queries []commit.Query
	rows    map[invoice.Table]map[int64]map[string]any
	// surrogate is another unique number of both tables: that of the line is surrogate more.
	surrogate int64
	// twice: each row of IVCE_TRKG_MSTR is there twice. refuses is what columns say of their types.
	twice   bool
	refuses func(invoice.Column) (says, takes string)
}

// Find implements commit.Finder: each document is in the window of its _ts.
func (w *world) Find(_ context.Context, q commit.Query, continuation string) (commit.Page, error) {
	w.queries = append(w.queries, q)
	var n int
	_, _ = fmt.Sscan(continuation, &n)
	p := commit.Page{Charge: w.charge}
	if n >= len(w.pages) {
		return p, nil
	}
	for _, text := range w.pages[n] {
		d, err := invoice.Reader{}.Read([]byte(text), time.Now())
		if err != nil {
			return p, err
		}
		wanted := len(q.IDs) > 0 || (slices.Contains(q.Statuses, d.State.Status) && d.TS >= q.From && d.TS < q.To)
		if wanted {
			p.Documents = append(p.Documents, invoice.Projection(text))
		}
	}
	if n+1 < len(w.pages) {
		p.Next = fmt.Sprint(n + 1)
	}
	return p, nil
}

func (w *world) UserColumns(context.Context) (map[invoice.Table][]fit.Column, error) {
	all := map[invoice.Table][]fit.Column{}
	for _, table := range []invoice.Table{invoice.Detail, invoice.Tracking} {
		all[table] = []fit.Column{{Name: w.truth.Key(table), Type: "bigint", Integer: true, Unique: true}}
	}
	if w.surrogate != 0 {
		for table := range all {
			all[table] = append(all[table], fit.Column{Name: "SURROGATE", Integer: true, Unique: true})
		}
	}
	for _, c := range w.truth.Columns() {
		all[c.Table] = append(all[c.Table], fit.Column{
			Name: c.Name, Type: "its type", Refuses: w.refuses,
		})
	}
	return all, nil
}

func (w *world) UserRows(
	_ context.Context, table invoice.Table, key string, columns []string, lines []int64,
) (all []fit.Row, err error) {
	for _, line := range lines {
		if key == "SURROGATE" {
			line -= w.surrogate
		}
		if values, ok := w.rows[table][line]; ok {
			row := fit.Row{Line: line}
			if key == "SURROGATE" {
				row.Line += w.surrogate
			}
			for _, name := range columns {
				row.Values = append(row.Values, values[name])
			}
			all = append(all, row)
			if w.twice && table == invoice.Tracking && key != "SURROGATE" {
				all = append(all, row)
			}
		}
	}
	return all, nil
}

// now is after daylight saving time has ended; half of the documents are from before.
var now = time.Date(2025, 11, 20, 12, 0, 0, 0, time.UTC) //nolint:gochecknoglobals // a constant

// newWorld has n committed documents with rows. set changes the row of a document.
func newWorld(n int, truth *invoice.Mapping, set func(i int, table invoice.Table, row map[string]any)) *world {
	w := &world{
		truth: truth, charge: 1, refuses: func(invoice.Column) (string, string) { return "", "" },
		rows: map[invoice.Table]map[int64]map[string]any{invoice.Detail: {}, invoice.Tracking: {}},
	}
	for i := range n {
		at := now.AddDate(0, 0, -i)
		text := fmt.Sprintf(`{"id":"%s-%d","_ts":%d,"_rid":"r%[2]d","request_details":{"sys_name":"web"},
			"invoice_details_from_rpa":{"IVCE_DTL_UID":%[4]d},"sql_writer":{"status":"committed"},
			"process_output":{"manufacturer_name":"secret %[2]d","invoice_line_status":"RC-AI","part_number":"P%[2]d","padded":"00%[2]d",
			"processing_started_at":%[5]q}}`, at.Format("2006-01-02 15:04:05.000000-07:00"), i, at.Unix(), 1000+i, at.Format(time.RFC3339))
		w.add(text, i, set)
	}
	return w
}

func (w *world) add(text string, i int, set func(i int, table invoice.Table, row map[string]any)) {
	if i%20 == 0 || len(w.pages) == 0 {
		w.pages = append(w.pages, nil)
	}
	w.pages[len(w.pages)-1] = append(w.pages[len(w.pages)-1], text)
	d, err := invoice.Reader{Mapping: w.truth}.Read([]byte(text), now)
	if err != nil {
		panic(err)
	}
	for _, table := range []invoice.Table{invoice.Detail, invoice.Tracking} {
		row := map[string]any{}
		for n, c := range w.truth.Columns() {
			if v := w.truth.RowValues(d.Values, d.Main, d.Main)[n]; c.Table == table && !v.Null {
				row[c.Name] = v.Text
			}
		}
		set(i, table, row)
		w.rows[table][d.Main] = row
	}
}

func as(int, invoice.Table, map[string]any) {}

func (w *world) check(t *testing.T, m *invoice.Mapping) *fit.Report {
	t.Helper()
	zone, err := time.LoadLocation(mapping.Zone)
	require.NoError(t, err)
	r, err := fit.Check(t.Context(), w, w, fit.Options{
		SysName: "web", Reader: invoice.Reader{Mapping: m}, Zone: zone, Now: now,
	})
	require.NoError(t, err)
	text, err := json.Marshal(r)
	require.NoError(t, err)
	require.NotContains(t, string(text), "secret", "no value is reported")
	return r
}

// of are the findings about a column of IVCE_TRKG_MSTR or IVCE_DTL.
func of(r *fit.Report, column string) (all []string) {
	for _, f := range r.Findings {
		if strings.HasSuffix(f.Where, column) && f.Level != fit.Note {
			all = append(all, string(f.Level)+": "+f.Says)
		}
	}
	return all
}

func TestWhatRowsSayOfAColumn(t *testing.T) {
	hours := func(zone *time.Location) func(int, invoice.Table, map[string]any) {
		return func(_ int, _ invoice.Table, row map[string]any) {
			if text, ok := row["PRCS_STRT_TS"].(string); ok {
				at, err := time.Parse(time.RFC3339Nano, text)
				if err != nil {
					panic(err)
				}
				row["PRCS_STRT_TS"] = at.In(zone).Format("2006-01-02 15:04:05.000000")
			}
		}
	}
	chicago, err := time.LoadLocation(mapping.Zone)
	require.NoError(t, err)
	for name, c := range map[string]struct {
		rows   int
		set    func(i int, table invoice.Table, row map[string]any)
		column string
		want   []string
	}{
		"one row in ten was corrected by a person": {
			40, func(i int, _ invoice.Table, row map[string]any) {
				if i%10 == 0 {
					row["CLN_MFR_PRT_NUM"] = "corrected"
				}
			}, "CLN_MFR_PRT_NUM", nil,
		},
		"stewards have set each status": {
			40, func(_ int, _ invoice.Table, row map[string]any) { row["IVCE_LNE_STAT"] = "DS1" }, "DTL.IVCE_LNE_STAT",
			[]string{"look: 40 of 40 rows differ: stewards change a status"},
		},
		"summer and winter of the deployment's zone": {
			60, hours(chicago), "PRCS_STRT_TS",
			[]string{"wrong: 60 of 60 rows differ by the hours between UTC and TIME_ZONE: the type is time(zone)"},
		},
		"another zone": {
			60, hours(time.FixedZone("", 2*60*60)), "PRCS_STRT_TS",
			[]string{"wrong: 60 of 60 rows differ by whole hours: they have local times of another zone than TIME_ZONE"},
		},
		"too few rows to tell": {
			5, func(i int, _ invoice.Table, row map[string]any) { row["CLN_MFR_PRT_NUM"] = fmt.Sprint("x", i) },
			"DTL.CLN_MFR_PRT_NUM",
			[]string{"look: 5 of 5 rows differ: too few to tell from which member they are"},
		},
		"no member has what the rows have": {
			40, func(i int, _ invoice.Table, row map[string]any) { row["UPC_CD"] = fmt.Sprint("x", i) }, "DTL.UPC_CD",
			[]string{"wrong: would empty 40 rows, and no member equals them: name the member, or take the column out"},
		},
		"a member and its column are absent everywhere": {
			40, as, "DTL.UPC_CD", []string{"look: no document has process_output.upc, and no row tells what it holds"},
		},
		"people have corrected one in five": {
			100, func(i int, _ invoice.Table, row map[string]any) {
				if i%5 == 0 {
					row["CLN_MFR_PRT_NUM"] = "corrected"
				}
			}, "DTL.CLN_MFR_PRT_NUM",
			[]string{"look: 20 of 100 rows differ: people have corrected them, or they have a second source"},
		},
		"a column rounds to seconds": {
			60, func(_ int, _ invoice.Table, row map[string]any) {
				if text, ok := row["RQST_TS"].(string); ok {
					at, err := time.Parse(time.RFC3339Nano, text)
					if err != nil {
						panic(err)
					}
					row["RQST_TS"] = at.Add(999 * time.Millisecond)
				}
			}, "RQST_TS", nil,
		},
		"one time does not speak for all": {
			60, func(i int, _ invoice.Table, row map[string]any) {
				if i > 0 {
					delete(row, "PRCS_STRT_TS")
				} else if text, ok := row["PRCS_STRT_TS"].(string); ok {
					row["PRCS_STRT_TS"] = strings.Replace(text, "T12", "T06", 1)
				}
			}, "PRCS_STRT_TS",
			[]string{"look: 59 rows are empty, and would get a value: the old writer did not feed the column"},
		},
		"an empty text is no value": {
			40, func(_ int, _ invoice.Table, row map[string]any) { row["AKS_PRT_NUM"] = "" }, "DTL.AKS_PRT_NUM",
			[]string{"look: no document has process_output.aks_part_number, and no row tells what it holds"},
		},
		"a char column pads its texts": {
			40, func(_ int, _ invoice.Table, row map[string]any) {
				if text, ok := row["CLN_MFR_PRT_NUM"].(string); ok {
					row["CLN_MFR_PRT_NUM"] = text + "  "
				}
			}, "CLN_MFR_PRT_NUM", nil,
		},
		"a code of digits has lost its zeros": {
			40, func(i int, table invoice.Table, row map[string]any) {
				if table == invoice.Detail {
					row["UPC_CD"] = fmt.Sprint(i)
				}
			}, "DTL.UPC_CD",
			[]string{"wrong: would empty 40 rows, and no member equals them: name the member, or take the column out"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(c.rows, invoice.DefaultMapping(), c.set)
			require.Equal(t, c.want, of(w.check(t, nil), c.column))
		})
	}
}

// What the old writer wrote into a column that the mapping does not know is missed in new rows.
func TestAColumnThatNothingFeeds(t *testing.T) {
	w := newWorld(40, mapping.Edited(func(tables map[invoice.Table]*mapping.Table) {
		for _, table := range tables {
			table.Columns = append(table.Columns, mapping.Entry{"name": "MORE", "value": "AI", "type": "text(10)"})
		}
	}), as)
	require.Equal(t, []string{"look: its type, nothing feeds it, and 40 of 40 rows have a value: new rows will not, unless the mapping has it"},
		of(w.check(t, nil), "MORE"), "of IVCE_TRKG_MSTR: in IVCE_DTL no row is inserted")
}

// The other way round: the mapping writes local times, and the rows have UTC.
func TestRowsHaveUTCWhereTheMappingIsLocal(t *testing.T) {
	local := mapping.Edited(func(tables map[invoice.Table]*mapping.Table) {
		tables[invoice.Tracking].Column("PRCS_STRT_TS")["type"] = "time(zone)"
	})
	r := newWorld(60, invoice.DefaultMapping(), as).check(t, local)
	require.Equal(t, []string{"wrong: 60 of 60 rows differ by the hours between UTC and TIME_ZONE: the type is time"},
		of(r, "PRCS_STRT_TS"))
}

// The status cannot be mapped away: a draft without it would be refused.
func TestADraftKeepsTheStatus(t *testing.T) {
	w := newWorld(40, mapping.Edited(func(tables map[invoice.Table]*mapping.Table) {
		tables[invoice.Detail].Column("IVCE_LNE_STAT")["name"] = "LINE_STATUS"
	}), as)
	r := w.check(t, nil)
	require.Equal(t, []string{"wrong: no such column; which one has its values cannot tell: fewer than 20 that differ"},
		of(r, "DTL.IVCE_LNE_STAT"))
	require.Contains(t, mended(t, w, r), `{"name":"IVCE_LNE_STAT"`)
}

// A document that comes twice while its partition is divided is one.
func TestADocumentThatComesTwiceIsOne(t *testing.T) {
	w := newWorld(30, invoice.DefaultMapping(), as)
	w.pages = append(w.pages, w.pages[0])
	r := w.check(t, nil)
	require.Equal(t, 30, r.Committed)
	require.Empty(t, of(r, "container"))
}

// A key that exists, and has some of the lines by chance, is not the key.
func TestAKeyThatOverlapsByChanceIsNamed(t *testing.T) {
	w := newWorld(60, invoice.DefaultMapping(), as)
	w.surrogate = 7
	wrong := mapping.Edited(func(tables map[invoice.Table]*mapping.Table) { tables[invoice.Detail].Key = "SURROGATE" })
	r := w.check(t, wrong)
	require.Equal(t, []string{"wrong: the key is another column: IVCE_DTL_UID has 60 of 60 lines, and its rows agree with the documents"},
		of(r, "DTL.SURROGATE"))
	require.Empty(t, of(r, "CLN_MFR_AI_NM"), "one finding, and not one for each column")
	require.Empty(t, of(w.check(t, nil), "DTL.IVCE_DTL_UID"))
}

// A write would change one of two rows with one line.
func TestALineThatHasTwoRowsIsNamed(t *testing.T) {
	w := newWorld(40, invoice.DefaultMapping(), as)
	w.twice = true
	want := []string{"wrong: 40 rows have a line that another row has: a write would change one of them"}
	require.Equal(t, want, of(w.check(t, nil), "MSTR.IVCE_DTL_UID"))

	w = newWorld(40, invoice.DefaultMapping(), func(i int, _ invoice.Table, row map[string]any) {
		for name := range row {
			row[name] = fmt.Sprint("another result ", i)
		}
	})
	w.twice, w.surrogate = true, 7
	require.Equal(t, want, of(w.check(t, nil), "MSTR.IVCE_DTL_UID"), "also where another key was looked for in vain")
}

// A text in the place of an object on the way to a member fails the document.
func TestATextInThePlaceOfAnObject(t *testing.T) {
	m := mapping.Edited(func(tables map[invoice.Table]*mapping.Table) {
		tables[invoice.Detail].Column("UPC_CD")["from"] = "process_output.codes.upc"
	})
	w := newWorld(40, m, as)
	w.pages[0][1] = strings.Replace(w.pages[0][1], `"part_number"`, `"codes":"none","part_number"`, 1)
	require.Equal(t, []string{
		"look: 1 of 1 documents would fail, because the rules refuse their value: validation.not_an_object",
	}, of(w.check(t, m), "DTL.UPC_CD"))
}

// Two columns that the table lacks never become one.
func TestAColumnIsSuggestedOnce(t *testing.T) {
	lacking := func(tables map[invoice.Table]*mapping.Table, names ...string) {
		for _, name := range names {
			t := tables[invoice.Detail]
			t.Columns = append(t.Columns,
				mapping.Entry{"name": name, "from": "process_output.part_number", "type": "text(100)"})
		}
	}
	truth := mapping.Edited(func(tables map[invoice.Table]*mapping.Table) { lacking(tables, "THERE") })
	assumed := mapping.File(func(tables map[invoice.Table]*mapping.Table) { lacking(tables, "A", "B") })
	r := newWorld(40, truth, as).check(t, mapping.Read(assumed))
	require.Equal(t, []string{"wrong: no such column: THERE equals process_output.part_number in 40 of 40 rows"}, of(r, "DTL.A"))
	require.Equal(t, []string{"wrong: no such column: take it out of the mapping, or add it to the table"}, of(r, "DTL.B"))
	draft, err := r.Draft(assumed)
	require.NoError(t, err)
	require.Equal(t, truth.Version(), mapping.Read(draft).Version())
}

// AI-ERROR must fit into the status: its type is nobody's guess.
func TestADraftNarrowsNoStatus(t *testing.T) {
	w := newWorld(40, invoice.DefaultMapping(), as)
	w.refuses = func(c invoice.Column) (string, string) {
		if c.Status {
			return "narrow", "text(6)"
		}
		return "", ""
	}
	r := w.check(t, nil)
	require.Equal(t, []string{"wrong: narrow"}, of(r, "DTL.IVCE_LNE_STAT"))
	require.NotContains(t, mended(t, w, r), "text(6)")
}

// Names of members may be values: such are counted, and not printed.
func TestNamesThatAreDataAreCounted(t *testing.T) {
	w := newWorld(40, invoice.DefaultMapping(), as)
	for p := range w.pages {
		for i, text := range w.pages[p] {
			w.pages[p][i] = strings.Replace(text, `"part_number"`, fmt.Sprintf(`"by_vendor":{"secret %d-%d":1},"part_number"`, p, i), 1)
		}
	}
	r := w.check(t, nil) // it looks for secrets
	require.Contains(t, r.Findings,
		fit.Finding{Level: fit.Note, Where: "container", Says: "nothing reads 40 members that fewer than one document of 20 has"})
}

// What keeps a document from being written is found, wherever in the document it is.
func TestDocumentsThatWouldFailAreCounted(t *testing.T) {
	for name, c := range map[string]struct{ from, to, where, want string }{
		"an object where a text belongs": {
			`"part_number":"P1"`, `"part_number":{"main":"P1"}`, "DTL.CLN_MFR_PRT_NUM",
			"look: 1 of 40 documents would fail, because the rules refuse their value: validation.wrong_type",
		},
		"a text where the lines belong": {
			`"sql_writer"`, `"post-processing":{"duplicate_detail_uids":"7"},"sql_writer"`, "container",
			"look: 1 of 40 documents would fail: validation.not_a_list of post-processing.duplicate_detail_uids",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(40, invoice.DefaultMapping(), as)
			w.pages[0][1] = strings.Replace(w.pages[0][1], c.from, c.to, 1)
			require.Equal(t, []string{c.want}, of(w.check(t, nil), c.where))
		})
	}
}

// A line holds the newest result: an older document that names it says nothing about its row.
func TestOnlyTheNewestResultOfALineIsCompared(t *testing.T) {
	w := newWorld(40, invoice.DefaultMapping(), as)
	for i := range 30 {
		text := fmt.Sprintf(`{"id":"2020-01-01 00:00:%02d.000000+00:00-%d","_ts":%d,"request_details":{"sys_name":"web"},
			"invoice_details_from_rpa":{"IVCE_DTL_UID":%d},"sql_writer":{"status":"committed"},
			"process_output":{"manufacturer_name":"older","invoice_line_status":"RC-AI"}}`, i, i, now.Unix(), 1000+i)
		w.pages[0] = append(w.pages[0], text)
	}
	r := w.check(t, nil)
	require.Equal(t, 70, r.Committed)
	require.Equal(t, 40, r.Lines)
	require.Empty(t, of(r, "CLN_MFR_AI_NM"))
	require.Equal(t, 40, r.Columns[0].Same)
}

// The newest are read first, and reading ends before a page may go beyond the bound.
func TestTheSampleIsTheNewestAndHasABound(t *testing.T) {
	w := newWorld(400, invoice.DefaultMapping(), as)
	r := w.check(t, nil)
	require.Equal(t, 200, r.Committed)
	require.Equal(t, 200, r.Rows[invoice.Detail])
	require.Less(t, w.queries[0].From, w.queries[0].To)
	for i, q := range w.queries[1:] {
		if before := w.queries[i]; len(q.IDs) == 0 && q.Statuses[0] == before.Statuses[0] {
			require.LessOrEqual(t, q.From, before.From, "the windows go back in time")
		}
	}

	for _, charge := range []float64{150, 700, 1999} {
		w := newWorld(400, invoice.DefaultMapping(), as)
		w.charge = charge
		require.LessOrEqual(t, w.check(t, nil).Charge, 2000.0, charge)
	}
}

func mended(t *testing.T, w *world, r *fit.Report) string {
	t.Helper()
	draft, err := r.Draft(invoice.DefaultFile())
	require.NoError(t, err)
	require.Equal(t, w.truth.Key(invoice.Detail), mapping.Read(draft).Key(invoice.Detail))
	return string(draft)
}

// A draft is a mapping, and has every member that the file has.
func TestADraftKeepsTheFile(t *testing.T) {
	w := newWorld(40, mapping.Renamed(), as)
	r := w.check(t, nil)
	require.Equal(t, []string{"wrong: no such column: REQUEST_TIME equals (request_time) in 40 of 40 rows"},
		of(r, "RQST_TS"))
	require.Contains(t, mended(t, w, r), `{"name":"REQUEST_TIME"`)
	draft, err := newWorld(0, invoice.DefaultMapping(), as).check(t, nil).Draft(invoice.DefaultFile())
	require.NoError(t, err)
	require.JSONEq(t, string(invoice.DefaultFile()), string(draft))

	w = newWorld(40, invoice.DefaultMapping(), func(i int, _ invoice.Table, row map[string]any) {
		row["UPC_CD"] = fmt.Sprint("x", i)
	})
	draft = []byte(mended(t, w, w.check(t, nil)))
	require.Contains(t, string(draft), `{"name":"UPC_CD","from":"process_output.upc","type":"text(20)","missing":"keep"`,
		"rows have a value, and no document")
	require.Contains(t, string(draft), `{"name":"RQST_TS","line":"request_time","meaning":"time of the request, from the document's id"}`,
		"what rows have shown is not assumed any more")
	require.Contains(t, of(w.check(t, mapping.Read(draft)), "DTL.UPC_CD")[0],
		"look: no document has process_output.upc", "what a column keeps is not compared")
	_, err = r.Draft([]byte("[]"))
	require.Error(t, err)
}
