package conformance

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/reconcile"
	"sqlwriter/test/mapping"
)

// rewriteCases: a rewrite leaves alone what a person edited and what cannot be compared, and keeps a steward's status.
func rewriteCases() []sinkCase {
	return []sinkCase{
		{"a rewrite writes lines that nobody edited, and no others", []string{"CountWrites"}, rewriteUnedited},
		{"a rewrite leaves an edit of either table alone, whatever differs", nil, rewriteEdits},
		{"an edit that a person took back is no edit", nil, rewriteTakenBack},
		{
			"a rewrite writes a line that has lost its tracking row, and keeps the other row's status",
			nil, rewriteTrackingGone,
		},
		{"a line without its tracking row whose other row was edited is left alone", nil, rewriteTrackingGoneAndEdit},
		{"a rewrite with newer content leaves an edit alone, and a write does not", nil, rewriteNewerOverEdit},
		{"a rewrite keeps a status that a steward set, on each line and in both tables", nil, rewriteKeepsStatus},
		{"a rewrite with newer content writes its status", nil, rewriteNewerStatus},
		{"a status beside another edit is left alone with it", nil, rewriteStatusAndEdit},
		{"a rewrite writes an edited line that an operator named, with its status, and no other", nil, rewriteNamed},
		{"an adopted line is not comparable, and is written when that is allowed", nil, rewriteAdopted},
		{"a marked line is not comparable, and is written when that is allowed", nil, rewriteMarked},
		{
			"a line of another hash version is not comparable, and is written when that is allowed",
			nil, rewriteOtherVersion,
		},
		{"a line without row hashes is not comparable", nil, rewriteWithoutHashes},
		{"a line of an earlier mapping is compared by its columns, and filled", nil, rewriteFills},
		{"a line that an earlier mapping wrote keeps a steward's status", nil, rewriteKeepsStatusOfEarlier},
		{"a value that an earlier mapping did not write is not comparable", nil, rewriteForeignValue},
		{"a line of a mapping with a column more or another is not comparable", nil, rewriteOtherMapping},
		{"what cannot be compared may be written, and an edit still may not", nil, rewriteNotComparableAndEdited},
		{"a rewrite writes a line without a ledger row, whatever it has", nil, rewriteWithoutLedger},
		{"an edited line of a newer result is superseded", nil, rewriteEditedSuperseded},
		{"a document with a missing line is missing, edited or not", nil, rewriteEditedMissing},
		{"two documents on an edited line are both left alone", nil, rewriteTwoOnOneLine},
		{"a failure mark in a rewrite is written over an edit, as in a write", nil, rewriteMark},
		{"a preview says nothing of edits", nil, rewritePreview},
		{"the ledger names the environment that wrote a line last", nil, ledgerNamesEnvironment},
		{
			"an edit between the read and the write of a rewrite is contention, and is found then",
			[]string{"BetweenReadAndWrite"},
			rewriteEditBetween,
		},
		{
			"a status set between the read and the write of a rewrite stays",
			[]string{"BetweenReadAndWrite"},
			rewriteStatusBetween,
		},
		{
			"a tracking row made between the read and the write of a rewrite is contention",
			[]string{"BetweenReadAndWrite"},
			rewriteTrackingBetween,
		},
		{
			"a lost tracking row made again between the read and the write of a rewrite is contention",
			[]string{"BetweenReadAndWrite"},
			rewriteLostTrackingBetween,
		},
		{
			"unedited lines in columns of other types are not edited, and edited ones are",
			[]string{"OddColumns"},
			rewriteOddColumns,
		},
	}
}

// place is the place of the column that has the value of a column of the default mapping.
func place(table invoice.Table, name string) int { return mapping.Place(table, name) }

// statusColumn is the status of a line, in both tables.
const statusColumn = "IVCE_LNE_STAT"

// change is another program's write of one column of a line. The value is in the form of the default mapping.
func (s *sinkTest) change(line int64, table invoice.Table, name string, v invoice.Value) {
	s.Helper()
	row, at := s.h.Row(s, line), place(table, name)
	row.Values = slices.Clone(row.Values)
	row.Values[at] = formed(mapping.InUse().Columns()[at], v)
	s.h.SetRow(s, line, row)
}

