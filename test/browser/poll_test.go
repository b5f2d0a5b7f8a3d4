package browser_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/test/browser"
	"sqlwriter/test/storybook"
)

// live is a page that changes with each request: a live story's, with things at its end that a person may hold on to.
type live struct {
	http.Handler

	address string
	// rounds counts how often the page was asked for; away: nobody answers.
	rounds atomic.Int64
	away   atomic.Bool
	// begins hears of each request but the first, which waits for goesOn, if they are not nil.
	begins, goesOn chan struct{}
	// change is done to the page's text.
	change func(page string) string
}

// poll is the time between two polls, as the pages have it.
const poll = 15 * time.Second

const held = `<section><h2>Round %[1]d</h2>
<p id="round">round %[1]d</p>
<div class="scroll" tabindex="0" role="region" aria-label="wide"><table><tr><td><code>%[2]s</code></td></tr></table></div>
<p>%[3]s</p>
<details id="more"><summary>More</summary><p>more</p></details>
<form><p><label for="typed">Typed</label><input id="typed" type="text" name="typed" value=""></p>
<p><input id="ticked" type="checkbox"><label for="ticked">Ticked</label></p>
<p><label for="chosen">Chosen</label><select id="chosen"><option>one</option><option>two</option></select></p></form>
<p><a id="last" href="#round">the last link</a></p></section></main>`

func newLive(t *testing.T) *live {
	t.Helper()
	l := &live{change: func(page string) string { return page }}
	story := storybook.Stories()[0]
	const root = "/live/"
	pages := story.Handler(root)
	l.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != root {
			pages.ServeHTTP(w, r)
			return
		}
		round := l.rounds.Add(1)
		if round > 1 && l.begins != nil {
			l.begins <- struct{}{}
			<-l.goesOn
		}
		if l.away.Load() {
			panic(http.ErrAbortHandler) // the connection breaks
		}
		answer := httptest.NewRecorder()
		pages.ServeHTTP(answer, r)
		page := answer.Body.String()
		require.Contains(t, page, `data-poll="15"`)
		page = strings.Replace(page, "</main>",
			fmt.Sprintf(held, round, strings.Repeat("wide_", 200), strings.Repeat("long<br>", 100)), 1)
		page = strings.Replace(page, "<title>", fmt.Sprintf("<title>%d ", round), 1)
		for name, values := range answer.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(answer.Code)
		_, _ = fmt.Fprint(w, l.change(page))
	})
	server := httptest.NewServer(l)
	t.Cleanup(server.Close)
	l.address = server.URL + root
	return l
}

// A live page brings new content into its place. Nothing that a person holds on to is lost.
func TestALivePageChangesInItsPlace(t *testing.T) {
	l := newLive(t)
	tab := browser.Start(t).Open(t, l.address, browser.Look{Width: browser.Phone})
	browser.Eval[int](tab, `window.same = 1`)
	tab.Click("#more summary")
	browser.Eval[bool](tab,
		`document.querySelector(".scroll[aria-label=wide]").scrollLeft = 70; document.getElementById("last").focus(); scrollTo(0, 600); true`)
	for round := 2; round <= 4; round++ {
		tab.Advance(poll)
		tab.Until("the next round is shown",
			fmt.Sprintf(`document.getElementById("round").innerText === "round %d"`, round))
		require.Equal(t, 1, browser.Eval[int](tab, `window.same`), "the page is not loaded anew")
		require.Equal(t, "last", browser.Eval[string](tab, `document.activeElement.id`), "the focus stays")
		require.Equal(t, 600, browser.Eval[int](tab, `scrollY`), "the place stays")
		require.Equal(t, 70, browser.Eval[int](tab, `document.querySelector(".scroll[aria-label=wide]").scrollLeft`),
			"the place in a table stays")
		require.True(t, browser.Eval[bool](tab, `document.getElementById("more").open`), "what is open stays open")
		require.True(t,
			strings.HasPrefix(browser.Eval[string](tab, `document.title`), fmt.Sprint(round)), "the title changes")
		require.False(t, browser.Eval[bool](tab, `document.body.classList.contains("stale")`))
		require.False(t, browser.Eval[bool](tab, `document.getElementById("main").hasAttribute("aria-busy")`))
	}
	tab.Accessible()
	require.Empty(t, tab.Messages())
}

