package ui

import (
	"net/url"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/ops"
)

// A filter that a list has and its retry lost would retry more than a person saw.
func TestAListsFiltersGoWithItsRetry(t *testing.T) {
	v := &visit{Request: Request{Query: url.Values{
		"status": {"failed"}, "kind": {"document"}, "error_code": {"2628"}, "request": {"r"}, "line": {"7"},
		"since": {"2026-01-01"}, "until": {"2026-01-02"},
	}}}
	require.Len(t, v.Query, reflect.TypeFor[ops.DocumentFilter]().NumField())
	v.Form = url.Values{}
	for i, pairs := 0, filterPairs(v); i < len(pairs); i += 2 {
		v.Form.Set(pairs[i].(string), pairs[i+1].(string))
	}
	require.Equal(t, v.Query, v.Form)
	require.Equal(t, "x --status failed --kind document --error-code 2628 --request r --line 7 "+
		"--since 2026-01-01 --until 2026-01-02", filterFlags("x", v))
}