// formed is a value of a column of the default mapping in the form of another column.
func formed(c invoice.Column, v invoice.Value) invoice.Value {
	switch {
	case v.Null:
	case c.Kind == invoice.Flag && v.Text == "Y":
		v.Text = c.Flags[0]
	case c.Kind == invoice.Flag && v.Text == "N":
		v.Text = c.Flags[1]
	case c.Local:
		v.Text = strings.TrimSuffix(v.Text, "Z")
	}
	return v
}

// setStatus is a steward's work on a line.
func (s *sinkTest) setStatus(line int64, status string) {
	s.Helper()
	for _, table := range []invoice.Table{invoice.Detail, invoice.Tracking} {
		s.change(line, table, statusColumn, invoice.Of(status))
	}
}

// hasStatus requires that a line has an item's content but for the status.
func (s *sinkTest) hasStatus(it commit.Item, line int64, status string) {
	s.Helper()
	values := mapping.InUse().RowValues(it.Values, it.Main, line)
	for i, c := range mapping.InUse().Columns() {
		if c.Status {
			values[i] = invoice.Of(status)
		}
	}
	require.Equal(s, SinkRow{Detail: true, Tracking: true, Values: values}, s.h.Row(s, line), "line %d", line)
	l, ok := s.h.Ledger(s, line)
	require.True(s, ok)
	require.Equal(s, ledgerOf(it, line), l)
}

func withoutTracking(row SinkRow) SinkRow {
	row.Tracking, row.Values = false, slices.Clone(row.Values)
	for i, c := range mapping.InUse().Columns() {
		if c.Table == invoice.Tracking {
			row.Values[i] = invoice.Null()
		}
	}
	return row
}

func (s *sinkTest) rewrites(it commit.Item, short string) {
	s.Helper()
	s.givesIn(commit.Rewrite, []string{short}, it)
}

func rewriteUnedited(s *sinkTest) {
	s.h.AddLines(s, 1, 2, 3)
	a := doc("a", 10, 5, "x", 1, 2, 3)
	s.gives(a, "applied(applied applied applied)")
	s.edit(2)
	writes := s.h.CountWrites(s)
	s.rewrites(a, "edited(applied edited applied)")
	for line, want := range map[int64]int{1: 1, 2: 0, 3: 1} {
		detail, tracking := writes(line)
		require.Equal(s, []int{want, want}, []int{detail, tracking}, "line %d", line)
	}
	s.holds(a, 1, 3)
}

// edits are changes that a comparison may overlook: each gets the value that was written, and gives another one.
func edits() map[string]func(v invoice.Value) invoice.Value {
	return map[string]func(v invoice.Value) invoice.Value{
		"another text":     func(invoice.Value) invoice.Value { return invoice.Of("a person's text") },
		"another case":     func(v invoice.Value) invoice.Value { return invoice.Of(strings.ToUpper(v.Text)) },
		"a trailing blank": func(v invoice.Value) invoice.Value { return invoice.Of(v.Text + " ") },
		"a trailing blank taken": func(v invoice.Value) invoice.Value {
			return invoice.Of(strings.TrimRight(v.Text, " "))
		},
		"NULL":          func(invoice.Value) invoice.Value { return invoice.Null() },
		"an empty text": func(invoice.Value) invoice.Value { return invoice.Of("") },
	}
}

