package ops

import (
	"regexp"
	"strconv"
	"time"
)

var daysAgo = regexp.MustCompile(`^(\d{1,4})([dw])$`) //nolint:gochecknoglobals // constant

// MomentForms says what Moment reads.
const MomentForms = "so long ago (90m, 1d, 2w), a date (2026-01-31) or a time (2026-01-31T15:04:05-06:00)"

// Moment reads a time, a date of a zone, or a duration before now; false when a text is none of them.
func Moment(text string, now time.Time, zone *time.Location) (time.Time, bool) {
	if m := daysAgo.FindStringSubmatch(text); m != nil {
		const week = 7
		n, _ := strconv.Atoi(m[1]) // digits
		if m[2] == "w" {
			n *= week
		}
		return now.AddDate(0, 0, -n), true
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d), true
	}
	for _, layout := range []string{
		time.RFC3339, "2006-01-02 15:04:05Z07:00", "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05",
		"2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04", time.DateOnly,
	} {
		if t, err := time.ParseInLocation(layout, text, zone); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

var stampInText = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`) //nolint:gochecknoglobals // constant

// ShowTimes writes the times in a sentence of Ops as show does.
func ShowTimes(sentence string, show func(time.Time) string) string {
	return stampInText.ReplaceAllStringFunc(sentence, func(stamp string) string {
		t, err := time.Parse(time.RFC3339, stamp)
		if err != nil {
			return stamp
		}
		return show(t)
	})
}
