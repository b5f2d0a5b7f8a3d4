package invoice_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/test/mapping"
)

// tables are the tables of a file of the default mapping.
type tables = map[invoice.Table]*mapping.Table

// entry edits the column CLN_MFR_AI_NM of IVCE_DTL: the members are set, and deleted where their value is nil.
func entry(members mapping.Entry) func(tables) {
	return edited(invoice.Detail, "CLN_MFR_AI_NM", members)
}

func edited(table invoice.Table, name string, members mapping.Entry) func(tables) {
	return func(t tables) {
		e := t[table].Column(name)
		for member, value := range members {
			if e[member] = value; value == nil {
				delete(e, member)
			}
		}
	}
}

func status(members mapping.Entry) func(tables) {
	return edited(invoice.Detail, "IVCE_LNE_STAT", members)
}

func readMapping(t *testing.T, file []byte) (*invoice.Mapping, error) {
	t.Helper()
	zone, err := time.LoadLocation(mapping.Zone)
	require.NoError(t, err)
	return invoice.ReadMapping(file, zone)
}

// The cases of files that are no mapping. Each is refused, and the text says which column and which member.
func TestWhatNoTableCanBeIsRefused(t *testing.T) {
	long := strings.Repeat("n", 128)
	for _, c := range []struct {
		about string
		edit  func(tables)
		want  string
	}{
		{
			"unknown member", entry(mapping.Entry{"missin": "keep"}),
			`IVCE_DTL.CLN_MFR_AI_NM: expected the members of a column, found unknown field "missin"`,
		},
		{
			"unknown member of a table", func(t tables) { t[invoice.Detail].Key = "" },
			`IVCE_DTL: key: expected a name without blanks around it, found ""`,
		},
		{
			"another table", func(t tables) { t["IVCE_HDR"] = t[invoice.Detail] },
			`tables: expected IVCE_DTL and IVCE_TRKG_MSTR, found "IVCE_HDR"`,
		},
		{
			"no table", func(t tables) { delete(t, invoice.Tracking) },
			"IVCE_TRKG_MSTR: expected a key and a list of columns, found its end",
		},
		{"twice in another case", entry(mapping.Entry{"name": "upc_cd"}), "IVCE_DTL.UPC_CD: name: expected every name once"},
		{
			"the key's name", entry(mapping.Entry{"name": "ivce_dtl_uid"}),
			"IVCE_DTL.ivce_dtl_uid: name: expected every name once in a table, whatever its case, and not the key's",
		},
		{
			"no name", entry(mapping.Entry{"name": nil}),
			`IVCE_DTL, column 1: name: expected a name without blanks around it, found ""`,
		},
		{"blanks", entry(mapping.Entry{"name": "X "}), `name: expected a name without blanks around it, found "X "`},
		{"NUL", entry(mapping.Entry{"name": "a\x00b"}), "name: expected characters that can stand in a name"},
		{"line break", entry(mapping.Entry{"name": "a\nb"}), "name: expected characters that can stand in a name"},
		{"129 characters", entry(mapping.Entry{"name": long + "n"}), "name: expected at most 128 characters, found 129"},
		{"130 units", entry(mapping.Entry{"name": strings.Repeat("😀", 65)}), "name: expected at most 128 characters, found 130"},
		{"two sources", entry(mapping.Entry{"value": "x"}), "source: expected one of from, value and line, found 2"},
		{"no source", entry(mapping.Entry{"from": nil}), "source: expected one of from, value and line, found 0"},
		{"no path", entry(mapping.Entry{"from": []string{}}), "from: expected 1 to 5 paths, found 0"},
		{
			"six paths", entry(mapping.Entry{"from": []string{"a", "b", "c", "d", "e", "f"}}),
			"from: expected 1 to 5 paths, found 6",
		},
		{
			"an empty path", entry(mapping.Entry{"from": ""}),
			`from: expected a path of members with dots between them, found ""`,
		},
		{"an empty part", entry(mapping.Entry{"from": "a..b"}), `found "a..b"`},
		{"an element", entry(mapping.Entry{"from": "a[0]"}), `found "a[0]"`},
		{
			"a path twice", entry(mapping.Entry{"from": []string{"a", "a"}}),
			`from: expected every path once, found "a"`,
		},
		{
			"our own state", entry(mapping.Entry{"from": "sql_writer.status"}),
			`from: expected a member that only the pipeline writes and that has one value, found "sql_writer.status"`,
		},
		{"the container's", entry(mapping.Entry{"from": "_ts"}), `found "_ts"`},
		{"the duplicates", entry(mapping.Entry{"from": "post-processing.duplicate_detail_uids"}), "that has one value"},
		{
			"a path of another type", entry(mapping.Entry{"from": 5}),
			"IVCE_DTL, column 1: expected the members of a column, found JSON of type number in the member from",
		},
		{
			"line", entry(mapping.Entry{"from": nil, "line": "parents"}),
			`line: expected parent, duplicate or request_time, found "parents"`,
		},
		{
			"text(0)", entry(mapping.Entry{"type": "text(0)"}),
			`type: expected a text of 1 character or more, found "text(0)"`,
		},
		{
			"no type", entry(mapping.Entry{"type": nil}),
			`type: expected text(n), decimal(p,s), integer, flag(Y,N), time or time(zone), found ""`,
		},
		{"varchar", entry(mapping.Entry{"type": "varchar(9)"}), `found "varchar(9)"`},
		{
			"decimal(39,2)", entry(mapping.Entry{"type": "decimal(39,2)"}),
			`type: expected at most 26 digits before the point and 12 after it, found "decimal(39,2)"`,
		},
		{"decimal(5,6)", entry(mapping.Entry{"type": "decimal(5,6)"}), `found "decimal(5,6)"`},
		{
			"flag(Y,Y)", entry(mapping.Entry{"type": "flag(Y,Y)"}),
			`type: expected two texts of at most 20 characters, for yes and for no, found "flag(Y,Y)"`,
		},
		{
			"type of a line", edited(invoice.Tracking, "DUP_IND", mapping.Entry{"type": "time"}),
			`type: expected one like flag(Y,N), found "time"`,
		},
		{
			"range of a text", entry(mapping.Entry{"range": []string{"0", "1"}}),
			"range: expected two numbers as texts, the lower one first",
		},
		{
			"range 1..0", edited(invoice.Detail, "MFR_CNFDC_SCR", mapping.Entry{"range": []string{"1", "0"}}),
			"range: expected two numbers",
		},
		{
			"range of words", edited(invoice.Detail, "MFR_CNFDC_SCR", mapping.Entry{"range": []string{"a", "b"}}),
			"range: expected two numbers",
		},
		{
			"missing", entry(mapping.Entry{"missing": "skip"}),
			`missing: expected null, keep or refuse, of a value of the document, found "skip"`,
		},
		{
			"keep of a line", edited(invoice.Tracking, "DUP_IND", mapping.Entry{"missing": "keep"}),
			"IVCE_TRKG_MSTR.DUP_IND: missing: expected",
		},
		{"long", entry(mapping.Entry{"long": "wrap"}), `long: expected refuse or cut, of a text, found "wrap"`},
		{
			"cut of a number", edited(invoice.Detail, "MFR_CNFDC_SCR", mapping.Entry{"long": "cut"}),
			"long: expected refuse or cut, of a text",
		},
		{
			"words of a flag", edited(invoice.Detail, "DATA_VRFN_IND", mapping.Entry{"only": []string{"Y"}}),
			`words and only: expected a text, found "flag"`,
		},
		{
			"a word that does not fit",
			entry(mapping.Entry{"type": "text(3)", "words": map[string]string{"a": "long"}}),
			`words: expected a text that the column takes for "a", found "long"`,
		},
		{
			"an allowed text that does not fit", entry(mapping.Entry{"type": "text(3)", "only": []string{"long"}}),
			`only: expected texts of at most 3 characters, found "long"`,
		},
		{
			"without_offset of a text", entry(mapping.Entry{"without_offset": "utc"}),
			"without_offset: expected utc or zone, of a time of the document",
		},
		{
			"without_offset", edited(invoice.Tracking, "PRCS_END_TS", mapping.Entry{"without_offset": "local"}),
			`found "local"`,
		},
		{
			"a value too long", entry(mapping.Entry{"from": nil, "value": "long", "type": "text(3)"}),
			`value: expected one that the column takes, found "long"`,
		},
		{
			"a value out of range",
			entry(mapping.Entry{"from": nil, "value": "2", "type": "decimal(5,4)", "range": []string{"0", "1"}}),
			`value: expected one that the column takes, found "2"`,
		},
		{
			"a value that is not allowed", entry(mapping.Entry{"from": nil, "value": "C", "only": []string{"A", "B"}}),
			`value: expected one that the column takes, found "C"`,
		},
		{
			"no status", status(mapping.Entry{"status": nil}),
			"IVCE_DTL: status: expected one column with it, which the failure mark writes, found 0",
		},
		{
			"two", entry(mapping.Entry{"status": true, "missing": "refuse"}),
			"IVCE_DTL: status: expected one column with it, which the failure mark writes, found 2",
		},
		{
			"status kept", status(mapping.Entry{"missing": "keep"}),
			"IVCE_DTL.IVCE_LNE_STAT: status: expected a text of the document of at least 8 characters",
		},
		{
			"status narrow", status(mapping.Entry{"type": "text(5)", "only": nil, "words": nil}),
			"status: expected a text",
		},
		{
			"status never AI-ERROR", status(mapping.Entry{"only": []string{"RC-AI"}, "words": nil}),
			"which may be AI-ERROR and others",
		},
		{
			"status always AI-ERROR", status(mapping.Entry{"only": []string{"AI-ERROR"}}),
			"which may be AI-ERROR and others",
		},
		{
			"no columns", func(t tables) { t[invoice.Tracking].Columns = nil },
			"IVCE_TRKG_MSTR: columns: expected 1 to 200, found 0",
		},
		{"201 columns", func(t tables) {
			for i := len(t[invoice.Tracking].Columns); i < 201; i++ {
				t[invoice.Tracking].Columns = append(t[invoice.Tracking].Columns,
					mapping.Entry{"name": fmt.Sprint("C", i), "from": fmt.Sprint("a.b", i), "type": "integer"})
			}
		}, "found 201"},
	} {
		t.Run(c.about, func(t *testing.T) {
			m, err := readMapping(t, mapping.File(c.edit))
			require.ErrorContains(t, err, c.want)
			require.Equal(t, fault.Infrastructure, fault.KindOf(err))
			require.Equal(t, "settings", fault.CodeOf(err))
			require.Nil(t, m, "no partial mapping")
		})
	}
}

