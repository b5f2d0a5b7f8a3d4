// Package columntypes compares the types in SQL statements: both sides of each comparison, and each value with the
// column that it is written to. A server that must convert a column reads the whole table for one row.
package columntypes

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Columns has the type of each column of one table.
type Columns map[string]string

// Tables has the tables by name.
type Tables map[string]Columns

var (
	comments = regexp.MustCompile(`(?m)--.*$`)
	literals = regexp.MustCompile(`N?'[^']*'`)
	table    = regexp.MustCompile(`(?s)CREATE (?:TEMP )?TABLE (?:IF NOT EXISTS )?([\w.#]+) \((.*?)\n\)`)
	column   = regexp.MustCompile(`^\s+(\w+) (\w+(?: ?\([^)]*\))?)`)
	source   = regexp.MustCompile(`\b(?:FROM|JOIN|UPDATE|INTO)\s+([\w.#\[\]]+)(?: AS (\w+))?`)
	list     = regexp.MustCompile(`(?s)OPENJSON \([^)]*\) WITH \((.*?)\n\s*\)\s+AS (\w+)`)
	declared = regexp.MustCompile(`@(\w+) (\w+(?:\([^)]*\))?)`)
	compared = regexp.MustCompile(`(` + operand + `)(?: COLLATE \w+)?\s*(?:=|<>|<=|>=|<|>)\s*(` + operand + `)`)
	inserted = regexp.MustCompile(
		`(?s)INSERT INTO ([\w.#\[\]]+) \(([^)]*)\)\s+(?:SELECT|VALUES \()(.*?)(?:\n\s*FROM\b|\n?\);|;)`)
	staged = regexp.MustCompile(`(?s)SELECT(.*?)\bINTO (#\w+)\b`)
	cast   = regexp.MustCompile(`^CAST\(.* AS (\w+(?:\([^)]*\))?)\)$`)
	nullIf = regexp.MustCompile(`^NULLIF\((@\w+), ''\)$`)
)

// operand is a parameter, a column or a cast of either.
const operand = `CAST\((?:[^()]|\([^()]*\))* AS \w+(?:\([^)]*\))?\)|@\w+|(?:\w+\.)?\w+`

// Of reads the CREATE TABLE statements of a script.
func Of(script string) Tables {
	tables := Tables{}
	for _, found := range table.FindAllStringSubmatch(script, -1) {
		tables[found[1]] = columnsOf(found[2])
	}
	return tables
}

func columnsOf(text string) Columns {
	columns := Columns{}
	for line := range strings.Lines("\n" + text) {
		if found := column.FindStringSubmatch(line); found != nil && found[1] != "CONSTRAINT" {
			columns[found[1]] = found[2]
		}
	}
	return columns
}

// Declared has the parameters and variables of a procedure with their types.
func Declared(text string) func(parameter string) string {
	types := map[string]string{}
	for _, found := range declared.FindAllStringSubmatch(text, -1) {
		if types[found[1]] == "" && found[2] != "AS" {
			types[found[1]] = found[2]
		}
	}
	return func(parameter string) string { return types[parameter] }
}

// Check returns how many pairs a statement or procedure has whose types are known, and those of two families of types.
func (tables Tables) Check(text string, parameter func(name string) string) (pairs int, differ []string) {
	text = literals.ReplaceAllString(comments.ReplaceAllString(text, ""), "''")
	s := scope{names: map[string]Columns{}, parameter: parameter}
	own := Of(text)
	for _, found := range list.FindAllStringSubmatch(text, -1) {
		s.names[found[2]] = columnsOf(found[1])
	}
	for _, found := range staged.FindAllStringSubmatch(text, -1) {
		own[found[2]] = s.expressions(found[1])
	}
	for _, found := range source.FindAllStringSubmatch(text, -1) {
		name := strings.NewReplacer("[", "", "]", "").Replace(found[1])
		columns := own[name]
		if columns == nil {
			columns = tables[name]
		}
		if columns != nil {
			s.names[found[2]] = columns
		}
	}
	look := func(left, right string) {
		a, b := family(s.typeOf(left)), family(s.typeOf(right))
		if a == "" || b == "" {
			return
		}
		pairs++
		if a != b {
			differ = append(differ, fmt.Sprintf("%s is %s, %s is %s", left, a, right, b))
		}
	}
	for _, found := range compared.FindAllStringSubmatch(text, -1) {
		look(found[1], found[2])
	}
	for _, found := range inserted.FindAllStringSubmatch(text, -1) {
		name := strings.NewReplacer("[", "", "]", "").Replace(found[1])
		into := own[name]
		if into == nil {
			into = tables[name]
		}
		names, values := split(found[2]), split(found[3])
		if len(names) != len(values) {
			differ = append(differ, fmt.Sprintf("%d columns of %s and %d values", len(names), name, len(values)))
			continue
		}
		s.names[""] = into
		for i := range names {
			look(names[i], values[i])
		}
	}
	return pairs, differ
}

// scope has the columns of a statement by the alias of their table, and its parameters.
type scope struct {
	names     map[string]Columns
	parameter func(name string) string
}

// typeOf is the type of an operand; "" if it is not known.
func (s scope) typeOf(operand string) string {
	if found := nullIf.FindStringSubmatch(operand); found != nil {
		operand = found[1]
	}
	if found := cast.FindStringSubmatch(operand); found != nil {
		return found[1]
	}
	if name, ok := strings.CutPrefix(operand, "@"); ok {
		return s.parameter(name)
	}
	alias, name, qualified := strings.Cut(operand, ".")
	if !qualified {
		alias, name = "", operand
	}
	return s.names[alias][name]
}

// expressions are the columns of a SELECT INTO, as far as their types are known.
func (s scope) expressions(selected string) Columns {
	columns := Columns{}
	for _, e := range split(selected) {
		value, name := e, e[strings.LastIndex(e, ".")+1:]
		if at := strings.LastIndex(e, " AS "); at >= 0 && !strings.HasSuffix(e, ")") {
			value, name = e[:at], e[at+len(" AS "):]
		}
		columns[name] = s.typeOf(value)
	}
	return columns
}

// split divides a list at its outer commas.
func split(text string) []string {
	var parts []string
	depth, from := 0, 0
	for i, c := range text {
		switch c {
		case '(':
			depth++
		case ')':
			depth--
		case ',':
			if depth == 0 {
				parts, from = append(parts, strings.TrimSpace(text[from:i])), i+1
			}
		}
	}
	return append(parts, strings.TrimSpace(text[from:]))
}

// family is a type without its length. The whole numbers are one family: each converts the parameter, not the column.
func family(of string) string {
	name, _, _ := strings.Cut(strings.ToLower(of), "(")
	name = strings.TrimSpace(name)
	if slices.Contains([]string{"bit", "int", "bigint", "integer"}, name) {
		return "number"
	}
	return name
}
