package crashtest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// want is a document as it is put, and how it is to end.
type want struct {
	id   string
	json json.RawMessage
	// end is the status in the end. Empty: it may wait with a due time for an error of its own.
	end invoice.Status
	// code is that of its own error, empty when it has none.
	code string
	// spent is how many retries are spent when it is put; in the end as many, or more for its own errors.
	spent int
	// untouched: it is not ours.
	untouched bool
}

// path is a way through the writer.
type path struct {
	name string
	// lines exist in the user's table.
	lines []int64
	// seed makes the world as it is before; the feed has shown all of it.
	seed func(w *world)
	// act is what runs first. The faults count from its first call.
	act func(w *world, i *instance)
	// operator says that a person has documents tried before they are due.
	operator bool
	// runs is what it has of runs; nil when it has nothing.
	runs *runsPath
	// byPeople are lines whose rows are not as their document says, and that only people mend.
	byPeople []int64
}

func paths() []*path {
	return append([]*path{commitPath(), recoverPath(), poisonPath(), blamePath(), breakerPath()}, runPaths()...)
}

func pathOf(name string) *path {
	for _, p := range paths() {
		if p.name == name {
			return p
		}
	}
	return nil
}

const (
	refusedCode    = "refused"
	missingCode    = "missing_detail_row"
	unreadableCode = "validation.not_an_object"
	// refused is a value that the user's table does not take; markRefused is a line that takes no AI-ERROR.
	refused           = "REFUSED"
	markRefused int64 = 210
)

// doc makes the text of a document: its content and its sql_writer. Every one has members that the product does not
// know.
func doc(id string, main int64, says, state string, duplicates ...int64) json.RawMessage {
	if state == "" {
		state = `"status":"pending","retry_count":0`
	}
	output := fmt.Sprintf(
		`{"manufacturer_name":%q,"part_number":"425","unspsc":"39131711","invoice_line_status":"RC-AI"}`, says)
	switch says {
	case refused:
		output = `{"manufacturer_name":"x","unspsc":"REFUSED","invoice_line_status":"RC-AI"}`
	case "UNREADABLE":
		output = `null`
	}
	list, err := json.Marshal(append([]int64{}, duplicates...))
	if err != nil {
		panic(err)
	}
	return json.RawMessage(
		fmt.Sprintf(`{"id":%q,"request_details":{"sys_name":"web"},"invoice_details_from_rpa":{"IVCE_DTL_UID":%d},`+
			`"process_output":%s,"post-processing":{"duplicate_detail_uids":%s},"pipeline":{"kept":[1,2.50,"<&>"]},"sql_writer":{%s,"ticket":{"of":"somebody"}}}`,
			id, main, output, list, state))
}

// at is an id whose time is a minute past ten on the day before.
func at(minute int, name string) string {
	return fmt.Sprintf("2025-12-17 10:%02d:00.000000-06:00-0001-%s", minute, name)
}

// refuse makes the user's tables refuse what they refuse in all paths.
func refuse(line int64, c invoice.Column, v invoice.Value) bool {
	mark := c.Table == invoice.Detail && c.Status && v.Text == invoice.StatusAIError
	return v.Text == refused || (mark && line == markRefused)
}

// begin makes the world of a path as it is before its first call.
func (w *world) begin() {
	w.sink.AddLines(w.path.lines...)
	w.sink.Refuse(refuse)
	w.path.seed(w)
	if w.runs != nil {
		w.runs.begin()
	}
	w.numbering = true
}

// wroteBefore says that a document has been written before the path begins.
func (w *world) wroteBefore(d want) {
	read, err := invoice.Reader{}.Read(d.json, w.now())
	if err != nil {
		panic(err)
	}
	item := commit.ItemOf(read)
	if strings.Contains(string(d.json), `"failed"`) {
		item = commit.MarkOf(read)
	}
	item.SourceTS = w.now().Unix()
	if _, err := w.sink.Apply(context.Background(), []commit.Item{item}, commit.Write,
		breaker.Heartbeat{SysName: sysName}); err != nil {
		panic(err)
	}
}

// evidenceBefore keeps the evidence of a document that failed before the path begins.
func (w *world) evidenceBefore(d want) {
	read, raw := w.document(d.id)
	metadata := fmt.Sprintf(`{"document_id":%q,"content_hash":%q,"reprocess_count":0}`, d.id, read.Hash)
	folder := fmt.Sprintf("failed/%d/%s/20251201T100000.000000Z-%s/", read.Main,
		strings.NewReplacer(" ", "%20", ":", "%3A").Replace(d.id), read.Hash)
	for name, content := range map[string]string{
		"original.json": string(raw), "error.json": "{}", "metadata.json": metadata,
	} {
		if err := w.evidence.Keep(context.Background(), folder+name, []byte(content)); err != nil {
			panic(err)
		}
	}
}