func rewriteEdits(s *sinkTest) {
	line := int64(0)
	for _, table := range []invoice.Table{invoice.Detail, invoice.Tracking} {
		for name, edit := range edits() {
			for _, column := range []string{"CLN_MFR_AI_NM", "CLN_MFR_PRT_NUM", "AI_STG_NM"} {
				line += 3
				s.h.AddLines(s, line, line+1, line+2)
				at := place(table, column)
				a := doc("a", 10, 5, "x", line, line+1, line+2)
				a = replaced(a, at, "lower case ")
				if name == "NULL" {
					a = replaced(a, at, "")
				}
				s.gives(a, "applied(applied applied applied)")
				edited := edit(s.h.Row(s, line+1).Values[at])
				if edited == s.h.Row(s, line+1).Values[at] {
					continue
				}
				s.change(line+1, table, column, edited)
				before := s.state(line + 1)
				s.rewrites(a, "edited(applied edited applied)")
				require.Equal(s, before, s.state(line+1), "%s in %s.%s", name, table, column)
				s.holds(a, line, line+2)
			}
		}
	}
	s.h.AddLines(s, 1000)
	for _, c := range []struct {
		table  invoice.Table
		column string
		v      invoice.Value
	}{
		{invoice.Detail, "MFR_CNFDC_SCR", invoice.Of("0.0001")},
		{invoice.Detail, "DATA_VRFN_IND", invoice.Null()},
		{invoice.Detail, "PRNT_IVCE_DTL_ID", invoice.Of("7")},
		{invoice.Tracking, "PRT_NUM_CNFDC_SCR", invoice.Null()},
		{invoice.Tracking, "PRCS_STRT_TS", invoice.Of("2025-12-17T16:30:15.999999Z")},
		{invoice.Tracking, "DUP_IND", invoice.Of("Y")},
	} {
		a := doc("a", 10, 5, "x", 1000)
		a.Overwrite = []int64{1000}
		s.givesIn(commit.Rewrite, []string{"applied(applied)"}, a)
		s.change(1000, c.table, c.column, c.v)
		a.Overwrite = nil
		before := s.state(1000)
		s.rewrites(a, "edited(edited)")
		require.Equal(s, before, s.state(1000), "%s.%s", c.table, c.column)
	}
}

func rewriteTakenBack(s *sinkTest) {
	s.h.AddLines(s, 1)
	a := doc("a", 10, 5, "x", 1)
	s.gives(a, "applied(applied)")
	written := s.h.Row(s, 1)
	s.edit(1)
	s.rewrites(a, "edited(edited)")
	s.h.SetRow(s, 1, written)
	s.rewrites(a, "applied(applied)")
	s.holds(a)
}

func rewriteTrackingGone(s *sinkTest) {
	s.h.AddLines(s, 1, 2)
	a := doc("a", 10, 5, "x", 1, 2)
	s.gives(a, "applied(applied applied)")
	s.setStatus(1, "BY HAND")
	s.h.SetRow(s, 1, withoutTracking(s.h.Row(s, 1)))
	s.rewrites(a, "applied(applied applied)")
	s.holds(a, 2)
	kept := mapping.InUse().RowValues(a.Values, a.Main, 1)
	kept[place(invoice.Detail, statusColumn)] = invoice.Of("BY HAND")
	require.Equal(s, SinkRow{Detail: true, Tracking: true, Values: kept}, s.h.Row(s, 1),
		"the new row has no status to keep")
	s.h.SetRow(s, 1, withoutTracking(s.h.Row(s, 1)))
	a.Overwrite = []int64{1}
	s.rewrites(a, "applied(applied applied)")
	s.holds(a)
	s.h.SetRow(s, 1, withoutTracking(s.h.Row(s, 1)))
	b := doc("a", 10, 6, "y", 1, 2)
	s.rewrites(b, "applied(applied applied)")
	s.holds(b)
}

func rewriteTrackingGoneAndEdit(s *sinkTest) {
	s.h.AddLines(s, 1, 2, 3)
	a := doc("a", 10, 5, "x", 1, 2, 3)
	s.gives(a, "applied(applied applied applied)")
	s.h.SetRow(s, 1, withoutTracking(s.h.Row(s, 1)))
	s.edit(1)
	emptied := s.h.Row(s, 2) // a tracking row without values is there, so it was edited
	emptied.Values = slices.Clone(emptied.Values)
	for i, c := range mapping.InUse().Columns() {
		if c.Table == invoice.Tracking {
			emptied.Values[i] = invoice.Null()
		}
	}
	s.h.SetRow(s, 2, emptied)
	before := s.state(1, 2)
	s.rewrites(a, "edited(edited edited applied)")
	require.Equal(s, before, s.state(1, 2))
}

