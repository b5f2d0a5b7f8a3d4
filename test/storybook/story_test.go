package storybook_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

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
				require.NotContains(t, a.Body, "ZgotmplZ", "html/template refused an address")
				wellBehaved(t, a.Body)
			}
		})
	}
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
			require.False(t, a.Key == "style" || strings.HasPrefix(a.Key, "on"), "<%s %s=%q>: the policy allows no inline style and script", token.Data, a.Key, a.Val)
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