func TestAFileThatIsNoMappingIsNotRepeated(t *testing.T) {
	whole := string(invoice.DefaultFile())
	for file, want := range map[string]string{
		"":           "found invalid JSON (at byte 0)",
		"[]":         "found JSON of type array",
		"{}":         "IVCE_DTL: expected a key and a list of columns, found its end",
		whole + "{}": "found invalid JSON (at byte",
		"password":   "found invalid JSON (at byte 1)",
		whole[:99]:   "found invalid JSON (at byte 99)",
		`{"Values": {"SQL_CONNECTION": "password"}}`:                                                               `found "Values"`,
		`{"IVCE_DTL": {"key": "password", "key": "K", "columns": []}, "IVCE_DTL": {}}`:                             `members: expected every one once, found "IVCE_DTL"`,
		`{"IVCE_DTL": {"key": "K", "columns": [{"name": "A", "name": "B"}], "rows": 1}}`:                           `found unknown field "rows"`,
		`{"IVCE_DTL": {"key": "K", "columns": {}}, "IVCE_TRKG_MSTR": {"key": "K", "columns": [{"type": "password"`: "found invalid JSON",
	} {
		_, err := readMapping(t, []byte(file))
		require.ErrorContains(t, err, want, file)
		require.NotContains(t, err.Error(), "password")
	}
	m, err := readMapping(t, append([]byte("\ufeff"), whole...))
	require.NoError(t, err, "editors on Windows write a mark before the text")
	require.Equal(t, invoice.DefaultMapping().Version(), m.Version())
}

