package cosmos

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
)

// The charge of a page is that of its answer, also of an empty one.
func TestTheChargeIsThatOfThePage(t *testing.T) {
	t.Parallel()
	pages := []struct {
		charge, rows, next string
	}{{"2.25", `{"id":"a"}`, "x"}, {"0.5", "", "y"}, {"4", `{"id":"b"}`, ""}}
	_, c := startFake(t, func(w http.ResponseWriter, r *http.Request) {
		p := pages[map[string]int{"": 0, "x": 1, "y": 2}[r.Header.Get("X-Ms-Continuation")]]
		w.Header().Set("X-Ms-Request-Charge", p.charge)
		if p.next != "" {
			w.Header().Set("X-Ms-Continuation", p.next)
		}
		w.WriteHeader(http.StatusOK)
		_, _ = fmt.Fprintf(w, `{"Documents":[%s]}`, p.rows)
	})
	continuation, charges := "", []float64{}
	for range pages {
		page, err := c.Find(t.Context(), commit.Query{To: 1, Size: 10}, continuation)
		require.NoError(t, err)
		continuation, charges = page.Next, append(charges, page.Charge)
	}
	require.Equal(t, []float64{2.25, 0.5, 4}, charges)
	require.Empty(t, continuation)
}
