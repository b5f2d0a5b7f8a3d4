package fault_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sqlwriter/internal/fault"
)

func TestTruncateNeverCutsACharacter(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		limit := rapid.IntRange(3, 40).Draw(t, "limit")
		got := fault.Truncate(text, limit)
		switch kept, cut := strings.CutSuffix(got, "…"); {
		case len(text) <= limit:
			require.Equal(t, text, got)
		case !cut || len(got) > limit || !utf8.ValidString(kept) || !strings.HasPrefix(text, kept):
			t.Fatalf("%q in %d bytes: %q", text, limit, got)
		}
	})
}

func TestTruncateIsUTF8(t *testing.T) {
	t.Parallel()
	require.Equal(t, "a\ufffdb", fault.Truncate("a\xff\xfeb", 40))
	require.Equal(t, "…", fault.Truncate("\xff\xff\xff\xffabc", 3))
}

func TestTruncateLineIsOneLine(t *testing.T) {
	t.Parallel()
	require.Equal(t, "a?b?c ü", fault.TruncateLine("a\nb\x1bc ü", 40))
	require.Equal(t, "?…", fault.TruncateLine("\nbcde", 4))
}