func rewriteNewerOverEdit(s *sinkTest) {
	s.h.AddLines(s, 1, 2)
	a, later, b := doc("a", 10, 5, "x", 1, 2), doc("a", 10, 6, "y", 1, 2), doc("b", 11, 1, "z", 1, 2)
	s.gives(a, "applied(applied applied)")
	s.edit(1)
	before := s.state(1)
	s.rewrites(later, "edited(edited applied)")
	s.rewrites(b, "edited(edited applied)")
	require.Equal(s, before, s.state(1))
	s.holds(b, 2)
	s.gives(b, "applied(applied unchanged)")
	s.holds(b)
}

func rewriteKeepsStatus(s *sinkTest) {
	s.h.AddLines(s, 1, 2)
	a := doc("a", 10, 5, "x", 1, 2)
	s.gives(a, "applied(applied applied)")
	for _, line := range []int64{2, 1} { // on the duplicate only, then on both
		s.setStatus(line, "BY HAND")
		s.rewrites(a, "applied(applied applied)")
		s.hasStatus(a, line, "BY HAND")
	}
	a.SourceTS = 6
	s.rewrites(a, "applied(applied applied)")
	s.hasStatus(a, 1, "BY HAND")
	a.Overwrite = []int64{1}
	s.rewrites(a, "applied(applied applied)")
	s.holds(a, 1)
	s.hasStatus(a, 2, "BY HAND")
}

func rewriteNewerStatus(s *sinkTest) {
	s.h.AddLines(s, 1)
	for n, it := range []commit.Item{doc("a", 10, 5, "x", 1), doc("a", 10, 6, "y", 1), doc("b", 11, 5, "y", 1)} {
		s.rewrites(it, "applied(applied)")
		s.holds(it)
		if n < 2 {
			s.setStatus(1, "BY HAND")
		}
	}
}

func rewriteStatusAndEdit(s *sinkTest) {
	s.h.AddLines(s, 1)
	a := doc("a", 10, 5, "x", 1)
	s.gives(a, "applied(applied)")
	s.setStatus(1, "BY HAND")
	s.edit(1)
	before := s.state(1)
	s.rewrites(a, "edited(edited)")
	require.Equal(s, before, s.state(1))
}

func rewriteNamed(s *sinkTest) {
	s.h.AddLines(s, 1, 2, 3)
	a := doc("a", 10, 5, "x", 1, 2, 3)
	s.gives(a, "applied(applied applied applied)")
	for _, line := range []int64{1, 2} {
		s.edit(line)
		s.setStatus(line, "BY HAND")
	}
	before := s.state(1)
	a.Overwrite = []int64{2, 99}
	s.rewrites(a, "edited(edited applied applied)")
	require.Equal(s, before, s.state(1))
	s.holds(a, 2, 3)
}

// allowed requires that an item's one line is left alone as not comparable, until that or the line's name allows it.
func (s *sinkTest) allowed(it commit.Item) {
	s.Helper()
	before := s.state(it.Main)
	s.rewrites(it, "not_comparable(not_comparable)")
	require.Equal(s, before, s.state(it.Main))
	it.NotComparable = true
	s.rewrites(it, "applied(applied)")
	it.NotComparable = false
	s.rewrites(it, "applied(applied)")
}

func rewriteAdopted(s *sinkTest) {
	a, b := doc("a", 10, 5, "x", 1), doc("b", 10, 5, "x", 2)
	s.adopt(a)
	s.adopt(b)
	old := mapping.InUse().RowValues(contentValues("old"), 1, 1)
	s.h.SetRow(s, 1, SinkRow{Detail: true, Tracking: true, Values: old})
	s.setStatus(1, "BY HAND")
	s.allowed(a)
	s.hasStatus(a, 1, "BY HAND")
	b.Overwrite = []int64{2}
	s.rewrites(b, "applied(applied)")
	s.holds(b)
}

func rewriteMarked(s *sinkTest) {
	s.h.AddLines(s, 1)
	a := doc("a", 10, 5, "x", 1)
	s.gives(mark(a), "applied(applied)")
	s.allowed(a)
	s.holds(a)
}

