package sqlserver_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/store/sqlserver"
	"sqlwriter/test/mapping"
	"sqlwriter/test/sqltest"
)

// A value that does not fit has a code, and the message has what was expected and found. Unknown limits are left to
// the server.
func TestWhatAColumnHolds(t *testing.T) {
	type column = sqlserver.UserColumn
	text, flag := invoice.Column{Kind: invoice.Text}, invoice.Column{Kind: invoice.Flag}
	integer, decimal := invoice.Column{Kind: invoice.Integer}, invoice.Column{Kind: invoice.Decimal}
	moment := invoice.Column{Kind: invoice.Time}
	keeps := invoice.Column{Table: invoice.Detail, Kind: invoice.Text, Keep: true}
	keepsInserted := invoice.Column{Table: invoice.Tracking, Kind: invoice.Text, Keep: true}
	local := invoice.Column{Kind: invoice.Time, Local: true}
	nvarchar, latin := column{Kind: "nvarchar", Length: 5}, column{Kind: "varchar", Length: 5, CodePage: 1252}
	japanese, utf8 := column{Kind: "varchar", Length: 5, CodePage: 932},
		column{Kind: "varchar", Length: 5, CodePage: 65001}
	dec := func(precision, scale int) column { return column{Kind: "decimal", Precision: precision, Scale: scale} }
	of := func(kind string) column { return column{Kind: kind, Length: -1} }
	const long, codePage, beyond, notNull = "validation.too_long", "validation.code_page",
		"validation.out_of_range", "validation.not_null"
	for _, c := range []struct {
		kind  invoice.Column
		has   column
		value string
		code  string
		says  string // expected, found
	}{
		{text, nvarchar, "", "", ""},
		{text, nvarchar, "ünï漢字", "", ""},
		{text, nvarchar, "123456", long, "at most 5 UTF-16 units (nvarchar(5)), 6"},
		{text, nvarchar, "123😀", "", ""},
		{text, nvarchar, "1234😀", long, "at most 5 UTF-16 units (nvarchar(5)), 6"},
		{text, column{Kind: "nchar", Length: 5}, "123456", long, "at most 5 UTF-16 units (nchar(5)), 6"},
		{text, of("nvarchar"), strings.Repeat("x", 9000), "", ""},
		{flag, column{Kind: "char", Length: 1, CodePage: 1252}, "Y", "", ""},
		{flag, column{Kind: "char", Length: 0, CodePage: 1252}, "Y", long, "at most 0 bytes (char(0)), 1"},
		{text, latin, "éé€éé", "", ""},
		{text, latin, "éé€ééé", long, "at most 5 bytes (varchar(5)), 6"},
		{text, latin, "∞", codePage, "characters of the column's code page 1252, U+221E"},
		{text, column{Kind: "varchar", Length: -1, CodePage: 1252}, strings.Repeat("é", 9000), "", ""},
		{text, japanese, "漢字a", "", ""},
		{text, japanese, "漢字ab", long, "at most 5 bytes (varchar(5)), 6"},
		{text, japanese, "ｱｱｱｱｱ", "", ""}, // halfwidth characters of one byte
		{text, utf8, "éé1", "", ""},
		{text, utf8, "ééé", long, "at most 5 bytes (varchar(5)), 6"},
		{text, utf8, "😀1", "", ""},
		{text, column{Kind: "varchar", Length: 5, CodePage: 708}, "more than five", "", ""}, // the code page is unknown
		{text, of("xml"), "<", "", ""},

		{decimal, dec(5, 4), "1.0000", "", ""},
		{decimal, dec(5, 4), "-9.9999", "", ""},
		{decimal, dec(5, 4), "10.0000", beyond, "at most 1 digits before the point (decimal(5, 4)), 2"},
		{decimal, dec(5, 4), "-10.0000", beyond, "at most 1 digits before the point (decimal(5, 4)), 2"},
		{decimal, dec(4, 4), "0.9999", "", ""},
		{decimal, dec(4, 4), "1.0000", beyond, "at most 0 digits before the point (decimal(4, 4)), 1"},
		{decimal, dec(5, 2), "0.9500", "", ""},
		{decimal, dec(5, 2), "0.9512", beyond, "at most 2 digits after the point (decimal(5, 2)), 4"},
		{decimal, dec(5, 0), "1.0000", "", ""},
		{decimal, dec(5, 0), "0.5000", beyond, "at most 0 digits after the point (decimal(5, 0)), 1"},
		{
			decimal,
			column{Kind: "numeric", Precision: 5, Scale: 4},
			"10.0000", beyond,
			"at most 1 digits before the point (numeric(5, 4)), 2",
		},
		{decimal, of("float"), "12345678901234567890.1234", "", ""},
		{decimal, of("int"), "0.5000", beyond, "at most 0 digits after the point (int), 1"},
		{decimal, of("bit"), "1.0000", "", ""},
		{decimal, of("bit"), "2.0000", beyond, "a number from 0 to 1 (bit), one outside"},

		{integer, of("int"), "2147483647", "", ""},
		{integer, of("int"), "-2147483648", "", ""},
		{integer, of("int"), "2147483648", beyond, "a number from -2147483648 to 2147483647 (int), one outside"},
		{integer, of("int"), "-2147483649", beyond, "a number from -2147483648 to 2147483647 (int), one outside"},
		{integer, of("smallint"), "32768", beyond, "a number from -32768 to 32767 (smallint), one outside"},
		{integer, of("tinyint"), "-1", beyond, "a number from 0 to 255 (tinyint), one outside"},
		{integer, of("bigint"), "9223372036854775807", "", ""},
		{integer, dec(18, 0), "999999999999999999", "", ""},
		{integer, dec(18, 0), "1000000000000000000", beyond, "at most 18 digits before the point (decimal(18, 0)), 19"},

		{moment, of("datetime"), "1753-01-01T00:00:00.000000Z", "", ""},
		{moment, of("datetime"), "1752-12-31T23:59:59.999999Z", beyond, "a year from 1753 on (datetime), 1752"},
		{moment, of("datetime"), "0001-01-01T00:00:00.000000Z", beyond, "a year from 1753 on (datetime), 0001"},
		{local, of("datetime"), "1752-12-31T23:59:59.999999", beyond, "a year from 1753 on (datetime), 1752"},
		{moment, of("datetime2"), "0001-01-01T00:00:00.000000Z", "", ""},

		{text, column{Kind: "nvarchar", Length: 5, NotNull: true}, "", "", ""},
		{text, column{Kind: "nvarchar", Length: 5, NotNull: true}, "NULL", notNull, "a value (NOT NULL), NULL"},
		{text, nvarchar, "NULL", "", ""},
		{keeps, column{Kind: "nvarchar", Length: 5, NotNull: true}, "NULL", "", ""},
		{keepsInserted, column{Kind: "bit", NotNull: true}, "NULL", notNull, "a value (NOT NULL), NULL"},
		{keeps, nvarchar, "123456", long, "at most 5 UTF-16 units (nvarchar(5)), 6"},
		{flag, of("bit"), "1", "", ""},
	} {
		value := invoice.Of(c.value)
		if c.value == "NULL" {
			value = invoice.Null()
		}
		about := fmt.Sprintf("%s %q in %+v", c.kind.Kind, c.value, c.has)
		code, expected, found := sqlserver.Misfit(c.kind, c.has, value)
		require.Equal(t, c.code, code, about)
		if c.code != "" {
			require.Equal(t, c.says, expected+", "+found, about)
		}
	}
}

