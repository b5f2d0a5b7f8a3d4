package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// cronField is one field of a schedule: its bounds, and names for its numbers.
type cronField struct {
	least, most int
	names       []string
}

// cronFields are the six fields of NCrontab (docs/facts.md F48).
func cronFields() []cronField {
	return []cronField{
		{0, 59, nil},
		{0, 59, nil},
		{0, 23, nil},
		{1, 31, nil},
		{1, 12, []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}},
		{0, 6, []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}},
	}
}

// checkSchedule checks a schedule before the host does. With an invalid one the host leaves the function out, and the
// app looks healthy without it. Five fields and time spans, which the host accepts on some plans, are refused.
func checkSchedule(value string, _ lookup) (string, string) {
	const expected = "six fields (second, minute, hour, day, month, weekday) such as 0 */5 * * * *"
	kinds, fields := cronFields(), strings.Fields(value)
	if len(fields) != len(kinds) {
		return expected, fmt.Sprintf("%d: %q", len(fields), value)
	}
	for i, field := range fields {
		for part := range strings.SplitSeq(field, ",") {
			if !kinds[i].accepts(part) {
				return expected, fmt.Sprintf("%q as field %d", field, i+1)
			}
		}
	}
	return "", ""
}

// accepts reports whether a part is *, a value or a range, with or without a step.
func (f cronField) accepts(part string) bool {
	span, step, stepped := strings.Cut(part, "/")
	if n, err := strconv.Atoi(step); stepped && (err != nil || n < 1) {
		return false
	}
	if span == "*" {
		return true
	}
	from, to, ranged := strings.Cut(span, "-")
	return f.has(from) && (!ranged || f.has(to))
}

func (f cronField) has(value string) bool {
	if slices.Contains(f.names, strings.ToLower(value)) {
		return true
	}
	n, err := strconv.ParseUint(value, 10, 8)
	return err == nil && int(n) >= f.least && int(n) <= f.most
}
