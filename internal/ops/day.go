package ops

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/invoice"
)

const (
	// sampledFor is how far samples go back.
	sampledFor = 24 * time.Hour
	// maxSamples bounds the samples: two in succession span at least twoSamples, or they are one. Ticks of the
	// documented schedule, 20 s late or early, are not.
	maxSamples = 300
	twoSamples = 2 * sampledFor / (maxSamples - 2)
	// hourSlack is how much more than an hour the ticks of an hour may span.
	hourSlack = 30 * time.Second
)

// Saved is what a tick of the recovery timer stores: its counts, and the samples up to it.
type Saved struct {
	Counts

	Samples Samples `json:"samples,omitempty"`
	// Committed is breaker.Status.Committed of each instance at the tick.
	Committed map[string]int64 `json:"committed,omitempty"`
}

// Sample is what a tick of the recovery timer saw, and what happened since the sample before it.
type Sample struct {
	At time.Time `json:"at"`
	// Committed is about how many documents became committed since the sample before. Instances tell it up to a minute
	// late, and one that is killed not at all.
	Committed int64 `json:"committed"`
	// Waiting counts pending, retry_scheduled and processing documents.
	Waiting Count `json:"waiting"`
	// LagSeconds is the age of the oldest document that was not tried yet.
	LagSeconds int64 `json:"lag_s"`
	// StoppedSeconds is how long the flow was stopped, paused or ramping up since the sample before.
	StoppedSeconds int64 `json:"stopped_s"`
}

// Samples are the samples of the last 24 hours, oldest first. They are stored as one text: a container indexes each
// member of a list.
type Samples []Sample

// Day is what the recovery timer sampled in the last 24 hours.
type Day struct {
	// At is when this was asked.
	At time.Time `json:"at"`
	// Samples are those of the ticks, oldest first, at most 300.
	Samples []Sample `json:"samples"`
	// Stops are the latest 20, oldest first.
	Stops []Stop `json:"stops"`
	// LastHour is what became committed in the hour up to the last sample; nil before there are two samples.
	LastHour *Committed `json:"last_hour,omitempty"`
}

// Stop is a time in which the flow was stopped, paused or ramping up after that.
type Stop struct {
	From time.Time `json:"from"`
	// To is zero while it goes on.
	To time.Time `json:"to,omitzero"`
	// Code is that of the failure; "paused" for a pause.
	Code string `json:"code,omitempty"`
}

// Committed is about how many documents became committed between two times.
type Committed struct {
	Documents int64     `json:"documents"`
	From      time.Time `json:"from"`
	To        time.Time `json:"to"`
}

// day describes the last 24 hours.
func (o *Ops) day(saved Saved, view breaker.View, now time.Time) *Day {
	day := Day{At: o.in(now), Samples: []Sample{}, Stops: []Stop{}}
	for _, s := range saved.Samples.since(now) {
		s.At = o.in(s.At)
		day.Samples = append(day.Samples, s)
	}
	day.LastHour = lastHour(day.Samples)
	for _, s := range view.StopsUntil(now) {
		stop := Stop{From: o.in(s.From), To: o.in(s.To), Code: s.Code}
		if s.To.Equal(now) {
			stop.To = time.Time{}
		}
		if now.Sub(s.To) < sampledFor {
			day.Stops = append(day.Stops, stop)
		}
	}
	return &day
}

// lastHour adds up the samples of the last hour, or the last one if it spans more.
func lastHour(all []Sample) *Committed {
	last := len(all) - 1
	if last < 1 {
		return nil
	}
	sum := Committed{To: all[last].At}
	for i := last; i > 0 && (i == last || sum.To.Sub(all[i-1].At) <= time.Hour+hourSlack); i-- {
		sum.Documents += all[i].Committed
		sum.From = all[i-1].At
	}
	return &sum
}