func rewriteOtherVersion(s *sinkTest) {
	s.h.AddLines(s, 1)
	a := doc("a", 10, 5, "x", 1)
	s.gives(otherRecipe(a), "applied(applied)")
	s.setStatus(1, "BY HAND")
	s.allowed(a)
	s.hasStatus(a, 1, "BY HAND")
}

const addedColumn = "WEB_SRCH_URL"

// added is a column that an earlier mapping lacks, and that mapping.
func added() (place int, earlier *invoice.Mapping) {
	place = mapping.Place(invoice.Detail, addedColumn)
	return place, mapping.Without(invoice.Detail, mapping.InUse().Columns()[place].Name)
}

// under is an item as a build of another mapping sends it.
func under(m *invoice.Mapping, it commit.Item) commit.Item {
	values := it.Values
	it.Values, it.HashVersion = nil, m.Version()
	for i, c := range mapping.InUse().Columns() {
		has := func(o invoice.Column) bool { return o.Table == c.Table && o.Name == c.Name }
		if slices.ContainsFunc(m.Columns(), has) {
			it.Values = append(it.Values, values[i])
		}
	}
	it.Hash = invoice.Key(fmt.Sprint(it.Hash, m.Version()))
	return it
}

// writtenUnder writes an item by another mapping.
func (s *sinkTest) writtenUnder(m *invoice.Mapping, it commit.Item) {
	s.Helper()
	out, err := s.h.Under(s, m).Apply(s.Context(), []commit.Item{under(m, it)}, commit.Write, unknown(sysName))
	require.NoError(s, err)
	require.Equal(s, invoice.OutcomeApplied, out[0].Verdict)
}

// The document's other lines are filled beside an edited one.
func rewriteFills(s *sinkTest) {
	place, earlier := added()
	s.h.AddLines(s, 1, 2, 3, 4)
	for _, a := range []commit.Item{doc("a", 10, 5, "x", 1, 2, 3), doc("b", 10, 5, "y", 4)} {
		s.writtenUnder(earlier, a)
		require.True(s, s.h.Row(s, a.Main).Values[place].Null)
		s.gives(a, "unchanged(unchanged"+strings.Repeat(" unchanged", len(a.Duplicates))+")")
	}
	edited := s.edit(2)
	s.setStatus(3, "BY HAND")
	require.Equal(s, reconcile.RowsReviewed, s.line(3).Rows)
	s.are(reconcile.RowsEdited, 2)
	s.are(reconcile.RowsSame, 1, 4)
	before := s.state(2)
	for _, told := range []bool{false, true} {
		a := doc("a", 10, 5, "x", 1, 2, 3)
		a.NotComparable = told
		s.rewrites(a, "edited(applied edited applied)")
		s.holds(a, 1)
		s.hasStatus(a, 3, "BY HAND")
		require.Equal(s, before, s.state(2))
	}
	require.Equal(s, edited, s.h.Row(s, 2))
	b := doc("b", 10, 5, "y", 4)
	s.rewrites(b, "applied(applied)")
	s.holds(b)
	a := doc("a", 10, 5, "x", 1, 2, 3)
	a.Overwrite = []int64{2}
	s.rewrites(a, "applied(applied applied applied)")
	s.holds(a, 2)
}

// The record of a commit makes a later snapshot of the same content. Other content brings its own status.
func rewriteKeepsStatusOfEarlier(s *sinkTest) {
	_, earlier := added()
	recipe, _ := earlier.Recipe(earlier.Version(), nil)
	s.h.AddLines(s, 1, 2, 3)
	for _, it := range []commit.Item{doc("a", 10, 5, "x", 1, 2), doc("b", 10, 5, "x", 3)} {
		it = under(earlier, it)
		it.Hash, _ = recipe.ContentHash(invoice.Document{Main: it.Main, Duplicates: it.Duplicates, Values: it.Values})
		_, err := s.h.Under(s, earlier).Apply(s.Context(), []commit.Item{it}, commit.Write, unknown(sysName))
		require.NoError(s, err)
	}
	s.setStatus(2, "BY HAND")
	s.setStatus(3, "BY HAND")
	a, b := doc("a", 10, 9, "x", 1, 2), doc("b", 10, 9, "y", 3)
	s.rewrites(a, "applied(applied applied)")
	s.holds(a, 1)
	s.hasStatus(a, 2, "BY HAND")
	s.rewrites(b, "applied(applied)")
	s.holds(b)
}

