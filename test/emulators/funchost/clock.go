package funchost

import (
	"context"
	"time"
)

// Clock is the host's time. Everything the host waits for on its own account (polls, leases, retries, timers, function
// timeouts) goes through it, so that tests move time instead of spending it.
type Clock interface {
	// Now is the current time.
	Now() time.Time
	// Sleep returns true once d has passed and false when ctx ends first. why names the wait, so that a test can wait
	// for a certain one and assert its length.
	Sleep(ctx context.Context, d time.Duration, why string) bool
}

// The waits, by name.
const (
	waitFeedPoll     = "feed poll"
	waitLeaseAcquire = "lease acquire"
	waitLeaseLock    = "lease lock"
	waitThrottled    = "throttled"
	waitLeaseRenew   = "lease renew"
	waitRetry        = "retry"
	waitTimeout      = "function timeout"
	waitTimer        = "timer"
	waitListener     = "listener restart"
	waitReceive      = "receive again"
	waitLock         = "lock renewal"
)

// systemClock is the wall clock.
type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

func (systemClock) Sleep(ctx context.Context, d time.Duration, _ string) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
