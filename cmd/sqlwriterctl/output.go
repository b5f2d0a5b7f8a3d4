package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// emit prints a result as -o and -q ask: as JSON, as YAML, as ids, or by table.
func (a *app) emit(result any, ids []string, table func() error) error {
	switch {
	case a.Quiet:
		for _, id := range ids {
			a.printf("%s", id)
		}
		return nil
	case a.Output == "json":
		return writeJSON(a.stdout, result)
	case a.Output == "yaml":
		return writeYAML(a.stdout, result)
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

// writeYAML writes the members of the JSON, in their order.
func writeYAML(w io.Writer, v any) error {
	var text bytes.Buffer
	if err := writeJSON(&text, v); err != nil {
		return err
	}
	var node yaml.Node // JSON is YAML
	if err := yaml.Unmarshal(text.Bytes(), &node); err != nil {
		return fmt.Errorf("yaml: %w", err)
	}
	blockStyle(&node)
	enc := yaml.NewEncoder(w)
	enc.SetIndent(len("  "))
	return enc.Encode(&node)
}

func blockStyle(node *yaml.Node) {
	node.Style = 0
	for _, n := range node.Content {
		blockStyle(n)
	}
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
