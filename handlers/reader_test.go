package handlers

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/opsapi"
	"sqlwriter/internal/reconcile"
	"sqlwriter/internal/run"
	"sqlwriter/test/inmem"
)

// Values that stand in no other place than a planted document or its line.
const (
	goodValue   = "SECRET-GOOD-7H3"  // of a document that is committed, and of its line before an edit
	editedValue = "SECRET-EDIT-9K1"  // of the line since
	badValue    = "SECRET-BAD-4M8"   // of a document that validation refuses and quotes
	quotedValue = "SECRET-QUOTE-5T0" // in each text of a failure that a document holds
	oldValue    = "SECRET-OLD-2P6"   // of that document's line in SQL
)

func secrets() []string { return []string{goodValue, editedValue, badValue, oldValue, quotedValue} }

// The planted documents and their lines.
const (
	goodID, goodLine     = "2025-12-17 10:30:00.000000-06:00-0001-1", 1
	badID, badLine       = "2025-12-17 10:30:00.000000-06:00-0001-2", 2
	quotedID, quotedLine = "2025-12-17 10:30:00.000000-06:00-0001-3", 3
)

// planted are the use cases over documents and lines with the planted values: one document is committed and a person
// edited its line, so that a comparison has a finding; two have failed, one of them in a run and with evidence.
type planted struct {
	*ops.Ops
	run     string
	finding string
}

func plant(t *testing.T) planted {
	t.Helper()
	now := time.Date(2025, 12, 18, 16, 0, 0, 0, time.UTC)
	at := func() time.Time { return now }
	docs, sink, store, evidence := inmem.NewDocuments(at), inmem.NewSink(),
		inmem.NewRunStore(at, "web"), inmem.NewEvidenceOn(at)
	document := func(id string, line int64, manufacturer, unspsc, state string) {
		require.NoError(t,
			docs.Put(
				json.RawMessage(
					fmt.Sprintf(
						`{"id":%q,"request_details":{"sys_name":"web","id":"r-1"},"invoice_details_from_rpa":{"IVCE_DTL_UID":%d},
			"process_output":{"manufacturer_name":%q,"part_number":"4","unspsc":%q,"invoice_line_status":"RC-AI"},"sql_writer":%s}`, id, line, manufacturer, unspsc, state))))
	}
	column := func(line int64, value string) {
		l, there := sink.Line(line)
		require.True(t, there)
		for i, c := range invoice.DefaultMapping().Columns() {
			if c.Name == "CLN_MFR_AI_NM" {
				l.Values[i] = invoice.Of(value)
			}
		}
		sink.SetLine(line, l)
	}
	sink.AddLines(goodLine, badLine, quotedLine)
	column(quotedLine, oldValue)
	document(goodID, goodLine, goodValue, "39131711", `{"status":"pending"}`)
	document(badID, badLine, "M", badValue, `{"status":"pending"}`)
	quoted := `{"status":"failed","retry_count":5,"failed_at":"2025-12-18 09:00:00.000000-06:00","last_error":"@","last_error_kind":"document","last_error_code":"2628",
		"last_error_at":"2025-12-18 09:00:00.000000-06:00","error":"@","final_error":"@","attempts":[{"at":"2025-12-18 09:00:00.000000-06:00","kind":"document","code":"2628","error":"@"}]}`
	document(quotedID, quotedLine, "M", "39131711", strings.ReplaceAll(quoted, "@", "found "+quotedValue))

	flow := breaker.New(inmem.NewControl(),
		breaker.Options{Build: "v1", SysName: "web", Heartbeat: sink.Heartbeat, TakeOver: sink.TakeOver, Now: at})
	committer := commit.NewCommit(docs, sink,
		commit.Options{SysName: "web", Breaker: flow, Evidence: evidence, Container: "docs", AppVersion: "v1", Now: at})
	ports := run.Ports{Store: store, Finder: docs, Documents: docs, Breaker: flow, Commit: committer}
	executor := run.NewExecutor(ports,
		run.Options{SysName: "web", Now: at, Wait: func(_ context.Context, d time.Duration) error {
			now = now.Add(d)
			return nil
		}})
	o := ops.New(ops.Ports{
		Documents: docs, Finder: docs, Breaker: flow, RunQueue: inmem.NewQueue(nil), Counts: &inmem.Counts{},
		ReportNames: []run.ReportName{{Name: "runs", Meaning: "the latest"}}, Evidence: evidence, Creator: docs,
		Stores: func(context.Context) (ops.Stores, error) {
			return ops.Stores{
				Audit: store.AuditLog(), Runs: store, Reports: oneTable{}, Ledger: noLedger{}, Executor: executor,
				Findings: store.Findings(sink),
				Check:    func(context.Context) error { return nil }, Mapping: invoice.DefaultMapping(),
				Preview: func(ctx context.Context, items []commit.Item) ([]commit.DocumentOutcome, error) {
					return sink.Apply(ctx, items, commit.Preview, breaker.Heartbeat{})
				},
			}, nil
		},
	}, ops.Options{SysName: "web", Now: at})

	// The bad document fails in a run, and often enough for evidence. Another document is applied after each failure,
	// so that it counts.
	ctx, p := ops.WithActor(t.Context(), "Ann"), planted{Ops: o}
	execute := func(r run.Run) {
		require.NoError(t,
			store.StartRun(ctx, r,
				run.Audit{Action: run.CodeRunStart, Level: run.LevelInfo, By: "Ann", Why: "w", Run: r.ID}))
		_, err := executor.Execute(ctx, r.ID)
		require.NoError(t, err)
	}
	p.run = "drain-1"
	execute(run.Run{ID: p.run, SysName: "web", Kind: run.Drain, RequestedBy: "Ann", Why: "w"})
	for n := range 7 {
		now = now.Add(2 * time.Hour)
		line := int64(100 + n)
		sink.AddLines(line)
		other := fmt.Sprintf("2025-12-17 10:30:00.000000-06:00-0001-%d", line)
		document(other, line, "M", "39131711", `{"status":"pending"}`)
		raws, err := docs.ReadMany(ctx, []string{other, badID})
		require.NoError(t, err)
		_, err = committer.Run(ctx, commit.Delivery{Documents: raws, Received: now, Purpose: commit.FromTimer})
		require.NoError(t, err)
	}
	column(goodLine, editedValue)
	now = now.Add(time.Hour)
	compares := reconcile.New(reconcile.Ports{
		Rows: sink.ReconcileRows("web", 0), Findings: store.Findings(sink), Finder: docs, Breaker: flow,
		Mend: func(context.Context, string) error { return nil },
	}, reconcile.Options{SysName: "web", Now: at})
	for range 5 { // two looks
		_, err := compares.Tick(ctx)
		require.NoError(t, err)
		now = now.Add(10 * time.Minute)
	}
	open, err := o.FindingList(ctx, ops.FindingQuery{})
	require.NoError(t, err)
	p.finding = open.Findings[0].Name
	require.NoError(t, o.SaveCounts(ctx))
	shown, err := o.Why(ctx, ops.WhyQuery{ID: badID})
	require.NoError(t, err)
	require.Equal(t, "failed", shown.Status)
	return p
}