// userTables is a database with a test's columns that records its requests.
type userTables struct {
	columns map[string]sqlserver.UserColumn
	err     error
	reads   int
	at      time.Time
	sent    []string // the document ids of each request
	answer  error
}

func (u *userTables) limits() sqlserver.Limits {
	return sqlserver.NewLimits(func(context.Context) (map[string]sqlserver.UserColumn, error) {
		u.reads++
		return maps.Clone(u.columns), u.err
	}, func() time.Time { return u.at })
}

func (u *userTables) apply(items []commit.Item) (outcomes []commit.DocumentOutcome, err error) {
	var ids []string
	for _, it := range items {
		ids = append(ids, it.DocumentID)
		outcomes = append(outcomes, commit.DocumentOutcome{DocumentID: it.DocumentID, Verdict: invoice.OutcomeApplied})
	}
	u.sent = append(u.sent, strings.Join(ids, " "))
	if u.answer != nil {
		return nil, u.answer
	}
	return outcomes, nil
}

const makerColumn = "IVCE_DTL.CLN_MFR_AI_NM"

// newUserTables has one column.
func newUserTables(column string, c sqlserver.UserColumn) *userTables {
	return &userTables{
		columns: map[string]sqlserver.UserColumn{column: c}, at: time.Date(2025, 12, 17, 3, 12, 0, 0, time.UTC),
	}
}

