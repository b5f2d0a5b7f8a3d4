package storybook_test

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/opsapi"
	"sqlwriter/internal/run"
	"sqlwriter/internal/ui"
	"sqlwriter/test/storybook"
)

// Every story is a whole page, and its names are unique.
func TestEveryStoryRenders(t *testing.T) {
	names := map[string]bool{}
	for _, s := range storybook.Stories() {
		t.Run(s.Name, func(t *testing.T) {
			require.False(t, names[s.Name], "the name is taken")
			names[s.Name] = true
			a := s.Render(t.Context())
			require.NotEqual(t, http.StatusInternalServerError, a.Status, a.Body)
			require.Equal(t, strings.HasSuffix(s.Name, "-done"), a.Status == http.StatusSeeOther,
				"an action that is done goes on to what came of it: %s", a.Body)
			if a.Status != http.StatusSeeOther {
				require.True(t, strings.HasSuffix(strings.TrimSpace(a.Body), "</html>"),
					"the page ends early:\n%s", a.Body)
				require.NotContains(t, a.Body, "an unexpected error", "a call without an answer")
				require.NotContains(t, a.Body, "ZgotmplZ", "html/template refused an address")
				wellBehaved(t, a.Body)
			}
		})
	}
}

// What a page says of numbers and of actions is true for who looks at it.
func TestPagesSayWhatIsSo(t *testing.T) {
	stories := map[string]storybook.Story{}
	for _, s := range storybook.Stories() {
		stories[s.Name] = s
	}
	as := func(name string, role opsapi.Role) string {
		s := stories[name]
		require.NotEmpty(t, s.Name, name)
		s.Role = role
		return s.Render(t.Context()).Body
	}
	busy := as("overview-busy", opsapi.Reader)
	require.NotContains(t, busy, ">by itself<", "no failed document is retried by itself, whoever looks")
	require.NotContains(t, busy, "...</a>", "a reader has no action")
	require.Contains(t, as("overview-busy", opsapi.Operator), ">5,000&#43;</a>", "there may be more")
	require.Contains(t, as("overview-stopped", opsapi.Reader), ">by itself<", "it waits for a dependency")
	require.Contains(t, as("overview-stopped", opsapi.Operator), ">Retry...<",
		"who mended the cause need not wait for the timer")
	require.Contains(t, as("retry-asked", opsapi.Operator), ">Retry 31 documents<")

	actions := as("overview-flowing", opsapi.Reader)
	require.Contains(t, actions, `href="/api/ui/run?run=replay-20261122-085840-4049a34e">`)
	require.Contains(t, actions, `href="/api/ui/document?id=2026-11-19`)
	require.NotContains(t, actions, "id=flow", "the flow is no document")

	require.Contains(t, as("overview-shadow", opsapi.Reader), "writes nothing",
		"a shadow flows, and nothing comes of it")
	waits := as("retry-paused", opsapi.Operator)
	require.Contains(t, waits, "nothing is written now: the flow is paused by a.lopez")
	require.NotContains(t, waits, "<form class=\"act\"", "the browser would wait for the flow")
	require.Contains(t, as("document-stopped", opsapi.Operator), ">Look at the flow<")
	require.NotContains(t, as("documents-mixed", opsapi.Operator), "Retry these...",
		"without a filter nothing is retried")
	require.Contains(t, as("documents-waiting", opsapi.Operator), "Retry these...")
	require.NotContains(t, as("document-stopped", opsapi.Operator), ">Retry now...<")
	open := as("finding-open", opsapi.Operator)
	require.Contains(t, open, "<td>SIEMENS AG</td>", "who decides sees the values")
	require.NotContains(t, open, "1421550", "that is another line")
	require.Contains(t, as("document-reader", opsapi.Reader), "What <code>validation.too_long</code> means")
	require.Contains(t, as("documents-waiting", opsapi.Reader), "What <code>validation.too_long</code> means")
	require.NotContains(t, as("document-committed", opsapi.Reader), "means</h2>", "nothing is wrong")
	require.Contains(t, as("documents-cosmos-away", opsapi.Reader), `data-poll="15"`,
		"it says that it comes back by itself")

	failures := stories["run-failures"]
	ended, _ := failures.Answers["run.show"].(ops.RunProgress)
	ended.Stats.Batches = map[run.BatchStatus]int{run.Failed: 300}
	failures.Answers["run.show"] = ended
	commands := func(page string, role opsapi.Role) (found []string) {
		for _, m := range regexp.MustCompile(
			`<li><code class="command">sqlwriterctl (run start replay|[a-z]+ [a-z]+)`).FindAllStringSubmatch(as(page,
			role), -1) {
			found = append(found, m[1])
		}
		return found
	}
	require.Equal(t, []string{"batch requeue", "run start replay"}, commands("run-failures", opsapi.Operator))
	require.Equal(t, []string{"run cancel"}, commands("run-works", opsapi.Operator))
	require.Equal(t, []string{"run resume"}, commands("run-failed", opsapi.Operator))
	require.Empty(t, commands("run-works", opsapi.Reader))
	ended.Status = run.RunPurged
	failures.Answers["run.show"] = ended
	require.Empty(t, commands("run-failures", opsapi.Operator), "retention deletes the run")
}

