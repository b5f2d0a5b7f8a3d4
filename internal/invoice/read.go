package invoice

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"sqlwriter/internal/fault"
)

// Reader reads documents. internal/app makes one from the settings, and gives it to all that read: a document that one
// of them refuses is so refused by all. The zero value has the default mapping and no limits.
type Reader struct {
	// Mapping has the columns.
	Mapping *Mapping
	// Limits are asked when the hash is known: content has the same hash whatever the settings refuse.
	Limits []Limit
}

// Limit is a rule that a setting decides. It says which member of a document it refuses, in the words of FieldError;
// nil refuses none.
type Limit func(Document) *FieldError

// Read reads one snapshot of a document. It returns an error only if nothing can be recorded: the snapshot is not JSON,
// not an object, or has no id. The error has kind document and condition unreadable. Every other problem is in
// Document.Problem, and the rest is filled as far as it is readable.
//
// Names match exactly, the last value of a repeated name counts, and unknown members are ignored. Whole numbers are
// exact; fractions are doubles. Read neither changes nor keeps raw. It uses now only to refuse times in the future.
func (by Reader) Read(raw []byte, now time.Time) (Document, error) {
	if !json.Valid(raw) {
		var nothing struct{}
		err := json.Unmarshal(raw, &nothing) // reports where the text is invalid
		return Document{}, unrecordable("not_json", "the document is not JSON (%d bytes): %v", len(raw), err)
	}
	raw = bytes.TrimLeft(raw, " \t\r\n")
	if t := typeOf(raw); t != jsonObject {
		return Document{}, unrecordable("not_an_object", "the document is not an object: found %s", t)
	}
	m := by.Mapping.orDefault()
	p := m.plan
	r := reading{mapping: m, plan: p, spans: make([][]byte, p.size)}
	r.doc.Mapping = m
	p.root.collect(raw, r.spans)
	if err := r.identity(); err != nil {
		return Document{}, err
	}
	// The error text begins with the members that make the document unreadable.
	r.lines()
	r.state()
	r.output()
	r.version(now)
	r.values()
	r.conclude(by.Limits)
	return r.doc, nil
}

// reading is the state of one Read.
type reading struct {
	mapping *Mapping
	plan    *plan
	spans   [][]byte
	doc     Document
	invalid Invalid
	refused []refusedMember
}

// refusedMember is the place and the content of a refused member, for the hash.
type refusedMember struct {
	path string
	span []byte
}

func (r *reading) span(n *node) []byte { return r.spans[n.index] }

// optional returns a text member, "" if it is absent or not a text.
func (r *reading) optional(n *node) string {
	if span := r.span(n); typeOf(span) == jsonText {
		return decode(span)
	}
	return ""
}

// identity reads id, etag, _ts and environment.
func (r *reading) identity() error {
	span := r.span(r.plan.id)
	if t := typeOf(span); t != jsonText {
		return unrecordable("no_id", "id: expected the document's id as text, found %s", t)
	}
	if _, flaw := measure(span); flaw == notUnicode {
		return unrecordable("no_id", "id: expected valid Unicode, found lone surrogates or bytes that are not UTF-8")
	}
	if r.doc.ID = decode(span); r.doc.ID == "" {
		return unrecordable("no_id", "id: expected the document's id, found an empty text")
	}
	if i := strings.IndexAny(r.doc.ID, `/\?#`); i >= 0 {
		return unrecordable("id_characters",
			`id %q: expected none of / \ ? #, found %q: such a document cannot be addressed, so its outcome could not be recorded`,
			fault.Truncate(r.doc.ID, fault.MaxForeign), r.doc.ID[i:i+1])
	}
	if r.doc.IDLooksLikeTime = looksLikeISO(span) && isCompleteTime(r.doc.ID); r.doc.IDLooksLikeTime {
		r.doc.RewrittenByHost = true
	}
	r.doc.ETag = r.optional(r.plan.etag)
	r.doc.TS = wholeNumber(r.span(r.plan.ts))
	r.doc.SysName = r.optional(r.plan.sysName)
	return nil
}

// state reads sql_writer. A value that is not an object counts as absent.
func (r *reading) state() {
	span := r.span(r.plan.state)
	if typeOf(span) != jsonObject {
		return
	}
	r.doc.State = readState(span)
	for _, extra := range r.doc.State.Extra {
		r.doc.RewrittenByHost = r.doc.RewrittenByHost || holdsISO(extra)
	}
}

// output checks that the document has a result.
func (r *reading) output() {
	if span := r.span(r.plan.output); typeOf(span) != jsonObject {
		r.unreadable(r.plan.output.path, span, refused("not_an_object", "an object", span))
	}
}

// version sets the document's version.
func (r *reading) version(now time.Time) {
	d := &r.doc
	d.Version.Key = Key(d.ID)
	path, span := r.plan.id.path, r.span(r.plan.id)
	switch us, ok := TimeOfID(d.ID); {
	case ok:
		d.Version.US, d.HasTime = us, true
	case d.State.Version > 0:
		d.Version.US = d.State.Version
		path = r.plan.state.path + ".version"
	default:
		d.Version.US, d.NeedsVersion = microseconds(d.TS), true
		path, span = r.plan.ts.path, r.span(r.plan.ts)
	}
	if d.Version.Future(now) {
		r.refuse(path, span, &FieldError{
			Code:      "future",
			Expected:  fmt.Sprintf("a time at most %v after now (%s)", maxAhead, now.UTC().Format(time.RFC3339)),
			FoundType: "time " + time.UnixMicro(d.Version.US).UTC().Format(time.RFC3339),
		})
	}
}