func TestAllThatIsWrongIsSaidAtOnce(t *testing.T) {
	_, err := readMapping(t, mapping.File(func(t tables) {
		entry(mapping.Entry{"type": "x"})(t)
		edited(invoice.Tracking, "DUP_IND", mapping.Entry{"line": "y"})(t)
	}))
	require.ErrorContains(t, err, "IVCE_DTL.CLN_MFR_AI_NM: type")
	require.ErrorContains(t, err, "IVCE_TRKG_MSTR.DUP_IND: line")
}

// What is allowed, and what comes out of it.
func TestAMappingMayBeUnusual(t *testing.T) {
	m := mapping.Edited(func(t tables) {
		entry(mapping.Entry{"name": `a]"';--😀`, "type": "text(4001)", "from": strings.Repeat("p", 300)})(t)
		edited(invoice.Detail, "UPC_CD", mapping.Entry{"name": strings.Repeat("n", 128), "from": "mark"})(t)
		t[invoice.Tracking].Key = "DTL ID"
		edited(invoice.Tracking, "PRNT_IVCE_DTL_ID", mapping.Entry{"name": "IVCE_DTL_UID"})(t) // the other table's key
	})
	require.Equal(t, "DTL ID", m.Key(invoice.Tracking))
	require.Equal(t, `a]"';--😀`, m.Columns()[0].Name)
	require.Equal(t, 4001, m.Columns()[0].Max)
	require.Contains(t, m.Members(), "mark")
	require.Equal(t, "IVCE_LNE_STAT", m.Status(invoice.Detail))
}

