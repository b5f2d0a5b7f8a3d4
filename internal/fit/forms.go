package fit

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"
)

// same reports whether two values are equal in one of their forms: 0.95 of a document is "0.9500" of a column that is a
// text. Columns round times, some to a second.
func same(a, b any) bool {
	x, isTime := asTime(a)
	if y, ok := asTime(b); ok && isTime {
		return near(x, y)
	}
	of := forms(b)
	return slices.ContainsFunc(forms(a), func(form string) bool { return slices.Contains(of, form) })
}

// forms are the forms of what a driver gives, of a text of the mapping, or of a member; none of what is absent. A text
// of digits is no number: "012" is not 12.
func forms(value any) []string {
	switch v := value.(type) {
	case json.RawMessage:
		var member any
		dec := json.NewDecoder(strings.NewReader(string(v)))
		dec.UseNumber()
		if dec.Decode(&member) != nil {
			return nil
		}
		return forms(member)
	case string:
		all := []string{"text " + strings.TrimRight(v, " ")}
		if strings.Contains(v, ".") {
			all = append(all, number(v)...)
		}
		return all
	case bool: // a bit
		n := 0
		if v {
			n = 1
		}
		return []string{fmt.Sprint("text ", n)}
	case []byte: // a decimal
		return forms(json.Number(v))
	case json.Number, int64:
		text := fmt.Sprint(v)
		return append(number(text), "text "+text)
	case float64:
		return number(strconv.FormatFloat(v, 'f', -1, 64))
	}
	return nil
}

// number rounds to what columns of scores keep.
func number(text string) []string {
	const longest, digits = 40, 4
	if len(text) > longest || strings.Trim(text, "+-.0123456789") != "" {
		return nil
	}
	n, ok := new(big.Rat).SetString(text)
	if !ok {
		return nil
	}
	return []string{"number " + n.FloatString(digits)}
}

// asTime reads a time. One without an offset counts as UTC.
func asTime(value any) (time.Time, bool) {
	switch v := value.(type) {
	case time.Time:
		return v, true
	case json.RawMessage:
		var text string
		_ = json.Unmarshal(v, &text) // what is no text is no time
		return asTime(text)
	case string:
		v = strings.Replace(v, " ", "T", 1)
		for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999"} {
			if at, err := time.Parse(layout, v); err == nil {
				return at, true
			}
		}
	}
	return time.Time{}, false
}

func near(a, b time.Time) bool { return a.Sub(b).Abs() <= time.Second }

// empty reports a value that says nothing.
func empty(found any) bool { return found == nil || found == "" }
