package comparison

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/adopt"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/reconcile"
	"sqlwriter/internal/run"
	"sqlwriter/internal/store/sqlite"
	"sqlwriter/test/mapping"
	"sqlwriter/test/sqlitetest"
)

// mappedVariable is how many lines TestAChangedMapping has; 2,000 without it.
const mappedVariable = "SQLWRITER_MAPPED"

// deploys installs a build with another mapping on the world's database: migrate up, and then the app.
func (w *world) deploys(file string, m *invoice.Mapping) {
	w.Helper()
	s := sqlitetest.Open(w, file, sqlite.Options{Mapping: m})
	require.NoError(w, s.Migrate(w.Context()))
	_, err := s.Writer().ExecContext(w.Context(), "PRAGMA synchronous = OFF")
	require.NoError(w, err)
	w.reader = invoice.Reader{Mapping: m}
	w.mappings = s.Mappings
	w.adoption = s
	w.db = sqliteOf(s)
	w.db.Findings = worldsClock{w.db.Findings, w.now}
	w.options.Reader = w.reader
	w.commit = commit.NewCommit(w.container.documents, w.db.sink, w.committing())
	w.opens()
}

// changed is a ledger of which people have changed some lines.
type changedLedger struct {
	*world
	file  string
	lines int
	// edited are lines that people corrected, filled those with somebody's value in the column that comes, and reviewed
	// those with a steward's status.
	edited, filled, reviewed []int64
}

// TestAChangedMapping changes the mapping of a ledger with history: by a column more, one less, one renamed, and back.
// No comparison calls a line edited that nobody edited, and nothing writes over what people did.
func TestAChangedMapping(t *testing.T) {
	n := 2000
	if testing.Short() {
		n = 600
	}
	if most, err := strconv.Atoi(os.Getenv(mappedVariable)); err == nil {
		n = most
	}
	l := ledgerWithHistory(t, n)
	said := time.Now()
	took := func(what string) {
		t.Logf("%d lines: %s: %.1f s", l.lines, what, time.Since(said).Seconds())
		said = time.Now()
	}
	left := slices.Concat(l.edited, l.filled)
	now, before := mapping.InUse(), l.reader.Mapping
	reindex := ops.StartRequest{Kind: run.Reindex, All: true, Why: "the mapping is another"}

	l.deploys(l.file, now)
	l.finds(l.compare(false), "a column more", nil)
	took("compared with a column more")
	l.keep()
	l.outcomes(l.startHere(reindex), map[invoice.Outcome]int{
		invoice.OutcomeEdited: len(l.edited), invoice.OutcomeNotComparable: len(l.filled),
	})
	took("reindex")
	l.same("the lines that people changed", left, "*")
	l.same("all but the column that came", nil, l.columns("IVCE_DTL", added))
	require.Equal(t, l.lines-len(left), l.count("IVCE_DTL", added+" = 'web_search_url'"), "each other line is filled")
	l.finds(l.compare(false), "filled", nil)
	took("compared when filled")

	for _, c := range []struct {
		name string
		m    *invoice.Mapping
		// comparable are the lines that the mapping can compare: those of a version whose columns it has.
		comparable []int64
	}{
		{"a column less", mapping.Without(invoice.Tracking, "UPC_CD"), nil},
		{"a column renamed", mapping.Changed(func(tables map[invoice.Table]*mapping.Table) {
			tables[invoice.Tracking].Column("RQST_TS")["name"] = "REQUEST_TIME"
		}), nil},
		{"the mapping taken back", before, left},
	} {
		l.keep()
		l.deploys(l.file, c.m)
		night := l.compare(false)
		rest := map[int]int{now.Version(): l.lines - len(left), before.Version(): len(left)}
		edited := 0
		if len(c.comparable) > 0 {
			delete(rest, before.Version())
			edited = len(l.edited)
		}
		require.Equal(t, rest, night.compared.Versions(), c.name)
		require.Equal(t, edited, night.counts()[reconcile.Edited], c.name)
		require.Len(t, l.found(), edited, "%s: nothing else is found", c.name)
		says := l.says()
		for version, lines := range rest {
			require.Contains(t, says, fmt.Sprintf("%d lines of mapping %d: its columns ", lines, version), c.name)
		}
		outcomes := l.startHere(reindex)
		require.Zero(t, outcomes[invoice.OutcomeFailed]+outcomes[invoice.OutcomeUnchanged], "%v", outcomes)
		if len(c.comparable) == 0 {
			require.Zero(t, outcomes[invoice.OutcomeApplied], "%s: nobody can tell what people edited", c.name)
		}
		l.same(c.name, nil, "*")
		took(c.name)
		l.deploys(l.file, now)
		l.finds(l.compare(false), c.name+", and back", nil)
		l.same(c.name+", and back", nil, "*")
		took(c.name + ", and back")
	}
}

