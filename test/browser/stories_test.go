package browser_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sqlwriter/test/browser"
	"sqlwriter/test/storybook"
)

// eachStory opens a tab with each story that is a page, and runs a test on it. Two at a time: a page is drawn by the
// processor.
func eachStory(t *testing.T, look browser.Look, test func(t *testing.T, name string, tab *browser.Tab)) {
	b := browser.Start(t)
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	places := make(chan struct{}, 2)
	for _, s := range storybook.Stories() {
		if s.Render(t.Context()).Status == http.StatusSeeOther {
			continue // it leads to a page of another story
		}
		root := "/" + s.Name + "/"
		mux.Handle(root, s.Handler(root))
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			places <- struct{}{}
			defer func() { <-places }()
			test(t, s.Name, b.Open(t, server.URL+root, look))
		})
	}
}

// At a desk and on a phone, light and dark: axe-core finds nothing, no page must be scrolled sideways, the browser
// refuses nothing, and a browser without JavaScript shows the same.
func TestEveryStoryIsForEverybody(t *testing.T) {
	eachStory(t, browser.Look{}, func(t *testing.T, _ string, tab *browser.Tab) {
		for _, width := range []int64{browser.Wide, browser.Phone} {
			tab.Resize(width)
			assert.Empty(t, tab.Sideways())
			for _, dark := range []bool{false, true} {
				tab.Scheme(dark)
				tab.Accessible()
			}
		}
		// What the script adds is the age of the page, in the header, and a button for each command.
		const text, copying = `document.getElementById("main").innerText`, `document.querySelectorAll(".copy").length`
		assert.Equal(t, browser.Eval[int](tab, `document.querySelectorAll("code.command").length`),
			browser.Eval[int](tab, copying))
		scripted := browser.Eval[string](tab,
			`document.querySelectorAll(".copy").forEach((b) => { b.previousSibling.remove(); b.remove(); }), `+text)
		tab.Scripts(false)
		tab.Go(tab.Address())
		assert.Equal(t, scripted, browser.Eval[string](tab, text), "without JavaScript")
		assert.Zero(t, browser.Eval[int](tab, copying))
		assert.Empty(t, tab.Messages())
	})
}

// The button beside a command copies it, by keyboard too. Without JavaScript a click selects the whole command.
func TestACommandIsCopied(t *testing.T) {
	i := slices.IndexFunc(storybook.Stories(), func(s storybook.Story) bool { return s.Name == "document-failed" })
	server := httptest.NewServer(storybook.Stories()[i].Handler("/"))
	t.Cleanup(server.Close)
	b := browser.Start(t)
	tab := b.Open(t, server.URL, browser.Look{Width: browser.Phone})
	command := tab.Text(".todo code.command")
	require.Contains(t, command, "sqlwriterctl evidence show '2026-11-22 02:40:01.553120-06:00-0004-1421549'")
	tab.MayUseClipboard()
	browser.Eval[any](tab, `document.querySelector(".todo .copy").focus()`)
	tab.Press(browser.Enter)
	tab.Until("the button says so", `document.querySelector(".todo .copy").innerText === "Copied"`)
	require.Equal(t, command, browser.Eval[string](tab, `navigator.clipboard.readText()`))
	tab.Accessible()
	require.Empty(t, tab.Messages())

	plain := b.Open(t, server.URL, browser.Look{NoScript: true})
	plain.Click(".todo code.command")
	require.Equal(t, command, browser.Eval[string](plain, `getSelection().toString()`))
}

// Tab goes to the skip link, then to everything that can be clicked or typed into, in the order of the page, and one
// sees where it is.
func TestEveryStoryByKeyboard(t *testing.T) {
	// What Tab has to reach; of radio buttons with one name, it is one.
	const reachable = `(() => {
		const radios = new Set();
		return Array.from(document.querySelectorAll("a[href], button:enabled, input:enabled:not([type=hidden]), select:enabled, textarea:enabled, summary, [tabindex='0']"))
			.filter((e) => e.checkVisibility() && (e.type !== "radio" || !radios.has(e.name) && radios.add(e.name)));
	})()`
	// Names are for a person who reads the failure.
	const name = `((e) => e.tagName.toLowerCase() + (e.id ? "#" + e.id : "") + " " + (e.innerText || e.getAttribute("aria-label") || e.name || "").trim().slice(0, 40))`
	eachStory(t, browser.Look{}, func(t *testing.T, _ string, tab *browser.Tab) {
		expected := browser.Eval[[]string](tab, reachable+".map("+name+")")
		require.NotEmpty(t, expected)
		var met []string
		for range len(expected) + 1 {
			tab.Press(browser.TabKey)
			at := browser.Eval[struct {
				Name         string
				Body, Marked bool
			}](tab, `(() => {
				const e = document.activeElement, style = getComputedStyle(e), box = e.getBoundingClientRect();
				return {name: `+name+`(e), body: e === document.body,
					marked: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2 &&
						box.width > 0 && box.height > 0 &&
						box.right > 0 && box.bottom > 0 && box.left < innerWidth && box.top < innerHeight};
			})()`)
			if at.Body {
				break
			}
			met = append(met, at.Name)
			assert.True(t, at.Marked, "one does not see that the focus is on %s", at.Name)
		}
		require.Equal(t, expected, met)
		require.Equal(t, "a Skip to content", met[0])
		tab.Press(browser.TabKey)
		tab.Press(browser.Enter)
		tab.Until("the skip link leads to the content", `document.activeElement.id === "main"`)
		tab.Press(browser.TabKey)
		require.True(t, browser.Eval[bool](tab, `document.activeElement.closest("header") === null`),
			"the navigation is skipped")
	})
}