// A page asks for values, before and after, and for files of evidence only when an operator looks: a reader's page
// makes no such call, also where nothing would refuse it.
func TestAPageAsksForContentOnlyForAnOperator(t *testing.T) {
	content := map[string]bool{}
	for _, row := range opsapi.Table() {
		content[row.Name] = row.Role == opsapi.Operator
	}
	asked := map[opsapi.Role][]string{}
	for _, s := range storybook.Stories() {
		for _, role := range []opsapi.Role{opsapi.Reader, opsapi.Operator} {
			s.Role = role
			calls := opsapi.Canned(opsapi.Who{Role: opsapi.Operator},
				func(ctx context.Context, name string, request any) (any, error) {
					if content[name] {
						asked[role] = append(asked[role], s.Name+" asks "+name)
					}
					return s.Answer(ctx, name, request)
				})
			s.Site().Serve(t.Context(), calls, s.Request())
		}
	}
	require.Empty(t, asked[opsapi.Reader])
	require.Contains(t, asked[opsapi.Operator], "document-failed asks document.diff")
	require.Contains(t, asked[opsapi.Operator], "finding-open asks document.diff")
}

// The field in the header of every page takes a line or the id of a document.
func TestTheFieldOfTheHeaderFindsALineOrADocument(t *testing.T) {
	for typed, want := range map[string]ops.WhyQuery{
		" 1421549 ": {Line: 1421549},
		"2026-11-22 02:40:01.553120-06:00-0004-1421549": {ID: "2026-11-22 02:40:01.553120-06:00-0004-1421549"},
		"99999999999999999999":                          {ID: "99999999999999999999"}, // no number of a line is so long
	} {
		asked := ops.WhyQuery{}
		s := storybook.Story{
			Path: "document", Query: url.Values{"find": {typed}},
			Answers: map[string]any{"document.why": func(request any) (any, error) {
				asked, _ = request.(ops.WhyQuery)
				return nil, &ops.RequestError{Refusal: ops.NotFound, Message: "none"}
			}},
		}
		require.Equal(t, http.StatusNotFound, s.Render(t.Context()).Status)
		require.Equal(t, want, asked)
	}
}

// A page retries the documents that it names. While nothing is written it does nothing.
func TestARetryOfSome(t *testing.T) {
	var asked []ops.RetryRequest
	form := url.Values{"ids": {"a", "b"}, "why": {"w"}}
	s := storybook.Story{
		Path: "retry", Form: form,
		Answers: map[string]any{
			"status.get": ops.Status{Flow: ops.FlowView{State: breaker.Running}},
			"document.retry": func(request any) (any, error) {
				r, _ := request.(ops.RetryRequest)
				asked = append(asked, r)
				return ops.Started{Run: "replay-1"}, nil
			},
		},
	}
	require.Equal(t, http.StatusSeeOther, s.Render(t.Context()).Status)
	require.Equal(t, []ops.RetryRequest{{IDs: []string{"a", "b"}, Why: "w"}}, asked)

	s.Answers["status.get"] = ops.Status{Flow: ops.FlowView{State: breaker.PausedFlow, Says: "paused by ann"}}
	a := s.Render(t.Context())
	require.Equal(t, http.StatusConflict, a.Status)
	require.Contains(t, a.Body, "Nothing was done: nothing is written now: the flow is paused by ann")
	require.Equal(t, ops.RetryRequest{IDs: []string{"a", "b"}, DryRun: true}, asked[len(asked)-1])
	require.Len(t, asked, 2)

	s.Answers["status.get"] = ops.Status{Flow: ops.FlowView{State: breaker.Running}}
	s.Answers["document.retry"] = func(request any) (any, error) {
		if r, _ := request.(ops.RetryRequest); !r.DryRun {
			return nil, &ops.RequestError{Refusal: ops.Usage, Message: "why: expected a reason"}
		}
		return ops.Started{DryRun: true, Matched: 2, First: []ops.Match{{ID: "a"}, {ID: "b"}}}, nil
	}
	page := s.Render(t.Context()).Body
	require.Contains(t, page, "sqlwriterctl document retry a b --why", "ids go with no other filter there, too")
	require.Contains(t, page, `<input type="hidden" name="ids" value="b">`)
	require.NotContains(t, page, `<input type="hidden" name="status"`,
		"ids go with no other filter: the form could not be sent again")
}

