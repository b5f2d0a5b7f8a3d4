package main

import (
	"html"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/test/storybook"
)

// Each command that a page gives to be copied is one that the tool takes.
func TestTheCommandsOfPagesAreThere(t *testing.T) {
	command := regexp.MustCompile(`<code class="command">sqlwriterctl ([^<]*)</code>`)
	names := map[string]bool{}
	for _, s := range storybook.Stories() {
		for _, m := range command.FindAllStringSubmatch(s.Render(t.Context()).Body, -1) {
			line := html.UnescapeString(m[1])
			require.NoError(t, parses(t, shellWords(line)), "%s: %s", s.Name, line)
			names[regexp.MustCompile(`^[a-z]+ ?[a-z-]*`).FindString(line)] = true
		}
	}
	require.Subset(t, names, map[string]bool{
		"status": true, "audit list": true, "document list": true, "document why": true, "document retry": true,
		"document mark-committed": true, "evidence show": true, "evidence get": true,
		"flow pause": true, "flow resume": true, "run list": true, "run show": true, "run start": true,
		"run cancel": true, "run resume": true, "batch requeue": true, "finding list": true,
		"finding compare": true,
	})
}
