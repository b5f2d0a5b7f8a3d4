package funchost

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// timerTrigger is a timerTrigger binding, resolved.
type timerTrigger struct {
	schedule   cronSchedule
	useMonitor bool
}

func (x indexer) timerTrigger(functionName string, b binding) (*timerTrigger, error) {
	r := reader{binding: b, settings: x.settings}
	text := r.required("schedule")
	r.only("type name direction schedule usemonitor")
	t := &timerTrigger{}
	monitor, err := b.flag("useMonitor", true)
	if err != nil {
		r.fail(err)
	}
	t.useMonitor = monitor
	if r.errs != nil {
		return nil, r.problem()
	}
	if tuned, ok := x.tune.Schedules[functionName]; ok {
		text = tuned
	}
	t.schedule, err = parseSchedule(text)
	return t, err
}

// scheduleStatus is what the host remembers of a timer (ScheduleStatus.cs). The zero time stands for "never".
type scheduleStatus struct {
	Last, Next, LastUpdated time.Time
}

// dotnetTime prints a local time as Newtonsoft does.
func dotnetTime(t time.Time) string { return t.Format("2006-01-02T15:04:05.9999999-07:00") }

func (s scheduleStatus) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, `{"Last":"%s","Next":"%s","LastUpdated":"%s"}`,
		dotnetTime(s.Last), dotnetTime(s.Next), dotnetTime(s.LastUpdated)), nil
}

// timerData is the wire form of TimerInfo: a real object. status nil (no monitoring) is null. (docs/facts.md F9)
func timerData(status *scheduleStatus, pastDue bool) ([]byte, error) {
	return json.Marshal(struct {
		Schedule struct {
			AdjustForDST bool
		}
		ScheduleStatus *scheduleStatus
		IsPastDue      bool
	}{struct{ AdjustForDST bool }{true}, status, pastDue})
}

// manualTimer is what a timer started by hand gets: its stored status, and the input, if there is one, in Metadata.
func (h *Host) manualTimer(ctx context.Context, f *function, input string) (payload, error) {
	var status *scheduleStatus
	store, err := h.monitor(f.timer)
	if err == nil && store != nil {
		status, err = store.load(ctx, f.name)
	}
	if err != nil {
		return payload{}, err
	}
	if status != nil {
		*status = status.in(h.options.Zone)
	}
	data, err := timerData(status, false)
	p := payload{data: data}
	if input != "" {
		p.metadata = []member{{f.trigger, stringValue(input)}}
	}
	return p, err
}

// monitor is where the timer's status is stored; nil where it is not.
func (h *Host) monitor(t *timerTrigger) (timerStore, error) {
	if !t.useMonitor || tooFrequent(t.schedule, h.clock.Now().In(h.options.Zone)) {
		return nil, nil //nolint:nilnil // as it says
	}
	return h.timerStatus()
}

// timerListener is one running timer.
type timerListener struct {
	host     *Host
	function *function
	timer    *timerTrigger
	store    timerStore // nil = not monitored
	status   scheduleStatus
}

// listenTimer runs a timer until ctx ends: one invocation at a time, a tick that was missed while the host was down at
// once with IsPastDue, a tick that fell into a long run right after it. Source: TimerListener.cs.
func (h *Host) listenTimer(ctx context.Context, f *function) error {
	l := &timerListener{host: h, function: f, timer: f.timer}
	var err error
	if l.store, err = h.monitor(f.timer); err != nil {
		return err
	}
	pastDue, err := l.prepare(ctx)
	if err != nil {
		return err
	}
	h.event(Event{Kind: ListenerStarted, Function: f.name})
	if pastDue {
		if err := l.invoke(ctx, true, true); err != nil {
			return err
		}
	}
	for ctx.Err() == nil {
		pause := max(l.status.Next.Sub(l.now()), 0)
		h.event(Event{Kind: TimerScheduled, Function: f.name, Delay: pause})
		if !h.clock.Sleep(ctx, pause, waitTimer) {
			return nil
		}
		if err := l.invoke(ctx, false, false); err != nil {
			return err
		}
	}
	return nil
}

func (l *timerListener) now() time.Time { return l.host.clock.Now().In(l.host.options.Zone) }

// prepare finds out where the schedule stands and whether a tick was missed. Source: ScheduleMonitor.cs
// CheckPastDueAsync.
func (l *timerListener) prepare(ctx context.Context) (pastDue bool, err error) {
	now := l.now()
	next, err := l.timer.schedule.next(now)
	if err != nil {
		return false, err
	}
	if l.store == nil {
		l.status = scheduleStatus{Next: next}
		return false, nil
	}
	stored, err := l.store.load(ctx, l.function.name)
	if err != nil {
		return false, fmt.Errorf("timer status: %w", err)
	}
	if stored == nil {
		// A first entry, so that a tick missed before the first run is found too. As in the original, what the function
		// is shown has no LastUpdated yet.
		l.save(ctx, scheduleStatus{Next: next, LastUpdated: now})
		l.status = scheduleStatus{Next: next}
		return false, nil
	}
	l.status = stored.in(l.host.options.Zone)
	base := now
	if !l.status.Last.IsZero() {
		base = l.status.Last
	} else if !l.status.LastUpdated.IsZero() {
		base = l.status.LastUpdated
	}
	expected, err := l.timer.schedule.next(base)
	if err != nil {
		return false, err
	}
	if !l.status.Next.Equal(expected) {
		// The schedule was changed: begin anew, and don't call it late by the old one.
		if now.After(expected) {
			expected, base = next, now
		}
		l.status = scheduleStatus{Next: expected, LastUpdated: base}
		l.save(ctx, l.status)
	}
	return now.After(l.status.Next), nil
}

func (s scheduleStatus) in(zone *time.Location) scheduleStatus {
	for _, t := range []*time.Time{&s.Last, &s.Next, &s.LastUpdated} {
		if !t.IsZero() {
			*t = t.In(zone)
		}
	}
	return s
}

// invoke runs the function once and advances the status, also after a failure, which does not stop the schedule.
func (l *timerListener) invoke(ctx context.Context, pastDue, unscheduled bool) error {
	at := l.now()
	var shown *scheduleStatus
	if l.store != nil {
		shown = &l.status
	}
	data, err := timerData(shown, pastDue)
	if err != nil {
		return err
	}
	_, _ = l.host.execute(ctx, l.function, payload{data: data}) // recorded by execute
	if !unscheduled && l.status.Next.After(at) {
		at = l.status.Next // fired a little early: else the same tick would come twice
	}
	next, err := l.timer.schedule.next(at)
	if err != nil {
		return err
	}
	l.status = scheduleStatus{Last: at, Next: next, LastUpdated: at}
	if l.store != nil {
		l.save(ctx, l.status)
	}
	return nil
}

// save is best effort, also after the listener was stopped.
func (l *timerListener) save(ctx context.Context, s scheduleStatus) {
	saving, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := l.store.save(saving, l.function.name, s); err != nil {
		l.host.event(Event{Kind: TimerStatusFailed, Function: l.function.name, Err: err})
	}
}
