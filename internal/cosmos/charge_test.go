package cosmos

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
)

// The charge of an answer is the sum over its pages, the empty ones included, also where a later page fails.
func TestChargesAreThoseOfAllPages(t *testing.T) {
	t.Parallel()
	pages := []struct {
		charge, rows, next string
		status             int
	}{
		{"2.25", `{"id":"a"}`, "x", http.StatusOK},
		{"0.5", "", "y", http.StatusOK},
		{"4", `{"id":"b"}`, "", http.StatusOK},
	}
	limit := ""
	_, c := startFake(t, func(w http.ResponseWriter, r *http.Request) {
		limit = r.Header.Get("X-Ms-Documentdb-Responsecontinuationtokenlimitinkb")
		p := pages[map[string]int{"": 0, "x": 1, "y": 2}[r.Header.Get("X-Ms-Continuation")]]
		w.Header().Set("X-Ms-Request-Charge", p.charge)
		if p.next != "" {
			w.Header().Set("X-Ms-Continuation", p.next)
		}
		w.WriteHeader(p.status)
		_, _ = fmt.Fprintf(w, `{"Documents":[%s]}`, p.rows)
	})
	d := c.Reconcile("web")
	docs, charge, err := d.ReadMany(t.Context(), []string{"a", "b"})
	require.NoError(t, err)
	require.Len(t, docs, 2)
	require.InDelta(t, 6.75, charge, 1e-6)
	_, next, charge, err := d.Changed(t.Context(), 0, 1, 10, "")
	require.NoError(t, err)
	require.InDelta(t, 2.25, charge, 1e-6, "one page")
	require.Equal(t, "1", limit, "a continuation of 1 KB is asked for")
	_, _, charge, err = d.Changed(t.Context(), 0, 1, 10, next)
	require.NoError(t, err)
	require.InDelta(t, 0.5, charge, 1e-6)

	pages[2].status = http.StatusForbidden
	_, charge, err = d.ReadMany(t.Context(), []string{"a", "b"})
	require.Equal(t, fault.Infrastructure, fault.KindOf(err), "%v", err)
	require.InDelta(t, 2.75, charge, 1e-6, "what was spent before the error")
}