// What is no line and no id is told so.
func TestTheFieldOfTheHeaderRefusesWhatIsNothing(t *testing.T) {
	for _, typed := range []string{"0", "-5", " ", ""} {
		a := storybook.Story{Path: "document", Query: url.Values{"find": {typed}}}.Render(t.Context())
		require.Equal(t, http.StatusBadRequest, a.Status, "%q", typed)
		require.Contains(t, a.Body, "expected a line or the id of a document", "%q", typed)
	}
}

// A button does no more than it says, however many documents match since it was shown.
func TestARetryTakesNoMoreThanItSaid(t *testing.T) {
	form := func(count string) url.Values {
		return url.Values{"status": {"failed"}, "why": {"w"}, "count": {count}}
	}
	for count, limit := range map[string]int{"3": 3, "31000": 31000, "": 0} {
		got := -1
		s := storybook.Story{Path: "retry", Form: form(count), Answers: map[string]any{
			"document.retry": func(request any) (any, error) {
				r, _ := request.(ops.RetryRequest)
				got = r.Limit
				return ops.Started{Run: "replay-1"}, nil
			},
		}}
		require.Equal(t, http.StatusSeeOther, s.Render(t.Context()).Status)
		require.Equal(t, limit, got, count)
	}
	none := storybook.Story{
		Path: "retry", Form: form("many"), Answers: map[string]any{"document.retry": ops.Started{Matched: 1}},
	}
	require.Equal(t, http.StatusBadRequest, none.Render(t.Context()).Status)
}

// What was typed for an action is not lost when a dependency goes away, and nobody is told that nothing was done.
func TestAnActionWithoutItsDependency(t *testing.T) {
	s := storybook.Story{
		Path: "retry", Form: url.Values{"ids": {"a"}, "why": {"a mistake of mine"}},
		Answers: map[string]any{"document.retry": storybook.SQLAway()},
	}
	a := s.Render(t.Context())
	require.Equal(t, http.StatusServiceUnavailable, a.Status)
	require.Contains(t, a.Body, "It is not known whether this was done")
	require.Contains(t, a.Body, "a mistake of mine")
	require.NotContains(t, a.Body, "comes back by itself", "it is not asked again")
}

// wellBehaved holds what the policy of the pages refuses, and what a hostile text would bring.
func wellBehaved(t *testing.T, page string) {
	t.Helper()
	ids := map[string]bool{}
	z := html.NewTokenizer(strings.NewReader(page))
	for {
		kind := z.Next()
		if kind == html.ErrorToken {
			return
		}
		token := z.Token()
		if kind != html.StartTagToken && kind != html.SelfClosingTagToken {
			continue
		}
		require.NotContains(t, []string{"img", "style", "iframe", "object"}, token.Data, "a text became an element")
		for _, a := range token.Attr {
			require.False(t, a.Key == "style" || strings.HasPrefix(a.Key, "on"),
				"<%s %s=%q>: the policy allows no inline style and script", token.Data, a.Key, a.Val)
			if a.Key == "id" {
				require.False(t, ids[a.Val], "two elements have the id %q", a.Val)
				ids[a.Val] = true
			}
			if token.Data == "script" {
				require.Contains(t, []string{"src", "defer"}, a.Key)
			}
		}
		if token.Data == "script" {
			require.NotEmpty(t, token.Attr, "a text became a script")
		}
	}
}

// A page costs a person with a bad connection little: the overview at most 60 KB the first time and 20 KB after, and
// the script is short enough to be read.
func TestPagesAreSmall(t *testing.T) {
	const kb, lines = 1000, 100
	overviews := 0
	for _, s := range storybook.Stories() {
		if !strings.HasPrefix(s.Name, "overview-") {
			continue
		}
		overviews++
		page := s.Render(t.Context()).Body
		require.LessOrEqual(t, len(page), 20*kb, s.Name)
		whole := len(page)
		links := regexp.MustCompile(`(?:href|src)="/api/ui/(assets/[^"]+)"`).FindAllStringSubmatch(page, -1)
		require.Len(t, links, 2, "style and script")
		for _, link := range links {
			asset := s.Site().Serve(t.Context(), s.Calls(), ui.Request{Method: http.MethodGet, Path: link[1]})
			require.Equal(t, http.StatusOK, asset.Status, link[1])
			whole += len(asset.Body)
			if strings.HasSuffix(link[1], ".js") {
				require.LessOrEqual(t, strings.Count(asset.Body, "\n"), lines, "lines of the script")
			}
		}
		require.LessOrEqual(t, whole, 60*kb, s.Name)
		t.Logf("%s: %d bytes, %d with its assets", s.Name, len(page), whole)
	}
	require.NotZero(t, overviews)
}