func TestTheVersionIsOfWhatDecidesAValue(t *testing.T) {
	own := invoice.DefaultMapping().Version()
	require.Positive(t, own)
	same := map[string]func(tables){
		"another order":      func(t tables) { slices.Reverse(t[invoice.Tracking].Columns) },
		"a wider text":       entry(mapping.Entry{"type": "text(999)"}),
		"required":           entry(mapping.Entry{"missing": "refuse"}),
		"allowed texts":      entry(mapping.Entry{"only": []string{"A", "B"}}),
		"another range":      edited(invoice.Detail, "MFR_CNFDC_SCR", mapping.Entry{"range": []string{"0", "2"}}),
		"more digits before": edited(invoice.Detail, "MFR_CNFDC_SCR", mapping.Entry{"type": "decimal(9,4)"}),
		"another key":        func(t tables) { t[invoice.Detail].Key = "K" },
		"another meaning":    entry(mapping.Entry{"meaning": "x", "assumed": "y"}),
		"a list of one path": entry(mapping.Entry{"from": []string{"process_output.manufacturer_name"}}),
	}
	other := map[string]func(tables){
		"another name":      entry(mapping.Entry{"name": "N"}),
		"another path":      entry(mapping.Entry{"from": "process_output.maker"}),
		"a second path":     entry(mapping.Entry{"from": []string{"process_output.manufacturer_name", "x"}}),
		"their order":       entry(mapping.Entry{"from": []string{"x", "process_output.manufacturer_name"}}),
		"cut":               entry(mapping.Entry{"long": "cut"}),
		"cut elsewhere":     entry(mapping.Entry{"long": "cut", "type": "text(9)"}),
		"words":             entry(mapping.Entry{"words": map[string]string{"A": "B"}}),
		"kept":              entry(mapping.Entry{"missing": "keep"}),
		"a value":           entry(mapping.Entry{"from": nil, "value": "A"}),
		"another value":     entry(mapping.Entry{"from": nil, "value": "B"}),
		"digits after":      edited(invoice.Detail, "MFR_CNFDC_SCR", mapping.Entry{"type": "decimal(5,3)"}),
		"letters":           edited(invoice.Detail, "DATA_VRFN_IND", mapping.Entry{"type": "flag(1,0)"}),
		"letters of a line": edited(invoice.Tracking, "DUP_IND", mapping.Entry{"type": "flag(J,N)"}),
		"local":             edited(invoice.Tracking, "PRCS_END_TS", mapping.Entry{"type": "time(zone)"}),
		"without an offset": edited(invoice.Tracking, "PRCS_END_TS", mapping.Entry{"without_offset": "utc"}),
		"in the zone":       edited(invoice.Tracking, "PRCS_END_TS", mapping.Entry{"without_offset": "zone"}),
		"a column less":     func(t tables) { t[invoice.Detail].Columns = t[invoice.Detail].Columns[1:] },
		"no status":         edited(invoice.Tracking, "IVCE_LNE_STAT", mapping.Entry{"status": nil}),
		"in the other table": func(t tables) {
			t[invoice.Tracking].Columns = append(t[invoice.Tracking].Columns,
				mapping.Entry{"name": "N", "from": "x", "type": "integer"})
		},
	}
	for about, edit := range same {
		require.Equal(t, own, mapping.Edited(edit).Version(), about)
	}
	seen := map[int]string{own: "the default"}
	for about, edit := range other {
		version := mapping.Edited(edit).Version()
		require.Empty(t, seen[version], "%s has the version of that", about)
		seen[version] = about
	}
	local := mapping.File(edited(invoice.Tracking, "PRCS_END_TS", mapping.Entry{"type": "time(zone)"}))
	there, err := invoice.ReadMapping(local, time.FixedZone("elsewhere", 3600))
	require.NoError(t, err)
	require.Empty(t, seen[there.Version()], "another zone writes other times")
	var indented map[string]any
	require.NoError(t, json.Unmarshal(invoice.DefaultFile(), &indented))
	text, err := json.MarshalIndent(indented, "\r\n", "\t")
	require.NoError(t, err)
	m, err := readMapping(t, text)
	require.NoError(t, err)
	require.Equal(t, own, m.Version(), "white space is no change")
}

