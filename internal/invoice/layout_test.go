package invoice_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

func TestTheZeroLayoutIsTheColumnTable(t *testing.T) {
	empty, err := invoice.ReadLayout([]byte(`{}`))
	require.NoError(t, err)
	for _, l := range []invoice.Layout{
		invoice.Layout{}.OrDefault(), invoice.DefaultLayout(), empty, empty.OrDefault(),
	} {
		require.Equal(t, invoice.DefaultMapping().Columns(), l.Columns)
		require.Equal(t, invoice.DefaultMapping().Key(invoice.Detail), l.Key(invoice.Detail))
		require.Equal(t, invoice.DefaultMapping().Key(invoice.Detail), l.Key(invoice.Tracking))
	}
}

func TestALayoutRenamesWhatItNamesAndNothingElse(t *testing.T) {
	l, err := invoice.ReadLayout([]byte("\ufeff" + `{
		"IVCE_TRKG_MSTR": {"RQST_TS": "REQUEST_TIME", "IVCE_DTL_UID": "DTL_ID", "UPC_CD": "Ünï cöde]\""},
		"IVCE_DTL": {"AI_STG_NM": "STAGE"}
	}`))
	require.NoError(t, err)
	renamed := map[string]string{
		"IVCE_TRKG_MSTR.RQST_TS": "REQUEST_TIME", "IVCE_TRKG_MSTR.UPC_CD": `Ünï cöde]"`, "IVCE_DTL.AI_STG_NM": "STAGE",
	}
	want := invoice.DefaultMapping().Columns()
	for i, c := range want {
		if name, ok := renamed[string(c.Table)+"."+c.Name]; ok {
			want[i].Name = name
			delete(renamed, string(c.Table)+"."+c.Name)
		}
	}
	require.Empty(t, renamed)
	require.Equal(t, want, l.Columns, "the names alone differ, in the order of the column table")
	require.Equal(t, "DTL_ID", l.Key(invoice.Tracking))
	require.Equal(t, invoice.DefaultMapping().Key(invoice.Detail), l.Key(invoice.Detail))
	require.Equal(t, l, l.OrDefault(), "the zero value alone stands for another")
}

func TestTwoNamesMayBeExchanged(t *testing.T) {
	l, err := invoice.ReadLayout(
		[]byte(
			`{"IVCE_TRKG_MSTR": {"PRCS_STRT_TS": "PRCS_END_TS", "PRCS_END_TS": "PRCS_STRT_TS", "IVCE_DTL_UID": "RQST_TS", "RQST_TS": "IVCE_DTL_UID"}}`))
	require.NoError(t, err)
	require.Equal(t, "RQST_TS", l.Key(invoice.Tracking))
	names := map[string]string{}
	for i, c := range l.Columns {
		names[string(c.Table)+"."+invoice.DefaultMapping().Columns()[i].Name] = c.Name
	}
	require.Equal(t, "PRCS_END_TS", names["IVCE_TRKG_MSTR.PRCS_STRT_TS"])
	require.Equal(t, "IVCE_DTL_UID", names["IVCE_TRKG_MSTR.RQST_TS"])
}

