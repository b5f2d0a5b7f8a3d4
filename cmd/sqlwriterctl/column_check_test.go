package main

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fit"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/store/sqlite"
	"sqlwriter/test/emulators/cosmosdb/cosmosdbtest"
	"sqlwriter/test/emulators/cosmosdb/provision"
	"sqlwriter/test/mapping"
	"sqlwriter/test/sqlservertest"
)

// house is a container and tables that an old writer has filled, by a mapping that nobody has written down.
type house struct {
	*bench
	db        *sql.DB
	documents provision.Documents
	// quote writes a name, extra is what the old writer puts into a column that no mapping feeds.
	quote func(string) string
	extra map[string]string
}

// houses build a house on each engine.
func houses() map[string]func(t *testing.T) *house {
	return map[string]func(t *testing.T) *house{
		"SQLite": func(t *testing.T) *house {
			t.Helper()
			h := &house{bench: newBench(t), quote: func(name string) string { return `"` + name + `"` }}
			path := filepath.Join(h.dir, "old.db")
			store, err := sqlite.Open(t.Context(), path, sqlite.Options{})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, store.Close()) })
			h.db, h.env["SQL_CONNECTION"] = store.Writer(), "sqlite:"+path
			return h
		},
		"server": func(t *testing.T) *house {
			t.Helper()
			b, store := onServer(t)
			return &house{bench: b, db: store.DB(), quote: func(name string) string { return "[" + name + "]" }}
		},
	}
}

// open starts the container's server, whose documents are nobody's yet.
func (h *house) open(t *testing.T) {
	t.Helper()
	server := cosmosdbtest.Start(t)
	h.documents = server.Results(t, "invoices", "AI_PROCESS_LOGS")
	h.env["COSMOS_CONNECTION"], h.env["COSMOS_DATABASE"] = server.ConnectionString, "invoices"
}

// typeOf is the type of a column.
func typeOf(c invoice.Column) string {
	switch c.Kind {
	case invoice.Text, invoice.Flag:
		return fmt.Sprintf("nvarchar(%d)", c.Max)
	case invoice.Integer:
		return "bigint"
	case invoice.Decimal:
		return fmt.Sprintf("decimal(%d, %d)", c.Precision, c.Scale)
	case invoice.Time:
		return "datetime2(6)"
	}
	return ""
}

// tables makes both tables as the truth has them.
func (h *house) tables(t *testing.T, truth *invoice.Mapping) {
	t.Helper()
	for _, table := range []invoice.Table{invoice.Detail, invoice.Tracking} {
		columns := []string{h.quote(truth.Key(table)) + " bigint NOT NULL PRIMARY KEY"}
		for _, c := range truth.Columns() {
			if c.Table == table {
				columns = append(columns, h.quote(c.Name)+" "+typeOf(c)+" NULL")
			}
		}
		for name := range h.extra {
			if table == invoice.Tracking {
				columns = append(columns, h.quote(name)+" nvarchar(36) NOT NULL")
			}
		}
		_, err := h.db.ExecContext(t.Context(), "CREATE TABLE "+string(table)+" ("+strings.Join(columns, ", ")+")")
		require.NoError(t, err)
	}
}

// write does what the old writer did: a row in both tables for each line of a document.
func (h *house) write(t *testing.T, tx *sql.Tx, d invoice.Document) {
	t.Helper()
	for _, line := range append([]int64{d.Main}, d.Duplicates...) {
		values := d.Mapping.RowValues(d.Values, d.Main, line)
		for _, table := range []invoice.Table{invoice.Detail, invoice.Tracking} {
			names, texts := []string{h.quote(d.Mapping.Key(table))}, []string{fmt.Sprint(line)}
			for i, c := range d.Mapping.Columns() {
				if c.Table == table && !values[i].Null {
					names = append(names, h.quote(c.Name))
					texts = append(texts, "'"+strings.TrimSuffix(values[i].Text, "Z")+"'")
				}
			}
			for name, value := range h.extra {
				if table == invoice.Tracking {
					names, texts = append(names, h.quote(name)), append(texts, "'"+value+"'")
				}
			}
			_, err := tx.ExecContext(t.Context(),
				"INSERT INTO "+string(table)+" ("+strings.Join(names, ", ")+") VALUES ("+strings.Join(texts, ", ")+")")
			require.NoError(t, err)
		}
	}
}

