package comparison

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/run"
	"sqlwriter/test/mapping"
)

// odd is a document, and what a diff must say of it before the write.
type odd struct {
	name, id string
	// taken: the app takes it by itself. outcome is what it then has.
	taken   bool
	outcome invoice.Outcome
	// problem stands in the diff's, code in the document after the write.
	problem, code string
	// differ is the number of columns of its main line that differ; -1 is any but none.
	differ int
}

// change is a column of a line before and after; nil is NULL.
type change struct {
	line          int64
	table, column string
}

// pendingState is sql_writer of a document that waits.
const pendingState = `{"status":"pending","retry_count":0}`

// oddDocument is a document whose process_output has other members; nil removes one.
func oddDocument(id string, line int64, state string, output map[string]any, duplicates ...int64) string {
	members := map[string]any{}
	d := json.NewDecoder(strings.NewReader(documentOf(id, line, "ACME", state, duplicates...)))
	d.UseNumber()
	if err := d.Decode(&members); err != nil {
		panic(err)
	}
	inner := members["process_output"].(map[string]any)
	for name, v := range output {
		if inner[name] = v; v == nil {
			delete(inner, name)
		}
	}
	text, err := json.Marshal(members)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// plantOdd puts odd documents into the world, and their history into the database. Lines of a case begin with its
// number times 100.
func plantOdd(w *world) (all []odd, lines []int64) {
	w.Helper()
	number := int64(0)
	add := func(o odd) { all = append(all, o) }
	next := func(rows ...int64) int64 { // makes detail rows: the main line plus each
		number++
		line := number * 100
		for _, n := range rows {
			w.db.addLines(w, line+n)
		}
		for n := range int64(4) {
			lines = append(lines, line+n)
		}
		return line
	}
	put := func(id string, line int64, output map[string]any, duplicates ...int64) string {
		return w.put(oddDocument(id, line, pendingState, output, duplicates...))
	}
	written := func(line int64, output map[string]any, duplicates ...int64) string { // an older result of the line
		id := put(idAt(line, 7), line, output, duplicates...)
		w.offer(id)
		return id
	}
	again := func(id string) { // another program offers it once more
		w.setState(id, func(state map[string]any) { clear(state); state["status"] = "pending" })
	}
	applied := func(name, id string, differ int) {
		add(odd{name: name, id: id, taken: true, outcome: invoice.OutcomeApplied, differ: differ})
	}

	line := next(0, 1, 2)
	applied("new rows", put(idOf(line), line, nil, line+1, line+2), -1)

	line = next(0)
	id := written(line, nil)
	again(id)
	add(odd{name: "unchanged", id: id, taken: true, outcome: invoice.OutcomeUnchanged})

	line = next(0)
	id = put(idAt(line, 6), line, map[string]any{"part_number": "old"})
	written(line, nil)
	add(odd{name: "superseded by a newer one", id: id, taken: true, outcome: invoice.OutcomeSuperseded, differ: 3})

	line = next()
	add(odd{
		name: "missing detail row", id: put(idOf(line), line, nil), taken: true, outcome: invoice.OutcomeMissing,
		problem: fmt.Sprintf("IVCE_DTL has no row for line %d", line), code: "missing_detail_row",
	})

	line = next(0)
	written(line, nil)
	w.db.remove(w, invoice.Tracking, line)
	applied("newer content, missing tracking row", put(idOf(line), line, map[string]any{"part_number": "7"}), -1)

	line = next(0)
	id = written(line, nil)
	w.db.remove(w, invoice.Tracking, line)
	again(id)
	add(odd{
		name: "the same content, missing tracking row", id: id, taken: true,
		outcome: invoice.OutcomeUnchanged, differ: -1,
	})

	line = next(0, 1)
	add(odd{
		name: "two of three duplicates have no row", id: put(idOf(line), line, nil, line+1, line+2, line+3),
		taken: true, outcome: invoice.OutcomeMissing,
		problem: fmt.Sprintf("IVCE_DTL has no row for line %d and 1 more", line+2),
		code:    "missing_detail_row", differ: -1,
	})

	line = next(0, 1)
	// its duplicate
	add(odd{
		name: "the older of two over one line", id: put(idAt(line, 8), line, nil, line+1), taken: true,
		outcome: invoice.OutcomeApplied, differ: -1,
	})
	applied("the newer of two over one line", put(idAt(line, 9), line, map[string]any{"part_number": "9"}), -1)

	line = next(0)
	applied("the older, and the newer lacks a row", put(idAt(line, 8), line, nil), -1)
	add(odd{
		name: "the newer, which lacks a row", id: put(idAt(line, 9), line, nil, line+1), taken: true,
		outcome: invoice.OutcomeMissing, problem: "IVCE_DTL has no row", code: "missing_detail_row", differ: -1,
	})

	line = next(0)
	id = written(line, nil)
	w.db.set(w, invoice.Detail, maker, byHand, line)
	again(id)
	add(odd{name: "edited by hand", id: id, taken: true, outcome: invoice.OutcomeUnchanged, differ: 1})

	line = next(0)
	written(line, nil)
	w.db.set(w, invoice.Detail, maker, byHand, line)
	w.db.set(w, invoice.Tracking, maker, otherText, line)
	applied("edited by hand, newer content", put(idOf(line), line, nil), 3) // RQST_TS too

	line = next(0)
	id = written(line, nil)
	w.db.ledger(w, markedLine, line)
	w.db.set(w, invoice.Detail, mapping.InUse().Status(invoice.Detail), invoice.StatusAIError, line)
	again(id)
	applied("a failure mark before", id, 1)

	line = next(0)
	written(line,
		map[string]any{"part_number_confidence": json.Number("0.1234"), "unspsc_confidence": json.Number("0.12")})
	applied("decimals that are rounded", put(idOf(line), line, map[string]any{
		"part_number_confidence": json.Number("0.12344999999999999999999999"), "unspsc_confidence": "0.12004999",
	}), 3)

	line = next(0)
	written(line,
		map[string]any{
			"processing_started_at": "2025-12-17T16:30:15.250Z", "processing_completed_at": "2025-12-17T16:30:20Z",
		})
	applied("dates in other zones", put(idOf(line), line, map[string]any{
		"processing_started_at":   "2025-12-17T22:00:15.25+05:30",
		"processing_completed_at": "2025-12-17T10:30:20.123456789-06:00",
	}), 2) // one is the same instant

	line = next(0)
	written(line, map[string]any{"upc": "", "aks_part_number": nil, "cleaned_description": "x"})
	applied("empty texts and NULL",
		put(idOf(line), line, map[string]any{"upc": nil, "aks_part_number": "", "cleaned_description": ""}), 7)

	line = next(0)
	page := odd{
		name: "characters beyond a code page", id: put(idOf(line), line, map[string]any{"stage": "漢字 ∞ 🔩"}),
		taken: true, outcome: invoice.OutcomeApplied, differ: -1,
	}
	line = next(0)
	narrow := odd{
		name: "longer than this database's column",
		id:   put(idOf(line), line, map[string]any{"web_search_url": strings.Repeat("u", 31)}), taken: true,
		outcome: invoice.OutcomeApplied, differ: -1,
	}
	if w.db.name == "server" {
		page.outcome, page.differ, page.code, page.problem = "", 0, "validation.code_page",
			"IVCE_DTL.AI_STG_NM: expected characters of the column's code page 1252, found U+6F22"
		narrow.outcome, narrow.differ, narrow.code, narrow.problem = "", 0, "validation.too_long",
			"IVCE_DTL.WEB_SRCH_URL: expected at most 30 UTF-16 units"
	}
	all = append(all, page, narrow)

	line = next(0)
	add(odd{
		name: "too long", id: put(idOf(line), line, map[string]any{"part_number": strings.Repeat("x", 101)}),
		taken: true, code: "validation.too_long", problem: "process_output.part_number",
	})
	line = next(0)
	add(odd{
		name: "a number beyond 2^53", id: put(idOf(line), line, map[string]any{"upc": json.Number("9007199254740993")}),
		taken: true, code: "validation.inexact", problem: "process_output.upc",
	})
	line = next(0)
	id = put(idOf(line), line, nil)
	w.rewrite(id, func(members map[string]any) { members["process_output"] = "?" })
	add(odd{name: "unreadable", id: id, taken: true, code: "validation.not_an_object", problem: "process_output"})

	line = next(0)
	written(line, nil)
	w.db.set(w, invoice.Detail, mapping.InUse().Status(invoice.Detail), steward, line)
	// both statuses, RQST_TS
	applied("a steward's status, newer content",
		put(idOf(line), line, map[string]any{"invoice_line_status": "RC-AI"}), 3)

	line = next(0)
	id = written(line, nil)
	w.db.set(w, invoice.Detail, mapping.InUse().Status(invoice.Detail), steward, line)
	again(id)
	add(odd{
		name: "a steward's status, the same content", id: id, taken: true, outcome: invoice.OutcomeUnchanged, differ: 1,
	})

	line = next(0)
	applied("an id without a time", put(fmt.Sprintf("no-time-%d", line), line, nil), -1)

	line = next(0)
	id = written(line, nil)
	w.pass(2 * time.Second)
	w.rewrite(id, func(members map[string]any) {
		members["process_output"].(map[string]any)["part_number"] = "changed"
		members["sql_writer"] = map[string]any{"status": "pending"}
	})
	w.db.ledger(w, laterTS, line)
	add(odd{
		name: "the container's clock went back", id: id, taken: true, outcome: invoice.OutcomeSuperseded, differ: 2,
		problem: "clock_went_back", code: "clock_went_back",
	})

	line = next(0)
	id = w.put(oddDocument(idOf(line), line, `{"status":"retry_scheduled","retry_count":2,"retry_after":1}`, nil))
	applied("a retry that is due", id, -1)

	// What follows is not taken by itself.
	line = next(0)
	id = put(idOf(line), line, nil)
	w.rewrite(id, func(members map[string]any) {
		members["request_details"].(map[string]any)["sys_name"] = otherName
	})
	add(odd{name: "another environment's", id: id, problem: fmt.Sprintf("it belongs to the environment %q", otherName)})

	line = next(0)
	id = put(idOf(line), line, nil)
	w.container.remove(w, id)
	add(odd{name: "gone", id: id, problem: "no document has this id"})

	line = next(0)
	id = put(idOf(line), line, nil)
	w.rewrite(id, func(members map[string]any) { delete(members, "sql_writer") })
	add(odd{name: "never offered", id: id, problem: "never offered"})

	line = next(0)
	id = w.put(oddDocument(idOf(line), line, `{"status":"parked"}`, nil))
	add(odd{name: "an unknown status", id: id, problem: "unknown"})

	line = next(0)
	id = w.put(
		oddDocument(idOf(line), line,
			fmt.Sprintf(`{"status":"retry_scheduled","retry_count":1,"retry_after":%d}`, w.now().Add(time.Hour).Unix()),
			nil))
	add(odd{name: "not due", id: id, outcome: invoice.OutcomeApplied, differ: -1})

	line = next(0)
	id = w.put(
		oddDocument(idOf(line), line,
			`{"status":"failed","retry_count":6,"failed_at":"2025-12-17 12:00:00.000000Z"}`, nil))
	add(odd{name: "failed", id: id, outcome: invoice.OutcomeApplied, differ: -1})

	line = next(0)
	id = written(line, nil)
	w.db.set(w, invoice.Detail, maker, byHand, line)
	add(odd{name: "committed", id: id, outcome: invoice.OutcomeUnchanged, differ: 1})

	line = next(0)
	id = written(line, nil)
	w.db.forget(w, line)
	w.db.set(w, invoice.Detail, maker, byHand, line)
	add(odd{name: "committed, and the ledger lacks it", id: id, outcome: invoice.OutcomeApplied, differ: 1})

	line = next(0) // the newer one is not due: the older one is written now, and by itself
	applied("the older, and the newer is not due", put(idAt(line, 8), line, nil), -1)
	id = w.put(
		oddDocument(idAt(line, 9), line,
			fmt.Sprintf(`{"status":"retry_scheduled","retry_count":1,"retry_after":%d}`, w.now().Add(time.Hour).Unix()),
			nil))
	add(odd{name: "the newer, which is not due", id: id, outcome: invoice.OutcomeApplied, differ: -1})
	return all, lines
}

// diffOf asks for a diff, and holds that it changes nothing.
func (w *world) diffOf(ids ...string) map[string]ops.DocumentDiff {
	w.Helper()
	before, documents := w.db.everything(w), w.raws(ids...)
	d, err := w.ops.Diff(w.operator(), ops.DiffQuery{IDs: ids})
	require.NoError(w, err)
	require.Equal(w, before, w.db.everything(w), "a diff writes nothing, not even an audit entry")
	require.Equal(w, documents, w.raws(ids...))
	require.Len(w, d.Documents, len(ids))
	byID := map[string]ops.DocumentDiff{}
	for i, diff := range d.Documents {
		require.Equal(w, ids[i], diff.ID)
		byID[diff.ID] = diff
	}
	return byID
}

// raws are documents as they are stored, those that exist.
func (w *world) raws(ids ...string) map[string]string {
	w.Helper()
	raws, err := w.container.documents.ReadMany(w.Context(), ids)
	require.NoError(w, err)
	all := map[string]string{}
	for _, raw := range raws {
		d, err := invoice.Reader{}.Read(raw, w.now())
		require.NoError(w, err)
		all[d.ID] = string(bytes.TrimSpace(raw))
	}
	return all
}

// values are the columns of lines.
func (w *world) values(lines []int64) map[change]*string {
	w.Helper()
	all := map[change]*string{}
	for id, l := range w.lines(lines...) {
		for i, c := range mapping.InUse().Columns() {
			if i < len(l.Values) && !l.Values[i].Null {
				all[change{id, string(c.Table), c.Name}] = &l.Values[i].Text
			}
		}
	}
	return all
}

// requireForetold requires that exactly the columns changed that the diff of the documents named, to exactly its
// values.
func (w *world) requireForetold(
	before, after map[change]*string, foretold map[string]ops.DocumentDiff, written func(ops.DocumentDiff) bool,
) {
	w.Helper()
	type values struct{ before, after string }
	show := func(v *string) string {
		if v == nil {
			return "NULL"
		}
		return fmt.Sprintf("%q", *v)
	}
	want, found := map[change]values{}, map[change]values{}
	for _, d := range foretold {
		for _, l := range d.Lines {
			require.Equal(w, l.Outcome == invoice.OutcomeApplied, l.Writes)
			for _, c := range l.Columns {
				at := change{l.Line, string(c.Table), c.Column}
				require.Equal(w, show(before[at]), show(c.Before), "%s: %v", d.ID, at)
				if !l.Writes || !written(d) {
					continue
				}
				require.NotContains(w, want, at, "two documents write it")
				want[at] = values{show(c.Before), show(c.After)}
			}
		}
	}
	for _, side := range []map[change]*string{before, after} {
		for at := range side {
			if v := (values{show(before[at]), show(after[at])}); v.before != v.after {
				found[at] = v
			}
		}
	}
	require.Equal(w, want, found)
	require.NotEmpty(w, found)
}

// eachOdd is eachDatabase, on a server with columns that round and refuse.
func eachOdd(t *testing.T, test func(w *world)) {
	t.Helper()
	for name, open := range databases() {
		if name == "server" {
			open = onNarrowServer
		}
		t.Run(name, func(t *testing.T) { test(newWorld(t, open, emulated)) })
	}
}

// onNarrowServer is a server with columns of other types than the sample's.
func onNarrowServer(t testing.TB, now func() time.Time) database {
	t.Helper()
	db := onServer(t, now)
	for _, c := range []struct{ table, column, kind string }{
		{"IVCE_DTL", "AI_STG_NM", "varchar(50) COLLATE SQL_Latin1_General_CP1_CI_AS"},
		{"IVCE_DTL", "WEB_SRCH_URL", "nvarchar(30)"},
		{"IVCE_DTL", "UNSPSC_CD", "char(10)"},
		{"IVCE_TRKG_MSTR", "MFR_STG_NM", "nchar(50)"},
		{"IVCE_TRKG_MSTR", "PRCS_STRT_TS", "datetime"},
		{"IVCE_TRKG_MSTR", "PRCS_END_TS", "datetime2(3)"},
	} {
		for _, change := range []string{"DROP COLUMN " + c.column, "ADD " + c.column + " " + c.kind + " NULL"} {
			_, err := db.db.ExecContext(t.Context(), "ALTER TABLE "+c.table+" "+change)
			require.NoError(t, err, change)
		}
	}
	return db
}

// A diff of odd documents says what the write then does, column by column; and what a replay and a reapply of the
// others then do.
func TestADiffIsWhatTheWriteThenDoes(t *testing.T) {
	eachOdd(t, func(w *world) {
		all, lines := plantOdd(w)
		w.Logf("%d odd documents", len(all))
		ids := make([]string, len(all))
		for i, o := range all {
			ids[i] = o.id
		}
		foretold := w.diffOf(ids...)
		for _, o := range all {
			d := foretold[o.id]
			require.Equal(w, []any{o.taken, o.outcome}, []any{d.Taken, d.Outcome}, "%s: %+v", o.name, d)
			require.Equal(w, o.problem == "", d.Problem == "", "%s: %s", o.name, d.Problem)
			require.Contains(w, d.Problem, o.problem, o.name)
			switch differ := 0; {
			case len(d.Lines) > 0:
				differ = len(d.Lines[0].Columns)
				if o.differ < 0 {
					require.NotZero(w, differ, o.name)
					break
				}
				require.Equal(w, o.differ, differ, "%s: %+v", o.name, d.Lines[0])
			default:
				require.Zero(w, o.differ, o.name)
			}
		}

		before, documents := w.values(lines), w.raws(ids...)
		w.startHere(ops.StartRequest{Kind: run.Drain, Why: "a test"})
		w.requireForetold(before, w.values(lines), foretold, func(d ops.DocumentDiff) bool { return d.Taken })
		now := w.raws(ids...)
		for _, o := range all {
			switch d := foretold[o.id]; {
			case !o.taken:
				require.Equal(w, documents[o.id], now[o.id], "%s: it is left alone", o.name)
			case o.problem != "":
				doc, _ := w.read(o.id)
				require.Equal(w, []any{invoice.RetryScheduled, o.code},
					[]any{doc.State.Status, doc.State.LastErrorCode}, o.name)
			default:
				doc, _ := w.read(o.id)
				require.Equal(w, []any{invoice.Committed, o.outcome},
					[]any{doc.State.Status, doc.State.Outcome}, o.name)
				superseding := ""
				for _, l := range d.Lines {
					superseding += l.By
				}
				require.Equal(w, doc.State.SupersededBy, superseding, o.name)
			}
		}
		w.written(all, lines, invoice.OutcomeApplied, run.Replay, func(o odd) bool {
			return strings.Contains(o.name, "not due") && !o.taken || o.name == "failed"
		})
		w.written(all, lines, invoice.OutcomeUnchanged, run.Reapply, func(o odd) bool {
			return strings.HasPrefix(o.name, "committed")
		})
	})
}

// written has a run write documents that the app does not take by itself, as their diff says. some is an outcome that
// one of them has.
func (w *world) written(all []odd, lines []int64, some invoice.Outcome, kind run.Kind, which func(odd) bool) {
	w.Helper()
	var ids []string
	for _, o := range all {
		if which(o) {
			ids = append(ids, o.id)
		}
	}
	require.GreaterOrEqual(w, len(ids), 2)
	before, foretold := w.values(lines), w.diffOf(ids...)
	w.startHere(ops.StartRequest{Kind: kind, Why: "a test", IDs: ids})
	w.requireForetold(before, w.values(lines), foretold, func(ops.DocumentDiff) bool { return true })
	require.True(w, slices.ContainsFunc(ids, func(id string) bool { return foretold[id].Outcome == some }))
	for _, id := range ids {
		doc, _ := w.read(id)
		require.Equal(w, invoice.Committed, doc.State.Status)
		if kind == run.Replay { // a reapply leaves the state of a committed document
			require.Equal(w, foretold[id].Outcome, doc.State.Outcome)
		}
	}
}

// Of two documents over one line each is applied by itself, and together the newer one wins. So it is when they are
// written.
func TestADiffOfTwoDocumentsOverOneLine(t *testing.T) {
	eachOdd(t, func(w *world) {
		lines := []int64{1, 2}
		w.db.addLines(w, lines...)
		older := w.put(oddDocument(idAt(1, 8), 1, pendingState, nil, 2))
		newer := w.put(oddDocument(idAt(1, 9), 1, pendingState, map[string]any{"part_number": "newer"}))
		for _, order := range [][]string{{older, newer}, {newer, older}} {
			both := w.diffOf(order...)
			require.Equal(w, invoice.OutcomeSuperseded, both[older].Lines[0].Outcome)
			require.Equal(w, newer, both[older].Lines[0].By)
			require.False(w, both[older].Lines[0].Writes)
			require.True(w, both[older].Lines[1].Writes, "its duplicate is its own")
			require.True(w, both[newer].Lines[0].Writes)
		}
		for _, id := range []string{older, newer} {
			alone, before := w.diffOf(id), w.values(lines)
			require.Equal(w, invoice.OutcomeApplied, alone[id].Outcome)
			w.commitAs(commit.FromTimer, id)
			w.requireForetold(before, w.values(lines), alone, func(ops.DocumentDiff) bool { return true })
		}
		require.Equal(w, newer, w.lines(1)[1].Ledger.DocumentID)
	})
}