func TestWhatNoTableCanBeIsRefused(t *testing.T) {
	long := strings.Repeat("n", 128)
	for _, c := range []struct{ file, want string }{
		{
			`{"IVCE_DTL": {"CLN_MFR_AI_NM": "MAKER"}}`,
			"IVCE_DTL.CLN_MFR_AI_NM: expected a column whose name is assumed, found one that the requirements name",
		},
		// its path is assumed, its name is not
		{`{"IVCE_DTL": {"UPC_CD": "UPC"}}`, "IVCE_DTL.UPC_CD: expected a column whose name is assumed"},
		{`{"IVCE_DTL": {"PRNT_IVCE_DTL_ID": "PARENT"}}`, "found one that the requirements name"},
		{`{"IVCE_DTL": {"RQST_TS": "X"}}`, "IVCE_DTL.RQST_TS: expected a name of the column table, found none like it"},
		{`{"IVCE_TRKG_MSTR": {"rqst_ts": "X"}}`, "found none like it"},
		{`{"IVCE_HDR": {"RQST_TS": "X"}}`, `expected the tables IVCE_DTL and IVCE_TRKG_MSTR, found "IVCE_HDR"`},
		{
			`{"IVCE_TRKG_MSTR": {"RQST_TS": ""}}`,
			"IVCE_TRKG_MSTR.RQST_TS: expected the name of a column, found an empty text",
		},
		{`{"IVCE_TRKG_MSTR": {"RQST_TS": null}}`, "found an empty text"},
		{`{"IVCE_TRKG_MSTR": {"RQST_TS": "  "}}`, "found an empty text"},
		{`{"IVCE_TRKG_MSTR": {"RQST_TS": "X "}}`, `found blanks around "X "`},
		{`{"IVCE_TRKG_MSTR": {"RQST_TS": "a\u0000b"}}`, "found a character that cannot stand in a name"},
		{`{"IVCE_TRKG_MSTR": {"RQST_TS": "a\ud800b"}}`, "found a character that cannot stand in a name"},
		{`{"IVCE_TRKG_MSTR": {"RQST_TS": "` + long + `n"}}`, "found 129 characters, and 128 fit"},
		{`{"IVCE_TRKG_MSTR": {"RQST_TS": "` + strings.Repeat("😀", 65) + `"}}`, "found 130 characters, and 128 fit"},
		{
			`{"IVCE_TRKG_MSTR": {"RQST_TS": "upc_cd"}}`,
			"IVCE_TRKG_MSTR: expected every name once, found two columns upc_cd",
		},
		{
			`{"IVCE_TRKG_MSTR": {"RQST_TS": "IVCE_DTL_UID"}}`,
			"IVCE_TRKG_MSTR: expected every name once, found two columns IVCE_DTL_UID",
		},
		{`{"IVCE_DTL": {"IVCE_DTL_UID": "UPC_CD"}}`, "IVCE_DTL: expected every name once, found two columns UPC_CD"},
		{
			`{"IVCE_TRKG_MSTR": {"RQST_TS": "A", "RQST_TS": "B"}}`,
			"IVCE_TRKG_MSTR: expected every column once, found RQST_TS twice",
		},
		{`{"IVCE_DTL": {}, "IVCE_DTL": {}}`, "expected every table once, found IVCE_DTL twice"},
		{`{"IVCE_TRKG_MSTR": {"RQST_TS": 5}}`, "found a number where a name belongs"},
		{`{"IVCE_TRKG_MSTR": "RQST_TS"}`, "found a value that is not an object"},
		{`[]`, "found a value that is not an object"},
		{``, "found its end before it was complete"},
		{`{"IVCE_TRKG_MSTR": {"RQST_TS": "X"}`, "found its end before it was complete"},
		{`{"IVCE_TRKG_MSTR": {"RQST_TS": "X"}} {}`, "found more behind the object"},
		{`{"IVCE_TRKG_MSTR": {RQST_TS: "X"}}`, "found invalid JSON (at byte"},
	} {
		l, err := invoice.ReadLayout([]byte(c.file))
		require.ErrorContains(t, err, c.want, c.file)
		require.Equal(t, fault.Infrastructure, fault.KindOf(err))
		require.Equal(t, "settings", fault.CodeOf(err))
		require.Zero(t, l, "no partial layout")
	}
	_, err := invoice.ReadLayout([]byte(`{"IVCE_TRKG_MSTR": {"RQST_TS": "` + long + `"}}`))
	require.NoError(t, err)
}

func TestAllThatIsWrongWithALayoutIsSaidAtOnceAndNoValueOfAnotherFile(t *testing.T) {
	_, err := invoice.ReadLayout(
		[]byte(`{"IVCE_DTL": {"CLN_MFR_AI_NM": "X", "NO": "Y"}, "IVCE_TRKG_MSTR": {"DUP_IND": ""}}`))
	for _, want := range []string{"IVCE_DTL.CLN_MFR_AI_NM", "IVCE_DTL.NO", "IVCE_TRKG_MSTR.DUP_IND"} {
		require.ErrorContains(t, err, want)
	}
	_, err = invoice.ReadLayout([]byte(`{"IsEncrypted": false, "Values": {"SQL_CONNECTION": "password-marker"}}`))
	require.ErrorContains(t, err, `"Values"`)
	require.NotContains(t, err.Error(), "password-marker")
}
