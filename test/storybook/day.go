package storybook

import (
	"math"
	"time"

	"sqlwriter/internal/ops"
)

// day is a day with a busy afternoon, an outage at noon, a pause, and an outage that goes on.
func day() ops.Day {
	d := ops.Day{At: Now(), Stops: []ops.Stop{
		{From: Ago(14 * time.Hour), To: Ago(13*time.Hour + 18*time.Minute), Code: "refused"},
		{From: Ago(6 * time.Hour), To: Ago(5*time.Hour + 58*time.Minute), Code: "paused"},
		{From: Ago(62 * time.Second), Code: "refused"},
	}}
	waiting := 0.0
	for i := range 288 {
		at := Ago(24*time.Hour - time.Duration(i)*5*time.Minute)
		ago := Now().Sub(at).Hours()
		load := max(0, 350*math.Sin((20-ago)/12*math.Pi)) + float64(i%7)
		s := ops.Sample{At: at, Committed: int64(load), LagSeconds: int64(i%4) * 2}
		if ago < 14 && ago > 13.3 {
			waiting += load
			s.Committed, s.StoppedSeconds, s.LagSeconds = 0, 300, int64((14-ago)*3600)
		} else if waiting > 0 {
			s.Committed += int64(min(waiting, 900))
			waiting -= min(waiting, 900)
		}
		s.Waiting.Documents = int(waiting) + i%5
		d.Samples = append(d.Samples, s)
	}
	d.LastHour = &ops.Committed{Documents: 2118, From: Ago(63 * time.Minute), To: Ago(3 * time.Minute)}
	return d
}

// gaps is a day on which the timer was silent for three hours and the flow stopped more often than is kept.
func gaps() ops.Day {
	d := ops.Day{At: Now()}
	for i := range 288 {
		at := Ago(24*time.Hour - time.Duration(i)*5*time.Minute)
		switch ago := Now().Sub(at); {
		case ago > 8*time.Hour && ago < 11*time.Hour:
			continue
		case ago <= 8*time.Hour && ago > 8*time.Hour-5*time.Minute:
			d.Samples = append(d.Samples,
				ops.Sample{
					At: at, Committed: 18_500, Waiting: ops.Count{Documents: 5000, AtLeast: true}, LagSeconds: 600,
				})
		default:
			d.Samples = append(d.Samples, ops.Sample{At: at, Committed: 100, StoppedSeconds: 60})
		}
	}
	for i := range 20 {
		d.Stops = append(d.Stops,
			ops.Stop{
				From: Ago(time.Duration(20-i) * 5 * time.Minute),
				To:   Ago(time.Duration(20-i)*5*time.Minute - time.Minute), Code: "40501",
			})
	}
	return d
}