// Columns with one value share it, and no others.
func TestWhichColumnsHaveOneValue(t *testing.T) {
	c := invoice.DefaultMapping().Columns()[0]
	wider, kept, cut := c, c, c
	wider.Max, wider.Name = 999, "N"
	kept.Keep, cut.Cut = true, true
	require.True(t, c.SameValue(wider))
	require.True(t, c.SameValue(kept))
	require.False(t, c.SameValue(cut))
	also := cut
	also.Max = 5
	require.False(t, cut.SameValue(also))
}

// Values by unusual mappings of one member of process_output, as they are written.
func TestValuesByAMapping(t *testing.T) {
	type in = mapping.Entry
	paths := in{"from": []string{"process_output.x", "process_output.y"}}
	word := in{"from": "process_output.x", "words": map[string]string{"old": "new"}, "only": []string{"new"}}
	x := func(members ...string) in {
		e := in{"from": "process_output.x"}
		for i := 0; i < len(members); i += 2 {
			e[members[i]] = members[i+1]
		}
		return e
	}
	for _, c := range []struct {
		about, output, want string
		members             in
	}{
		{"the first path that is given", `"x": null, "y": "b"`, "b", paths},
		{"an empty text is given", `"x": "", "y": "b"`, "", paths},
		{"the first of two", `"x": "a", "y": "b"`, "a", paths},
		{"none", `"z": 1`, "NULL", paths},
		{"a wrong type is not passed over", `"x": [], "y": "b"`, "process_output.x: wrong_type", paths},
		{
			"nor an obstacle", `"x": "t", "y": "b"`, "process_output.x: not_an_object",
			in{"from": []string{"process_output.x.z", "process_output.y"}},
		},
		{"cut", `"x": "abcdef"`, "abc", x("type", "text(3)", "long", "cut")},
		{"never half a pair", `"x": "ab😀"`, "ab", x("type", "text(3)", "long", "cut")},
		{"whole characters", `"x": "a😀b"`, "a😀", x("type", "text(3)", "long", "cut")},
		{"digits", `"x": 123456`, "123", x("type", "text(3)", "long", "cut")},
		{"a word", `"x": "old"`, "new", word},
		{"no word", `"x": "older"`, "process_output.x: not_allowed", word},
		{"kept and absent", `"z": 1`, "NULL", x("missing", "keep")},
		{"kept and empty", `"x": ""`, "", x("missing", "keep")},
		{"a value", `"z": 1`, "AI", in{"from": nil, "value": "AI"}},
		{"a value as a decimal", `"z": 1`, "1.50", in{"from": nil, "value": "1.5", "type": "decimal(5,2)"}},
		{"a value as a flag", `"z": 1`, "1", in{"from": nil, "value": "1", "type": "flag(1,0)"}},
		{"bits", `"x": true`, "1", x("type", "flag(1,0)")},
		{"bits by letters", `"x": "N"`, "0", x("type", "flag(1,0)")},
		{"its own text", `"x": "ja"`, "ja", x("type", "flag(ja,nein)")},
		{"another text", `"x": "oui"`, "process_output.x: flag", x("type", "flag(ja,nein)")},
		{"a whole number", `"x": 7.0`, "7", x("type", "integer")},
		{"UTC", `"x": "2025-11-02 01:30:00-06:00"`, "2025-11-02T07:30:00.000000Z", x("type", "time")},
		{"the deployment's clock", `"x": "2025-11-02T07:30:00Z"`, "2025-11-02T01:30:00.000000", x("type", "time(zone)")},
		{
			"the hour before, on the same clock", `"x": "2025-11-02T06:30:00Z"`, "2025-11-02T01:30:00.000000",
			x("type", "time(zone)"),
		},
		{"without an offset", `"x": "2025-07-01 12:00:00"`, "process_output.x: no_offset", x("type", "time")},
		{
			"read in UTC", `"x": "2025-07-01 12:00:00"`, "2025-07-01T12:00:00.000000Z",
			x("type", "time", "without_offset", "utc"),
		},
		{
			"read in the zone", `"x": "2025-07-01 12:00:00.5"`, "2025-07-01T17:00:00.500000Z",
			x("type", "time", "without_offset", "zone"),
		},
		{
			"the first of two", `"x": "2025-11-02 01:30:00"`, "2025-11-02T06:30:00.000000Z",
			x("type", "time", "without_offset", "zone"),
		},
		{
			"a time that the clocks leave out", `"x": "2025-03-09 02:30:00"`, "process_output.x: date",
			x("type", "time", "without_offset", "zone"),
		},
		{"no time", `"x": "2025-07-01 noon"`, "process_output.x: time", x("type", "time", "without_offset", "zone")},
		{
			"an offset counts all the same", `"x": "2025-07-01 12:00:00Z"`, "2025-07-01T07:00:00.000000",
			x("type", "time(zone)", "without_offset", "zone"),
		},
	} {
		t.Run(c.about, func(t *testing.T) {
			m := mapping.Edited(entry(c.members))
			d, err := invoice.Reader{Mapping: m}.Read(
				rule{in: `{"process_output": {` + c.output + `}}`}.document(t), rulesNow())
			require.NoError(t, err)
			require.Same(t, m, d.Mapping)
			var refused *invoice.Invalid
			if _, _, ok := strings.Cut(c.want, ": "); ok {
				require.ErrorAs(t, d.Problem, &refused)
				require.Equal(t, c.want, refused.Fields[0].Path+": "+refused.Fields[0].Code)
				return
			}
			require.NoError(t, d.Problem)
			require.Equal(t, c.want, strings.Trim(formatValue(d.Values[0]), "'"))
		})
	}
}

