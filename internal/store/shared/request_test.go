package shared_test

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/adopt"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/store/shared"
	"sqlwriter/test/mapping"
	"sqlwriter/test/sqltest"
)

// sample is a valid value of each kind.
func sample(c invoice.Column) invoice.Value {
	switch c.Kind {
	case invoice.Integer:
		return invoice.Of("9223372036854775807")
	case invoice.Decimal:
		return invoice.Of("0.9500")
	case invoice.Flag:
		return invoice.Of("Y")
	case invoice.Time:
		return invoice.Of("2025-12-17T16:30:15.123456Z")
	case invoice.Text:
	}
	return invoice.Of("tab\t, \"quoted\" \\ <b> \u6f22\u5b57")
}

// document is an item with a value in every column.
func document(id string, main int64, duplicates ...int64) commit.Item {
	values := make([]invoice.Value, len(mapping.InUse().Columns()))
	for i, c := range mapping.InUse().Columns() {
		values[i] = sample(c)
	}
	return commit.Item{
		DocumentID: id, Version: invoice.Version{US: 1 << 53, Key: invoice.Key(id)}, SourceTS: 7,
		Hash:        invoice.Key("content"),
		HashVersion: mapping.InUse().Version(), Main: main, Duplicates: duplicates, Values: values,
	}
}

// sent is a request as a database reads it. Numbers keep their digits.
type sent struct {
	Items [][]any `json:"items"`
	Lines [][]any `json:"lines"`
}

// read decodes a request and puts each hash in the place of its number.
func read(t *testing.T, p shared.Payload) sent {
	t.Helper()
	var s sent
	d := json.NewDecoder(strings.NewReader(p.JSON))
	d.UseNumber()
	require.NoError(t, d.Decode(&s))
	hash := func(row []any, members ...int) {
		for _, i := range members {
			if row[i] == nil {
				continue
			}
			place, err := row[i].(json.Number).Int64()
			require.NoError(t, err)
			row[i] = hex.EncodeToString(p.Hashes[32*place : 32*place+32])
		}
	}
	for _, it := range s.Items {
		hash(it, 2, 5)
	}
	for _, l := range s.Lines {
		hash(l, 3, 4)
	}
	return s
}

// spread has each value of an array once, by column.
func spread(values []invoice.Value, perLine bool) []any {
	var out []any
	seen := map[string]bool{}
	for i, c := range mapping.InUse().Columns() {
		name := string(c.Source) + fmt.Sprint(c.Paths, c.Constant, c.Keep, c.Type())
		switch {
		case c.PerLine() != perLine || seen[name]:
		case values == nil || values[i].Null:
			out = append(out, nil)
		default:
			out = append(out, values[i].Text)
		}
		seen[name] = true
	}
	return out
}

func TestRequest(t *testing.T) {
	good, mark := document(`a"`, 9223372036854775807, 2), document("b", 3)
	good.LeaveSince, mark.FailureMark, mark.Values = 5, true, nil
	p, err := shared.Request([]commit.Item{good, mark}, shared.Form{Mapping: mapping.InUse()})
	require.NoError(t, err)
	s := read(t, p)
	n := func(digits string) json.Number { return json.Number(digits) }
	hashVersion, err := json.Marshal(mapping.InUse().Version())
	require.NoError(t, err)
	require.Equal(t, [][]any{
		append(
			[]any{
				n("0"), `a"`, invoice.Key(`a"`), n("9007199254740992"), n("7"), good.Hash,
				n(string(hashVersion)), n("0"), n("5"),
			}, spread(good.Values, false)...),
		append(
			[]any{
				n("1"), "b", invoice.Key("b"), n("9007199254740992"), n("7"), mark.Hash, n(string(hashVersion)), n("1"),
				n("9223372036854775807"),
			}, spread(nil, false)...),
	}, s.Items)
	line := func(position int, detail int64, head ...any) []any {
		row := mapping.InUse().RowValues(good.Values, good.Main, detail)
		detailHash, trackingHash := mapping.InUse().RowHashes(row)
		return append(append(head, n(string(rune('0'+position))), detailHash, trackingHash), spread(row, true)...)
	}
	require.Equal(t, [][]any{
		line(0, good.Main, n("9223372036854775807"), n("0")),
		line(1, 2, n("2"), n("0")),
		append([]any{n("3"), n("1"), n("0"), nil, nil}, spread(nil, true)...),
	}, s.Lines)
	for _, it := range s.Items {
		require.Len(t, it, shared.ItemHead+len(spread(nil, false)))
	}
	for _, l := range s.Lines {
		require.Len(t, l, shared.LineHead+len(spread(nil, true)))
	}
}