// mappedWorld is a world on a file, with a build that lacks the added column.
func mappedWorld(t *testing.T) (w *world, file string, before *invoice.Mapping) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "comparison.db")
	w = newWorld(t, func(t testing.TB, _ func() time.Time) database {
		t.Helper()
		return sqliteIn(t, file) // the user's tables have all columns
	}, inMemoryContainer)
	before = mapping.Without(invoice.Detail, added)
	w.deploys(file, before)
	return w, file, before
}

// Two builds with two mappings run side by side, one is rolled back, and comes again. Neither writes again what the
// other wrote, and each compares what it can.
func TestTwoBuildsWithTwoMappings(t *testing.T) {
	w, file, before := mappedWorld(t)
	now := mapping.InUse()
	build := func(m *invoice.Mapping) { w.deploys(file, m) }
	ids := w.consistent(1, 4) // lines 1, 2, 3 with a duplicate, 4
	offered := w.raw(ids...)
	w.offer(ids[0], ids[2])
	build(now)
	w.offer(ids[1])
	kept := w.db.everything(t)
	for _, m := range []*invoice.Mapping{now, before} { // the feed repeats what each of them wrote
		build(m)
		report, err := w.commit.Run(t.Context(), commit.Delivery{Documents: offered[:3], Received: w.now()})
		require.NoError(t, err)
		require.Equal(t, []int{3, 1}, []int{report.Outcomes[invoice.OutcomeSkipped], report.SQLRequests},
			"SQL was asked, and the documents are committed already")
		require.Equal(t, kept, w.db.everything(t), "nothing is written again")
	}

	// Rolled back: the line of the other build cannot be compared, and new content is written.
	w.pass(day)
	require.Equal(t, map[int]int{now.Version(): 1}, w.compare(true).compared.Versions())
	require.Empty(t, w.found())
	w.rewrite(ids[1], func(members map[string]any) {
		members["process_output"].(map[string]any)["manufacturer_name"] = "NEW"
		members["sql_writer"] = map[string]any{"status": "pending", "retry_count": 0}
	})
	w.offer(ids[1], ids[3])
	require.Equal(t, "NEW", value(w.lines(2)[2], invoice.Detail, "CLN_MFR_AI_NM"))
	w.pass(day)
	n := w.compare(true)
	require.Empty(t, n.compared.Versions())
	require.Empty(t, w.found())

	// And forward: the lines are compared by the mapping that wrote them, whatever the other column has.
	build(now)
	w.db.set(t, invoice.Detail, "UPC_CD", "EDITED", 4)
	w.db.remove(t, invoice.Tracking, 1)
	w.pass(day)
	n = w.compareAlone(true)
	require.Empty(t, n.compared.Versions())
	require.Equal(t, map[reconcile.Key]bool{
		{Class: reconcile.Edited, Line: 4, Document: ids[3]}:          true,
		{Class: reconcile.TrackingMissing, Line: 1, Document: ids[0]}: true,
	}, keys(w.found()))

	// Findings of one build's night are of lines that the other build does not write again unless it is told.
	build(mapping.Without(invoice.Tracking, "UPC_CD"))
	for _, told := range []bool{false, true} {
		request := ops.StartRequest{Kind: run.Reindex, IDs: ids[:1], NotComparable: told, Why: "a test"}
		if !told {
			request = ops.StartRequest{
				Kind: run.Reindex, Findings: []reconcile.Class{reconcile.TrackingMissing}, Why: "a test",
			}
		}
		want := map[bool]invoice.Outcome{false: invoice.OutcomeNotComparable, true: invoice.OutcomeApplied}[told]
		require.Equal(t, map[invoice.Outcome]int{want: 1}, w.startHere(request))
	}
}