// ofCodePage is a column of one code page.
func ofCodePage(number int) sqlserver.UserColumn {
	return sqlserver.UserColumn{Kind: "varchar", Length: 255, CodePage: number}
}

func TestOnlyTheDocumentWithTheValueIsRefused(t *testing.T) {
	u := newUserTables(makerColumn, ofCodePage(1252))
	good, bad, other := sqltest.Item("good", 10, 1), sqltest.Item("bad", 10, 2), sqltest.Item("other", 10, 3)
	setText(t, &good, "CLN_MFR_AI_NM", "Böhler € ?")
	setText(t, &bad, "CLN_MFR_AI_NM", "secret ∞")
	setText(t, &other, "UNSPSC_CD", "∞") // in an unknown column
	out, err := u.limits().Apply(t.Context(), []commit.Item{good, bad, other}, u.apply)
	require.NoError(t, err)
	require.Equal(t, []string{"good other"}, u.sent, "one request, without the refused one")
	for i, want := range []string{"good", "bad", "other"} {
		require.Equal(t, want, out[i].DocumentID)
		require.Equal(t, i == 1, out[i].Refused != nil, want)
	}
	require.Empty(t, out[1].Verdict)
	refused := out[1].Refused
	require.Equal(t, fault.Document, fault.KindOf(refused))
	require.Equal(t, "validation.code_page", fault.CodeOf(refused))
	require.ErrorContains(t, refused,
		"document bad: IVCE_DTL.CLN_MFR_AI_NM: expected characters of the column's code page 1252, found U+221E")
	require.NotContains(t, refused.Error(), "secret")

	out, err = u.limits().Apply(t.Context(), []commit.Item{bad}, u.apply)
	require.NoError(t, err)
	require.Error(t, out[0].Refused)
	require.Len(t, u.sent, 1, "a request of nothing is not made")
	_, err = u.limits().Apply(t.Context(), nil, u.apply)
	require.NoError(t, err)
	require.Len(t, u.sent, 2, "unless nothing was asked for: a preview of no items is a shadow's heartbeat")

	computed := ofCodePage(1252)
	computed.Computed = true
	identity := ofCodePage(1252)
	identity.Identity = true
	for _, c := range []sqlserver.UserColumn{ofCodePage(708), computed, identity} {
		out, err = newUserTables(makerColumn, c).limits().Apply(t.Context(), []commit.Item{bad}, u.apply)
		require.NoError(t, err)
		require.NoError(t, out[0].Refused, "what is not known, or not written, is the server's")
	}
}

func TestTheValuesOfDuplicatesAreComparedToo(t *testing.T) {
	const line = 1 << 31
	u := newUserTables("IVCE_DTL.PRNT_IVCE_DTL_ID", sqlserver.UserColumn{Kind: "int"})
	out, err := u.limits().Apply(t.Context(),
		[]commit.Item{sqltest.Item("alone", 10, line), sqltest.Item("with", 10, line, 2)}, u.apply)
	require.NoError(t, err)
	require.NoError(t, out[0].Refused, "NULL for the main line")
	require.ErrorContains(t, out[1].Refused,
		"document with: IVCE_DTL.PRNT_IVCE_DTL_ID: expected a number from -2147483648 to 2147483647 (int), found one outside")

	u = newUserTables("IVCE_DTL.PRNT_IVCE_DTL_ID", sqlserver.UserColumn{Kind: "int", NotNull: true})
	out, err = u.limits().Apply(t.Context(), []commit.Item{sqltest.Item("with", 10, 1, 2)}, u.apply)
	require.NoError(t, err)
	require.Equal(t, "validation.not_null", fault.CodeOf(out[0].Refused), "the main line has values of its own as well")
}

