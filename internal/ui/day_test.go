package ui

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sqlwriter/internal/ops"
)

func noon() time.Time { return time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC) }

// ago makes samples that so many minutes ago saw these documents waiting, and 10 committed for each minute since the
// one before.
func ago(minutes ...int) (all []ops.Sample) {
	for i, m := range minutes {
		s := ops.Sample{
			At: noon().Add(-time.Duration(m) * time.Minute), Waiting: ops.Count{Documents: m}, LagSeconds: int64(m),
		}
		if i > 0 {
			s.Committed = int64(10 * (minutes[i-1] - m))
		}
		all = append(all, s)
	}
	return all
}

func graphOf(d ops.Day) *dayGraph {
	v := &visit{site: New(Options{Now: noon})}
	return v.graph(d)
}

// Samples that are taken together lose nothing, and the time before the first one is not theirs.
func TestWindowsOfADayAddUp(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		at, want, stopped := noon(), int64(0), int64(0)
		var all []ops.Sample
		for i := range rapid.IntRange(0, 300).Draw(rt, "samples") {
			at = at.Add(time.Duration(rapid.IntRange(60, 7200).Draw(rt, "seconds")) * time.Second)
			all = append(all,
				ops.Sample{At: at, Committed: int64(i + 1), StoppedSeconds: 2, Waiting: ops.Count{Documents: i % 50}})
			if i > 0 {
				want, stopped = want+int64(i+1), stopped+2
			}
		}
		for _, least := range []time.Duration{dayWindow, hourWindow} {
			sum, stops, most := int64(0), int64(0), 0
			found := windows(all, least)
			for i, w := range found {
				sum, stops, most = sum+w.Committed, stops+w.Stopped, max(most, w.Waiting.Documents)
				if i > 0 {
					require.Equal(rt, found[i-1].To, w.From)
				}
			}
			require.Equal(rt, []int64{want, stopped}, []int64{sum, stops})
			if len(all) > 51 {
				require.Equal(rt, 49, most)
			}
		}
	})
}

// A silence of the timer is told, and no line is drawn over it: nobody knows what waited.
func TestASilenceOfTheTimerIsAGap(t *testing.T) {
	g := graphOf(ops.Day{Samples: ago(600, 595, 590, 400, 395, 390)})
	require.Equal(t, []int{2, 2}, []int{strings.Count(g.Line, "M"), strings.Count(g.Lag, "M")}, g.Line)
	require.Len(t, g.Stops, 1)
	require.Equal(t, "timer silent 3 h 10 min", g.Stops[0].Text)
	require.Equal(t, "10", g.MostCommitted, "what became committed is spread over its time")
	require.True(t, g.Hourly[1].Silent)
	require.Contains(t, g.Label, "never stopped")
}

// A stop has its place and its length, whether it goes on or began the day before; more stops than are kept count in
// the sum.
func TestStopsAreDrawn(t *testing.T) {
	d := ops.Day{Samples: ago(1435, 10, 5), Stops: []ops.Stop{
		{From: noon().Add(-30 * time.Hour), To: noon().Add(-23 * time.Hour), Code: "refused"},
		{From: noon().Add(-6 * time.Hour), To: noon().Add(-6*time.Hour + 2*time.Minute), Code: "paused"},
		{From: noon().Add(-time.Minute), Code: "9002"},
	}}
	g := graphOf(d)
	var texts []string
	for _, s := range g.Stops[len(g.Stops)-3:] {
		texts = append(texts, fmt.Sprint(s.X, " ", s.Width, " ", s.Text))
	}
	require.Equal(t, []string{"8 49 stopped 7 h 0 min", "896 2 paused 2 min", "1191 2 stopped 60 s"}, texts[:3])
	require.Contains(t, g.Label, "stopped or paused for 63 min in all")
	d.Samples[2].StoppedSeconds = 7200
	require.Contains(t, graphOf(d).Label, "for 2 h 0 min in all")
}

// Everything is within the picture, whatever the numbers.
func TestTheGraphStaysInItsPicture(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var d ops.Day
		at := noon().Add(-24*time.Hour - time.Duration(rapid.IntRange(0, 1000).Draw(rt, "before"))*time.Second)
		for range rapid.IntRange(2, 100).Draw(rt, "samples") {
			at = at.Add(time.Duration(rapid.IntRange(1, 1800).Draw(rt, "seconds")) * time.Second)
			d.Samples = append(d.Samples, ops.Sample{
				At: at, Committed: rapid.Int64Range(0, 1e9).Draw(rt, "committed"),
				LagSeconds: rapid.Int64Range(0, 1e9).Draw(rt, "lag"),
				Waiting:    ops.Count{Documents: rapid.IntRange(0, 1e9).Draw(rt, "waiting")},
			})
		}
		g := graphOf(d)
		for path, bottom := range map[string]int{g.Line: dayBottom, g.Lag: lagBottom} {
			for _, point := range regexp.MustCompile(`[ML](-?\d+) (-?\d+)`).FindAllStringSubmatch(path, -1) {
				x, _ := strconv.Atoi(point[1])
				y, _ := strconv.Atoi(point[2])
				require.True(rt, x >= dayLeft && x <= dayRight && y >= dayTop && y <= bottom, path)
			}
		}
		for _, y := range regexp.MustCompile(`V(-?\d+)`).FindAllStringSubmatch(g.Area, -1) {
			n, _ := strconv.Atoi(y[1])
			require.True(rt, n >= dayTop && n <= dayBottom, g.Area)
		}
	})
}

// Two samples are the least.
func TestADayWithOneSampleHasNoGraph(t *testing.T) {
	require.Nil(t, graphOf(ops.Day{}))
	require.Nil(t, graphOf(ops.Day{Samples: ago(5)}))
	require.NotNil(t, graphOf(ops.Day{Samples: ago(10, 5)}))
}
