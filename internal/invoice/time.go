package invoice

import (
	"strings"
	"time"
)

// stampLayout is the layout of times in sql_writer (docs/requirements.md R13).
const stampLayout = "2006-01-02 15:04:05.000000-07:00"

// TimeLayout is the canonical form of a Time value in UTC, LocalLayout that of one in the deployment's zone.
const (
	TimeLayout  = LocalLayout + "Z"
	LocalLayout = "2006-01-02T15:04:05.000000"
)

// maxAhead is how far a request time may be in the future, because clocks differ and dates are mistyped. A version from
// the future would win against every later result of its line.
const maxAhead = time.Hour

// ClockSkew is how far the container's clock, which makes _ts, may be from that of a process. Both are kept by NTP, so
// minutes are ample. A run looks this far beyond its start: a longer time would only have it find more of what came
// later.
const ClockSkew = 5 * time.Minute

// Stamp writes a time in the layout that readers of sql_writer know, in the deployment's time zone:
// "2025-12-17 10:30:15.123456-06:00". Digits beyond microseconds are cut.
func Stamp(t time.Time, loc *time.Location) string {
	return t.In(loc).Format(stampLayout)
}

// ParseStamp reads a text that is exactly a time as Stamp writes it. A time without an offset is read in loc.
func ParseStamp(text string, loc *time.Location) (time.Time, bool) {
	if s, flaw := readStamp(text); flaw == "" && s.length == len(text) {
		return time.UnixMicro(s.us).In(loc), true
	}
	s, flaw := readStamp(text + "Z")
	if flaw != "" || s.length != len(text)+1 {
		return time.Time{}, false
	}
	t := time.UnixMicro(s.us).UTC() // as a clock in loc shows it
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), loc), true
}

// TimeOfID reads the request time at the front of a document's id, in microseconds since 1970-01-01 UTC. The layout is
// that of docs/requirements.md R15: "2025-12-17 10:30:00.000000-06:00-0001-1421549". A T for the blank, any number of
// fraction digits (cut after six), Z and other offsets are accepted. ok is false without an offset, for an impossible
// date, and for another layout.
func TimeOfID(id string) (us int64, ok bool) {
	s, flaw := readStamp(id)
	if flaw != "" {
		return 0, false
	}
	if s.length < len(id) {
		switch c := id[s.length]; {
		case c >= '0' && c <= '9', c == ':', c == '.':
			return 0, false // the offset continues in an unknown form
		}
	}
	return s.us, true
}

// stamp is a time at the front of a text.
type stamp struct {
	us int64
	// length is its number of bytes; fraction is the number of digits after the point.
	length, fraction int
}

// Reasons why a text is not a time.
const (
	flawTime   = "time"      // another layout
	flawDate   = "date"      // the layout is right, but the day or hour does not exist
	flawOffset = "no_offset" // two machines would read two times
)

// readStamp reads a time at the front of a text. time.Parse is too tolerant: it accepts a comma before the fraction,
// hours of one digit, and no offset as UTC.
func readStamp(s string) (stamp, string) {
	const shortest = len("2025-12-17 10:30:00")
	if len(s) < shortest || s[4] != '-' || s[7] != '-' || (s[10] != ' ' && s[10] != 'T') || s[13] != ':' ||
		s[16] != ':' {
		return stamp{}, flawTime
	}
	var fields [7]int
	for i, part := range [...]string{s[0:4], s[5:7], s[8:10], s[11:13], s[14:16], s[17:19]} {
		n, ok := digitsOnly(part)
		if !ok {
			return stamp{}, flawTime
		}
		fields[i] = n
	}
	rest := s[shortest:]
	fraction := 0
	if rest != "" && rest[0] == '.' {
		if fraction = len(rest[1:]) - len(strings.TrimLeft(rest[1:], "0123456789")); fraction == 0 {
			return stamp{}, flawTime
		}
		fields[6], _ = digitsOnly((rest[1:1+fraction] + "000000")[:6])
		rest = rest[1+fraction:]
	}
	offset, rest, flaw := readOffset(rest)
	if flaw != "" {
		return stamp{}, flaw
	}
	t := time.Date(fields[0], time.Month(fields[1]), fields[2], fields[3], fields[4], fields[5],
		fields[6]*1000, time.UTC)
	if !sameClock(t, fields) {
		return stamp{}, flawDate
	}
	t = t.Add(-offset)
	if t.Year() < 1 || t.Year() > 9999 {
		return stamp{}, flawDate
	}
	return stamp{us: t.UnixMicro(), length: len(s) - len(rest), fraction: fraction}, ""
}

