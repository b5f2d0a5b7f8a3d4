package app

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"sqlwriter/internal/breaker"
)

// The operator's name and reason of a pause. Health is anonymous, so it repeats neither.
const (
	operatorMarker = "operator-marker-ann"
	wordsMarker    = "words-of-the-pause-marker"
)

// pauseAs pauses by a key with the marker as its name, over the Ops function.
func (p *process) pauseAs() {
	p.t.Helper()
	status, reply := p.ask(http.MethodPost, "flow/pause", fmt.Sprintf(`{"why":%q}`, wordsMarker))
	require.Equal(p.t, "200", status, reply)
}

// controlEtags returns the etags of all control documents, by id.
func (s *stack) controlEtags() map[string]string {
	s.t.Helper()
	control, err := s.cosmos.Client.NewContainer("invoices", "sqlwriter-control")
	require.NoError(s.t, err)
	etags := map[string]string{}
	pager := control.NewQueryItemsPager("SELECT c.id, c._etag FROM c", azcosmos.NewPartitionKey(), nil)
	for pager.More() {
		page, err := pager.NextPage(s.t.Context())
		require.NoError(s.t, err)
		for _, item := range page.Items {
			var doc struct {
				ID   string `json:"id"`
				ETag string `json:"_etag"`
			}
			require.NoError(s.t, json.Unmarshal(item, &doc))
			if doc.ID != "status:web:shadow" { // the counts of its own timer
				etags[doc.ID] = doc.ETag
			}
		}
	}
	return etags
}

// requireAnonymous checks that Health reports "paused" without the operator's name and reason.
func (p *process) requireAnonymous() {
	p.t.Helper()
	_, body := p.health()
	require.Equal(p.t, "paused", body["flow"].(map[string]any)["state"])
	text, err := json.Marshal(body)
	require.NoError(p.t, err)
	require.NotContains(p.t, string(text), operatorMarker)
	require.NotContains(p.t, string(text), wordsMarker)
}

// A shadow neither changes the live instances' breaker nor obeys it.
func TestReviewAShadowHasNoPartInTheLiveBreaker(t *testing.T) {
	s := newStack(t)
	shadow := map[string]string{"MODE": "shadow"}
	for name, value := range s.settings {
		shadow[name] = value
	}
	batch := envelope(t, s.submit(1, 4, ""))
	look := func(p *process) {
		t.Helper()
		code, text := p.send(http.MethodPost, "/CommitResults", batch)
		require.Equal(t, http.StatusOK, code, text)
		require.Contains(t, text, "3 would_be_applied")
		code, text = p.send(http.MethodPost, "/RecoverRetries",
			[]byte(`{"Data":{"timer":{"IsPastDue":false}},"Metadata":{}}`))
		require.Equal(t, http.StatusOK, code, text)
		require.Contains(t, text, "shadow: nothing is recovered")
		require.NotContains(t, text, "pending", "nobody counted")
	}
	early := start(t, shadow)
	early.waitReady()
	look(early)
	require.Empty(t, s.controlEtags(), "it makes no control document")

	live := start(t, s.settings)
	live.waitReady()
	live.pauseAs()
	before := s.controlEtags()
	require.Len(t, before, 1)
	late := start(t, shadow)
	late.waitReady()
	for _, p := range []*process{early, late} {
		_, body := p.health()
		require.Equal(t, "running", body["flow"].(map[string]any)["state"], "the pause is the live app's")
		look(p)
		p.ask(http.MethodPost, "flow/resume", `{"why":"on the wrong app"}`) // the reply does not matter
	}
	require.Equal(t, before, s.controlEtags())
	live.requireAnonymous()
	code, _ := live.send(http.MethodPost, "/CommitResults", batch)
	require.Equal(t, http.StatusServiceUnavailable, code, "still paused")
}

