package commit_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/test/inmem"
	"sqlwriter/test/mapping"
)

// byOldWriter is the old writer's state in a document.
const byOldWriter = `{"status":"committed","retry_count":0,"committed_at":"2025-12-17 10:30:15.123456-06:00"}`

// shadow is the world's Shadow. Its login may not write, so its breaker probes by a preview without items.
func (w *world) shadow() *commit.Shadow {
	now, draw := func() time.Time { return w.clock }, func() float64 { return 0.5 }
	return commit.NewShadow(w.faulty, w.faulty, commit.Options{
		SysName: "web", Now: now, Draw: draw, Log: zerolog.New(&w.log), Reader: invoice.Reader{Mapping: w.mapping},
		Wait: func(context.Context, time.Duration) error { return nil },
		Breaker: breaker.New(nil, breaker.Options{
			Now: now, Draw: draw,
			Wait: func(_ context.Context, d time.Duration) error { w.clock = w.clock.Add(d); return nil },
			Heartbeat: func(ctx context.Context, known breaker.Heartbeat) (breaker.Heartbeat, error) {
				_, err := w.faulty.Apply(ctx, nil, commit.Preview, known)
				return breaker.Heartbeat{}, err
			},
		}),
	})
}

// oldWriter writes a document's lines as the old writer does: rows without a ledger.
func (w *world) oldWriter(doc string) {
	w.t.Helper()
	d, err := invoice.Reader{Mapping: w.mapping}.Read([]byte(doc), w.clock)
	require.NoError(w.t, err)
	for _, line := range append([]int64{d.Main}, d.Duplicates...) {
		w.sink.SetLine(line, inmem.Line{Tracking: true, Values: w.mapping.RowValues(d.Values, d.Main, line)})
	}
}

// In the hour that comes twice a local request time decides no order: 01:30 may be before 01:20 and after 01:40. The
// shadow then cannot tell whether the row has a newer result. Without a request time it knows no newer one.
func TestShadowInTheHourThatComesTwice(t *testing.T) {
	local := mapping.Edited(func(tables map[invoice.Table]*mapping.Table) {
		tables[invoice.Tracking].Column("RQST_TS")["type"] = "time(zone)"
	})
	at := func(clock, offset string) string { return "2025-11-02 " + clock + ":00.000000" + offset + "-0001-1" }
	const summer, winter = "-05:00", "-06:00"
	for name, c := range map[string]struct {
		mapping       *invoice.Mapping
		row, document string
		maker         string
		want          invoice.Outcome
	}{
		"before it":                 {local, at("01:30", summer), at("00:50", summer), "other", "holds_newer"},
		"after it":                  {local, at("01:30", winter), at("02:10", winter), "other", "differs"},
		"once, and once more":       {local, at("01:20", winter), at("01:40", summer), "other", "cannot_tell"},
		"both the first time":       {local, at("01:20", summer), at("01:40", summer), "other", "cannot_tell"},
		"the same time, twice":      {local, at("01:30", winter), at("01:30", summer), "other", "cannot_tell"},
		"the same content":          {local, at("01:30", summer), at("01:30", summer), "row", "matches"},
		"within it, and after it":   {local, at("02:30", winter), at("01:30", winter), "other", "holds_newer"},
		"in UTC":                    {nil, at("01:20", winter), at("01:40", summer), "other", "holds_newer"},
		"in UTC, the other way":     {nil, at("01:40", summer), at("01:20", winter), "other", "differs"},
		"in another hour":           {local, at("05:30", winter), at("05:20", winter), "other", "holds_newer"},
		"in another, the other way": {local, at("05:20", winter), at("05:30", winter), "other", "differs"},
	} {
		w := newWorld(t, 1)
		if c.mapping != nil {
			w.maps(c.mapping)
		}
		w.oldWriter(document(c.row, 1, "row", byOldWriter))
		report, err := w.runShadow(0, w.put(document(c.document, 1, c.maker, byOldWriter))...)
		require.NoError(t, err)
		require.Equal(t, map[invoice.Outcome]int{c.want: 1}, report.Outcomes, name)
	}

	w := newWorld(t, 1)
	w.oldWriter(result(2, 1, "newer", byOldWriter))
	w.maps(mapping.Without(invoice.Tracking, "RQST_TS"))
	report, err := w.runShadow(0, w.put(result(1, 1, "older", byOldWriter))...)
	require.NoError(t, err)
	require.Equal(t, map[invoice.Outcome]int{"differs": 1}, report.Outcomes)
	require.Equal(t, 1, report.Columns["IVCE_TRKG_MSTR.CLN_MFR_AI_NM"])
}

