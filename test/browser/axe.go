package browser

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Accessible fails the test if axe-core finds anything on the page: contrast, names, roles, order of headings. The
// scripts of a page that was loaded without them stay off. A clock that stands still (Advance) moves on by a second.
func (tab *Tab) Accessible() {
	tab.t.Helper()
	assert.Empty(tab.t, strings.Join(tab.Violations(), "\n"), "%s (%+v)", tab.Address(), tab.look)
}

// Violations are what axe-core finds, one line for each element.
func (tab *Tab) Violations() []string {
	tab.t.Helper()
	if tab.look.NoScript {
		tab.Scripts(true) // axe-core waits with timers; the page is not loaded again
		defer tab.Scripts(false)
	}
	within(tab, "axe-core", chromedp.Evaluate[chromedp.Void](tab.browser.axe))
	Eval[any](tab,
		`window.violations = undefined; axe.run(document, {resultTypes: ["violations"]}).then((r) => { window.violations = JSON.stringify(r.violations); }); 0`)
	if tab.stopped {
		tab.Advance(time.Second) // for its timers
	}
	tab.Until("axe-core ends", `window.violations !== undefined`)
	raw := Eval[string](tab, `window.violations`)
	var found []struct {
		ID, Impact, Help string
		Nodes            []struct {
			Target         []any
			HTML           string
			FailureSummary string
		}
	}
	require.NoError(tab.t, json.Unmarshal([]byte(raw), &found))
	var lines []string
	for _, rule := range found {
		for _, node := range rule.Nodes {
			lines = append(lines,
				fmt.Sprintf("%s (%s): %s\n  %v: %s\n  %s", rule.ID, rule.Impact, rule.Help, node.Target, node.HTML,
					strings.ReplaceAll(node.FailureSummary, "\n", "\n  ")))
		}
	}
	return lines
}
