package main

import (
	"fmt"
	"strconv"
	"time"

	"sqlwriter/internal/ops"
)

// printDay prints the last 24 hours by the hour, and the latest stops.
func printDay(a *app, d ops.Day) error {
	if len(d.Samples) < 2 {
		a.printf("no samples yet: the recovery timer leaves one at each tick")
		return nil
	}
	if h := d.LastHour; h != nil {
		a.printf("about %d documents were committed from %s to %s\n", h.Documents, a.time(h.From), a.time(h.To))
	}
	if err := a.table(hourRows(a, d.Samples)); err != nil {
		return err
	}
	return a.tables(stopRows(a, d))
}

// hourRows are a row for each hour of the clock: the sums of what happened, and the most that waited.
func hourRows(a *app, samples []ops.Sample) [][]string {
	hourOf := func(s ops.Sample) time.Time { return s.At.Add(-1).Truncate(time.Hour) } // a sample is about the time before it
	var hours []ops.Sample
	for _, s := range samples[1:] { // the first one only begins the second
		last := len(hours) - 1
		if last < 0 || !hourOf(hours[last]).Equal(hourOf(s)) {
			hours = append(hours, s)
			continue
		}
		h := &hours[last]
		h.At, h.Committed, h.StoppedSeconds, h.LagSeconds = s.At, h.Committed+s.Committed, h.StoppedSeconds+s.StoppedSeconds, max(h.LagSeconds, s.LagSeconds)
		if s.Waiting.Documents > h.Waiting.Documents {
			h.Waiting = s.Waiting
		}
	}
	rows := [][]string{{"UNTIL", "COMMITTED", "MOST WAITING", "LONGEST LAG", "STOPPED"}}
	for _, h := range hours {
		rows = append(rows, []string{
			a.time(h.At), strconv.FormatInt(h.Committed, 10), atLeast(h.Waiting.Documents, h.Waiting.AtLeast), seconds(h.LagSeconds), seconds(h.StoppedSeconds),
		})
	}
	return rows
}

func stopRows(a *app, d ops.Day) [][]string {
	rows := [][]string{{"STOPPED FROM", "TO", "FOR", "CODE"}}
	for _, s := range d.Stops {
		to, until := d.At, "it goes on"
		if !s.To.IsZero() {
			to, until = s.To, a.time(s.To)
		}
		rows = append(rows, []string{a.time(s.From), until, fmt.Sprint(to.Sub(s.From).Round(time.Second)), orDash(s.Code)})
	}
	return rows
}