func rewriteForeignValue(s *sinkTest) {
	place, earlier := added()
	s.h.AddLines(s, 1, 2, 3, 4)
	a := doc("a", 10, 5, "x", 1, 2, 3)
	without := doc("b", 10, 5, "y", 4)
	for i := range without.Values {
		if firstOf(i) == firstOf(place) {
			without.Values[i] = invoice.Null()
		}
	}
	s.writtenUnder(earlier, a)
	s.writtenUnder(earlier, without)
	s.change(1, invoice.Detail, addedColumn, a.Values[place])
	for _, line := range []int64{2, 4} {
		s.change(line, invoice.Detail, addedColumn, invoice.Of("somebody's"))
	}
	s.are(reconcile.RowsSame, 1, 2, 3, 4)
	before := s.state(2, 4)
	s.rewrites(a, "not_comparable(applied not_comparable applied)")
	s.rewrites(without, "not_comparable(not_comparable)")
	require.Equal(s, before, s.state(2, 4))
	s.holds(a, 1, 3)
	a.NotComparable, without.NotComparable = true, true
	s.rewrites(a, "applied(applied applied applied)")
	s.rewrites(without, "applied(applied)")
	s.holds(a)
	s.holds(without)
}

// The mapping is taken back: nobody can tell what the column had that it lacks. So it is where one was renamed.
func rewriteOtherMapping(s *sinkTest) {
	place, earlier := added()
	s.h.AddLines(s, 1, 2)
	a := doc("a", 10, 5, "x", 1)
	s.gives(a, "applied(applied)")
	then, sink := under(earlier, a), s.h.Under(s, earlier)
	gives := func(want invoice.Outcome) {
		out, err := sink.Apply(s.Context(), []commit.Item{then}, commit.Rewrite, unknown(sysName))
		require.NoError(s, err)
		require.Equal(s, want, out[0].Verdict)
	}
	before := s.state(1)
	gives(invoice.OutcomeNotComparable)
	require.Equal(s, before, s.state(1))
	then.NotComparable = true
	gives(invoice.OutcomeApplied)
	require.Equal(s, a.Values[place], s.h.Row(s, 1).Values[place], "it is no column of that mapping")
	s.are(reconcile.RowsSame, 1)

	c := mapping.InUse().Columns()[place]
	other := mapping.Changed(func(tables map[invoice.Table]*mapping.Table) {
		tables[c.Table].Column(c.Name)["from"] = "process_output.another"
	})
	b := doc("b", 10, 5, "y", 2)
	s.writtenUnder(other, b)
	s.are(reconcile.RowsUnknown, 2)
	s.allowed(b)
	s.holds(b)
}

func rewriteWithoutHashes(s *sinkTest) {
	s.h.AddLines(s, 1)
	a := doc("a", 10, 5, "x", 1)
	s.gives(a, "applied(applied)")
	l := ledgerOf(a, 1)
	l.DetailHash, l.TrackingHash = "", ""
	s.h.SetLedger(s, 1, l)
	s.allowed(a)
	s.holds(a)
}

func rewriteNotComparableAndEdited(s *sinkTest) {
	s.h.AddLines(s, 1, 2, 3)
	a := doc("a", 10, 5, "x", 1, 2, 3)
	s.gives(a, "applied(applied applied applied)")
	s.edit(2)
	l := ledgerOf(a, 3)
	l.Outcome, l.DetailHash, l.TrackingHash = "adopted", "", ""
	s.h.SetLedger(s, 3, l)
	s.rewrites(a, "edited(applied edited not_comparable)")
	a.Overwrite = []int64{2}
	s.rewrites(a, "not_comparable(applied applied not_comparable)")
	s.edit(2)
	a.Overwrite, a.NotComparable = nil, true
	s.rewrites(a, "edited(applied edited applied)")
}