// raw are documents as they are now.
func (w *world) raw(ids ...string) []json.RawMessage {
	w.Helper()
	raws, err := w.container.documents.ReadMany(w.Context(), ids)
	require.NoError(w, err)
	return raws
}

// A ledger is adopted under one mapping, and the work goes on under another.
func TestAdoptedUnderAnotherMapping(t *testing.T) {
	w, file, before := mappedWorld(t)
	var lines []int64
	var ids []string
	for line := int64(1); line <= 5; line++ {
		lines = append(lines, line)
		ids = append(ids, w.put(documentOf(idOf(line), line, "ACME", w.committedAt(w.now()))))
	}
	w.db.addLines(w, lines...)
	adopted := func(m *invoice.Mapping) adopt.Counts {
		state, err := adopt.New(w.container.finder, w.adoption, adopt.Options{
			SysName: sysName, Reader: invoice.Reader{Mapping: m}, By: "ann", Now: w.now, Wait: w.wait,
		}).Run(t.Context())
		require.NoError(t, err)
		return state.Counts
	}
	require.Equal(t, 5, adopted(before).Adopted)
	now := mapping.InUse()
	w.deploys(file, now)
	kept := w.db.content(t, "sqlwriter_ledger")
	again := adopted(now)
	require.Equal(t, []int{0, 5, 0}, []int{again.Adopted, again.Kept(), again.Unproven})
	require.Equal(t, kept, w.db.content(t, "sqlwriter_ledger"), "the ledger has the documents already")

	w.pass(day)
	n := w.compare(true)
	require.Equal(t, map[reconcile.Class]int{reconcile.NotComparable: 5, reconcile.Consistent: 5}, n.counts(),
		"nobody has hashes of the rows, and the content is as the adoption found it")
	require.Empty(t, n.compared.Versions(), "no mapping makes them comparable")
	require.Empty(t, w.found())
	for id, maker := range map[string]string{ids[0]: "ACME", ids[1]: "NEW"} {
		w.rewrite(id, func(members map[string]any) {
			members["process_output"].(map[string]any)["manufacturer_name"] = maker
			members["sql_writer"] = map[string]any{"status": "pending", "retry_count": 0}
		})
	}
	w.offer(ids[:2]...)
	for line, maker := range map[int64]string{1: "ACME", 2: "NEW"} {
		l := w.lines(line)[line]
		require.Equal(t, []string{maker, "web_search_url"},
			[]string{value(l, invoice.Detail, "CLN_MFR_AI_NM"), value(l, invoice.Detail, added)})
		require.Equal(t, reconcile.RowsSame, l.Rows)
	}
}

// added is the column of IVCE_DTL that the mapping in use has and the one before it had not.
const added = "WEB_SRCH_URL"

// ledgerWithHistory has about n lines, in documents with one line and with three. 50 are edited, half of them beside
// two others; 20 have somebody's value in the column that comes; 30 have a steward's status.
func ledgerWithHistory(t *testing.T, n int) *changedLedger {
	t.Helper()
	l := &changedLedger{}
	l.world, l.file, _ = mappedWorld(t)
	l.exec("ALTER TABLE IVCE_TRKG_MSTR ADD COLUMN REQUEST_TIME TEXT")
	began := time.Now()
	var ids []string
	var main, sisters []int64
	for line := int64(1); l.lines < n; line++ {
		var duplicates []int64
		if line%2 == 0 {
			duplicates = []int64{duplicateOf + 2*line, duplicateOf + 2*line + 1}
			sisters = append(sisters, duplicates[0])
		} else {
			main = append(main, line)
		}
		l.db.addLines(l, append(duplicates, line)...)
		ids = append(ids, l.put(document(line, duplicates...)))
		l.lines += 1 + len(duplicates)
	}
	l.offer(ids...)
	l.pass(day)
	t.Logf("%d documents with %d lines: %.1f s", len(ids), l.lines, time.Since(began).Seconds())
	some := func(of []int64, from, n int) []int64 { return slices.Clone(of[from : from+n]) }
	l.edited = slices.Concat(some(main, 10, 25), some(sisters, 10, 25))
	l.filled = slices.Concat(some(main, 50, 10), some(sisters, 50, 10))
	l.reviewed = slices.Concat(some(main, 80, 15), some(sisters, 80, 15))
	l.db.set(l, invoice.Detail, "UPC_CD", "CORRECTED", l.edited...)
	l.db.set(l, invoice.Detail, added, "SOMEBODYS", l.filled...)
	l.db.set(l, invoice.Detail, "IVCE_LNE_STAT", "REVIEWED", l.reviewed...)
	return l
}

