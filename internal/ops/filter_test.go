package ops_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
)

// nothingHas is a value of each member of a filter that no document of the test has. A member that is missing here
// fails the test.
func nothingHas() map[string]any {
	return map[string]any{
		"Status": invoice.RetryScheduled, "Kind": "quota", "Code": "547", "Request": "another", "Line": int64(999),
		"Since": start().Add(time.Hour), "Until": start().Add(-time.Hour),
	}
}

// A retry takes what a list with the same filter shows. A member that either does not read would let it take
// everything.
func TestEachMemberOfAFilterNarrowsAListAndARetry(t *testing.T) {
	r := newRuns(t)
	r.put(result(1, "a", failed(1, fault.Document, "2628")))
	all := ops.DocumentFilter{Status: invoice.Failed}
	list, err := r.ops.Documents(t.Context(), ops.DocumentQuery{DocumentFilter: all})
	require.NoError(t, err)
	require.Equal(t, 1, list.Matched.Documents)
	retry, err := r.ops.RetryDocuments(t.Context(), ops.RetryRequest{DocumentFilter: all, DryRun: true})
	require.NoError(t, err)
	require.Equal(t, 1, retry.Matched)

	values := nothingHas()
	for member := range reflect.TypeFor[ops.DocumentFilter]().Fields() {
		t.Run(member.Name, func(t *testing.T) {
			require.Contains(t, values, member.Name, "a new member: search and selected must read it")
			narrowed := all
			reflect.ValueOf(&narrowed).Elem().FieldByIndex(member.Index).Set(reflect.ValueOf(values[member.Name]))
			list, err := r.ops.Documents(t.Context(), ops.DocumentQuery{DocumentFilter: narrowed})
			require.NoError(t, err)
			require.Zero(t, list.Matched.Documents)
			retry, err := r.ops.RetryDocuments(t.Context(), ops.RetryRequest{DocumentFilter: narrowed, DryRun: true})
			require.NoError(t, err)
			require.Zero(t, retry.Matched)
		})
	}
}