// document is result n of the pipeline. edit changes its output.
func document(n int, edit func(output map[string]any)) string {
	output := map[string]any{}
	for i, c := range invoice.DefaultMapping().Columns() {
		if c.Source != invoice.FromDocument {
			continue
		}
		name := strings.TrimPrefix(c.Paths[0], "process_output.")
		switch c.Kind {
		case invoice.Text:
			output[name] = fmt.Sprint(n, "-", name)[:min(c.Max, len(fmt.Sprint(n, "-", name)))]
			if len(c.Values) > 0 {
				output[name] = c.Values[0]
			}
		case invoice.Integer, invoice.Decimal:
			output[name] = float64(i)/100 + float64(n)/1000
		case invoice.Flag:
			output[name] = n%2 == 0
		case invoice.Time:
			output[name] = time.Date(2026, 1, 5, 12, n%60, i, 0, time.UTC).Format(time.RFC3339)
		}
	}
	edit(output)
	id := fmt.Sprintf("2026-01-05 06:%02d:%02d.000000-06:00-0001-%d", n/60, n%60, 1000+n)
	text, err := json.Marshal(map[string]any{
		"id": id, "request_details": map[string]any{"sys_name": "web", "id": id}, "process_output": output,
		"invoice_details_from_rpa": map[string]any{"IVCE_DTL_UID": 1000 + n},
		"post-processing":          map[string]any{"duplicate_detail_uids": []int{5000 + n}},
		"sql_writer":               map[string]any{"status": "committed"},
	})
	if err != nil {
		panic(err)
	}
	return string(text)
}

// fill has the pipeline write documents, and the old writer their rows.
func (h *house) fill(t *testing.T, truth *invoice.Mapping, n int, edit func(n int, output map[string]any)) {
	t.Helper()
	tx, err := h.db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	for i := range n {
		text := document(i, func(output map[string]any) { edit(i, output) })
		require.NoError(t, h.documents.Put(t.Context(), json.RawMessage(text)))
		d, err := invoice.Reader{Mapping: truth}.Read([]byte(text), time.Now())
		require.NoError(t, err)
		require.NoError(t, d.Problem)
		h.write(t, tx, d)
	}
	require.NoError(t, tx.Commit())
}

// mistake is one difference between the mapping that a newcomer begins with and the truth.
type mistake struct {
	// truth edits the default mapping, assumed what the newcomer has in its place.
	truth, assumed func(tables map[invoice.Table]*mapping.Table)
	extra          map[string]string
	edit           func(n int, output map[string]any)
	empty, twin    bool
	// finds are the places of what is found, worse than a note; says is a part of the first. left are those that the
	// next check of the draft leaves to a person.
	finds []string
	says  string
	left  []string
}

func detail(name string, edit func(e mapping.Entry)) func(map[invoice.Table]*mapping.Table) {
	return func(tables map[invoice.Table]*mapping.Table) { edit(tables[invoice.Detail].Column(name)) }
}

// without takes a column out of IVCE_TRKG_MSTR.
func without(tables map[invoice.Table]*mapping.Table, name string) {
	t := tables[invoice.Tracking]
	t.Columns = slices.DeleteFunc(t.Columns, func(e mapping.Entry) bool { return e["name"] == name })
}

// withoutSearch leaves the search's address to IVCE_DTL.
func withoutSearch(tables map[invoice.Table]*mapping.Table) { without(tables, "WEB_SRCH_URL") }