func TestAMarkIsComparedWithTheStatusOnly(t *testing.T) {
	mark := sqltest.Item("mark", 10, 1, 2)
	mark.FailureMark, mark.Values = true, nil
	u := newUserTables("IVCE_DTL.UPC_CD", sqlserver.UserColumn{Kind: "nvarchar", NotNull: true})
	u.columns["IVCE_DTL.IVCE_LNE_STAT"] = sqlserver.UserColumn{
		Kind: "nvarchar", Length: len(invoice.StatusAIError), NotNull: true,
	}
	u.columns["IVCE_TRKG_MSTR.IVCE_LNE_STAT"] = sqlserver.UserColumn{Kind: "nvarchar", Length: 1, NotNull: true}
	out, err := u.limits().Apply(t.Context(), []commit.Item{mark}, u.apply)
	require.NoError(t, err)
	require.NoError(t, out[0].Refused)
	u.columns["IVCE_DTL.IVCE_LNE_STAT"] = sqlserver.UserColumn{Kind: "nvarchar", Length: len(invoice.StatusAIError) - 1}
	out, err = u.limits().Apply(t.Context(), []commit.Item{mark}, u.apply)
	require.NoError(t, err)
	require.Equal(t, "validation.too_long", fault.CodeOf(out[0].Refused))
}

// A failed request answers for all its documents. The next request refuses the document again.
func TestARequestThatFailsBesideARefusedDocument(t *testing.T) {
	u := newUserTables(makerColumn, ofCodePage(1252))
	good, bad := sqltest.Item("good", 10, 1), sqltest.Item("bad", 10, 2)
	setText(t, &bad, "CLN_MFR_AI_NM", "∞")
	u.answer = fault.New(fault.Infrastructure, "test", "connection", "down")
	_, err := u.limits().Apply(t.Context(), []commit.Item{bad, good}, u.apply)
	require.ErrorIs(t, err, u.answer)
}

// Limits are used for five minutes. Before a document is refused they are read again, and that reading decides.
func TestColumnsAreReadAgain(t *testing.T) {
	u := newUserTables(makerColumn, ofCodePage(1252))
	limits := u.limits()
	good, bad := sqltest.Item("good", 10, 1), sqltest.Item("bad", 10, 2)
	setText(t, &bad, "CLN_MFR_AI_NM", "−")
	refuses := func(it commit.Item) bool {
		t.Helper()
		out, err := limits.Apply(t.Context(), []commit.Item{it}, u.apply)
		require.NoError(t, err)
		return out[0].Refused != nil
	}
	require.False(t, refuses(good))
	require.False(t, refuses(good))
	require.Equal(t, 1, u.reads)

	require.True(t, refuses(bad))
	require.Equal(t, 2, u.reads, "before it is refused")

	u.columns[makerColumn] = sqlserver.UserColumn{Kind: "nvarchar", Length: 255} // a user widens it
	require.False(t, refuses(bad), "a column that was changed meanwhile costs no document a failure")
	require.Equal(t, 3, u.reads)

	u.columns[makerColumn] = ofCodePage(949) // back to varchar, with another collation
	u.at = u.at.Add(5*time.Minute - time.Second)
	require.False(t, refuses(bad), "not noticed yet")
	require.Equal(t, 3, u.reads)
	u.at = u.at.Add(time.Second)
	require.True(t, refuses(bad))
	require.Equal(t, 4, u.reads, "what was read just now decides")

	u.err = fault.New(fault.Infrastructure, "test", "connection", "down")
	_, err := limits.Apply(t.Context(), []commit.Item{good, bad}, u.apply)
	require.True(t, fault.IsDependency(err), "nothing is refused by what may be out of date")
	require.True(t, errors.Is(err, u.err))
	require.False(t, refuses(good), "and what needs no reading is written")
	u.at = u.at.Add(5 * time.Minute)
	_, err = limits.Apply(t.Context(), []commit.Item{good}, u.apply)
	require.ErrorIs(t, err, u.err)
}

