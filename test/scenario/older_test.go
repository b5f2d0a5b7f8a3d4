package scenario

import (
	"context"
	"time"

	"sqlwriter/internal/breaker"
	"sqlwriter/test/inmem"
)

// An older build beside this one: it compares nothing, raises the heartbeat by one, and of the control document it carries over
// what it does not know.

// olderBeat is an older build's heartbeat.
func (w *world) olderBeat(context.Context) error {
	sql := w.base.Sink.(*inmem.Sink) //nolint:forcetypeassert // these scenarios are played in memory
	row, _ := sql.Heartbeats(sysName)
	if row.Number++; row.DatabaseID == "" {
		row.DatabaseID = "made by an older build"
	}
	sql.SetHeartbeat(sysName, row)
	return nil
}

// unknownCode stands for a code that an older build does not know: it looks at the time of the next probe alone.
const unknownCode = "unknown to an older build"

// olderReads is the control document as an older build sees it.
func olderReads(c control) control {
	c.Heartbeat = breaker.Heartbeat{}
	if c.Breaker.RefusesDatabase() {
		c.Breaker.Code = unknownCode
		c.Breaker.WaitSeconds = int(time.Until(c.Breaker.OpenUntil)/time.Second) + 1 // it takes no time for one of a wrong clock
	}
	return c
}

// olderWrites is the control document as an older build writes it.
func olderWrites(ctx context.Context, store controlStore, c control) control {
	is, _, err := store.Load(ctx)
	if err != nil {
		return c
	}
	c.Heartbeat = is.Heartbeat
	if c.Breaker.Code == unknownCode {
		c.Breaker.Code, c.Breaker.WaitSeconds = is.Breaker.Code, is.Breaker.WaitSeconds
	}
	return c
}

// olderHost starts an older build that owns no range: it ticks, and probes when it may.
func (w *world) olderHost() *instance {
	return w.start("older", process{build: build{version: "v0", older: true}, ticks: true})
}
