package e2e_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"sqlwriter/test/emulators/cosmosdb"
	"sqlwriter/test/emulators/cosmosdb/cosmosdbtest"
	"sqlwriter/test/emulators/cosmosdb/provision"
	"sqlwriter/test/emulators/servicebus"
	"sqlwriter/test/expect"
	"sqlwriter/test/sample"
)

// rehearsal is a container and a database with the old writer's history, and both apps' switches.
type rehearsal struct {
	*engine
	t        *testing.T
	cosmos   *cosmosdbtest.Running
	docs     provision.Documents
	clock    atomic.Int64 // of the container, in seconds; 0 is the present
	settings map[string]string
	app      *application // nil while it is stopped
	old      *oldWriter
	// answer is what the last command printed, answers what each printed last.
	answer  string
	answers map[string]string

	// expected are the user's rows as they must be in the end; edited are the lines that a person has corrected.
	expected expect.Tables
	edited   map[int64]bool
	// newest names the newest finished result of each line; results holds every document by id.
	newest  map[int64]string
	results map[string]json.RawMessage
	reset   []string
}

// newRehearsal makes the history: what the old writer has committed and failed, what people have corrected since, and
// what waits.
func newRehearsal(t *testing.T, e *engine) *rehearsal {
	t.Helper()
	r := &rehearsal{
		engine: e, t: t, answers: map[string]string{}, edited: map[int64]bool{}, newest: map[int64]string{},
		results: map[string]json.RawMessage{},
	}
	r.cosmos = cosmosdbtest.Start(t, func(o *cosmosdb.Options) { o.Now = r.now })
	r.docs = r.cosmos.Results(t, database, container)
	r.cosmos.Leases(t, database, "leases")
	r.cosmos.Container(t, database, "sqlwriter-control", "/id")
	r.settings = map[string]string{
		"FUNCTIONS_WORKER_RUNTIME": "custom", "AzureWebJobsStorage": "UseDevelopmentStorage=true", "SYS_NAME": "web",
		"LEASE_PREFIX":      "web-none-",
		"COSMOS_CONNECTION": r.cosmos.ConnectionString, "COSMOS_DATABASE": database, "COSMOS_CONTAINER": container,
		"LEASE_CONTAINER": "leases",
		"SQL_CONNECTION":  e.connection,
		// nothing listens there, and nothing connects
		"SERVICEBUS_CONNECTION": servicebus.ConnectionString("127.0.0.1:9"),
		"RUNS_QUEUE":            runsQueue, "BATCHES_QUEUE": batchesQueue,
	}
	maps.Copy(r.settings, off("BatchManager", "BatchWorker", "BatchDeadLetter", "RunDeadLetter"))
	r.old = &oldWriter{r: r, running: true}

	finished := sample.Generate(sample.Options{Seed: 11, Count: committedBefore, Clean: true})
	slices.SortFunc(finished, func(a, b sample.Document) int {
		return requestTime(t, a.ID).Compare(requestTime(t, b.ID))
	})
	failed := sample.Generate(sample.Options{Seed: 12, Count: failedBefore, FirstLine: 7_000_001, Clean: true})
	lines := append(sample.Lines(finished), sample.Lines(failed)...)
	_, err := sample.SeedLines(t.Context(), e.db, lines)
	require.NoError(t, err)

	start := time.Now().AddDate(0, 0, -60)
	e.inTx(t, func(db execer) {
		for i, d := range append(slices.Clone(finished), failed...) {
			r.clock.Store(start.Add(time.Duration(i) * 40 * time.Minute).Unix())
			if i < len(finished) {
				r.old.commit(db, d.JSON)
			} else {
				r.old.fail(db, d.JSON)
			}
		}
	})
	r.clock.Store(time.Now().Add(-time.Hour).Unix())
	r.expected = r.tables()
	r.correct()
	r.retries(finished, failed)
	r.clock.Store(0)
	return r
}

// now is the container's clock.
func (r *rehearsal) now() time.Time {
	if at := r.clock.Load(); at != 0 {
		return time.Unix(at, 0)
	}
	return time.Now()
}

// correct edits rows by hand: one column of each, in one table or the other.
func (r *rehearsal) correct() {
	r.t.Helper()
	all := slices.Sorted(maps.Keys(r.newest))
	for i := 0; len(r.edited) < editedByHand; i++ {
		line := all[i*31%len(all)]
		if r.edited[line] || line > 7_000_000 {
			continue
		}
		table, column := expect.Detail, "CLN_MFR_PRT_NUM"
		if i%3 == 0 {
			table, column = expect.Tracking, "UNSPSC_CD"
		}
		text := fmt.Sprint("hand ", i)
		r.exec(r.t, r.db, fmt.Sprintf(`UPDATE %s SET %s = @p1 WHERE IVCE_DTL_UID = @p2`, table, column), text, line)
		r.expected[table][line][column] = &text
		r.edited[line] = true
	}
}