func mistakes() map[string]mistake {
	all := map[string]mistake{
		"none": {},
		"wrong path": {
			truth: detail("UPC_CD", func(e mapping.Entry) { e["from"] = "process_output.upc_code" }),
			edit: func(n int, output map[string]any) {
				output["upc_code"] = fmt.Sprint("C", n)
			},
			finds: []string{"IVCE_DTL.UPC_CD"}, says: "process_output.upc_code equals 60 of 60",
		},
		"renamed column": {
			truth: detail("MFR_CNFDC_SCR", func(e mapping.Entry) { e["name"] = "MFR_CONF_SCORE" }),
			finds: []string{"IVCE_DTL.MFR_CNFDC_SCR"}, says: "no such column: MFR_CONF_SCORE equals",
		},
		"narrow text": {
			truth: detail("ITM_AI_LDSC", func(e mapping.Entry) { e["type"], e["long"] = "text(25)", "cut" }),
			edit: func(n int, output map[string]any) {
				if n == 7 {
					output["cleaned_description"] = "a hexagon bolt of stainless steel"
				}
			},
			finds: []string{"IVCE_DTL.ITM_AI_LDSC"}, says: "found nvarchar(25)",
			left: []string{"IVCE_DTL.ITM_AI_LDSC"}, // cut, or a wider column
		},
		"local time": {
			truth: func(tables map[invoice.Table]*mapping.Table) {
				tables[invoice.Tracking].Column("PRCS_STRT_TS")["type"] = "time(zone)"
			},
			finds: []string{"IVCE_TRKG_MSTR.PRCS_STRT_TS"}, says: "60 of 60 rows differ by the hours between UTC and TIME_ZONE",
		},
		"missing column": {
			truth: func(tables map[invoice.Table]*mapping.Table) {
				without(tables, "MFR_STG_NM")
			},
			finds: []string{"IVCE_TRKG_MSTR.MFR_STG_NM"}, says: "no such column: take it out",
		},
		"NOT NULL without feed": {
			extra: map[string]string{"LINE_GUID": "x"},
			finds: []string{"IVCE_TRKG_MSTR.LINE_GUID"}, says: "no row can be inserted",
			left: []string{"IVCE_TRKG_MSTR.LINE_GUID"},
		},
		"twin ids": {
			twin: true, finds: []string{"container"}, says: "several documents have one id",
			left: []string{"container"},
		},
		"rare member": {
			truth: func(tables map[invoice.Table]*mapping.Table) {
				tables[invoice.Detail].Column("WEB_SRCH_URL")["from"] = "process_output.search_url"
				withoutSearch(tables)
			},
			assumed: withoutSearch,
			edit: func(n int, output map[string]any) {
				if delete(output, "web_search_url"); n < 5 {
					output["search_url"] = fmt.Sprint("https://example.com/", n)
				}
			},
			finds: []string{"IVCE_DTL.WEB_SRCH_URL"}, says: "10 of 10 rows differ: too few to tell",
			left: []string{"IVCE_DTL.WEB_SRCH_URL"},
		},
		"constant column": {
			truth: func(tables map[invoice.Table]*mapping.Table) {
				tr := tables[invoice.Tracking]
				tr.Columns = append(tr.Columns, mapping.Entry{"name": "SRC_SYS_CD", "value": "AI", "type": "text(10)"})
			},
			assumed: func(tables map[invoice.Table]*mapping.Table) {
				tr := tables[invoice.Tracking]
				tr.Columns = append(tr.Columns,
					mapping.Entry{"name": "SRC_SYS_CD", "from": "process_output.source", "type": "text(10)"})
			},
			finds: []string{"IVCE_TRKG_MSTR.SRC_SYS_CD"}, says: "all have one value: a constant",
			left: []string{"IVCE_TRKG_MSTR.SRC_SYS_CD"},
		},
		"flag letters": {
			truth: detail("DATA_VRFN_IND", func(e mapping.Entry) { e["type"] = "flag(J,X)" }),
			finds: []string{"IVCE_DTL.DATA_VRFN_IND"}, says: "two other texts for yes and no than Y and N",
			left: []string{"IVCE_DTL.DATA_VRFN_IND"},
		},
		"other key": {
			truth: func(tables map[invoice.Table]*mapping.Table) { tables[invoice.Detail].Key = "LINE_ID" },
			finds: []string{"IVCE_DTL.IVCE_DTL_UID"}, says: "LINE_ID has 60 of 60 lines",
		},
		"empty container": {
			empty: true, finds: []string{"container"}, says: "no document of the environment",
			left: []string{"container"},
		},
	}
	same := func(map[invoice.Table]*mapping.Table) {}
	for name, m := range all {
		if m.truth == nil {
			m.truth = same
		}
		if m.assumed == nil {
			m.assumed = same
		}
		if m.edit == nil {
			m.edit = func(int, map[string]any) {}
		}
		all[name] = m
	}
	return all
}

// found are the places of findings that are worse than a note.
func (h *house) found(t *testing.T) (r fit.Report, places []string) {
	t.Helper()
	code := h.run(t, "column", "check", "-o", "json")
	require.NoError(t, json.Unmarshal([]byte(h.out), &r), h.errors)
	for _, f := range r.Findings {
		if f.Level != fit.Note {
			places = append(places, f.Where)
		}
	}
	want := exitOK
	switch {
	case r.Count(fit.Wrong) > 0:
		want = exitFailed
	case r.Count(fit.Look) > 0:
		want = exitAttention
	}
	require.Equal(t, want, code, h.errors)
	return r, places
}

// build makes a house with mistakes. Its MAPPING is the newcomer's.
func build(t *testing.T, engine func(*testing.T) *house, all ...mistake) *house {
	t.Helper()
	h := engine(t)
	h.open(t)
	h.env["MAPPING"] = filepath.Join(h.dir, "mapping.json")
	h.mapping(t, mapping.File(func(tables map[invoice.Table]*mapping.Table) {
		for _, m := range all {
			m.assumed(tables)
		}
	}))
	truth := mapping.Edited(func(tables map[invoice.Table]*mapping.Table) {
		for _, m := range all {
			m.truth(tables)
		}
	})
	h.extra = map[string]string{}
	for _, m := range all {
		maps.Copy(h.extra, m.extra)
	}
	h.tables(t, truth)
	if slices.ContainsFunc(all, func(m mistake) bool { return m.empty }) {
		return h
	}
	h.fill(t, truth, 30, func(n int, output map[string]any) {
		for _, m := range all {
			m.edit(n, output)
		}
	})
	if slices.ContainsFunc(all, func(m mistake) bool { return m.twin }) {
		twin := strings.Replace(document(3, func(map[string]any) {}), `"request_details":{"id":"2026`,
			`"request_details":{"id":"twin 2026`, 1)
		require.NoError(t, h.documents.Put(t.Context(), json.RawMessage(twin)))
	}
	return h
}

