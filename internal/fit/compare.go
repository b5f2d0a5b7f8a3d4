package fit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf16"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// leastValues is how many values must differ before equality says that a member is the right one. With fewer, two may
// be equal by chance.
const leastValues = 20

// most: a person has corrected some rows, so nine of ten are enough.
func most(n, of int) bool { return of > 0 && 10*n >= 9*of }

// tableCheck is the check of one table, whose rows are by line.
type tableCheck struct {
	*check

	table   invoice.Table
	columns []Column
	rows    map[int64][]any
	// twice counts rows of a line that has one already. taken are columns that were suggested.
	twice int
	taken map[string]bool
}

// table compares one table.
func (c *check) table(ctx context.Context, table invoice.Table, columns []Column) error {
	t := &tableCheck{check: c, table: table, columns: columns, taken: map[string]bool{}}
	if len(columns) == 0 {
		c.find(Wrong, string(table), "expected a table that this login may read, found none (SQL_SCHEMA, or GRANT SELECT ON %s)",
			table)
		return nil
	}
	key, err := t.read(ctx)
	switch code := fault.CodeOf(err); {
	case code == "229" || code == "230":
		c.find(Wrong, string(table), "the right SELECT is missing (GRANT SELECT ON %s)", table)
	case err != nil:
		return err
	}
	c.Rows[table] = len(t.rows)
	if t.twice > 0 {
		c.find(Wrong, string(table)+"."+key, "%d rows have a line that another row has: a write would change one of them",
			t.twice)
	}
	fed := []string{key}
	for i, column := range c.Reader.Mapping.Columns() {
		if column.Table == table {
			fed = append(fed, column.Name)
			t.column(i, column)
		}
	}
	for place, has := range columns {
		if table == invoice.Tracking && !slices.ContainsFunc(fed, has.is) { // in IVCE_DTL no row is inserted
			t.unfed(place, has)
		}
	}
	return nil
}

// unfed reports a column of rows that are inserted without it.
func (t *tableCheck) unfed(place int, has Column) {
	with := 0
	for _, row := range t.rows {
		if !empty(row[place]) {
			with++
		}
	}
	where := string(t.table) + "." + has.Name
	switch {
	case has.Fed:
		t.find(Wrong, where, "%s NOT NULL, which nothing feeds: no row can be inserted. Feed it by the mapping, or give it a default",
			has.Type)
	case most(with, len(t.rows)):
		t.find(Look, where, "%s, nothing feeds it, and %d of %d rows have a value: new rows will not, unless the mapping has it",
			has.Type, with, len(t.rows))
	}
}

func (c Column) is(name string) bool { return strings.EqualFold(c.Name, name) }

// place is the place of a column; -1 if there is none of the name.
func (t *tableCheck) place(name string) int {
	return slices.IndexFunc(t.columns, func(c Column) bool { return c.is(name) })
}

// read reads the rows by the mapping's key. Where they do not agree with the documents, it looks for another column by
// which they do. It returns the key's name.
func (t *tableCheck) read(ctx context.Context) (string, error) {
	name := t.Reader.Mapping.Key(t.table)
	where := string(t.table) + "." + name
	own := t.place(name)
	if own >= 0 && t.columns[own].Integer {
		if err := t.readBy(ctx, t.columns[own].Name); err != nil {
			return name, err
		}
		if equal, compared := t.agreement(); t.Lines == 0 || equal > 0 && 2*equal >= compared {
			return name, nil
		}
	}
	rows, twice := t.rows, t.twice
	for _, other := range t.columns {
		if !other.Integer || !other.Unique || other.is(name) {
			continue
		}
		if err := t.readBy(ctx, other.Name); err != nil {
			return name, err
		}
		if equal, compared := t.agreement(); equal >= leastValues && 2*equal >= compared {
			t.find(Wrong, where, "the key is another column: %s has %d of %d lines, and its rows agree with the documents",
				other.Name, len(t.rows), t.Lines)
			t.mends.of(t.table, name).name = other.Name
			return other.Name, nil
		}
	}
	if t.rows, t.twice = rows, twice; len(rows) == 0 {
		t.find(Wrong, where, "no row has a line of a committed document: another key, or another database")
	}
	return name, nil
}

