package funchost

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/adhocore/gronx"
)

// parseSchedule reads an NCRONTAB expression of six fields (CronSchedule.cs). All times are in the host's zone.
func parseSchedule(text string) (cronSchedule, error) {
	if fields := strings.Fields(text); len(fields) == 6 {
		if s, err := parseCron(fields); err == nil {
			return s, nil
		}
	}
	return cronSchedule{}, fmt.Errorf("the schedule expression '%s' was not recognized as a valid cron expression", text)
}

// cronSchedule is six fields {second} {minute} {hour} {day} {month} {day of week}.
type cronSchedule struct {
	expression string // without the day of the week
	weekday    string // an expression of its own, "" for any
	others     []string
}

// cronField is what NCrontab admits in one part of a field; gronx knows more (L, W, #, ?, @daily), which the host
// refuses.
var cronField = regexp.MustCompile(`^(\*|[0-9]+|[A-Za-z]{3})(-([0-9]+|[A-Za-z]{3}))?(/[0-9]+)?$`) //nolint:gochecknoglobals // a compiled constant

func parseCron(fields []string) (cronSchedule, error) {
	for _, field := range fields {
		for part := range strings.SplitSeq(field, ",") {
			if !cronField.MatchString(part) {
				return cronSchedule{}, fmt.Errorf("%q is not a cron field", field)
			}
		}
	}
	s := cronSchedule{
		expression: strings.Join(append(append([]string{}, fields[:5]...), "*"), " "),
		others:     fields[1:],
	}
	if fields[5] != "*" {
		s.weekday = "* * * * * " + fields[5]
	}
	if !gronx.IsValid(s.expression) || (s.weekday != "" && !gronx.IsValid(s.weekday)) {
		return cronSchedule{}, errors.New("out of range")
	}
	return s, nil
}

// next asks day and day of the week separately: NCrontab wants both to match, gronx (like cron) either.
func (s cronSchedule) next(t time.Time) (time.Time, error) {
	const tries = 1000
	g := gronx.New()
	for range tries {
		tick, err := gronx.NextTickAfter(s.expression, t, false)
		if err != nil {
			return time.Time{}, fmt.Errorf("next tick of %q: %w", s.expression, err)
		}
		if s.weekday == "" {
			return tick, nil
		}
		due, err := g.IsDue(s.weekday, tick)
		if err != nil {
			return time.Time{}, fmt.Errorf("next tick of %q: %w", s.weekday, err)
		}
		if due {
			return tick, nil
		}
		// On to the last second of this day, so that many ticks of a wrong day cost one step.
		t = time.Date(tick.Year(), tick.Month(), tick.Day(), 23, 59, 59, 0, tick.Location())
	}
	return time.Time{}, fmt.Errorf("the schedule has no tick in %d days", tries)
}

// tooFrequent says whether the host gives up monitoring the schedule: more than one tick a minute
// (TimerSchedule.cs ShouldDisableScheduleMonitor).
func tooFrequent(s cronSchedule, now time.Time) bool {
	for _, field := range s.others {
		if field != "*" {
			return false
		}
	}
	first, err := s.next(now)
	if err != nil {
		return false
	}
	second, err := s.next(first)
	return err == nil && second.Before(now.Add(time.Minute))
}