// A column that becomes narrower between two readings fails one request. The limits are then read again, and its
// documents are refused alone.
func TestARefusedRequestHasTheColumnsReadAgain(t *testing.T) {
	u := newUserTables(makerColumn, sqlserver.UserColumn{Kind: "nvarchar", Length: 255})
	limits := u.limits()
	items, others := hundred(t)
	apply := func() ([]commit.DocumentOutcome, error) { return limits.Apply(t.Context(), items, u.apply) }
	_, err := apply()
	require.NoError(t, err)

	u.columns[makerColumn] = sqlserver.UserColumn{Kind: "nvarchar", Length: 50}
	u.answer = fault.New(fault.Document, "test", "2628", "a text is longer than the user's column")
	_, err = apply()
	require.ErrorIs(t, err, u.answer, "the server says no more than that")
	u.answer = nil
	out, err := apply()
	require.NoError(t, err)
	require.Len(t, u.sent, 3)
	require.Equal(t, others, u.sent[2], "one request for all others")
	require.Equal(t, "validation.too_long", fault.CodeOf(out[wideOne].Refused))
	require.Equal(t, 2, u.reads)

	u.answer = fault.New(fault.Document, "test", "547", "a constraint says nothing of columns")
	_, err = limits.Apply(t.Context(), items[:1], u.apply)
	require.ErrorIs(t, err, u.answer)
	u.answer = nil
	_, err = limits.Apply(t.Context(), items[:1], u.apply)
	require.NoError(t, err)
	require.Equal(t, 2, u.reads)
}

// wideOne is the index of the one document among 100 whose manufacturer's name is longer than 50 characters.
const wideOne = 93

// hundred makes 100 documents, and the ids of all but wideOne.
func hundred(t *testing.T) (items []commit.Item, others string) {
	t.Helper()
	var ids []string
	for i := range 100 {
		it := sqltest.Item(fmt.Sprint("doc-", i), 10, int64(i+1))
		if i == wideOne {
			setText(t, &it, "CLN_MFR_AI_NM", strings.Repeat("x", 51))
		} else {
			ids = append(ids, it.DocumentID)
		}
		items = append(items, it)
	}
	return items, strings.Join(ids, " ")
}

// A column that becomes narrower costs one request, and then its own documents only. A widened column takes them at
// once.
func TestAColumnThatIsAlteredWhileRunning(t *testing.T) {
	d := newDatabase(t)
	h := d.harness(t)
	items, _ := hundred(t)
	for i := range items {
		h.AddLines(t, int64(i+1))
	}
	store := openStore(t, d.dsn)
	require.NoError(t, store.Check(t.Context()))
	alter := func(kind string) { d.spy.Exec(t, `ALTER TABLE dbo.IVCE_DTL ALTER COLUMN CLN_MFR_AI_NM `+kind) }

	alter("nvarchar(50)")
	_, err := store.Apply(t.Context(), items, commit.Write, breaker.Heartbeat{})
	require.Equal(t, fault.Document, fault.KindOf(err), "the server's own refusal: %v", err)
	out, err := store.Apply(t.Context(), items, commit.Write, breaker.Heartbeat{})
	require.NoError(t, err)
	for i, o := range out {
		if i == wideOne {
			require.ErrorContains(t, o.Refused,
				"document doc-93: IVCE_DTL.CLN_MFR_AI_NM: expected at most 50 UTF-16 units (nvarchar(50)), found 51")
			continue
		}
		require.Equal(t, invoice.OutcomeApplied, o.Verdict, o.DocumentID)
	}
	_, inLedger := h.Ledger(t, wideOne+1)
	require.False(t, inLedger)

	alter("nvarchar(255)")
	out, err = store.Apply(t.Context(), items, commit.Write, breaker.Heartbeat{})
	require.NoError(t, err)
	require.Equal(t, invoice.OutcomeApplied, out[wideOne].Verdict)
}

