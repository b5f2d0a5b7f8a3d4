package main

import (
	"time"

	"sqlwriter/internal/ops"
)

// shownTime is the format of times in tables: it always says the zone.
const shownTime = "2006-01-02 15:04:05Z07:00"

// location is the zone of times that are shown or typed without one.
func (a *app) location() *time.Location {
	if a.UTC {
		return time.UTC
	}
	return a.zone
}

// time formats a time; "-" for the zero time.
func (a *app) time(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.In(a.location()).Format(shownTime)
}

// says shows the times of a sentence as all others are shown.
func (a *app) says(sentence string) string { return ops.ShowTimes(oneLine(sentence), a.time) }

// period reads --since and --until.
func (a *app) period(since, until string) (from, to time.Time, err error) {
	if from, err = a.moment("--since", since); err != nil {
		return from, to, err
	}
	if to, err = a.moment("--until", until); err != nil {
		return from, to, err
	}
	if !from.IsZero() && !to.IsZero() && !from.Before(to) {
		return from, to, usagef("--until: expected a time after --since (%s), found %s", a.time(from), a.time(to))
	}
	return from, to, nil
}

// moment reads a time, a local date, or a duration before now. "" gives the zero time.
func (a *app) moment(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	t, ok := ops.Moment(text, a.now(), a.location())
	if !ok {
		return time.Time{}, usagef("%s: expected %s, found %q", flag, ops.MomentForms, text)
	}
	return t, nil
}

// seconds formats a number of seconds.
func seconds(n int64) string { return (time.Duration(n) * time.Second).String() }
