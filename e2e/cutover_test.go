package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"sqlwriter/cmd/local/expect"
	"sqlwriter/cmd/local/sample"
	"sqlwriter/internal/standin/cosmosdb"
	"sqlwriter/internal/standin/cosmosdb/cosmosdbtest"
)

// The size of the rehearsal: the figures of docs/cutover.md.
const (
	committedBefore = 2000
	editedByHand    = 50
	staleRetries    = 15 // results that are older than what their lines hold, three of them than a failure mark
	freshRetries    = 5  // results that are the newest of their lines
	failedBefore    = 20
	resetByHand     = 10
)

// TestCutoverRehearsal runs the commands of docs/cutover.md: afterwards no edit is overwritten and no row is stale.
func TestCutoverRehearsal(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engine) {
		r := newRehearsal(t, e)
		steps := commandsOf(t, "../docs/cutover.md")
		require.Equal(t, []string{
			"1. Our own tables", "2. Shadow: compare, and write nothing", "3. See what adopting would do", "4. Stop the old writer, and the shadow",
			"5. Adopt", "6. Live", "7. The way back",
		}, titles(steps), "this test knows every step of the page")

		r.run(steps[0])
		r.run(steps[1])
		r.requireShadowCompared()
		r.run(steps[2])
		dry := r.answer
		require.Zero(t, r.ledgerRows(), "a dry run writes nothing")
		r.run(steps[3])
		r.requireRefusal()
		r.killAdopting()
		r.run(steps[4])
		require.Equal(t, dry, r.answers["sqlwriterctl ledger adopt"], "the dry run foretold the receipt, in spite of the kill")
		r.requireAdopted()
		before := r.tables()
		r.command("sqlwriterctl ledger adopt") // once more: nothing
		r.command("sqlwriterctl ledger adopt --yes")
		r.requireLinesAsBefore(before)

		r.run(steps[5])
		r.drain()
		r.resetByHand()
		overwritten, stale := r.damage()
		require.Empty(t, overwritten, "edits that were overwritten")
		require.Empty(t, stale, "rows that are stale")
		r.requireStatuses(map[string]int{
			"committed": committedBefore - resetByHand, "failed": failedBefore, "committed superseded": staleRetries,
			"committed applied": freshRetries, "committed unchanged": resetByHand,
		})

		r.old.work = r.resultsOfAWeek()
		r.run(steps[6])
		r.drain()
		overwritten, stale = r.damage()
		require.Empty(t, overwritten)
		require.Empty(t, stale)
		require.Empty(t, r.old.work, "the old writer did its part")
	})
}

// TestCutoverWithoutAdoption is the rehearsal of somebody who says that there is no history: it shows that the check of the
// other one can fail.
func TestCutoverWithoutAdoption(t *testing.T) {
	r := newRehearsal(t, sqliteEngine(t))
	steps := commandsOf(t, "../docs/cutover.md")
	r.run(steps[0])
	r.command("sqlwriterctl ledger adopt --empty --yes")
	r.run(steps[3])
	r.run(steps[5])
	r.drain()
	r.resetByHand()
	overwritten, stale := r.damage()
	t.Logf("without adoption: %d of %d edits overwritten, %d rows stale", len(overwritten), editedByHand, len(stale))
	require.NotEmpty(t, overwritten)
	require.NotEmpty(t, stale)
}