// A path may go through another's value: a document that has it is refused, whichever column comes first.
func TestAPathThroughAValueOfAnotherColumn(t *testing.T) {
	for _, reversed := range []bool{false, true} {
		m := mapping.Edited(func(t tables) {
			entry(mapping.Entry{"from": "process_output.x"})(t)
			edited(invoice.Detail, "UPC_CD", mapping.Entry{"from": "process_output.x.z"})(t)
			if reversed {
				slices.Reverse(t[invoice.Detail].Columns)
			}
		})
		d, err := invoice.Reader{Mapping: m}.Read(rule{in: `{"process_output": {"x": "t"}}`}.document(t), rulesNow())
		require.NoError(t, err)
		var refused *invoice.Invalid
		require.ErrorAs(t, d.Problem, &refused)
		require.Equal(t, "process_output.x not_an_object", refused.Fields[0].Path+" "+refused.Fields[0].Code)
		require.Len(t, refused.Fields, 1)
	}
}

func TestTheLettersOfALine(t *testing.T) {
	m := mapping.Edited(edited(invoice.Tracking, "DUP_IND", mapping.Entry{"type": "flag(1,0)"}))
	at := slices.IndexFunc(m.Columns(), func(c invoice.Column) bool { return c.Source == invoice.FromDuplicate })
	require.Equal(t, invoice.Of("0"), m.RowValues(nil, 1, 1)[at])
	require.Equal(t, invoice.Of("1"), m.RowValues(nil, 1, 2)[at])
}

