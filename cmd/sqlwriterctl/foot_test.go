package main

import (
	"html"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/test/storybook"
)

var foot = regexp.MustCompile(`On the command line: <code>sqlwriterctl ([^<]*)</code>`)

// The command at the foot of a page is one that the tool takes.
func TestTheCommandsOfPagesAreThere(t *testing.T) {
	found := 0
	for _, s := range storybook.Stories() {
		if m := foot.FindStringSubmatch(s.Render(t.Context()).Body); m != nil {
			found++
			line := html.UnescapeString(m[1])
			require.NoError(t, parses(t, shellWords(line)), "%s: %s", s.Name, line)
		}
	}
	require.Greater(t, found, 40)
}