func rewriteWithoutLedger(s *sinkTest) {
	s.h.AddLines(s, 1, 2)
	s.edit(1)
	s.h.SetRow(s, 2, SinkRow{Detail: true, Tracking: true, Values: contentValues("somebody else's")})
	a := doc("a", 10, 5, "x", 1, 2)
	s.rewrites(a, "applied(applied applied)")
	s.holds(a)
}

func rewriteEditedSuperseded(s *sinkTest) {
	s.h.AddLines(s, 1, 2)
	a, b := doc("a", 10, 5, "x", 1, 2), doc("b", 11, 5, "y", 1)
	s.gives(a, "applied(applied applied)")
	s.gives(b, "applied(applied)")
	s.edit(1)
	before := s.state(1)
	a.Overwrite, a.NotComparable = []int64{1}, true
	o := s.givesIn(commit.Rewrite, []string{"applied(superseded applied)"}, a)[0]
	require.Equal(s, "b", o.SupersededBy)
	s.edit(2)
	a.Overwrite = nil
	o = s.givesIn(commit.Rewrite, []string{"edited(superseded edited)"}, a)[0]
	require.Equal(s, "b", o.SupersededBy)
	require.Equal(s, before, s.state(1))
}

func rewriteEditedMissing(s *sinkTest) {
	s.h.AddLines(s, 1, 2)
	s.gives(doc("a", 10, 5, "x", 1, 2), "applied(applied applied)")
	s.edit(1)
	before := s.state(1, 2)
	s.rewrites(doc("a", 10, 6, "x", 1, 2, 3), "missing(- - missing)")
	require.Equal(s, before, s.state(1, 2))
}

func rewriteTwoOnOneLine(s *sinkTest) {
	s.h.AddLines(s, 1, 2)
	s.gives(doc("old", 9, 5, "w", 1), "applied(applied)")
	s.edit(1)
	before := s.state(1)
	a, b := doc("a", 10, 5, "x", 1), doc("b", 11, 5, "y", 1, 2)
	s.givesIn(commit.Rewrite, []string{"edited(edited)", "edited(edited applied)"}, a, b)
	require.Equal(s, before, s.state(1))
	a.Overwrite = []int64{1}
	s.givesIn(commit.Rewrite, []string{"edited(edited applied)", "applied(applied)"}, b, a)
	s.holds(a)
	s.holds(b, 2)
}

func rewriteMark(s *sinkTest) {
	s.h.AddLines(s, 1)
	s.gives(doc("a", 10, 5, "x", 1), "applied(applied)")
	edited := s.edit(1)
	b := doc("b", 11, 5, "y", 1)
	s.rewrites(mark(b), "applied(applied)")
	s.marked(b, edited, 1)
}

func rewritePreview(s *sinkTest) {
	s.h.AddLines(s, 1)
	a, b := doc("a", 10, 5, "x", 1), doc("b", 11, 5, "y", 1)
	s.gives(a, "applied(applied)")
	s.edit(1)
	s.givesIn(commit.Preview, []string{"unchanged(unchanged)"}, a)
	s.givesIn(commit.Preview, []string{"applied(applied)"}, b)
}

func ledgerNamesEnvironment(s *sinkTest) {
	s.h.AddLines(s, 1, 2)
	a, b := doc("a", 10, 5, "x", 1, 2), doc("b", 11, 5, "y", 1)
	s.gives(a, "applied(applied applied)")
	for _, it := range []commit.Item{b, a} {
		_, err := s.h.Sink.Apply(s.Context(), []commit.Item{it}, commit.Write, unknown(otherSys))
		require.NoError(s, err)
	}
	for line, want := range map[int64]string{1: otherSys, 2: sysName} {
		l, _ := s.h.Ledger(s, line)
		require.Equal(s, want, l.SysName, "line %d", line)
	}
}