// The row hash leaves out what others write: the status and kept columns.
func TestTheRowHashLeavesOutKeptColumns(t *testing.T) {
	m := mapping.Edited(entry(mapping.Entry{"missing": "keep"}))
	row := m.RowValues(nil, 1, 1)
	other := slices.Clone(row)
	other[0] = invoice.Of("somebody's")
	a, _ := m.RowHashes(row)
	b, _ := m.RowHashes(other)
	require.Equal(t, a, b)
	plain, _ := invoice.DefaultMapping().RowHashes(row)
	edited, _ := invoice.DefaultMapping().RowHashes(other)
	require.NotEqual(t, plain, edited)
}

// The same content has the same hash whatever the rules refuse: then a failure mark spares lines that hold it.
func TestTheRulesDoNotChangeTheHash(t *testing.T) {
	read := func(edit func(tables), output string) invoice.Document {
		d, err := invoice.Reader{Mapping: mapping.Edited(edit)}.Read(
			rule{in: `{"process_output": {` + output + `}}`}.document(t), rulesNow())
		require.NoError(t, err)
		return d
	}
	for _, c := range []struct {
		about, output string
		strict        func(tables)
	}{
		{"narrower", `"z": 1`, entry(mapping.Entry{"type": "text(3)"})},
		{"allowed texts", `"z": 1`, entry(mapping.Entry{"only": []string{"A"}})},
		{"required", `"manufacturer_name": null`, entry(mapping.Entry{"missing": "refuse"})},
		{"a smaller range", `"part_number_confidence": 0.9`, edited(invoice.Detail, "PRT_NUM_CNFDC_SCR", mapping.Entry{"range": []string{"0", "0.5"}})},
	} {
		loose, strict := read(func(tables) {}, c.output), read(c.strict, c.output)
		require.NoError(t, loose.Problem, c.about)
		require.Error(t, strict.Problem, c.about)
		require.Equal(t, loose.Hash, strict.Hash, c.about)
		require.Equal(t, loose.Values, strict.Values, c.about)
	}
	rounded := read(func(tables) {}, `"part_number_confidence": 1.00001`)
	whole := read(func(tables) {}, `"part_number_confidence": 1`)
	require.Error(t, rounded.Problem)
	require.NotEqual(t, whole.Hash, rounded.Hash, "a value that rounding would make is not the document's")
}