// retries puts documents in that failed before and are due now. The stale ones are for lines that hold a newer result:
// half of them were corrected by hand, three carry a failure mark.
func (r *rehearsal) retries(finished, failed []sample.Document) {
	r.t.Helper()
	put := func(i int, at time.Time, line int64) string {
		id := fmt.Sprintf("%s-9%03d-%d", at.Format("2006-01-02 15:04:05.000000-07:00"), i, line)
		r.put(
			json.RawMessage(
				fmt.Sprintf(
					`{"id":%q,"request_details":{"sys_name":"web"},"invoice_details_from_rpa":{"IVCE_DTL_UID":%d},
			"process_output":{"manufacturer_name":"RETRY %d","part_number":"R-%d","unspsc":"12345678","invoice_line_status":"RC-AI","data_verified":true},
			"sql_writer":{"status":"retry_scheduled","retry_count":2,"retry_after":%d.0,"last_error":"Connection timeout","last_error_at":"2025-12-17 10:30:00.000000-06:00"}}`,
					id, line, i, i, time.Now().Unix()-3600)))
		return id
	}
	edited := slices.Sorted(maps.Keys(r.edited))
	i := 0
	stale := func(line int64) {
		put(i, requestTime(r.t, r.newest[line]).Add(-time.Hour), line)
		i++
	}
	for _, line := range edited[:6] {
		stale(line)
	}
	for _, d := range finished {
		if line := d.Lines[0]; i < staleRetries-3 && !r.edited[line] && r.newest[line] == d.ID {
			stale(line)
		}
	}
	for _, d := range failed[:3] {
		stale(d.Lines[0])
	}
	require.Equal(r.t, staleRetries, i)
	for _, d := range slices.Backward(finished) {
		line := d.Lines[0]
		if i == staleRetries+freshRetries {
			break
		}
		if r.edited[line] || r.newest[line] != d.ID {
			continue
		}
		id := put(i, requestTime(r.t, d.ID).AddDate(0, 0, 1), line)
		r.newest[line] = id
		r.expectRows(id, line)
		i++
	}
}

// expectRows records that a line must have the content of a document at the end.
func (r *rehearsal) expectRows(id string, line int64) {
	r.t.Helper()
	rows, err := expect.RowsOf(r.results[id])
	require.NoError(r.t, err)
	for _, row := range rows {
		if row.Line != line {
			continue
		}
		maps.Copy(r.expected[expect.Detail][line], row.Detail)
		if r.expected[expect.Tracking][line] == nil {
			key := fmt.Sprint(line)
			r.expected[expect.Tracking][line] = expect.Row{"IVCE_DTL_UID": &key}
		}
		maps.Copy(r.expected[expect.Tracking][line], row.Tracking)
	}
}

// put writes a document into the container, as the API and the old writer do.
func (r *rehearsal) put(doc json.RawMessage) {
	r.t.Helper()
	id := idOf(r.t, doc)
	require.NoError(r.t, r.docs.Put(r.t.Context(), doc))
	r.results[id] = doc
}

// resetByHand sets committed documents back to pending without any change, as an operator may do. Their
// lines were corrected: nothing is to be written.
func (r *rehearsal) resetByHand() {
	r.t.Helper()
	for _, line := range slices.Backward(slices.Sorted(maps.Keys(r.edited))) {
		id := r.newest[line]
		whole := !slices.Contains(r.reset, id)
		for _, other := range r.linesOf(id) {
			whole = whole && r.newest[other] == id
		}
		if !whole {
			continue
		}
		r.reset = append(r.reset, id)
		var patch azcosmos.PatchOperations
		patch.AppendSet("/sql_writer/status", "pending")
		require.NoError(r.t, r.docs.Patch(r.t.Context(), id, patch))
		if len(r.reset) == resetByHand {
			break
		}
	}
	require.Len(r.t, r.reset, resetByHand)
	require.Eventually(r.t, func() bool { return r.statuses()["pending"] == 0 }, patience, 50*time.Millisecond)
}

func (r *rehearsal) linesOf(id string) []int64 {
	r.t.Helper()
	rows, err := expect.RowsOf(r.results[id])
	require.NoError(r.t, err)
	lines := make([]int64, len(rows))
	for i, row := range rows {
		lines[i] = row.Line
	}
	return lines
}

// resultsOfAWeek puts in what comes while the old writer is back: newer results for lines that both writers know, which
// it commits, and retries that are older than those and wait.
func (r *rehearsal) resultsOfAWeek() []json.RawMessage {
	r.t.Helper()
	var work []json.RawMessage
	lines := slices.Sorted(maps.Keys(r.newest))
	for i := range 8 {
		line := lines[i*17]
		at := time.Now().Add(-time.Duration(i) * time.Minute).UTC()
		work = append(work, r.result(at, line, fmt.Sprint("WEEK ", i), "pending"))
		r.put(r.result(at.Add(-time.Hour), line, "OLDER", `retry_scheduled`))
	}
	return work
}

// result makes a document for one line.
func (r *rehearsal) result(at time.Time, line int64, maker, status string) json.RawMessage {
	id := fmt.Sprintf("%s-8000-%d", at.Format("2006-01-02 15:04:05.000000-07:00"), line)
	return json.RawMessage(
		fmt.Sprintf(`{"id":%q,"request_details":{"sys_name":"web"},"invoice_details_from_rpa":{"IVCE_DTL_UID":%d},
		"process_output":{"manufacturer_name":%q,"invoice_line_status":"DS1"},"sql_writer":{"status":%q,"retry_count":0,"retry_after":1}}`, id, line, maker, status))
}

// requestTime is the time at the front of an id.
func requestTime(t *testing.T, id string) time.Time {
	t.Helper()
	const layout = "2006-01-02 15:04:05.000000-07:00"
	at, err := time.Parse(layout, id[:len(layout)])
	require.NoError(t, err)
	return at
}
