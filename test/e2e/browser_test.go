package e2e_test

import (
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/ops"
	"sqlwriter/test/browser"
	away "sqlwriter/test/outage"
	"sqlwriter/test/sample"
)

// The tests of this file look at the real handler's pages in a real browser, as operators do.

// pollEvery is the time between two polls of a page.
const pollEvery = 15 * time.Second

// ui is the address of a page.
func (p *process) ui(path string) string { return "http://" + p.Address() + "/api/ui/" + path }

// see lets the page poll until a JavaScript expression is true. The page is not loaded anew.
func see(t *testing.T, tab *browser.Tab, what, expression string) {
	t.Helper()
	require.Eventually(t, func() bool {
		tab.Advance(pollEvery)
		return browser.Eval[bool](tab, expression)
	}, patience, 50*time.Millisecond, "the page does not show "+what)
}

// shownText is a JavaScript expression: the text that a person sees on the page.
const shownText = `document.getElementById("main").innerText`

// The overview stays open while a run drains documents. It is loaded once, and shows how far the run is and what waits.
func TestTheOverviewIsLiveDuringADrain(t *testing.T) {
	t.Parallel()
	docs := plainResults(76, 300)
	s := newStack(t, sample.Lines(docs)...)
	s.patience = runPatience
	s.withBus(usualLock)
	s.submitMany(docs)
	manager, _ := s.team(2)
	s.waitStatus("what waits", func(o ops.Status) bool {
		return o.Counts != nil && o.Counts.Depth["pending"].Documents == len(docs)
	})
	tab := browser.Start(t).Open(t, manager.ui(""), browser.Look{})
	browser.Eval[int](tab, `window.same = 1`)
	const waiting, run = `document.querySelector(".tiles b").innerText`,
		`(document.querySelector("[aria-labelledby=runs] tbody")?.innerText ?? "")`
	require.Equal(t, "300", browser.Eval[string](tab, waiting))
	require.Contains(t, tab.Text("#main"), "None is open.")

	release := s.holdUntilSeen(docs)
	id := s.startRun(`{"kind":"drain","why":"the feed is switched off"}`)
	see(t, tab, "the run at its start", run+`.includes("0 of 300")`)
	require.Contains(t, browser.Eval[string](tab, run), id)
	s.cosmos.Server.RemoveFault(release.all)
	see(t, tab, "the run half way", run+`.includes("200 of 300")`)
	s.cosmos.Server.RemoveFault(release.one)
	see(t, tab, "the end of the run", shownText+`.includes("None is open.")`)
	see(t, tab, "that nothing waits", waiting+` === "0"`)
	see(t, tab, "what was committed", `document.querySelectorAll(".tiles b")[3].innerText === "300"`)
	require.Equal(t, 1, browser.Eval[int](tab, `window.same`), "the page is not loaded anew")
	require.Empty(t, tab.Messages())
	s.requireExact(docs)
}

// Documents of three lines wait, because IVCE_DTL lacks their rows. Operators find one by its line, retry the group,
// and look as readers, and while SQL does not answer.
func TestOperatorsWorkInABrowser(t *testing.T) {
	t.Parallel()
	s := quietStack(t, nil)
	const first, lacking = 901, 3
	for line := first; line < first+lacking; line++ {
		_, doc := aResult(t, "web", line, nil)
		s.submit(doc)
	}
	s.waitUntilQuiet(5 + lacking)
	s.tick()
	b := browser.Start(t)
	s.retriesInABrowser(t, b, browser.Look{}, first, lacking)
	s.tick() // it counts what is left
	s.retriesInABrowser(t, b, browser.Look{NoScript: true, Width: browser.Phone, Dark: true}, first+1, lacking-1)
	s.onlyReads(t, b)
	s.looksWithoutSQL(t, b, first+lacking-1)
}

