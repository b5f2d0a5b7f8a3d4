package conformance

import (
	"fmt"
	"sync"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// schemaCases: the user's tables have rules of their own, which are the document's matter, and may lack something,
// which never is.
func schemaCases() []sinkCase {
	constrain, hide := []string{"Constrain"}, []string{"Hide"}
	return []sinkCase{
		{"the user's trigger on IVCE_DTL refuses a row", constrain, ruled(invoice.Detail, TriggerThrows)},
		{"the user's trigger on IVCE_TRKG_MSTR refuses a row", constrain, ruled(invoice.Tracking, TriggerThrows)},
		{
			"the user's trigger on IVCE_DTL rolls the transaction back", constrain,
			ruled(invoice.Detail, TriggerRollsBack),
		},
		{
			"the user's trigger on IVCE_TRKG_MSTR rolls the transaction back", constrain,
			ruled(invoice.Tracking, TriggerRollsBack),
		},
		{"the user's CHECK on IVCE_DTL refuses a row", constrain, ruled(invoice.Detail, CheckRefuses)},
		{"the user's CHECK on IVCE_TRKG_MSTR refuses a row", constrain, ruled(invoice.Tracking, CheckRefuses)},
		{"the user's foreign key on IVCE_DTL refuses a row", constrain, ruled(invoice.Detail, ForeignKey)},
		{"the user's foreign key on IVCE_TRKG_MSTR refuses a row", constrain, ruled(invoice.Tracking, ForeignKey)},
		{"a mark passes by rules about values", constrain, markPassesRules},
		{
			"a NOT NULL column of IVCE_TRKG_MSTR that we know nothing of refuses new rows only",
			constrain, unwrittenColumn,
		},
		{"a unique index of the user's is contention, and the document's own when alone", constrain, uniqueValues},
		{"a missing IVCE_DTL blames no document, and all is well when it is back", hide, missing(invoice.Detail, "")},
		{
			"a missing IVCE_TRKG_MSTR blames no document, and all is well when it is back", hide,
			missing(invoice.Tracking, ""),
		},
		{"a missing ledger blames no document, and all is well when it is back", hide, missing(LedgerTable, "")},
		{
			"a missing column of IVCE_DTL blames no document, and all is well when it is back", hide,
			missing(invoice.Detail, RuledColumn(invoice.Detail).Name),
		},
		{
			"a missing column of IVCE_TRKG_MSTR blames no document, and all is well when it is back", hide,
			missing(invoice.Tracking, RuledColumn(invoice.Tracking).Name),
		},
	}
}

// coded is an item with one code in RuledColumn of both tables.
func coded(it commit.Item, code string) commit.Item {
	return with(it, func(c invoice.Column) (string, bool) { return code, c.Name == RuledColumn(c.Table).Name })
}

// ruled is a case: a rule of the user's refuses one of three documents.
func ruled(table invoice.Table, rule Rule) func(*sinkTest) {
	return func(s *sinkTest) {
		s.h.AddLines(s, span(1, 6)...)
		old := coded(doc("old", 9, 5, "w", 3), AllowedCode)
		s.gives(old, "applied(applied)")
		s.h.Constrain(s, table, rule)
		before := s.state(span(1, 6)...)
		a, c := coded(doc("a", 10, 5, "x", 1, 2), AllowedCode), coded(doc("c", 12, 5, "z", 5, 6), AllowedCode)
		b := coded(doc("b", 11, 5, "y", 3, 4), RefusedCode)
		for _, items := range [][]commit.Item{{b}, {a, b, c}, {b, a, c}, {a, c, b}} {
			err := s.failure(fault.Document, commit.Write, items...)
			require.NotEmpty(s, fault.CodeOf(err))
			require.Equal(s, before, s.state(span(1, 6)...), "nothing of the request stays")
		}
		s.givesIn(commit.Write, []string{"applied(applied applied)", "applied(applied applied)"}, a, c)
		s.holds(a)
		s.holds(c)
		mended := coded(doc("b", 11, 6, "y", 3, 4), AllowedCode)
		s.gives(mended, "applied(applied applied)")
		s.holds(mended)
	}
}

func markPassesRules(s *sinkTest) {
	s.h.AddLines(s, 1)
	s.h.Constrain(s, invoice.Detail, CheckRefuses)
	s.h.Constrain(s, invoice.Tracking, CheckRefuses)
	b := coded(doc("b", 11, 5, "y", 1), RefusedCode)
	s.fails(fault.Document, commit.Write, b)
	before := s.h.Row(s, 1)
	s.gives(mark(b), "applied(applied)")
	s.marked(b, before, 1)
}

func unwrittenColumn(s *sinkTest) {
	s.h.AddLines(s, 1, 2)
	s.gives(doc("old", 9, 5, "w", 1), "applied(applied)")
	s.h.Constrain(s, invoice.Tracking, UnwrittenNotNull)
	a := doc("a", 10, 5, "x", 1)
	s.gives(a, "applied(applied)")
	s.holds(a)
	before := s.state(1, 2)
	b := doc("b", 11, 5, "y", 1, 2)
	s.fails(fault.Document, commit.Write, b)
	require.Equal(s, before, s.state(1, 2), "a line that could be updated is not written either")
	s.gives(mark(b), "applied(applied applied)")
}

func uniqueValues(s *sinkTest) {
	s.h.AddLines(s, 1, 2, 3)
	s.h.Constrain(s, invoice.Tracking, Unique)
	a, b := coded(doc("a", 10, 5, "x", 1), "1"), coded(doc("b", 11, 5, "y", 2), "1")
	before := s.state(1, 2)
	s.fails(fault.Contention, commit.Write, a, b)
	require.Equal(s, before, s.state(1, 2))
	s.gives(a, "applied(applied)")
	err := s.failure(fault.Contention, commit.Write, b)
	require.True(s, fault.Has(err, fault.OwnWhenAlone), "%v", err)
	_, ok := s.h.Ledger(s, 2)
	require.False(s, ok)
	s.gives(coded(doc("c", 12, 5, "z", 3), "2"), "applied(applied)")
	s.holds(a)
}

// hide takes a table or a column away until restore, which may be called again, or the end of the case.
func (s *sinkTest) hide(table invoice.Table, column string) (restore func()) {
	s.Helper()
	restore = sync.OnceFunc(s.h.Hide(s, table, column))
	s.Cleanup(restore)
	return restore
}

// missing is a case: a table, or a column of it, is not there for a while.
func missing(table invoice.Table, column string) func(*sinkTest) {
	return func(s *sinkTest) {
		s.h.AddLines(s, 1, 2, 3)
		old, a, b := doc("old", 9, 5, "w", 1), doc("a", 10, 5, "x", 1, 2), doc("b", 11, 5, "y", 3)
		s.gives(old, "applied(applied)") // the connection has seen the schema as it was
		before := s.state(1, 2, 3)
		restore := s.hide(table, column)
		for _, mode := range []commit.Mode{commit.Write, commit.Rewrite, commit.Preview} {
			out, err := s.h.Sink.Apply(s.Context(), []commit.Item{a, b}, mode, unknown(sysName))
			require.Nil(s, out, mode)
			require.Equal(s, fault.Infrastructure, fault.KindOf(err), "%s: %v", mode, err)
		}
		restore()
		require.Equal(s, before, s.state(1, 2, 3), fmt.Sprint("without ", table, " ", column, " nothing is written"))
		s.givesIn(commit.Write, []string{"applied(applied applied)", "applied(applied)"}, a, b)
		s.holds(a)
		s.holds(b)
	}
}