// shown says that the feed has shown everything that was put so far.
func (w *world) shown() { w.checkpoint = len(w.changes) }

// commitPath is CommitResults: a batch of everything that a batch may have in it.
func commitPath() *path {
	changed := at(7, "changed")
	return &path{
		name:  "commit",
		lines: []int64{101, 102, 110, 111, 112, 113, 120, 130, 140, 150, 151, 160, 170},
		seed: func(w *world) {
			for _, d := range []want{
				{id: at(1, "new"), json: doc(at(1, "new"), 101, "new", "", 102), end: invoice.Committed},
				{id: at(2, "older"), json: doc(at(2, "older"), 110, "older", "", 111, 112), end: invoice.Committed},
				{id: at(3, "newer"), json: doc(at(3, "newer"), 113, "newer", "", 111), end: invoice.Committed},
				{id: "timeless", json: doc("timeless", 120, "timeless", ""), end: invoice.Committed},
				{id: at(4, "refused"), json: doc(at(4, "refused"), 130, refused, ""), code: refusedCode},
				{id: at(5, "missing"), json: doc(at(5, "missing"), 140, "missing", "", 141), code: missingCode},
				{
					id: "unreadable", json: doc("unreadable", 160, "UNREADABLE", ""),
					code: unreadableCode, end: invoice.Failed,
				},
				{id: changed, json: doc(changed, 150, "before", "", 151), end: invoice.Committed},
			} {
				w.put(d)
			}
			other := want{id: at(6, "other"), untouched: true}
			other.json = json.RawMessage(strings.Replace(string(doc(other.id, 170, "other", "")), `"web"`, `"dev1"`, 1))
			w.put(other)
			meanwhile := map[string]func(){
				changed: func() {
					w.put(want{id: changed, json: doc(changed, 150, "after", "", 151), end: invoice.Committed})
				},
				"timeless": func() { w.touch("timeless") },
			}
			w.onApplied = func(items []commit.Item) {
				for _, it := range items {
					if happens := meanwhile[it.DocumentID]; happens != nil {
						delete(meanwhile, it.DocumentID)
						// within one second two contents are ordered by nothing (docs/rules.md)
						w.advance(2 * time.Second)
						happens()
					}
				}
			}
		},
		act: func(w *world, i *instance) { w.drain(i, 3) },
	}
}

// recoverPath is RecoverRetries: what no trigger brings.
func recoverPath() *path {
	due := begins().Add(-time.Minute).Unix()
	spent := func(n int, after int64) string {
		return fmt.Sprintf(`"status":"retry_scheduled","retry_count":%d,"retry_after":%d`, n, after)
	}
	return &path{
		name:  "recover",
		lines: []int64{301, 302, 310, 320, 330, 340, 350, 351, 360, 370},
		seed: func(w *world) {
			w.advance(-24 * time.Hour)
			newest := want{
				id:   at(59, "newest"),
				json: doc(at(59, "newest"), 350, "newest", `"status":"committed","outcome":"applied"`),
				end:  invoice.Committed,
			}
			for _, d := range []want{
				newest,
				{
					id: at(11, "due"), json: doc(at(11, "due"), 301, "due", spent(2, due), 302),
					spent: 2, end: invoice.Committed,
				},
				{
					id: at(12, "fails"), json: doc(at(12, "fails"), 310, refused, spent(1, due)),
					spent: 1, code: refusedCode,
				},
				{id: at(14, "orphan"), json: doc(at(14, "orphan"), 330, "orphan", ""), end: invoice.Committed},
				{
					id:   "orphan without time",
					json: doc("orphan without time", 340, "timeless", ""), end: invoice.Committed,
				},
				{id: at(15, "late"), json: doc(at(15, "late"), 351, "late", "", 350), end: invoice.Committed},
				{
					id:   at(16, "old writer"),
					json: doc(at(16, "old writer"), 360, "old writer", `"status":"processing"`), end: invoice.Committed,
				},
				{
					id:   at(17, "later"),
					json: doc(at(17, "later"), 370, "later", spent(4, begins().Add(3*time.Hour).Unix())), spent: 4,
				},
			} {
				w.put(d)
			}
			w.wroteBefore(newest)
			w.advance(24 * time.Hour)
			w.shown()
		},
		act: func(w *world, i *instance) { w.tick(context.Background(), i) },
	}
}