// A page that nobody sees asks for nothing: it would keep an instance of the app awake. It is fresh as soon as somebody
// looks.
func TestAHiddenPageAsksForNothing(t *testing.T) {
	l := newLive(t)
	tab := browser.Start(t).Open(t, l.address, browser.Look{})
	tab.Hide()
	tab.Until("the page knows", `document.hidden`)
	tab.Advance(20 * poll)
	require.Equal(t, int64(1), l.rounds.Load())
	tab.Show()
	tab.Until("it is fresh at once", `document.getElementById("round").innerText === "round 2"`)
	tab.Advance(poll)
	tab.Until("and goes on", `document.getElementById("round").innerText === "round 3"`)
}

// What somebody types or chooses is left alone, until it is taken back.
func TestAFormThatSomebodyFillsIsLeftAlone(t *testing.T) {
	l := newLive(t)
	tab := browser.Start(t).Open(t, l.address, browser.Look{})
	tab.Type("#typed", "why")
	tab.Advance(20 * poll)
	require.Equal(t, int64(1), l.rounds.Load())
	require.Equal(t, "why", browser.Eval[string](tab, `document.getElementById("typed").value`))
	browser.Eval[string](tab, `document.getElementById("typed").value = ""`)
	for _, change := range []struct{ there, back string }{
		{`document.getElementById("ticked").checked = true`, `document.getElementById("ticked").checked = false`},
		{`document.getElementById("chosen").selectedIndex = 1`, `document.getElementById("chosen").selectedIndex = 0`},
	} {
		before := l.rounds.Load()
		browser.Eval[any](tab, change.there)
		tab.Advance(20 * poll)
		require.Equal(t, before, l.rounds.Load(), change.there)
		browser.Eval[any](tab, change.back)
		tab.Advance(poll)
		tab.Until("the page changes again",
			fmt.Sprintf(`document.getElementById("round").innerText === "round %d"`, before+1))
	}
}

// So is what somebody begins to type while the page is asked for. One poll waits for another.
func TestWhatIsTypedDuringAPollStays(t *testing.T) {
	l := newLive(t)
	const many = 100
	l.begins, l.goesOn = make(chan struct{}, many), make(chan struct{})
	release := sync.OnceFunc(func() { close(l.goesOn) })
	t.Cleanup(release)
	l.change = func(page string) string { return strings.Replace(page, `data-poll="15"`, `data-poll="0.2"`, 1) }
	tab := browser.Start(t).Open(t, l.address, browser.Look{})
	<-l.begins
	// Counted here: the browser's cache lets the second of two equal requests wait for the first.
	browser.Eval[int](tab,
		`window.asked = 0, window.ask = fetch, window.fetch = (...all) => { window.asked++; return ask(...all); }, window.began = performance.now(), 0`)
	tab.Until("two more polls are due", `performance.now() > began + 450`)
	require.Zero(t, browser.Eval[int](tab, `asked`))
	tab.Type("#typed", "why")
	release()
	tab.Until("the poll ends", `!document.getElementById("main").hasAttribute("aria-busy")`)
	require.Equal(t, "round 1", tab.Text("#round"))
	require.Equal(t, "why", browser.Eval[string](tab, `document.getElementById("typed").value`))
}

// A page whose polls fail says how old it is, and that this is too old; then it is fresh again.
func TestAPageWhosePollsFailIsStale(t *testing.T) {
	l := newLive(t)
	tab := browser.Start(t).Open(t, l.address, browser.Look{})
	const stale = `document.body.classList.contains("stale")`
	l.away.Store(true)
	tab.Advance(2 * poll)
	require.False(t, browser.Eval[bool](tab, stale))
	tab.Advance(10 * time.Second)
	require.True(t, browser.Eval[bool](tab, stale))
	require.Contains(t, tab.Text("#fresh"), "(40 s ago)")
	require.Equal(t, "round 1", tab.Text("#round"), "what was known is still there")
	tab.Accessible()
	l.away.Store(false)
	tab.Advance(poll)
	tab.Until("the page is fresh", `!`+stale+` && document.getElementById("round").innerText.startsWith("round ")`)
	require.NotEqual(t, "round 1", tab.Text("#round"))
}

// Somebody else's page, as that of a sign-in which ended, does not take the place of ours.
func TestAnotherSitesPageIsNotTakenOver(t *testing.T) {
	l := newLive(t)
	other := newLive(t)
	polls := l.Handler
	l.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/live/" && l.rounds.Load() == 1 {
			http.Redirect(w, r, other.address, http.StatusFound)
			return
		}
		polls.ServeHTTP(w, r)
	})
	tab := browser.Start(t).Open(t, l.address, browser.Look{})
	tab.Advance(4 * poll)
	require.True(t, browser.Eval[bool](tab, `document.body.classList.contains("stale")`))
	require.Equal(t, "round 1", tab.Text("#round"))
	require.Zero(t, other.rounds.Load(), "the policy lets the script ask its own site alone")
}
