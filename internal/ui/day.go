package ui

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"sqlwriter/internal/breaker"
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
	// Hourly are its numbers by the hour, the latest first, for who cannot see it.
	Hourly []window
}

// stopBox is a time in which the flow was stopped, or the timer silent. X and Width are in the SVG's units. Text may be
// empty.
type stopBox struct {
	X, Width, TextX int
	Text            string
}

type hourTick struct {
	X    int
	Text string
}

// window is the time between two samples, or between more that are taken together.
type window struct {
	From, To  time.Time
	Committed int64
	// Waiting and LagSeconds are the most that a sample saw.
	Waiting    ops.Count
	LagSeconds int64
	Stopped    int64
	// Silent: no tick came for longer than two.
	Silent bool
}

// rate is what became committed a minute.
func (w window) rate() float64 { return float64(w.Committed) / w.To.Sub(w.From).Minutes() }

// The SVG's units.
const (
	dayWidth, dayLeft, dayRight = 1200, 8, 1192
	dayTop, dayBottom           = 14, 150
	lagTop, lagBottom           = 180, 226
	// wide is the room of a text.
	wide = 130
	// dayWindow is the least that a point of a line stands for: 300 points would make the page twice as long.
	dayWindow = 19 * time.Minute
	// hourWindow is an hour whose ticks come early or late.
	hourWindow = 58 * time.Minute
)

// graph draws the samples of a day. nil when there are too few: the first one only begins the second.
func (v *visit) graph(d ops.Day) *dayGraph {
	all := windows(d.Samples, dayWindow)
	if len(all) == 0 {
		return nil
	}
	now := v.site.o.Now()
	from := now.Add(-24 * time.Hour)
	x := func(t time.Time) int {
		return dayLeft + int(float64(dayRight-dayLeft)*min(1, max(0, t.Sub(from).Hours()/24)))
	}
	y := func(n, top float64, high, low int) int { return low - int(float64(low-high)*n/max(1, top)) }
	rate, waiting, lag, stopped := 0.0, ops.Count{}, int64(0), int64(0)
	for _, w := range all {
		rate, lag, stopped = max(rate, w.rate()), max(lag, w.LagSeconds), stopped+w.Stopped
		if w.Waiting.Documents >= waiting.Documents {
			waiting = w.Waiting
		}
	}
	g := &dayGraph{
		MostCommitted: number(int64(math.Ceil(rate))), MostWaiting: counted(waiting),
		MostLag: span(time.Duration(lag) * time.Second), Hourly: windows(d.Samples, hourWindow),
	}
	slices.Reverse(g.Hourly)
	var area, line, late strings.Builder
	fmt.Fprintf(&area, "M%d %d", x(all[0].From), dayBottom)
	for i, w := range all {
		fmt.Fprintf(&area, "V%dH%d", y(w.rate(), rate, dayTop, dayBottom), x(w.To))
		move := "L"
		if i == 0 || w.Silent {
			move = "M"
		}
		fmt.Fprintf(&line, "%s%d %d", move, x(w.To),
			y(float64(w.Waiting.Documents), float64(waiting.Documents), dayTop, dayBottom))
		fmt.Fprintf(&late, "%s%d %d", move, x(w.To), y(float64(w.LagSeconds), float64(lag), lagTop, lagBottom))
		if w.Silent {
			g.box(x(w.From), x(w.To), "timer silent "+span(w.To.Sub(w.From)))
		}
	}
	fmt.Fprintf(&area, "V%dZ", dayBottom)
	g.Area, g.Line, g.Lag = area.String(), line.String(), late.String()
	known := int64(0) // of the stops that are known one by one
	for _, s := range d.Stops {
		to := s.To
		if to.IsZero() {
			to = now
		}
		known += int64(to.Sub(latest(s.From, from)) / time.Second)
		g.box(x(s.From), x(to), stopWord(s.Code)+" "+span(to.Sub(s.From)))
	}
	for t := from.Truncate(time.Hour).Add(time.Hour); t.Before(now); t = t.Add(time.Hour) {
		if local := t.In(v.site.o.Location); local.Hour()%3 == 0 && x(t) < dayRight-wide/3 {
			g.Hours = append(g.Hours, hourTick{x(t), local.Format("15:04")})
		}
	}
	g.Label = fmt.Sprintf(
		"The last 24 hours: about %s documents committed a minute at most, %s waiting at most, the oldest untried for %s at most; ", g.MostCommitted, g.MostWaiting, g.MostLag)
	if stopped = max(stopped, known); stopped > 0 {
		g.Label += "the flow was stopped or paused for " + span(time.Duration(stopped)*time.Second) + " in all"
	} else {
		g.Label += "the flow was never stopped"
	}
	return g
}

// box adds a time that is told in words, if there is room for them.
func (g *dayGraph) box(from, to int, text string) {
	const least = 2
	b := stopBox{X: from, Width: max(least, to-from), TextX: min(from+4, dayWidth-wide), Text: text}
	if slices.ContainsFunc(g.Stops, func(o stopBox) bool {
		return o.Text != "" && max(o.TextX-b.TextX, b.TextX-o.TextX) < wide
	}) {
		b.Text = ""
	}
	g.Stops = append(g.Stops, b)
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// stopWord says what stopped the flow.
func stopWord(code string) string {
	if code == breaker.CodePaused {
		return "paused"
	}
	return "stopped"
}

// windows are the times between samples, each of at least a length, but for the last.
func windows(samples []ops.Sample, least time.Duration) (all []window) {
	silent := twoTicks(samples)
	for i := 1; i < len(samples); i++ {
		s := samples[i]
		w := window{
			From: samples[i-1].At, To: s.At, Committed: s.Committed, Waiting: s.Waiting, LagSeconds: s.LagSeconds,
			Stopped: s.StoppedSeconds,
		}
		w.Silent = w.To.Sub(w.From) > silent
		n := len(all) - 1
		if n < 0 || w.Silent || all[n].Silent || all[n].To.Sub(all[n].From) >= least {
			all = append(all, w)
			continue
		}
		last := &all[n]
		last.To, last.Committed, last.LagSeconds, last.Stopped = w.To, last.Committed+w.Committed,
			max(last.LagSeconds, w.LagSeconds), last.Stopped+w.Stopped
		if w.Waiting.Documents >= last.Waiting.Documents {
			last.Waiting = w.Waiting
		}
	}
	return all
}

// twoTicks is twice the usual time between two samples, and a minute because ticks come late.
func twoTicks(samples []ops.Sample) time.Duration {
	if len(samples) < 2 {
		return 0
	}
	var spans []time.Duration
	for i := 1; i < len(samples); i++ {
		spans = append(spans, samples[i].At.Sub(samples[i-1].At))
	}
	slices.Sort(spans)
	return 2*spans[len(spans)/2] + time.Minute
}