// failures is the state of a document that is due after so many own failures, the last of them a while ago. Six spend
// its retries.
func failures(n int, ago time.Duration) string {
	return fmt.Sprintf(
		`"status":"retry_scheduled","retry_count":%d,"postponed":%t,"retry_after":%d,"last_error_kind":"document","last_error_at":%q`,
		min(n, commit.MaxRetries), n > commit.MaxRetries, begins().Add(-time.Minute).Unix(),
		invoice.Stamp(begins().Add(-ago), time.UTC))
}

// poisonPath is the failure after the sixth, which is proven: evidence, mark, status.
func poisonPath() *path {
	last := failures(6, 2*time.Hour)
	return &path{
		name:  "poison",
		lines: []int64{201, 202, markRefused, 220, 230, 240},
		seed: func(w *world) {
			w.advance(-2 * time.Hour)
			newest := want{
				id:   at(59, "newest"),
				json: doc(at(59, "newest"), 230, "newest", `"status":"committed","outcome":"applied"`),
				end:  invoice.Committed,
			}
			for _, d := range []want{
				newest,
				{
					id: at(21, "poison"), json: doc(at(21, "poison"), 201, refused, last, 202), spent: 5,
					code: refusedCode, end: invoice.Failed,
				},
				{
					id: at(22, "no mark"), json: doc(at(22, "no mark"), markRefused, refused, last), spent: 5,
					code: refusedCode, end: invoice.Failed,
				},
				{
					id: at(23, "missing"), json: doc(at(23, "missing"), 220, "missing", last, 221), spent: 5,
					code: missingCode, end: invoice.Failed,
				},
				{
					id: at(24, "older"), json: doc(at(24, "older"), 230, "UNREADABLE", last), spent: 5,
					code: unreadableCode, end: invoice.Committed,
				},
			} {
				w.put(d)
			}
			w.wroteBefore(newest)
			w.advance(2 * time.Hour)
			w.shown()
			w.put(
				want{
					id: at(25, "contrast"), json: doc(at(25, "contrast"), 240, "contrast", ""), end: invoice.Committed,
				})
		},
		act: func(w *world, i *instance) {
			if drained, crashed := w.drain(i, 3); drained && !crashed {
				w.tick(context.Background(), i)
			}
		},
	}
}

// blamePath is a document that is refused each time, and nothing else is written: its failures count, and it is not
// given up. Then others are written, one between two tries, and a failure after the sixth is the last.
func blamePath() *path {
	return &path{
		name:  "blame",
		lines: []int64{251, 252},
		seed: func(w *world) {
			w.advance(-time.Hour)
			w.put(
				want{
					id: at(26, "alone"), json: doc(at(26, "alone"), 251, refused, failures(4, time.Hour)), spent: 4,
					code: refusedCode, end: invoice.Failed,
				})
			w.put(
				want{
					id:   at(27, "first"),
					json: doc(at(27, "first"), 252, refused, `"status":"pending","retry_count":0`), code: refusedCode,
				})
			w.advance(time.Hour)
			w.shown()
		},
		act: func(w *world, i *instance) { w.tick(context.Background(), i) },
	}
}

// breakerPath is a batch that comes when an outage is over. The breaker is open, and its probe is due: the heartbeat is
// claimed, then the first request; the requests grow from 1 to 5 to 25 documents, and it closes.
func breakerPath() *path {
	const waiting = 8
	return &path{
		name:  "breaker",
		lines: linesOf(501, waiting+1),
		seed: func(w *world) {
			w.opened(fault.Infrastructure, begins().Add(-time.Second))
			for n := range waiting {
				id := at(41+n, "waiting")
				w.put(want{id: id, json: doc(id, 501+int64(n), "waiting", ""), end: invoice.Committed})
			}
			id := at(50, "refused")
			w.put(want{id: id, json: doc(id, 501+waiting, refused, ""), code: refusedCode})
		},
		act: func(w *world, i *instance) { w.drain(i, 3) },
	}
}

// opened says that another instance opened the breaker a minute ago.
func (w *world) opened(kind fault.Kind, until time.Time) {
	_, err := w.control.Store(context.Background(), breaker.Control{Breaker: breaker.State{
		Name: breaker.Open, OpenUntil: until, Since: begins().Add(-time.Minute),
		ChangedAt: begins().Add(-time.Minute), HeldBy: "app-z",
		Kind: kind, Code: "eof", Reason: "the connection was cut",
	}}, "")
	if err != nil {
		panic(err)
	}
}
