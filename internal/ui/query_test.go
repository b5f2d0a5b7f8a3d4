package ui

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/ops"
)

// A filter that a list has and its retry lost would retry more than a person saw.
func TestAListsFiltersGoWithItsRetry(t *testing.T) {
	var members, names []string
	for i := range reflect.TypeFor[ops.DocumentFilter]().NumField() {
		name, _, _ := strings.Cut(reflect.TypeFor[ops.DocumentFilter]().Field(i).Tag.Get("json"), ",")
		members = append(members, name)
	}
	for _, pair := range filterNames() {
		names = append(names, pair[0])
	}
	require.ElementsMatch(t, members, names)
}
