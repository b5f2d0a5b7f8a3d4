package sqlserver

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf16"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// The codes of a value that its column does not take. Codes of validation are reused where the meaning is the same.
const (
	codeCodePage   = "validation.code_page"
	codeTooLong    = "validation.too_long"
	codeOutOfRange = "validation.out_of_range"
	codeNotNull    = "validation.not_null"
)

// columnLimits knows the limits of the user's columns, and refuses a document whose value does not fit. The server
// would refuse the whole request without naming the document, or change the value silently. It rounds decimals, and
// replaces characters that a code page lacks by similar ones (U+221E becomes 8).
//
// Limits that are unknown here are left to the server.
type columnLimits struct {
	mapping *invoice.Mapping
	read    func(ctx context.Context) (map[invoice.Table]userTable, error)
	now     func() time.Time
	known   atomic.Pointer[knownLimits]
}

// limitsAge is how long the limits are used before they are read again. A user may change a column at any time.
const limitsAge = 5 * time.Minute

// knownLimits are the limits as read at a time.
type knownLimits struct {
	at     time.Time
	tables map[invoice.Table]userTable
	// limits has the limit of each column of the mapping. It is nil for a column that is missing or cannot be
	// written, which the check at the start and the server report.
	limits []*limit
}

// limit is the limit of one column.
type limit struct {
	dbColumn
	// page is the code page of a column that has a known one.
	page *codePage
}

// applyFitting refuses the items with a value that does not fit, calls apply with the others, and returns all
// outcomes in their order. Its error is that of reading the columns or of apply.
func (l *columnLimits) applyFitting(
	ctx context.Context, items []commit.Item, apply func([]commit.Item) ([]commit.DocumentOutcome, error),
) ([]commit.DocumentOutcome, error) {
	refused, err := l.refusals(ctx, items)
	if err != nil {
		return nil, err
	}
	outcomes, places := make([]commit.DocumentOutcome, len(items)), make([]int, 0, len(items))
	var fitting []commit.Item
	for i, it := range items {
		if refused[i] != nil {
			outcomes[i] = commit.DocumentOutcome{DocumentID: it.DocumentID, Refused: refused[i]}
			continue
		}
		fitting, places = append(fitting, it), append(places, i)
	}
	if len(fitting) == 0 && len(items) > 0 { // an empty preview is sent all the same, as the heartbeat of a shadow
		return outcomes, nil
	}
	applied, err := apply(fitting)
	if err != nil {
		l.expireAfter(err)
		return nil, err
	}
	for n, o := range applied {
		outcomes[places[n]] = o
	}
	return outcomes, nil
}

// refusals returns an error for each item with a value that does not fit. It reads the columns again before it
// refuses, because a changed column must not count as a document's failure. The error is that of reading.
func (l *columnLimits) refusals(ctx context.Context, items []commit.Item) ([]error, error) {
	known, fresh, err := l.current(ctx)
	if err != nil {
		return nil, err
	}
	refused, some := l.compare(known, items)
	if !some || fresh {
		return refused, nil
	}
	if known, err = l.refresh(ctx); err != nil {
		return nil, err
	}
	refused, _ = l.compare(known, items)
	return refused, nil
}

// current returns the limits, read again if they are too old. fresh reports that they were read now.
func (l *columnLimits) current(ctx context.Context) (known *knownLimits, fresh bool, err error) {
	if known = l.known.Load(); known != nil && l.now().Sub(known.at) < limitsAge {
		return known, false, nil
	}
	known, err = l.refresh(ctx)
	return known, true, err
}

// expireAfter makes the next request read the columns again after an error that a narrower column explains. Other
// errors do not depend on columns, and a reading costs about as much as a small request.
func (l *columnLimits) expireAfter(err error) {
	ofColumns := []string{"2628", "8152", "515", "220", "242", "8114", "8115"}
	if known := l.known.Load(); known != nil && slices.Contains(ofColumns, fault.CodeOf(err)) {
		l.known.Store(&knownLimits{tables: known.tables, limits: known.limits})
	}
}

// refresh reads the columns.
func (l *columnLimits) refresh(ctx context.Context) (*knownLimits, error) {
	at := l.now()
	tables, err := l.read(ctx)
	if err != nil {
		return nil, err
	}
	pages := map[int]*codePage{}
	if before := l.known.Load(); before != nil { // a table has up to 20,000 characters
		for _, has := range before.limits {
			if has != nil && has.page != nil {
				pages[has.page.number] = has.page
			}
		}
	}
	known := &knownLimits{at: at, tables: tables, limits: make([]*limit, len(l.mapping.Columns()))}
	for i, c := range l.mapping.Columns() {
		has, ok := tables[c.Table].column(c.Name)
		if !ok || has.computed || has.identity {
			continue
		}
		known.limits[i] = &limit{dbColumn: has}
		if has.singleCodePage() {
			page, made := pages[has.codePage]
			if !made {
				page = newCodePage(has.codePage)
				pages[has.codePage] = page
			}
			known.limits[i].page = page
		}
	}
	l.known.Store(known)
	return known, nil
}

// compare checks every value. some reports that at least one item is refused.
func (l *columnLimits) compare(known *knownLimits, items []commit.Item) (refused []error, some bool) {
	refused = make([]error, len(items))
	for i, it := range items {
		if err := l.misfit(known, it); err != nil {
			refused[i], some = err, true
		}
	}
	return refused, some
}