// A person with a keyboard and a phone's screen, without JavaScript, asks what the pages are for: is it well, why is
// this document here, do it again, stop and go on, and does SQL equal Cosmos DB.
func TestThePagesAnswerByKeyboard(t *testing.T) {
	t.Parallel()
	s := quietStack(t, nil)
	_, doc := aResult(t, "web", 901, nil) // IVCE_DTL lacks its row
	s.submit(doc)
	s.waitUntilQuiet(6)
	s.tick()
	tab := browser.Start(t).Open(t, s.handler.ui(""), browser.Look{NoScript: true, Width: browser.Phone})
	require.Contains(t, tab.Text(".flow"), "Flowing")

	reach(t, tab, "[aria-labelledby=groups] td a[href*=documents]")
	enter(t, tab, "the list", `h1`, "Documents")
	reach(t, tab, "tbody a[href*=document]")
	enter(t, tab, "the document, by the second key", `h1`, "no row in IVCE_DTL for line")
	require.Contains(t, tab.Text(".panel"), "missing_detail_row")

	s.addLines(901)
	reach(t, tab, "a[href*=retry]")
	enter(t, tab, "the question", `h1`, "Retry 1 document")
	answer(t, tab, "the receipt", "#main", "applied")
	require.Contains(t, tab.Address(), "/api/ui/run?run=replay-")

	reach(t, tab, "nav a")
	enter(t, tab, "the overview", ".flow", "Flowing")
	reach(t, tab, ".flow a")
	enter(t, tab, "the question", "h1", "Pause the flow")
	answer(t, tab, "the pause", ".flow", "Paused by a developer on this machine")
	reach(t, tab, ".flow a")
	enter(t, tab, "the question", "h1", "Resume the flow")
	answer(t, tab, "the flow after it", ".flow", "Ramping up")

	reach(t, tab, "nav a[href$=findings]")
	enter(t, tab, "the findings", "h1", "Findings")
	require.Contains(t, tab.Text("#main"), "none, SQL equals Cosmos")
	require.Empty(t, tab.Sideways())
	tab.Accessible()
	require.Empty(t, tab.Messages())
}

// reach presses Tab until the focus is on an element of a CSS selector.
func reach(t *testing.T, tab *browser.Tab, selector string) {
	t.Helper()
	const most = 60
	for range most {
		tab.Press(browser.TabKey)
		if browser.Eval[bool](tab, fmt.Sprintf(`document.activeElement.matches(%q)`, selector)) {
			return
		}
	}
	require.Fail(t, "Tab does not reach it", selector)
}

// enter presses Enter where the focus is, and waits until an element of the page that it leads to says something.
func enter(t *testing.T, tab *browser.Tab, what, selector, says string) {
	t.Helper()
	tab.Press(browser.Enter)
	tab.Until(what, fmt.Sprintf(`document.querySelector(%q)?.innerText.includes(%q) === true`, selector, says))
}

// answer gives the reason of an action, and enters it.
func answer(t *testing.T, tab *browser.Tab, what, selector, says string) {
	t.Helper()
	reach(t, tab, "#why")
	tab.Press("a reason")
	enter(t, tab, what, selector, says)
}

// finds types a line into the header's field and goes to its document.
func finds(t *testing.T, tab *browser.Tab, line int) {
	t.Helper()
	tab.Type("#find", fmt.Sprint(line))
	require.Equal(t, int64(http.StatusOK), tab.Follow("header form button"))
	require.Contains(t, tab.Text("h1"), fmt.Sprintf("line %d: ", line))
	require.Contains(t, tab.Text("#main"), "missing_detail_row")
}