// runShadow runs the shadow over all documents and requires that nothing was written.
func (w *world) runShadow(retry int, snapshots ...json.RawMessage) (commit.Report, error) {
	w.t.Helper()
	var ids []string
	for _, s := range snapshots {
		if d, err := (invoice.Reader{}).Read(s, w.clock); err == nil {
			if _, err := w.docs.Read(w.t.Context(), d.ID); err == nil {
				ids = append(ids, d.ID)
			}
		}
	}
	lines := func() (all []any) {
		for line := range int64(20) {
			l, _ := w.sink.Line(line)
			e, known := w.sink.Entry(line)
			all = append(all, l, e, known)
		}
		row, beats := w.sink.Heartbeats("web")
		return append(all, row, beats)
	}
	before, rows, records := w.snapshots(ids...), lines(), w.faulty.records
	report, err := w.shadow().Run(w.t.Context(),
		commit.Delivery{Documents: snapshots, Received: w.clock, RetryCount: retry})
	require.Equal(w.t, before, w.snapshots(ids...), "no document was touched")
	require.Equal(w.t, rows, lines(), "no row and no ledger was touched")
	require.Equal(w.t, records, w.faulty.records, "nothing was even tried")
	total := 0
	for _, n := range report.Outcomes {
		total += n
	}
	require.Equal(w.t, len(snapshots), total, "every document is counted once: %v", report.Outcomes)
	require.True(w.t, report.Shadow)
	return report, err
}

func TestShadowForetellsWhatWouldBeDone(t *testing.T) {
	w := newWorld(t, 1, 2, 3, 4)
	w.run(w.put(result(1, 1, "there", ""), result(9, 2, "newer", ""))...)
	same := result(1, 1, "there", "")
	snapshots := w.put(
		same, result(5, 2, "older", ""), result(6, 3, "new", ""), result(7, 99, "no row", ""),
		result(8, 4, tooLong(), ""),
		strings.Replace(result(9, 4, "x", ""), `"process_output"`, `"output"`, 1),
		result(10, 4, "x", fmt.Sprintf(`{"status":"retry_scheduled","retry_after":%d}`, start().Unix()+1)),
		result(13, 4, tooLong(), spent()),
		result(11, 4, "x", `{"status":"failed"}`),
		strings.Replace(result(12, 4, "x", ""), `"web"`, `"dev"`, 1),
		document("no time in it", 4, "x", ""),
	)
	report, err := w.runShadow(0, snapshots...)
	require.NoError(t, err)
	require.Equal(t, map[invoice.Outcome]int{
		"would_be_unchanged": 1, "would_be_superseded": 1, "would_be_applied": 2, "would_be_retry_scheduled": 3,
		"would_be_failed": 1, "skipped": 3,
	}, report.Outcomes)
	require.Equal(t, map[string]int{"document": 4}, report.Kinds)
	require.Empty(t, report.Columns)
	require.NotContains(t, w.log.String(), `"event":"shadow_differs"`, "the planned outcomes are counted")
}