// misfit is the error of an item's first value that does not fit. It checks the main line and the first duplicate,
// because all duplicates are equal. A mark does not write its NULLs.
func (l *columnLimits) misfit(known *knownLimits, it commit.Item) error {
	for position := range min(it.Rows(), 2) {
		values := l.mapping.MarkValues()
		if !it.FailureMark {
			values = l.mapping.RowValues(it.Values, it.Main, it.Line(position))
		}
		for i, has := range known.limits {
			if has == nil || (it.FailureMark && values[i].Null) {
				continue
			}
			c := l.mapping.Columns()[i]
			if code, expected, found := has.misfit(c, values[i]); code != "" {
				return fault.New(fault.Document, opApply, code, "document %s: %s: expected %s, found %s",
					it.DocumentID, label(c), expected, found)
			}
		}
	}
	return nil
}

// misfit explains why a column does not take a value. The code is empty if the value fits or the limit is unknown.
func (l *limit) misfit(c invoice.Column, v invoice.Value) (code, expected, found string) {
	if v.Null {
		if !l.nullable && (!c.Keep || c.Table == invoice.Tracking) { // only there rows are inserted
			return codeNotNull, "a value (NOT NULL)", "NULL"
		}
		return "", "", ""
	}
	switch c.Kind {
	case invoice.Text, invoice.Flag:
		return l.text(v.Text)
	case invoice.Integer, invoice.Decimal:
		return l.number(v.Text)
	case invoice.Time:
		if l.kind == "datetime" && v.Text < "1753" {
			return codeOutOfRange, "a year from 1753 on (datetime)", v.Text[:len("2025")]
		}
	}
	return "", "", ""
}

// stored is what the user's columns make of a row's values: it gives equal values for a row as it is written and as it
// is read. A column of fixed length adds blanks, and some times have fewer digits.
func (l *columnLimits) stored(row []invoice.Value) []invoice.Value {
	known := l.known.Load()
	if known == nil {
		return row
	}
	cloned := false
	for i, has := range known.limits {
		if has == nil || row[i].Null {
			continue
		}
		if text := has.stored(l.mapping.Columns()[i], row[i].Text); text != row[i].Text {
			if !cloned {
				row, cloned = slices.Clone(row), true
			}
			row[i] = invoice.Of(text)
		}
	}
	return row
}

// stored is what the column makes of a value: see columnLimits.stored.
func (l *limit) stored(c invoice.Column, text string) string {
	switch {
	case l.kind == "char" || l.kind == "nchar":
		return strings.TrimRight(text, " ")
	case c.Kind == invoice.Time && l.kind == "datetime":
		return rounded(c, text, func(t time.Time) time.Time {
			midnight := t.Truncate(24 * time.Hour)
			ticks := (t.Sub(midnight).Microseconds()*3 + 5000) / 10_000 // of 1/300 s
			return midnight.Add(time.Duration(ticks) * time.Second / 300)
		})
	case c.Kind == invoice.Time && l.scale < 6:
		step := time.Second
		for range l.scale {
			step /= 10
		}
		return rounded(c, text, func(t time.Time) time.Time { return t.Round(step) })
	}
	return text
}

// rounded rounds a time in canonical form.
func rounded(c invoice.Column, text string, round func(time.Time) time.Time) string {
	form := timeForm(c)
	t, err := time.Parse(form, text)
	if err != nil {
		return text
	}
	return round(t).Format(form)
}

// timeForm is the form of a column's canonical text.
func timeForm(c invoice.Column) string {
	if c.Local {
		return invoice.LocalLayout
	}
	return invoice.TimeLayout
}

// text compares a text with a text column.
func (l *limit) text(text string) (code, expected, found string) {
	size, unit := 0, "bytes"
	switch {
	case l.kind == "nvarchar" || l.kind == "nchar":
		unit = "UTF-16 units"
		for _, r := range text {
			size += utf16.RuneLen(r)
		}
	case isText(l.kind) && l.codePage == codePageUTF8:
		size = len(text)
	case l.page != nil:
		bytes, missing, ok := l.page.measure(text)
		if !ok {
			return codeCodePage, fmt.Sprintf("characters of the column's code page %d", l.page.number),
				fmt.Sprintf("U+%04X", missing)
		}
		size = bytes
	}
	if l.length >= 0 && size > l.length {
		return codeTooLong, fmt.Sprintf("at most %d %s (%s)", l.length, unit, l), strconv.Itoa(size)
	}
	return "", "", ""
}

// number compares a number with a number column. The server would round surplus digits after the point.
func (l *limit) number(text string) (code, expected, found string) {
	whole, fraction, _ := strings.Cut(text, ".")
	behind := len(strings.TrimRight(fraction, "0"))
	low, high, integer := integers(l.kind)
	switch {
	case integer:
		if n, err := strconv.ParseInt(whole, 10, 64); err != nil || n < low || n > high {
			return codeOutOfRange, fmt.Sprintf("a number from %d to %d (%s)", low, high, l), "one outside"
		}
	case l.kind == "decimal" || l.kind == "numeric":
		if before := len(strings.TrimLeft(whole, "-0")); before > l.precision-l.scale {
			return codeOutOfRange,
				fmt.Sprintf("at most %d digits before the point (%s)", l.precision-l.scale, l), strconv.Itoa(before)
		}
	default:
		return "", "", ""
	}
	if behind > l.scale {
		return codeOutOfRange, fmt.Sprintf("at most %d digits after the point (%s)", l.scale, l), strconv.Itoa(behind)
	}
	return "", "", ""
}

// integers is the range of an integer type. The server stores any number but 0 in a bit as 1.
func integers(kind string) (low, high int64, ok bool) {
	switch kind {
	case "bit":
		return 0, 1, true
	case "tinyint":
		return 0, math.MaxUint8, true
	case "smallint":
		return math.MinInt16, math.MaxInt16, true
	case "int":
		return math.MinInt32, math.MaxInt32, true
	case "bigint":
		return math.MinInt64, math.MaxInt64, true
	}
	return 0, 0, false
}
