package ops_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
)

// filterValues are two values of each member of a filter: one that only the first document of the test has, and one
// that none has. A member that is missing here fails the test.
func filterValues() map[string][2]any {
	return map[string][2]any{
		"Status": {invoice.Failed, invoice.Pending}, "Kind": {"document", "quota"}, "ErrorCode": {"2628", "1205"},
		"Request": {"first", "another"}, "Line": {int64(1), int64(999)},
		"Since": {start().Add(time.Minute), start().Add(time.Hour)},
		"Until": {start().Add(-time.Minute), start().Add(-time.Hour)},
	}
}

// A retry takes what a list with the same filter shows. A member that either does not read would let it take
// everything.
func TestEachMemberOfAFilterNarrowsAListAndARetry(t *testing.T) {
	values := filterValues()
	for member := range reflect.TypeFor[ops.DocumentFilter]().Fields() {
		t.Run(member.Name, func(t *testing.T) {
			require.Contains(t, values, member.Name, "a new member: search must read it")
			r := newRuns(t)
			switch now := r.clock; member.Name { // the first document changes before or after the second
			case "Since":
				r.clock = now.Add(2 * time.Minute)
			case "Until":
				r.clock = now.Add(-2 * time.Minute)
			}
			r.put(strings.Replace(result(1, "a", failed(1, fault.Document, "2628")), `"request_details":{`,
				`"request_details":{"id":"first",`, 1))
			r.clock = start()
			r.put(strings.Replace(result(2, "b", waits("547")), `_kind":"document"`, `_kind":"internal"`, 1))
			r.clock = start().Add(10 * time.Minute)
			for i, want := range []int{1, 0} {
				var filter ops.DocumentFilter
				reflect.ValueOf(&filter).Elem().FieldByIndex(member.Index).Set(reflect.ValueOf(values[member.Name][i]))
				list := must(r.ops.Documents(t.Context(), ops.DocumentQuery{DocumentFilter: filter}))(t)
				require.Equal(t, want, list.Matched.Documents, filter)
				if filter.Status == invoice.Pending {
					continue // a retry refuses it: TestARetryRefusesWhatItCannotTake
				}
				retry, err := r.ops.RetryDocuments(t.Context(), ops.RetryRequest{DocumentFilter: filter, DryRun: true})
				require.NoError(t, err)
				require.Equal(t, want, retry.Matched, filter)
				for _, match := range retry.First {
					require.Equal(t, id(1), match.ID)
				}
			}
		})
	}
}