func TestTwoValuesOfOneSlotAreRefused(t *testing.T) {
	it := document("a", 1)
	it.Values[0] = invoice.Of("another")
	_, err := shared.Request([]commit.Item{it}, shared.Form{Mapping: mapping.InUse()})
	require.Equal(t, fault.CodeBug, fault.CodeOf(err), "%v", err)
	require.Equal(t, fault.Internal, fault.KindOf(err))
	require.ErrorContains(t, err,
		"document a: expected one value in IVCE_DTL.CLN_MFR_AI_NM and IVCE_TRKG_MSTR.CLN_MFR_AI_NM")
}

// The same member with another kind or scale is another value, and so is another source.
func TestSlotsDependOnSourceMemberKindAndScale(t *testing.T) {
	column := func(kind invoice.Kind, limit, scale int) invoice.Column {
		return invoice.Column{Source: invoice.FromDocument, Paths: []string{"p"}, Kind: kind, Max: limit, Scale: scale}
	}
	document, line, of := shared.Slots([]invoice.Column{
		column(invoice.Text, 5, 0), column(invoice.Decimal, 0, 2), column(invoice.Text, 9, 0),
		column(invoice.Decimal, 0, 4), column(invoice.Flag, 0, 4),
		{Source: invoice.FromDocument, Paths: []string{"P"}, Kind: invoice.Text},
		{Source: invoice.FromParent, Kind: invoice.Text},
		{Source: invoice.FromDuplicate, Kind: invoice.Text},
	})
	require.Equal(t, []string{"d0", "d1", "d0", "d2", "d3", "d4", "l0", "l1"}, of)
	require.Len(t, document, 5)
	require.Equal(t, 9, document[0].Max, "room for the wider column")
	require.Equal(t, shared.ItemHead+2, document[2].Position)
	require.Len(t, line, 2)
	require.Equal(t, shared.LineHead+1, line[1].Position)
}

// A path would clash with our own columns, and may be longer than a name.
func TestTheNameOfASlotIsAPosition(t *testing.T) {
	_, _, want := shared.Slots(mapping.InUse().Columns())
	document, line, of := shared.Slots(sqltest.HostilePaths().Columns())
	require.Equal(t, want, of, "columns share a slot as before, whatever its path")
	for letter, slots := range map[string][]shared.Slot{"d": document, "l": line} {
		for i, s := range slots {
			require.Equal(t, letter+strconv.Itoa(i), s.Name)
		}
	}
}

