package ops_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/run"
)

// waits is sql_writer of a document that waits for a retry for a day.
func waits(code string) string {
	return fmt.Sprintf(
		`{"status":"retry_scheduled","retry_count":2,"retry_after":%d,"last_error_kind":"document","last_error_code":%q}`, start().Unix()+86000, code)
}

// retried puts documents in all states, retries some and returns the lines that were written.
func retried(t *testing.T, request ops.RetryRequest) (ops.Started, []int64) {
	t.Helper()
	r := newRuns(t)
	states := map[int64]string{
		1: failed(1, fault.Document, "2628"), 2: failed(1, fault.Document, "547"), 3: waits("2628"), 4: waits("547"),
		5: `{"status":"committed"}`, 6: "", 7: failed(1, fault.Document, "2628"),
	}
	for line, state := range states {
		r.sink.AddLines(line)
		sysName := "web"
		if line == 7 {
			sysName = "dev"
		}
		r.put(
			fmt.Sprintf(`{"id":%q,"request_details":{"id":"r%d","sys_name":%q},%s`, id(line), line%2, sysName,
				documentOf("", "", line, "a", state)[len(`{"id":"","request_details":{"sys_name":""},`):]))
	}
	res := must(r.ops.RetryDocuments(by(t, "kim"), request))(t)
	var written []int64
	for line := range int64(8) {
		if _, known := r.sink.Entry(line); known {
			written = append(written, line)
		}
	}
	return res, written
}

func TestARetryTakesTheFilterOfTheList(t *testing.T) {
	for name, c := range map[string]struct {
		request ops.RetryRequest
		want    []int64
	}{
		"a status": {
			ops.RetryRequest{DocumentFilter: ops.DocumentFilter{Status: invoice.Failed}}, []int64{1, 2},
		},
		"the other status": {
			ops.RetryRequest{DocumentFilter: ops.DocumentFilter{Status: invoice.RetryScheduled}}, []int64{3, 4},
		},
		"a code": {ops.RetryRequest{DocumentFilter: ops.DocumentFilter{ErrorCode: "2628"}}, []int64{1, 3}},
		"a kind": {
			ops.RetryRequest{DocumentFilter: ops.DocumentFilter{Kind: "document"}}, []int64{1, 2, 3, 4},
		},
		"a line":    {ops.RetryRequest{DocumentFilter: ops.DocumentFilter{Line: 3}}, []int64{3}},
		"a request": {ops.RetryRequest{DocumentFilter: ops.DocumentFilter{Request: "r1"}}, []int64{1, 3}},
		"both": {
			ops.RetryRequest{
				DocumentFilter: ops.DocumentFilter{Request: "r0", ErrorCode: "547", Status: invoice.Failed},
			}, []int64{2},
		},
		"ids":           {ops.RetryRequest{IDs: []string{id(1), id(4)}}, []int64{1, 4}},
		"nothing there": {ops.RetryRequest{DocumentFilter: ops.DocumentFilter{Line: 5}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			c.request.Why = "the cause is mended"
			res, written := retried(t, c.request)
			require.Equal(t, c.want, written)
			require.Equal(t, len(c.want), res.Matched)
			if len(c.want) > 0 {
				require.Equal(t, run.RunCompleted, res.Progress.Status)
			}
			dry := c.request
			dry.DryRun = true
			res, written = retried(t, dry)
			require.Empty(t, written)
			require.Equal(t, len(c.want), res.Matched, "the count that is shown first")
			require.Len(t, res.First, len(c.want))
		})
	}
}

func TestARetryRefusesWhatItCannotTake(t *testing.T) {
	r := newRuns(t)
	for name, request := range map[string]ops.RetryRequest{
		"ids: expected":   {},
		"ids: go with no": {IDs: []string{"a"}, DocumentFilter: ops.DocumentFilter{ErrorCode: "547"}},
		"status: expected one of failed, retry_scheduled": {
			DocumentFilter: ops.DocumentFilter{Status: invoice.Committed},
		},
		"error_code: expected": {DocumentFilter: ops.DocumentFilter{ErrorCode: "bogus"}},
		"why: expected":        {DocumentFilter: ops.DocumentFilter{ErrorCode: "547"}},
	} {
		if name != "why: expected" {
			request.Why = "the cause is mended"
		}
		_, err := r.ops.RetryDocuments(by(t, "kim"), request)
		require.Equal(t, ops.Usage, refusal(err), name)
		require.ErrorContains(t, err, name)
	}
}

// Operators ask a dry run what is there: it must not answer about other statuses than those that the run takes.
func TestADryRunFindsTheStatusesOfItsKind(t *testing.T) {
	r := newRuns(t)
	r.put(result(1, "a", failed(1, fault.Document, "2628")), result(2, "b", waits("2628")),
		result(3, "c", `{"status":"committed"}`))
	for name, c := range map[string]struct {
		request ops.StartRequest
		want    []string
	}{
		"replay":  {ops.StartRequest{Kind: run.Replay, All: true}, []string{id(1)}},
		"reindex": {ops.StartRequest{Kind: run.Reindex, All: true}, []string{id(3)}},
	} {
		c.request.DryRun = true
		res, err := r.ops.StartRun(t.Context(), c.request)
		require.NoError(t, err, name)
		var found []string
		for _, m := range res.First {
			found = append(found, m.ID)
		}
		require.ElementsMatch(t, c.want, found, name)
		require.Empty(t, res.Note, name)
	}
	for _, c := range []struct {
		request ops.StartRequest
		want    string
	}{
		{
			ops.StartRequest{Kind: run.Replay, Since: start().Add(time.Hour)},
			"whose status is failed alone: `document retry` also takes those that wait for a retry",
		},
		{ops.StartRequest{Kind: run.Drain}, ""},
	} {
		c.request.DryRun = true
		res := must(r.ops.StartRun(t.Context(), c.request))(t)
		require.Zero(t, res.Matched)
		require.Contains(t, res.Note, c.want)
		require.Equal(t, c.want == "", res.Note == "")
	}
}
