package app

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/invoice"
	"sqlwriter/test/mapping"
)

func TestABuildIsNamedByItsCommitAndElseByItsContent(t *testing.T) {
	content := func() string { return "sha256:0123456789ab" }
	for _, c := range []struct{ stamp, want, because string }{
		{"v1.4.0-0-g810495712345", "v1.4.0-0-g810495712345", "a commit says what the binary is"},
		{"810495712345", "810495712345", "a repository without tags"},
		{"", "sha256:0123456789ab", "no git: two binaries never share a name"},
		{
			"810495712345-dirty", "810495712345-dirty+0123456789ab",
			"changes that are in no commit differ from one build to the next",
		},
	} {
		require.Equal(t, c.want, version(c.stamp, content), c.because)
	}
	require.Equal(t, "a",
		version("a", func() string { require.Fail(t, "a commit needs no reading of the binary"); return "" }))
}

func TestTheContentNamesABinary(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return contentOf(path, nil)
	}
	first := file("a", "one build")
	require.Equal(t, first, file("b", "one build"), "the same binary on another machine")
	require.NotEqual(t, first, file("c", "another build"))
	require.Equal(t, "(devel)", contentOf(filepath.Join(dir, "nothing"), nil))
	require.Equal(t, "(devel)", contentOf(dir, nil))
	require.Equal(t, "(devel)", contentOf("", errors.New("this system cannot say")))

	// This test's own binary has no stamp.
	path, err := os.Executable()
	require.NoError(t, err)
	binary, err := os.ReadFile(path)
	require.NoError(t, err)
	sum := sha256.Sum256(binary)
	require.Equal(t, "sha256:"+hex.EncodeToString(sum[:])[:12], Version())
}

func TestABuildIsItsVersionAndItsMapping(t *testing.T) {
	one, other := mapping.Renamed(), mapping.Edited(func(tables map[invoice.Table]*mapping.Table) {
		tables[invoice.Detail].Column("UPC_CD")["missing"] = "keep"
	})
	require.Equal(t, Version(), Build(invoice.DefaultMapping()), "nothing to add")
	require.Equal(t, build("v1", one), build("v1", mapping.Renamed()))
	require.Equal(t, "v1+"+strconv.Itoa(one.Version()), build("v1", one))
	for _, version := range []string{"v1", strings.Repeat("long", 20)} {
		names := map[string]bool{}
		for _, name := range []string{
			build(version, nil), build(version, one), build(version, other), build(version+"x", nil),
			build(version+"x", one),
		} {
			require.LessOrEqual(t, len(name), 64)
			names[name] = true
		}
		require.Len(t, names, 5, "none shares its name with another")
	}
	require.Len(t, build(strings.Repeat("x", 64), nil), 64)
	require.Equal(t, strings.Repeat("x", 64), build(strings.Repeat("x", 64), nil), "what fits is not cut")
}

func TestTheStampedBinarySaysItsVersion(t *testing.T) {
	_, body := start(t, nil).health()
	require.Equal(t, stampedVersion, body["version"], "stage.Stamp names a variable that is there")
}