// agreement counts the values of rows that are what the mapping would write.
func (t *tableCheck) agreement() (equal, compared int) {
	for i, c := range t.Reader.Mapping.Columns() {
		place := t.place(c.Name)
		if c.Table != t.table || place < 0 {
			continue
		}
		for line, row := range t.rows {
			d := t.lines[line]
			if v := t.Reader.Mapping.RowValues(d.Values, d.Main, line)[i]; !v.Null && !empty(row[place]) {
				compared++
				if same(v.Text, row[place]) {
					equal++
				}
			}
		}
	}
	return equal, compared
}

// readBy reads the rows of the committed documents' lines.
func (t *tableCheck) readBy(ctx context.Context, key string) error {
	var names []string
	var places []int
	for i, c := range t.columns {
		mapped := slices.ContainsFunc(t.Reader.Mapping.Columns(), func(o invoice.Column) bool {
			return o.Table == t.table && c.is(o.Name)
		})
		if mapped || !c.Large {
			names, places = append(names, c.Name), append(places, i)
		}
	}
	t.rows, t.twice = map[int64][]any{}, 0
	for chunk := range slices.Chunk(slices.Sorted(maps.Keys(t.lines)), atOnce) {
		rows, err := t.db.UserRows(ctx, t.table, key, names, chunk)
		if err != nil {
			return err
		}
		for _, row := range rows {
			values := make([]any, len(t.columns))
			for n, place := range places {
				values[place] = row.Values[n]
			}
			if t.rows[row.Line] != nil {
				t.twice++
			}
			t.rows[row.Line] = values
		}
	}
	return nil
}

// evidence is what rows say about a column.
type evidence struct {
	Compared

	// emptied rows would lose their value, filled ones have none. hours differ by whole hours, and zone by those of
	// TIME_ZONE. letters are what documents and rows have for a flag.
	emptied, filled, hours, zone int
	letters                      map[[2]string]bool
	// refused are the codes of the rules that refuse a document.
	refused map[string]bool
}

// column compares column i of the mapping.
func (t *tableCheck) column(i int, c invoice.Column) {
	e := evidence{
		Compared: Compared{Table: t.table, Column: c.Name, From: c.From(), Documents: len(t.all)},
		letters:  map[[2]string]bool{}, refused: map[string]bool{},
	}
	for _, d := range t.all {
		given := len(c.Paths) == 0 ||
			slices.ContainsFunc(c.Paths, func(path string) bool { return d.members[path] != nil })
		switch code := refusal(d, c); {
		case code != "":
			e.There++
			e.refused[code] = true
		case given:
			e.There++
			e.Fits++
		}
	}
	place := t.place(c.Name)
	for line, row := range t.rows {
		if d := t.lines[line]; place >= 0 && refusal(d, c) == "" {
			e.compare(t.Reader.Mapping.RowValues(d.Values, d.Main, line)[i], row[place], c, t.Zone)
		}
	}
	t.Columns = append(t.Columns, e.Compared)
	t.judge(i, c, place, e)
}

// refusal is the code of the rule that refuses a document's value; empty if none does. Columns of one member may have
// several lengths.
func refusal(d *sampled, c invoice.Column) string {
	var problem *invoice.Invalid
	if !errors.As(d.Problem, &problem) {
		return ""
	}
	for _, f := range problem.Fields {
		var text string
		_ = json.Unmarshal(d.members[f.Path], &text) // what is no text has another code
		if concerns(f, c) && (f.Code != "too_long" || len(utf16.Encode([]rune(text))) > c.Max) {
			return "validation." + f.Code
		}
	}
	return ""
}

