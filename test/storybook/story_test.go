package storybook_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

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
			if a.Status != http.StatusSeeOther {
				require.True(t, strings.HasSuffix(strings.TrimSpace(a.Body), "</html>"), "the page ends early:\n%s", a.Body)
				require.NotContains(t, a.Body, "has no answer for")
			}
		})
	}
}
