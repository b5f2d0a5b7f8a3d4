package main

import (
	"encoding/json"
	"io"
	"strings"
)

// emit prints a result as -o and -q ask: as JSON, as ids, or by table.
func (a *app) emit(result any, ids []string, table func() error) error {
	switch {
	case a.Quiet:
		for _, id := range ids {
			a.printf("%s", id)
		}
		return nil
	case a.Output == "json":
		return writeJSON(a.stdout, result)
	}
	return table()
}

// asData reports whether the result is for programs.
func (a *app) asData() bool { return a.Quiet || a.Output != "table" }

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// idsOf lists a member of each element, for -q.
func idsOf[T any](all []T, id func(T) string) []string {
	ids := make([]string, len(all))
	for i, one := range all {
		ids[i] = id(one)
	}
	return ids
}

// orDash stands for an empty text.
func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// oneLine removes line breaks, so that a text fits into a table.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
