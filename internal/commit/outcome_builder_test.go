package commit_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// itemWith is an item with values, or a failure mark.
func itemWith(id string, mark bool, main int64, duplicates ...int64) commit.Item {
	it := commit.Item{DocumentID: id, FailureMark: mark, Main: main, Duplicates: duplicates}
	if !mark {
		it.Values = make([]invoice.Value, len(invoice.DefaultMapping().Columns()))
		for i := range it.Values {
			it.Values[i] = invoice.Of("of " + id)
		}
	}
	return it
}

func TestCheckRequest(t *testing.T) {
	few := itemWith("few", false, 1)
	few.Values = few.Values[1:]
	for name, c := range map[string]struct {
		items []commit.Item
		mode  commit.Mode
		code  string
	}{
		"content and a mark": {
			[]commit.Item{itemWith("a", false, 1, 2), itemWith("b", true, 2, 1)}, commit.Preview, "",
		},
		"nothing":                       {nil, commit.Rewrite, ""},
		"no mode":                       {[]commit.Item{itemWith("a", false, 1)}, "", fault.CodeBug},
		"a value short":                 {[]commit.Item{itemWith("a", false, 1), few}, commit.Write, fault.CodeBug},
		"the main line a duplicate too": {[]commit.Item{itemWith("a", false, 1, 2, 1)}, commit.Write, fault.CodeBug},
		"a duplicate twice, of a mark":  {[]commit.Item{itemWith("a", true, 1, 2, 2)}, commit.Write, fault.CodeBug},
		"one line in two items, not once": {
			[]commit.Item{itemWith("a", false, 1), itemWith("b", false, 1)}, commit.Write, "",
		},
	} {
		err := commit.CheckRequest(nil, c.items, c.mode)
		if c.code == "" {
			require.NoError(t, err, name)
			continue
		}
		require.Equal(t, fault.Internal, fault.KindOf(err), name)
		require.Equal(t, c.code, fault.CodeOf(err), name)
	}
}

func TestTallyDrawsADocumentsVerdict(t *testing.T) {
	const applied, unchanged, superseded, missing = invoice.OutcomeApplied, invoice.OutcomeUnchanged,
		invoice.OutcomeSuperseded, invoice.OutcomeMissing
	for _, c := range []struct {
		mark  bool
		lines []invoice.Outcome
		want  invoice.Outcome
	}{
		{false, []invoice.Outcome{applied, unchanged, superseded}, applied},
		{false, []invoice.Outcome{superseded, unchanged, superseded}, unchanged},
		{false, []invoice.Outcome{superseded, superseded, superseded}, superseded},
		{false, []invoice.Outcome{applied, missing, applied}, missing},
		{false, []invoice.Outcome{applied, invoice.OutcomeNotComparable, invoice.OutcomeEdited}, invoice.OutcomeEdited},
		{false, []invoice.Outcome{unchanged, invoice.OutcomeNotComparable, applied}, invoice.OutcomeNotComparable},
		{false, []invoice.Outcome{invoice.OutcomeEdited, "", missing}, missing},
		{true, []invoice.Outcome{applied, missing, unchanged}, applied},
		{true, []invoice.Outcome{missing, missing, superseded}, superseded},
		{true, []invoice.Outcome{missing, missing, missing}, missing},
	} {
		builder := commit.NewOutcomeBuilder(nil, []commit.Item{itemWith("a", c.mark, 1, 2, 3)})
		for position, v := range c.lines {
			builder.Add(commit.LineVerdict{Position: position, Verdict: v})
		}
		out, err := builder.Outcomes()
		require.NoError(t, err)
		require.Equal(t, c.want, out[0].Verdict, "%v", c)
		require.Equal(t, "a", out[0].DocumentID)
		for i, row := range out[0].Rows {
			require.Equal(t, commit.RowOutcome{DetailID: int64(i + 1), Verdict: c.lines[i]}, row)
		}
	}
}

func TestTallyNamesTheNewestHolder(t *testing.T) {
	builder := commit.NewOutcomeBuilder(nil, []commit.Item{itemWith("a", false, 1, 2, 3)})
	for position, holder := range []struct {
		by string
		us int64
	}{{"older", 5}, {"newest", 9}, {"newer", 7}} {
		builder.Add(
			commit.LineVerdict{
				Position: position, Verdict: invoice.OutcomeSuperseded, By: holder.by,
				Version: invoice.Version{US: holder.us, Key: "k"},
			})
	}
	out, err := builder.Outcomes()
	require.NoError(t, err)
	require.Equal(t, "newest", out[0].SupersededBy)
	require.Equal(t, "older", out[0].Rows[0].By)
}

