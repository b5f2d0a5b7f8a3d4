package conformance

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/test/mapping"
)

// widthCases: values that validation would have refused, and columns narrower than the column table says. What does not
// fit is refused, by the database with its whole request or by the sink alone, or kept to the last digit where the
// user's column happens to hold it; it is never cut, rounded or made NULL, which is what OPENJSON's typed columns do in
// silence.
func widthCases() []sinkCase {
	return []sinkCase{
		{"a text one character too long is refused, and nothing is cut", nil, tooWide},
		{"a text of more than 4,000 or 8,000 characters is refused, and does not become NULL", nil, muchTooWide},
		{"characters of 4 bytes, half a character too long, are refused or kept", nil, tooWideInUnits},
		{"a status or a flag one character too long is refused", nil, tooWideStatus},
		{"a decimal with more digits behind the point is refused or kept, never rounded", nil, numbers(digitsBehind)},
		{"a decimal with more digits before the point is refused or kept", nil, numbers(digitsBefore)},
		{"a decimal of 38 and more digits is refused or kept", nil, numbers(digitsTooMany)},
		{"what is no number is refused or kept, and does not become NULL or 0", nil, numbers(noNumbers)},
		{
			"one value that does not fit, last of 100 documents, leaves nothing of its request, or of itself", nil,
			tooWideLast,
		},
		{
			"a column that is narrowed refuses what does not fit, and takes it as soon as it is wide again",
			[]string{"Narrow"},
			narrowed,
		},
	}
}

// replaced is an item with another text in one column of the column table, and in those that take the same value.
func replaced(it commit.Item, column int, text string) commit.Item {
	it.Values = slices.Clone(it.Values)
	for i := range it.Values {
		if firstOf(i) == firstOf(column) {
			it.Values[i] = invoice.Of(text)
		}
	}
	return it
}

// width is the most characters of a value: those of the narrowest column that takes it.
func width(c invoice.Column) int {
	for _, o := range mapping.InUse().Columns() {
		if o.SameValue(c) {
			c.Max = min(c.Max, o.Max)
		}
	}
	return c.Max
}

// written lists the columns of a kind that a document fills, by their place in the column table.
func written(pick func(invoice.Column) bool) []int {
	var places []int
	for i, c := range mapping.InUse().Columns() {
		if c.Source == invoice.FromDocument && pick(c) {
			places = append(places, i)
		}
	}
	return places
}

// refuses requires that an item is refused as a document's error, and that its lines are as they were.
func (s *sinkTest) refuses(it commit.Item, about string) {
	s.Helper()
	before := s.state(linesOf(it)...)
	_, err := s.alone(it)
	require.Equal(s, fault.Document, fault.KindOf(err), "%s: %v", about, err)
	require.Equal(s, before, s.state(linesOf(it)...), about)
}

// alone makes a request of one item. The error is the request's or the item's own.
func (s *sinkTest) alone(it commit.Item) (commit.DocumentOutcome, error) {
	s.Helper()
	out, err := s.h.Sink.Apply(s.Context(), []commit.Item{it}, commit.Write, unknown(sysName))
	if err != nil {
		require.Nil(s, out, "no outcomes with an error")
		return commit.DocumentOutcome{}, err
	}
	require.Len(s, out, 1)
	s.refusedByItself(it, out[0])
	return out[0], out[0].Refused
}

// refusedByItself requires that an outcome says nothing but that the sink refused the item, if it says so.
func (s *sinkTest) refusedByItself(it commit.Item, o commit.DocumentOutcome) (refused bool) {
	s.Helper()
	if o.Refused == nil {
		return false
	}
	require.Equal(s, commit.DocumentOutcome{DocumentID: it.DocumentID, Refused: o.Refused}, o)
	require.Equal(s, fault.Document, fault.KindOf(o.Refused))
	require.ErrorContains(s, o.Refused, it.DocumentID, "it names the document")
	return true
}

// refusesOrKeeps requires that an item is refused, as refuses does, or stands there as it was sent.
func (s *sinkTest) refusesOrKeeps(it commit.Item, about string) {
	s.Helper()
	before := s.state(linesOf(it)...)
	out, err := s.alone(it)
	if err != nil {
		require.Equal(s, fault.Document, fault.KindOf(err), "%s: %v", about, err)
		require.Equal(s, before, s.state(linesOf(it)...), about)
		return
	}
	require.Equal(s, invoice.OutcomeApplied, out.Verdict, about)
	for _, line := range linesOf(it) {
		require.Equal(s, mapping.InUse().RowValues(it.Values, it.Main, line), s.h.Row(s, line).Values, about)
	}
}

func tooWide(s *sinkTest) {
	s.h.AddLines(s, 1, 2)
	for _, i := range written(free) {
		c := mapping.InUse().Columns()[i]
		s.refuses(replaced(doc("a", 10, 5, "x", 1, 2), i, strings.Repeat("x", c.Max+1)), c.Name)
	}
}