// retriesInABrowser finds a line, adds its row, and retries the group of waiting documents: the line's is committed,
// the others wait again.
func (s *stack) retriesInABrowser(t *testing.T, b *browser.Browser, look browser.Look, line, waiting int) {
	t.Helper()
	began := time.Now()
	tab := b.Open(t, s.handler.ui(""), look)
	finds(t, tab, line)
	t.Logf("PAGE line %d found in %s (%+v)", line, time.Since(began).Round(10*time.Millisecond), look)

	s.addLines(int64(line))
	require.Equal(t, int64(http.StatusOK), tab.Follow("nav a")) // the overview
	require.Equal(t, int64(http.StatusOK), tab.Follow(".acting td .button"))
	words := fmt.Sprintf("%d %s", waiting, ops.Plural(waiting, "document", "documents"))
	require.Equal(t, "Retry "+words, tab.Text("h1"))
	require.Equal(t, "Retry "+words, tab.Text("form.act button"))
	tab.Accessible()
	tab.Type("#why", "the row is there")
	require.Equal(t, int64(http.StatusOK), tab.Follow("form.act button"), "the browser is led to the receipt")
	require.Contains(t, tab.Address(), "/api/ui/run?run=replay-")
	require.Regexp(t, fmt.Sprintf(`Done\s+%d of %d\s`, waiting, waiting), tab.Text("#main"),
		"those that wait for their row fail again")
	require.Regexp(t, `applied\s+1\s`, tab.Text("#main"))
	require.Contains(t, tab.Text("#main"), "the row is there")
	require.Equal(t, int64(http.StatusOK), tab.Follow("nav a"))
	require.Regexp(t, `RUN_START\s+replay-\S+\s+the row is there\s+a developer on this machine`, tab.Text("#main"))
	require.Empty(t, tab.Sideways())
	require.Empty(t, tab.Messages())
}

// onlyReads looks with the role Reader, which the platform's sign-in gives: everything is shown, and no action is
// offered or done.
func (s *stack) onlyReads(t *testing.T, b *browser.Browser) {
	t.Helper()
	settings := off("CommitResults", "BatchManager", "BatchWorker", "RunDeadLetter",
		"BatchDeadLetter", "RecoverRetries")
	maps.Copy(settings, map[string]string{"UI_AUTH": "platform", "WEBSITE_AUTH_ENABLED": "true"})
	signedIn := s.launch("signed-in", settings)
	signedIn.waitReady()
	tab := b.Open(t, signedIn.ui(""),
		browser.Look{Headers: map[string]string{"X-MS-CLIENT-PRINCIPAL": signInOf(t, "Reader")}})
	require.Contains(t, tab.Text("header"), "ann@example.com")
	require.Contains(t, tab.Text("#main"), "missing_detail_row")
	require.Empty(t,
		browser.Eval[[]string](tab,
			`Array.from(document.querySelectorAll("main .button, main button:not(.copy)")).map((e) => e.innerText)`))
	for _, action := range []string{"pause", "resume", "retry?status=retry_scheduled"} {
		require.Equal(t, int64(http.StatusForbidden), tab.Go(signedIn.ui(action)), action)
		require.Contains(t, tab.Text("#main"), "this needs the role Operator, and yours is Reader")
	}
	tab.Accessible()
	nobody := b.Open(t, signedIn.ui("runs"), browser.Look{})
	require.Contains(t, nobody.Address(), "/.auth/login/aad?post_login_redirect_uri=%2Fapi%2Fui%2Fruns",
		"who has not signed in is sent to do so")
	require.NoError(t, signedIn.Stop())
}

// looksWithoutSQL looks while SQL does not answer: what Cosmos DB has is shown, and what only SQL has comes back by
// itself.
func (s *stack) looksWithoutSQL(t *testing.T, b *browser.Browser, line int) {
	t.Helper()
	sql := away.NewFile(filepath.Join(s.dir, "sqlwriter.db"), s.store.Writer())
	require.NoError(t, sql.Off(t.Context()))
	_, doc := aResult(t, "web", 1, nil)
	s.submit(doc)
	overview := b.Open(t, s.handler.ui(""), browser.Look{})
	see(t, overview, "that SQL fails", `document.querySelector(".needs .bad")?.innerText === "SQL Server"`)
	tab := b.Open(t, s.handler.ui(""), browser.Look{})
	finds(t, tab, line)
	require.Contains(t, tab.Text("#main"), "the ledger cannot be asked")
	require.Equal(t, int64(http.StatusOK), tab.Follow("nav a[href$=documents]"))
	require.Contains(t, tab.Text("tbody"), fmt.Sprint(line))
	for _, page := range []string{"findings", "runs"} {
		require.Equal(t, int64(http.StatusServiceUnavailable), tab.Follow("nav a[href$="+page+"]"), page)
		require.Contains(t, tab.Text("#main"), "comes back by itself", page)
	}
	require.NoError(t, sql.On(t.Context()))
	see(t, tab, "the runs again", shownText+`.includes("the row is there")`)
	require.Empty(t, tab.Messages())
}
