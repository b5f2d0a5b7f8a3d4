package ops_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
)

func (w *world) diff(ids ...string) ops.Diff {
	w.t.Helper()
	before := w.snapshot()
	delete(before, "writes") // a preview is a request
	d := must(w.ops.Diff(w.t.Context(), ops.DiffQuery{IDs: ids}))(w.t)
	after := w.snapshot()
	delete(after, "writes")
	require.Equal(w.t, before, after, "nothing is changed")
	return d
}

// Each document once, in the order of the question; test/comparison compares diffs with writes.
func TestADiffExplainsEachDocument(t *testing.T) {
	w := newWorld(t, 1, 2, 3)
	w.put(result(1, "", ""), twoLines(id(2), 2, 4, "x"), documentOf(id(3), "dev", 3, "x", ""))
	d := w.diff("nobody", id(3), id(1), id(2), id(1))
	require.Equal(t, "running", d.Flow)
	require.Empty(t, d.Note)
	require.Equal(t, w.clock.In(d.At.Location()), d.At)
	require.Len(t, d.Documents, 4)
	require.Equal(t,
		ops.DocumentDiff{
			ID: "nobody", Status: "gone", Problem: "no document has this id", Lines: []ops.LineDiff{},
		}, d.Documents[0])

	foreign := d.Documents[1]
	require.Equal(t,
		`nothing of it is written: it belongs to the environment "dev", this app is "web"`, foreign.Problem)
	require.Equal(t, []any{"pending", false, invoice.Outcome(""), 0},
		[]any{foreign.Status, foreign.Taken, foreign.Outcome, len(foreign.Lines)})

	written := d.Documents[2]
	require.Equal(t, []any{id(1), "pending", true, invoice.OutcomeApplied, ""},
		[]any{written.ID, written.Status, written.Taken, written.Outcome, written.Problem})
	require.Equal(t, "pending; waiting for 0 s", written.Why)
	require.Equal(t,
		"the change feed brings it; if not within 10 min, or twice its lag, the recovery timer takes it up",
		written.Next)
	line := written.Lines[0]
	require.Equal(t, []any{int64(1), false, true, fmt.Sprintf("a write changes %d columns", len(line.Columns))},
		[]any{line.Line, line.Duplicate, line.Writes, line.Says})
	empty := ""
	require.Equal(t, ops.ColumnDiff{Table: invoice.Detail, Column: "CLN_MFR_AI_NM", Before: nil, After: &empty},
		line.Columns[0], "an empty text is not NULL")

	held := d.Documents[3]
	require.Equal(t, []any{invoice.OutcomeMissing, "nothing of it is written: IVCE_DTL has no row for line 4"},
		[]any{held.Outcome, held.Problem})
	require.Equal(t, []any{false, "another line of the document keeps it back: IVCE_DTL has no row for that one"},
		[]any{held.Lines[0].Writes, held.Lines[0].Says})
	require.Equal(t, []any{true, false, "IVCE_DTL has no row for it"},
		[]any{held.Lines[1].Duplicate, held.Lines[1].Writes, held.Lines[1].Says})
}

func TestADiffSaysWhyALineStays(t *testing.T) {
	w := newWorld(t, 1, 2)
	w.put(result(1, "a", ""), result(2, "b", ""))
	w.run(id(1), id(2))
	w.put(documentOf("2025-12-17 09:00:00.000000-06:00-0001-2", "web", 2, "older", ""))
	require.Equal(t, "it has this content", w.diff(id(1)).Documents[0].Lines[0].Says)
	r := runs{world: w}
	r.meddle(1, invoice.Detail, "CLN_MFR_AI_NM", "somebody's")
	d := w.diff(id(1), "2025-12-17 09:00:00.000000-06:00-0001-2")
	require.Equal(t, "this content was written before, and 1 column changed since: a write leaves the line alone",
		d.Documents[0].Lines[0].Says)
	require.Equal(t, "it belongs to newer content, of "+id(2)+": a write leaves it alone", d.Documents[1].Lines[0].Says)
}

func TestADiffIsRefused(t *testing.T) {
	w := newWorld(t, 1)
	var many []string
	for line := range int64(101) {
		many = append(many, id(line))
	}
	wide := func(line int64) string {
		duplicates := make([]string, 500)
		for i := range duplicates {
			duplicates[i] = fmt.Sprint(line*1000 + int64(i))
		}
		return strings.Replace(result(line, "x", ""), `"duplicate_detail_uids":[]`,
			`"duplicate_detail_uids":[`+strings.Join(duplicates, ",")+`]`, 1)
	}
	w.put(wide(1), wide(2))
	for want, ids := range map[string][]string{
		"ids: expected the ids of 1 to 100 documents, found 0":                             nil,
		"ids: expected the ids of 1 to 100 documents, found 101":                           many,
		"ids: expected ids without a comma, which separates ids, found \"a,b\"":            {"a,b"},
		`id: expected the id of a document, which has none of / \ ? #, found "a/b"`:        {"a/b"},
		"ids: expected documents with at most 1000 lines together, found 1002: name fewer": {id(1), id(2)},
	} {
		_, err := w.ops.Diff(t.Context(), ops.DiffQuery{IDs: ids})
		require.Equal(t, ops.Usage, refusal(err))
		require.EqualError(t, err, want)
	}
	w.diff(append(many[3:101], id(1))...)
}

