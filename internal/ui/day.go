package ui

import (
	"fmt"
	"strings"
	"time"

	"sqlwriter/internal/ops"
)

// dayGraph is the graph of the last 24 hours: lines of an SVG and their scales, in words too.
type dayGraph struct {
	// Area is the path of what was committed a minute, Line that of what waited, Lag that of the oldest document's age.
	Area, Line, Lag string
	// MostCommitted, MostWaiting and MostLag are the tops of the scales.
	MostCommitted, MostWaiting, MostLag string

	Stops []stopBox
	Hours []hourTick
	// Label is the graph in a sentence.
	Label string
	// Hourly are its numbers, for who cannot see it.
	Hourly []hourRow
}

// stopBox is a time in which the flow was stopped. X and Width are in the SVG's units.
type stopBox struct {
	X, Width, TextX int
	Text            string
}

type hourTick struct {
	X    int
	Text string
}

// hourRow is an hour in numbers.
type hourRow struct {
	From, To  time.Time
	Committed int64
	Waiting   string
	Stopped   int64
}

// The SVG's units.
const (
	dayWidth, dayLeft, dayRight = 1200, 8, 1192
	dayTop, dayBottom, dayLabel = 14, 150, 166
	lagTop, lagBottom           = 180, 226
	// dayParts is how many points a line has: fewer than samples, so that the page stays small.
	dayParts = 96
)

// graph draws the samples of a day. nil when there are too few.
func (v *visit) graph(d ops.Day) *dayGraph {
	const fewest = 2
	if len(d.Samples) < fewest {
		return nil
	}
	now := v.site.o.Now()
	from := now.Add(-24 * time.Hour)
	x := func(t time.Time) int {
		return dayLeft + int(float64(dayRight-dayLeft)*min(1, max(0, t.Sub(from).Hours()/24)))
	}
	committed, waiting, lag := make([]float64, dayParts), make([]float64, dayParts), make([]float64, dayParts)
	seen := make([]bool, dayParts)
	for i, s := range d.Samples {
		part := min(dayParts-1, max(0, int(s.At.Sub(from)*dayParts/(24*time.Hour))))
		minutes := 5.0
		if i > 0 {
			minutes = max(1, s.At.Sub(d.Samples[i-1].At).Minutes())
		}
		seen[part] = true
		committed[part] = max(committed[part], float64(s.Committed)/minutes)
		waiting[part] = max(waiting[part], float64(s.Waiting.Documents))
		lag[part] = max(lag[part], float64(s.LagSeconds))
	}
	mostCommitted, mostWaiting, mostLag := most(committed), most(waiting), most(lag)
	at := func(part int) int { return x(from.Add(24 * time.Hour * time.Duration(part+1) / dayParts)) }
	g := &dayGraph{
		Line: drawn(waiting, seen, at, mostWaiting, dayTop, dayBottom, false), Area: drawn(committed, seen, at, mostCommitted, dayTop, dayBottom, true),
		Lag: drawn(lag, seen, at, mostLag, lagTop, lagBottom, false), MostCommitted: number(int64(mostCommitted)), MostWaiting: number(int64(mostWaiting)), MostLag: span(time.Duration(mostLag) * time.Second),
	}
	for _, s := range d.Stops {
		to := s.To
		if to.IsZero() {
			to = now
		}
		if to.Before(from) {
			continue
		}
		const least, wide = 2, 110
		box := stopBox{X: x(s.From), Text: fmt.Sprintf("%s %s", stopWord(s.Code), span(to.Sub(s.From)))}
		box.Width = max(least, x(to)-box.X)
		box.TextX = min(box.X+4, dayWidth-wide)
		g.Stops = append(g.Stops, box)
	}
	for t := from.Truncate(time.Hour).Add(time.Hour); t.Before(now); t = t.Add(time.Hour) {
		if local := t.In(v.site.o.Location); local.Hour()%3 == 0 {
			g.Hours = append(g.Hours, hourTick{x(t), local.Format("15:04")})
		}
	}
	g.Label = fmt.Sprintf("The last 24 hours: about %s documents committed a minute at most, %s waiting at most, the flow was stopped %d %s",
		g.MostCommitted, g.MostWaiting, len(g.Stops), ops.Plural(len(g.Stops), "time", "times"))
	g.Hourly = hourly(d.Samples)
	return g
}

// stopWord says what stopped the flow.
func stopWord(code string) string {
	if code == "paused" {
		return "paused"
	}
	return "stopped"
}

// most is the top of a scale: at least 1.
func most(values []float64) float64 {
	top := 1.0
	for _, v := range values {
		top = max(top, v)
	}
	return top
}

// drawn draws values between two heights; a part without a sample is left out.
func drawn(values []float64, seen []bool, x func(int) int, top float64, high, low int, closed bool) string {
	var b strings.Builder
	first, last := -1, -1
	for i, v := range values {
		if !seen[i] {
			continue
		}
		y := low - int(float64(low-high)*v/top)
		if first < 0 {
			first = i
			if closed {
				fmt.Fprintf(&b, "M%d %d", x(i), low)
			} else {
				fmt.Fprintf(&b, "M%d %d", x(i), y)
			}
		}
		fmt.Fprintf(&b, "L%d %d", x(i), y)
		last = i
	}
	if closed && last >= 0 {
		fmt.Fprintf(&b, "L%d %dZ", x(last), low)
	}
	return b.String()
}

// hourly adds up samples by the hour, the latest first.
func hourly(samples []ops.Sample) (rows []hourRow) {
	for i := len(samples) - 1; i >= 0; i-- {
		s := samples[i]
		if n := len(rows); n == 0 || rows[n-1].To.Sub(s.At) >= time.Hour {
			rows = append(rows, hourRow{To: s.At, Waiting: counted(s.Waiting)})
		}
		r := &rows[len(rows)-1]
		r.From, r.Committed, r.Stopped = s.At, r.Committed+s.Committed, r.Stopped+s.StoppedSeconds
	}
	return rows
}