func (l *changedLedger) exec(statement string) {
	l.Helper()
	_, err := l.db.db.ExecContext(l.Context(), statement)
	require.NoError(l, err, statement)
}

// keep keeps the user's tables as they are now.
func (l *changedLedger) keep() {
	l.Helper()
	for _, table := range []string{"IVCE_DTL", "IVCE_TRKG_MSTR"} {
		l.exec("DROP TABLE IF EXISTS kept_" + table)
		l.exec("CREATE TABLE kept_" + table + " AS SELECT * FROM " + table)
	}
}

// columns are all columns of a table but one.
func (l *changedLedger) columns(table, but string) (names string) {
	l.Helper()
	require.NoError(l, l.db.db.QueryRowContext(l.Context(),
		"SELECT group_concat(name, ', ') FROM pragma_table_info(?) WHERE name <> ?", table, but).Scan(&names))
	return names
}

// same requires that columns of IVCE_DTL, and all of IVCE_TRKG_MSTR, are as they were kept. nil means every line.
func (l *changedLedger) same(what string, ids []int64, columns string) {
	l.Helper()
	for table, columns := range map[string]string{"IVCE_DTL": columns, "IVCE_TRKG_MSTR": "*"} {
		where := "TRUE"
		if ids != nil {
			where = "IVCE_DTL_UID IN (" + strings.Trim(strings.Join(strings.Fields(fmt.Sprint(ids)), ", "), "[]") + ")"
		}
		n := 0
		require.NoError(l, l.db.db.QueryRowContext(l.Context(), fmt.Sprintf(
			"SELECT COUNT(*) FROM (SELECT %[1]s FROM %[2]s WHERE %[3]s EXCEPT SELECT %[1]s FROM kept_%[2]s)",
			columns, table, where)).Scan(&n))
		require.Zero(l, n, "%s: rows of %s are others", what, table)
	}
}

func (l *changedLedger) count(table, where string) (n int) {
	l.Helper()
	require.NoError(l,
		l.db.db.QueryRowContext(l.Context(), "SELECT COUNT(*) FROM "+table+" WHERE "+where).Scan(&n))
	return n
}

// finds requires of a night that it found the edits and nothing else.
func (l *changedLedger) finds(n night, what string, versions map[int]int) {
	l.Helper()
	counts := n.counts()
	if versions == nil {
		versions = map[int]int{}
	}
	require.Equal(l, versions, n.compared.Versions(), what)
	require.Zero(l, counts[reconcile.NotComparable], what)
	require.Equal(l, len(l.edited), counts[reconcile.Edited], what)
	require.Equal(l, len(l.reviewed), counts[reconcile.Reviewed], what)
	var found []int64
	for _, f := range l.found() {
		require.Equal(l, reconcile.Edited, f.Class, "%s: %s", what, f.Detail)
		require.Equal(l, "differs in IVCE_DTL.UPC_CD", f.Detail, what)
		found = append(found, f.Line)
	}
	slices.Sort(found)
	require.Equal(l, slices.Sorted(slices.Values(l.edited)), found, what)
	require.Empty(l, n.mended, what)
}

// outcomes requires those of documents that were left alone; all others were applied.
func (l *changedLedger) outcomes(got, left map[invoice.Outcome]int) {
	l.Helper()
	got = maps.Clone(got)
	applied := got[invoice.OutcomeApplied]
	delete(got, invoice.OutcomeApplied)
	require.Equal(l, left, got)
	require.Positive(l, applied)
}

// says is what the status says of findings.
func (l *changedLedger) says() string {
	l.Helper()
	page, err := l.ops.FindingList(l.operator(), ops.FindingQuery{})
	require.NoError(l, err)
	return page.Found.Says
}