func muchTooWide(s *sinkTest) {
	s.h.AddLines(s, 1)
	for _, i := range written(free) {
		c := mapping.InUse().Columns()[i]
		for _, length := range []int{4001, 8001, 100_001} {
			if length <= c.Max {
				continue // a column that wide is filled to its end by another case
			}
			s.refuses(replaced(doc("a", 10, 5, "x", 1), i, strings.Repeat("x", length)),
				fmt.Sprint(c.Name, " ", length))
		}
	}
}

func tooWideInUnits(s *sinkTest) {
	s.h.AddLines(s, 1, 2)
	for n, i := range written(free) {
		c := mapping.InUse().Columns()[i]
		text := strings.Repeat("x", (c.Max+1)%2) + strings.Repeat("😀", (c.Max+1)/2) // Max+1 UTF-16 units
		s.refusesOrKeeps(replaced(doc("a", int64(10+n), 5, "x", 1, 2), i, text), c.Name)
	}
}

func tooWideStatus(s *sinkTest) {
	s.h.AddLines(s, 1)
	for _, i := range written(func(c invoice.Column) bool { return c.Max > 0 && !free(c) }) {
		c := mapping.InUse().Columns()[i]
		s.refuses(replaced(doc("a", 10, 5, "x", 1), i, strings.Repeat("Y", c.Max+1)), c.Name)
	}
}

// numbers is a case: texts for each decimal column, drawn from its precision and scale.
func numbers(texts func(invoice.Column) []string) func(*sinkTest) {
	return func(s *sinkTest) {
		s.h.AddLines(s, 1, 2)
		version := int64(10)
		for _, i := range written(func(c invoice.Column) bool { return c.Kind == invoice.Decimal }) {
			c := mapping.InUse().Columns()[i]
			for _, text := range texts(c) {
				version++
				s.refusesOrKeeps(replaced(doc("a", version, 5, "x", 1, 2), i, text), c.Name+" "+text)
			}
		}
	}
}

func digitsBehind(c invoice.Column) []string {
	zeros := strings.Repeat("0", c.Scale)
	return []string{
		"0." + zeros + "4", "0." + zeros + "5", "0." + zeros + "0000000000000000000001",
		"0." + strings.Repeat("9", c.Scale+1),
	}
}

func digitsBefore(c invoice.Column) []string {
	whole, part := "1"+strings.Repeat("0", c.Precision-c.Scale), strings.Repeat("0", c.Scale)
	return []string{whole + "." + part, "-" + whole + "." + part, whole + "000000000." + part}
}

func digitsTooMany(c invoice.Column) []string {
	return []string{
		strings.Repeat("9", 38), strings.Repeat("9", 39), "0." + strings.Repeat("3", 38),
		"0." + strings.Repeat("3", 60),
	}
}

func noNumbers(invoice.Column) []string { return []string{"", " ", "abc", "1,5", "NaN", "0x1"} }

func tooWideLast(s *sinkTest) {
	const n = 100
	s.h.AddLines(s, span(1, n)...)
	before := s.state(span(1, n)...)
	items := make([]commit.Item, n)
	for i := range items {
		items[i] = doc(fmt.Sprint("doc", i), 10, 5, fmt.Sprint("content", i), int64(i+1))
	}
	i := written(free)[0]
	items[n-1] = replaced(items[n-1], i, strings.Repeat("x", mapping.InUse().Columns()[i].Max+1))
	out, err := s.h.Sink.Apply(s.Context(), items, commit.Write, unknown(sysName))
	if err != nil {
		require.Equal(s, fault.Document, fault.KindOf(err), "%v", err)
		require.Equal(s, before, s.state(span(1, n)...))
		out = s.apply(commit.Write, items[:n-1]...)
	} else {
		require.Len(s, out, n)
		require.True(s, s.refusedByItself(items[n-1], out[n-1]))
		require.Equal(s, before[n], s.state(n)[n])
	}
	for _, o := range out[:n-1] {
		require.Equal(s, "applied(applied)", inShort(o))
	}
}

// narrowed is about a value that validation lets pass: the user's column holds less than the column table says.
func narrowed(s *sinkTest) {
	const to = 10
	s.h.AddLines(s, 1, 2, 3)
	named := func(id string, us int64, length int, lines ...int64) commit.Item {
		return with(doc(id, us, 5, id, lines...), func(c invoice.Column) (string, bool) {
			return strings.Repeat("x", length), c.SameValue(NarrowedColumn())
		})
	}
	a, b := named("a", 10, to, 1), named("b", 10, to+1, 2, 3)
	s.gives(a, "applied(applied)")
	widen := s.h.Narrow(s, to)
	s.refuses(b, "the first one")
	s.refuses(b, "and the next")
	s.gives(a, "unchanged(unchanged)")
	s.gives(mark(b), "applied(applied applied)")
	widen()
	s.gives(b, "applied(applied applied)")
	s.holds(b)
	s.holds(a)
}