// sample makes the sample of a tick. last is what the tick before stored, oldest the document that was not tried and
// waits longest.
func sample(c Counts, oldest time.Time, last Saved, view breaker.View) (s Sample, committed map[string]int64) {
	s = Sample{At: c.At.Truncate(time.Second)}
	for status, n := range c.Depth {
		if status != invoice.Failed {
			s.Waiting.Documents += n.Documents
			s.Waiting.AtLeast = s.Waiting.AtLeast || n.AtLeast
		}
	}
	if !oldest.IsZero() {
		s.LagSeconds = int64(max(0, c.At.Sub(oldest)) / time.Second)
	}
	if view.Lost || view.Instances == nil { // what they counted is not known
		committed = last.Committed
	} else {
		committed = map[string]int64{}
	}
	for _, is := range view.Instances {
		n := is.Committed - last.Committed[is.Instance]
		if n < 0 { // it began anew under the same name
			n = is.Committed
		}
		s.Committed += n
		committed[is.Instance] = is.Committed
	}
	if n := len(last.Samples); n == 0 {
		s.Committed = 0 // nobody knows since when
	} else {
		s.StoppedSeconds = int64(view.StoppedIn(last.Samples[n-1].At, c.At).Round(time.Second) / time.Second)
	}
	return s, committed
}

// since returns the samples of the last 24 hours.
func (all Samples) since(now time.Time) Samples {
	return slices.DeleteFunc(slices.Clone(all), func(s Sample) bool { return now.Sub(s.At) > sampledFor })
}

// with adds a sample, and drops those that are too old. One that follows too closely becomes one with the last.
func (all Samples) with(s Sample) Samples {
	all = all.since(s.At)
	n := len(all)
	if n > 0 && !s.At.After(all[n-1].At) || n > 1 && s.At.Sub(all[n-2].At) < twoSamples {
		last := all[n-1]
		s.Committed, s.StoppedSeconds = s.Committed+last.Committed, s.StoppedSeconds+last.StoppedSeconds
		if last.At.After(s.At) { // another instance's clock is behind
			s.At = last.At
		}
		all = all[:n-1]
	}
	return append(all, s)
}

// MarshalText writes a sample as "seconds,committed,waiting,lag,stopped", the first time since 1970 and each other
// since the one before. A plus after waiting says that there may be more.
func (all Samples) MarshalText() ([]byte, error) {
	var b []byte
	before := int64(0)
	for i, s := range all {
		if i > 0 {
			b = append(b, ';')
		}
		more := ""
		if s.Waiting.AtLeast {
			more = "+"
		}
		b = fmt.Appendf(b, "%d,%d,%d%s,%d,%d", s.At.Unix()-before, s.Committed, s.Waiting.Documents, more,
			s.LagSeconds, s.StoppedSeconds)
		before = s.At.Unix()
	}
	return b, nil
}

// UnmarshalText reads what MarshalText wrote.
func (all *Samples) UnmarshalText(text []byte) error {
	*all = nil
	if len(text) == 0 {
		return nil
	}
	at := int64(0)
	for one := range strings.SplitSeq(string(text), ";") {
		var n [5]int64
		parts := strings.Split(one, ",")
		if len(parts) != len(n) {
			return fmt.Errorf("a sample: expected %d numbers, found %d", len(n), len(parts))
		}
		more := strings.HasSuffix(parts[2], "+")
		parts[2] = strings.TrimSuffix(parts[2], "+")
		for i, part := range parts {
			var err error
			if n[i], err = strconv.ParseInt(part, 10, 64); err != nil {
				return fmt.Errorf("a sample: expected a number, found %q", part)
			}
		}
		at += n[0]
		*all = append(*all, Sample{
			At: time.Unix(at, 0).UTC(), Committed: n[1], Waiting: Count{Documents: int(n[2]), AtLeast: more},
			LagSeconds: n[3], StoppedSeconds: n[4],
		})
	}
	return nil
}