// An earlier version has a recipe as long as its columns all stand unchanged.
func TestAnEarlierVersionIsComparedByItsColumns(t *testing.T) {
	added := func(t tables) {
		t[invoice.Detail].Columns = append(t[invoice.Detail].Columns,
			mapping.Entry{"name": "NEW", "from": "process_output.new", "type": "text(9)"})
	}
	before, now := invoice.DefaultMapping(), mapping.Edited(added)
	recipe, ok := now.Recipe(before.Version(), before.Lines())
	require.True(t, ok)
	require.Equal(t, before.Version(), recipe.Version())

	raw := rule{in: `{"process_output": {"new": "n"}}`}.document(t)
	old, err := invoice.Reader{}.Read(raw, rulesNow())
	require.NoError(t, err)
	d, err := invoice.Reader{Mapping: now}.Read(raw, rulesNow())
	require.NoError(t, err)
	require.NotEqual(t, old.Hash, d.Hash)
	hash, known := recipe.ContentHash(d)
	require.True(t, known)
	require.Equal(t, old.Hash, hash)
	wantDetail, wantTracking := before.RowHashes(before.RowValues(old.Values, 1, 2))
	row := now.RowValues(d.Values, 1, 2)
	detail, tracking := recipe.RowHashes(row)
	require.Equal(t, []string{wantDetail, wantTracking}, []string{detail, tracking})

	at := slices.IndexFunc(now.Columns(), func(c invoice.Column) bool { return c.Name == "NEW" })
	require.False(t, recipe.Has(at))
	require.True(t, recipe.Has(0))
	empty, theirs := slices.Clone(row), slices.Clone(row)
	empty[at], theirs[at] = invoice.Null(), invoice.Of("theirs")
	require.False(t, recipe.Replaces(empty, row), "NULL is filled")
	require.False(t, recipe.Replaces(row, row))
	require.True(t, recipe.Replaces(theirs, row))
	theirs = slices.Clone(row)
	theirs[0] = invoice.Of("theirs")
	require.False(t, recipe.Replaces(theirs, row), "an edit is seen by the hash")

	for about, m := range map[string]*invoice.Mapping{
		"a column less": mapping.Edited(func(t tables) {
			t[invoice.Detail].Columns = t[invoice.Detail].Columns[1:]
		}),
		"another name":     mapping.Edited(entry(mapping.Entry{"name": "N"})),
		"another path":     mapping.Edited(entry(mapping.Entry{"from": "process_output.maker"})),
		"kept from now on": mapping.Edited(entry(mapping.Entry{"missing": "keep"})),
		"a value":          mapping.Edited(entry(mapping.Entry{"from": nil, "value": "A"})),
	} {
		_, ok := m.Recipe(before.Version(), before.Lines())
		require.False(t, ok, about)
	}
	_, ok = now.Recipe(7, nil)
	require.False(t, ok, "a version that nothing is known of")
	back, ok := before.Recipe(now.Version(), now.Lines())
	require.False(t, ok, "taken back: %v", back)
	own, ok := now.Recipe(now.Version(), nil)
	require.True(t, ok)
	require.True(t, own.Has(at))

	bad, err := invoice.Reader{Mapping: now}.Read(rule{in: `{"process_output": {"new": []}}`}.document(t), rulesNow())
	require.NoError(t, err)
	_, known = recipe.ContentHash(bad)
	require.False(t, known, "nobody can tell what the value would be")
}

// A local time of the hour that comes twice stands for two times.
func TestALocalTimeMayStandForTwo(t *testing.T) {
	m := mapping.Edited(edited(invoice.Tracking, "RQST_TS", mapping.Entry{"type": "time(zone)"}))
	c := m.Columns()[slices.IndexFunc(m.Columns(), func(c invoice.Column) bool { return c.Local })]
	for text, want := range map[string]time.Duration{
		"2025-11-02T00:59:59.999999": 0, "2025-11-02T01:00:00.000000": time.Hour,
		"2025-11-02T01:59:59.000000": time.Hour, "2025-11-02T02:00:00.000000": 0, "2025-07-01T12:00:00.000000": 0,
	} {
		first, last := c.Span(invoice.Of(text))
		require.Equal(t, want, last.Sub(first), text)
		require.Equal(t, text, last.In(locate(t)).Format(invoice.LocalLayout))
	}
	first, last := c.Span(invoice.Null())
	require.True(t, first.IsZero() && last.IsZero())
	all := invoice.DefaultMapping().Columns()
	utc := all[slices.IndexFunc(all, func(c invoice.Column) bool { return c.Source == invoice.FromRequestTime })]
	first, last = utc.Span(invoice.Of("2025-11-02T07:30:00.000000Z"))
	require.Equal(t, first, last)
	require.Equal(t, int64(1762068600), first.Unix())
}

func locate(t *testing.T) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation(mapping.Zone)
	require.NoError(t, err)
	return zone
}