// A store on an already narrow column refuses documents alone from the first request on. Documents with other columns
// are written.
func TestColumnsOfTheUsersThatHoldLess(t *testing.T) {
	d := newDatabase(t)
	for _, c := range []struct {
		table  invoice.Table
		column string
		kind   string
		// holds is a value that fits; lacks is one that does not.
		holds, lacks, code string
	}{
		{invoice.Detail, "UPC_CD", "nvarchar(4)", "12😀", "123😀", "validation.too_long"},
		{invoice.Tracking, "UPC_CD", "varchar(4) COLLATE Latin1_General_CI_AS", "éééé", "ééééé", "validation.too_long"},
		{invoice.Detail, "MFR_CNFDC_SCR", "decimal(5, 2)", "0.9500", "0.9512", "validation.out_of_range"},
		{invoice.Tracking, "MFR_CNFDC_SCR", "decimal(4, 4)", "0.9999", "1.0000", "validation.out_of_range"},
		{
			invoice.Tracking, "PRCS_END_TS", "datetime", "1753-01-01T00:00:00.000000Z", "1752-12-31T23:59:59.000000Z",
			"validation.out_of_range",
		},
		{invoice.Tracking, "PRNT_IVCE_DTL_ID", "int", "", "", "validation.out_of_range"},
	} {
		h := d.harness(t)
		const parent = 1 << 31
		h.AddLines(t, 1, 2, 3, parent)
		d.spy.Exec(t, fmt.Sprintf(`ALTER TABLE dbo.%s DROP COLUMN %s`, c.table, c.column))
		d.spy.Exec(t, fmt.Sprintf(`ALTER TABLE dbo.%s ADD %s %s NULL`, c.table, c.column, c.kind))
		good, bad := sqltest.Item("good", 10, 1, 3), sqltest.Item("bad", 10, parent, 2)
		if c.holds != "" {
			setText(t, &good, c.column, c.holds)
			bad = sqltest.Item("bad", 10, 2)
			setText(t, &bad, c.column, c.lacks)
		}
		store := openStore(t, d.dsn)
		out, err := store.Apply(t.Context(), []commit.Item{good, bad}, commit.Write, breaker.Heartbeat{})
		require.NoError(t, err, "%+v", c)
		require.Equal(t, invoice.OutcomeApplied, out[0].Verdict, "%+v", c)
		require.Equal(t, c.code, fault.CodeOf(out[1].Refused), "%+v", c)
		require.ErrorContains(t, out[1].Refused, fmt.Sprintf("document bad: %s.%s: expected ", c.table, c.column))
		_, inLedger := h.Ledger(t, 2)
		require.False(t, inLedger)
	}
}

func TestNULLIsNotSentWhereItIsNotTaken(t *testing.T) {
	d := newDatabase(t)
	h := d.harness(t)
	d.spy.Exec(t, `ALTER TABLE dbo.IVCE_TRKG_MSTR DROP COLUMN MFR_STG_NM`)
	d.spy.Exec(t, `ALTER TABLE dbo.IVCE_TRKG_MSTR ADD MFR_STG_NM nvarchar(50) NOT NULL DEFAULT N'-'`)
	h.AddLines(t, 1, 2)
	store := openStore(t, d.dsn)
	good, bad := sqltest.Item("good", 10, 1), sqltest.Item("bad", 10, 2)
	for i, c := range mapping.InUse().Columns() {
		if c.Name == "MFR_STG_NM" {
			bad.Values[i] = invoice.Null()
		}
	}
	out, err := store.Apply(t.Context(), []commit.Item{good, bad}, commit.Write, breaker.Heartbeat{})
	require.NoError(t, err)
	require.Equal(t, invoice.OutcomeApplied, out[0].Verdict)
	require.Equal(t, "validation.not_null", fault.CodeOf(out[1].Refused))
	require.ErrorContains(t, out[1].Refused,
		"document bad: IVCE_TRKG_MSTR.MFR_STG_NM: expected a value (NOT NULL), found NULL")
	bad.FailureMark, bad.Values = true, nil
	out, err = store.Apply(t.Context(), []commit.Item{bad}, commit.Write, breaker.Heartbeat{})
	require.NoError(t, err)
	require.Equal(t, invoice.OutcomeApplied, out[0].Verdict, "a mark writes none")
}

