package invoice_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sqlwriter/internal/invoice"
)

// Other hashes mean that every hash in every ledger has a new meaning. If that is intended (a new column in the default
// mapping, another canonical form), the version changes too: only then does `make update` rewrite the golden. Old rows
// then count as unchanged by their version, so that people's corrections are not overwritten
// (docs/requirements.md R16).
func TestTheHashGolden(t *testing.T) {
	d, err := invoice.Reader{}.Read(
		rule{in: `{"post-processing": {"duplicate_detail_uids": [1421550]}}`}.document(t), rulesNow())
	require.NoError(t, err)
	require.NoError(t, d.Problem)
	version := fmt.Sprintf("version %d\n", invoice.DefaultMapping().Version())
	m := invoice.DefaultMapping()
	hashes := fmt.Sprintf("%scontent %s\nmain line %s\nduplicate %s\n", version, d.Hash,
		rowHashes(m.RowValues(d.Values, d.Main, d.Main)), rowHashes(m.RowValues(d.Values, d.Main, 1421550)))
	const path = "testdata/hashes.txt"
	golden, err := os.ReadFile(path)
	if *update && !strings.HasPrefix(string(golden), version) {
		require.NoError(t, os.WriteFile(path, []byte(hashes), 0o600))
		golden, err = []byte(hashes), nil
	}
	require.NoError(t, err)
	require.Equal(t, string(golden), hashes, "change recipeNumber, then make update")
	require.Equal(t, "4bf5122f344554c53bde2ebb8cd2b7e3d1600ad631c385a5d7cce23c7785459a", invoice.Key("\x01"))
}

// spellings are ways to write a member. Spellings of one value must give one hash, all others different ones.
func spellings() map[string][]string {
	return map[string][]string{
		"part_number":            {`"425"`, `425`, `"42\u0035"`, `""`, `null`, `" "`, `"4"`, `true`, `"«x*101»"`},
		"unspsc":                 {`"25"`, `"5"`, `null`, `""`, `25`},
		"part_number_confidence": {`0.9`, `0.90`, `9e-1`, `"0.9"`, `0.90001`, `0.9001`, `1.2`, `1.3`, `null`},
		"data_verified":          {`true`, `"Y"`, `1`, `false`, `0.0`, `null`},
		"processing_started_at": {
			`"2025-12-17 10:30:15-06:00"`, `"2025-12-17T16:30:15.0Z"`, `"2025-12-17T16:30:15.000001Z"`, `null`,
		},
		"invoice_line_status":     {`"AI_ERROR"`, `"AI-ERROR"`, `"DS1"`, `null`},
		"an unknown member":       {`1`, `2`},
		"aks_part_number":         {`"x"`},
		"manufacturer_name_stage": {`"a"`, `"b"`},
	}
}

func TestTheHashChangesExactlyWhenAValueDoes(t *testing.T) {
	names := []string{}
	for name := range spellings() {
		names = append(names, name)
	}
	slices.Sort(names)
	document := rapid.Custom(func(rt *rapid.T) invoice.Document {
		parts := []string{}
		for _, name := range names {
			parts = append(parts, fmt.Sprintf("%q: %s", name, rapid.SampledFrom(spellings()[name]).Draw(rt, name)))
		}
		ids := rapid.SampledFrom(
			[]string{`[]`, `null`, `[5]`, `[5, "5", 1421549]`, `[5, 6]`, `[6, 5]`, `[56]`}).Draw(rt, "duplicates")
		main := rapid.SampledFrom([]string{`1421549`, `"1421549"`, `1421549.0`, `7`}).Draw(rt, "main")
		in := fmt.Sprintf(
			`{"process_output": {%s}, "post-processing": {"duplicate_detail_uids": %s}, "invoice_details_from_rpa": {"IVCE_DTL_UID": %s}}`,
			strings.Join(parts, ", "), ids, main)
		d, err := invoice.Reader{}.Read(rule{in: in}.document(t), rulesNow())
		require.NoError(rt, err)
		return d
	})
	rapid.Check(t, func(rt *rapid.T) {
		a, b := document.Draw(rt, "a"), document.Draw(rt, "b")
		same := a.Main == b.Main && slices.Equal(a.Duplicates, b.Duplicates) && slices.Equal(a.Values, b.Values)
		switch {
		case a.Problem == nil && b.Problem == nil:
			require.Equal(rt, same, a.Hash == b.Hash)
		case (a.Problem == nil) != (b.Problem == nil):
			require.NotEqual(rt, a.Hash, b.Hash, "refused content passes for content that was written")
		case !same:
			require.NotEqual(rt, a.Hash, b.Hash)
		}
		for _, row := range [][2]int64{{7, 7}, {7, 8}, {8, 9}} {
			ra := invoice.DefaultMapping().RowValues(a.Values, row[0], row[1])
			rb := invoice.DefaultMapping().RowValues(b.Values, row[0], row[1])
			ha, hb := rowHashes(ra), rowHashes(rb)
			for i, table := range []invoice.Table{invoice.Detail, invoice.Tracking} {
				require.Equal(rt, slices.Equal(hashed(ra, table), hashed(rb, table)), ha[i] == hb[i])
			}
		}
	})
}