// asked are the requests of each reading call about what is planted.
func (p planted) asked() map[string][]string {
	bad, good, quoted := url.QueryEscape(badID), url.QueryEscape(goodID), url.QueryEscape(quotedID)
	return map[string][]string{
		"status.get":    {"status", "status?day=true"},
		"document.list": {"documents", "documents?line=2", "documents?request=r-1", "documents?status=failed"},
		"document.why": {
			"documents/why?id=" + bad, "documents/why?id=" + good, "documents/why?id=" + quoted, "documents/why?line=2",
		},
		"document.diff": {"documents/diff?ids=" + bad, "documents/diff?ids=" + good + "," + quoted},
		"run.list":      {"runs"}, "run.show": {"runs/progress?run=" + p.run}, "run.items": {"runs/items?run=" + p.run},
		"batch.list":    {"batches", "batches?run=" + p.run, "batches?batch=" + p.run + "/1"},
		"finding.list":  {"findings", "findings?classes=edited", "findings?finding=" + url.QueryEscape(p.finding)},
		"evidence.show": {"evidence/detail?id=" + bad},
		"evidence.get":  {"evidence/content?id=" + bad, "evidence/content?file=error.json&id=" + bad},
		"audit.list":    {"audits?all=true&limit=1000"}, "report.show": {"reports", "reports?name=runs"},
		"api.show": {"openapi.json"},
	}
}