// sameClock reports whether the fields are a real date: time.Date turns the 30th of February into the 2nd of March.
func sameClock(t time.Time, fields [7]int) bool {
	return fields[0] >= 1 && t.Year() == fields[0] && int(t.Month()) == fields[1] && t.Day() == fields[2] &&
		t.Hour() == fields[3] && t.Minute() == fields[4] && t.Second() == fields[5]
}

// readOffset reads Z or +hh:mm. The colon is required: a counter such as "-0001" follows the time of an id.
func readOffset(s string) (offset time.Duration, rest, flaw string) {
	const length = len("-06:00")
	if s != "" && s[0] == 'Z' {
		return 0, s[1:], ""
	}
	if len(s) < length || (s[0] != '+' && s[0] != '-') || s[3] != ':' {
		return 0, "", flawOffset
	}
	hours, ok1 := digitsOnly(s[1:3])
	minutes, ok2 := digitsOnly(s[4:6])
	if !ok1 || !ok2 {
		return 0, "", flawOffset
	}
	if hours > 23 || minutes > 59 {
		return 0, "", flawDate
	}
	offset = time.Duration(hours)*time.Hour + time.Duration(minutes)*time.Minute
	if s[0] == '-' {
		offset = -offset
	}
	return offset, s[length:], ""
}

// digitsOnly reads a text of decimal digits.
func digitsOnly(s string) (int, bool) {
	n := 0
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = n*10 + int(s[i]-'0')
	}
	return n, true
}

// moment makes the value of a time column.
func (c Column) moment(span []byte) (Value, *FieldError) {
	const expected = "a time with an offset, like 2025-12-17 10:30:15.123456-06:00"
	const mostFraction, longest = 9, 40
	if typeOf(span) != jsonText {
		return Null(), refused("wrong_type", expected, span)
	}
	text, complete := beginning(span, longest)
	if !complete {
		return Null(), refused(flawTime, expected, span)
	}
	s, flaw := readStamp(text)
	if flaw == flawOffset && c.WithoutOffset != "" {
		s, flaw = c.bare(text)
	}
	if flaw == "" && (s.length != len(text) || s.fraction > mostFraction) {
		flaw = flawTime
	}
	if flaw != "" {
		return Null(), refused(flaw, expected, span)
	}
	return c.timeValue(s.us), nil
}

// bare reads a time without an offset. Of the two times of an hour that comes twice it is the first; one that the
// clocks leave out does not exist.
func (c Column) bare(text string) (stamp, string) {
	s, flaw := readStamp(text + "Z")
	s.length--
	if flaw != "" || c.WithoutOffset == BareInUTC {
		return s, flaw
	}
	t := time.UnixMicro(s.us).UTC()
	there := time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), c.zone)
	if there.Format(LocalLayout) != t.Format(LocalLayout) {
		return s, flawDate
	}
	s.us = there.UnixMicro()
	return s, ""
}

// timeValue is the column's value of microseconds since 1970.
func (c Column) timeValue(us int64) Value {
	if c.Local {
		return Of(time.UnixMicro(us).In(c.zone).Format(LocalLayout))
	}
	return Of(time.UnixMicro(us).UTC().Format(TimeLayout))
}

// Span returns the earliest and the latest time that a value of a Time column may stand for. They differ in the hour
// that a Local column has twice. Both are zero for NULL.
func (c Column) Span(v Value) (first, last time.Time) {
	if !c.Local {
		at, _ := time.Parse(TimeLayout, v.Text)
		return at, at
	}
	clock, err := time.Parse(LocalLayout, v.Text)
	if err != nil {
		return first, last
	}
	const day = 24 * time.Hour // far from a change of the clocks, and from the next one
	for _, near := range []time.Time{clock.Add(-day), clock.Add(day)} {
		_, offset := near.In(c.zone).Zone()
		at := clock.Add(-time.Duration(offset) * time.Second)
		if at.In(c.zone).Format(LocalLayout) != v.Text {
			continue
		}
		if first.IsZero() || at.Before(first) {
			first = at
		}
		if last.IsZero() || at.After(last) {
			last = at
		}
	}
	return first, last
}