// A value that a column stores in another form has one hash, as it is sent and as it is read again.
func TestAStoredValueHasTheHashOfTheSentOne(t *testing.T) {
	type column = sqlserver.UserColumn
	for _, c := range []struct {
		kind         invoice.Column
		has          column
		sent, stored string
	}{
		{invoice.Column{Kind: invoice.Text}, column{Kind: "nchar", Length: 9}, "ab ", "ab       "},
		{invoice.Column{Kind: invoice.Flag}, column{Kind: "char", Length: 1}, "Y", "Y"},
		{invoice.Column{Kind: invoice.Text}, column{Kind: "nvarchar", Length: 9}, "ab ", "ab "},
		{
			invoice.Column{Kind: invoice.Time},
			column{Kind: "datetime", Scale: 3},
			"2025-12-17T16:30:15.123456Z",
			"2025-12-17T16:30:15.123333Z",
		},
		// a reader may give whole ms
		{
			invoice.Column{Kind: invoice.Time},
			column{Kind: "datetime", Scale: 3},
			"2025-12-17T16:30:15.005000Z",
			"2025-12-17T16:30:15.007000Z",
		},
		{
			invoice.Column{Kind: invoice.Time},
			column{Kind: "datetime", Scale: 3},
			"2025-12-31T23:59:59.999999Z",
			"2026-01-01T00:00:00.000000Z",
		},
		{
			invoice.Column{Kind: invoice.Time},
			column{Kind: "datetime2", Scale: 3},
			"2025-12-17T16:30:15.123500Z",
			"2025-12-17T16:30:15.124000Z",
		},
		{
			invoice.Column{Kind: invoice.Time},
			column{Kind: "datetimeoffset", Scale: 0},
			"2025-12-17T16:30:15.500000Z",
			"2025-12-17T16:30:16.000000Z",
		},
		{
			invoice.Column{Kind: invoice.Time},
			column{Kind: "datetime2", Scale: 7},
			"2025-12-17T16:30:15.123456Z",
			"2025-12-17T16:30:15.123456Z",
		},
		{
			invoice.Column{Kind: invoice.Time, Local: true},
			column{Kind: "datetime", Scale: 3},
			"2025-12-31T23:59:59.999999",
			"2026-01-01T00:00:00.000000",
		},
		{
			invoice.Column{Kind: invoice.Time, Local: true},
			column{Kind: "datetime2", Scale: 3},
			"2025-12-17T16:30:15.123500",
			"2025-12-17T16:30:15.124000",
		},
		{invoice.Column{Kind: invoice.Flag}, column{Kind: "char", Length: 3}, "NO", "NO "},
		{invoice.Column{Kind: invoice.Flag}, column{Kind: "bit"}, "1", "1"},
	} {
		require.Equal(t, sqlserver.Stored(c.kind, c.has, c.stored), sqlserver.Stored(c.kind, c.has, c.sent), "%+v", c)
	}
	for _, c := range []struct {
		kind invoice.Column
		has  column
		a, b string
	}{
		{invoice.Column{Kind: invoice.Text}, column{Kind: "varchar"}, "ab", "ab "},
		{
			invoice.Column{Kind: invoice.Time},
			column{Kind: "datetime2", Scale: 6},
			"2025-12-17T16:30:15.123456Z",
			"2025-12-17T16:30:15.123457Z",
		},
	} {
		require.NotEqual(t, sqlserver.Stored(c.kind, c.has, c.a), sqlserver.Stored(c.kind, c.has, c.b))
	}
}