// The breaker's error contains the operator's text, so Health does not list it as a problem.
func TestReviewAProblemDoesNotRepeatTheBreakersWords(t *testing.T) {
	flow := breaker.New(nil, breaker.Options{})
	require.NoError(t, flow.Pause(t.Context(), operatorMarker, wordsMarker))
	a := New(func(string) (string, bool) { return "", false }, zerolog.Nop())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	tries := 0
	a.keepOpening(ctx, dependency{depSQL, func(ctx context.Context) error {
		if tries++; tries > 1 { // Health shows the result of the first attempt now
			cancel()
		}
		err := flow.Permit(context.WithoutCancel(ctx))
		require.True(t, breaker.IsRefusal(err), "%v", err)
		require.Contains(t, err.Error(), wordsMarker)
		return err
	}, nil})
	problems := a.status.report().Problems
	require.Contains(t, problems, "sql: not open yet")
	require.NotContains(t, fmt.Sprint(problems), operatorMarker)
	require.NotContains(t, fmt.Sprint(problems), wordsMarker)
}

// After a resume the operator's text stays in the breaker until it closes. Health does not repeat it.
func TestReviewHealthKeepsTheOperatorsWordsAfterAResume(t *testing.T) {
	flow := breaker.New(nil, breaker.Options{})
	require.NoError(t, flow.Pause(t.Context(), operatorMarker, wordsMarker))
	require.NoError(t, flow.Resume(t.Context(), operatorMarker, wordsMarker))
	text, err := json.Marshal(flowHealth(flow.Seen()))
	require.NoError(t, err)
	require.Contains(t, string(text), `"state":"ramping up"`)
	require.NotContains(t, string(text), operatorMarker)
	require.NotContains(t, string(text), wordsMarker)
}

// A shadow defers a message for the live app, and Health counts it. Here the deferral fails, too, so the request waits.
func TestAShadowDefersMessages(t *testing.T) {
	s := newStack(t)
	s.settings["MODE"] = "shadow"
	p := start(t, s.settings)
	p.waitReady()
	const notice = `{"Data":{"message":"\"{\\\"message_version\\\":1,\\\"message_kind\\\":\\\"batch\\\",\\\"sys_name\\\":\\\"web\\\",\\\"run_id\\\":\\\"r\\\",\\\"batch_id\\\":\\\"` +
		`0000000000000000000000000000000000000000000000000000000000000000\\\"}\""},"Metadata":{}}`
	ctx, cancel := context.WithCancel(t.Context()) // an answer takes as long as the host waits: minutes
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+p.address()+"/BatchWorker",
		strings.NewReader(notice))
	require.NoError(t, err)
	answered := make(chan error, 1)
	go func() {
		_, err := p.client.Do(r) //nolint:bodyclose // there is none
		answered <- err
	}()
	require.Eventually(t, func() bool {
		_, body := p.health()
		return body["dependencies"].(map[string]any)["servicebus"].(map[string]any)["state"] == "failing"
	}, patience, 20*time.Millisecond, "it was tried")
	cancel()
	require.ErrorIs(t, <-answered, context.Canceled)
	require.Eventually(t, func() bool {
		return strings.Contains(p.stdout.String(), `"did":"held"`)
	}, patience, 5*time.Millisecond)
	_, body := p.health()
	require.EqualValues(t, 1, body["foreign_messages"])
}

// committed returns the counts of committed documents of all control documents.
func (s *stack) committed() (counts []int64) {
	s.t.Helper()
	control, err := s.cosmos.Client.NewContainer("invoices", "sqlwriter-control")
	require.NoError(s.t, err)
	pager := control.NewQueryItemsPager("SELECT VALUE c.committed FROM c", azcosmos.NewPartitionKey(), nil)
	for pager.More() {
		page, err := pager.NextPage(s.t.Context())
		require.NoError(s.t, err)
		for _, item := range page.Items {
			var n int64
			require.NoError(s.t, json.Unmarshal(item, &n))
			counts = append(counts, n)
		}
	}
	return counts
}