// concerns reports whether a refused member is that of a column, or is on the way to it.
func concerns(f invoice.FieldError, c invoice.Column) bool {
	return slices.ContainsFunc(c.Paths, func(path string) bool {
		return path == f.Path || strings.HasPrefix(path, f.Path+".")
	})
}

// compare compares what would be written with what a row has.
func (e *evidence) compare(value invoice.Value, found any, c invoice.Column, zone *time.Location) {
	if value.Null = value.Null || value.Text == ""; value.Null && (empty(found) || c.Keep) {
		return
	}
	e.Rows++
	switch {
	case value.Null:
		e.emptied++
		return
	case empty(found):
		e.filled++
		return
	case same(value.Text, found):
		e.Same++
	}
	e.letters[[2]string{value.Text, fmt.Sprint(found)}] = true
	written, isWritten := asTime(value.Text)
	stored, isStored := asTime(found)
	if c.Kind != invoice.Time || !isWritten || !isStored {
		return
	}
	apart := stored.Sub(written)
	if hours := apart.Round(time.Hour); hours != 0 && (apart-hours).Abs() <= time.Second && hours.Abs() < 15*time.Hour {
		e.hours++
	}
	local, utc := written, stored // the clock's fields of the one are the local time of the other
	if c.Local {
		local, utc = stored, written
	}
	_, offset := local.In(zone).Zone()
	if offset != 0 && near(local.Add(time.Duration(offset)*time.Second), utc) {
		e.zone++
	}
}

// judge says what is wrong with a column, and what would mend it.
func (t *tableCheck) judge(i int, c invoice.Column, place int, e evidence) {
	mend := t.mends.of(t.table, c.Name)
	say := func(level Level, format string, args ...any) {
		t.find(level, string(t.table)+"."+c.Name, format, args...)
	}
	if place < 0 {
		mend.name = t.otherColumn(i, c, say)
		mend.gone = mend.name == ""
		return
	}
	says, takes := t.columns[place].Refuses(c)
	if says != "" {
		say(Wrong, "%s", says)
	}
	if !c.Status { // AI-ERROR must fit
		mend.kind = takes
	}
	if n := e.There - e.Fits; n > 0 {
		say(Look, "%d of %d documents would fail, because the rules refuse their value: %s", n, e.There,
			strings.Join(slices.Sorted(maps.Keys(e.refused)), ", "))
	}
	differ := fmt.Sprintf("%d of %d rows differ", e.Rows-e.Same, e.Rows)
	switch {
	case e.Rows == 0 && e.There == 0 && len(t.all) > 0:
		say(Look, "no document has %s, and no row tells what it holds", e.From)
	case e.Rows == 0:
	case most(e.Same, e.Rows):
		mend.known = e.Same >= leastValues
	case e.Rows < leastValues:
		say(Look, "%s: too few to tell from which member they are", differ)
	case most(e.filled, e.Rows-e.Same):
		say(Look, "%d rows are empty, and would get a value: the old writer did not feed the column", e.filled)
	case c.Status:
		say(Look, "%s: stewards change a status", differ)
	case most(e.zone, e.Rows):
		mend.kind = map[bool]string{false: "time(zone)", true: "time"}[c.Local]
		say(Wrong, "%s by the hours between UTC and TIME_ZONE: the type is %s", differ, mend.kind)
	case most(e.hours, e.Rows):
		say(Wrong, "%s by whole hours: they have local times of another zone than TIME_ZONE", differ)
	case c.Kind == invoice.Flag && e.twoOtherLetters():
		say(Wrong, "%s: they have two other texts for yes and no than %s and %s. Ask which, and name both in the type: flag(...)",
			differ, c.Flags[0], c.Flags[1])
	case len(c.Paths) == 0:
		say(Wrong, "%s from %s", differ, c.From())
	default:
		if most(e.emptied, e.Rows-e.Same) {
			differ = fmt.Sprintf("would empty %d rows", e.emptied)
		}
		t.otherMember(place, c, e, differ, say)
	}
}

