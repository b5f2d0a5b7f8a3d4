package ops_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/ops"
)

// day is what the timer sampled.
func (w *world) day() ops.Day {
	w.t.Helper()
	s := must(w.ops.Status(w.t.Context(), ops.StatusQuery{Day: true}))(w.t)
	require.NotNil(w.t, s.Day, s.CountsUnknown)
	return *s.Day
}

// An outage of two minutes between two ticks, what was committed before and after it, and what waits.
func TestADayIsSampled(t *testing.T) {
	w := newWorld(t, 1, 2, 3)
	zone := w.tick().At.Location()
	w.put(result(1, "x", ""), result(2, "x", ""))
	w.run(id(1), id(2))
	w.breaker.Tell(t.Context())
	w.clock = start().Add(5 * time.Minute)
	w.tick()

	w.clock = start().Add(7 * time.Minute)
	w.open(fault.Infrastructure, "refused")
	w.clock = start().Add(9 * time.Minute)
	_, err := w.ops.Resume(by(t, "kim"), ops.ResumeFlow{Why: "mended"})
	require.NoError(t, err)
	for line := range int64(3) { // the ramp
		w.sink.AddLines(10 + line)
		w.put(result(10+line, "x", ""))
		w.run(id(10 + line))
	}
	w.breaker.Tell(t.Context())
	w.put(result(3, "x", ""), result(4, "x", scheduled(start().Add(time.Hour))),
		result(5, "x", failed(1, fault.Document, "547")))
	w.clock = start().Add(10*time.Minute + 300*time.Millisecond)
	s := w.tick()
	shown := must(json.Marshal(s))(t)
	require.NotContains(t, string(shown), "samples", "a status is asked every few seconds")

	at := func(minutes int) time.Time { return start().Add(time.Duration(minutes) * time.Minute).In(zone) }
	d := w.day()
	require.Equal(t, []ops.Sample{
		{At: at(0)},
		{At: at(5), Committed: 2},
		{At: at(10), Committed: 3, Waiting: ops.Count{Documents: 2}, LagSeconds: 60, StoppedSeconds: 120},
	}, d.Samples)
	require.Equal(t, []ops.Stop{{From: at(7), To: at(9), Code: "refused"}}, d.Stops)
	require.Equal(t, &ops.Committed{Documents: 5, From: at(0), To: at(10)}, d.LastHour)

	w.clock = start().Add(12 * time.Minute)
	w.open(fault.Quota, "9002")
	d = w.day()
	require.Equal(t,
		[]ops.Stop{{From: at(7), To: at(9), Code: "refused"}, {From: at(12), Code: "9002"}}, d.Stops, "it goes on")
	w.clock = start().Add(15 * time.Minute)
	w.tick()
	require.EqualValues(t, 180, w.day().Samples[3].StoppedSeconds)

	w.clock = start().Add(26 * time.Hour)
	d = w.day()
	require.Empty(t, d.Samples)
	require.Nil(t, d.LastHour)
	require.Len(t, d.Stops, 1, "the one that goes on")
}

// The hour up to the last tick, however many ticks it had.
func TestTheLastHourIsWhatTheSamplesOfAnHourSay(t *testing.T) {
	w := newWorld(t)
	total := int64(1000)
	tick := func(after time.Duration) *ops.Committed {
		t.Helper()
		total++
		w.clock = w.clock.Add(max(0, after-6*time.Second))
		w.hears(breaker.Status{Committed: total})
		w.tick()
		return w.day().LastHour
	}
	require.Nil(t, tick(0), "one sample says nothing of the time before it")
	require.Zero(t, w.day().Samples[0].Committed, "nobody knows since when")
	for i := range int64(30) {
		h := tick(5*time.Minute + time.Second)
		require.Equal(t, min(i+1, 12), h.Documents)
	}
	h := tick(3 * time.Hour)
	require.Equal(t, []any{int64(1), 3 * time.Hour}, []any{h.Documents, h.To.Sub(h.From)}, "the timer was silent")

	w.clock = w.clock.Add(2 * time.Hour)
	w.hears(breaker.Status{Committed: 7})
	w.tick()
	require.EqualValues(t, 7, w.day().LastHour.Documents, "the instance began anew")
}

// oddCounts fails to load.
type oddCounts struct {
	ops.CountsStore
	err error
}

func (o oddCounts) LoadCounts(context.Context) (ops.Saved, error) { return ops.Saved{}, o.err }