func TestWhichColumnsTakeAValue(t *testing.T) {
	type column = sqlserver.UserColumn
	flag := func(yes, no string, n int) invoice.Column {
		return invoice.Column{Source: invoice.FromDocument, Kind: invoice.Flag, Flags: [2]string{yes, no}, Max: n}
	}
	moment := invoice.Column{Source: invoice.FromDocument, Kind: invoice.Time}
	local := moment
	local.Local = true
	wide := invoice.Column{Source: invoice.FromDocument, Kind: invoice.Text, Max: 4001}
	keeps := invoice.Column{Table: invoice.Detail, Source: invoice.FromDocument, Kind: invoice.Text, Max: 5, Keep: true}
	inserted := keeps
	inserted.Table = invoice.Tracking
	constant := invoice.Column{Source: invoice.FromMapping, Kind: invoice.Text, Max: 5}
	exact := invoice.Column{Source: invoice.FromDocument, Kind: invoice.Decimal, Precision: 5, Scale: 4}
	exactKeeps := exact
	exactKeeps.Keep = true
	never := column{Kind: "nvarchar", Length: 5, NotNull: true}
	for _, c := range []struct {
		of   invoice.Column
		has  column
		want string
	}{
		{flag("1", "0", 1), column{Kind: "bit"}, ""},
		{flag("0", "1", 1), column{Kind: "bit"}, ""},
		{flag("1", "0", 1), column{Kind: "char", Length: 1}, ""},
		{flag("1", "0", 1), column{Kind: "int"}, "expected bit or wider, found int"},
		{flag("1", "0", 1), column{Kind: "tinyint"}, "expected bit or wider, found tinyint"},
		{flag("Y", "N", 1), column{Kind: "bit"}, "expected nvarchar(1) or wider, found bit"},
		{flag("1", "2", 1), column{Kind: "bit"}, "expected nvarchar(1) or wider, found bit"},
		{flag("YES", "NO", 3), column{Kind: "char", Length: 3}, ""},
		{flag("YES", "NO", 3), column{Kind: "char", Length: 2}, "expected nvarchar(3) or wider, found char(2)"},
		{moment, column{Kind: "datetimeoffset", Scale: 7}, ""},
		{local, column{Kind: "datetime", Scale: 3}, ""},
		{local, column{Kind: "datetime2", Scale: 7}, ""},
		{local, column{Kind: "datetimeoffset", Scale: 7}, "expected datetime2(6) or wider, found datetimeoffset(7)"},
		{wide, column{Kind: "nvarchar", Length: -1}, ""},
		{wide, column{Kind: "nvarchar", Length: 4000}, "expected nvarchar(max) or wider, found nvarchar(4000)"},
		{keeps, never, ""},
		{inserted, never, "expected a column that takes NULL"},
		{constant, never, ""},
		{exact, column{Kind: "decimal", Precision: 20, Scale: 13}, ""},
		{exactKeeps, column{Kind: "decimal", Precision: 20, Scale: 12}, ""},
		{exactKeeps, column{Kind: "decimal", Precision: 20, Scale: 13}, "expected decimal(5, 4) or wider"},
	} {
		differences, _ := sqlserver.Checked(c.of, c.has)
		if c.want == "" {
			require.Empty(t, differences)
			continue
		}
		require.Len(t, differences, 1, "%+v", c)
		require.Contains(t, differences[0], c.want)
	}
}

func TestAValueIsReadInItsColumnsForm(t *testing.T) {
	at := time.Date(2025, 11, 2, 1, 30, 15, 123456000, time.UTC)
	for _, c := range []struct {
		of    invoice.Column
		found any
		want  string
	}{
		{invoice.Column{Kind: invoice.Flag, Flags: [2]string{"1", "0"}}, true, "1"},
		{invoice.Column{Kind: invoice.Flag, Flags: [2]string{"1", "0"}}, false, "0"},
		{invoice.Column{Kind: invoice.Time}, at, "2025-11-02T01:30:15.123456Z"},
		{invoice.Column{Kind: invoice.Time, Local: true}, at, "2025-11-02T01:30:15.123456"},
	} {
		v, err := sqlserver.Canonical(c.of, c.found)
		require.NoError(t, err)
		require.Equal(t, invoice.Of(c.want), v)
	}
}