func TestEveryTextArrives(t *testing.T) {
	for _, id := range []string{`"`, `\`, "\x00", "\n", " ", "~", "\x7f", "<", "\u2028", "\u00e9", "\U0001f600"} {
		p, err := shared.Request([]commit.Item{document(id, 1)}, shared.Form{Mapping: mapping.InUse()})
		require.NoError(t, err)
		require.Equal(t, id, read(t, p).Items[0][1])
	}
}

func TestTimesHaveTheAdaptersForm(t *testing.T) {
	it := document("a", 1)
	p, err := shared.Request([]commit.Item{it},
		shared.Form{TimeText: func(canonical string) string { return "at " + canonical }})
	require.NoError(t, err)
	for i, c := range mapping.InUse().Columns() {
		if c.Kind == invoice.Time {
			it.Values[i].Text = "at " + it.Values[i].Text
		}
	}
	require.Equal(t, spread(it.Values, false), read(t, p).Items[0][shared.ItemHead:])
}

// A database would round or cut such a value silently, or replace it by NULL.
func TestAValueThatIsNotOfItsKindIsRefused(t *testing.T) {
	for _, c := range []struct {
		kind invoice.Kind
		text string
		good bool
	}{
		{invoice.Decimal, "1.0000", true},
		{invoice.Decimal, "-1.0000", true},
		{invoice.Decimal, "1", false},
		{invoice.Decimal, "1.", false},
		{invoice.Decimal, "1.000", false},
		{invoice.Decimal, "1.00000", false},
		{invoice.Decimal, "12.0000", false},
		{invoice.Decimal, ".5000", false},
		{invoice.Decimal, "1e-40000", false},
		{invoice.Decimal, "x.0000", false},
		{invoice.Time, "2025-12-17T16:30:15.000000Z", true},
		{invoice.Time, "2025-12-17T16:30:15Z", false},
		{invoice.Time, "2025-12-17T16:30:15.1234567Z", false},
		{invoice.Time, "2025-12-17T16:30:15.000000+01:00", false},
		{invoice.Time, "2025-12-17T16:30:15,000000Z", false},
		{invoice.Time, "2025-12-17T6:30:15.000000Z", false},
		{invoice.Time, "soon", false},
	} {
		it := document("doc", 1)
		for i, column := range mapping.InUse().Columns() {
			if column.Kind == c.kind {
				it.Values[i] = invoice.Of(c.text)
			}
		}
		_, err := shared.Request([]commit.Item{it}, shared.Form{Mapping: mapping.InUse()})
		if c.good {
			require.NoError(t, err, c.text)
			continue
		}
		require.Equal(t, fault.Document, fault.KindOf(err), "%s: %v", c.text, err)
		require.Equal(t, "value", fault.CodeOf(err))
		require.ErrorContains(t, err, "document doc: ")
		require.ErrorContains(t, err, "found something else", "the message does not contain the value")
	}
}

// A local time has no offset, and one in UTC is none.
func TestALocalTimeIsSentAsTheClockShowsIt(t *testing.T) {
	local := mapping.Edited(func(tables map[invoice.Table]*mapping.Table) {
		tables[invoice.Tracking].Column("PRCS_STRT_TS")["type"] = "time(zone)"
	})
	at := slices.IndexFunc(local.Columns(), func(c invoice.Column) bool { return c.Local })
	it := document("doc", 1)
	for text, good := range map[string]bool{
		"2025-11-02T01:30:15.000000": true, "2025-11-02T01:30:15.000000Z": false, "2025-11-02T01:30:15": false,
	} {
		it.Values[at] = invoice.Of(text)
		p, err := shared.Request([]commit.Item{it}, shared.Form{Mapping: local})
		if !good {
			require.Equal(t, "value", fault.CodeOf(err), text)
			continue
		}
		require.NoError(t, err)
		require.Contains(t, read(t, p).Items[0], text)
	}
}

func TestAdoptionRows(t *testing.T) {
	key, hash := invoice.Key("k"), invoice.Key("h")
	row := adopt.Row{
		Line: 5, Version: invoice.Version{US: 6, Key: key}, DocumentID: "<d>", SourceTS: 7, Hash: hash, HashVersion: 1,
		SysName: "web", Outcome: adopt.Adopted,
	}
	failed := row
	failed.Outcome = adopt.Failed
	p, err := shared.AdoptionRows([]adopt.Row{row, failed})
	require.NoError(t, err)
	require.JSONEq(t, `[[5,6,0,"<d>",7,1,1,"web","adopted"],[5,6,2,"<d>",7,null,null,"web","failed"]]`, p.JSON)
	require.Equal(t, key+hash+key, hex.EncodeToString(p.Hashes))
	p, err = shared.AdoptionRows(nil)
	require.NoError(t, err)
	require.Equal(t, shared.Payload{JSON: "[]"}, p)
}

// A text that is no hash would be stored as another one.
func TestATextThatIsNoHashIsRefused(t *testing.T) {
	for _, text := range []string{"", "k", invoice.Key("k")[1:], "xy" + invoice.Key("k")[2:]} {
		it := document("a", 1)
		it.Hash = text
		_, err := shared.Request([]commit.Item{it}, shared.Form{Mapping: mapping.InUse()})
		require.Equal(t, fault.CodeBug, fault.CodeOf(err), text)
		_, err = shared.AdoptionRows([]adopt.Row{{Version: invoice.Version{Key: text}, Outcome: adopt.Failed}})
		require.Equal(t, fault.CodeBug, fault.CodeOf(err), text)
	}
	var h shared.Hash
	require.Error(t, h.Scan(invoice.Key("k")), "a column of text")
}

func TestAdoptionMoved(t *testing.T) {
	err := shared.AdoptionMoved("test")
	require.Equal(t, fault.Contention, fault.KindOf(err))
	require.True(t, fault.Has(err, fault.Changed))
	require.Equal(t, shared.CodeMoved, fault.CodeOf(err))
}
