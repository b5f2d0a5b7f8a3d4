package conformance

import (
	"slices"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/reconcile"
	"sqlwriter/test/mapping"
)

// keepCases: a column that keeps its value gets one where the document has one, and nobody compares it.
func keepCases() []sinkCase {
	return []sinkCase{
		{"a kept column stays where the document has no value, in both tables", nil, keepStays},
		{"a kept column is of the line's newest document", nil, keepNewest},
		{"an edit of a kept column is none, and a rewrite overwrites it with a value alone", nil, keepEdited},
		{"a mark leaves a kept column alone", nil, keepMark},
	}
}

const keptColumn = "CLN_MFR_PRT_NUM"

// keeping is a store of the mapping in use with one column of each table that keeps its value.
type keeping struct {
	*sinkTest
	mapping *invoice.Mapping
	sink    Store
	// places are those of the kept columns.
	places []int
}

func keepsColumns(s *sinkTest) keeping {
	s.Helper()
	k := keeping{sinkTest: s}
	for _, table := range []invoice.Table{invoice.Detail, invoice.Tracking} {
		k.places = append(k.places, place(table, keptColumn))
	}
	k.mapping = mapping.Changed(func(tables map[invoice.Table]*mapping.Table) {
		for _, place := range k.places {
			c := mapping.InUse().Columns()[place]
			tables[c.Table].Column(c.Name)["missing"] = "keep"
		}
	})
	k.sink = s.h.Under(s, k.mapping)
	return k
}

// with is an item with a value for the kept columns.
func (k keeping) with(it commit.Item, v invoice.Value) commit.Item {
	it.Values = slices.Clone(it.Values)
	for _, place := range k.places {
		it.Values[place] = v
	}
	return it
}

func (k keeping) gives(mode commit.Mode, want string, items ...commit.Item) []commit.DocumentOutcome {
	k.Helper()
	var sent []commit.Item
	for _, it := range items {
		sent = append(sent, under(k.mapping, it))
	}
	out, err := k.sink.Apply(k.Context(), sent, mode, unknown(sysName))
	require.NoError(k, err)
	require.Equal(k, want, inShort(out[len(out)-1]))
	return out
}

// holds requires a line's content, with other values in the kept columns.
func (k keeping) holds(it commit.Item, line int64, detail, tracking invoice.Value) {
	k.Helper()
	values := mapping.InUse().RowValues(it.Values, it.Main, line)
	values[k.places[0]], values[k.places[1]] = detail, tracking
	require.Equal(k, SinkRow{Detail: true, Tracking: true, Values: values}, k.h.Row(k, line), "line %d", line)
	lines, err := k.sink.ReconcileRows(sysName, 0).Lines(k.Context(), []int64{line})
	require.NoError(k, err)
	require.Equal(k, reconcile.RowsSame, lines[0].Rows)
}

func keepStays(s *sinkTest) {
	k := keepsColumns(s)
	s.h.AddLines(s, 1, 2, 3)
	theirs, null := contentValues("theirs"), invoice.Null()
	was := theirs[k.places[0]]
	s.h.SetRow(s, 1, SinkRow{Detail: true, Tracking: true, Values: theirs})
	s.h.SetRow(s, 2, withoutTracking(SinkRow{Detail: true, Values: theirs}))
	a := k.with(doc("a", 10, 5, "x", 1, 2, 3), null)
	before := s.state(1, 2, 3)
	out := k.gives(commit.Preview, "applied(applied applied applied)", a)
	require.Equal(s, before, s.state(1, 2, 3))
	for i, want := range []invoice.Value{was, was, null} {
		require.Equal(s, want, out[0].Rows[i].After[k.places[0]])
		require.Equal(s, want, out[0].Rows[i].Want[k.places[0]])
	}
	k.gives(commit.Write, "applied(applied applied applied)", a)
	k.holds(a, 1, was, was)
	k.holds(a, 2, was, null) // the tracking row is new
	k.holds(a, 3, null, null)
	k.gives(commit.Write, "unchanged(unchanged unchanged unchanged)", a)
	for i, v := range []invoice.Value{invoice.Of("a value"), invoice.Of("")} {
		b := k.with(doc("a", 10, int64(6+i), "y", 1, 2, 3), v)
		b.Hash += v.Text
		k.gives(commit.Write, "applied(applied applied applied)", b)
		for _, line := range linesOf(b) {
			k.holds(b, line, v, v)
		}
	}
}

// The row depends on the order in which the documents come: an older one fills nothing in.
func keepNewest(s *sinkTest) {
	k := keepsColumns(s)
	s.h.AddLines(s, 1, 2)
	null, v := invoice.Null(), invoice.Of("of the older one")
	older, newer := k.with(doc("a", 10, 5, "x", 1), v), k.with(doc("b", 11, 5, "y", 1), null)
	k.gives(commit.Write, "applied(applied)", newer)
	k.gives(commit.Write, "superseded(superseded)", older)
	k.holds(newer, 1, null, null)
	older, newer = k.with(doc("c", 10, 5, "x", 2), v), k.with(doc("d", 11, 5, "y", 2), null)
	k.gives(commit.Write, "applied(applied)", older, newer)
	k.holds(newer, 2, null, null)
}

func keepEdited(s *sinkTest) {
	k := keepsColumns(s)
	s.h.AddLines(s, 1, 2)
	a := k.with(doc("a", 10, 5, "x", 1), invoice.Null())
	b := k.with(doc("b", 10, 5, "x", 2), invoice.Of("ours"))
	theirs := invoice.Of("theirs")
	for _, it := range []commit.Item{a, b} {
		k.gives(commit.Write, "applied(applied)", it)
		for _, table := range []invoice.Table{invoice.Detail, invoice.Tracking} {
			s.change(it.Main, table, keptColumn, theirs)
		}
		k.holds(it, it.Main, theirs, theirs)
		k.gives(commit.Rewrite, "applied(applied)", it)
	}
	k.holds(a, 1, theirs, theirs)
	k.holds(b, 2, invoice.Of("ours"), invoice.Of("ours"))
}

func keepMark(s *sinkTest) {
	k := keepsColumns(s)
	s.h.AddLines(s, 1)
	theirs := contentValues("theirs")
	s.h.SetRow(s, 1, SinkRow{Detail: true, Tracking: true, Values: theirs})
	before := s.h.Row(s, 1)
	failed := under(k.mapping, doc("a", 10, 5, "x", 1))
	failed.FailureMark, failed.Values = true, k.mapping.MarkValues()
	_, err := k.sink.Apply(s.Context(), []commit.Item{failed}, commit.Write, unknown(sysName))
	require.NoError(s, err)
	require.Equal(s, withStatus(before), s.h.Row(s, 1))
}