func TestShadowComparesWhatTheOldWriterHasDone(t *testing.T) {
	w := newWorld(t, 1, 2, 3, 4, 5, 6, 7, 8)
	right, edited, other := result(1, 1, "right", byOldWriter, 2), result(2, 3, "edited", byOldWriter, 4),
		result(3, 5, "other", byOldWriter)
	older, newer := result(4, 6, "older", byOldWriter, 7), result(5, 7, "newer", byOldWriter)
	for _, d := range []string{right, edited, other, older, newer} {
		w.oldWriter(d)
	}
	l, _ := w.sink.Line(4) // a duplicate's row
	l.Values = append([]invoice.Value{}, l.Values...)
	for i, c := range invoice.DefaultMapping().Columns() {
		if c.Name == "UNSPSC_CD" && c.Table == invoice.Tracking || c.Name == "DATA_VRFN_IND" && c.Table == invoice.Detail {
			l.Values[i] = invoice.Of("secret-marker")
		}
	}
	w.sink.SetLine(4, l)
	w.sink.SetLine(5, inmem.Line{Values: l.Values}) // its tracking row is missing
	snapshots := w.put(right, edited, other, older, newer, result(6, 99, "x", byOldWriter),
		result(7, 8, tooLong(), byOldWriter),
		result(4, 7, "held", byOldWriter))
	report, err := w.runShadow(0, snapshots...)
	require.NoError(t, err)
	require.Equal(t,
		map[invoice.Outcome]int{
			"matches": 3, "differs": 2, "holds_newer": 1, "missing": 1, "refused": 1,
		}, report.Outcomes)
	require.Equal(t, 2, report.Columns["IVCE_DTL.DATA_VRFN_IND"], "counted by document")
	require.Equal(t, 2, report.Columns["IVCE_TRKG_MSTR.UNSPSC_CD"])
	require.Equal(t, 1, report.Columns["IVCE_TRKG_MSTR.RQST_TS"])
	require.Zero(t, report.Columns["IVCE_DTL.UNSPSC_CD"]+report.Columns["IVCE_DTL.PRNT_IVCE_DTL_ID"]-1,
		"line 5 is no duplicate")
	log := w.log.String()
	require.Contains(t, log,
		`"document":"2025-12-17 10:02:00.000000-06:00-0001-3","differs_in":["IVCE_DTL.DATA_VRFN_IND","IVCE_TRKG_MSTR.UNSPSC_CD"],"outcome":"differs"`)
	require.Regexp(t, `"code":"missing_detail_row",.*"outcome":"missing"`, log)
	require.Regexp(t, `"code":"validation.too_long","reason":"document .*"outcome":"refused"`, log)
	require.NotContains(t, log, "secret-marker")
	require.NotContains(t, log, "xxxx")
}

// Pending documents are in no row: they hide nothing of the old writer's work, not even in one batch.
func TestShadowLooksAtWhatWaitsApart(t *testing.T) {
	w := newWorld(t, 1)
	done := result(1, 1, "done", byOldWriter)
	w.oldWriter(done)
	report, err := w.runShadow(0, w.put(done, result(2, 1, "waits", ""), result(3, 1, "waits too", ""))...)
	require.NoError(t, err)
	require.Equal(t,
		map[invoice.Outcome]int{"matches": 1, "would_be_superseded": 1, "would_be_applied": 1}, report.Outcomes)
	require.Equal(t, 2, report.SQLRequests)
}

// Without a ledger the row's own request time tells that it is newer. An older row is an error of the old writer.
func TestShadowKnowsANewerRowByItsRequestTime(t *testing.T) {
	for held, want := range map[int]invoice.Outcome{9: "holds_newer", 5: "matches", 1: "differs"} {
		w := newWorld(t, 1)
		w.oldWriter(result(held, 1, fmt.Sprint("of minute ", held), ""))
		report, err := w.runShadow(0, w.put(result(5, 1, "of minute 5", byOldWriter))...)
		require.NoError(t, err)
		require.Equal(t, map[invoice.Outcome]int{want: 1}, report.Outcomes)
	}
}

// With an adopted ledger, a line of a newer document is not compared.
func TestShadowBelievesTheLedger(t *testing.T) {
	w := newWorld(t, 1)
	w.run(w.put(result(9, 1, "newer", ""))...)
	l, _ := w.sink.Line(1)
	l.Values = append([]invoice.Value{}, l.Values...)
	for i, c := range invoice.DefaultMapping().Columns() {
		if c.Source == invoice.FromRequestTime {
			l.Values[i] = invoice.Null()
		}
	}
	w.sink.SetLine(1, l)
	report, err := w.runShadow(0, w.put(result(5, 1, "older", byOldWriter))...)
	require.NoError(t, err)
	require.Equal(t, map[invoice.Outcome]int{"holds_newer": 1}, report.Outcomes)
}