// rehearsal is a container and a database with the old writer's history, and both apps' switches.
type rehearsal struct {
	*engine
	t        *testing.T
	cosmos   *cosmosdbtest.Running
	docs     *azcosmos.ContainerClient
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

// newRehearsal makes the history: what the old writer has committed and failed, what people have corrected since, and what
// waits.
func newRehearsal(t *testing.T, e *engine) *rehearsal {
	t.Helper()
	r := &rehearsal{
		engine: e, t: t, answers: map[string]string{}, edited: map[int64]bool{}, newest: map[int64]string{}, results: map[string]json.RawMessage{},
	}
	r.cosmos = cosmosdbtest.Start(t, func(o *cosmosdb.Options) { o.Now = r.now })
	r.docs = r.cosmos.Container(t, database, container, "/id")
	r.cosmos.Container(t, database, "leases", "/id")
	r.settings = map[string]string{
		"FUNCTIONS_WORKER_RUNTIME": "custom", "AzureWebJobsStorage": "UseDevelopmentStorage=true", "SYS_NAME": "web", "LEASE_PREFIX": "web-none-",
		"COSMOS_CONNECTION": r.cosmos.ConnectionString, "COSMOS_DATABASE": database, "COSMOS_CONTAINER": container, "LEASE_CONTAINER": "leases",
		"SQL_CONNECTION": e.connection,
	}
	r.old = &oldWriter{r: r, running: true}

	finished := sample.Generate(sample.Options{Seed: 11, Count: committedBefore, Clean: true})
	slices.SortFunc(finished, func(a, b sample.Document) int { return requestTime(t, a.ID).Compare(requestTime(t, b.ID)) })
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

// retries puts documents in that failed before and are due now. The stale ones are for lines that hold a newer result: half
// of them were corrected by hand, three carry a failure mark.
func (r *rehearsal) retries(finished, failed []sample.Document) {
	r.t.Helper()
	put := func(i int, at time.Time, line int64) string {
		id := fmt.Sprintf("%s-9%03d-%d", at.Format("2006-01-02 15:04:05.000000-07:00"), i, line)
		r.put(json.RawMessage(fmt.Sprintf(`{"id":%q,"request_details":{"sys_name":"web"},"invoice_details_from_rpa":{"IVCE_DTL_UID":%d},
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

// expectRows says that in the end a line holds a document.
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
	_, err := r.docs.UpsertItem(r.t.Context(), azcosmos.NewPartitionKeyString(id), doc, nil)
	require.NoError(r.t, err)
	r.results[id] = doc
}

// requireShadowCompared waits until the shadow has seen everything and requires that it found the edits, and nothing else.
func (r *rehearsal) requireShadowCompared() {
	r.t.Helper()
	health := r.app.health()
	require.Equal(r.t, "shadow", health["mode"])
	total := len(r.results)
	require.Eventually(r.t, func() bool { return r.app.seen() >= total }, patience, 50*time.Millisecond, "the shadow has not seen all of %d documents", total)
	outcomes, columns := r.app.outcomes()
	touched := map[string]bool{} // documents that a corrected line names as its newest
	for line := range r.edited {
		touched[r.newest[line]] = true
	}
	require.Equal(r.t, len(touched), outcomes["differs"], "%v", outcomes)
	require.Equal(r.t, []string{"IVCE_DTL.CLN_MFR_PRT_NUM", "IVCE_TRKG_MSTR.UNSPSC_CD"}, slices.Sorted(maps.Keys(columns)))
	require.Equal(r.t, committedBefore, outcomes["matches"]+outcomes["differs"]+outcomes["holds_newer"], "%v", outcomes)
	require.Positive(r.t, outcomes["holds_newer"])
	require.Equal(r.t, staleRetries+freshRetries, outcomes["would_be_applied"], "it has no ledger yet, and says what would happen without one")
	require.Equal(r.t, failedBefore, outcomes["skipped"])
	require.Zero(r.t, r.ledgerRows())
	require.Empty(r.t, r.differences(r.withoutFresh()), "the shadow wrote nothing")
	r.requireStatuses(map[string]int{"committed": committedBefore, "failed": failedBefore, "retry_scheduled": staleRetries + freshRetries})
}

// withoutFresh are the lines whose newest result waits still.
func (r *rehearsal) withoutFresh() map[int64]bool {
	waiting := map[int64]bool{}
	for line, id := range r.newest {
		waiting[line] = strings.Contains(string(r.results[id]), "retry_scheduled")
	}
	return waiting
}

// requireRefusal: somebody who is too early starts the app before the ledger is adopted. It writes nothing and says why.
func (r *rehearsal) requireRefusal() {
	r.t.Helper()
	early := maps.Clone(r.settings)
	early["MODE"], early["LEASE_PREFIX"] = "live", "web-early-"
	app := startApplication(r.t, early)
	require.Eventually(r.t, func() bool { return strings.Contains(fmt.Sprint(app.health()["problems"]), "ledger_not_adopted") },
		patience, 50*time.Millisecond)
	require.Contains(r.t, fmt.Sprint(app.health()["problems"]), "sqlwriterctl ledger adopt")
	require.Equal(r.t, "live", app.health()["status"])
	app.stop()
	require.Zero(r.t, r.ledgerRows())
	r.requireStatuses(map[string]int{"committed": committedBefore, "failed": failedBefore, "retry_scheduled": staleRetries + freshRetries})
}

// killAdopting starts the adoption and kills the process when some of its rows are written. What the page says next then
// goes on from there.
func (r *rehearsal) killAdopting() {
	r.t.Helper()
	rule, err := r.cosmos.Server.AddFault(cosmosdb.Rule{Op: cosmosdb.OpQuery, Container: container, Hold: cosmosdb.Before})
	require.NoError(r.t, err)
	cmd := r.ctl(r.t.Context(), "ledger", "adopt")
	require.NoError(r.t, cmd.Start())
	for page := 1; r.ledgerRows() == 0; page++ { // page by page
		require.Eventually(r.t, func() bool { return r.held(rule) >= page }, patience, time.Millisecond)
		if r.ledgerRows() == 0 {
			r.cosmos.Server.Release(rule)
		}
	}
	require.NoError(r.t, cmd.Process.Kill())
	require.Error(r.t, cmd.Wait())
	r.cosmos.Server.RemoveFault(rule)
	require.Less(r.t, r.ledgerRows(), len(r.newest)-freshRetries)
	require.Error(r.t, r.ctl(r.t.Context(), "ledger", "status").Run(), "the app does not commit yet")
	r.t.Logf("killed after %d ledger rows", r.ledgerRows())
}

// held is how many requests a rule has stopped so far.
func (r *rehearsal) held(rule string) int {
	for _, f := range r.cosmos.Server.Faults() {
		if f.ID == rule {
			return f.Hit
		}
	}
	return 0
}

// requireAdopted: the ledger names the newest finished result of every line, and the user's rows are as they were.
func (r *rehearsal) requireAdopted() {
	r.t.Helper()
	now := r.tables()
	waiting := r.withoutFresh()
	for line, id := range r.newest {
		row := now[expect.Ledger][line]
		require.NotNil(r.t, row, "line %d", line)
		want := "adopted"
		if line > 7_000_000 {
			want = "failed"
		}
		require.Equal(r.t, want, *row["outcome"], "line %d", line)
		if !waiting[line] {
			require.Equal(r.t, id, *row["document_id"], "line %d", line)
		}
	}
	require.Len(r.t, now[expect.Ledger], len(r.newest))
	require.Empty(r.t, r.differences(waiting))
}

func (r *rehearsal) requireLinesAsBefore(before expect.Tables) {
	r.t.Helper()
	now := r.tables()
	require.Equal(r.t, before, now, "adopting again changes nothing")
}

// drain waits until the live app has been offered every document and nothing is due any more.
func (r *rehearsal) drain() {
	r.t.Helper()
	total := len(r.results)
	require.Eventually(r.t, func() bool {
		return r.app.seen() >= total && r.statuses()["retry_scheduled"] == 0 && r.statuses()["pending"] == 0
	},
		patience, 50*time.Millisecond, "not everything came to its end: %d of %d documents, %v", r.app.seen(), total, r.statuses())
}

// resetByHand sets committed documents back to pending without any change, as somebody does who wants to be sure. Their
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
		_, err := r.docs.PatchItem(r.t.Context(), azcosmos.NewPartitionKeyString(id), id, patch, nil)
		require.NoError(r.t, err)
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

// resultsOfAWeek puts in what comes while the old writer is back: newer results for lines that both writers know, which it
// commits, and retries that are older than those and wait.
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
	return json.RawMessage(fmt.Sprintf(`{"id":%q,"request_details":{"sys_name":"web"},"invoice_details_from_rpa":{"IVCE_DTL_UID":%d},
		"process_output":{"manufacturer_name":%q,"invoice_line_status":"DS1"},"sql_writer":{"status":%q,"retry_count":0,"retry_after":1}}`, id, line, maker, status))
}

// damage compares the user's rows with what they must be: which corrections are gone, and which lines hold something else
// than their newest result says.
func (r *rehearsal) damage() (overwritten, stale []int64) {
	r.t.Helper()
	for _, line := range r.differences(nil) {
		if r.edited[line] {
			overwritten = append(overwritten, line)
		} else {
			stale = append(stale, line)
		}
	}
	return overwritten, stale
}

// differences lists the lines whose rows are not as expected, but for some.
func (r *rehearsal) differences(but map[int64]bool) []int64 {
	r.t.Helper()
	now := r.tables()
	var lines []int64
	for _, line := range slices.Sorted(maps.Keys(r.expected[expect.Detail])) {
		if but[line] {
			continue
		}
		for _, table := range []string{expect.Detail, expect.Tracking} {
			if !sameRow(r.expected[table][line], now[table][line]) {
				lines = append(lines, line)
				break
			}
		}
	}
	return lines
}

// sameRow compares the columns that are expected.
func sameRow(want, got expect.Row) bool {
	if (want == nil) != (got == nil) {
		return false
	}
	for column, w := range want {
		g, there := got[column]
		if !there || (w == nil) != (g == nil) || w != nil && *w != *g {
			return false
		}
	}
	return true
}

// statuses counts the documents by status and outcome.
func (r *rehearsal) statuses() map[string]int {
	r.t.Helper()
	counts := map[string]int{}
	pager := r.docs.NewQueryItemsPager("SELECT c.sql_writer.status, c.sql_writer.outcome FROM c", azcosmos.NewPartitionKey(), &azcosmos.QueryOptions{PageSizeHint: 1000})
	for pager.More() {
		page, err := pager.NextPage(r.t.Context())
		require.NoError(r.t, err)
		for _, raw := range page.Items {
			var s struct{ Status, Outcome string }
			require.NoError(r.t, json.Unmarshal(raw, &s))
			counts[strings.TrimSpace(s.Status+" "+s.Outcome)]++
		}
	}
	return counts
}

func (r *rehearsal) requireStatuses(want map[string]int) {
	r.t.Helper()
	require.Equal(r.t, want, r.statuses())
}

// requestTime is the time at the front of an id.
func requestTime(t *testing.T, id string) time.Time {
	t.Helper()
	const layout = "2006-01-02 15:04:05.000000-07:00"
	at, err := time.Parse(layout, id[:len(layout)])
	require.NoError(t, err)
	return at
}

// section is one step of the page and its commands.
type section struct {
	title    string
	commands []string
}

// commandsOf reads the shell blocks of a page by its headings. Headings without a command are left out.
func commandsOf(t *testing.T, path string) []section {
	t.Helper()
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	var all []section
	shell := false
	for line := range strings.Lines(string(page)) {
		line = strings.TrimSpace(line)
		title, heading := strings.CutPrefix(line, "## ")
		switch {
		case heading:
			all = append(all, section{title: title})
		case line == "```sh":
			shell = true
		case line == "```":
			shell = false
		case shell && line != "" && !strings.HasPrefix(line, "#"):
			require.NotEmpty(t, all)
			all[len(all)-1].commands = append(all[len(all)-1].commands, line)
		}
	}
	return slices.DeleteFunc(all, func(s section) bool { return len(s.commands) == 0 })
}

func titles(steps []section) []string {
	var all []string
	for _, s := range steps {
		all = append(all, s.title)
	}
	return all
}

// run runs the commands of a step.
func (r *rehearsal) run(step section) {
	r.t.Helper()
	for _, c := range step.commands {
		r.command(c)
	}
}

// command runs one command of the page. sqlwriterctl is the real one; what switches apps switches those of the rehearsal.
// A command that this does not know fails: the page then says more than the test does.
func (r *rehearsal) command(line string) {
	r.t.Helper()
	r.t.Logf("$ %s", line)
	const group = ` --name $APP --resource-group $GROUP`
	settings, configures := strings.CutPrefix(line, "az functionapp config appsettings set"+group+" --settings ")
	arguments, ctl := strings.CutPrefix(line, "sqlwriterctl ")
	switch {
	case ctl:
		cmd := r.ctl(r.t.Context(), strings.Fields(arguments)...)
		var notes strings.Builder
		cmd.Stderr = &notes
		out, err := cmd.Output()
		require.NoError(r.t, err, notes.String())
		r.answer, r.answers[line] = string(out), string(out)
	case configures:
		for _, s := range strings.Fields(settings) {
			name, value, ok := strings.Cut(s, "=")
			require.True(r.t, ok, s)
			r.settings[name] = value
		}
	case line == "az functionapp start"+group:
		require.Nil(r.t, r.app)
		require.False(r.t, r.old.running && r.settings["MODE"] == "live", "two writers at once are never right")
		r.app = startApplication(r.t, r.settings)
	case line == "az functionapp stop"+group:
		if r.app != nil {
			r.app.stop()
			r.app = nil
		}
	case line == "az webapp stop --name $OLD_APP --resource-group $GROUP":
		r.old.running = false
	case line == "az webapp start --name $OLD_APP --resource-group $GROUP":
		require.Nil(r.t, r.app)
		r.old.start()
	case line == "curl -fsS --retry 30 --retry-all-errors https://$APP.azurewebsites.net/api/health":
		require.Eventually(r.t, func() bool { return r.app.health()["status"] == "ready" }, patience, 50*time.Millisecond, "%v", r.app.health())
	default:
		require.Fail(r.t, "docs/cutover.md names a command that the rehearsal does not know", line)
	}
}

// ctl is the real sqlwriterctl with the connections in its environment.
func (r *rehearsal) ctl(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, ctlBinary(r.t), args...)
	cmd.Dir = r.t.TempDir()
	for name, value := range r.settings {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	cmd.Env = append(cmd.Env, "HOME="+cmd.Dir, "TMPDIR="+cmd.Dir)
	return cmd
}

// ctlBinary builds sqlwriterctl beside the staged script root, once.
func ctlBinary(t *testing.T) string {
	t.Helper()
	path := filepath.Join(filepath.Dir(scriptRoot), "sqlwriterctl")
	if _, err := os.Stat(path); err == nil {
		return path
	}
	out, err := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", path, "../cmd/sqlwriterctl").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return path
}

// The page says what it promises in numbers; they are the rehearsal's.
func TestTheCutoverPageNamesTheFiguresOfItsRehearsal(t *testing.T) {
	page, err := os.ReadFile("../docs/cutover.md")
	require.NoError(t, err)
	text := regexp.MustCompile(`\s+`).ReplaceAllString(string(page), " ")
	for _, want := range []string{
		"2,000 documents that were committed the old way", fmt.Sprintf("%d rows edited by hand", editedByHand),
		fmt.Sprintf("%d old retries due", staleRetries+freshRetries),
	} {
		require.Contains(t, text, want)
	}
	require.Equal(t, 2000, committedBefore)
}
