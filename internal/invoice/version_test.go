package invoice_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sqlwriter/internal/invoice"
)

// order is one row of the table of versions: which of two documents wins their line.
type order struct {
	name, older, newer string // equal when newer is empty
	why                string
}

func orders() []order {
	return []order{
		{
			name: "later request", older: "2025-12-17 10:30:00.000000-06:00-0001-1421549",
			newer: "2025-12-17 10:30:00.000001-06:00-0001-1421549",
			why:   "the newer request wins, however late the older one arrives",
		},
		{
			name: "later by another clock face", older: "2025-12-17 10:30:00.000000-06:00-0001-1421549",
			newer: "2025-12-17 10:31:00.000000-07:00-0001-1421549", why: "times are compared in UTC",
		},
		{
			name: "before 1970", older: "1969-12-31 23:59:59.999999Z-1", newer: "1970-01-01 00:00:00Z-1",
			why: "negative microseconds are in order too",
		},
		{
			name: "equal times, two documents", older: "2025-12-17 10:30:00.000000-06:00-0001-1421549",
			newer: "2025-12-17 10:30:00.000000-06:00-0002-1421549",
			why:   "the larger SHA-256 of the id wins: by chance, but everywhere and always the same",
		},
		{
			name: "equal versions", older: "2025-12-17 10:30:00.000000-06:00-0001-1421549",
			why: "it is the same document: _ts orders its contents, and the same content changes nothing",
		},
	}
}

func versionOf(t testing.TB, id string) invoice.Version {
	us, ok := invoice.TimeOfID(id)
	require.True(t, ok, id)
	return invoice.Version{US: us, Key: invoice.Key(id)}
}

func TestTheNewerRequestWins(t *testing.T) {
	for _, o := range orders() {
		older := versionOf(t, o.older)
		if o.newer == "" {
			require.Zero(t, older.Compare(versionOf(t, o.older)), o.name)
			continue
		}
		newer := versionOf(t, o.newer)
		require.Equal(t, -1, older.Compare(newer), o.name)
		require.Equal(t, 1, newer.Compare(older), o.name)
	}
}

func renderOrders() string {
	var b strings.Builder
	b.WriteString("| Case | Older | Newer, wins | Why |\n|---|---|---|---|\n")
	for _, o := range orders() {
		newer := "(the same id)"
		if o.newer != "" {
			newer = "`" + o.newer + "`"
		}
		fmt.Fprintf(&b, "| %s | `%s` | %s | %s |\n", o.name, o.older, newer, o.why)
	}
	return b.String()
}

// A database compares (version_us, document_key) as a number and a text with a collation. This text has the same order,
// so Go, SQLite and T-SQL agree if it does.
func TestVersionIsATotalOrderThatEveryDatabaseShares(t *testing.T) {
	version := rapid.Custom(func(t *rapid.T) invoice.Version {
		return invoice.Version{
			US:  rapid.OneOf(rapid.Int64(), rapid.Int64Range(-2, 2)).Draw(t, "us"),
			Key: invoice.Key(rapid.SampledFrom([]string{"a", "b", "c", "doc1"}).Draw(t, "id")),
		}
	})
	written := func(v invoice.Version) string {
		return fmt.Sprintf("%020d%s", uint64(v.US)^(1<<63), v.Key)
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := version.Draw(t, "a"), version.Draw(t, "b")
		if got, want := a.Compare(b), strings.Compare(written(a), written(b)); got != want {
			t.Fatalf("%v against %v: %d, as text %d", a, b, got, want)
		}
		if a.Compare(b) != -b.Compare(a) || (a.Compare(b) == 0) != (a == b) {
			t.Fatalf("%v and %v have no order", a, b)
		}
	})
}
