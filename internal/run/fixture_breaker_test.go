package run_test

import (
	"context"
	"time"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/fault"
)

// newBreaker makes an instance's breaker, which its Commit uses, too.
func (i *instance) newBreaker() *breaker.Breaker {
	return breaker.New(spyControl{i}, breaker.Options{
		Instance: i.name, Build: "v1", Log: i.w.log, Now: i.now,
		SysName: sysName, Heartbeat: spySink{i}.Heartbeat, TakeOver: spySink{i}.TakeOver,
	})
}

func (i *instance) now() time.Time { return time.Now().Add(i.w.skews[i.name]) }

// openBreaker opens the breaker of all instances, as another instance would. Each reads it within five seconds.
func (w *world) openBreaker(wait time.Duration) {
	ctx := context.Background()
	for {
		c, etag, err := w.control.Load(ctx)
		if err != nil {
			panic(err)
		}
		now := time.Now()
		c.Breaker = breaker.State{
			Name: breaker.Open, OpenUntil: now.Add(wait), Since: now, ChangedAt: now, HeldBy: "test",
			Kind: fault.Infrastructure, Code: "refused", Reason: "a test", WaitSeconds: int(wait / time.Second),
		}
		if _, err = w.control.Store(ctx, c, etag); err == nil {
			return
		}
	}
}

func (i *instance) isOpen() bool {
	state := i.breaker.View(context.Background()).Control.Breaker
	return state.Stopped()
}
