package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
)

// emit prints a result as -o and -q ask: as JSON, as ids, or by table.
func (a *app) emit(result any, ids []string, table func() error) error {
	switch {
	case a.Quiet:
		return a.list(ids)
	case a.Output == "json":
		return writeJSON(a.stdout, result)
	}
	return table()
}

// emitLine is emit for a result that is told in a line.
func (a *app) emitLine(result any, id, format string, args ...any) error {
	return a.emit(result, []string{id}, func() error {
		a.printf(format, args...)
		return nil
	})
}

// list prints ids, one a line. It prints none if one would be something else than what a shell reads.
func (a *app) list(ids []string) error {
	for _, id := range ids {
		if !isPlain(id) {
			return advised(fmt.Errorf("%s: it has control characters, and -q prints one id a line", plain(id)),
				"-o json has it as it is")
		}
	}
	for _, id := range ids {
		a.print(id + "\n")
	}
	return nil
}

// asData reports whether the result is for programs.
func (a *app) asData() bool { return a.Quiet || a.Output != "table" }

// writeJSON writes JSON. What plain shows as an escape is one in JSON's way, so that the value is the same.
func writeJSON(w io.Writer, v any) error {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return err
	}
	var b strings.Builder
	for _, r := range text.String() {
		switch {
		case r == '\n' || unicode.IsGraphic(r):
			b.WriteRune(r)
		default: // two of these stand for a character beyond U+FFFF
			for _, unit := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&b, `\u%04x`, unit)
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
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

// told are the rows of names and texts that have a text.
func told(rows [][]string) (all [][]string) {
	for _, row := range rows {
		if row[1] != "" {
			all = append(all, []string{row[0], oneLine(row[1])})
		}
	}
	return all
}

// oneLine removes line breaks, so that a text fits into a table.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