// twoOtherLetters reports whether each of a flag's two texts goes with one text of the rows.
func (e evidence) twoOtherLetters() bool {
	texts, found := map[string]bool{}, map[string]bool{}
	for pair := range e.letters {
		texts[pair[0]], found[pair[1]] = true, true
	}
	return len(e.letters) == 2 && len(texts) == 2 && len(found) == 2 && e.Same == 0
}

// tally counts how often something equals a column, among the rows that have a value, and by how many values.
type tally struct {
	name        string
	rows, equal int
	values      map[string]bool
}

// match compares the rows' values at a place with what a document has.
func (t *tableCheck) match(name string, place int, of func(d *sampled, line int64) any) tally {
	m := tally{name: name, values: map[string]bool{}}
	for line, row := range t.rows {
		if empty(row[place]) {
			continue
		}
		m.rows++
		if value := of(t.lines[line], line); same(value, row[place]) {
			m.equal++
			m.values[fmt.Sprint(value)] = true
		}
	}
	return m
}

func best(all []tally) tally {
	slices.SortStableFunc(all, func(a, b tally) int { return b.equal - a.equal })
	return append(all, tally{})[0]
}

// otherMember finds the member that the rows of a column have.
func (t *tableCheck) otherMember(
	place int, c invoice.Column, e evidence, what string, say func(Level, string, ...any),
) {
	paths, values := map[string]bool{}, map[string]bool{}
	for line, row := range t.rows {
		for path := range t.lines[line].members {
			if mappable(path) {
				paths[path] = true
			}
		}
		if !empty(row[place]) {
			values[fmt.Sprint(row[place])] = true
		}
	}
	var all []tally
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		all = append(all, t.match(path, place, func(d *sampled, _ int64) any {
			raw := d.members[path]
			if v, ok := c.ValueOf(raw); ok && !v.Null { // flags and words
				return v.Text
			}
			return raw
		}))
	}
	m, mend := best(all), t.mends.of(t.table, c.Name)
	switch {
	case 2*e.Same >= e.Rows && m.equal <= e.Same:
		say(Look, "%s: people have corrected them, or they have a second source", what)
	case len(values) == 1:
		say(Wrong, "%s, and all have one value: a constant (\"value\"), or a member that cannot be told", what)
	case !most(m.equal, m.rows):
		say(Wrong, "%s, and no member equals them: name the member, or take the column out", what)
		mend.keep = e.There == 0 && !c.Required
	case len(m.values) < leastValues:
		say(Wrong, "%s; which member equals them cannot tell: fewer than %d values that differ", what, leastValues)
	default:
		say(Wrong, "%s; %s equals %d of %d", what, m.name, m.equal, m.rows)
		mend.from = m.name
	}
}

// otherColumn finds the column that has what column i of the mapping would get, though it is not in the table.
func (t *tableCheck) otherColumn(i int, c invoice.Column, say func(Level, string, ...any)) string {
	var all []tally
	for place, has := range t.columns {
		if !t.taken[has.Name] && !slices.ContainsFunc(t.Reader.Mapping.Columns(), func(o invoice.Column) bool {
			return o.Table == t.table && has.is(o.Name)
		}) {
			all = append(all, t.match(has.Name, place, func(d *sampled, line int64) any {
				if v := t.Reader.Mapping.RowValues(d.Values, d.Main, line)[i]; !v.Null {
					return v.Text
				}
				return json.RawMessage(nil)
			}))
		}
	}
	m := best(all)
	switch {
	case !most(m.equal, m.rows):
		say(Wrong, "no such column: take it out of the mapping, or add it to the table")
	case len(m.values) < leastValues:
		say(Wrong, "no such column; which one has its values cannot tell: fewer than %d that differ", leastValues)
	default:
		say(Wrong, "no such column: %s equals %s in %d of %d rows", m.name, c.From(), m.equal, m.rows)
		t.taken[m.name] = true
		return m.name
	}
	return ""
}
