package run_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/run"
)

func TestTruncate(t *testing.T) {
	for _, c := range []struct {
		in    string
		limit int
		want  string
	}{
		{"", 3, ""},
		{"abc", 3, "abc"},
		{"abcd", 3, "ab…"},
		{"äöü", 3, "äöü"},
		{"äöüß", 3, "äö…"},
		{"a😀", 3, "a😀"}, // a surrogate pair is two units
		{"ab😀", 3, "ab…"},
		{"a😀b", 3, "a…"}, // and is never halved
		{"😀😀", 3, "😀…"},
		{"ab\xff", 3, "ab\ufffd"},
		{"a\x00b", 3, "a\ufffdb"},
		{"abc\xffd", 3, "ab…"},
	} {
		require.Equal(t, c.want, run.Truncate(c.in, c.limit), "%q in %d", c.in, c.limit)
	}
}

func TestTruncateKeepsAllThatFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringN(0, 40, -1).Draw(t, "text")
		limit := rapid.IntRange(1, 40).Draw(t, "limit")
		clipped := run.Truncate(text, limit)
		units := func(s string) int { return len(utf16.Encode([]rune(s))) }
		if !utf8.ValidString(clipped) || units(clipped) > limit {
			t.Fatalf("%q is no text of %d units", clipped, limit)
		}
		whole := strings.ReplaceAll(text, "\x00", "\ufffd")
		if units(whole) <= limit {
			if clipped != whole {
				t.Fatalf("%q fits, found %q", whole, clipped)
			}
			return
		}
		kept, found := strings.CutSuffix(clipped, "…")
		if !found || !strings.HasPrefix(whole, kept) {
			t.Fatalf("expected the beginning of %q and an ellipsis, found %q", whole, clipped)
		}
		next, _ := utf8.DecodeRuneInString(whole[len(kept):])
		if units(kept)+units(string(next))+1 <= limit {
			t.Fatalf("%q has room for one character more of %q", clipped, whole)
		}
	})
}

func TestARunIsNormalizedOrRefused(t *testing.T) {
	for _, id := range []string{"", "a b", "ä", "a\n", strings.Repeat("x", run.MaxRunID+1)} {
		_, err := run.Run{ID: id}.Normalize()
		require.Equal(t, []string{"internal", "run_id"},
			[]string{string(fault.KindOf(err)), fault.CodeOf(err)}, "%q", id)
	}
	_, err := run.Run{ID: "r", Filter: json.RawMessage(`{`)}.Normalize()
	require.Equal(t, fault.CodeBug, fault.CodeOf(err))
	_, err = run.Audit{Detail: json.RawMessage(`{`)}.Normalize()
	require.Equal(t, fault.CodeBug, fault.CodeOf(err))
	r, err := run.Run{ID: strings.Repeat("x", run.MaxRunID), Filter: json.RawMessage{}}.Normalize()
	require.NoError(t, err)
	require.Equal(t, run.Run{ID: strings.Repeat("x", run.MaxRunID)}, r)
}