func (h *house) mapping(t *testing.T, file []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(h.env["MAPPING"], file, 0o600))
}

// An old writer's house with one mistake in the mapping: the check names it and invents none, and the draft mends what
// can be told.
func TestTheCheckNamesEachMistake(t *testing.T) {
	for engine, open := range houses() {
		for name, m := range mistakes() {
			t.Run(engine+"/"+name, func(t *testing.T) {
				h := build(t, open, m)
				r, places := h.found(t)
				require.Equal(t, m.finds, places, r.Findings)
				require.NotContains(t, h.out+h.errors, "7-manufacturer_name", "no value is printed")
				require.True(t, m.says == "" || slices.ContainsFunc(r.Findings, func(f fit.Finding) bool {
					return f.Where == m.finds[0] && strings.Contains(f.Says, m.says)
				}), r.Findings)

				require.Equal(t, exitOK, h.run(t, "column", "draft"), h.errors)
				h.mapping(t, []byte(h.out))
				_, places = h.found(t)
				require.Equal(t, m.left, places)
			})
		}
	}
}

// All mistakes at once: none hides another.
func TestTheCheckNamesAllMistakesAtOnce(t *testing.T) {
	for engine, open := range houses() {
		t.Run(engine, func(t *testing.T) {
			var all []mistake
			var finds, left []string
			for name, m := range mistakes() {
				if name != "empty container" {
					all, finds, left = append(all, m), append(finds, m.finds...), append(left, m.left...)
				}
			}
			h := build(t, open, all...)
			r, places := h.found(t)
			require.ElementsMatch(t, finds, places, r.Findings)
			require.Equal(t, exitFailed, h.run(t, "column", "check"))
			require.Contains(t, h.out, "process_output.upc_code equals 60 of 60")
			require.Contains(t, h.errors, "column draft > mapping.draft.json")
			h.env["MAPPING"] = filepath.Join(h.dir, "mapping.draft.json")
			h.mapping(t, mapping.File(func(tables map[invoice.Table]*mapping.Table) {
				for _, m := range all {
					m.assumed(tables)
				}
			}))
			require.Equal(t, exitFailed, h.run(t, "column", "check"))
			require.Contains(t, h.errors, "column draft > mapping.draft2.json",
				"the shell would empty the one that is read")
			require.Equal(t, exitOK, h.run(t, "column", "draft"), h.errors)
			h.mapping(t, []byte(h.out))
			_, places = h.found(t)
			require.ElementsMatch(t, left, places)
		})
	}
}

// The check needs SELECT on the two tables and nothing of ours; a missing right is named.
func TestTheCheckNeedsTwoRights(t *testing.T) {
	h := build(t, houses()["server"], mistakes()["none"])
	exec := func(statement string) {
		_, err := h.db.ExecContext(t.Context(), statement)
		require.NoError(t, err, statement)
	}
	login := fmt.Sprint("sqlwriter_looks_", time.Now().UnixNano()%1e9)
	exec("CREATE LOGIN " + login + " WITH PASSWORD = 'Test!only-5c1e'")
	exec("CREATE USER looks FOR LOGIN " + login)
	t.Cleanup(func() { // a login with a session cannot be dropped, nor on some engines a user with rights
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			_, err := h.db.Exec(`REVOKE SELECT ON IVCE_DTL FROM looks; REVOKE SELECT ON IVCE_TRKG_MSTR FROM looks;
				DROP USER IF EXISTS looks; DROP LOGIN ` + login)
			assert.NoError(c, err)
		}, time.Minute, time.Second)
	})
	h.env["SQL_CONNECTION"] = sqlservertest.As(t, h.env["SQL_CONNECTION"], login, "Test!only-5c1e")
	exec("GRANT SELECT ON IVCE_DTL TO looks")
	r, places := h.found(t)
	require.Equal(t, []string{"IVCE_TRKG_MSTR"}, places)
	require.Contains(t, r.Findings[0].Says, "GRANT SELECT ON IVCE_TRKG_MSTR")
	exec("GRANT SELECT ON IVCE_TRKG_MSTR TO looks")
	_, places = h.found(t)
	require.Empty(t, places)
}
