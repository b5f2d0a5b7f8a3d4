package commit

import "time"

// The retry schedule of the requirements: 2, 4, 8, 16, 32 minutes, never more than an hour.
const (
	// MaxRetries is how many retries a document may spend before it is poison.
	MaxRetries = 5
	// initialBackoff and maxBackoff bound the wait before a retry.
	initialBackoff = 120 * time.Second
	maxBackoff     = time.Hour
	// jitterShare is the most that jitter adds: spreading helps, being early would break a promise to the operators.
	jitterShare = 0.2
	// aloneBackoff is the wait of a document that lost every race by itself. It spends no retry.
	aloneBackoff = 120 * time.Second
)

// Backoff is the wait before retry n (0-based): min(3600, 120*2^n) seconds plus 0-20 %, never less. The draw is a number
// in [0,1). Source of the rule: docs/requirements.md R38.
func Backoff(n int, draw float64) time.Duration {
	d := maxBackoff
	if n < 5 { // 120 s * 2^5 is beyond the cap, and larger shifts would overflow
		d = min(maxBackoff, initialBackoff<<max(n, 0))
	}
	return withJitter(d, draw)
}

func withJitter(d time.Duration, draw float64) time.Duration {
	return d + time.Duration(float64(d)*jitterShare*draw)
}

// dueAt is the epoch second at which a wait that begins now is over, rounded up so that a retry is never early.
func dueAt(now time.Time, wait time.Duration) int64 {
	return now.Add(wait + time.Second - 1).Unix()
}
