package funchost

import (
	"strconv"
	"strings"
	"time"
)

// rewriteDate returns what is left of a string after Newtonsoft took it for a date: DateParseHandling.DateTime with
// DateTimeZoneHandling.RoundtripKind. Only strings of 19 to 40 characters that begin with a digit and have a T at
// position 10 are looked at (Newtonsoft.Json Utilities/DateTimeUtils.cs TryParseDateTime).
//
// A date with Z keeps it, one with an offset is moved to the host's zone, one without stays without; the fraction loses
// its trailing zeros and vanishes when it is zero.
func rewriteDate(s string, zone *time.Location) string {
	t, kind, ok := findDate(s)
	if !ok {
		return s
	}
	const layout = "2006-01-02T15:04:05.9999999"
	switch kind {
	case kindUTC:
		return t.Format(layout) + "Z"
	case kindLocal:
		return t.In(zone).Format(layout + "-07:00")
	default:
		return t.Format(layout)
	}
}

// findDate reads a string that Newtonsoft looks at as a date.
func findDate(s string) (time.Time, dateKind, bool) {
	if inner, is := strings.CutPrefix(s, "/Date("); is && strings.HasSuffix(inner, ")/") {
		return findMilliseconds(strings.TrimSuffix(inner, ")/"))
	}
	if len(s) < 19 || len(s) > 40 || s[0] < '0' || s[0] > '9' || s[10] != 'T' {
		return time.Time{}, 0, false
	}
	return parseDate(s)
}

// findMilliseconds reads the inside of /Date(…)/: milliseconds since 1970, then perhaps an offset, which only says that
// the date is local (DateTimeUtils.cs TryParseDateTimeMicrosoft).
func findMilliseconds(s string) (time.Time, dateKind, bool) {
	kind := kindUTC
	if i := strings.LastIndexAny(s, "+-"); i > 0 {
		s, kind = s[:i], kindLocal
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return time.UnixMilli(n).UTC(), kind, err == nil
}

// dateKind is DateTimeKind.
type dateKind int

const (
	kindUnspecified dateKind = iota
	kindUTC
	kindLocal
)

// parseDate reads a date by the rules of Newtonsoft's DateTimeParser.cs, oddities included: hour 24 is allowed when the
// rest is zero, the offset may be +hh, +hhmm or +hh:mm.
func parseDate(s string) (time.Time, dateKind, bool) {
	p := dateText(s)
	year, ok1 := p.digits(0, 4)
	month, ok2 := p.digits(5, 2)
	day, ok3 := p.digits(8, 2)
	if !ok1 || !ok2 || !ok3 || !p.is(4, '-') || !p.is(7, '-') || !p.is(10, 'T') ||
		year < 1 || month < 1 || month > 12 || day < 1 || day > daysIn(year, month) {
		return time.Time{}, 0, false
	}
	hour, ok1 := p.digits(11, 2)
	minute, ok2 := p.digits(14, 2)
	second, ok3 := p.digits(17, 2)
	if !ok1 || !ok2 || !ok3 || !p.is(13, ':') || !p.is(16, ':') ||
		hour > 24 || minute > 59 || second > 59 || (hour == 24 && (minute != 0 || second != 0)) {
		return time.Time{}, 0, false
	}
	at, fraction, ok := p.fraction(19)
	if !ok || (hour == 24 && fraction != 0) {
		return time.Time{}, 0, false
	}
	kind, offset, ok := p.zone(at)
	if !ok {
		return time.Time{}, 0, false
	}
	t := time.Date(year, time.Month(month), day, hour, minute, second, fraction*100, time.UTC)
	return t.Add(-offset), kind, true
}

func daysIn(year, month int) int {
	return time.Date(year, time.Month(month)+1, 0, 0, 0, 0, 0, time.UTC).Day()
}

// dateText is a string under the parser.
type dateText string

func (p dateText) is(at int, c byte) bool { return at < len(p) && p[at] == c }

func (p dateText) digits(at, n int) (int, bool) {
	if at+n > len(p) {
		return 0, false
	}
	value := 0
	for _, c := range []byte(p[at : at+n]) {
		if c < '0' || c > '9' {
			return 0, false
		}
		value = value*10 + int(c-'0')
	}
	return value, true
}

// fraction reads up to seven digits after a point as units of 100 ns.
func (p dateText) fraction(at int) (next, ticks int, ok bool) {
	if !p.is(at, '.') {
		return at, 0, true
	}
	at++
	n := 0
	for ; n < 7 && at < len(p) && p[at] >= '0' && p[at] <= '9'; n++ {
		ticks = ticks*10 + int(p[at]-'0')
		at++
	}
	if n == 0 {
		return at, 0, false
	}
	for ; n < 7; n++ {
		ticks *= 10
	}
	return at, ticks, true
}

// zone reads what follows the time. As in the original, two digits may stand where an offset's minutes would even when
// no sign came before them (so a ninth digit of a fraction passes as "minutes" of no zone at all).
func (p dateText) zone(at int) (dateKind, time.Duration, bool) {
	if at == len(p) {
		return kindUnspecified, 0, true
	}
	if strings.IndexByte("Zz", p[at]) >= 0 {
		return kindUTC, 0, at+1 == len(p)
	}
	kind, sign, hours := kindUnspecified, time.Duration(1), 0
	if h, ok := p.digits(at+1, 2); ok && (p[at] == '+' || p[at] == '-') {
		if p[at] == '-' {
			sign = -1
		}
		kind, hours = kindLocal, h
		at += 3
	}
	minutes := 0
	if at < len(p) {
		if p.is(at, ':') {
			at++
		}
		if m, ok := p.digits(at, 2); ok {
			minutes = m
			at += 2
		}
	}
	if kind == kindUnspecified {
		return kind, 0, at == len(p)
	}
	return kind, sign * (time.Duration(hours)*time.Hour + time.Duration(minutes)*time.Minute), at == len(p)
}