func rowHashes(row []invoice.Value) [2]string {
	detail, tracking := invoice.DefaultMapping().RowHashes(row)
	return [2]string{detail, tracking}
}

// hashed are the values of a table that its row hash covers: all but the status, which stewards change.
func hashed(row []invoice.Value, table invoice.Table) []invoice.Value {
	var values []invoice.Value
	for i, c := range invoice.DefaultMapping().Columns() {
		if c.Table == table && !c.Status {
			values = append(values, row[i])
		}
	}
	return values
}

func TestARefusedContentHasAHashOfItsOwn(t *testing.T) {
	read := func(confidence string) invoice.Document {
		d, err := invoice.Reader{}.Read(
			rule{in: `{"process_output": {"part_number_confidence": ` + confidence + `}}`}.document(t), rulesNow())
		require.NoError(t, err)
		return d
	}
	empty, wrong, other := read("null"), read(`"x"`), read("[]")
	require.Equal(t, empty.Values, wrong.Values, "the refused value reads as NULL")
	require.NotEqual(t, empty.Hash, wrong.Hash, "or a mark would skip rows that hold NULL")
	require.NotEqual(t, wrong.Hash, other.Hash, "or a correction after a 412 would go unseen")
	require.Equal(t, wrong.Hash, read(`"x"`).Hash)
}

func TestMovingTextBetweenColumnsChangesTheHash(t *testing.T) {
	n := len(invoice.DefaultMapping().Columns())
	values := func(first, second invoice.Value) []invoice.Value {
		all := make([]invoice.Value, n)
		for i := range all {
			all[i] = invoice.Null()
		}
		all[0], all[1] = first, second
		return all
	}
	seen := map[string]bool{}
	for _, v := range [][]invoice.Value{
		values(invoice.Null(), invoice.Null()), values(invoice.Of(""), invoice.Null()),
		values(invoice.Null(), invoice.Of("")),
		values(invoice.Of("ab"), invoice.Of("")), values(invoice.Of("a"), invoice.Of("b")),
		values(invoice.Of(""), invoice.Of("ab")),
		values(invoice.Of("NULL"), invoice.Null()),
	} {
		seen[rowHashes(invoice.DefaultMapping().RowValues(v, 1, 1))[0]] = true
	}
	require.Len(t, seen, 7)
}

func TestRowsDifferInWhatMakesADuplicateOnly(t *testing.T) {
	d, err := invoice.Reader{}.Read([]byte(baseDocument), rulesNow())
	require.NoError(t, err)
	main := invoice.DefaultMapping().RowValues(d.Values, d.Main, d.Main)
	duplicate := invoice.DefaultMapping().RowValues(d.Values, d.Main, 1421550)
	for i, c := range invoice.DefaultMapping().Columns() {
		switch c.Source {
		case invoice.FromParent:
			require.Equal(t, invoice.Null(), main[i])
			require.Equal(t, invoice.Of("1421549"), duplicate[i])
		case invoice.FromDuplicate:
			require.Equal(t, invoice.Of("N"), main[i])
			require.Equal(t, invoice.Of("Y"), duplicate[i])
		case invoice.FromDocument, invoice.FromMapping, invoice.FromRequestTime:
			require.Equal(t, d.Values[i], main[i])
			require.Equal(t, d.Values[i], duplicate[i])
		}
	}
	require.Len(t, invoice.DefaultMapping().RowValues(nil, 1, 2), len(main))
}

func TestAMarkWritesTheLineStatusAndNothingElse(t *testing.T) {
	mark := invoice.DefaultMapping().MarkValues()
	written := 0
	for i, c := range invoice.DefaultMapping().Columns() {
		if mark[i].Null {
			continue
		}
		written++
		require.Equal(t, invoice.Detail, c.Table)
		require.Equal(t, invoice.DefaultMapping().Status(invoice.Detail), c.Name)
		require.Equal(t, invoice.Of("AI-ERROR"), mark[i])
	}
	require.Equal(t, 1, written)
}
