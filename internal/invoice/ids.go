package invoice

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
)

// Key is the document key of an id: the lower-case hex SHA-256 of its bytes, 64 characters. Ids have any length and
// alphabet; keys compare the same in Go, SQLite and every collation of SQL Server.
func Key(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])
}

// lineID reads the id of an invoice line strictly, because a wrong id would write one line's result to another. A JSON
// number must be whole and at most 2^53-1; a text must be exactly the digits.
func lineID(span []byte) (int64, *FieldError) {
	const expected = "the id of an invoice line: a whole number from 1"
	switch typeOf(span) {
	case jsonNumber:
		if n := parseNumber(span); n != nil && n.IsInt() && n.Sign() > 0 {
			v, ok := toInt64(n)
			if !ok || v > maxExact {
				return 0,
					refused("inexact_id",
						"an id beyond 2^53-1 as text, because JSON writers round such numbers to another line's id",
						span)
			}
			return v, nil
		}
	case jsonText:
		if v, ok := digitsID(span); ok {
			return v, nil
		}
	default:
	}
	return 0, refused("id", expected, span)
}

// LineID reads the id of an invoice line from a document's JSON; 0 when it is none.
func LineID(span []byte) int64 {
	id, _ := lineID(span)
	return id
}

// digitsID reads a text that is exactly the digits of a positive int64, without sign, blank or leading zero.
func digitsID(span []byte) (int64, bool) {
	const longest = len("9223372036854775807")
	text, complete := beginning(span, longest)
	v, err := strconv.ParseInt(text, 10, 64)
	return v, complete && err == nil && v > 0 && strconv.FormatInt(v, 10) == text
}

// lines reads the main line's id and the duplicates' ids: in order, without repeats and without the main one.
func (r *reading) lines() {
	p := r.plan
	if rpa := r.span(p.rpa); typeOf(rpa) != jsonObject {
		r.unreadable(p.rpa.path, rpa, refused("not_an_object", "an object", rpa))
	} else {
		id, refusal := lineID(r.span(p.main))
		r.doc.Main = id
		r.unreadable(p.main.path, r.span(p.main), refusal)
	}

	if o := p.duplicates.obstacle(r.spans); o != nil {
		r.unreadable(o.path, r.span(o), refused("not_an_object", "an object", r.span(o)))
		return
	}
	list := r.span(p.duplicates)
	if !given(list) {
		return
	}
	if typeOf(list) != jsonList {
		r.unreadable(p.duplicates.path, list, refused("not_a_list", "a list of ids", list))
		return
	}
	seen := map[int64]bool{r.doc.Main: true}
	eachElement(list, func(i int, value []byte) {
		id, refusal := lineID(value)
		if refusal != nil {
			r.unreadable(p.duplicates.path+"["+strconv.Itoa(i)+"]", value, refusal)
			return
		}
		if !seen[id] {
			seen[id] = true
			r.doc.Duplicates = append(r.doc.Duplicates, id)
		}
	})
}