// pagesFrom are the pages that links lead to from a page, and the page itself. Each is visited once.
func pagesFrom(t *testing.T, site Mounted, who string, from ...string) map[string]string {
	t.Helper()
	bodies := map[string]string{}
	for len(from) > 0 {
		path := from[0]
		from = from[1:]
		if _, visited := bodies[path]; visited || strings.HasPrefix(path, "assets/") {
			continue
		}
		bodies[path] = get(path).as(who).call(t, site).Body
		from = append(from, linksOf(bodies[path])...)
	}
	return bodies
}

// linksOf are the pages that links and forms of a page lead to.
func linksOf(body string) (paths []string) {
	for _, m := range regexp.MustCompile(`(?:href|action)="/api/ui/([^"]*)"`).FindAllStringSubmatch(body, -1) {
		paths = append(paths, html.UnescapeString(m[1]))
	}
	return paths
}

// Two clicks lead from the overview to why a document failed.
func TestADocumentsAnswerIsTwoClicksFromTheOverview(t *testing.T) {
	p := plant(t)
	open := func(path string) string {
		return get(path).as(person("name", "Ann", "roles", "Reader")).call(t, signedInUI(p.Ops)).Body
	}
	clicks := map[string]int{}
	for _, first := range linksOf(open("")) {
		clicks[first] = 1
		for _, second := range linksOf(open(first)) {
			if clicks[second] == 0 {
				clicks[second] = 2
			}
		}
	}
	for id, says := range map[string]string{
		badID:    "process_output.unspsc: expected text of at most 10 characters",
		quotedID: "after 5 of 5 retries: document 2628",
	} {
		path := "document?id=" + url.QueryEscape(id)
		require.NotZero(t, clicks[path], "%s: more than two clicks from the overview", id)
		require.Contains(t, open(path), says, id)
	}
}

// A reader sees no value of a document or of a row: in no answer of a call and on no page. An operator sees them, which
// shows that they are there to be seen.
func TestAReaderSeesNoValues(t *testing.T) {
	p := plant(t)
	seen := map[string]bool{}
	look := func(role, where, text string) {
		for _, s := range secrets() {
			if !strings.Contains(text, s) {
				continue
			}
			seen[role+s] = true
			if role == "Reader" {
				i := strings.Index(text, s)
				t.Errorf("%s: a reader sees %s: ...%s...", where, s, text[max(0, i-200):min(len(text), i+60)])
			}
		}
	}
	asked := p.asked()
	for _, row := range opsapi.Table() {
		paths, known := asked[row.Name]
		require.True(t, known || row.Method == http.MethodPost,
			"%s: what does it say of the planted documents?", row.Name)
		for _, role := range []string{"Reader", "Operator"} {
			who := person("name", "Ann", "roles", role)
			for _, path := range paths {
				got := opsCall{
					method: row.Method, path: "v1/" + path, identities: keyed(strings.ToLower(role)),
				}.call(t, Ops(opened(p.Ops)))
				look(role, "Ops "+path, got.Body+got.log)
				require.Equal(t, role == "Reader" && row.Role == opsapi.Operator, got.Status == "403",
					"%s %s: %s", role, path, got.Body)
				look(role, "Ui "+path,
					opsCall{
						method: row.Method, path: "api/v1/" + path, identities: who,
					}.call(t, signedInUI(p.Ops)).Body)
			}
		}
		if row.Method == http.MethodPost {
			got := opsCall{
				method: row.Method, path: "v1/" + row.Path, body: "{}", identities: keyed("reader"),
			}.call(t, Ops(opened(p.Ops)))
			require.Equal(t, "403", got.Status, row.Name)
		}
	}
	typed := []string{
		"", "document?find=" + strconv.Itoa(goodLine), "document?id=" + url.QueryEscape(badID), "document?line=3",
		"retry?status=failed", "findings?finding=" + url.QueryEscape(p.finding),
	}
	for _, role := range []string{"Reader", "Operator"} {
		pages := pagesFrom(t, signedInUI(p.Ops), person("name", "Ann", "roles", role), typed...)
		require.Greater(t, len(pages), 25, "links were followed")
		for path, body := range pages {
			look(role, "page "+path, body)
		}
	}
	for _, s := range secrets() {
		require.True(t, seen["Operator"+s], "an operator sees %s", s)
	}
}