func TestShadowNamesAFewAndCountsAll(t *testing.T) {
	w := newWorld(t)
	var docs []string
	for i := range 50 {
		docs = append(docs, result(i, 99, "x", byOldWriter))
	}
	report, err := w.runShadow(0, w.put(docs...)...)
	require.NoError(t, err)
	require.Equal(t, map[invoice.Outcome]int{"missing": 50}, report.Outcomes)
	require.Equal(t, 20, strings.Count(w.log.String(), "\n"))
}

func TestShadowWaitsForADependencyAsCommitDoes(t *testing.T) {
	w := newWorld(t, 1, 2)
	snapshots := w.put(result(1, 1, "x", ""), result(2, 2, strings.Repeat("y", 300), ""))
	w.faulty.onApply = func(int) error { return down("sql") }
	report, err := w.runShadow(0, snapshots...)
	require.Equal(t, fault.Infrastructure, fault.KindOf(err))
	require.Equal(t, 1, report.Outcomes["waiting"])
	w.faulty.onApply = nil
	w.faulty.onRead = func(int) error { return down("cosmos") }
	report, err = w.runShadow(1, snapshots...)
	require.Equal(t, fault.Infrastructure, fault.KindOf(err))
	require.Equal(t, map[invoice.Outcome]int{"waiting": 2}, report.Outcomes)
	w.faulty.onRead = nil
	report, err = w.runShadow(1, snapshots...)
	require.NoError(t, err)
	require.Equal(t, 1, report.Outcomes["would_be_applied"])
}

// A request that fails while SQL answers previews is repeated, and the check writes nothing.
func TestShadowAsksByAPreview(t *testing.T) {
	w := newWorld(t, 1, 2)
	docs := []string{result(1, 1, "x", byOldWriter), result(2, 2, "y", byOldWriter)}
	for _, d := range docs {
		w.oldWriter(d)
	}
	w.faulty.onApply = onlyFirst(down("sql"))
	report, err := w.runShadow(0, w.put(docs...)...)
	require.NoError(t, err)
	require.Equal(t, map[invoice.Outcome]int{"matches": 2}, report.Outcomes)
	require.Equal(t, 3, w.faulty.writes, "the request, the preview without items, the request again")
	require.Zero(t, w.faulty.beats)
}

// One document that SQL refuses does not hide the others.
func TestShadowDividesARefusedRequest(t *testing.T) {
	w := newWorld(t, 1, 2, 3)
	refuse := func(int) error { return fault.New(fault.Document, "test", "8114", "conversion") }
	snapshots := w.put(result(1, 1, "x", byOldWriter), result(2, 2, "y", byOldWriter), result(3, 3, "z", byOldWriter))
	w.oldWriter(result(2, 2, "y", byOldWriter))
	w.oldWriter(result(3, 3, "z", byOldWriter))
	w.faulty.onApply = func(n int) error {
		if n <= 2 { // all three, then the first alone
			return refuse(n)
		}
		return nil
	}
	report, err := w.runShadow(0, snapshots...)
	require.NoError(t, err)
	require.Equal(t, map[invoice.Outcome]int{"refused": 1, "matches": 2}, report.Outcomes)
}

func TestShadowReadsAgainWhatTheHostMayHaveReprinted(t *testing.T) {
	w := newWorld(t, 1, 2)
	stored := result(1, 1, "2025-12-17T10:30:15.1000000Z", byOldWriter)
	w.oldWriter(stored)
	reprinted := strings.Replace(string(w.put(stored)[0]), "15.1000000Z", "15.1Z", 1)
	gone := result(2, 2, "2025-12-17T10:30:15Z", byOldWriter)
	report, err := w.runShadow(0, json.RawMessage(reprinted), json.RawMessage(gone))
	require.NoError(t, err)
	require.Equal(t, map[invoice.Outcome]int{"matches": 1, "gone": 1}, report.Outcomes, fmt.Sprint(report.Columns))
	require.Equal(t, 1, report.Reads)
}
