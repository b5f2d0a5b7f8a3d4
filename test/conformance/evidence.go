package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
)

// EvidenceHarness has the port under test and the functions that the suite needs around it.
type EvidenceHarness struct {
	// Evidence is the port under test, with no files.
	Evidence commit.Evidence
	// Read looks at a file as it is stored, not through Evidence; ok is false when there is none.
	Read func(t testing.TB, name string) (content []byte, ok bool)
}

// TestEvidence checks an implementation of commit.Evidence against the port's contract. open makes a new one per test.
func TestEvidence(t *testing.T, open func(t *testing.T) EvidenceHarness) {
	for _, c := range []struct {
		name string
		run  func(*testing.T, EvidenceHarness)
	}{
		{"a file is kept byte by byte", keepsBytes},
		{"the first content stays, and a second keep succeeds", firstContentStays},
		{"of 20 concurrent keeps of one name all succeed and one stays whole", keepRace},
		{"each name is a file of its own", eachNameIsAFile},
		{"a name may be as long as the port says", longestName},
		{"a content of 2 MB", largeContent},
		{"an empty content is a file as well", emptyContent},
		{"the caller's bytes remain the caller's", callersBytes},
		{"a name that is none is refused, and nothing is stored", impossibleNames},
		{"a keep whose context has ended is infrastructure, and the next succeeds", cancelledKeep},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, open(t)) })
	}
}

// keep keeps a file and looks at it.
func (h EvidenceHarness) keep(t *testing.T, name string, content []byte) {
	t.Helper()
	require.NoError(t, h.Evidence.Keep(t.Context(), name, content))
	h.holds(t, name, content)
}

// holds requires that a file has a content.
func (h EvidenceHarness) holds(t *testing.T, name string, want []byte) {
	t.Helper()
	got, ok := h.Read(t, name)
	require.True(t, ok, "no file %q", name)
	require.True(t, bytes.Equal(want, got), "%q holds %d bytes that are not the %d kept", name, len(got), len(want))
}

func keepsBytes(t *testing.T, h EvidenceHarness) {
	_, ok := h.Read(t, "failed/1/a/e/original.json")
	require.False(t, ok, "the harness sees no files before there are any")
	h.keep(t, "failed/1/a/e/original.json", []byte("{\"text\":\"\u00fc\U0001f600\"}\r\n\x00\xff"))
}

func firstContentStays(t *testing.T, h EvidenceHarness) {
	const name = "failed/1/a/e/error.json"
	first := []byte(`{"try":1}`)
	h.keep(t, name, first)
	for range 3 {
		require.NoError(t, h.Evidence.Keep(t.Context(), name, []byte(`{"try":2, "longer":true}`)))
		require.NoError(t, h.Evidence.Keep(t.Context(), name, nil))
	}
	h.holds(t, name, first)
}

func keepRace(t *testing.T, h EvidenceHarness) {
	const name, n = "failed/1/a/e/metadata.json", 20
	contents := make([][]byte, n)
	_, errs := atOnce(n, func(i int) (bool, error) {
		contents[i] = bytes.Repeat([]byte{byte('a' + i)}, 1000+i)
		return true, h.Evidence.Keep(t.Context(), name, contents[i])
	})
	require.NoError(t, errors.Join(errs...))
	stayed, ok := h.Read(t, name)
	require.True(t, ok)
	require.Contains(t, contents, stayed, "one of the contents, whole")
	require.NoError(t, h.Evidence.Keep(t.Context(), name, []byte("another")))
	h.holds(t, name, stayed)
}

func eachNameIsAFile(t *testing.T, h EvidenceHarness) {
	names := []string{
		"a", "A", "failed/1/a/e/original.json", "failed/1/a%2Fe/original.json", "failed/1/a%252Fe/original.json",
		"failed/unknown/2025-12-17%2010%3A30%3A15.123456-06%3A00/e/error.json", "failed/1/a%20b", "failed/1/a%2520b",
		"100%", "%", "%%", "%zz", "%C3%BC", "%3Fx", "%23x", "%5C", "..a", ".a", "a..b", "...a/b",
		"~", "-", "_", "a~b_c-d.e",
		"failed/1/%2E", "failed/1/%2E%2E/x", "failed/1",
	}
	for i, name := range names {
		require.NoError(t, h.Evidence.Keep(t.Context(), name, fmt.Appendf(nil, "%d %s", i, name)), name)
	}
	for i, name := range names {
		h.holds(t, name, fmt.Appendf(nil, "%d %s", i, name))
	}
}

func longestName(t *testing.T, h EvidenceHarness) {
	// What an escaped id of 255 characters comes to, and more.
	long := "failed/1/" + strings.Repeat("%2F", 400)
	long = long[:commit.MaxEvidenceName-1]
	h.keep(t, long+"a", []byte("a"))
	h.keep(t, long+"b", []byte("b"))
	h.holds(t, long+"a", []byte("a"))
}

func largeContent(t *testing.T, h EvidenceHarness) {
	h.keep(t, "failed/1/a/e/original.json", bytes.Repeat([]byte("0123456789abcdef"), 2<<20/16))
}

func emptyContent(t *testing.T, h EvidenceHarness) {
	h.keep(t, "empty", []byte{})
	h.keep(t, "nil", nil)
	require.NoError(t, h.Evidence.Keep(t.Context(), "empty", []byte("later")))
	h.holds(t, "empty", nil)
}

func callersBytes(t *testing.T, h EvidenceHarness) {
	content := []byte("before")
	h.keep(t, "a", content)
	copy(content, "AFTER!")
	h.holds(t, "a", []byte("before"))
}

func impossibleNames(t *testing.T, h EvidenceHarness) {
	for _, name := range []string{
		"", "/", "/a", "a/", "a//b", ".", "..", "a/.", "a/../b", "a./b", "a.", "a b", "a+b", "a?b", "a#b", `a\b`,
		"a:b", "\u00fc", "a\x00b",
		strings.Repeat("a", commit.MaxEvidenceName+1),
	} {
		err := h.Evidence.Keep(t.Context(), name, []byte("x"))
		require.Equal(t, fault.Internal, fault.KindOf(err), "%q: %v", name, err)
	}
	for _, name := range []string{"a", "b"} {
		_, ok := h.Read(t, name)
		require.False(t, ok, name)
	}
}

func cancelledKeep(t *testing.T, h EvidenceHarness) {
	ctx := lateContext(t)
	err := h.Evidence.Keep(ctx, "a", []byte("x"))
	require.Equal(t, fault.Infrastructure, fault.KindOf(err), "%v", err)
	require.ErrorIs(t, err, context.Canceled)
	_, ok := h.Read(t, "a")
	require.False(t, ok)
	h.keep(t, "a", []byte("y"))
}
