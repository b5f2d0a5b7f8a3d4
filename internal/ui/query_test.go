package ui

import (
	"net/url"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/ops"
)

// A filter that a list has and its retry lost would retry more than a person saw.
func TestAListsFiltersGoWithItsRetry(t *testing.T) {
	v := &visit{Request: Request{Query: url.Values{}}}
	flags := ""
	for member := range reflect.TypeFor[ops.DocumentFilter]().Fields() {
		name, _, _ := strings.Cut(member.Tag.Get("json"), ",")
		v.Query.Set(name, member.Name)
		flags += " --" + strings.ReplaceAll(name, "_", "-") + " " + member.Name
	}
	v.Form = url.Values{}
	for i, pairs := 0, filterPairs(v); i < len(pairs); i += 2 {
		v.Form.Set(pairs[i].(string), pairs[i+1].(string))
	}
	require.Equal(t, v.Query, v.Form)
	require.Equal(t, "x"+flags, filterFlags("x", v))
}