func rewriteEditBetween(s *sinkTest) {
	s.h.AddLines(s, 1, 2)
	a := doc("a", 10, 5, "x", 1, 2)
	for _, table := range []invoice.Table{invoice.Detail, invoice.Tracking} {
		for name, edit := range edits() {
			a = replaced(a, place(table, "AI_STG_NM"), "lower case ")
			a.Overwrite = linesOf(a)
			s.rewrites(a, "applied(applied applied)")
			a.Overwrite = nil
			var edited map[int64]lineState
			s.h.BetweenReadAndWrite(s, func() {
				s.change(2, table, "AI_STG_NM", edit(s.h.Row(s, 2).Values[place(table, "AI_STG_NM")]))
				edited = s.state(1, 2)
			})
			err := s.failure(fault.Contention, commit.Rewrite, a)
			require.Equal(s, "edited_meanwhile", fault.CodeOf(err), "%s in %s: %v", name, table, err)
			require.False(s, fault.Has(err, fault.OwnWhenAlone), "an edit is never the document's fault")
			require.Equal(s, edited, s.state(1, 2), "%s in %s", name, table)
			s.rewrites(a, "edited(applied edited)")
			require.Equal(s, edited[2], s.state(2)[2])
		}
	}
}

func rewriteStatusBetween(s *sinkTest) {
	s.h.AddLines(s, 1)
	a := doc("a", 10, 5, "x", 1)
	s.gives(a, "applied(applied)")
	s.h.BetweenReadAndWrite(s, func() { s.setStatus(1, "BY HAND") })
	s.fails(fault.Contention, commit.Rewrite, a)
	s.rewrites(a, "applied(applied)")
	s.hasStatus(a, 1, "BY HAND")
}

func rewriteTrackingBetween(s *sinkTest) {
	s.h.AddLines(s, 1)
	there := SinkRow{Detail: true, Tracking: true, Values: contentValues("somebody else's")}
	a := doc("a", 10, 5, "x", 1)
	s.h.BetweenReadAndWrite(s, func() { s.h.SetRow(s, 1, there) })
	s.fails(fault.Contention, commit.Rewrite, a)
	require.Equal(s, there, s.h.Row(s, 1))
	s.rewrites(a, "applied(applied)")
	s.holds(a)
}

func rewriteLostTrackingBetween(s *sinkTest) {
	s.h.AddLines(s, 1)
	a := doc("a", 10, 5, "x", 1)
	s.gives(a, "applied(applied)")
	there := s.h.Row(s, 1)
	there.Values = slices.Clone(there.Values)
	there.Values[place(invoice.Tracking, "CLN_MFR_AI_NM")] = invoice.Of("somebody's")
	s.h.SetRow(s, 1, withoutTracking(there))
	s.h.BetweenReadAndWrite(s, func() { s.h.SetRow(s, 1, there) })
	s.fails(fault.Contention, commit.Rewrite, a)
	require.Equal(s, there, s.h.Row(s, 1))
	s.rewrites(a, "edited(edited)")
}

func rewriteOddColumns(s *sinkTest) {
	edits := s.h.OddColumns(s)
	s.h.AddLines(s, 1, 2)
	a := doc("a", 10, 5, "x", 1, 2)
	for n, stamp := range []string{
		"2025-12-17T16:30:15.123456Z", "2025-12-17T23:59:59.999999Z", "2025-12-17T16:30:15.005000Z",
		"2025-12-17T16:30:15.000000Z",
	} {
		for i, c := range mapping.InUse().Columns() {
			switch {
			case c.Kind == invoice.Time:
				a.Values[i] = formed(c, invoice.Of(stamp))
			case c.Kind == invoice.Text && free(c) && n%2 == 1:
				a.Values[i] = invoice.Of("blank ")
			}
		}
		a.SourceTS, a.Hash = int64(6+n), invoice.Key(stamp)
		s.gives(a, "applied(applied applied)")
		s.rewrites(a, "applied(applied applied)")
	}
	require.NotEmpty(s, edits)
	for _, edit := range edits {
		edit(2)
		s.rewrites(a, "edited(applied edited)")
		a.Overwrite = []int64{2}
		s.rewrites(a, "applied(applied applied)")
		a.Overwrite = nil
	}
}
