package e2e_test

import (
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/ops"
)

// page asks for a page as a browser does, on the stack's open pages, and returns its status and its text without tags.
func (s *stack) page(path string) (status int, source, text string) {
	s.t.Helper()
	return s.browse(http.MethodGet, path, nil, nil)
}

// browse sends a request for a page. It follows no redirection.
func (s *stack) browse(
	method, path string, form url.Values, headers map[string]string,
) (status int, source, text string) {
	s.t.Helper()
	var body io.Reader = http.NoBody
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	request, err := http.NewRequestWithContext(s.t.Context(), method, "http://"+s.host.Address()+"/api/ui/"+path, body)
	require.NoError(s.t, err)
	if form != nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Do(request)
	require.NoError(s.t, err)
	defer func() { require.NoError(s.t, answer.Body.Close()) }()
	raw, err := io.ReadAll(answer.Body)
	require.NoError(s.t, err)
	if to := answer.Header.Get("Location"); to != "" {
		return answer.StatusCode, to, ""
	}
	text = regexp.MustCompile(`<[^>]*>`).ReplaceAllString(string(raw), " ")
	return answer.StatusCode, string(raw), strings.Join(strings.Fields(html.UnescapeString(text)), " ")
}

// requirePageNames requires that the overview names what asks for attention, and says what to do. known is how long
// after the fault the status named it.
func (s *stack) requirePageNames(known time.Duration, code string) {
	s.t.Helper()
	began := time.Now()
	status, source, text := s.page("")
	require.Equal(s.t, http.StatusOK, status, text)
	_, from, found := strings.Cut(text, "What asks for attention")
	require.True(s.t, found, text)
	require.Regexp(s.t, `<li><code>`+code+`</code> .*<br>Do: `, source)
	s.t.Logf("PAGE %s after %s, with what to do: %.160s", code,
		(known + time.Since(began)).Round(10*time.Millisecond), from)
}

// requirePageRun requires that the overview lists a run and says so, and that one click leads to it.
func (s *stack) requirePageRun(id, says string) {
	s.t.Helper()
	_, source, text := s.page("")
	require.Contains(s.t, html.UnescapeString(source), "run?"+url.Values{"run": {id}}.Encode())
	require.Contains(s.t, text, says)
	status, _, run := s.page("run?" + url.Values{"run": {id}}.Encode())
	require.Equal(s.t, http.StatusOK, status, run)
	_, from, _ := strings.Cut(run, "Runs "+id)
	s.t.Logf("PAGE run, one click: %.160s", from)
}

// requirePageShows requires that the overview lists a group of documents, and that one click leads to the list, another
// to why one of them is here.
func (s *stack) requirePageShows(g ops.Group) {
	s.t.Helper()
	_, source, text := s.page("")
	require.Contains(s.t, text, g.Code)
	query := url.Values{"status": {string(g.Status)}, "kind": {g.Kind}, "error_code": {g.Code}}.Encode()
	require.Contains(s.t, html.UnescapeString(source), "documents?"+query)
	_, source, _ = s.page("documents?" + query)
	require.Contains(s.t, html.UnescapeString(source), "document?"+url.Values{"id": {g.Sample}}.Encode())
	status, _, why := s.page("document?" + url.Values{"id": {g.Sample}}.Encode())
	require.Equal(s.t, http.StatusOK, status, why)
	require.Contains(s.t, why, g.Code)
	_, from, _ := strings.Cut(why, "Documents /")
	s.t.Logf("PAGE %s %s, two clicks: %.160s", g.Status, g.Code, from)
}

// An operator finds a failed document by its line, retries it, and the audit log has the name.
// What another site sends, or who forges a sign-in, changes nothing.
func TestAnOperatorRetriesInThePages(t *testing.T) {
	t.Parallel()
	s := quietStack(t, nil)
	id, doc := aResult(t, "web", 1, map[string]any{"part_number": strings.Repeat("<script>alert(1)</script>", 5)})
	s.submit(doc)
	s.waitUntilQuiet(6)
	status, source, why := s.page("document?line=1")
	require.Equal(t, http.StatusOK, status, why)
	require.Contains(t, why, "part_number")
	require.Contains(t, why, id)
	require.NotContains(t, source, "<script>alert")
	status, source, asked := s.page("retry?" + url.Values{"ids": {id}}.Encode())
	require.Equal(t, http.StatusOK, status, asked)
	require.Contains(t, asked, "Retry 1 document")
	require.NotContains(t, source, "<script>alert")

	own := map[string]string{"Sec-Fetch-Site": "same-origin"}
	form := url.Values{"ids": {id}, "count": {"1"}, "why": {"the vendor says that it is right"}}
	for name, headers := range map[string]map[string]string{
		"another site":     {"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"},
		"a forged origin":  {"Origin": "http://" + s.host.Address()},
		"a forged sign-in": {"X-MS-CLIENT-PRINCIPAL": "eyJhdXRoX3R5cCI6ImFhZCJ9"},
		"neither":          nil,
	} {
		status, _, text := s.browse(http.MethodPost, "retry", form, headers)
		require.Equal(t, http.StatusForbidden, status, "%s: %s", name, text)
	}
	status, _, text := s.browse(http.MethodPost, "retry", url.Values{"ids": {id}, "count": {"1"}, "why": {""}}, own)
	require.Equal(t, http.StatusBadRequest, status, text)
	require.Contains(t, text, "Nothing was done")
	status, to, _ := s.browse(http.MethodPost, "retry", form, own)
	require.Equal(t, http.StatusSeeOther, status)
	require.Contains(t, to, "/api/ui/run?run=replay-")
	_, path, _ := strings.Cut(to, "/api/ui/")
	status, _, receipt := s.page(path)
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, receipt, "a developer on this machine")
	require.Contains(t, receipt, "the vendor says that it is right")
	_, _, actions := s.page("")
	require.Contains(t, actions, "the vendor says that it is right")
	require.Equal(t, 1, strings.Count(actions, "RUN_START"), "what was refused started nothing")

	status, to, _ = s.browse(http.MethodPost, "pause", url.Values{"why": {"index rebuild"}}, own)
	require.Equal(t, []any{http.StatusSeeOther, "/api/ui/"}, []any{status, to})
	_, _, overview := s.page("")
	require.Contains(t, overview, "Paused by a developer on this machine")
	status, _, _ = s.browse(http.MethodPost, "resume", url.Values{"why": {"done"}}, own)
	require.Equal(t, http.StatusSeeOther, status)
}