// microseconds converts seconds; a value that does not fit becomes the latest possible time.
func microseconds(seconds int64) int64 {
	const most = 1<<63 - 1
	if seconds > most/1_000_000 {
		return most
	}
	return seconds * 1_000_000
}

func (r *reading) values() {
	p := r.plan
	r.doc.Values = make([]Value, len(p.columns))
	for i, c := range p.columns {
		if same := p.same[i]; same < i {
			r.doc.Values[i] = r.doc.Values[same]
			continue
		}
		r.doc.Values[i] = Null()
		switch c.Source {
		case FromDocument:
			r.doc.Values[i] = r.value(c, p.places[i])
		case FromMapping:
			r.doc.Values[i] = Of(c.Constant)
		case FromRequestTime:
			if r.doc.HasTime {
				r.doc.Values[i] = c.timeValue(r.doc.Version.US)
			}
		case FromParent, FromDuplicate: // made per line by RowValues
		}
	}
}

// value makes the value of a FromDocument column from the first of its places that has one. A place that cannot be
// reached, or whose value is refused, refuses the document whatever the others have.
func (r *reading) value(c Column, places []*node) Value {
	for n, place := range places {
		if o := place.obstacle(r.spans); o != nil {
			r.refuse(o.path, r.span(o), refused("not_an_object", "an object", r.span(o)))
			return Null()
		}
		span := r.span(place)
		if typeOf(r.span(r.plan.output)) != jsonObject && place.under(r.plan.output) {
			return Null() // output has reported it
		}
		if !given(span) && n < len(places)-1 {
			continue
		}
		if c.Kind == Text && looksLikeISO(span) {
			r.doc.RewrittenByHost = true
		}
		v, refusal := c.normalise(span)
		r.refuse(place.path, span, refusal)
		return v
	}
	return Null()
}

// looksLikeISO reports whether a text span begins like "2025-12-17T", which the host's JSON reader takes for a date and
// rewrites (docs/facts.md F7).
func looksLikeISO(span []byte) bool {
	const shape = `"dddd-dd-ddT`
	if typeOf(span) != jsonText || len(span) < len(shape) {
		return false
	}
	for i := range len(shape) {
		digit := span[i] >= '0' && span[i] <= '9'
		if shape[i] == 'd' && !digit || shape[i] != 'd' && span[i] != shape[i] {
			return false
		}
	}
	return true
}

// isCompleteTime reports whether a text that begins like an ISO time may be a time as a whole. The host rewrites only
// texts of 19 to 40 characters that parse as a whole (docs/facts.md F7). An id with a counter after its time is safe.
func isCompleteTime(s string) bool {
	return len(s) <= 40 && strings.Trim(s, "0123456789T:.,Z+-") == "" && strings.Count(s[len("2025-12-17T"):], "-") <= 1
}

// holdsISO reports whether any text inside a value looks like an ISO time. Unknown members of sql_writer are written
// back, so they must have the container's texts, not the host's.
func holdsISO(value []byte) bool {
	for {
		i := bytes.IndexByte(value, '"')
		if i < 0 {
			return false
		}
		if looksLikeISO(value[i:]) {
			return true
		}
		value = value[textEnd(value, i):]
	}
}

// refuse records a refused member; nil records nothing. The same refusal of two columns is recorded once.
func (r *reading) refuse(path string, span []byte, refusal *FieldError) {
	if refusal == nil {
		return
	}
	refusal.Path = path
	r.doc.guessed = r.doc.guessed || !refusal.ruled
	for _, f := range r.invalid.Fields {
		if f == *refusal {
			return
		}
	}
	if len(r.refused) == maxFields {
		r.invalid.Omitted++
		return
	}
	r.invalid.Fields = append(r.invalid.Fields, *refusal)
	r.refused = append(r.refused, refusedMember{path: path, span: span})
}

// unreadable is refuse for members that make the document unreadable.
func (r *reading) unreadable(path string, span []byte, refusal *FieldError) {
	r.refuse(path, span, refusal)
	r.invalid.Unreadable = r.invalid.Unreadable || refusal != nil
}

// conclude sets the hash, asks the limits and sets the problem.
func (r *reading) conclude(limits []Limit) {
	d := &r.doc
	if d.guessed {
		d.Hash = r.mapping.own.refusedHash(d.Main, d.Duplicates, d.Values, r.refused)
	} else {
		d.Hash, _ = r.mapping.own.ContentHash(*d)
	}
	for _, limit := range limits {
		if refusal := limit(*d); refusal != nil {
			r.refuse(refusal.Path, nil, ruled(refusal))
		}
	}
	if len(r.invalid.Fields) == 0 {
		return
	}
	r.invalid.DocumentID = d.ID
	problem := r.invalid
	d.Problem = &problem
}