func TestALineWithoutAVerdictIsOurMistake(t *testing.T) {
	builder := commit.NewOutcomeBuilder(nil, []commit.Item{itemWith("a", false, 1, 2)})
	builder.Add(commit.LineVerdict{Verdict: invoice.OutcomeApplied, Winner: true})
	_, err := builder.Outcomes()
	require.Equal(t, fault.Internal, fault.KindOf(err))
	require.Equal(t, fault.CodeBug, fault.CodeOf(err))
}

// Only the applied winner is written. A preview shows that, and leaves the other lines unchanged.
func TestTallyKnowsWhatIsWritten(t *testing.T) {
	content, mark, older := itemWith("content", false, 1, 2), itemWith("mark", true, 3), itemWith("older", false, 2, 4)
	builder := commit.NewOutcomeBuilder(nil, []commit.Item{content, mark, older})
	builder.Add(commit.LineVerdict{Item: 0, Position: 0, Verdict: invoice.OutcomeApplied, Winner: true})
	builder.Add(commit.LineVerdict{Item: 0, Position: 1, Verdict: invoice.OutcomeApplied, Winner: true})
	builder.Add(commit.LineVerdict{Item: 1, Position: 0, Verdict: invoice.OutcomeApplied, Winner: true})
	builder.Add(commit.LineVerdict{Item: 2, Position: 0, Verdict: invoice.OutcomeApplied})
	builder.Add(commit.LineVerdict{Item: 2, Position: 1, Verdict: invoice.OutcomeUnchanged, Winner: true})
	wanted, marks := builder.Written()
	require.Equal(t, []int64{2, 1}, []int64{wanted, marks})

	out, err := builder.Outcomes()
	require.NoError(t, err)
	before := map[int64][]invoice.Value{}
	for line := range int64(4) {
		before[line+1] = itemWith("before", false, 1).Values
	}
	builder.Present(before, nil)
	require.Equal(t, before[1], out[0].Rows[0].Before)
	require.Equal(t, invoice.DefaultMapping().RowValues(content.Values, 1, 1), out[0].Rows[0].After)
	require.Equal(t, invoice.DefaultMapping().RowValues(content.Values, 1, 2), out[2].Rows[0].After,
		"the line's newest content is the other item's")
	require.Equal(t, invoice.DefaultMapping().RowValues(older.Values, 2, 2), out[2].Rows[0].Want)
	require.Equal(t, before[4], out[2].Rows[1].After)
	require.Equal(t, out[1].Rows[0].After, out[1].Rows[0].Want)
	for i, c := range invoice.DefaultMapping().Columns() {
		want := before[3][i]
		if c.Table == invoice.Detail && c.Status {
			want = invoice.Of(invoice.StatusAIError)
		}
		require.Equal(t, want, out[1].Rows[0].After[i], c.Name)
	}
}

// A char column has blanks at the end, and some times have fewer digits: what is written and what is read then are
// equal.
func TestAPreviewHasValuesAsTheColumnsKeepThem(t *testing.T) {
	a := itemWith("a", false, 1)
	builder := commit.NewOutcomeBuilder(nil, []commit.Item{a})
	builder.AllApplied()
	out, err := builder.Outcomes()
	require.NoError(t, err)
	padded := invoice.DefaultMapping().RowValues(a.Values, 1, 1)
	for i, v := range padded {
		if !v.Null {
			padded[i].Text += "  "
		}
	}
	builder.Present(map[int64][]invoice.Value{1: padded}, func(row []invoice.Value) []invoice.Value {
		row = slices.Clone(row)
		for i := range row {
			row[i].Text = strings.TrimRight(row[i].Text, " ")
		}
		return row
	})
	row := out[0].Rows[0]
	require.NotEqual(t, padded, row.Before)
	require.Equal(t, row.Before, row.Want)
	require.Equal(t, row.Before, row.After)
}

func TestAllAppliedIsEveryLine(t *testing.T) {
	builder := commit.NewOutcomeBuilder(nil, []commit.Item{itemWith("a", false, 1, 2), itemWith("b", true, 3)})
	builder.AllApplied()
	out, err := builder.Outcomes()
	require.NoError(t, err)
	require.Equal(t, []invoice.Outcome{invoice.OutcomeApplied, invoice.OutcomeApplied},
		[]invoice.Outcome{out[0].Verdict, out[1].Verdict})
	content, marks := builder.Written()
	require.Equal(t, []int64{2, 1}, []int64{content, marks})
}