func TestADiffNeedsSQLAndNoFlow(t *testing.T) {
	w := newWorld(t, 1)
	w.put(result(1, "x", ""))
	w.pausedSince(3 * time.Minute)
	w.clock = start().Add(6 * time.Second)
	d := w.diff(id(1))
	require.Equal(t, "paused by kim since 2025-12-18T09:57:00-06:00: maintenance", d.Flow)
	require.Equal(t, invoice.OutcomeApplied, d.Documents[0].Outcome)
	require.Contains(t, d.Documents[0].Next, "the flow is paused by kim")

	w.open(fault.Infrastructure, "refused")
	before := w.sink.applies
	_, err := w.ops.Diff(t.Context(), ops.DiffQuery{IDs: []string{id(1)}})
	require.Equal(t, fault.Infrastructure, fault.KindOf(err))
	require.Equal(t, before, w.sink.applies, "probes are the breaker's")
	require.Equal(t, "gone", w.diff("nobody").Documents[0].Status, "SQL is not needed for this")
}

func TestADiffInAShadowSaysThatNothingIsWritten(t *testing.T) {
	r := newRuns(t)
	r.readOnly = "MODE=shadow: nothing is written"
	r.sink.AddLines(1)
	r.put(result(1, "x", ""))
	r.renew()
	d := must(r.ops.Diff(t.Context(), ops.DiffQuery{IDs: []string{id(1)}}))(t)
	require.Equal(t, "MODE=shadow: nothing is written", d.Note)
}

// What a preview cannot see is said.
func TestADiffWarnsOfConstraints(t *testing.T) {
	const state = `{"status":"retry_scheduled","retry_count":1,"retry_after":1,"last_error_kind":"%s","last_error_code":"%s","last_error":"x"}`
	warning := "SQL refused its last write (547): a diff asks no constraint and no trigger of the tables, so the next write may be refused too"
	for _, c := range []struct{ kind, code, manufacturer, want string }{
		{"document", "547", "x", warning},
		{"document", "missing_detail_row", "x", ""}, // it is there now
		{"document", "validation.too_long", "x", ""},
		{"contention", "1222", "x", ""},
		{"document", "547", tooLong(), ""}, // the problem is known
	} {
		w := newWorld(t, 1)
		w.put(result(1, c.manufacturer, fmt.Sprintf(state, c.kind, c.code)))
		require.Equal(t, c.want, w.diff(id(1)).Documents[0].Warning, "%+v", c)
	}
	w := newWorld(t, 1)
	deep := `"notes":` + strings.Repeat("[", 63) + strings.Repeat("]", 63) + `,"sql_writer"`
	w.put(strings.Replace(result(1, "x", fmt.Sprintf(state, "document", "547")), `"sql_writer"`, deep, 1))
	require.Regexp(t, `^document\.too_deep: .*; SQL refused its last write`, w.diff(id(1)).Documents[0].Warning)
}

// The try that makes a poison message writes to lines although nothing of the document is written.
func TestADiffWarnsOfAFailureMark(t *testing.T) {
	w := newWorld(t, 1)
	w.put(result(1, tooLong(), ""))
	for range 6 {
		require.Empty(t, w.diff(id(1)).Documents[0].Warning)
		w.run(id(1))
		w.clock = w.clock.Add(2 * time.Hour)
		w.applyOther()
	}
	d := w.diff(id(1)).Documents[0]
	require.Equal(t, []any{"retry_scheduled", true}, []any{d.Status, d.Taken})
	require.Equal(t,
		"its retries are spent: the next failure may make it a poison message, which writes AI-ERROR to IVCE_LNE_STAT of its lines", d.Warning)
	w.run(id(1))
	require.Equal(t, invoice.Failed, w.state(1).Status)
	require.Equal(t, "AI-ERROR", w.status(1))
	require.Empty(t, w.diff(id(1)).Documents[0].Warning, "only an operator has it tried again, from the first try on")

	w.put(
		strings.Replace(result(2, "x", `{"status":"retry_scheduled","retry_count":1,"retry_after":1}`),
			`"process_output":{`, `"process_output":[],"x":{`, 1))
	d = w.diff(id(2)).Documents[0]
	require.Contains(t, d.Problem, "nothing of it is written: ")
	require.Contains(t, d.Warning, "its retries are spent", "for what cannot be read the first failure is the last")
}
