package sqlite_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/explain"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/opsapi"
	"sqlwriter/internal/reconcile"
	"sqlwriter/internal/store/shared"
	"sqlwriter/internal/store/sqlite"
	"sqlwriter/internal/ui"
	"sqlwriter/test/inmem"
)

// timedPage is a page of the operators' site.
type timedPage struct {
	name        string
	median, p99 time.Duration
	bytes       int
}

// timePages renders every page of the operators' site, each times.
func timePages(t *testing.T, s *sqlite.Store, times int) (all []timedPage) {
	t.Helper()
	const document = "2025-12-17 10:30:15.123456-06:00-0001-1"
	docs := inmem.NewDocuments(time.Now)
	require.NoError(t,
		docs.Put(
			json.RawMessage(`{"id":"`+document+
				`","request_details":{"sys_name":"web"},"invoice_details_from_rpa":{"IVCE_DTL_UID":1},
		"process_output":{"manufacturer_name":"M","part_number":"4","unspsc":"39131711","invoice_line_status":"RC-AI"},"sql_writer":{"status":"failed","last_error_kind":"document","last_error_code":"2628"}}`)))
	runs, reports := s.RunStore("web"), s.Reports("web")
	o := ops.New(ops.Ports{
		Documents: docs, Finder: docs, Counts: &inmem.Counts{}, RunQueue: inmem.NewQueue(nil),
		Evidence:    inmem.NewEvidence(),
		ReportNames: shared.ReportNames(),
		Breaker: breaker.New(inmem.NewControl(),
			breaker.Options{Build: "v1", SysName: "web", Heartbeat: s.Heartbeat, Now: time.Now}),
		Stores: func(context.Context) (ops.Stores, error) {
			return ops.Stores{
				Audit: s.AuditLog("web"), Runs: runs, Reports: reports, Ledger: noLedger{}, Findings: s.Findings("web"),
				Preview: func(ctx context.Context, items []commit.Item) ([]commit.DocumentOutcome, error) {
					return s.Apply(ctx, items, commit.Preview, breaker.Heartbeat{})
				},
				Check: func(context.Context) error { return nil },
			}, nil
		},
	}, ops.Options{SysName: "web", Now: time.Now})
	site := ui.New(ui.Options{SysName: "web", Mode: "live", Codes: explain.New([]fault.Row{})})
	first, err := s.Findings("web").List(t.Context(), reconcile.Query{}, nil, 1)
	require.NoError(t, err)
	require.NotEmpty(t, first)
	requests := []struct{ path, query string }{
		{"", ""},
		{"runs", ""},
		{"run", "run=" + bigRun},
		{"findings", ""},
		{"findings", "classes=edited"},
		{"documents", ""},
		{"document", "id=" + url.QueryEscape(document)},
		{"document", "line=1"},
		{"retry", "ids=" + url.QueryEscape(document)},
		{"pause", ""},
		{"resume", ""},
	}
	for _, f := range first {
		named := "finding=" + url.QueryEscape(string(f.Class)+"/"+jsonNumber(f.Line)+"/"+f.Document)
		requests = append(requests, struct{ path, query string }{"findings", named})
	}
	ann := opsapi.Who{Name: "ann", Role: opsapi.Operator}
	for _, r := range requests {
		query, err := url.ParseQuery(r.query)
		require.NoError(t, err)
		page := timedPage{name: r.path + "?" + r.query}
		took := make([]time.Duration, times)
		for i := range took {
			began := time.Now()
			a := site.Serve(t.Context(), opsapi.Direct(o, ann),
				ui.Request{Method: http.MethodGet, Path: r.path, Query: query, Root: "/api/ui/", Who: ann})
			took[i] = time.Since(began)
			require.Equal(t, http.StatusOK, a.Status, "%s: %s", page.name, a.Body)
			page.bytes = len(a.Body)
		}
		slices.Sort(took)
		page.median, page.p99 = took[len(took)/2], took[len(took)*99/100]
		all = append(all, page)
	}
	slices.SortFunc(all, func(a, b timedPage) int { return int(b.p99 - a.p99) })
	return all
}

// noLedger is a ledger without rows: its one row is read by its key.
type noLedger struct{}

// LedgerLine implements ops.Ledger.
func (noLedger) LedgerLines(context.Context, []int64) ([]ops.LedgerLine, error) { return nil, nil }
func (noLedger) LedgerOf(context.Context, string) ([]ops.LedgerLine, error)     { return nil, nil }

func jsonNumber(n int64) string {
	text, _ := json.Marshal(n)
	return string(text)
}
