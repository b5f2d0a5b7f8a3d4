package ui

import (
	"html/template"
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

func TestTheNextPageIsAnotherOfTheSameList(t *testing.T) {
	v := &visit{Request: Request{Path: "runs", Query: url.Values{"page": {"2"}, "limit": {"50"}, "status": {""}}}}
	require.Equal(t, "runs?limit=50&page=3", v.nextPage("3"))
}

// Sentences quote what documents and people say, also within a command.
func TestASentenceHasNoMarkupOfItsOwn(t *testing.T) {
	require.Equal(t, template.HTML("&lt;b&gt; <code>&lt;i&gt;</code>"), commands("<b> `<i>`"))
}