// A tick that cannot read the day so far stores nothing; one that finds no day there begins another.
func TestATickKeepsTheDay(t *testing.T) {
	w := newWorld(t)
	w.tick()
	w.clock = start().Add(5 * time.Minute)
	again := func(code string) *ops.Ops {
		err := fault.New(fault.Infrastructure, "test: load counts", code, "not now")
		return ops.New(
			ops.Ports{Finder: w.docs, Breaker: w.breaker, Counts: oddCounts{w.counts, err}, Stores: w.stores},
			ops.Options{SysName: "web", Now: func() time.Time { return w.clock }})
	}
	require.Error(t, again("503").SaveCounts(t.Context()))
	require.Len(t, w.day().Samples, 1)
	require.True(t, w.day().Samples[0].At.Equal(start()), "nothing was stored")
	unknown, err := again("503").Status(t.Context(), ops.StatusQuery{Day: true})
	require.NoError(t, err)
	require.Nil(t, unknown.Day)
	require.Contains(t, unknown.CountsUnknown, "not now")

	require.NoError(t, again("unreadable").SaveCounts(t.Context()))
	require.Len(t, w.day().Samples, 1)
	require.True(t, w.day().Samples[0].At.Equal(w.clock))
}

func TestSamplesThatCannotBeReadAreAnError(t *testing.T) {
	var s ops.Saved
	for _, text := range []string{`"1,2"`, `"1,2,x,3,4"`, `"1,2,3,4,5;"`, `"1,2,3,4,5,6"`} {
		require.Error(t, json.Unmarshal([]byte(`{"samples":`+text+`}`), &s), text)
	}
	require.NoError(t, json.Unmarshal([]byte(`{"samples":""}`), &s))
}

// Ticks at any times, also of instances whose clocks differ: the samples are few, in order, and lose nothing of their
// time, stored or not.
func TestSamplesAreBoundedAndAddUp(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		gaps := rapid.SampledFrom(
			[][2]int{{1, 20}, {60, 60}, {280, 320}, {280, 700}, {-30, 400}, {0, 7200}}).Draw(rt, "gaps")
		ticks := rapid.IntRange(1, 2000).Draw(rt, "ticks")
		draws := rapid.SliceOfN(rapid.IntRange(gaps[0], gaps[1]), 31, 31).Draw(rt, "seconds")
		var found, all ops.Samples
		now := start()
		for i := range ticks {
			now = now.Add(time.Duration(draws[i*17%31]) * time.Second)
			s := ops.Sample{
				At: now, Committed: int64(i % 7), StoppedSeconds: int64(i % 3), LagSeconds: int64(i),
				Waiting: ops.Count{Documents: i, AtLeast: i%2 == 0},
			}
			all = append(all, s)
			found = ops.With(found, s)
			require.LessOrEqual(rt, len(found), 300)
			last := len(found) - 1
			require.Equal(rt, []any{s.Waiting, s.LagSeconds},
				[]any{found[last].Waiting, found[last].LagSeconds}, "the latest")
		}
		text, err := json.Marshal(found)
		require.NoError(rt, err)
		require.Less(rt, len(text), 10_000)
		var loaded ops.Samples
		require.NoError(rt, json.Unmarshal(text, &loaded))
		require.Equal(rt, found, loaded)

		var sum, want [2]int64
		for i := 1; i < len(found); i++ {
			require.True(rt, found[i].At.After(found[i-1].At), "in order")
			sum[0], sum[1] = sum[0]+found[i].Committed, sum[1]+found[i].StoppedSeconds
		}
		require.LessOrEqual(rt, found[len(found)-1].At.Sub(found[0].At), 24*time.Hour)
		for i := len(all) - 1; i > 0 && all[i].At.After(found[0].At); i-- {
			want[0], want[1] = want[0]+all[i].Committed, want[1]+all[i].StoppedSeconds
		}
		if gaps[0] >= 0 { // else the first one's time is another clock's
			require.Equal(rt, want, sum)
		}
	})
}

// Ticks of the documented schedule, some of them late, are a sample each.
func TestEachTickOfTheScheduleIsASample(t *testing.T) {
	var found ops.Samples
	for i := range 1000 {
		late := time.Duration(i%4*6) * time.Second
		found = ops.With(found, ops.Sample{At: start().Add(time.Duration(i)*5*time.Minute + late), Committed: 1})
		require.EqualValues(t, 1, found[len(found)-1].Committed)
	}
	require.GreaterOrEqual(t, len(found), 288)
}
